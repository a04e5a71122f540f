/* Allocation failures in src/base: -ENOMEM, no leak, and existing files stay unchanged. */
#include "../check.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/out_file.h"
#include "base/shipped.h"
#include "base/str.h"
#include "base/yaml.h"
#include "sweep.h"

static char folder[] = "/tmp/gpumemtopo-memory-XXXXXX";
static char path[64], target[64], link_path[64];

static int make_folder(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/file", folder);
    snprintf(target, sizeof target, "%s/target", folder);
    snprintf(link_path, sizeof link_path, "%s/link", folder);
    return symlink(target, link_path);
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(path);
    unlink(target);
    unlink(link_path);
    return rmdir(folder); /* fails when anything else is left there */
}

static void put(const char *name, const char *text)
{
    FILE *file = fopen(name, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void assert_holds(const char *name, const char *text)
{
    char read[64] = "";
    FILE *file = fopen(name, "r");
    assert_non_null(file);
    size_t length = fread(read, 1, sizeof read - 1, file);
    fclose(file);
    assert_int_equal(length, strlen(text));
    assert_string_equal(read, text);
}

static int copy(void *context)
{
    (void)context;
    char *out = (char *)"before";
    int rc = str_copy_to(&out, "text");
    assert_string_equal(out, rc ? "before" : "text");
    if (!rc)
        free(out);
    return rc;
}

static int format(void *context)
{
    (void)context;
    char *text = str_format("%d %s", 17, "words");
    int rc = text ? 0 : -ENOMEM;
    free(text);
    return rc;
}

/* The buffer grows several times. After a failure, the text appended before stays readable. */
static int buffer(void *context)
{
    (void)context;
    struct strbuf text = {0};
    for (int i = 0; i < 100; i++) {
        strbuf_puts(&text, "some words ");
        strbuf_printf(&text, "and the number %d\n", i);
        strbuf_append(&text, "\0", 1);
    }
    int rc = text.failed ? -ENOMEM : 0;
    assert_int_equal(text.length == 0, text.data == NULL);
    if (text.data)
        assert_int_equal(strncmp(text.data, "some words ", 11), 0);
    strbuf_fini(&text);
    return rc;
}

static int chunks(void *context)
{
    (void)context;
    struct arena arena = {0};
    int rc = 0;
    for (int i = 0; i < 5 && !rc; i++) {
        char *text = arena_copy(&arena, "text", 4);
        char *block = arena_alloc(&arena, 50000);
        rc = text && block ? 0 : -ENOMEM;
    }
    arena_fini(&arena);
    return rc;
}

/* After a failure the old array is still valid, and growing it again works. */
static int growing(void *context)
{
    (void)context;
    int *array = NULL, rc = 0;
    size_t capacity = 0;
    for (int i = 0; i < 100; i++) {
        int *grown = mem_grow(array, &capacity, (size_t)i + 1, sizeof *array);
        if (!grown) {
            rc = -ENOMEM;
            memory_restore();
            grown = mem_grow(array, &capacity, (size_t)i + 1, sizeof *array);
        }
        array = grown;
        array[i] = i;
    }
    for (int i = 0; i < 100; i++)
        assert_int_equal(array[i], i);
    free(array);
    return rc;
}

static void strings(void **state)
{
    (void)state;
    memory_sweep(&(struct memory_sweep){.name = "str_copy_to", .run = copy, .at_least = 1});
    memory_sweep(&(struct memory_sweep){.name = "str_format", .run = format, .at_least = 1});
    memory_sweep(&(struct memory_sweep){.name = "strbuf", .run = buffer, .at_least = 5});
    memory_sweep(&(struct memory_sweep){.name = "arena", .run = chunks, .at_least = 5});
    memory_sweep(&(struct memory_sweep){.name = "mem_grow", .run = growing, .at_least = 4});
}

static const char yaml[] = "a: 1\n"
                           "b: [one, two, {x: 3, y: '4'}]\n"
                           "c:\n"
                           "  - {name: first, value: 1.5}\n"
                           "  - {name: second, value: 2.5}\n"
                           "d: {1: a, 2: b, 3: c, 4: d, 5: e, 6: f, 7: g, 8: h, 9: i}\n";

static int read_text(void *context)
{
    (void)context;
    struct yaml_doc *doc = NULL;
    struct err err = {0};
    int rc = yaml_read_text(yaml, strlen(yaml), "name", &yaml_limits_config, &doc, &err);
    assert_int_equal(err.code, rc);
    assert_int_equal(doc != NULL, rc == 0);
    if (!rc)
        assert_int_equal(yaml_count(yaml_get(yaml_root(doc), "d")), 9);
    yaml_destroy(doc);
    return rc;
}

static int read_file(void *context)
{
    (void)context;
    struct yaml_doc *doc = NULL;
    struct err err = {0};
    int rc = yaml_read_file(path, &yaml_limits_config, &doc, &err);
    assert_int_equal(err.code, rc);
    assert_int_equal(doc != NULL, rc == 0);
    yaml_destroy(doc);
    return rc;
}

struct example {
    const struct yaml_node *node;
    int word;
};

/* Reading a wrong value. The error text itself needs memory. 0: the error was reported. */
static int read_mistake(const struct yaml_doc *doc, const struct yaml_field *field)
{
    struct example example = {0};
    struct err err = {0};
    int rc = yaml_read_fields(yaml_root(doc), field, 1, &example, &err);
    assert_int_equal(err.code, rc);
    return rc == -EINVAL ? 0 : rc;
}

static int unknown_key(void *doc)
{
    return read_mistake(doc, &(struct yaml_field){.key = "aa", .type = YAML_NODE});
}

static int unknown_word(void *doc)
{
    static const char *const words[] = {"two", "three", "four", NULL};
    return read_mistake(doc, &(struct yaml_field){.key = "a",
                                                  .type = YAML_WORD,
                                                  .offset = offsetof(struct example, word),
                                                  .words = words});
}

static void documents(void **state)
{
    (void)state;
    struct yaml_doc *doc = NULL;
    put(path, yaml);
    memory_sweep(
        &(struct memory_sweep){.name = "yaml_read_text", .run = read_text, .at_least = 50});
    memory_sweep(
        &(struct memory_sweep){.name = "yaml_read_file", .run = read_file, .at_least = 50});
    assert_int_equal(yaml_read_text("a: 1", 4, "name", &yaml_limits_config, &doc, NULL), 0);
    memory_sweep(&(struct memory_sweep){
        .name = "yaml unknown key", .run = unknown_key, .context = doc, .at_least = 1});
    memory_sweep(&(struct memory_sweep){
        .name = "yaml unknown word", .run = unknown_word, .context = doc, .at_least = 1});
    yaml_destroy(doc);
}

static int entries(void)
{
    DIR *open = opendir(folder);
    int count = 0;
    while (readdir(open))
        count++;
    closedir(open);
    return count;
}

static void put_old(void *name)
{
    (void)name;
    put(path, "old");
    put(target, "old");
}

static int write_out(void *name)
{
    enum { ENTRIES = 5 }; /* ".", "..", and the three of make_folder */
    struct err err = {0};
    int rc = out_file_write(name, "new", 3, &err);
    memory_restore();
    assert_int_equal(err.code, rc);
    assert_int_equal(entries(), ENTRIES);
    assert_holds(name, rc ? "old" : "new");
    assert_holds(name == link_path ? target : path, rc ? "old" : "new");
    return rc;
}

static void files(void **state)
{
    (void)state;
    memory_sweep(&(struct memory_sweep){.name = "out_file_write",
                                        .prepare = put_old,
                                        .run = write_out,
                                        .context = path,
                                        .at_least = 2});
    memory_sweep(&(struct memory_sweep){.name = "out_file_write through a link",
                                        .prepare = put_old,
                                        .run = write_out,
                                        .context = link_path,
                                        .at_least = 2});
}

static int find_shipped(void *context)
{
    (void)context;
    struct err err = {0};
    char *found = NULL;
    int rc = shipped_path("survey.yaml", &found, &err);
    assert_int_equal(err.code, rc);
    assert_int_equal(found != NULL, rc == 0);
    free(found);
    return rc;
}

static void shipped(void **state)
{
    (void)state;
    unsetenv("GPUMEMTOPO_CONFIG_DIR");
    memory_sweep(
        &(struct memory_sweep){.name = "shipped_path", .run = find_shipped, .at_least = 2});
    setenv("GPUMEMTOPO_CONFIG_DIR", folder, 1);
    memory_sweep(
        &(struct memory_sweep){.name = "shipped_path, told", .run = find_shipped, .at_least = 1});
    unsetenv("GPUMEMTOPO_CONFIG_DIR");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(strings), cmocka_unit_test(documents),
                                       cmocka_unit_test(files), cmocka_unit_test(shipped)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
