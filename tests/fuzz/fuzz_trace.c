/* Traces of loads and stores, as they are and with their sums put right: every warp, and a run. */
#include <stdlib.h>

#include "fuzz.h"
#include "predict/model.h"
#include "predict/trace/trace_source.h"

/* A file of some pages can tell of many blocks and of warps that share their pages. */
enum { WARPS_MAX = 256, ACCESSES_MAX = 4000, ERRORS_MAX = 4 };

/* Returns how many accesses it has read, or ACCESSES_MAX if not all. */
static uint64_t read_warps(struct trace_reader *reader)
{
    const struct trace_head *head = trace_reader_head(reader);
    uint64_t blocks = trace_head_blocks(head), count = 0, warps = 0, errors = 0;
    struct err index_err = {0};
    for (uint64_t block = 0; block < blocks; block++) {
        if (trace_reader_next_block(reader, block, &block, &index_err))
            return ACCESSES_MAX;
        if (block == blocks)
            break;
        for (uint32_t number = 0; number < trace_head_warps(head); number++) {
            struct trace_warp warp;
            struct warp_access access;
            struct err err = {0};
            uint64_t pc;
            int rc = trace_warp_init(&warp, reader, block, number, &err);
            while (!rc && count < ACCESSES_MAX &&
                   (rc = trace_warp_next(&warp, reader, &access, &pc, &err)) == 1) {
                count++;
                rc = 0;
            }
            trace_warp_fini(&warp, reader);
            errors += rc < 0;
            if (++warps == WARPS_MAX || count == ACCESSES_MAX || errors == ERRORS_MAX)
                return ACCESSES_MAX;
        }
    }
    return count;
}

static void run(const char *path)
{
    struct model_config config = {
        .sms = 2,
        .schedulers = 2,
        .limits = {.warps_max = 64, .blocks_max = 4},
        .l1_per_sm = 1,
        .l2_parts = 1,
        .groups = 1,
        .merged_loads = 1,
        .l1 = {.size = 2 << 10, .line = 128, .sector = 32, .fetch = 32, .ways = 4},
        .l2 = {.size = 4 << 10, .line = 128, .sector = 32, .fetch = 64, .ways = 4},
    };
    static struct kernel_launch launch;
    struct trace_source *source = NULL;
    struct model_counts counts;
    struct err err = {0};
    if (trace_source_open(path, &source, &err) == 0) {
        trace_source_launch(source, &launch);
        model_run(&config, &launch, &counts, &err);
    }
    trace_source_close(source);
}

static void read_all(const uint8_t *data, size_t size, bool runs)
{
    struct trace_reader *reader = NULL;
    struct err err = {0};
    const char *path = fuzz_file(data, size);
    if (trace_reader_open(path, &reader, &err) == 0 && read_warps(reader) < ACCESSES_MAX && runs)
        run(path);
    trace_reader_close(reader);
}

/* A wrong sum ends the reading, and a run reads what was read before: both, every so often. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint32_t sum = 0;
    for (size_t i = 0; i < size; i++)
        sum = sum * 31 + data[i];
    if (sum % 16 == 0)
        read_all(data, size, false);
    uint8_t *sealed = fuzz_copy(data, size);
    fuzz_seal_trace(sealed, size);
    read_all(sealed, size, sum % 4 == 0);
    free(sealed);
    return 0;
}
