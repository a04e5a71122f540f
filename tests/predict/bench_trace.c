/* Benchmark: a trace of some gigabytes is written, read and run; how fast, and in how much memory.
 * Fails above 1 GiB. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/rng.h"
#include "predict/prediction.h"
#include "predict/trace/page.h"
#include "predict/trace/trace_source.h"
#include "predict/trace/trace_write.h"

enum { THREADS = 256, ACCESSES = 1000, MEMORY_MAX_KIB = 1 << 20 };

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static long peak_kib(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

/* Every lane somewhere within 512 bytes: nothing to be told evenly, some 60 bytes per access. */
static int write_trace(const char *path, uint64_t bytes, struct trace_totals *totals,
                       struct err *err)
{
    struct trace_head head = {.name = "scattered",
                              .maker = "bench",
                              .grid = {(uint32_t)(bytes / (ACCESSES * UINT64_C(8) * 62)) + 1, 1, 1},
                              .block = {THREADS, 1, 1},
                              .has_pc = true,
                              .page_bytes = TRACE_PAGE_BYTES};
    struct trace_writer *writer = NULL;
    struct rng rng;
    rng_init(&rng, 1, "bench");
    int rc = trace_writer_create(path, &head, &writer, err);
    for (uint32_t block = 0; block < head.grid[0] && !rc; block++) {
        for (uint32_t i = 0; i < THREADS / WARP_LANES * ACCESSES && !rc; i++) {
            struct warp_access access = {.listed = true, .bytes = 4, .mask = UINT32_MAX};
            uint64_t start = (UINT64_C(1) << 40) + rng_below(&rng, 1 << 20) * 512;
            for (uint32_t lane = 0; lane < WARP_LANES; lane++)
                access.addresses[lane] = start + (rng_below(&rng, 128) * 4);
            access.store = i % 4 == 3;
            rc = trace_writer_add(writer, block, i / ACCESSES, &access, i % 4, err);
        }
    }
    rc = rc ? rc : trace_writer_finish(writer, totals, err);
    trace_writer_destroy(writer);
    return rc;
}

static int run_trace(const char *path, const struct machine *machine, struct model_counts *counts,
                     struct err *err)
{
    static struct kernel_launch launch;
    struct trace_source *source = NULL;
    int rc = trace_source_open(path, &source, err);
    if (!rc) {
        trace_source_launch(source, &launch);
        rc = model_run(&machine->config, &launch, counts, err);
    }
    trace_source_close(source);
    return rc;
}

/* bench_trace INVENTORY MEGABYTES FILE */
int main(int argc, char **argv)
{
    struct inventory inventory;
    static struct machine machine;
    struct trace_totals totals = {0};
    struct model_counts counts = {0};
    struct err err = {0};
    if (argc != 4 || inventory_read_file(argv[1], &inventory, &err) || !inventory.model_count ||
        machine_init(&machine, &inventory.models[0], argv[1], NULL, &err)) {
        fprintf(stderr, "bench_trace INVENTORY MEGABYTES FILE: %s\n", err.text);
        return EXIT_FAILURE;
    }
    uint64_t bytes = strtoull(argv[2], NULL, 10) * 1000000;
    double begin = seconds_now();
    int rc = write_trace(argv[3], bytes, &totals, &err);
    double written = seconds_now();
    long written_kib = peak_kib();
    rc = rc ? rc : run_trace(argv[3], &machine, &counts, &err);
    double read = seconds_now();
    unlink(argv[3]);
    inventory_fini(&inventory);
    if (rc) {
        fprintf(stderr, "%s\n", err.text);
        return EXIT_FAILURE;
    }
    double size = (double)totals.pages * TRACE_PAGE_BYTES;
    printf("%.2f GB, %.0f M accesses, %.1f B each, %.0f M lines\n", size / 1e9,
           (double)totals.accesses / 1e6, size / (double)totals.accesses,
           (double)counts.lines / 1e6);
    printf("written in %.1f s (%.0f MB/s), peak %.0f MiB\n", written - begin,
           size / 1e6 / (written - begin), (double)written_kib / 1024);
    printf("run in %.1f s (%.0f MB/s, %.1f M lines/s), peak %.0f MiB\n", read - written,
           size / 1e6 / (read - written), (double)counts.lines / 1e6 / (read - written),
           (double)peak_kib() / 1024);
    return peak_kib() < MEMORY_MAX_KIB ? EXIT_SUCCESS : EXIT_FAILURE;
}
