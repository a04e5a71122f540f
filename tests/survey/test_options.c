/* The command line, the launcher and the exit code: tables. */
#include "../check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "survey/options.h"
#include "survey/root/emit.h"
#include "survey/start/launcher.h"
#include "survey/start/slurm.h"

enum { WORDS_MAX = 6 };

static int parse(const char *const *words, struct survey_options *out, struct err *err)
{
    char *argv[WORDS_MAX + 2] = {(char *)"gpumemtopo-survey"};
    int argc = 1;
    for (; words[argc - 1]; argc++)
        argv[argc] = (char *)words[argc - 1];
    return survey_options_parse(argc, argv, out, err);
}

struct bad_case {
    const char *words[WORDS_MAX];
    const char *text; /* part of the message */
};

static const struct bad_case bad[] = {
    {{"--ouput", "x"}, "did you mean --output?"},
    {{"--simulat=x"}, "did you mean --simulate?"},
    {{"--frobnicate"}, "gpumemtopo-survey has no flag --frobnicate"},
    {{"-z"}, "gpumemtopo-survey has no flag -z"},
    {{"fleet.yaml"}, "unexpected argument \"fleet.yaml\""},
    {{"-"}, "unexpected argument"},
    {{"--output"}, "--output needs a value"},
    {{"--output="}, "--output needs a value: FILE"},
    {{"--simulate", ""}, "--simulate needs a value: FLEET.yaml"},
    {{"--quiet=yes"}, "--quiet takes no value"},
    {{"--profile", "fast"}, "quick, standard or full"},
    {{"--busy", "wait"}, "--busy is skip or measure, not \"wait\""},
    {{"--seed", "-1"}, "--seed is a whole number"},
    {{"--seed", "1x"}, "--seed is a whole number"},
    {{"--time-limit", "0"}, "--time-limit is a number of seconds"},
    {{"--time-limit", "nan"}, "--time-limit is a number of seconds"},
    {{"--time-limit", "1e9"}, "--time-limit is a number of seconds"},
    {{"--quiet", "--verbose"}, "exclude each other"},
    {{"--replay", "a", "--simulate", "b"}, "--replay and --simulate exclude each other"},
    {{"--record", "a", "--replay", "b"}, "--replay and --record exclude each other"},
    {{"--record", "-"}, "--record needs a file"},
    {{"--record", "a", "-o", "a"}, "name the same file"},
    {{"--record", "./a", "-o", "a"}, "--record and --output name the same file"},
    {{"--record", "a", "--html", ".//a"}, "--record and --html name the same file"},
    {{"--help=all"}, "--help takes no value"},
};

static void refuses(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct survey_options options = {.seed = 77};
        struct err err = {0};
        assert_int_equal(parse(bad[i].words, &options, &err), -EINVAL);
        assert_int_equal(options.seed, 77);
        if (!strstr(err.text, bad[i].text))
            fail_msg("%s: said \"%s\", expected \"%s\"", bad[i].words[0], err.text, bad[i].text);
    }
}

static void accepts(void **state)
{
    (void)state;
    struct survey_options options;
    struct err err = {0};
    assert_int_equal(parse((const char *const[]){NULL}, &options, &err), 0);
    assert_int_equal(options.seed, 1);
    assert_int_equal(options.profile, PROFILE_STANDARD);
    assert_true(options.time_limit_s == 0);
    assert_true(options.load_s < 0 && !options.load_one);
    assert_int_equal(
        parse((const char *const[]){"--load", "2.5", "--load-one", NULL}, &options, &err), 0);
    assert_true(options.load_s == 2.5 && options.load_one);
    assert_int_equal(parse((const char *const[]){NULL}, &options, &err), 0);
    assert_int_equal(options.busy, SURVEY_BUSY_SKIP);
    assert_null(options.output);
    assert_false(options.seed_given || options.profile_given || options.busy_given);
    assert_int_equal(parse((const char *const[]){"--busy", "measure", NULL}, &options, &err), 0);
    assert_int_equal(options.busy, SURVEY_BUSY_MEASURE);
    assert_int_equal(parse((const char *const[]){"--busy=skip", NULL}, &options, &err), 0);
    assert_true(options.busy == SURVEY_BUSY_SKIP && options.busy_given);
    assert_int_equal(parse((const char *const[]){"-o", "a.yaml", "--seed=9", "-cx.yaml",
                                                 "--time-limit", "2.5", NULL},
                           &options, &err),
                     0);
    assert_string_equal(options.output, "a.yaml");
    assert_string_equal(options.config, "x.yaml");
    assert_int_equal(options.seed, 9);
    assert_true(options.seed_given && !options.profile_given);
    assert_true(options.time_limit_s == 2.5);
    assert_int_equal(
        parse((const char *const[]){"-o", "-", "--probes", "l1_data", NULL}, &options, &err), 0);
    assert_string_equal(options.output, "-");
    assert_string_equal(options.probes, "l1_data");
    assert_false(options.quiet || options.verbose || options.no_progress);
    assert_int_equal(
        parse((const char *const[]){"--simulate", "f.yaml", "--verbose", NULL}, &options, &err), 0);
    assert_string_equal(options.simulate, "f.yaml");
    assert_true(options.verbose && !options.quiet && !options.no_progress);
    assert_int_equal(parse((const char *const[]){"--no-progress", "--quiet", NULL}, &options, &err),
                     0);
    assert_true(options.no_progress && options.quiet && !options.verbose);
    assert_int_equal(parse((const char *const[]){"--list-probes", NULL}, &options, &err), 0);
    assert_int_equal(options.action, SURVEY_LIST_PROBES);
    assert_int_equal(parse((const char *const[]){"--version", NULL}, &options, &err), 0);
    assert_int_equal(options.action, SURVEY_VERSION);
    assert_int_equal(parse((const char *const[]){"--help", "--nonsense", NULL}, &options, &err), 0);
    assert_int_equal(options.action, SURVEY_HELP);
}

static void helps(void **state)
{
    (void)state;
    static const char *const flags[] = {"--output",   "--config",      "--probes",  "--list-probes",
                                        "--profile",  "--simulate",    "--seed",    "--time-limit",
                                        "--quiet",    "--verbose",     "--version", "--help",
                                        "Exit codes", "--no-progress", "--busy"};
    struct strbuf text = {0};
    survey_options_help("", &text);
    for (size_t i = 0; i < COUNT_OF(flags); i++)
        assert_non_null(strstr(text.data, flags[i]));
    strbuf_fini(&text);
}

/* The environment of a case: names and values in turn. */
static const char *const *environment;

static char *look_up(const char *name)
{
    for (const char *const *at = environment; *at; at += 2)
        if (strcmp(at[0], name) == 0)
            return (char *)at[1];
    return NULL;
}

struct launcher_case {
    const char *variables[2 * 7];
    enum launcher_pmi pmi;
    int rank, size;
    bool slurm;
};

static const struct launcher_case launchers[] = {
    {{NULL}, LAUNCHER_NO_PMI, 0, 0, false},
    {{"OMPI_COMM_WORLD_SIZE", "4", "OMPI_COMM_WORLD_RANK", "3"}, LAUNCHER_PMIX, 3, 4, false},
    {{"PMIX_RANK", "2", "SLURM_STEP_ID", "0", "SLURM_STEP_NUM_TASKS", "4"},
     LAUNCHER_PMIX,
     2,
     4,
     true},
    {{"PMIX_RANK", "2", "SLURM_PROCID", "2", "SLURM_STEP_ID", "0", "SLURM_STEP_NUM_TASKS", "4"},
     LAUNCHER_PMIX,
     2,
     4,
     true},
    {{"PMIX_NAMESPACE", "job"}, LAUNCHER_PMIX, 0, 0, false},
    /* An mpirun inside a step; inside one with PMI-2. */
    {{"OMPI_COMM_WORLD_SIZE", "2", "OMPI_COMM_WORLD_RANK", "1", "SLURM_STEP_ID", "0",
      "SLURM_PROCID", "0", "SLURM_STEP_NUM_TASKS", "1"},
     LAUNCHER_PMIX,
     1,
     2,
     false},
    {{"OMPI_COMM_WORLD_SIZE", "2", "OMPI_COMM_WORLD_RANK", "1", "SLURM_STEP_ID", "0",
      "SLURM_PROCID", "0", "SLURM_STEP_NUM_TASKS", "1", "PMI_RANK", "0"},
     LAUNCHER_PMIX,
     1,
     2,
     false},
    {{"PMI_RANK", "1", "PMI_SIZE", "3"}, LAUNCHER_PMI, 1, 3, false},
    {{"FLUX_TASK_RANK", "1", "FLUX_JOB_SIZE", "3", "PMI_RANK", "1"}, LAUNCHER_PMI, 1, 3, false},
    {{"SLURM_STEP_ID", "0", "SLURM_STEP_NUM_TASKS", "4", "SLURM_PROCID", "2"},
     LAUNCHER_NO_PMI,
     2,
     4,
     true},
    {{"SLURM_STEP_ID", "0", "SLURM_STEP_NUM_TASKS", "4", "PMI_RANK", "2", "SLURM_PROCID", "2"},
     LAUNCHER_PMI,
     2,
     4,
     true},
    {{"SLURM_STEP_ID", "0", "SLURM_STEP_NUM_TASKS", "1", "SLURM_PROCID", "0"},
     LAUNCHER_NO_PMI,
     0,
     1,
     true},
    {{"SLURM_JOB_ID", "7", "SLURM_NTASKS", "4", "SLURM_PROCID", "0"}, LAUNCHER_NO_PMI, 0, 0, false},
    /* Hydra; its proxies are tasks of a step, two for four ranks, with or without PMIx. */
    {{"PMI_RANK", "1", "PMI_SIZE", "3", "MPI_LOCALNRANKS", "3"}, LAUNCHER_PMI, 1, 3, false},
    {{"PMI_RANK", "3", "PMI_SIZE", "4", "MPI_LOCALNRANKS", "2", "SLURM_STEP_ID", "0",
      "SLURM_PROCID", "1", "SLURM_STEP_NUM_TASKS", "2"},
     LAUNCHER_PMI,
     3,
     4,
     false},
    {{"PMI_RANK", "3", "PMI_SIZE", "4", "MPI_LOCALNRANKS", "2", "SLURM_STEP_ID", "0",
      "SLURM_PROCID", "1", "PMIX_RANK", "1"},
     LAUNCHER_PMI,
     3,
     4,
     false},
};

static void knows_launchers(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(launchers); i++) {
        struct launcher launcher = {0};
        environment = launchers[i].variables;
        launcher_detect(look_up, &launcher);
        assert_int_equal(launcher.pmi, launchers[i].pmi);
        assert_int_equal(launcher.rank, launchers[i].rank);
        assert_int_equal(launcher.size, launchers[i].size);
        assert_int_equal(launcher.slurm, launchers[i].slurm);
    }
}

static void names_the_flag_for_gpus(void **state)
{
    (void)state;
    static const struct {
        const char *variables[2 * 2 + 1];
        bool lacks;
    } cases[] = {
        {{NULL}, false},
        {{"SLURM_JOB_ID", "7"}, false},
        {{"SLURM_STEP_ID", "0"}, true},
        {{"SLURM_STEP_ID", "0", "SLURM_GPUS_ON_NODE", "4"}, false},
        {{"SLURM_STEP_ID", "0", "SLURM_STEP_GPUS", "0,1"}, false},
        {{"SLURM_STEP_ID", "0", "SLURM_JOB_GPUS", "0"}, false},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        environment = cases[i].variables;
        const char *text = slurm_missing_gpus(look_up);
        assert_int_equal(text != NULL, cases[i].lacks);
        assert_true(!text || strstr(text, "--gpus-per-task=1"));
    }
}

/* The user names an MPI that the launcher is not for. */
static void knows_other_mpis(void **state)
{
    (void)state;
    static const struct {
        struct launcher launcher;
        enum launcher_pmi needed;
        const char *advice; /* NULL: it is tried */
    } cases[] = {
        {{LAUNCHER_PMI, .size = 4, .slurm = true}, LAUNCHER_PMIX, "srun --mpi=pmix"},
        {{LAUNCHER_PMI, .size = 4, .hydra = true}, LAUNCHER_PMIX, "with its mpirun"},
        {{LAUNCHER_PMI, .size = 1, .hydra = true}, LAUNCHER_PMIX, NULL},
        {{LAUNCHER_PMI, .size = 4}, LAUNCHER_PMIX, NULL},
        {{LAUNCHER_PMIX, .size = 4, .slurm = true}, LAUNCHER_PMI, NULL},
        {{LAUNCHER_PMI, .size = 4, .slurm = true}, LAUNCHER_PMI, NULL},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct err err = {0};
        int rc = launcher_check_mpi(&cases[i].launcher, cases[i].needed, &err);
        assert_int_equal(rc, cases[i].advice ? -EINVAL : 0);
        if (rc)
            assert_non_null(strstr(err.text, cases[i].advice));
    }
}

/* MPI has started every task alone. */
static void knows_lonely_tasks(void **state)
{
    (void)state;
    static const struct {
        struct launcher launcher;
        enum launcher_pmi needed;
        int mpi_size;
        const char *advice; /* NULL: all is well */
    } cases[] = {
        {{.size = 4, .slurm = true}, LAUNCHER_PMI, 1, "srun --mpi=pmi2"},
        {{.size = 4, .slurm = true}, LAUNCHER_PMIX, 1, "srun --mpi=pmix"},
        {{.size = 4}, LAUNCHER_PMI, 1, "mpiexec.hydra -disable-auto-cleanup"},
        {{.size = 4, .hydra = true}, LAUNCHER_PMIX, 1, "with its mpirun"},
        {{.size = 4}, LAUNCHER_PMI, 4, NULL},
        {{.size = 1}, LAUNCHER_PMI, 1, NULL},
        {{.size = 0}, LAUNCHER_PMI, 1, NULL},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct err err = {0};
        int rc = launcher_check_size(&cases[i].launcher, cases[i].needed, cases[i].mpi_size, &err);
        assert_int_equal(rc, cases[i].advice ? -EINVAL : 0);
        if (rc) {
            assert_non_null(strstr(err.text, cases[i].advice));
            assert_non_null(strstr(err.text, "4 tasks"));
            assert_non_null(strstr(err.text, "--no-mpi"));
        }
    }
}

#define NAMED(words, name)                                                                         \
    {                                                                                              \
        words, sizeof words, name                                                                  \
    }

static void names_jobs_of_hydra(void **state)
{
    (void)state;
    static const struct {
        const char *words;
        size_t length;
        const char *name;
    } cases[] = {
        NAMED("/usr/bin/hydra_pmi_proxy\0--control-port\0node7:44941\0--rmk\0user",
              "hydra-node7-44941"),
        NAMED("hydra_pmi_proxy\0--rmk\0user\0--control-port\0a:1", "hydra-a-1"),
        NAMED("hydra_pmi_proxy\0--rmk\0--control-port", ""),
        NAMED("bash\0--control-port\0a:1", ""),
        NAMED("", ""),
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char name[64] = "before";
        launcher_hydra_job(cases[i].words, cases[i].length, name, sizeof name);
        assert_string_equal(name, cases[i].name);
    }
}

static const char *job_of(const char *const *variables, struct launcher *out_launcher)
{
    environment = variables;
    launcher_detect(look_up, out_launcher);
    return out_launcher->job;
}

/* Ranks of one job have one name for it, and other jobs another one. */
static void knows_jobs(void **state)
{
    (void)state;
    static const char *const same[][2 * 6] = {
        {"OMPI_COMM_WORLD_RANK", "0", "PMIX_NAMESPACE", "17", "OMPI_MCA_orte_hnp_uri", "a;1"},
        {"OMPI_COMM_WORLD_RANK", "3", "PMIX_NAMESPACE", "17", "OMPI_MCA_orte_hnp_uri", "a;1"},
    };
    static const char *const others[][2 * 6] = {
        {"OMPI_COMM_WORLD_RANK", "0", "PMIX_NAMESPACE", "17", "OMPI_MCA_orte_hnp_uri", "a;2"},
        {"SLURM_PROCID", "0", "SLURM_JOB_ID", "17", "SLURM_STEP_ID", "0"},
        {"SLURM_PROCID", "0", "SLURM_JOB_ID", "17", "SLURM_STEP_ID", "1"},
        {"SLURM_PROCID", "0", "SLURM_JOB_ID", "17", "SLURM_STEP_ID", "0", "SLURM_RESTART_COUNT",
         "2"},
        {"PMIX_RANK", "0", "PMIX_NAMESPACE", "a/b@c"},
        {"PMI_RANK", "1", "PALS_APID", "17"},
        {"PMI_RANK", "1", "GPUMEMTOPO_JOB", "18"},
    };
    static const char *const unnamed[] = {"PMI_RANK", "1", "PBS_JOBID", "17", NULL, NULL};
    struct launcher first, second;
    assert_string_equal(job_of(unnamed, &first), "");
    assert_string_equal(job_of(same[0], &first), job_of(same[1], &second));
    assert_int_equal(strncmp(first.job, "17-", 3), 0);
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        assert_string_not_equal(job_of(others[i], &second), first.job);
        assert_true(*second.job && !strpbrk(second.job, "/@ ;"));
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(job_of(others[k], &first), second.job);
        job_of(same[0], &first);
    }
}

/* Only under Slurm, with several tasks, may MPI_Init end too early; not where fences go in a ring.
 */
static void knows_fences(void **state)
{
    (void)state;
    static const struct {
        const char *variables[2 * 6];
        bool unfenced;
    } cases[] = {
        {{"SLURM_PROCID", "1", "SLURM_STEP_ID", "0", "SLURM_STEP_NUM_TASKS", "4", "PMIX_RANK", "1"},
         true},
        {{"SLURM_PROCID", "1", "SLURM_STEP_ID", "0", "SLURM_STEP_NUM_TASKS", "4", "PMIX_RANK", "1",
          "SLURM_PMIX_FENCE", "tree"},
         true},
        {{"SLURM_PROCID", "1", "SLURM_STEP_ID", "0", "SLURM_STEP_NUM_TASKS", "4", "PMIX_RANK", "1",
          "SLURM_PMIX_FENCE", "ring"},
         false},
        {{"SLURM_PROCID", "0", "SLURM_STEP_ID", "0", "SLURM_STEP_NUM_TASKS", "1", "PMIX_RANK", "0"},
         false},
        {{"OMPI_COMM_WORLD_RANK", "1", "OMPI_COMM_WORLD_SIZE", "4"}, false},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct launcher launcher = {0};
        job_of(cases[i].variables, &launcher);
        assert_int_equal(launcher.unfenced, cases[i].unfenced);
    }
}

static void exit_codes(void **state)
{
    (void)state;
    static const size_t table[][4] = {
        /* unmeasured, lost ranks, whether something is to be drained, code */
        {0, 0, 0, 0}, {0, 0, 1, 3}, {1, 0, 0, 4}, {1, 0, 1, 4}, {0, 1, 0, 4}, {0, 1, 1, 4},
    };
    for (size_t i = 0; i < COUNT_OF(table); i++)
        assert_int_equal(emit_exit_code(table[i][0], table[i][1], table[i][2]), table[i][3]);
}

/* Nothing is written over what the survey reads, by whatever name it is called. */
static void keeps_inputs(void **state)
{
    (void)state;
    char in[] = "/tmp/options-XXXXXX", link_name[64];
    int fd = mkstemp(in);
    assert_true(fd >= 0 && close(fd) == 0);
    snprintf(link_name, sizeof link_name, "%s.link", in);
    assert_int_equal(symlink(in, link_name), 0);
    const char *const outputs[] = {in, link_name};
    struct err err = {0};
    for (size_t i = 0; i < COUNT_OF(outputs); i++) {
        const char *out = outputs[i];
        const struct {
            struct survey_options options;
            const char *output, *text;
        } refused[] = {
            {{.simulate = in}, out, "--simulate and --output name the same file"},
            {{.replay = in}, out, "--replay and --output"},
            {{.config = in}, out, "--config and --output"},
            {{.simulate = in, .html = out}, "-", "--simulate and --html"},
            {{.simulate = in, .record = out}, "-", "--simulate and --record"},
        };
        for (size_t k = 0; k < COUNT_OF(refused); k++) {
            assert_int_equal(emit_check_inputs(&refused[k].options, refused[k].output, &err),
                             -EINVAL);
            assert_non_null(strstr(err.text, refused[k].text));
        }
    }
    const struct survey_options fine = {.simulate = in, .baseline = "/tmp"};
    assert_int_equal(emit_check_inputs(&fine, "-", &err), 0);
    assert_int_equal(emit_check_inputs(&fine, "/tmp/options-none", &err), 0);
    unlink(link_name);
    unlink(in);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses),
        cmocka_unit_test(accepts),
        cmocka_unit_test(helps),
        cmocka_unit_test(exit_codes),
        cmocka_unit_test(knows_launchers),
        cmocka_unit_test(names_the_flag_for_gpus),
        cmocka_unit_test(knows_other_mpis),
        cmocka_unit_test(knows_lonely_tasks),
        cmocka_unit_test(names_jobs_of_hydra),
        cmocka_unit_test(knows_jobs),
        cmocka_unit_test(knows_fences),
        cmocka_unit_test(keeps_inputs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
