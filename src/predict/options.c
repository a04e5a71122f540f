/* Reads the flags of gpumemtopo-predict from a table. */
#include "predict/options.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/out_file.h"

enum kind { FLAG, TEXT, LIST };

static const struct flag {
    const char *name;
    char letter;
    const char *argument, *help;
    enum kind kind;
    size_t offset;
} flags[] = {
    {"--inventory", 'i', "FILE", "GPUs, as gpumemtopo-survey wrote them; may be repeated", LIST,
     offsetof(struct options, inventories)},
    {"--model", 'm', "ID", "only this model; may be repeated", LIST,
     offsetof(struct options, models)},
    {"--what-if", 0, "CHANGE", "KEY=VALUE[,VALUE...][+KEY=...]: also with other figures", LIST,
     offsetof(struct options, what_if_texts)},
    {"--size", 0, "N", "size of the kernels, instead of each one's own", TEXT,
     offsetof(struct options, size_text)},
    {"--block", 0, "SHAPE", "threads of a block, such as 32x8", TEXT,
     offsetof(struct options, block_text)},
    {"--registers", 0, "N", "registers of a thread (default: no limit)", TEXT,
     offsetof(struct options, registers_text)},
    {"--mapping", 0, "WORD", "blocks to SMs: free, rr, part1, part2, random", TEXT,
     offsetof(struct options, mapping_text)},
    {"--scheduler", 0, "WORD", "of warps: rr or gto", TEXT,
     offsetof(struct options, scheduler_text)},
    {"--writes", 0, "WORD", "stores in L1: through, won, rwon, off", TEXT,
     offsetof(struct options, writes_text)},
    {"--mshrs", 0, "N[,N]", "miss registers of L1, and of each L2 partition", TEXT,
     offsetof(struct options, mshrs_text)},
    {"--l2-banks", 0, "PxB", "partitions of L2, banks of each (default 4x2)", TEXT,
     offsetof(struct options, l2_banks_text)},
    {"--latency", 0, "STEPS", "of a miss: K1 or K1,K2 (default 2,0.25)", TEXT,
     offsetof(struct options, latency_text)},
    {"--reuse", 0, NULL, "also hits for all sizes of L1 and L2, reuse distances", FLAG,
     offsetof(struct options, reuse)},
    {"--format", 'f', "WORD", "table (default), yaml, json or html", TEXT,
     offsetof(struct options, format_text)},
    {"--output", 'o', "FILE", "write to this file instead of stdout", TEXT,
     offsetof(struct options, output)},
    {"--jobs", 'j', "N", "predictions that run at the same time (default 1)", TEXT,
     offsetof(struct options, jobs_text)},
    {"--quiet", 0, NULL, NULL, FLAG, offsetof(struct options, quiet)},
    {"--list-kernels", 0, NULL, "no progress and warnings; print the kernels and stop", FLAG,
     offsetof(struct options, list_kernels)},
    {"--version", 0, NULL, NULL, FLAG, offsetof(struct options, version)},
    {"--help", 'h', NULL, "print the version, or this, and stop", FLAG,
     offsetof(struct options, help)},
};

static const struct flag *find_flag(const char *word, size_t length)
{
    bool is_letter = word[1] != '-';
    for (size_t i = 0; i < COUNT_OF(flags); i++) {
        bool named = strlen(flags[i].name) == length && strncmp(flags[i].name, word, length) == 0;
        if (is_letter ? flags[i].letter && word[1] == flags[i].letter : named)
            return &flags[i];
    }
    return NULL;
}

static int unknown_flag(const char *word, struct err *err)
{
    const char *names[COUNT_OF(flags)];
    for (size_t i = 0; i < COUNT_OF(flags); i++)
        names[i] = flags[i].name;
    const char *near = str_nearest(word, names, COUNT_OF(flags));
    return near ? err_set(err, -EINVAL, "there is no flag %.60s; did you mean %s?", word, near)
                : err_set(err, -EINVAL, "there is no flag %.60s; --help lists them", word);
}

static int add(struct options_list *list, const char *what, const char *item, struct err *err)
{
    if (list->count == OPTIONS_LIST_MAX)
        return err_set(err, -EINVAL, "more than %d times %s", OPTIONS_LIST_MAX, what);
    list->items[list->count++] = item;
    return 0;
}

/* The flag at arguments[*at]; its value follows after '=', directly after a letter, or in the next
 * argument. */
static int take_flag(struct options *options, int count, char **arguments, int *at, struct err *err)
{
    const char *word = arguments[*at];
    size_t length = strcspn(word, "=");
    const struct flag *flag = find_flag(word, length);
    if (!flag)
        return unknown_flag(word, err);
    const char *value = word[1] != '-' ? word + 2 : word[length] ? word + length + 1 : NULL;
    void *field = (char *)options + flag->offset;
    if (flag->kind == FLAG) {
        *(bool *)field = true;
        return value && *value ? err_set(err, -EINVAL, "%s takes no value", flag->name) : 0;
    }
    if (!value || (word[1] != '-' && !*value))
        value = ++*at < count ? arguments[*at] : "";
    if (!*value)
        return err_set(err, -EINVAL, "%s needs a value: %s", flag->name, flag->argument);
    if (flag->kind == LIST)
        return add(field, flag->name, value, err);
    if (*(const char **)field)
        return err_set(err, -EINVAL, "%s is given twice; it takes %s", flag->name, flag->argument);
    *(const char **)field = value;
    return 0;
}

/* The number of a word; the first one if none is given. */
static int read_word(const char *flag, const char *text, const char *const *words, size_t count,
                     int *out_value, struct err *err)
{
    struct strbuf list = {0};
    for (size_t i = 0; i < count; i++) {
        if (!text || strcmp(text, words[i]) == 0) {
            *out_value = (int)i;
            strbuf_fini(&list);
            return 0;
        }
        strbuf_printf(&list, "%s%s", i ? ", " : "", words[i]);
    }
    int rc = err_set(err, -EINVAL, "%s is one of %s, not \"%.40s\"", flag,
                     list.data ? list.data : "", text);
    strbuf_fini(&list);
    return rc;
}

static int read_words(struct options *options, struct err *err)
{
    static const char *const formats[] = {"table", "yaml", "json", "html"};
    static const char *const mappings[] = {"free", "rr", "part1", "part2", "random"};
    static const char *const schedulers[] = {"rr", "gto"};
    static const char *const writes[] = {"through", "won", "rwon", "off"};
    int format = 0, mapping = 0, scheduler = 0, write = 0;
    int rc = read_word("--format", options->format_text, formats, COUNT_OF(formats), &format, err);
    rc = rc ? rc
            : read_word("--mapping", options->mapping_text, mappings, COUNT_OF(mappings), &mapping,
                        err);
    rc = rc ? rc
            : read_word("--scheduler", options->scheduler_text, schedulers, COUNT_OF(schedulers),
                        &scheduler, err);
    rc = rc ? rc
            : read_word("--writes", options->writes_text, writes, COUNT_OF(writes), &write, err);
    options->format = (enum prediction_format)format;
    options->mapping = (enum block_mapping)mapping;
    options->scheduler = (enum sm_scheduler)scheduler;
    options->writes = (enum model_writes)write;
    return rc;
}

static int read_number(const char *flag, const char *text, uint64_t min, uint64_t max,
                       uint64_t *out_value, struct err *err)
{
    if (text && (str_parse_u64(text, out_value) || *out_value < min || *out_value > max))
        return err_set(err, -EINVAL, "%s is a number from %llu to %llu, not \"%.40s\"", flag,
                       (unsigned long long)min, (unsigned long long)max, text);
    return 0;
}

static int read_block(struct options *options, struct err *err)
{
    const char *text = options->block_text, *x = text ? strchr(text, 'x') : NULL;
    uint64_t wide = 0, high = 1;
    if (!text)
        return 0;
    char *first = x ? str_copy_n(text, (size_t)(x - text)) : str_copy(text);
    bool good = first && !str_parse_u64(first, &wide) && (!x || !str_parse_u64(x + 1, &high));
    free(first);
    if (!good || !wide || !high || wide > 1024 || high > 1024)
        return err_set(err, -EINVAL, "--block is a shape such as 256 or 32x8, not \"%.40s\"", text);
    options->block_x = (uint32_t)wide;
    options->block_y = (uint32_t)high;
    return 0;
}

static int read_mshrs(struct options *options, struct err *err)
{
    const char *text = options->mshrs_text, *comma = text ? strchr(text, ',') : NULL;
    if (!comma)
        return read_number("--mshrs", text, 1, PARALLEL_MSHRS_MAX, &options->mshrs, err);
    char *first = str_copy_n(text, (size_t)(comma - text));
    if (!first)
        return err_no_memory(err);
    int rc = read_number("--mshrs", first, 1, PARALLEL_MSHRS_MAX, &options->mshrs, err);
    free(first);
    return rc ? rc
              : read_number("--mshrs", comma + 1, 1, PARALLEL_MSHRS_MAX, &options->l2_mshrs, err);
}

static int read_l2_banks(struct options *options, struct err *err)
{
    const char *text = options->l2_banks_text ? options->l2_banks_text : "4x2"; /* as in [K] */
    const char *x = strchr(text, 'x');
    uint64_t partitions = 0, banks = 0;
    char *first = x ? str_copy_n(text, (size_t)(x - text)) : NULL;
    bool good = first && !str_parse_u64(first, &partitions) && !str_parse_u64(x + 1, &banks);
    free(first);
    if (!good || !partitions || partitions > OPTIONS_L2_PARTITIONS_MAX || !banks ||
        banks > PARALLEL_BANKS_MAX)
        return err_set(err, -EINVAL,
                       "--l2-banks is partitions x banks such as 4x2, at most %dx%d, not \"%.40s\"",
                       OPTIONS_L2_PARTITIONS_MAX, PARALLEL_BANKS_MAX, text);
    options->l2_partitions = (uint32_t)partitions;
    options->l2_banks = (uint32_t)banks;
    return 0;
}

static int read_latency(struct options *options, struct err *err)
{
    const char *text = options->latency_text, *comma = text ? strchr(text, ',') : NULL;
    options->k1 = 2; /* the seed's model A2 */
    options->k2 = 0.25;
    if (!text)
        return 0;
    options->k2 = 0;
    char *first = comma ? str_copy_n(text, (size_t)(comma - text)) : str_copy(text);
    bool good = first && !str_parse_f64(first, &options->k1) &&
                (!comma || !str_parse_f64(comma + 1, &options->k2));
    free(first);
    if (!good || options->k1 < 1 || options->k1 > 1e6 || options->k2 < 0 || options->k2 > 1e6)
        return err_set(err, -EINVAL, "--latency is K1 >= 1, or K1,K2 with K2 >= 0, not \"%.40s\"",
                       text);
    return 0;
}

static int read_what_if(struct options *options, const char *text, struct err *err)
{
    size_t first = options->what_ifs.count;
    const char *near = NULL;
    int rc = what_if_read(text, &options->what_ifs, err);
    if (rc)
        return rc;
    const struct what_if *what_if = &options->what_ifs.items[first];
    for (size_t i = 0; i < what_if->count; i++)
        if (!machine_has_key(what_if->parts[i].key, &near))
            return err_set(err, -EINVAL, "--what-if: unknown key %s%s%s", what_if->parts[i].key,
                           near ? "; did you mean " : "; the man page lists them",
                           near ? near : "");
    return 0;
}

static int read_values(struct options *options, struct err *err)
{
    int rc = read_words(options, err);
    rc = rc ? rc : read_number("--size", options->size_text, 2, 1 << 24, &options->size, err);
    rc = rc ? rc
            : read_number("--registers", options->registers_text, 1, 255, &options->registers, err);
    rc = rc ? rc : read_mshrs(options, err);
    rc = rc ? rc : read_l2_banks(options, err);
    options->jobs = 1;
    rc = rc ? rc
            : read_number("--jobs", options->jobs_text, 1, OPTIONS_JOBS_MAX, &options->jobs, err);
    rc = rc ? rc : read_block(options, err);
    rc = rc ? rc : read_latency(options, err);
    for (size_t i = 0; i < options->what_if_texts.count && !rc; i++)
        rc = read_what_if(options, options->what_if_texts.items[i], err);
    return rc;
}

static int check(const struct options *options, struct err *err)
{
    if (!options->kernels.count)
        return err_set(err, -EINVAL, "name a kernel or a trace; --list-kernels lists the kernels");
    if (!options->inventories.count)
        return err_set(err, -EINVAL, "--inventory FILE is missing: the GPUs to predict for");
    if (options->latency_text && !options->mshrs)
        return err_set(err, -EINVAL, "--latency needs --mshrs");
    if (options->l2_banks_text && !options->l2_mshrs)
        return err_set(err, -EINVAL, "--l2-banks needs miss registers of L2: --mshrs 32,32");
    if (options->reuse && options->writes != MODEL_THROUGH)
        return err_set(err, -EINVAL,
                       "--reuse is for --writes through: its hits by size know no stores that fill "
                       "or empty L1");
    for (size_t i = 0; i < options->inventories.count && options->output; i++)
        if (out_file_replaces(options->output, options->inventories.items[i]))
            return err_set(err, -EINVAL, "--inventory and --output name the same file");
    return options->output ? out_file_check("--output", options->output, err) : 0;
}

int options_read(struct options *options, int count, char **arguments, struct err *err)
{
    memset(options, 0, sizeof *options);
    for (int i = 0; i < count; i++) {
        bool flag = arguments[i][0] == '-' && arguments[i][1];
        int rc = flag ? take_flag(options, count, arguments, &i, err)
                      : add(&options->kernels, "a kernel", arguments[i], err);
        if (rc)
            return rc;
    }
    if (options->help || options->version || options->list_kernels)
        return 0;
    int rc = read_values(options, err);
    return rc ? rc : check(options, err);
}

static void put_name(struct strbuf *out, const struct flag *flag)
{
    if (flag->letter)
        strbuf_printf(out, "-%c, ", flag->letter);
    strbuf_printf(out, "%s%s%s", flag->name, flag->argument ? " " : "",
                  flag->argument ? flag->argument : "");
}

/* A flag without a text of its own stands before the next one. */
static void put_flag(struct strbuf *out, size_t at)
{
    struct strbuf name = {0};
    if (!flags[at].help)
        return;
    if (at && !flags[at - 1].help) {
        put_name(&name, &flags[at - 1]);
        strbuf_puts(&name, ", ");
    }
    put_name(&name, &flags[at]);
    strbuf_printf(out, "  %-22s %s\n", name.data ? name.data : "", flags[at].help);
    out->failed |= name.failed;
    strbuf_fini(&name);
}

void options_help(struct strbuf *out_text)
{
    strbuf_puts(out_text, "Usage: gpumemtopo-predict KERNEL|TRACE... --inventory FILE [FLAG...]\n"
                          "Predicts cache hits and traffic on surveyed GPUs. To make traces: trace "
                          "--help.\n\n");
    for (size_t i = 0; i < COUNT_OF(flags); i++)
        put_flag(out_text, i);
    strbuf_puts(out_text, "\nExit codes: 0 done; 1 no report; 2 bad usage or input; "
                          "4 some not predicted.\n");
}
