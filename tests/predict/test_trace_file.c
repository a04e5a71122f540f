/* Trace files: what is written is read, in any order; damaged ones are refused with file and byte.
 */
#include "../check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/rng.h"
#include "predict/model.h"
#include "predict/trace/access_code.h"
#include "predict/trace/page.h"
#include "predict/trace/trace_command.h"
#include "predict/trace/trace_source.h"
#include "predict/trace/trace_write.h"

static char path[] = "/dev/shm/test_trace_XXXXXX";
static uint8_t image[1 << 20], damaged[1 << 20];
static size_t image_bytes;

static int make_path(void **state)
{
    (void)state;
    int fd = mkstemp(path);
    return fd < 0 || close(fd);
}

static int remove_path(void **state)
{
    (void)state;
    return unlink(path);
}

static struct trace_head small_head(uint32_t blocks, uint32_t threads)
{
    struct trace_head head = {.name = "small",
                              .maker = "test",
                              .grid = {blocks, 1, 1},
                              .block = {threads, 1, 1},
                              .has_pc = true,
                              .page_bytes = TRACE_PAGE_BYTES_MIN};
    return head;
}

/* The access number i of a warp: the same each time. */
static struct warp_access access_of(uint64_t block, uint32_t warp, uint64_t i)
{
    struct rng rng;
    rng_init(&rng, block * 4096 + warp * 64 + i / 64, "access");
    uint64_t start = (UINT64_C(1) << 40) + rng_below(&rng, 1 << 20) * 128;
    struct warp_access access = {.mask = i % 5 ? UINT32_MAX : 0xffff,
                                 .bytes = 4,
                                 .lanes_x = 32,
                                 .step_x = 4,
                                 .store = i % 3 == 0,
                                 .listed = i % 7 == 0,
                                 .base = start + i * 128};
    for (uint32_t lane = 0; lane < WARP_LANES; lane++)
        access.addresses[lane] = start + rng_below(&rng, 1000) * 4;
    return access;
}

static uint64_t accesses_of(uint64_t block, uint32_t warp)
{
    if (block % 10 == 3)
        return 0; /* a block without accesses */
    return (block * 31 + warp * 17) % 90;
}

static void write_file(const struct trace_head *head, uint64_t step)
{
    struct trace_writer *writer = NULL;
    struct err err = {0};
    assert_int_equal(trace_writer_create(path, head, &writer, &err), 0);
    for (uint64_t block = 0; block < trace_head_blocks(head); block += step) {
        for (uint32_t warp = 0; warp < trace_head_warps(head); warp++) {
            for (uint64_t i = 0; i < accesses_of(block, warp); i++) {
                struct warp_access access = access_of(block, warp, i);
                if (trace_writer_add(writer, block, warp, &access, i % 20 * 16, &err))
                    fail_msg("%s", err.text);
            }
        }
    }
    if (trace_writer_finish(writer, NULL, &err))
        fail_msg("%s", err.text);
    trace_writer_destroy(writer);
}

static void load_image(void)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    image_bytes = fread(image, 1, sizeof image, file);
    fclose(file);
    assert_in_range(image_bytes, 1, sizeof image - 1);
}

static void assert_warp(struct trace_reader *reader, uint64_t block, uint32_t warp, uint64_t count)
{
    struct trace_warp at;
    struct err err = {0};
    uint64_t i = 0, pc;
    struct warp_access got;
    int rc = trace_warp_init(&at, reader, block, warp, &err);
    while (!rc && (rc = trace_warp_next(&at, reader, &got, &pc, &err)) == 1) {
        struct warp_access wanted = access_of(block, warp, i);
        assert_true(pc == i % 20 * 16 && got.mask == wanted.mask && got.store == wanted.store);
        for (uint32_t lane = 0; lane < WARP_LANES; lane++)
            if (got.mask >> lane & 1)
                assert_true(trace_lanes_address(&got, lane) == trace_lanes_address(&wanted, lane));
        i++;
        rc = 0;
    }
    trace_warp_fini(&at, reader);
    if (rc || i != count)
        fail_msg("block %llu, warp %u: %llu accesses; %s", (unsigned long long)block, warp,
                 (unsigned long long)i, err.text);
}

/* Several leaves and roots, warps of many pages, blocks in any order. */
static void round_trips(void **state)
{
    (void)state;
    static const struct {
        uint32_t blocks, threads;
        uint64_t step;
    } cases[] = {{1, 1, 1}, {3, 1024, 1}, {700, 40, 1}, {4000000, 64, 99991}};
    for (size_t c = 0; c < COUNT_OF(cases); c++) {
        struct trace_head head = small_head(cases[c].blocks, cases[c].threads);
        struct trace_reader *reader = NULL;
        struct err err = {0};
        struct rng rng;
        uint64_t step = cases[c].step;
        if (c == 0) {
            head.block[0] = 64; /* warp 0 of block 0 has none */
        }
        write_file(&head, step);
        if (trace_reader_open(path, &reader, &err))
            fail_msg("%s: %s", err.file, err.text);
        rng_init(&rng, c, "order");
        for (int i = 0; i < 400; i++) {
            uint64_t block = rng_below(&rng, (cases[c].blocks - 1) / step + 1) * step;
            uint32_t warp = (uint32_t)rng_below(&rng, trace_head_warps(&head));
            assert_warp(reader, block, warp, accesses_of(block, warp));
        }
        if (step > 1)
            assert_warp(reader, 1, 0, 0);
        if (cases[c].blocks < 1000 && trace_info_check(reader, &err))
            fail_msg("%s", err.text);
        trace_reader_close(reader);
    }
}

static void writer_refuses(void **state)
{
    (void)state;
    struct trace_head head = small_head(10, 64);
    struct trace_writer *writer = NULL;
    struct warp_access access = access_of(1, 1, 1);
    struct err err = {0};
    assert_int_equal(trace_writer_create(path, &head, &writer, &err), 0);
    assert_int_equal(trace_writer_finish(writer, NULL, &err), -EINVAL);
    assert_int_equal(trace_writer_add(writer, 5, 1, &access, 0, &err), 0);
    assert_int_equal(trace_writer_add(writer, 5, 0, &access, 0, &err), -EINVAL);
    assert_int_equal(trace_writer_add(writer, 4, 1, &access, 0, &err), -EINVAL);
    assert_int_equal(trace_writer_add(writer, 10, 0, &access, 0, &err), -EINVAL);
    assert_int_equal(trace_writer_add(writer, 6, 2, &access, 0, &err), -EINVAL);
    access.bytes = 5;
    assert_int_equal(trace_writer_add(writer, 6, 0, &access, 0, &err), -EINVAL);
    trace_writer_destroy(writer);
    head.block[2] = 17;
    assert_int_equal(trace_writer_create(path, &head, &writer, &err), -EINVAL);
    head = small_head(UINT32_MAX, 1);
    head.grid[1] = 2;
    assert_int_equal(trace_writer_create(path, &head, &writer, &err), -EINVAL);
}

static void save(const uint8_t *bytes, size_t length)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    fclose(file);
}

/* Opens and reads everything; the error's text must name the file and what was expected. */
static int read_all(const uint8_t *bytes, size_t length, struct err *err)
{
    struct trace_reader *reader = NULL;
    *err = (struct err){0};
    save(bytes, length);
    int rc = trace_reader_open(path, &reader, err);
    rc = rc ? rc : trace_info_check(reader, err);
    trace_reader_close(reader);
    if (rc && (strcmp(err->file, path) != 0 || !strstr(err->text, "byte ") ||
               !strstr(err->text, "expected")))
        fail_msg("this error does not say where and what: %s: %s", err->file, err->text);
    return rc;
}

static void cut_and_flipped(void **state)
{
    (void)state;
    struct trace_head head = small_head(3, 64);
    struct err err;
    write_file(&head, 1);
    load_image();
    assert_int_equal(read_all(image, image_bytes, &err), 0);
    for (size_t length = 0; length < image_bytes; length += length % 512 ? 509 : 1)
        if (!read_all(image, length, &err))
            fail_msg("%zu of %zu bytes were enough", length, image_bytes);
    for (size_t at = 0; at < image_bytes; at += 3) {
        memcpy(damaged, image, image_bytes);
        damaged[at] ^= (uint8_t)(1u << at % 8);
        if (!read_all(damaged, image_bytes, &err))
            fail_msg("byte %zu was changed, and nothing was noticed", at);
    }
    memcpy(damaged, image, image_bytes);
    memcpy(damaged + 512, image + 1024, 512); /* a whole page in the wrong place */
    assert_int_equal(read_all(damaged, image_bytes, &err), -EINVAL);
    assert_non_null(strstr(err.text, "expected page 1, this is page 2"));
}

/* Writes into a page and puts its sum right. page: negative counts from the end. */
static void change(int page, uint32_t at, const uint8_t *bytes, size_t length)
{
    uint32_t number = (uint32_t)(page < 0 ? (int)(image_bytes / 512) + page : page);
    uint8_t *start = damaged + (size_t)number * 512;
    memcpy(start + at, bytes, length);
    struct trace_page sealed = {.kind = (enum trace_page_kind)start[8],
                                .number = number,
                                .used = start[10] | (uint32_t)start[11] << 8};
    trace_page_seal(start, 512, sealed);
}

/* Right sums, wrong content. Pages: head, data, leaf, root, totals. */
static void wrong_content(void **state)
{
    (void)state;
    static const struct {
        int page;
        uint32_t at;
        uint8_t bytes[8];
        size_t length;
        const char *expected;
    } cases[] = {
        {0, 16, {2}, 1, "byte 16: expected version 1"},
        {0, 20, {0, 3}, 2, "byte 20: expected pages"},
        {0, 24, {0, 0, 0, 0}, 4, "expected a grid"},
        {0, 24, {255, 255, 255, 255, 255}, 5, "expected a grid"},
        {0, 24, {255, 255, 255, 255}, 4, "expected an index of 558"},
        {0, 36, {0, 0, 0, 1}, 4, "expected a block"},
        {0, 8, {2}, 1, "expected a page of kind head, not data"},
        {0, 68, {10}, 1, "printable"},
        {0, 64, {255, 255}, 2, "fields of the head of a trace"},
        {0, 10, {60}, 1, "fields of the head of a trace"},
        {-1, 8, {2}, 1, "expected a page of kind totals"},
        {-1, 16, {0, 0, 0, 0, 0, 0, 0, 0}, 8, "expected totals"},
        {-1, 16, {255, 255}, 2, "accesses, which the pages before have, not"},
        {-1, 24, {0}, 1, "loads, which the pages before have, not"},
        {-1, 32, {1}, 1, "active lanes, which the pages before have, not"},
        {-1, 40, {7}, 1, "expected totals of 3 blocks with accesses, which the pages before have"},
        {-1, 48, {1}, 1, "as the lowest address"},
        {-1, 56, {0}, 1, "as the highest address"},
        {-1, 64, {16}, 1, "expected totals of 4 bytes of the largest element"},
        {-1, 24, {255, 255, 255}, 3, "expected totals"},
        {-1, 63, {1}, 1, "expected totals"},
        {-1, 64, {64}, 1, "expected totals"},
        {-1, 64, {1}, 1, "longer than the totals say"},
        {-1, 68, {9}, 1, "expected an index of 1 pages"},
        {-1, 72, {9}, 1, "expected a file of"},
        {-1, 10, {30}, 1, "fields of the totals of a trace"},
        {-2, 16, {1}, 1, "expected a page of kind leaf, not data"},
        {-2, 16, {255, 255, 255, 255}, 4, "the file ends after"},
        {-2, 10, {16}, 1, "used bytes"},
        {-2, 10, {1}, 1, "expected 16 to 512 used bytes"},
        {-3, 16, {1, 0}, 2, "byte 0: expected a page of kind data, not head"},
        {-3, 16, {4, 2}, 2, "outside the"},
        {-3, 16, {255, 255, 255, 255, 255, 255, 255, 255}, 8, "the data ends before"},
    };
    struct trace_head head = small_head(3, 64);
    struct err err;
    write_file(&head, 1);
    load_image();
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        memcpy(damaged, image, image_bytes);
        change(cases[i].page, cases[i].at, cases[i].bytes, cases[i].length);
        if (!read_all(damaged, image_bytes, &err))
            fail_msg("case %zu was read", i);
        if (!strstr(err.text, cases[i].expected))
            fail_msg("case %zu: %s", i, err.text);
    }
}

/* A kernel and its trace do the same to the caches, whatever the mapping. */
static void like_the_kernel(void **state)
{
    (void)state;
    static const char *const names[] = {"2dconv", "nw1", "hotspot", "spmv", "transpose"};
    static struct kernel_launch launch, played;
    struct model_config config = {
        .sms = 5,
        .schedulers = 4,
        .limits = {.warps_max = 64, .blocks_max = 32},
        .l1_per_sm = 1,
        .l2_parts = 1,
        .groups = 1,
        .merged_loads = 1,
        .l1 = {.size = 16 << 10, .line = 128, .sector = 32, .fetch = 32, .ways = 4},
        .l2 = {.size = 64 << 10, .line = 128, .sector = 32, .fetch = 64, .ways = 16},
    };
    for (size_t i = 0; i < COUNT_OF(names) * 5; i++) {
        struct model_counts kernel_counts, trace_counts;
        struct trace_source *source = NULL;
        struct err err = {0};
        const char *near;
        const struct kernel *kernel = kernel_find(names[i / 5], &near);
        config.mapping = (enum block_mapping)(i % 5);
        config.scheduler = i % 2 ? SM_GTO : SM_RR;
        assert_int_equal(kernel_launch_init(&launch, kernel, 128, 0, 0, &err), 0);
        if (i % 5 == 0)
            assert_int_equal(trace_make(&launch, 512, path, NULL, &err), 0);
        assert_int_equal(trace_source_open(path, &source, &err), 0);
        trace_source_launch(source, &played);
        assert_int_equal(model_run(&config, &launch, &kernel_counts, &err), 0);
        assert_int_equal(model_run(&config, &played, &trace_counts, &err), 0);
        assert_memory_equal(&kernel_counts, &trace_counts, sizeof kernel_counts);
        /* A source can be run again. */
        assert_int_equal(model_run(&config, &played, &trace_counts, &err), 0);
        assert_memory_equal(&kernel_counts, &trace_counts, sizeof kernel_counts);
        trace_source_close(source);
    }
}

/* Damage that only the run meets ends it with that error. */
static void run_meets_damage(void **state)
{
    (void)state;
    struct trace_head head = small_head(400, 64);
    struct trace_source *source = NULL;
    struct kernel_launch *launch = calloc(1, sizeof *launch);
    struct model_config config = {
        .sms = 2,
        .schedulers = 4,
        .limits = {.warps_max = 64, .blocks_max = 32},
        .l1_per_sm = 1,
        .l2_parts = 1,
        .groups = 1,
        .merged_loads = 1,
        .l1 = {.size = 16 << 10, .line = 128, .sector = 32, .fetch = 32, .ways = 4},
        .l2 = {.size = 64 << 10, .line = 128, .sector = 32, .fetch = 64, .ways = 16},
    };
    struct model_counts counts;
    struct err err = {0};
    write_file(&head, 1);
    load_image();
    image[512 * 300 + 100] ^= 1;
    save(image, image_bytes);
    assert_int_equal(trace_source_open(path, &source, &err), 0);
    trace_source_launch(source, launch);
    assert_int_equal(model_run(&config, launch, &counts, &err), -EINVAL);
    assert_string_equal(err.file, path);
    assert_non_null(strstr(err.text, "byte 153600: expected a page with the sum"));
    config.l1.sector = config.l2.sector = config.l1.fetch = 2; /* elements of 4 bytes */
    err = (struct err){0};
    assert_int_equal(model_run(&config, launch, &counts, &err), -EINVAL);
    trace_source_close(source);
    free(launch);
}

static struct model_config small_config(void)
{
    return (struct model_config){
        .sms = 3,
        .schedulers = 4,
        .limits = {.warps_max = 64, .blocks_max = 32},
        .l1_per_sm = 1,
        .l2_parts = 1,
        .groups = 1,
        .merged_loads = 1,
        .l1 = {.size = 16 << 10, .line = 128, .sector = 32, .fetch = 32, .ways = 4},
        .l2 = {.size = 64 << 10, .line = 128, .sector = 32, .fetch = 64, .ways = 16},
    };
}

/* A trace that tells other totals than it has is refused at the end of a run. */
static void run_meets_wrong_totals(void **state)
{
    (void)state;
    static struct kernel_launch launch;
    struct trace_head head = small_head(3, 64);
    struct model_config config = small_config();
    struct trace_source *source = NULL;
    struct model_counts counts;
    for (uint32_t field = 0; field < 2; field++) {
        struct err err = {0};
        write_file(&head, 1);
        load_image();
        memcpy(damaged, image, image_bytes);
        uint8_t *total = damaged + image_bytes - 512 + 16 + 8 * field;
        uint8_t less[1] = {(uint8_t)(*total ^ 1)};
        change(-1, 16 + 8 * field, less, 1);
        save(damaged, image_bytes);
        assert_int_equal(trace_source_open(path, &source, &err), 0);
        trace_source_launch(source, &launch);
        assert_int_equal(model_run(&config, &launch, &counts, &err), -EINVAL);
        assert_string_equal(err.file, path);
        assert_non_null(strstr(err.text, field ? "loads, which the pages" : "accesses, which"));
        trace_source_close(source);
    }
}

/* Billions of blocks without accesses cost nothing; each block with accesses is run once. */
static void empty_blocks(void **state)
{
    (void)state;
    static const uint64_t busy[] = {5, 6, 1000000, 4000000000, UINT32_MAX - 1};
    static struct kernel_launch launch;
    struct trace_head head = small_head(UINT32_MAX, 64);
    struct model_config config = small_config();
    struct trace_writer *writer = NULL;
    struct trace_source *source = NULL;
    struct trace_reader *reader = NULL;
    struct err err = {0};
    uint64_t block = 0;
    head.page_bytes = TRACE_PAGE_BYTES_MAX;
    assert_int_equal(trace_writer_create(path, &head, &writer, &err), 0);
    for (size_t i = 0; i < COUNT_OF(busy); i++) {
        struct warp_access access = access_of(busy[i], 1, 1);
        assert_int_equal(trace_writer_add(writer, busy[i], 1, &access, 0, &err), 0);
    }
    assert_int_equal(trace_writer_finish(writer, NULL, &err), 0);
    trace_writer_destroy(writer);
    assert_int_equal(trace_reader_open(path, &reader, &err), 0);
    assert_int_equal(trace_info_check(reader, &err), 0);
    for (size_t i = 0; i < COUNT_OF(busy); i++) {
        assert_int_equal(trace_reader_next_block(reader, block, &block, &err), 0);
        assert_int_equal(block++, busy[i]);
    }
    assert_int_equal(trace_reader_next_block(reader, block, &block, &err), 0);
    assert_int_equal(block, UINT32_MAX);
    trace_reader_close(reader);
    assert_int_equal(trace_source_open(path, &source, &err), 0);
    trace_source_launch(source, &launch);
    for (int mapping = BLOCK_FIRST_FREE; mapping < BLOCK_RANDOM; mapping++) {
        struct model_counts counts;
        config.mapping = (enum block_mapping)mapping;
        if (model_run(&config, &launch, &counts, &err))
            fail_msg("%s", err.text);
        assert_int_equal(counts.accesses, COUNT_OF(busy));
    }
    trace_source_close(source);
}

/* Whatever blocks are empty, every mapping deals out each of the others once: otherwise the totals
 * would not come out. */
static void mappings_skip(void **state)
{
    (void)state;
    static struct kernel_launch launch;
    struct trace_head head = small_head(1000, 64);
    struct model_config config = small_config();
    struct trace_source *source = NULL;
    struct err err = {0};
    write_file(&head, 7);
    assert_int_equal(trace_source_open(path, &source, &err), 0);
    trace_source_launch(source, &launch);
    for (int i = 0; i < 10; i++) {
        struct model_counts counts;
        config.mapping = (enum block_mapping)(i % 5);
        config.together = i >= 5;
        if (model_run(&config, &launch, &counts, &err))
            fail_msg("%s", err.text);
    }
    trace_source_close(source);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trips),
        cmocka_unit_test(writer_refuses),
        cmocka_unit_test(cut_and_flipped),
        cmocka_unit_test(wrong_content),
        cmocka_unit_test(like_the_kernel),
        cmocka_unit_test(run_meets_damage),
        cmocka_unit_test(run_meets_wrong_totals),
        cmocka_unit_test(empty_blocks),
        cmocka_unit_test(mappings_skip),
    };
    return cmocka_run_group_tests(tests, make_path, remove_path);
}
