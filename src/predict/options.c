/* The command line of gpumemtopo-predict. */
#include "predict/options.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/out_file.h"

static const struct option predict_rows[] = {
    {.heading = "What to predict for",
     .name = "--inventory",
     .letter = 'i',
     .argument = "FILE",
     .kind = OPTION_LIST,
     .offset = offsetof(struct predict_options, inventories),
     .help = "GPUs, as the survey wrote them; may be repeated",
     .more = "The inventory with the GPU models. The flag may be repeated, to compare GPUs of "
             "several inventories."},
    {.name = "--model",
     .letter = 'm',
     .argument = "ID",
     .kind = OPTION_LIST,
     .offset = offsetof(struct predict_options, models),
     .completes = "none",
     .help = "only this model; may be repeated",
     .more = "Predict for this model only. The flag may be repeated. The default is every model of "
             "the inventory."},
    {.name = "--what-if",
     .argument = "CHANGE",
     .kind = OPTION_LIST,
     .offset = offsetof(struct predict_options, what_if_texts),
     .words = {"l1_data.size=", "l1_data.line=", "l1_data.ways=", "l1_data.policy=",
               "l1_data.carveout=", "l2.size="},
     .help = "also with KEY=VALUE[,VALUE...][+KEY=...]",
     .more = "KEY=VALUE[,VALUE...][+KEY=...]: predict also for a GPU that differs in this figure, "
             "once for each value. Figures that are joined by + change together, in all "
             "combinations of their values. The flag may be repeated; the changes of several flags "
             "are not combined. A change that makes no sense is refused before anything is run, "
             "with the figure that it contradicts. Keys are `l1_data.size`, `l1_data.line`, "
             "`l1_data.fetch`, `l1_data.ways`, `l1_data.sets`, `l1_data.per_sm`, `l1_data.policy`, "
             "`l1_data.index`, `l1_data.carveout` (the shared memory of an SM, taken from the "
             "storage that it shares with L1), the same of `l2` (without sets, per_sm and "
             "carveout), `l2.parts` (1 or 2), `sm.groups` (of SMs with a common way to L2), `sms`, "
             "`threads_per_sm`, `blocks_per_sm`, `shared_per_sm_bytes`, `registers_per_sm`, and the"
             " bandwidths and latencies (GB/s, ns) by the names of the inventory. Policies are lru,"
             " fifo, random, lfu, tree, biased and early; indices are modulo, hashed, xor, prime "
             "and smod (modulo of the line number without its lowest bit; smod2 to smod16: without "
             "so many bits). Sizes may have a unit: 128K. Ways of 0 mean fully associative."},
    {.heading = "How kernels run",
     .name = "--size",
     .argument = "N",
     .kind = OPTION_WHOLE,
     .offset = offsetof(struct predict_options, size),
     .min = 2,
     .max = 1 << 24,
     .help = "size of the kernels, instead of their own",
     .more = "The size N of all kernels, instead of the one in the list of kernels."},
    {.name = "--block",
     .argument = "SHAPE",
     .kind = OPTION_TEXT,
     .offset = offsetof(struct predict_options, block_text),
     .completes = "none",
     .help = "threads of a block, such as 32x8",
     .more = "Threads of a block, such as 256 or 32x8."},
    {.name = "--registers",
     .argument = "N",
     .kind = OPTION_WHOLE,
     .offset = offsetof(struct predict_options, registers),
     .min = 1,
     .max = 255,
     .help = "registers of a thread (default: no limit)",
     .more = "Registers of a thread; they limit the blocks in flight."},
    {.name = "--mapping",
     .argument = "WORD",
     .kind = OPTION_WORD,
     .offset = offsetof(struct predict_options, mapping),
     .words = {"free", "rr", "part1", "part2", "random"},
     .help = "blocks to SMs: free, rr, part1, part2, random",
     .more = "How blocks are dealt to SMs: `free` (the default: the SM that has room first), `rr` "
             "(in turn), `part1`, `part2` (runs of four or eight blocks, in turn), `random` "
             "(shuffled, then in turn)."},
    {.name = "--scheduler",
     .argument = "WORD",
     .kind = OPTION_WORD,
     .offset = offsetof(struct predict_options, scheduler),
     .words = {"rr", "gto"},
     .help = "of warps: rr (default) or gto",
     .more = "Which warp issues next: `rr` (the default: in turn) or `gto` (the same until it "
             "waits, then the oldest)."},
    {.name = "--writes",
     .argument = "WORD",
     .kind = OPTION_WORD,
     .offset = offsetof(struct predict_options, writes),
     .words = {"through", "won", "rwon", "off"},
     .help = "stores in L1: through (default), won, rwon, off",
     .more = "What L1 does with stores. `through` (the default, as since Volta): they go to L2 and "
             "leave L1's copy valid. `won`: they go to L2 and evict L1's copy. `rwon`: loads and "
             "stores bypass L1. `off`: L1 takes stores like loads."},
    {.name = "--mshrs",
     .argument = "N[,N]",
     .kind = OPTION_TEXT,
     .offset = offsetof(struct predict_options, mshrs_text),
     .completes = "none",
     .help = "miss registers of L1, and of each L2 partition",
     .more = "Serve the loads of an SM step by step, through two ports and N miss registers. With a"
             " second number, L2 is served so, too: each of its partitions has so many miss "
             "registers."},
    {.name = "--l2-banks",
     .argument = "PxB",
     .kind = OPTION_TEXT,
     .offset = offsetof(struct predict_options, l2_banks_text),
     .completes = "none",
     .help = "partitions of L2, banks of each (default 4x2)",
     .more = "Partitions of L2, and banks of each, with a port per bank, for `--mshrs N,N`. The "
             "default is 4x2."},
    {.name = "--latency",
     .argument = "STEPS",
     .kind = OPTION_TEXT,
     .offset = offsetof(struct predict_options, latency_text),
     .completes = "none",
     .help = "of a miss: K1 or K1,K2 (default 2,0.25)",
     .more = "How many steps a miss takes with `--mshrs`: K1, or K1,K2 for K1 + K2 x busy "
             "registers. The default is 2,0.25."},
    {.heading = "Output",
     .name = "--reuse",
     .offset = offsetof(struct predict_options, reuse),
     .help = "also hits of all cache sizes, reuse distances",
     .more = "Also find the reuse distances of each L1 and of L2: their histogram, and the share of"
             " hits that a fully associative LRU cache of any size would have (yaml and json; the "
             "page has them, too). Only with `--writes through`: stores that fill or empty L1 are "
             "not part of them. Distances are counted up to 16384 lines of L1 and 1048576 lines of "
             "L2, or twice the cache's own if that is more."},
    {.name = "--format",
     .letter = 'f',
     .argument = "WORD",
     .kind = OPTION_WORD,
     .offset = offsetof(struct predict_options, format),
     .words = {"table", "yaml", "json", "html"},
     .help = "table (default), yaml, json or html",
     .more = "`table` (the default), `yaml`, `json` or `html`: a page of its own, without scripts, "
             "with the models side by side, the changes of `--what-if` with their differences, hits"
             " by cache size, reuse distances, and what was assumed."},
    {.name = "--output",
     .letter = 'o',
     .argument = "FILE",
     .kind = OPTION_TEXT,
     .offset = offsetof(struct predict_options, output),
     .help = "write to this file instead of stdout",
     .more = "The output file; the default is the standard output."},
    {.name = "--jobs",
     .letter = 'j',
     .argument = "N",
     .kind = OPTION_WHOLE,
     .offset = offsetof(struct predict_options, jobs),
     .min = 1,
     .max = PREDICT_JOBS_MAX,
     .help = "predictions that run at the same time (default 1)",
     .more = "How many predictions run at the same time, each in a thread (default 1). The results "
             "do not depend on it."},
    {.name = "--quiet",
     .offset = offsetof(struct predict_options, quiet),
     .help = "neither progress nor warnings",
     .more = "Print neither warnings nor, on a terminal, progress."},
    {.name = "--list-kernels",
     .offset = offsetof(struct predict_options, list_kernels),
     .help = "print the kernels and stop",
     .more = "Print the name, the size and a line about each kernel, and stop."},
    {.name = "--version",
     .offset = offsetof(struct predict_options, version),
     .help = "print the version and stop"},
};

static const struct option_set predict_set = {
    .program = "gpumemtopo-predict", .options = predict_rows, .count = COUNT_OF(predict_rows)};

static int options_read_number(const char *flag, const char *text, uint64_t min, uint64_t max,
                               uint64_t *out_value, struct err *err)
{
    if (text && (str_parse_u64(text, out_value) || *out_value < min || *out_value > max))
        return err_set(err, -EINVAL, "%s is a number from %llu to %llu, not \"%.40s\"", flag,
                       (unsigned long long)min, (unsigned long long)max, text);
    return 0;
}

static int options_read_block(struct predict_options *options, struct err *err)
{
    const char *text = options->block_text, *x = text ? strchr(text, 'x') : NULL;
    uint64_t wide = 0, high = 1;
    if (!text)
        return 0;
    char *first = x ? str_copy_n(text, (size_t)(x - text)) : str_copy(text);
    bool good = !str_parse_u64(first, &wide) && (!x || !str_parse_u64(x + 1, &high));
    free(first);
    if (!good || !wide || !high || wide > 1024 || high > 1024)
        return err_set(err, -EINVAL, "--block is a shape such as 256 or 32x8, not \"%.40s\"", text);
    options->block_x = (uint32_t)wide;
    options->block_y = (uint32_t)high;
    return 0;
}

static int read_mshrs(struct predict_options *options, struct err *err)
{
    const char *text = options->mshrs_text, *comma = text ? strchr(text, ',') : NULL;
    if (!comma)
        return options_read_number("--mshrs", text, 1, PARALLEL_MSHRS_MAX, &options->mshrs, err);
    char *first = str_copy_n(text, (size_t)(comma - text));
    int rc = options_read_number("--mshrs", first, 1, PARALLEL_MSHRS_MAX, &options->mshrs, err);
    free(first);
    return rc ? rc
              : options_read_number("--mshrs", comma + 1, 1, PARALLEL_MSHRS_MAX, &options->l2_mshrs,
                                    err);
}

static int read_l2_banks(struct predict_options *options, struct err *err)
{
    const char *text = options->l2_banks_text ? options->l2_banks_text : "4x2"; /* as in [K] */
    const char *x = strchr(text, 'x');
    uint64_t partitions = 0, banks = 0;
    char *first = x ? str_copy_n(text, (size_t)(x - text)) : NULL;
    bool good = !str_parse_u64(first, &partitions) && !str_parse_u64(x + 1, &banks);
    free(first);
    if (!good || !partitions || partitions > PREDICT_L2_PARTITIONS_MAX || !banks ||
        banks > PARALLEL_BANKS_MAX)
        return err_set(err, -EINVAL,
                       "--l2-banks is partitions x banks such as 4x2, at most %dx%d, not \"%.40s\"",
                       PREDICT_L2_PARTITIONS_MAX, PARALLEL_BANKS_MAX, text);
    options->l2_partitions = (uint32_t)partitions;
    options->l2_banks = (uint32_t)banks;
    return 0;
}

static int read_latency(struct predict_options *options, struct err *err)
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

static int read_what_if(struct predict_options *options, const char *text, struct err *err)
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

static int options_read_values(struct predict_options *options, struct err *err)
{
    int rc = read_mshrs(options, err);
    rc = rc ? rc : read_l2_banks(options, err);
    rc = rc ? rc : options_read_block(options, err);
    rc = rc ? rc : read_latency(options, err);
    for (size_t i = 0; i < options->what_if_texts.count && !rc; i++)
        rc = read_what_if(options, options->what_if_texts.items[i], err);
    return rc;
}

static int check_options(const struct predict_options *options, struct err *err)
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

int predict_options_read(struct predict_options *options, int count, char **arguments,
                         struct err *err)
{
    struct option_rest rest;
    *options = (struct predict_options){.jobs = 1};
    int rc = options_read(&predict_set, count, arguments, options, &rest, err);
    if (rc)
        return rc;
    options->help = rest.help;
    if (rest.count > OPTION_LIST_MAX)
        rc = err_set(err, -EINVAL, "more than %d kernels and traces", OPTION_LIST_MAX);
    for (int i = 0; i < rest.count && !rc; i++)
        options->kernels.items[options->kernels.count++] = rest.words[i];
    free(rest.words);
    if (rc || options->help || options->version || options->list_kernels)
        return rc;
    rc = options_read_values(options, err);
    return rc ? rc : check_options(options, err);
}

void predict_options_help(const char *form, struct strbuf *out_text)
{
    options_print(&predict_set, form,
                  "Usage: gpumemtopo-predict KERNEL|TRACE... --inventory FILE [FLAG...]\n"
                  "       gpumemtopo-predict trace COMMAND [FLAG...] FILE...\n"
                  "Predicts cache hits and traffic on surveyed GPUs. To make traces: trace "
                  "--help.\n\n",
                  "\nExit codes: 0 done; 1 no report; 2 bad usage or input; "
                  "4 some not predicted.\n",
                  out_text);
}
