/* Sums that are put right let damaged bytes through: otherwise the fuzz targets would see nothing
 * but wrong sums. */
#include "../check.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "device/record/replay.h"
#include "fuzz.h"
#include "inventory/wire/spool.h"
#include "predict/trace/trace_read.h"

static uint8_t bytes[1 << 16];

static size_t load(const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", FUZZ_CORPUS, name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    return size;
}

static int read_record(size_t size)
{
    struct device_source *source = NULL;
    struct err err = {0};
    int rc = device_source_replay(fuzz_file(bytes, size), 0, 1, &source, &err);
    if (!rc)
        rc = replay_check(source, &err);
    device_source_destroy(source);
    return rc;
}

static int read_spool(size_t size)
{
    struct spool_file file = {0};
    struct err err = {0};
    int rc = spool_read(bytes, size, "spool", &file, &err);
    spool_file_fini(&file);
    return rc;
}

static int read_trace(size_t size)
{
    struct trace_reader *reader = NULL;
    struct err err = {0};
    int rc = trace_reader_open(fuzz_file(bytes, size), &reader, &err);
    trace_reader_close(reader);
    return rc;
}

/* Another letter in a name that stands in the file. */
static void damage(size_t size, const char *name)
{
    uint8_t *at = memmem(bytes, size, name, strlen(name));
    assert_non_null(at);
    at[0] ^= 1;
}

static void records(void **state)
{
    (void)state;
    size_t size = load("record/one.gmr");
    assert_int_equal(read_record(size), 0);
    damage(size, "Tiny T2");
    assert_int_not_equal(read_record(size), 0);
    fuzz_seal_record(bytes, size);
    assert_int_equal(read_record(size), 0);
}

static void spools(void **state)
{
    (void)state;
    size_t size = load("spool/survey");
    size_t first = strcspn((const char *)bytes, "\n") + 1;
    assert_int_equal(read_spool(size), 0);
    damage(size, "node");
    assert_int_not_equal(read_spool(size), 0);
    fuzz_seal_frames(bytes + first, size - first);
    assert_int_equal(read_spool(size), 0);
}

static void traces(void **state)
{
    (void)state;
    size_t size = load("trace/2dconv.trace");
    assert_int_equal(read_trace(size), 0);
    damage(size, "2dconv");
    assert_int_not_equal(read_trace(size), 0);
    fuzz_seal_trace(bytes, size);
    assert_int_equal(read_trace(size), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(records), cmocka_unit_test(spools),
                                       cmocka_unit_test(traces)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
