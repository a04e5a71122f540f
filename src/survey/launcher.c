/* Who started this process, read from the environment. */
#include "survey/launcher.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

static bool number(const char *(*get_variable)(const char *), const char *name, uint64_t *out)
{
    const char *text = get_variable(name);
    return text && str_parse_u64(text, out) == 0 && *out <= INT32_MAX;
}

/* As part of a file's name. A job that Slurm starts again has the name that it had before, and what
 * it left then is none of its business now. */
static void name_job(const char *text, const char *restarts, struct launcher *out_launcher)
{
    static const char fit[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    bool again = text && restarts;
    snprintf(out_launcher->job, sizeof out_launcher->job, "%s%s%s", text ? text : "",
             again ? "-" : "", again ? restarts : "");
    for (char *c = out_launcher->job; *c; c++)
        if (!strchr(fit, *c))
            *c = '_';
}

int launcher_detect(const char *(*get_variable)(const char *name), struct launcher *out_launcher,
                    struct err *err)
{
    static const char *const rank_names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"};
    static const char *const signs[] = {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMIX_NAMESPACE",
                                        "PMI_RANK"};
    static const char *const size_names[] = {"OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS"};
    struct launcher launcher = {0};
    uint64_t value = 0;
    for (size_t i = 0; i < COUNT_OF(signs); i++)
        launcher.present |= get_variable(signs[i]) != NULL;
    bool ranked = false;
    for (size_t i = 0; i < COUNT_OF(rank_names) && !ranked; i++)
        if ((ranked = number(get_variable, rank_names[i], &value)))
            launcher.rank = (int)value;

    for (size_t i = 0; i < COUNT_OF(size_names) && !launcher.size; i++)
        if (number(get_variable, size_names[i], &value))
            launcher.size = (int)value;

    /* Open MPI speaks PMIx only. Without it every task of the step would believe to be alone and
     * all would survey the same GPUs. PMI_RANK alone is Slurm's own PMI-2. */
    bool pmix = get_variable("PMIX_RANK") || get_variable("PMIX_NAMESPACE") ||
                get_variable("OMPI_COMM_WORLD_SIZE");
    uint64_t tasks = 0;
    bool step = get_variable("SLURM_STEP_ID") &&
                number(get_variable, "SLURM_STEP_NUM_TASKS", &tasks) && tasks > 1;
    if (step && !pmix) {
        if (number(get_variable, "SLURM_PROCID", &value))
            launcher.rank = (int)value;
        *out_launcher = launcher;
        return err_set(err, -EINVAL,
                       "this Slurm step has %d tasks but no PMIx: start it with srun --mpi=pmix",
                       (int)tasks);
    }
    launcher.slurm = get_variable("SLURM_STEP_ID") && !get_variable("OMPI_COMM_WORLD_SIZE");
    name_job(get_variable("PMIX_NAMESPACE"),
             launcher.slurm ? get_variable("SLURM_RESTART_COUNT") : NULL, &launcher);
    /* Seen with Slurm 22.05 and PMIx 4.2: the barrier at the end of MPI_Init waits for the tasks of
     * the own node only, unless Slurm's fences go round a ring. */
    const char *fence = get_variable("SLURM_PMIX_FENCE");
    launcher.loose = step && !(fence && strcmp(fence, "ring") == 0);
    *out_launcher = launcher;
    return 0;
}
