/* Finds the launcher of this process, from the environment and from its ancestors. */
#include "survey/start/launcher.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "inventory/wire/spool.h"

typedef char *get_function(const char *name);

/* The variables of one launcher. The first row whose rank variable is set is used: an mpirun inside
 * a Slurm step counts as mpirun. */
struct dialect {
    const char *rank, *size;
    const char *jobs[3]; /* together they name the job; the first must be set */
    const char *marker;  /* the row counts only if this is set; NULL: always */
};

/* Hydra starts its proxies by srun: in their environment, the variables of Slurm are those of the
 * proxy. A batch shell has SLURM_PROCID, too, but no step. */
static const struct dialect dialects[] = {
    {"OMPI_COMM_WORLD_RANK",
     "OMPI_COMM_WORLD_SIZE",
     {"PMIX_NAMESPACE", "OMPI_MCA_orte_hnp_uri", "SLURM_JOB_ID"}},
    {"PMI_RANK", "PMI_SIZE", {"PALS_APID"}, .marker = "MPI_LOCALNRANKS"},
    {"SLURM_PROCID",
     "SLURM_STEP_NUM_TASKS",
     {"SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT"},
     .marker = "SLURM_STEP_ID"},
    {"FLUX_TASK_RANK", "FLUX_JOB_SIZE", {"FLUX_JOB_ID"}},
    {"PMIX_RANK", "SLURM_STEP_NUM_TASKS", {"PMIX_NAMESPACE"}},
    {"PMI_RANK", "PMI_SIZE", {"PALS_APID"}},
};

static bool variable_number(get_function *get_variable, const char *name, int *out)
{
    const char *text = name ? get_variable(name) : NULL;
    uint64_t value = 0;
    if (!text || str_parse_u64(text, &value) || value > INT32_MAX)
        return false;
    *out = (int)value;
    return true;
}

/* Makes the name from the first variable, reduced to plain characters, and a hash of all: the
 * number of an mpirun is reused, and so is the id of a job that Slurm requeues. The user can set
 * GPUMEMTOPO_JOB if the launcher sets no name. */
static void name_job(get_function *get_variable, const struct dialect *dialect,
                     struct launcher *launcher)
{
    char all[1024] = "";
    const char *given = get_variable("GPUMEMTOPO_JOB");
    const char *first = given ? given : get_variable(dialect->jobs[0]);
    if (!first)
        return;
    for (size_t i = 0; i < COUNT_OF(dialect->jobs); i++) {
        const char *more = dialect->jobs[i] ? get_variable(dialect->jobs[i]) : NULL;
        size_t length = strlen(all);
        snprintf(all + length, sizeof all - length, "%s;", more ? more : "");
    }
    snprintf(launcher->job, sizeof launcher->job, "%.64s-%08x", first, (unsigned)str_hash(all));
    spool_plain_name(launcher->job);
}

/* Says what to do if MPI cannot find the other tasks. needed: of the MPI that is used. */
static int launcher_refuse(const struct launcher *launcher, enum launcher_pmi needed,
                           struct err *err)
{
    static const char *const way_out = "or survey without MPI (--no-mpi)";
    if (launcher->slurm)
        return err_set(err, -EINVAL,
                       "this Slurm step has %d tasks but not the %s that %s needs: start it with "
                       "srun --mpi=%s, %s",
                       launcher->size, needed == LAUNCHER_PMIX ? "PMIx" : "PMI-2",
                       needed == LAUNCHER_PMIX ? "Open MPI" : "MPICH",
                       needed == LAUNCHER_PMIX ? "pmix" : "pmi2", way_out);
    if (needed == LAUNCHER_PMIX)
        return err_set(err, -EINVAL,
                       "%s has started %d tasks without the PMIx that Open MPI needs: start them "
                       "with its mpirun, %s",
                       launcher->hydra ? "the mpiexec of MPICH" : "a launcher", launcher->size,
                       way_out);
    return err_set(err, -EINVAL,
                   "a launcher has started %d tasks without the PMI that MPICH needs (Open MPI's "
                   "mpirun does not have it): start them with mpiexec.hydra -disable-auto-cleanup, "
                   "%s",
                   launcher->size, way_out);
}

int launcher_check_mpi(const struct launcher *launcher, enum launcher_pmi needed, struct err *err)
{
    /* Open MPI does not know the PMI of Hydra and of Slurm. Others are tried. */
    bool useless = needed == LAUNCHER_PMIX && launcher->pmi == LAUNCHER_PMI &&
                   (launcher->slurm || launcher->hydra);
    return useless && launcher->size > 1 ? launcher_refuse(launcher, needed, err) : 0;
}

int launcher_check_size(const struct launcher *launcher, enum launcher_pmi needed, int mpi_size,
                        struct err *err)
{
    return launcher->size > 1 && mpi_size == 1 ? launcher_refuse(launcher, needed, err) : 0;
}

static const struct dialect *launcher_find_dialect(get_function *get_variable, int *out_rank)
{
    for (size_t i = 0; i < COUNT_OF(dialects); i++)
        if (variable_number(get_variable, dialects[i].rank, out_rank) &&
            (!dialects[i].marker || get_variable(dialects[i].marker)))
            return &dialects[i];
    return NULL;
}

void launcher_hydra_job(const char *words, size_t length, char *out_name, size_t size)
{
    *out_name = '\0';
    if (!memchr(words, '\0', length) || !strstr(words, "hydra_pmi_proxy"))
        return;
    for (const char *at = words, *end = words + length; at < end;) {
        const char *zero = memchr(at, '\0', (size_t)(end - at));
        const char *value = zero ? zero + 1 : end;
        if (zero && value < end && memchr(value, '\0', (size_t)(end - value)) &&
            strcmp(at, "--control-port") == 0) {
            snprintf(out_name, size, "hydra-%s", value);
            spool_plain_name(out_name);
            return;
        }
        at = value;
    }
}

/* Reads /proc/PID/NAME; "" if that fails. Returns its length. */
static size_t launcher_read_process_file(long pid, const char *name, char *text, size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/%s", pid, name);
    FILE *file = fopen(path, "re");
    size_t length = file ? fread(text, 1, size - 1, file) : 0;
    text[length] = '\0';
    if (file)
        fclose(file);
    return length;
}

/* 0 if it cannot be read. The name of a program, in parentheses, may have any characters. */
static long launcher_parent_of(long pid)
{
    char text[512];
    long parent = 0;
    launcher_read_process_file(pid, "stat", text, sizeof text);
    const char *behind = strrchr(text, ')');
    return behind && sscanf(behind, ") %*c %ld", &parent) == 1 ? parent : 0;
}

/* Looks for Hydra's proxy among the ancestors of this process. */
static void launcher_find_hydra_job(char *out_name, size_t size)
{
    enum { ANCESTORS_MAX = 16, WORDS_BYTES = 4096 };
    char words[WORDS_BYTES];
    long pid = (long)getppid();
    for (int i = 0; i < ANCESTORS_MAX && pid > 1 && !*out_name; i++) {
        size_t length = launcher_read_process_file(pid, "cmdline", words, sizeof words);
        launcher_hydra_job(words, length, out_name, size);
        pid = launcher_parent_of(pid);
    }
}

void launcher_detect(char *(*get_variable)(const char *name), struct launcher *out_launcher)
{
    struct launcher launcher = {0};
    const struct dialect *found = launcher_find_dialect(get_variable, &launcher.rank);
    if (found) {
        variable_number(get_variable, found->size, &launcher.size);
        name_job(get_variable, found, &launcher);
    }
    bool mpirun = get_variable("OMPI_COMM_WORLD_SIZE");
    bool pmix = get_variable("PMIX_RANK") || get_variable("PMIX_NAMESPACE");
    bool pmi = get_variable("PMI_RANK");
    launcher.hydra = pmi && !mpirun && get_variable("MPI_LOCALNRANKS");
    launcher.slurm = get_variable("SLURM_STEP_ID") && !mpirun && !launcher.hydra;
    /* A launcher inside another one inherits the variables of the outer one. */
    if (mpirun || (pmix && !launcher.hydra))
        launcher.pmi = LAUNCHER_PMIX;
    else if (pmi)
        launcher.pmi = LAUNCHER_PMI;
    /* Seen with Slurm 22.05 and PMIx 4.2: the barrier at the end of MPI_Init waits only for tasks
     * of the same node, unless SLURM_PMIX_FENCE=ring. */
    const char *fence = get_variable("SLURM_PMIX_FENCE");
    launcher.unfenced =
        launcher.slurm && pmix && launcher.size > 1 && !(fence && strcmp(fence, "ring") == 0);
    if (launcher.hydra && !*launcher.job)
        launcher_find_hydra_job(launcher.job, sizeof launcher.job);
    if (launcher.slurm)
        variable_number(get_variable, "SLURM_STEP_NUM_NODES", &launcher.nodes);
    if (launcher.nodes > 1)
        launcher.node_ranks = get_variable("SLURM_GTIDS");
    *out_launcher = launcher;
}
