/* A survey without a rank 0 that gathers the results: the last process makes the inventory. */
#include "survey/start/standalone.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/out_file.h"
#include "base/str.h"
#include "inventory/anonymous.h"
#include "inventory/inventory.h"
#include "inventory/wire/spool.h"
#include "inventory/wire/spool_owner.h"
#include "report/basis.h"
#include "report/merge/merge.h"
#include "survey/comm/limits.h"
#include "survey/root/emit.h"
#include "survey/start/exit_file.h"
#include "survey/start/slurm.h"

static void standalone_warn_of_merge(void *user, const char *text)
{
    (void)user;
    log_warning("%s", text);
}

static int merge_spool(const struct standalone_part *part, const char *survey,
                       struct report_basis *basis, struct inventory *inventory, struct err *err)
{
    char *const command[] = {(char *)"gpumemtopo-survey"};
    const struct report_merge_request request = {
        .basis = basis,
        .ends_now = true,
        .version = GPUMEMTOPO_VERSION,
        .command = command,
        .command_count = 1,
    };
    struct report_merge *merge = report_merge_create(standalone_warn_of_merge, NULL);
    int rc = report_merge_add_folder(merge, part->folder, survey, err);
    if (!rc)
        rc = report_merge_finish(merge, &request, inventory, err);
    report_merge_destroy(merge);
    if (rc || inventory->gpu_count || inventory->total_unmeasured)
        return rc;
    const char *lacks = slurm_missing_gpus(getenv);
    if (lacks)
        return err_set(err, -EINVAL, "no GPU to survey: %s", lacks);
    return err_set(err, -ENODEV, "no GPU to survey: none of %u ranks sees one",
                   inventory->total_ranks);
}

static void remove_spool(const struct standalone_part *part, const struct spool_owner *owner)
{
    if (!part->options->spool)
        spool_remove_files(part->folder);
    spool_owner_remove(owner);
    rmdir(part->folder); /* fails if it is not empty */
}

/* The process may be killed at any point of this. So the spool and the exit file say that the
 * inventory is made before the first file of the spool goes: another process would otherwise make
 * it again, from what is left. If ranks are lost, the spool stays, because they may add to it. */
static void leave_with_inventory(const struct standalone_part *part,
                                 const struct inventory *inventory, size_t files,
                                 enum survey_exit code, struct spool_owner *owner)
{
    spool_owner_set_merged(owner, files, (int)code);
    exit_file_write((int)code, true);
    if (!inventory->total_lost_ranks)
        remove_spool(part, owner);
}

/* The error is reported and the results stay: no other process need try. */
static void leave_without_inventory(const struct standalone_part *part,
                                    const struct inventory *inventory,
                                    const struct spool_owner *owner)
{
    if (!inventory->gpu_count && !inventory->total_unmeasured)
        remove_spool(part, owner);
    else
        spool_owner_remove(owner);
}

static int standalone_make_inventory(const struct standalone_part *part, size_t files,
                                     struct spool_owner *owner, enum survey_exit *out_code,
                                     struct err *err)
{
    const struct survey_options *options = part->options;
    struct inventory inventory = {0};
    struct report_basis basis = {0};
    const struct emit_target target = {
        .options = options,
        .output = owner->identity.output,
        .references = &basis.references,
    };
    int rc = report_basis_load(options->reference, options->baseline, &basis, err);
    if (!rc)
        rc = report_basis_load_world(options->world.items, options->world.count, &basis, err);
    if (!rc)
        rc = merge_spool(part, owner->identity.survey, &basis, &inventory, err);
    if (!rc && options->anonymous)
        anonymous_inventories((struct inventory *const[]){&inventory}, 1,
                              basis.has_baseline ? &basis.baseline : NULL);
    if (!rc)
        rc = emit_write(&target, &inventory, out_code, err);
    if (!rc)
        leave_with_inventory(part, &inventory, files, *out_code, owner);
    else
        leave_without_inventory(part, &inventory, owner);
    inventory_fini(&inventory);
    report_basis_fini(&basis);
    return rc;
}

/* True if the folder is on a file system of this node. The node may serve it to others all the
 * same. */
static bool standalone_folder_is_local(const char *folder)
{
    static const uint32_t local[] = {
        0x0000EF53, /* ext4 */
        0x58465342, /* xfs */
        0x9123683E, /* btrfs */
        0x2FC12FC1, /* zfs */
        0x01021994, /* tmpfs */
        0x794C7630, /* overlayfs */
        0x858458F6, /* ramfs */
        0xF2F52010, /* f2fs */
    };
    struct statfs info;
    if (statfs(folder, &info))
        return false;
    for (size_t i = 0; i < COUNT_OF(local); i++)
        if ((uint32_t)info.f_type == local[i])
            return true;
    return false;
}

/* True if a task of another node has begun, or if it is not known which tasks are on this one. */
static bool standalone_sees_others(const struct standalone_part *part, const char *survey,
                                   size_t plans)
{
    char *end = NULL;
    size_t own = 0;
    for (const char *at = part->node_ranks; *at; at = *end == ',' ? end + 1 : end) {
        unsigned long rank = strtoul(at, &end, 10);
        if (end == at)
            return true;
        own += spool_has_plan(part->folder, survey, (uint32_t)rank);
    }
    return plans > own;
}

/* No task of another node has been seen: no inventory is made, since all others would be lost in
 * it. The tasks of this node return this exit code, too. If another node is only late, its tasks
 * find the results here, and the last of them makes the inventory. */
static int standalone_refuse(const struct standalone_part *part, size_t files,
                             struct spool_owner *owner, struct err *err)
{
    const char *node = getenv("SLURMD_NODENAME");
    spool_owner_set_merged(owner, files, SURVEY_EXIT_BAD_INPUT);
    return err_set_at(err, -EINVAL, part->folder, 0, 0,
                      "node %s saw no task of another node here: without MPI all nodes must share "
                      "this folder. Name a shared one with --output, or start with srun "
                      "--mpi=pmix. What this node has measured is kept here; gpumemtopo-report "
                      "merge reads it",
                      node ? node : "(no name)");
}

/* No other process holds a lock on the spool. */
static int merge_as_last(const struct standalone_part *part, struct spool_owner *owner,
                         enum survey_exit *out_code, struct err *err)
{
    struct spool_count count;
    if (spool_count(part->folder, owner->identity.survey, &count))
        return STANDALONE_OTHERS_RUN;
    if (owner->identity.merged && count.files <= owner->identity.merged) {
        *out_code = (enum survey_exit)owner->identity.exit_code;
        exit_file_write((int)*out_code, true);
        if (count.files < owner->identity.merged)
            remove_spool(part, owner); /* whoever began to remove it was killed */
        return STANDALONE_DONE;
    }
    bool alone = part->others_due && part->node_ranks &&
                 !standalone_sees_others(part, owner->identity.survey, count.plans);
    if (alone && part->local)
        return standalone_refuse(part, count.files, owner, err);
    if (count.plans < part->tasks)
        return STANDALONE_TOO_EARLY;
    if (alone)
        log_warning(
            "%s: no task of another node was seen here: if they ran, the nodes do not share "
            "this folder",
            part->folder);
    if (part->rank_0_lost && out_file_in_place(owner->identity.output))
        return STANDALONE_RANK_0_HANGS; /* it may have written to the pipe or device already */
    int rc = standalone_make_inventory(part, count.files, owner, out_code, err);
    return rc ? rc : STANDALONE_MADE;
}

int standalone_merge_if_last(const struct standalone_part *part, enum survey_exit *out_code,
                             struct err *err)
{
    struct spool_owner owner = {0};
    struct err ignored = {0};
    int rc = spool_owner_open(part->owner, part->rank, &owner, &ignored);
    if (rc)
        return rc == -ENOENT ? STANDALONE_DONE : STANDALONE_OTHERS_RUN;
    if (owner.unlocked) {
        spool_owner_fini(&owner);
        return err_set(err, -ENOLCK,
                       "%s: the file system has no locks, so no rank knows whether it is the last: "
                       "make the inventory with gpumemtopo-report merge",
                       part->folder);
    }
    switch (spool_owner_leave(&owner)) {
    case SPOOL_NOBODY:
        rc = merge_as_last(part, &owner, out_code, err);
        break;
    case SPOOL_RANK_0:
        rc = STANDALONE_RANK_0_HANGS;
        break;
    case SPOOL_OTHERS:
        rc = STANDALONE_OTHERS_RUN;
        break;
    case SPOOL_GONE:
        rc = STANDALONE_DONE;
        break;
    }
    spool_owner_fini(&owner);
    return rc;
}

/* Waits for the others, and makes the inventory if this process is the last. The wait is limited,
 * because a process that hangs keeps its lock. taken_s: since the start of this process. */
static void standalone_wait(struct standalone_part *part, double taken_s, double start_timeout_s,
                            struct survey_end *end)
{
    double begin_until_s = start_timeout_s - taken_s;
    double other_node_until_s =
        part->local ? fmin(LIMIT_UNSHARED_S - taken_s, begin_until_s) : begin_until_s;
    double end_until_s = start_timeout_s + LIMIT_TRIES * end->limit_s + LIMIT_GRACE_S;
    const struct timespec pause = {.tv_nsec = 100000000};
    struct clock_awake clock = {0};
    struct err err = {0};
    for (;;) {
        double now_s = clock_awake_tick(&clock, clock_monotonic_s());
        bool stop = survey_interrupted() || now_s > end_until_s;
        if (now_s >= begin_until_s || stop)
            part->tasks = 0;
        part->others_due = now_s >= other_node_until_s;
        enum survey_exit code = SURVEY_EXIT_OK;
        int state = standalone_merge_if_last(part, &code, &err);
        /* If the last process fails, the survey has failed. If no process can know that it is the
         * last, rank 0 reports that. */
        end->reported = state == STANDALONE_MADE || (state < 0 && state != -ENOLCK);
        if (state == STANDALONE_MADE)
            end->code = code;
        end->others_code = state == STANDALONE_DONE ? code : SURVEY_EXIT_OK;
        if (state < 0) {
            log_failure(&err);
            end->code = state == -EINVAL ? SURVEY_EXIT_BAD_INPUT : SURVEY_EXIT_NO_REPORT;
        }
        bool others = state >= 0 && state <= STANDALONE_TOO_EARLY;
        if (others && stop)
            log_warning("other ranks still measure; results are in %s: make an inventory of them "
                        "with gpumemtopo-report merge",
                        part->folder);
        if (!others || stop)
            return;
        nanosleep(&pause, NULL);
    }
}

struct survey_end standalone_run(const struct comm_place *place, const struct survey_options *given,
                                 int argc, char *const *argv, double start_timeout_s)
{
    struct survey_end end = {.code = SURVEY_EXIT_BAD_INPUT};
    struct survey_options options = *given;
    double begun_s = clock_monotonic_s();
    if (!*place->job) {
        if (!place->task)
            log_error("this launcher does not name the job, so its %d tasks cannot find each other "
                      "without MPI: set GPUMEMTOPO_JOB to the same new name for all tasks of a "
                      "survey",
                      place->tasks);
        return end;
    }
    char *record = given->record ? str_format("%s.rank-%d", given->record, place->task) : NULL;
    options.no_mpi = true;
    options.record = record;
    options.no_progress = true;
    struct comm *comm = comm_alone_create(place);
    end = survey_run(comm, &options, argc, argv);
    comm_destroy(comm);
    if (end.spool) {
        struct standalone_part part = {
            .folder = end.spool,
            .owner = end.owner,
            .rank = place->task,
            .options = &options,
            .tasks = (size_t)place->tasks,
            .node_ranks = place->node_ranks,
            .local = standalone_folder_is_local(end.spool),
        };
        standalone_wait(&part, clock_monotonic_s() - begun_s, start_timeout_s, &end);
    }
    survey_end_fini(&end);
    free(record);
    return end;
}
