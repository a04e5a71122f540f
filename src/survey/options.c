/* The command line of gpumemtopo-survey. */
#include "survey/options.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/out_file.h"

static const struct option survey_rows[] = {
    {.heading = "What to survey",
     .name = "--simulate",
     .argument = "FLEET.yaml",
     .kind = OPTION_TEXT,
     .offset = offsetof(struct survey_options, simulate),
     .help = "survey the simulated GPUs of this file",
     .more = "Survey the simulated GPUs that this file describes, not real GPUs."},
    {.name = "--replay",
     .argument = "FILE",
     .kind = OPTION_TEXT,
     .offset = offsetof(struct survey_options, replay),
     .help = "analyse a record again instead of measuring",
     .more = "Analyse a record again. No GPU is needed, and the result is the same."},
    {.name = "--profile",
     .argument = "NAME",
     .kind = OPTION_WORD,
     .offset = offsetof(struct survey_options, profile),
     .given = offsetof(struct survey_options, profile_given),
     .words = {"quick", "standard", "full"},
     .help = "quick, standard (default) or full",
     .more = "`quick` finds degraded and misconfigured GPUs in seconds, `standard` (the default) "
             "measures the whole topology, `full` adds slow measurements and keeps the sweeps."},
    {.name = "--probes",
     .argument = "LIST",
     .kind = OPTION_TEXT,
     .offset = offsetof(struct survey_options, probes),
     .completes = "probes",
     .help = "only these probes or groups, separated by commas",
     .more = "Run only these probes or groups, separated by commas. Those that --list-probes "
             "calls `named` are in no group."},
    {.name = "--time-limit",
     .argument = "SECONDS",
     .kind = OPTION_NUMBER,
     .offset = offsetof(struct survey_options, time_limit_s),
     .unit = "seconds",
     .min = 0.001,
     .max = 86400,
     .help = "for one GPU (default 20, 120, 1200 by profile)",
     .more = "The time limit for one GPU. The default is 20 for `quick`, 120 for `standard` and "
             "1200 for `full`. A GPU whose worker crashes, fails or takes longer is tried a second "
             "time, with the same limit. A GPU that fails twice is reported as unmeasured, and the "
             "survey continues. The time limit for listing the GPUs of a rank is 120 seconds, or "
             "SECONDS if that is less. Time during which the job is suspended does not count."},
    {.name = "--load",
     .argument = "SECONDS",
     .kind = OPTION_NUMBER,
     .offset = offsetof(struct survey_options, load_s),
     .unit = "seconds",
     .min = 0,
     .max = 3600,
     .help = "full load at the end (default: 10 with full, else 0)",
     .more =
         "Put each GPU under full load for SECONDS seconds at the end, whatever the profile: all "
         "SMs "
         "multiply matrices and read main memory. The default is 10 with the profile `full`, "
         "and no load with the others; 0 leaves it out. The default time limit grows by this "
         "time. The load ends early at the time limit, if the hardware slows itself down, and "
         "if another process comes. The nodes begin at times that are spread over "
         "`load.stagger_s` of the configuration; the inventory says of each GPU when it began."},
    {.name = "--load-one",
     .offset = offsetof(struct survey_options, load_one),
     .help = "the GPUs of a node under load one after the other",
     .more = "The GPUs of a node are put under load one after the other, not together."},
    {.name = "--busy",
     .argument = "WHAT",
     .kind = OPTION_WORD,
     .offset = offsetof(struct survey_options, busy),
     .given = offsetof(struct survey_options, busy_given),
     .words = {"skip", "measure"},
     .help = "GPUs that others use: skip (default) or measure",
     .more = "What to do with a GPU on which another process computes. `skip` (the default) does "
             "not measure it and lists it as unmeasured. `measure` measures it and gives it the "
             "status `busy`; such a GPU is never an outlier and is not compared with other GPUs."},
    {.name = "--seed",
     .argument = "N",
     .kind = OPTION_WHOLE,
     .offset = offsetof(struct survey_options, seed),
     .given = offsetof(struct survey_options, seed_given),
     .max = 0x1p64,
     .help = "of all random choices (default 1)",
     .more = "The seed of all random choices; the inventory contains it. The default is 1."},
    {.name = "--no-mpi",
     .offset = offsetof(struct survey_options, no_mpi),
     .help = "every task surveys for itself; the last one reports",
     .more = "Survey without MPI, for sites without a matching MPI. Every task of the launcher "
             "measures the GPUs that no other task of its node has claimed, and writes its results "
             "into the spool. All nodes must share the folder of the spool. The last task makes the"
             " inventory. Slurm, Open MPI, Hydra, Flux and PALS give each job a name. With other "
             "launchers, set `GPUMEMTOPO_JOB` to a new name for each survey, the same for all "
             "tasks."},
    {.name = "--mpi-library",
     .argument = "FILE",
     .kind = OPTION_TEXT,
     .offset = offsetof(struct survey_options, mpi_library),
     .help = "load this MPI (default: the one of the launcher)",
     .more = "Load this MPI library, such as libmpi.so.40 of an Open MPI or libmpi.so.12 of an "
             "Intel MPI. FILE is a path, or a name that is looked for as the dynamic linker does. "
             "By default the launcher decides: with PMIx the survey loads libmpi.so.40 (Open MPI), "
             "with PMI or under Hydra libmpich.so.12 or libmpi.so.12 (MPICH). If there is none, "
             "it surveys as with `--no-mpi`. A library must belong to root or to you, and nobody "
             "else may write it."},
    {.name = "--config",
     .letter = 'c',
     .argument = "FILE",
     .kind = OPTION_TEXT,
     .offset = offsetof(struct survey_options, config),
     .help = "survey configuration (default: as shipped)",
     .more = "The survey configuration. The default is the shipped survey.yaml, whose comments "
             "explain every value."},
    {.heading = "What GPUs are compared with, besides each other",
     .name = "--reference",
     .argument = "DIR",
     .kind = OPTION_TEXT,
     .offset = offsetof(struct survey_options, reference),
     .help = "expected values by model (default: as shipped)",
     .more = "The folder with the expected values of each model. The default is the shipped folder "
             "models."},
    {.name = "--baseline",
     .argument = "FILE",
     .kind = OPTION_TEXT,
     .offset = offsetof(struct survey_options, baseline),
     .help = "an earlier inventory: report changes since then",
     .more = "An earlier inventory of the same GPUs. The survey reports how each GPU has changed "
             "since then."},
    {.name = "--world",
     .argument = "FILE",
     .kind = OPTION_LIST,
     .offset = offsetof(struct survey_options, world),
     .list_max = SURVEY_WORLD_MAX,
     .help = "figures of GPUs elsewhere, or of earlier surveys",
     .more = "Figures of healthy GPUs elsewhere, or of your own in earlier surveys, as "
             "`gpumemtopo-report share` writes them. They count beside those of the fleet, the "
             "more the fewer GPUs it has. The flag may be repeated; the files are combined. The "
             "same file twice is refused. The shipped folder world has such files."},
    {.heading = "Output",
     .name = "--output",
     .letter = 'o',
     .argument = "FILE",
     .kind = OPTION_TEXT,
     .offset = offsetof(struct survey_options, output),
     .help = "inventory (default gpumemtopo-<UTC>.yaml; -: stdout)",
     .more = "The inventory. The default is gpumemtopo-UTC time.yaml; `-` is the standard output. "
             "The file is written completely or not at all."},
    {.name = "--html",
     .argument = "FILE",
     .kind = OPTION_TEXT,
     .offset = offsetof(struct survey_options, html),
     .help = "also write a page",
     .more = "Write the page too, as `gpumemtopo-report html` does."},
    {.name = "--page",
     .offset = offsetof(struct survey_options, page),
     .help = "also write a page beside the inventory",
     .more = "Write the page beside the inventory: its name ends in .html instead of .yaml. There "
             "is none if the inventory goes to the standard output."},
    {.name = "--record",
     .argument = "FILE",
     .kind = OPTION_TEXT,
     .offset = offsetof(struct survey_options, record),
     .help = "keep every raw sample, for --replay",
     .more = "Keep every raw sample, for `--replay`."},
    {.name = "--spool",
     .argument = "DIR",
     .kind = OPTION_TEXT,
     .offset = offsetof(struct survey_options, spool),
     .help = "folder for early results (default OUTPUT.spool)",
     .more =
         "The spool. Each rank writes each result into this folder as soon as it has it; "
         "`gpumemtopo-report merge` makes an inventory from them. The default is OUTPUT.spool, "
         "which is removed when the inventory is complete. Files of an earlier survey in that "
         "folder are moved to OUTPUT.spool.before-TIME. A survey is refused while another one "
         "runs with the same output. If neither the output nor the spool can be written at the "
         "end, the inventory is written into `TMPDIR`, and a message on stderr names the file."},
    {.name = "--anonymous",
     .offset = offsetof(struct survey_options, anonymous),
     .help = "pseudonyms instead of names and serial numbers",
     .more = "Write pseudonyms instead of host names, UUIDs, serial numbers and addresses, into the"
             " inventory, the page, the record and the summary. A name has the same pseudonym in "
             "all of them. The verdicts do not change. Messages during the survey, and a spool that"
             " is kept, have the names."},
    {.heading = "Messages",
     .name = "--quiet",
     .offset = offsetof(struct survey_options, quiet),
     .help = "print errors only",
     .more = "Print only errors."},
    {.name = "--verbose", .offset = offsetof(struct survey_options, verbose), .help = "print more"},
    {.name = "--no-progress",
     .offset = offsetof(struct survey_options, no_progress),
     .help = "no progress line",
     .more = "Do not print a progress line."},
    {.name = "--list-probes",
     .offset = offsetof(struct survey_options, list_probes),
     .help = "print the probes and stop",
     .more = "Print one line for each probe, and stop."},
    {.name = "--sweeps",
     .argument = "PATH",
     .kind = OPTION_TEXT,
     .offset = offsetof(struct survey_options, sweeps),
     .help = "analyse sweeps that MT4G measured, and stop",
     .more =
         "Analyse raw sweeps that MT4G measured, with the analysis of the survey, and stop. PATH "
         "is a file `GPU - MEMORY FIGURE.txt` or a folder with such files, where FIGURE is "
         "`Size`, `Line Size`, `Fetch Granularity` or `Latency`. Each sweep gives one line of "
         "YAML: where misses begin, the line, the fetch unit or the latency; whether that is "
         "sure, and otherwise why not."},
    {.name = "--version",
     .offset = offsetof(struct survey_options, version),
     .help = "print version and build and stop",
     .more = "Print the version and how the program was built, and stop."},
};

/* Scripts add the flags of their user behind their own, so the last one counts. */
static const struct option_set survey_set = {.program = "gpumemtopo-survey",
                                             .options = survey_rows,
                                             .count = COUNT_OF(survey_rows),
                                             .last_counts = true};

static int check_together(const struct survey_options *options, struct err *err)
{
    if (options->quiet && options->verbose)
        return err_set(err, -EINVAL, "--quiet and --verbose exclude each other");
    if (options->no_mpi && options->mpi_library)
        return err_set(err, -EINVAL, "--no-mpi and --mpi-library exclude each other");
    if (options->replay && options->simulate)
        return err_set(err, -EINVAL, "--replay and --simulate exclude each other");
    if (options->replay && options->record)
        return err_set(err, -EINVAL, "--replay and --record exclude each other");
    if (str_equal(options->record, "-"))
        return err_set(err, -EINVAL, "--record needs a file: a record does not go to stdout");
    if (options->spool && str_equal(options->spool, "-"))
        return err_set(err, -EINVAL, "--spool needs a folder: files do not go to stdout");
    if (out_file_is_same(options->spool, options->output))
        return err_set(err, -EINVAL, "--spool and --output name the same path");
    if (out_file_is_same(options->html, options->output))
        return err_set(err, -EINVAL, "--html and --output name the same file");
    if (out_file_is_same(options->record, options->output))
        return err_set(err, -EINVAL, "--record and --output name the same file");
    if (out_file_is_same(options->record, options->html))
        return err_set(err, -EINVAL, "--record and --html name the same file");
    return 0;
}

int survey_options_parse(int argc, char **argv, struct survey_options *out_options, struct err *err)
{
    struct survey_options options = {.profile = PROFILE_STANDARD, .load_s = -1, .seed = 1};
    struct option_rest rest;
    int rc = options_read(&survey_set, argc - 1, argv + 1, &options, &rest, err);
    if (rc)
        return rc;
    if (rest.count && !rest.help)
        rc = err_set(err, -EINVAL, "unexpected argument \"%.60s\": only flags are expected",
                     rest.words[0]);
    free(rest.words);
    options.help = rest.help;
    options.action = rest.help             ? SURVEY_HELP
                     : options.version     ? SURVEY_VERSION
                     : options.list_probes ? SURVEY_LIST_PROBES
                     : options.sweeps      ? SURVEY_SWEEPS
                                           : SURVEY_RUN;
    if (!rc)
        rc = check_together(&options, err);
    if (!rc)
        *out_options = options;
    return rc;
}

void survey_options_help(const char *form, struct strbuf *out_text)
{
    options_print(
        &survey_set, form,
        "Usage: [srun | mpirun | mpiexec] gpumemtopo-survey [FLAG...]\n"
        "Surveys the memory of every GPU its ranks see and writes one YAML inventory.\n\n",
        "\nExit codes: 0 done; 1 no report; 2 bad usage or input; 3 drain; "
        "4 unmeasured\n",
        out_text);
}
