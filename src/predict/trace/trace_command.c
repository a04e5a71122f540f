/* Reads the command line of `gpumemtopo-predict trace` and runs its commands. */
#include "predict/trace/trace_command.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/out_file.h"
#include "predict/trace/convert.h"
#include "predict/trace/trace_info.h"
#include "predict/trace/trace_make.h"

enum { FILES_MAX = 2 };

struct request {
    const char *files[FILES_MAX];
    const char *from, *launch, *size, *block;
};

static const struct flag {
    const char *name, *argument, *command, *help;
    size_t offset;
} flags[] = {
    {"--from", "WORD", "convert", "nvbit (default) or csv", offsetof(struct request, from)},
    {"--launch", "N", "convert", "of several launches this one, from 0",
     offsetof(struct request, launch)},
    {"--size", "N", "make", "size of the kernel", offsetof(struct request, size)},
    {"--block", "SHAPE", "make", "threads of a block, such as 32x8",
     offsetof(struct request, block)},
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
static int read_shape(const char *text, uint32_t *out_x, uint32_t *out_y, struct err *err)
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
    uint64_t size = 0;
    uint32_t x = 0, y = 0;
    if (!kernel)
        return err_set(err, -EINVAL, "unknown kernel \"%.60s\"%s%s", request->files[0],
                       near ? "; did you mean " : "; --list-kernels lists them", near ? near : "");
    if (request->size && (str_parse_u64(request->size, &size) || !size))
        return err_set(err, -EINVAL, "--size is a number, not \"%.40s\"", request->size);
    int rc = read_shape(request->block, &x, &y, err);
    if (rc)
        return rc;
    launch = mem_array(1, sizeof *launch);
    rc = launch ? kernel_launch_init(launch, kernel, size, x, y, err) : err_no_memory(err);
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
    bool csv = str_equal(request->from, "csv");
    if (request->from && !csv && strcmp(request->from, "nvbit") != 0)
        return err_set(err, -EINVAL, "--from is one of nvbit, csv, not \"%.40s\"", request->from);
    convert.has_launch = request->launch != NULL;
    if (request->launch && str_parse_u64(request->launch, &convert.launch))
        return err_set(err, -EINVAL, "--launch is a number, not \"%.40s\"", request->launch);
    if (out_file_replaces(convert.out, convert.in))
        return err_set(err, -EINVAL, "trace convert: the two files are the same");
    int rc = csv ? convert_csv(&convert, &result, err) : convert_nvbit(&convert, &result, err);
    if (!rc)
        print_result(&result, request->files[1], out_text);
    return rc;
}

static const struct command {
    const char *name, *arguments, *help;
    int files;
    int (*run)(const struct request *request, struct strbuf *out_text, struct err *err);
} commands[] = {
    {"info", "FILE", "what a trace says about itself", 1, run_info},
    {"check", "FILE", "the same, after all of it was read", 1, run_check},
    {"convert", "IN OUT", "make a trace from text; IN may be -", 2, run_convert},
    {"make", "KERNEL OUT", "write a kernel of the table as a trace", 2, run_make},
};

static int print_help(struct strbuf *out_text)
{
    strbuf_puts(out_text, "Usage: gpumemtopo-predict trace COMMAND [FLAG...] FILE...\n"
                          "Traces of loads and stores, for gpumemtopo-predict.\n\nCommands:\n");
    for (size_t i = 0; i < COUNT_OF(commands); i++)
        strbuf_printf(out_text, "  %-8s %-12s %s\n", commands[i].name, commands[i].arguments,
                      commands[i].help);
    strbuf_puts(out_text, "\nFlags:\n");
    for (size_t i = 0; i < COUNT_OF(flags); i++)
        strbuf_printf(out_text, "  %s %-*s %s: %s\n", flags[i].name,
                      (int)(20 - strlen(flags[i].name)), flags[i].argument, flags[i].command,
                      flags[i].help);
    strbuf_puts(out_text, "  --help                print this and stop\n");
    return 0;
}

static int take_flag(struct request *request, const char *command, int count, char **arguments,
                     int *at, struct err *err)
{
    const char *word = arguments[*at];
    size_t length = strcspn(word, "=");
    for (size_t i = 0; i < COUNT_OF(flags); i++) {
        if (strlen(flags[i].name) != length || strncmp(flags[i].name, word, length) != 0)
            continue;
        const char *value = word[length] ? word + length + 1 : ++*at < count ? arguments[*at] : "";
        if (strcmp(flags[i].command, command) != 0)
            return err_set(err, -EINVAL, "%s is for trace %s", flags[i].name, flags[i].command);
        if (!*value)
            return err_set(err, -EINVAL, "%s needs a value: %s", flags[i].name, flags[i].argument);
        *(const char **)((char *)request + flags[i].offset) = value;
        return 0;
    }
    return err_set(err, -EINVAL, "there is no flag %.60s; trace --help lists them", word);
}

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

static int run_command(const struct command *command, int count, char **arguments,
                       struct strbuf *out_text, struct err *err)
{
    struct request request = {0};
    int files = 0;
    for (int i = 0; i < count; i++) {
        if (strcmp(arguments[i], "--help") == 0 || strcmp(arguments[i], "-h") == 0)
            return print_help(out_text);
        int rc = 0;
        if (arguments[i][0] == '-' && arguments[i][1])
            rc = take_flag(&request, command->name, count, arguments, &i, err);
        else if (files < command->files)
            request.files[files++] = arguments[i];
        else
            files = FILES_MAX + 1;
        if (rc)
            return rc;
    }
    if (files != command->files)
        return err_set(err, -EINVAL, "trace %s takes %s", command->name, command->arguments);
    int rc = files == 2 ? check_output(command->name, request.files[1], err) : 0;
    return rc ? rc : command->run(&request, out_text, err);
}

int trace_command(int count, char **arguments, struct strbuf *out_text, struct err *err)
{
    const char *names[COUNT_OF(commands)];
    const char *word = count > 0 ? arguments[0] : "";
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
        return print_help(out_text);
    for (size_t i = 0; i < COUNT_OF(commands); i++) {
        if (strcmp(word, commands[i].name) == 0)
            return run_command(&commands[i], count - 1, arguments + 1, out_text, err);
        names[i] = commands[i].name;
    }
    const char *near = str_nearest(word, names, COUNT_OF(commands));
    return err_set(err, -EINVAL, "trace has no command \"%.40s\"%s%s", word,
                   near ? "; did you mean " : "; trace --help lists them", near ? near : "");
}
