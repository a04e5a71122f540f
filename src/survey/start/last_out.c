/* Makes the inventory of a survey without a rank 0 from the spool. */
#include "survey/start/last_out.h"

#include <errno.h>
#include <unistd.h>

#include "base/log.h"
#include "base/out_file.h"
#include "inventory/anonymous.h"
#include "inventory/inventory.h"
#include "inventory/wire/spool.h"
#include "inventory/wire/spool_owner.h"
#include "report/basis.h"
#include "report/merge.h"
#include "survey/root/emit.h"

static void say(void *user, const char *text)
{
    (void)user;
    log_warning("%s", text);
}

static int merge_spool(const struct last_out *input, const char *survey, struct report_basis *basis,
                       struct inventory *inventory, struct err *err)
{
    char *const command[] = {(char *)"gpumemtopo-survey"};
    const struct report_merge_request request = {
        .basis = basis,
        .ends_now = true,
        .version = GPUMEMTOPO_VERSION,
        .command = command,
        .command_count = 1,
    };
    struct report_merge *merge = NULL;
    int rc = report_merge_create(say, NULL, &merge, err);
    if (rc)
        return rc;
    rc = report_merge_add_folder(merge, input->folder, survey, err);
    if (!rc)
        rc = report_merge_finish(merge, &request, inventory, err);
    report_merge_destroy(merge);
    if (rc)
        return rc;
    if (!inventory->gpu_count && !inventory->total_unmeasured)
        return err_set(err, -ENODEV, "no GPU to survey: none of %u ranks sees one",
                       inventory->total_ranks);
    return 0;
}

/* Removes the spool if all of it is in the inventory and no rank can add to it. */
static void tidy(const struct last_out *input, const struct inventory *inventory, size_t files,
                 enum survey_exit code, struct spool_owner *owner)
{
    if (inventory->total_lost_ranks) {
        spool_owner_set_merged(owner, files, (int)code);
        return;
    }
    if (!input->options->spool)
        spool_remove_files(input->folder);
    spool_owner_remove(owner);
    if (!input->options->spool)
        rmdir(input->folder);
}

static void forsake(const struct last_out *input, const struct inventory *inventory,
                    const struct spool_owner *owner)
{
    if (!inventory->gpu_count && !inventory->total_unmeasured && !input->options->spool)
        spool_remove_files(input->folder);
    spool_owner_remove(owner);
    rmdir(input->folder); /* fails if it is not empty */
}

static int make(const struct last_out *input, size_t files, struct spool_owner *owner,
                enum survey_exit *out_code, struct err *err)
{
    struct inventory inventory = {0};
    struct report_basis basis = {0};
    const struct emit_target target = {
        .options = input->options,
        .output = owner->identity.output,
        .references = &basis.references,
    };
    int rc = report_basis_load(input->options->reference, input->options->baseline, &basis, err);
    if (rc)
        goto out;
    rc = report_basis_load_world(input->options->world, input->options->world_count, &basis, err);
    if (rc)
        goto out;
    rc = merge_spool(input, owner->identity.survey, &basis, &inventory, err);
    if (rc)
        goto out;
    if (input->options->anonymous &&
        anonymous_inventories((struct inventory *const[]){&inventory}, 1,
                              basis.has_baseline ? &basis.baseline : NULL)) {
        rc = err_no_memory(err);
        goto out;
    }
    rc = emit_write(&target, &inventory, out_code, err);
out:
    if (rc) /* the error is reported and the results stay: no other process need try */
        forsake(input, &inventory, owner);
    else
        tidy(input, &inventory, files, *out_code, owner);
    inventory_fini(&inventory);
    report_basis_fini(&basis);
    return rc;
}

/* No other process holds a lock on the spool. */
static int finish(const struct last_out *input, struct spool_owner *owner,
                  enum survey_exit *out_code, struct err *err)
{
    struct spool_count count;
    if (spool_count(input->folder, owner->identity.survey, &count))
        return LAST_OUT_OTHERS;
    if (count.plans < input->tasks)
        return LAST_OUT_EARLY;
    if (count.files && count.files == owner->identity.merged) {
        *out_code = (enum survey_exit)owner->identity.exit_code;
        return LAST_OUT_DONE;
    }
    if (input->orphans && out_file_in_place(owner->identity.output))
        return LAST_OUT_RANK_0; /* rank 0 may have written to the pipe or device already */
    int rc = make(input, count.files, owner, out_code, err);
    return rc ? rc : LAST_OUT_MADE;
}

int last_out_try(const struct last_out *input, enum survey_exit *out_code, struct err *err)
{
    struct spool_owner owner = {0};
    struct err ignored = {0};
    int rc = spool_owner_open(input->owner, input->rank, &owner, &ignored);
    if (rc)
        return rc == -ENOENT ? LAST_OUT_DONE : LAST_OUT_OTHERS;
    if (owner.unlocked) {
        spool_owner_fini(&owner);
        return err_set(err, -ENOLCK,
                       "%s: the file system has no locks, so no rank knows whether it is the last: "
                       "make the inventory with gpumemtopo-report merge",
                       input->folder);
    }
    switch (spool_owner_leave(&owner)) {
    case SPOOL_NOBODY:
        rc = finish(input, &owner, out_code, err);
        break;
    case SPOOL_RANK_0:
        rc = LAST_OUT_RANK_0;
        break;
    case SPOOL_OTHERS:
        rc = LAST_OUT_OTHERS;
        break;
    case SPOOL_GONE:
        rc = LAST_OUT_DONE;
        break;
    }
    spool_owner_fini(&owner);
    return rc;
}
