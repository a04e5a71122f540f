/* Allocation failures while traces are made, read and run, and predictions are made and printed:
 * -ENOMEM, no leak, no file left. */
#include "../check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/str.h"
#include "predict/bound.h"
#include "predict/prediction_formats.h"
#include "predict/trace/convert.h"
#include "predict/trace/trace_info.h"
#include "predict/trace/trace_make.h"
#include "predict/trace/trace_source.h"
#include "sweep.h"

static char folder[] = "/dev/shm/gpumemtopo-memory-XXXXXX";
static char made[64], csv[64], text[64], out[64];
static struct kernel_launch launch;

static void write_text(const char *path, const char *content, int rows, const char *format)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(content, file);
    for (int i = 0; i < rows; i++) {
        fprintf(file, format, i * 7 % 4, i % 2);
        for (int lane = 0; lane < WARP_LANES; lane++)
            fprintf(file, "0x%x ", 0x7f000000 + 4 * (i * i * lane % 1000));
        fputs("\n", file);
    }
    fclose(file);
}

static int make_samples(void **state)
{
    (void)state;
    const char *near;
    struct err err = {0};
    if (!mkdtemp(folder))
        return -1;
    snprintf(made, sizeof made, "%s/made", folder);
    snprintf(csv, sizeof csv, "%s/csv", folder);
    snprintf(text, sizeof text, "%s/text", folder);
    snprintf(out, sizeof out, "%s/out", folder);
    write_text(csv, "# grid: 4\n# block: 64\nblock,warp,pc,op,bytes,mask,addresses\n", 50,
               "%d,%d,1,load,4,0xffffffff,");
    write_text(text, "Kernel f - grid size 4,1,1 - block size 64,1,1 - nregs 9 - shmem 0\n", 50,
               "CTA %d,0,0 - warp %d - LDG.E - ");
    int rc = kernel_launch_init(&launch, kernel_find("2dconv", &near), 16, 8, 4, &err);
    return rc ? rc : trace_make(&launch, 512, made, NULL, &err);
}

static int remove_samples(void **state)
{
    (void)state;
    unlink(made);
    unlink(csv);
    unlink(text);
    return rmdir(folder); /* fails if a test left a file */
}

static int make(void *context)
{
    (void)context;
    struct err err = {0};
    int rc = trace_make(&launch, 512, out, NULL, &err);
    assert_int_equal(access(out, F_OK), rc ? -1 : 0);
    unlink(out);
    return rc;
}

static int read_all(void *context)
{
    (void)context;
    struct trace_reader *reader = NULL;
    struct strbuf printed = {0};
    struct err err = {0};
    int rc = trace_reader_open(made, &reader, &err);
    rc = rc ? rc : trace_info_check(reader, &err);
    if (!rc)
        trace_info_print(reader, made, &printed);
    rc = printed.failed ? -ENOMEM : rc;
    strbuf_fini(&printed);
    trace_reader_close(reader);
    return rc;
}

static int run(void *context)
{
    (void)context;
    static struct kernel_launch played;
    struct model_config config = {
        .sms = 2,
        .schedulers = 2,
        .limits = {.warps_max = 64, .blocks_max = 2},
        .l1_per_sm = 1,
        .l2_parts = 1,
        .groups = 1,
        .merged_loads = 1,
        .l1 = {.size = 2 << 10, .line = 128, .sector = 32, .fetch = 32, .ways = 4},
        .l2 = {.size = 4 << 10, .line = 128, .sector = 32, .fetch = 64, .ways = 4},
    };
    struct trace_source *source = NULL;
    struct model_counts counts;
    struct err err = {0};
    int rc = trace_source_open(made, &source, &err);
    if (!rc) {
        trace_source_launch(source, &played);
        rc = model_run(&config, &played, &counts, &err);
    }
    trace_source_close(source);
    return rc;
}

static int convert(void *context)
{
    struct convert_request request = {
        .in = context ? text : csv, .out = out, .sort_bytes = 1000, .page_bytes = 512};
    struct convert_result result;
    struct err err = {0};
    int rc =
        context ? convert_nvbit(&request, &result, &err) : convert_csv(&request, &result, &err);
    assert_int_equal(access(out, F_OK), rc ? -1 : 0);
    unlink(out);
    return rc;
}

/* A small GPU whose figures are all known. */
static struct prediction predicted(const struct what_if *what_if)
{
    struct prediction p = {.kernel = "2mm",
                           .summary = "product",
                           .model = "model",
                           .inventory = "file",
                           .what_if = what_if,
                           .block_x = 32,
                           .block_y = 8,
                           .machine = {.figures = {1, 1, 1, 1, 1, 1, 1, 1}, .assumed = "all"}};
    p.machine.config = (struct model_config){
        .sms = 2,
        .schedulers = 2,
        .limits = {.warps_max = 64, .blocks_max = 2},
        .l1_per_sm = 1,
        .l2_parts = 1,
        .groups = 1,
        .merged_loads = 1,
        .l1 = {.size = 2 << 10, .line = 128, .sector = 32, .fetch = 32, .ways = 4},
        .l2 = {.size = 4 << 10, .line = 128, .sector = 32, .fetch = 64, .ways = 4},
        .reuse = true,
    };
    return p;
}

/* context: a prediction. */
static int predict_one(void *context)
{
    static struct kernel_launch whole;
    struct prediction *p = context;
    const char *near;
    struct err err = {0};
    int rc = kernel_launch_init(&whole, kernel_find(p->kernel, &near), 48, 0, 0, &err);
    rc = rc ? rc : model_run(&p->machine.config, &whole, &p->counts, &err);
    if (!rc)
        p->bound = bound_of(&p->counts, &p->machine);
    return rc;
}

struct printing {
    const struct prediction *predictions;
    size_t count;
    enum prediction_format format;
};

static int print(void *context)
{
    const struct printing *printing = context;
    struct strbuf printed = {0};
    prediction_print(printing->predictions, printing->count, printing->format, &printed);
    int rc = printed.failed ? -ENOMEM : 0;
    strbuf_fini(&printed);
    return rc;
}

static void sweep(const char *name, int (*operation)(void *context), void *context, size_t at_least)
{
    memory_sweep(&(struct memory_sweep){
        .name = name, .run = operation, .context = context, .at_least = at_least});
}

static void traces(void **state)
{
    (void)state;
    sweep("make", make, NULL, 8);
    sweep("read", read_all, NULL, 8);
    sweep("run", run, NULL, 15);
    sweep("csv", convert, NULL, 20);
    sweep("nvbit", convert, folder, 20);
}

static void predictions(void **state)
{
    (void)state;
    static const struct what_if what_if = {.parts = {{"sms", "2"}}, .count = 1};
    static struct prediction all[3];
    all[0] = predicted(NULL);
    all[1] = predicted(&what_if);
    all[2] = predicted(NULL);
    all[2].program = 1;
    snprintf(all[2].reason, sizeof all[2].reason, "it has no L1");
    sweep("predict", predict_one, &all[0], 20);
    all[1].machine.config.parallel = (struct parallel_config){
        .banks = 1, .ports = 2, .mshrs = 4, .merges_max = 8, .latency = {.k1 = 2}};
    all[1].machine.config.l2_partitions = 2;
    all[1].machine.config.l2_parallel = all[1].machine.config.parallel;
    sweep("predict step by step", predict_one, &all[1], 20);
    for (int format = PREDICTION_TABLE; format <= PREDICTION_HTML; format++) {
        struct printing printing = {all, 3, (enum prediction_format)format};
        sweep("print", print, &printing, 3);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(traces), cmocka_unit_test(predictions)};
    return cmocka_run_group_tests(tests, make_samples, remove_samples);
}
