/* Finds the launcher of this process from the environment. */
#include "survey/start/launcher.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "inventory/wire/spool.h"

typedef char *get_function(const char *name);

/* The variables of one launcher. The first row whose rank variable is set is used: an mpirun inside
 * a Slurm step counts as mpirun. */
struct dialect {
    const char *rank, *size;
    const char *jobs[3]; /* together they name the job; the first must be set */
    bool named;          /* the row counts only if jobs[0] is set */
};

/* A batch shell has SLURM_PROCID, too, but no step. */
static const struct dialect dialects[] = {
    {"OMPI_COMM_WORLD_RANK",
     "OMPI_COMM_WORLD_SIZE",
     {"PMIX_NAMESPACE", "OMPI_MCA_orte_hnp_uri", "SLURM_JOB_ID"}},
    {"SLURM_PROCID",
     "SLURM_STEP_NUM_TASKS",
     {"SLURM_STEP_ID", "SLURM_JOB_ID", "SLURM_RESTART_COUNT"},
     true},
    {"FLUX_TASK_RANK", "FLUX_JOB_SIZE", {"FLUX_JOB_ID"}},
    {"PMIX_RANK", "SLURM_STEP_NUM_TASKS", {"PMIX_NAMESPACE"}},
    {"PMI_RANK", "PMI_SIZE", {"PALS_APID"}},
};

static bool number(get_function *get_variable, const char *name, int *out)
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

int launcher_detect(char *(*get_variable)(const char *name), struct launcher *out_launcher,
                    struct err *err)
{
    struct launcher launcher = {0};
    const struct dialect *found = NULL;
    for (size_t i = 0; i < COUNT_OF(dialects) && !found; i++)
        if (number(get_variable, dialects[i].rank, &launcher.rank) &&
            (!dialects[i].named || get_variable(dialects[i].jobs[0])))
            found = &dialects[i];
    if (found) {
        number(get_variable, found->size, &launcher.size);
        name_job(get_variable, found, &launcher);
    }
    bool mpirun = get_variable("OMPI_COMM_WORLD_SIZE");
    bool pmix = get_variable("PMIX_RANK") || get_variable("PMIX_NAMESPACE");
    launcher.slurm = get_variable("SLURM_STEP_ID") && !mpirun;
    launcher.present = mpirun || pmix || (get_variable("PMI_RANK") && !launcher.slurm);
    /* Seen with Slurm 22.05 and PMIx 4.2: the barrier at the end of MPI_Init waits only for tasks
     * of the same node, unless SLURM_PMIX_FENCE=ring. */
    const char *fence = get_variable("SLURM_PMIX_FENCE");
    launcher.unfenced =
        launcher.slurm && launcher.size > 1 && !(fence && strcmp(fence, "ring") == 0);
    *out_launcher = launcher;
    /* Under Slurm, Open MPI uses only PMIx (PMI_RANK alone is Slurm's own PMI-2). Without PMIx,
     * every task would act as if it were alone, and all would survey the same GPUs. */
    if (launcher.slurm && !pmix && launcher.size > 1)
        return err_set(
            err, -EINVAL,
            "this Slurm step has %d tasks but no PMIx: start it with srun --mpi=pmix, or "
            "survey without MPI (--no-mpi)",
            launcher.size);
    return 0;
}
