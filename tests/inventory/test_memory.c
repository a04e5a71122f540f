/* Allocation failures in src/inventory: -ENOMEM, no leak, outputs untouched. */
#include "../check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "inventory/anonymous.h"
#include "inventory/results.h"
#include "inventory/wire/frame.h"
#include "inventory/wire/spool.h"
#include "rich.h"
#include "sweep.h"

static char folder[] = "/tmp/gpumemtopo-memory-XXXXXX";
static struct inventory rich;
static struct gpu_result result;
static struct strbuf text; /* the inventory, printed */

static int make_samples(void **state)
{
    (void)state;
    rich_inventory(&rich);
    rich_result(&result);
    inventory_print(&rich, &text);
    return mkdtemp(folder) && !text.failed ? 0 : -1;
}

static int remove_samples(void **state)
{
    (void)state;
    inventory_fini(&rich);
    gpu_result_fini(&result);
    strbuf_fini(&text);
    return rmdir(folder); /* fails if a test left a file */
}

static void sweep(const char *name, int (*run)(void *context), void *context, size_t at_least)
{
    memory_sweep(
        &(struct memory_sweep){.name = name, .run = run, .context = context, .at_least = at_least});
}

/* Sets, replaces and copies every kind of fact. After a failure, setting it again works. */
static int set_facts(void *context)
{
    (void)context;
    struct facts facts = {0}, copy = {0};
    int rc = 0;
    for (int i = 0; i < 20; i++) {
        char key[] = {(char)('a' + i % 10), '\0'};
        const struct fact fact = {.key = key, .kind = (enum fact_kind)(i % 5), .text = key};
        if (!facts_set(&facts, &fact))
            continue;
        rc = -ENOMEM;
        assert_int_equal(facts.count, i < 10 ? i : 10);
        memory_restore();
        assert_int_equal(facts_set(&facts, &fact), 0);
    }
    assert_int_equal(facts.count, 10);
    int copied = facts_copy(&copy, &facts);
    assert_int_equal(copy.count, copied ? 0 : 10);
    facts_fini(&facts);
    facts_fini(&copy);
    return rc ? rc : copied;
}

static struct measure *add_measure(struct measures *measures, int kind)
{
    static const char *const words[] = {"texture", "read_only"};
    switch (kind % 3) {
    case 0:
        return measures_add(measures, "l1_data.size", 65536, "B", "chase");
    case 1:
        return measures_add_missing(measures, "texture.size", MEASURE_FAILED, "no reason");
    default:
        return measures_add_words(measures, "l1_data.shared_with", words, 2, "chase");
    }
}

/* Adds measures, replaces them and sets their status. After a failure, adding again works. */
static int add_measures(void *context)
{
    (void)context;
    struct measures measures = {0}, copy = {0};
    int rc = 0;
    for (int i = 0; i < 6; i++) {
        struct measure *added = add_measure(&measures, i);
        if (added && !measure_set_status(added, MEASURE_NOISY, "two methods"))
            continue;
        rc = -ENOMEM;
        memory_restore();
        assert_non_null(add_measure(&measures, i));
    }
    assert_int_equal(measures.count, 3);
    int copied = measures_copy(&copy, &measures);
    assert_int_equal(copy.count, copied ? 0 : 3);
    measures_fini(&measures);
    measures_fini(&copy);
    return rc ? rc : copied;
}

static int copy_result(void *context)
{
    (void)context;
    struct gpu_result copy = {0};
    int rc = gpu_result_copy(&copy, &result);
    assert_int_equal(copy.uuid != NULL, rc == 0);
    gpu_result_fini(&copy);
    return rc;
}

static void model(void **state)
{
    (void)state;
    sweep("facts", set_facts, NULL, 30);
    sweep("measures", add_measures, NULL, 20);
    sweep("gpu_result_copy", copy_result, NULL, 50);
}

static int read_inventory(void *context)
{
    (void)context;
    struct inventory inventory = {.exit_code = 17};
    struct err err = {0};
    int rc = inventory_read_text(text.data, text.length, "rich", &inventory, &err);
    assert_int_equal(err.code, rc);
    if (rc)
        assert_int_equal(inventory.exit_code, 17);
    else
        assert_int_equal(inventory.gpu_count, rich.gpu_count);
    inventory_fini(&inventory);
    return rc;
}

static int print_inventory(void *context)
{
    (void)context;
    struct strbuf printed = {0};
    inventory_print(&rich, &printed);
    int rc = printed.failed ? -ENOMEM : 0;
    if (!rc)
        assert_string_equal(printed.data, text.data);
    strbuf_fini(&printed);
    return rc;
}

static int write_inventory(void *context)
{
    (void)context;
    struct err err = {0};
    char path[64];
    snprintf(path, sizeof path, "%s/rich.yaml", folder);
    int rc = inventory_write_file(&rich, path, &err);
    assert_int_equal(err.code, rc);
    assert_int_equal(unlink(path), rc ? -1 : 0);
    return rc;
}

static int results_of(void *context)
{
    (void)context;
    struct inventory_lookup *lookup = NULL;
    int rc = inventory_lookup_create(&rich, &lookup);
    assert_int_equal(lookup != NULL, rc == 0);
    for (size_t i = 0; i < rich.gpu_count && !rc; i++) {
        struct gpu_result out = {0};
        rc = inventory_result(lookup, &rich.gpus[i], &out);
        assert_int_equal(out.measures.count, rc ? 0 : rich.gpus[i].value_count);
        gpu_result_fini(&out);
    }
    inventory_lookup_destroy(lookup);
    return rc;
}

static int anonymise(void *context)
{
    (void)context;
    struct inventory inventory = {0};
    struct err err = {0};
    int rc = inventory_read_text(text.data, text.length, "rich", &inventory, &err);
    if (!rc)
        rc = anonymous_inventories((struct inventory *const[]){&inventory}, 1, NULL);
    assert_int_equal(inventory.anonymous, !rc);
    inventory_fini(&inventory);
    return rc;
}

static void inventory(void **state)
{
    (void)state;
    sweep("inventory_read_text", read_inventory, NULL, 1000);
    sweep("inventory_print", print_inventory, NULL, 10);
    sweep("inventory_write_file", write_inventory, NULL, 10);
    sweep("inventory_result", results_of, NULL, 50);
    memory_sweep(&(struct memory_sweep){
        .name = "anonymous_inventories", .run = anonymise, .at_least = 1000, .points = 250});
}

/* Feeds the reader in small portions, as a pipe does. */
static int frames(void *context)
{
    (void)context;
    struct strbuf bytes = {0};
    struct frame_reader reader = {0};
    struct frame frame;
    struct err err = {0};
    int rc = 0, whole = 0;
    for (uint32_t type = 0; type < 8; type++)
        frame_write(&bytes, type, text.data, 100);
    if (bytes.failed)
        rc = -ENOMEM;
    for (size_t at = 0; at < bytes.length && !rc; at += 30) {
        size_t rest = bytes.length - at;
        rc = frame_reader_add(&reader, bytes.data + at, rest < 30 ? rest : 30);
        while (!rc && frame_reader_next(&reader, &frame, &err) == 1)
            whole++;
    }
    assert_true(rc || whole == 8);
    frame_reader_fini(&reader);
    strbuf_fini(&bytes);
    return rc;
}

static int encode(void *context)
{
    (void)context;
    struct strbuf bytes = {0};
    gpu_result_encode(&result, &bytes);
    int rc = bytes.failed ? -ENOMEM : 0;
    strbuf_fini(&bytes);
    return rc;
}

static int decode(void *bytes)
{
    const struct strbuf *encoded = bytes;
    struct gpu_result back = {.rank = 17};
    struct err err = {0};
    int rc = gpu_result_decode(encoded->data, encoded->length, &back, &err);
    assert_int_equal(err.code, rc);
    assert_int_equal(back.rank, rc ? 17 : result.rank);
    gpu_result_fini(&back);
    return rc;
}

static void wire(void **state)
{
    (void)state;
    struct strbuf bytes = {0};
    gpu_result_encode(&result, &bytes);
    sweep("frame_reader", frames, NULL, 5);
    sweep("gpu_result_encode", encode, NULL, 5);
    sweep("gpu_result_decode", decode, &bytes, 50);
    strbuf_fini(&bytes);
}

static const struct spool_origin origin = {.survey = (char *)"s1",
                                           .version = (char *)"0.1.0",
                                           .backend = (char *)"sim",
                                           .seed = 7,
                                           .time_ms = 1234567890123};

/* Writes a survey's file with entries in every list. */
static int write_survey(struct err *err)
{
    char *command[] = {(char *)"gpumemtopo-survey", (char *)"--seed", (char *)"7"};
    char *bare[] = {(char *)"login1"};
    struct gpu_result expected[] = {{.uuid = (char *)"GPU-a", .node = (char *)"n1", .rank = 3},
                                    {.uuid = (char *)"GPU-b", .index = -1, .name = (char *)"H200"}};
    struct gpu_result unknown[] = {{.rank = 5, .status = GPU_LOST, .reason = (char *)"silent"}};
    const struct spool_survey survey = {.command = command,
                                        .command_count = COUNT_OF(command),
                                        .config_name = (char *)"survey.yaml",
                                        .config_text = (char *)"judge: {}\n",
                                        .ranks = 8,
                                        .bare_nodes = bare,
                                        .bare_count = COUNT_OF(bare),
                                        .expected = expected,
                                        .expected_count = COUNT_OF(expected),
                                        .unknown = unknown,
                                        .unknown_count = COUNT_OF(unknown)};
    return spool_write_survey(folder, &origin, &survey, err);
}

static int write_spool(void *context)
{
    (void)context;
    struct err err = {0};
    int rc = spool_write_gpu(folder, &origin, &result, &err);
    if (!rc)
        rc = write_survey(&err);
    assert_int_equal(err.code, rc);
    memory_restore();
    spool_remove_files(folder);
    return rc;
}

static int read_spool(void *bytes)
{
    const struct strbuf *file_bytes = bytes;
    struct spool_file file = {.kind = SPOOL_SURVEY, .origin = {.seed = 17}};
    struct err err = {0};
    int rc = spool_read(file_bytes->data, file_bytes->length, "x", &file, &err);
    assert_int_equal(err.code, rc);
    assert_int_equal(file.origin.seed, rc ? 17 : origin.seed);
    spool_file_fini(&file);
    return rc;
}

/* Reads a file of the folder and removes it. */
static void take_file(const char *name, struct strbuf *out)
{
    char path[128], block[65536];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    strbuf_append(out, block, fread(block, 1, sizeof block, file));
    fclose(file);
    unlink(path);
}

static void spool(void **state)
{
    (void)state;
    struct strbuf gpu = {0}, survey = {0};
    struct err err = {0};
    char *path = spool_gpu_path(folder, result.uuid);
    assert_int_equal(spool_write_gpu(folder, &origin, &result, &err), 0);
    assert_int_equal(write_survey(&err), 0);
    take_file(str_last_part(path), &gpu);
    take_file("survey-s1.spool", &survey);
    free(path);
    sweep("spool_write", write_spool, NULL, 10);
    sweep("spool_read, a GPU", read_spool, &gpu, 50);
    sweep("spool_read, a survey", read_spool, &survey, 15);
    strbuf_fini(&gpu);
    strbuf_fini(&survey);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(model), cmocka_unit_test(inventory),
                                       cmocka_unit_test(wire), cmocka_unit_test(spool)};
    return cmocka_run_group_tests(tests, make_samples, remove_samples);
}
