/* `gpumemtopo-predict trace`: its command line, and the commands that write a kernel as a trace,
 * print and check traces. */
#include "predict/trace/trace_command.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/options.h"
#include "base/out_file.h"
#include "predict/trace/access_code.h"
#include "predict/trace/convert.h"
#include "predict/trace/page.h"
#include "predict/trace/trace_write.h"

/* The pc is the number of a reference. */
int trace_make(const struct kernel_launch *launch, uint32_t page_bytes, const char *path,
               struct trace_totals *out_totals, struct err *err)
{
    struct trace_head head = {
        .maker = "kernel",
        .grid = {(uint32_t)launch->blocks_x, (uint32_t)(launch->blocks / launch->blocks_x), 1},
        .block = {launch->block_x, launch->block_y, 1},
        .shared_bytes = launch->kernel->shared_bytes,
        .registers = launch->registers,
        .has_pc = true,
        .page_bytes = page_bytes ? page_bytes : TRACE_PAGE_BYTES};
    struct trace_writer *writer = NULL;
    if (launch->blocks > TRACE_BLOCKS_MAX)
        return err_set(err, -EINVAL, "a trace has at most %u blocks", TRACE_BLOCKS_MAX);
    snprintf(head.name, sizeof head.name, "%s", launch->kernel->name);
    int rc = trace_writer_create(path, &head, &writer, err);
    for (uint64_t block = 0; block < launch->blocks && !rc; block++)
        for (uint32_t warp = 0; warp < launch->warps_per_block && !rc; warp++) {
            struct kernel_cursor cursor;
            struct warp_access access;
            kernel_begin(launch, block, warp, &cursor);
            while (!rc && kernel_next(launch, &cursor, &access))
                rc = trace_writer_add(writer, block, warp, &access, cursor.step - 1, err);
        }
    rc = rc ? rc : trace_writer_finish(writer, out_totals, err);
    trace_writer_destroy(writer);
    return rc;
}

static void trace_info_put_shape(struct strbuf *out, const char *key, const uint32_t shape[3])
{
    strbuf_printf(out, "%s: [%u, %u, %u]\n", key, shape[0], shape[1], shape[2]);
}

static void trace_info_put_count(struct strbuf *out, const char *key, uint64_t value)
{
    strbuf_printf(out, "%s: %llu\n", key, (unsigned long long)value);
}

static void trace_info_put_quoted(struct strbuf *out, const char *key, const char *text)
{
    strbuf_printf(out, "%s: \"", key);
    for (; *text; text++)
        strbuf_printf(out, "%s%c", *text == '"' || *text == '\\' ? "\\" : "", *text);
    strbuf_puts(out, "\"\n");
}

void trace_info_print(const struct trace_reader *reader, const char *path, struct strbuf *out_text)
{
    const struct trace_head *head = trace_reader_head(reader);
    const struct trace_totals *totals = trace_reader_totals(reader);
    uint64_t bytes = (uint64_t)totals->pages * head->page_bytes;
    trace_info_put_quoted(out_text, "file", str_last_part(path));
    trace_info_put_quoted(out_text, "name", head->name);
    trace_info_put_quoted(out_text, "from", head->maker);
    trace_info_put_shape(out_text, "grid", head->grid);
    trace_info_put_shape(out_text, "block", head->block);
    trace_info_put_count(out_text, "warps_per_block", trace_head_warps(head));
    trace_info_put_count(out_text, "shared_bytes", head->shared_bytes);
    if (head->registers)
        trace_info_put_count(out_text, "registers", head->registers);
    else
        strbuf_puts(out_text, "registers: null\n");
    strbuf_printf(out_text, "pc: %s\n", head->has_pc ? "address" : "opcode");
    trace_info_put_count(out_text, "accesses", totals->accesses);
    trace_info_put_count(out_text, "loads", totals->loads);
    trace_info_put_count(out_text, "stores", totals->accesses - totals->loads);
    trace_info_put_count(out_text, "blocks_with_accesses", totals->blocks);
    strbuf_printf(out_text, "lanes_per_access: %.4g\n",
                  (double)totals->lanes / (double)totals->accesses);
    strbuf_printf(out_text, "lowest_address: 0x%llx\nhighest_address: 0x%llx\n",
                  (unsigned long long)totals->lowest, (unsigned long long)totals->highest);
    trace_info_put_count(out_text, "largest_element_bytes", totals->bytes_max);
    trace_info_put_count(out_text, "file_bytes", bytes);
    strbuf_printf(out_text, "bytes_per_access: %.4g\n", (double)bytes / (double)totals->accesses);
    strbuf_printf(out_text, "format: {version: %d, page_bytes: %u}\n", TRACE_VERSION,
                  head->page_bytes);
}

static int count_warp(struct trace_reader *reader, uint64_t block, uint32_t number,
                      struct trace_totals *totals, struct err *err)
{
    struct trace_warp warp;
    struct warp_access access;
    uint64_t pc;
    int rc = trace_warp_init(&warp, reader, block, number, err);
    while (!rc && (rc = trace_warp_next(&warp, reader, &access, &pc, err)) == 1) {
        trace_lanes_count(&access, totals);
        rc = 0;
    }
    trace_warp_fini(&warp, reader);
    return rc;
}

int trace_info_check(struct trace_reader *reader, struct err *err)
{
    uint64_t blocks = trace_head_blocks(trace_reader_head(reader)), block = 0;
    uint32_t warps = trace_head_warps(trace_reader_head(reader));
    struct trace_totals counted = {.lowest = UINT64_MAX};
    int rc = trace_reader_next_block(reader, 0, &block, err);
    while (!rc && block < blocks) {
        uint64_t before = counted.accesses;
        for (uint32_t warp = 0; warp < warps && !rc; warp++)
            rc = count_warp(reader, block, warp, &counted, err);
        counted.blocks += counted.accesses > before;
        rc = rc ? rc : trace_reader_next_block(reader, block + 1, &block, err);
    }
    return rc ? rc : trace_reader_compare(reader, &counted, err);
}

enum { FILES_MAX = 2 };

struct request {
    const char *files[FILES_MAX];
    enum { FROM_NVBIT, FROM_CSV } from;
    bool has_launch;
    uint64_t launch, size;
    const char *block;
};

static const struct option convert_options[] = {
    {.name = "--from",
     .argument = "WORD",
     .kind = OPTION_WORD,
     .offset = offsetof(struct request, from),
     .words = {"nvbit", "csv"},
     .help = "nvbit (default) or csv"},
    {.name = "--launch",
     .argument = "N",
     .kind = OPTION_WHOLE,
     .offset = offsetof(struct request, launch),
     .given = offsetof(struct request, has_launch),
     .max = 0x1p64,
     .help = "of several launches this one, from 0"},
};

static const struct option make_options[] = {
    {.name = "--size",
     .argument = "N",
     .kind = OPTION_WHOLE,
     .offset = offsetof(struct request, size),
     .min = 1,
     .max = 0x1p64,
     .help = "size of the kernel"},
    {.name = "--block",
     .argument = "SHAPE",
     .kind = OPTION_TEXT,
     .offset = offsetof(struct request, block),
     .completes = "none",
     .help = "threads of a block, such as 32x8"},
};

static int run_info(const struct request *request, struct strbuf *out_text, struct err *err)
{
    struct trace_reader *reader = NULL;
    int rc = trace_reader_open(request->files[0], &reader, err);
    if (!rc)
        trace_info_print(reader, request->files[0], out_text);
    trace_reader_close(reader);
    return rc;
}

static int run_check(const struct request *request, struct strbuf *out_text, struct err *err)
{
    struct trace_reader *reader = NULL;
    int rc = trace_reader_open(request->files[0], &reader, err);
    rc = rc ? rc : trace_info_check(reader, err);
    if (!rc)
        trace_info_print(reader, request->files[0], out_text);
    trace_reader_close(reader);
    return rc;
}

/* "256" or "32x8"; NULL: 0 and 0. */
static int trace_read_shape(const char *text, uint32_t *out_x, uint32_t *out_y, struct err *err)
{
    unsigned x = 0, y = 1;
    int length = 0;
    bool good = text && sscanf(text, "%5ux%5u%n", &x, &y, &length) == 2 && !text[length];
    if (text && !good) {
        y = 1;
        good = sscanf(text, "%5u%n", &x, &length) == 1 && !text[length];
    }
    if (text && (!good || !x || !y))
        return err_set(err, -EINVAL, "--block is a shape such as 256 or 32x8, not \"%.40s\"", text);
    *out_x = text ? x : 0;
    *out_y = text ? y : 0;
    return 0;
}

static int run_make(const struct request *request, struct strbuf *out_text, struct err *err)
{
    const char *near = NULL;
    const struct kernel *kernel = kernel_find(request->files[0], &near);
    struct kernel_launch *launch;
    struct trace_totals totals;
    uint32_t x = 0, y = 0;
    if (!kernel)
        return err_set(err, -EINVAL, "unknown kernel \"%.60s\"%s%s", request->files[0],
                       near ? "; did you mean " : "; --list-kernels lists them", near ? near : "");
    int rc = trace_read_shape(request->block, &x, &y, err);
    if (rc)
        return rc;
    launch = mem_array(1, sizeof *launch);
    rc = kernel_launch_init(launch, kernel, request->size, x, y, err);
    rc = rc ? rc : trace_make(launch, 0, request->files[1], &totals, err);
    if (!rc)
        strbuf_printf(out_text, "%s: %llu accesses\n", request->files[1],
                      (unsigned long long)totals.accesses);
    free(launch);
    return rc;
}

static void print_result(const struct convert_result *result, const char *path,
                         struct strbuf *out_text)
{
    strbuf_printf(out_text, "%s: %llu accesses of %s\n", path,
                  (unsigned long long)result->totals.accesses, result->head.name);
    for (int i = 0; i < OPCODE_SPACES; i++)
        if (result->skipped[i])
            strbuf_printf(out_text, "left out: %llu (%s)\n", (unsigned long long)result->skipped[i],
                          opcode_space_name((enum opcode_space)i));
    if (result->other_launches)
        strbuf_printf(out_text, "left out: %llu (other launches)\n",
                      (unsigned long long)result->other_launches);
}

static int run_convert(const struct request *request, struct strbuf *out_text, struct err *err)
{
    struct convert_request convert = {.in = request->files[0], .out = request->files[1]};
    struct convert_result result;
    convert.has_launch = request->has_launch;
    convert.launch = request->launch;
    if (out_file_replaces(convert.out, convert.in))
        return err_set(err, -EINVAL, "trace convert: the two files are the same");
    int rc = request->from == FROM_CSV ? convert_csv(&convert, &result, err)
                                       : convert_nvbit(&convert, &result, err);
    if (!rc)
        print_result(&result, request->files[1], out_text);
    return rc;
}

static const struct trace_action {
    const char *name, *arguments, *help;
    int files;
    const struct option *options;
    size_t option_count;
    int (*run)(const struct request *request, struct strbuf *out_text, struct err *err);
} trace_actions[] = {
    {"info", "FILE", "what a trace says about itself", 1, NULL, 0, run_info},
    {"check", "FILE", "the same, after all of it was read", 1, NULL, 0, run_check},
    {"convert", "IN OUT", "make a trace from text; IN may be -", 2, convert_options,
     COUNT_OF(convert_options), run_convert},
    {"make", "KERNEL OUT", "write a kernel of the table as a trace", 2, make_options,
     COUNT_OF(make_options), run_make},
};

/* Before hours of sorting: a trace is renamed into its place, which a pipe or device does not
 * survive. */
static int check_output(const char *command, const char *path, struct err *err)
{
    if (out_file_in_place(path))
        return err_set(err, -EINVAL,
                       "trace %s: %.200s is not a file; a trace cannot be written to a pipe, a "
                       "device or a folder",
                       command, path);
    return out_file_check("OUT", path, err);
}

static int run_action(const struct trace_action *action, int count, char **arguments,
                      struct strbuf *out_text, struct err *err)
{
    char name[32];
    snprintf(name, sizeof name, "trace %s", action->name);
    const struct option_set set = {.program = "gpumemtopo-predict",
                                   .command = name,
                                   .options = action->options,
                                   .count = action->option_count};
    struct request request = {0};
    struct option_rest rest;
    int rc = options_read(&set, count, arguments, &request, &rest, err);
    if (rc)
        return rc;
    for (int i = 0; i < rest.count && i < FILES_MAX; i++)
        request.files[i] = rest.words[i];
    free(rest.words);
    if (rest.help) {
        char *head = str_format("Usage: gpumemtopo-predict %s [FLAG...] %s\n%s.\n\nFlags:\n",
                                set.command, action->arguments, action->help);
        options_print(&set, rest.help, head, "", out_text);
        free(head);
        return 0;
    }
    if (rest.count != action->files)
        return err_set(err, -EINVAL, "%s takes %s", name, action->arguments);
    rc = rest.count == 2 ? check_output(action->name, request.files[1], err) : 0;
    return rc ? rc : action->run(&request, out_text, err);
}

int trace_command(int count, char **arguments, struct strbuf *out_text, struct err *err)
{
    const char *names[COUNT_OF(trace_actions)];
    const char *word = count > 0 ? arguments[0] : "";
    if (strncmp(word, "--help", 6) == 0 || strcmp(word, "-h") == 0) {
        strbuf_puts(out_text, "Usage: gpumemtopo-predict trace COMMAND [FLAG...] FILE...\n"
                              "Traces of loads and stores, for gpumemtopo-predict.\n\nCommands:\n");
        for (size_t i = 0; i < COUNT_OF(trace_actions); i++)
            strbuf_printf(out_text, "  %-8s %-12s %s\n", trace_actions[i].name,
                          trace_actions[i].arguments, trace_actions[i].help);
        strbuf_puts(out_text, "\nCOMMAND --help prints its flags.\n");
        return 0;
    }
    for (size_t i = 0; i < COUNT_OF(trace_actions); i++) {
        if (strcmp(word, trace_actions[i].name) == 0)
            return run_action(&trace_actions[i], count - 1, arguments + 1, out_text, err);
        names[i] = trace_actions[i].name;
    }
    const char *near = str_nearest(word, names, COUNT_OF(trace_actions));
    return err_set(err, -EINVAL, "trace has no command \"%.40s\"%s%s", word,
                   near ? "; did you mean " : "; trace --help lists them", near ? near : "");
}
