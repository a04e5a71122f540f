/* The quick reader of YAML: what it reads, libyaml reads to the same nodes. */
#include "../check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "base/str.h"
#include "base/yaml_plain.h"
#include "same_yaml.h"

static void knows_its_form(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool plain;
    } cases[] = {
        {"a: 1\n", true},
        {"a: {b: -1.5e-07, \"c d\": [x, \"y\\n\\\"\\\\\", {}], e: []}\n", true},
        {"a:\n  - b: 1\n    c: 2\n  - {b: 1}\nd: x y\n", true},
        {"a:\n  b:\n    c: {d: 1}\n  e: 1\n", true},
        {"a: [1,\n    2, {b: 3,\n c: 4}]\nd: 1\n", true},
        {"", false},
        {"a: 1", false},              /* no line break at the end */
        {"a: 1\nb\n", false},         /* no value */
        {"a: 1\na: 2\n", false},      /* twice */
        {"a: {b: 1, b: 2}\n", false}, /* twice */
        {"a: # 1\n", false},
        {"# a\na: 1\n", false},
        {"a: 1 \n", false},
        {"a:  1\n", false},
        {"a:\n", false},
        {"a: 1\n  b\n", false}, /* goes on */
        {"a: 1\n\nb: 1\n", false},
        {"a: \"1\n  2\"\n", false},
        {"a: \"\\x41\"\n", false},
        {"a: \xc3\xa4\n", false},
        {"a: 'b'\n", false},
        {"a: &b 1\n", false},
        {"a: - b\n", false},
        {"a: b: c\n", false},
        {"a: [b: c]\n", false},
        {"a: {b}\n", false},
        {"a: {b: 1,c: 2}\n", false},
        {"a: {b: 1, }\n", false},
        {"a: [1,\n2]\n", false},
        {"a: [1,\n\n 2]\n", false},
        {"a: [1\n  , 2]\n", false},
        {"a: {b: 1}: 2\n", false},
        {"a:\n- b: 1\n", false},
        {"a:\n    b: 1\n", false},
        {"a:\n  - b: 1\n   c: 2\n", false},
        {"a:\n  - b: 1\n  c: 2\n", false},
        {"a:\n  b: 1\n  - c: 2\n", false},
        {"a: 1\n---\nb: 1\n", false},
        {"---\na: 1\n", false},
        {"a\t: 1\n", false},
        {"a: 1\r\n", false},
        {"- a: 1\n", false},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        if (same_yaml(cases[i].text, strlen(cases[i].text), "a") != cases[i].plain)
            fail_msg("%s", cases[i].text);
}

/* Texts of pieces that mean something in YAML, most of them nearly in the form. */
static void agrees_about_any_text(void **state)
{
    (void)state;
    static const char *const pieces[] = {
        "a",       "b",          "c: ",        "d: 1\n", "  - ", "  ",
        "\n",      ": ",         "- ",         "{",      "}",    "[",
        "]",       ", ",         "\"x\"",      "-1",     "1.5",  "e: {f: 1}\n",
        "gpus:\n", "  - g: 1\n", "    h: 2\n", "i:\n",   "x y",  "\\",
        "\"",      "#",          " #",         "~",      "null", "--- ",
        "? ",      "|\n",        "'",          "&a ",    "*a",   "  j: [1, 2]\n",
        "k: []\n", "%",          "\t",         ":",      ",",    "-",
        " ",
    };
    struct rng rng;
    size_t read = 0;
    rng_init(&rng, 1, "agrees_about_any_text");
    for (int round = 0; round < 60000; round++) {
        struct strbuf text = {0};
        int count = 1 + (int)(rng_uniform(&rng) * 9);
        for (int i = 0; i < count; i++)
            strbuf_puts(&text, pieces[(size_t)(rng_uniform(&rng) * COUNT_OF(pieces))]);
        if (rng_uniform(&rng) < 0.5)
            strbuf_puts(&text, "\n");
        read += same_yaml(text.data, text.length, "gpus");
        strbuf_fini(&text);
    }
    assert_true(read > 200);
}

static int refuse(void *user, const struct yaml_node *item, struct err *err)
{
    (void)item, (void)err;
    return *(int *)user;
}

static void hands_failures_on(void **state)
{
    (void)state;
    static const char text[] = "gpus:\n  - a: 1\n";
    int code = -EINVAL;
    const struct yaml_plain_list list = {"gpus", refuse, &code};
    struct yaml_doc *doc = NULL;
    assert_int_equal(yaml_plain_read(text, sizeof text - 1, "t", &yaml_limits_plain, &list, &doc),
                     -ENOTSUP);
    struct yaml_limits few = yaml_limits_config;
    few.nodes_max = 3;
    assert_int_equal(yaml_plain_read("a: [1, 2]\n", 10, "t", &few, NULL, &doc), -ENOTSUP);
    few.depth_max = 1;
    assert_int_equal(yaml_plain_read("a: []\n", 6, "t", &few, NULL, &doc), -ENOTSUP);
    assert_null(doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(knows_its_form),
        cmocka_unit_test(agrees_about_any_text),
        cmocka_unit_test(hands_failures_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
