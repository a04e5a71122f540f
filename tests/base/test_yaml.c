/* YAML: positions, typed reading, and everything a hostile file may try. */
#include "../check.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "base/yaml.h"

static int parse(const char *text, struct yaml_doc **out, struct err *err)
{
    return yaml_read_text(text, strlen(text), "t.yaml", &yaml_limits_config, out, err);
}

static void refuses(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"", "t.yaml:1:1: the file is empty"},
        {"# only a comment\n", "t.yaml:1:1: the file is empty"},
        {"a: 1\na: 2\n", "t.yaml:2:1: key \"a\" occurs twice (first in line 1)"},
        {"a: &x 1\nb: *x\n", "t.yaml:2:4: aliases (*name) are not accepted"},
        {"a: 1\n---\nb: 2\n", "t.yaml:2:1: a second document begins here"},
        {"? [a]\n: 1\n", "t.yaml:1:3: a key must be a plain word"},
        {"a: [1, 2\n", "t.yaml:2:1: not valid YAML: did not find expected ',' or ']'"},
        {"\x01\x02", "t.yaml:1:1: not a YAML text file: control characters are not allowed at "
                     "byte 0"},
        {"a: \"x\\0y\"\n", "t.yaml:1:4: a NUL byte inside a value"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct yaml_doc *doc = NULL;
        struct err err = {0};
        char shown[1024];
        assert_true(parse(cases[i].text, &doc, &err) < 0);
        assert_null(doc);
        assert_string_equal(err_format(&err, shown, sizeof shown), cases[i].message);
    }
}

static void limits_cost(void **state)
{
    (void)state;
    struct yaml_doc *doc = NULL;
    struct err err = {0};
    struct strbuf deep = {0}, wide = {0};
    for (int i = 0; i < 100000; i++)
        strbuf_puts(&deep, "[");
    assert_int_equal(parse(deep.data, &doc, &err), -EFBIG);
    assert_non_null(strstr(err.text, "nested too deeply"));
    for (int i = 0; i < 200000; i++)
        strbuf_puts(&wide, "- 1\n");
    assert_int_equal(parse(wide.data, &doc, &err), -EFBIG);
    assert_int_equal(yaml_read_text(wide.data, 2 * yaml_limits_config.bytes_max, "big",
                                    &yaml_limits_config, &doc, &err),
                     -EFBIG);
    const struct yaml_limits careless = {
        .bytes_max = 1 << 20, .nodes_max = 100000, .depth_max = 100000};
    assert_int_equal(yaml_read_text(deep.data, deep.length, "t.yaml", &careless, &doc, &err),
                     -EFBIG);
    strbuf_fini(&deep);
    strbuf_fini(&wide);
    assert_int_equal(yaml_read_file("/dev/zero", &yaml_limits_config, &doc, &err), -EINVAL);
    assert_non_null(strstr(err.text, "is a device"));
    int ends[2];
    char name[32], bytes[200] = {0};
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], bytes, sizeof bytes), sizeof bytes);
    snprintf(name, sizeof name, "/dev/fd/%d", ends[0]);
    const struct yaml_limits few = {.bytes_max = 100, .nodes_max = 10, .depth_max = 10};
    assert_int_equal(close(ends[1]), 0);
    assert_int_equal(yaml_read_file(name, &few, &doc, &err), -EFBIG);
    assert_int_equal(close(ends[0]), 0);
    assert_int_equal(yaml_read_file("/", &yaml_limits_config, &doc, &err), -EISDIR);
    assert_int_equal(yaml_read_file("/no/such", &yaml_limits_config, &doc, &err), -ENOENT);
    assert_null(doc);
}

struct sample {
    bool flag;
    uint32_t count;
    uint64_t size;
    double share;
    const char *name;
    int word;
    const struct yaml_node *rest;
};
static const char *const words[] = {"lru", "random", NULL};
static const struct yaml_field fields[] = {
    {"flag", YAML_BOOL, offsetof(struct sample, flag)},
    {"count", YAML_U32, offsetof(struct sample, count), .min = 1, .max = 8},
    {"size", YAML_BYTES, offsetof(struct sample, size), .required = true},
    {"share", YAML_F64, offsetof(struct sample, share), .min = 0, .max = 1},
    {"name", YAML_STRING, offsetof(struct sample, name)},
    {"policy", YAML_WORD, offsetof(struct sample, word), .words = words},
    {"rest", YAML_NODE, offsetof(struct sample, rest)},
};

static void reads_fields(void **state)
{
    (void)state;
    struct yaml_doc *doc;
    struct err err = {0};
    struct sample s = {.count = 3};
    assert_int_equal(parse("flag: true\nsize: 2 KiB\nshare: 0.5\nname: 'x y'\npolicy: random\n"
                           "rest: {a: 1, b: [2, 3]}\n",
                           &doc, &err),
                     0);
    assert_int_equal(yaml_read_fields(yaml_root(doc), fields, COUNT_OF(fields), &s, &err), 0);
    assert_true(s.flag && s.count == 3 && s.size == 2048 && s.share == 0.5 && s.word == 1);
    assert_string_equal(s.name, "x y");
    assert_int_equal(yaml_count(yaml_get(s.rest, "b")), 2);
    assert_string_equal(yaml_text(yaml_at(yaml_get(s.rest, "b"), 1)), "3");
    assert_null(yaml_get(s.rest, "c"));
    yaml_destroy(doc);
}

static void refuses_fields(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"sise: 1\n", "t.yaml:1:1: unknown key \"sise\"; did you mean \"size\"?"},
        {"quux: 1\n", "t.yaml:1:1: unknown key \"quux\"; expected one of flag, count, size, share, "
                      "name, policy, rest"},
        {"flag: true\n", "t.yaml:1:1: key \"size\" is missing"},
        {"size: -4\n", "t.yaml:1:7: size: expected a size such as 131072 or 128 KiB, found \"-4\""},
        {"size: 1\ncount: 9\n", "t.yaml:2:8: count: 9 is outside 1 to 8"},
        {"size: 1\ncount: \"3\"\n", "t.yaml:2:8: count: expected a whole number, found \"3\""},
        {"size: 1\nflag: yes\n", "t.yaml:2:7: flag: expected true or false"},
        {"size: 1\nshare: .nan\n", "t.yaml:2:8: share: expected a number, found \".nan\""},
        {"size: 1\npolicy: fifo\n",
         "t.yaml:2:9: policy: expected one of lru, random; found \"fifo\""},
        {"size: [1]\n",
         "t.yaml:1:7: size: expected a size such as 131072 or 128 KiB, found \"a list\""},
        {"- 1\n", "t.yaml:1:1: expected a mapping (key: value), found a list"},
        {"size: 1\nname: ~\n", "t.yaml:2:7: name: expected a text, found nothing"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct yaml_doc *doc;
        struct sample s = {0};
        struct err err = {0};
        char shown[1024];
        assert_int_equal(parse(cases[i].text, &doc, &err), 0);
        assert_int_equal(yaml_read_fields(yaml_root(doc), fields, COUNT_OF(fields), &s, &err),
                         -EINVAL);
        assert_string_equal(err_format(&err, shown, sizeof shown), cases[i].message);
        yaml_destroy(doc);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(refuses), cmocka_unit_test(limits_cost),
                                       cmocka_unit_test(reads_fields),
                                       cmocka_unit_test(refuses_fields)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
