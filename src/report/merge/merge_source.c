/* One file of a merge, and the GPUs of all files: which entry of a GPU is used. */
#include "report/merge/merge_source.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/sort.h"
#include "base/str.h"
#include "base/yaml.h"
#include "inventory/results.h"
#include "inventory/wire/spool.h"
#include "judge/world.h"
#include "report/record_bytes.h"

void merge_pool_add(struct merge_pool *pool, const struct merge_entry *entry)
{
    pool->entries =
        mem_grow(pool->entries, &pool->capacity, pool->count + 1, sizeof *pool->entries);
    pool->entries[pool->count++] = *entry;
}

/* By GPU; those cut short first; then by time. Of equal times, the file that was added later comes
 * last. */
static int merge_entry_order(const void *a, const void *b)
{
    const struct merge_entry *left = a, *right = b;
    int order = strcmp(left->uuid, right->uuid);
    if (!order)
        order = right->cut_short - left->cut_short;
    if (!order)
        order = (left->time_ms > right->time_ms) - (left->time_ms < right->time_ms);
    return order ? order : (left->source > right->source) - (left->source < right->source);
}

/* Drops the plan of a GPU if the same survey has a result for it. Times are ignored, since clocks
 * of nodes differ. */
static void drop_carried_out(struct merge_entry *group, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < count && group[i].planned && !group[i].dropped; k++)
            group[i].dropped = !group[k].planned && str_equal(group[k].survey, group[i].survey);
}

static bool source_is_overtaken(const struct merge_entry *entry, const struct merge_entry *kept)
{
    return entry->dropped && entry->survey && kept->survey &&
           !str_equal(entry->survey, kept->survey);
}

void merge_pool_settle(struct merge_pool *pool,
                       void (*report)(void *user, const struct merge_entry *kept,
                                      const struct merge_entry *dropped),
                       void *user)
{
    if (pool->count)
        sort_stable(pool->entries, pool->count, sizeof *pool->entries, merge_entry_order);
    for (size_t from = 0, to = 0; from < pool->count; from = to) {
        struct merge_entry *kept = NULL;
        while (to < pool->count && strcmp(pool->entries[to].uuid, pool->entries[from].uuid) == 0)
            to++;
        drop_carried_out(&pool->entries[from], to - from);
        for (size_t i = from; i < to; i++)
            kept = pool->entries[i].dropped ? kept : &pool->entries[i];
        for (size_t i = from; i < to; i++) {
            struct merge_entry *entry = &pool->entries[i];
            bool second = entry != kept && !entry->dropped;
            entry->dropped |= second;
            entry->overtaken = source_is_overtaken(entry, kept);
            if (second && !entry->planned)
                report(user, kept, entry);
        }
    }
}

void merge_pool_fini(struct merge_pool *pool)
{
    free(pool->entries);
    memset(pool, 0, sizeof *pool);
}

/* The end of the second in which an inventory was made: it is newer than the plan of its survey,
 * which may be of the same second. 0 if the stamp is invalid. */
static uint64_t parse_time_ms(const char *stamp)
{
    int64_t seconds = 0;
    return clock_parse_stamp(stamp, &seconds) || seconds < 0 ? 0 : (uint64_t)seconds * 1000 + 999;
}

/* Refuses GPUs of a model that the file does not have: they would be judged as GPUs without a
 * model. */
static int source_check_models(const struct inventory *inventory, const char *path, struct err *err)
{
    struct inventory_lookup *lookup = NULL;
    int rc = 0;
    lookup = inventory_lookup_create(inventory);
    for (size_t i = 0; i < inventory->gpu_count && !rc; i++) {
        const struct inventory_gpu *gpu = &inventory->gpus[i];
        if (gpu->model && !inventory_model_of(lookup, gpu))
            rc = err_set_at(err, -EINVAL, path, 0, 0,
                            "%.80s is of model \"%.80s\", which is not there",
                            gpu->uuid ? gpu->uuid : "a GPU", gpu->model);
    }
    inventory_lookup_destroy(lookup);
    return rc;
}

/* Other files of this project that may be given by mistake. */
static int source_check_kind(const struct strbuf *bytes, const char *path, struct err *err)
{
    if (report_record_begins(bytes))
        return err_set_at(err, -EINVAL, path, 0, 0,
                          "is a record: gpumemtopo-survey --replay makes an inventory of it");
    if (world_is_file(path))
        return err_set_at(err, -EINVAL, path, 0, 0,
                          "is a world file: --world judges the GPUs of the other files with it");
    return 0;
}

static int merge_read_bytes(const struct strbuf *bytes, const char *path, const struct stat *info,
                            struct merge_source *source, struct err *err)
{
    if (!spool_begins(bytes->data, bytes->length)) {
        source->kind = MERGE_INVENTORY;
        int rc = source_check_kind(bytes, path, err);
        if (rc)
            return rc;
        rc = inventory_read_text(bytes->data ? bytes->data : "", bytes->length, path,
                                 &source->inventory, err);
        if (!rc)
            rc = source_check_models(&source->inventory, path, err);
        source->time_ms = rc ? 0 : parse_time_ms(source->inventory.generated);
        return rc;
    }
    int rc = spool_trust_file(path, info, err);
    if (rc)
        return rc;
    rc = spool_read(bytes->data, bytes->length, path, &source->spool, err);
    source->kind = source->spool.kind == SPOOL_SURVEY ? MERGE_SURVEY : MERGE_GPU;
    source->time_ms = source->spool.origin.time_ms;
    return rc;
}

int merge_source_read(const char *path, struct merge_source *out_source, struct err *err)
{
    struct merge_source source = {.name = str_copy(path)};
    struct strbuf bytes = {0};
    struct stat info;
    int rc = yaml_load_text_of(path, &yaml_limits_plain, &bytes, &info, err);
    if (!rc)
        rc = merge_read_bytes(&bytes, path, &info, &source, err);
    strbuf_fini(&bytes);
    if (rc)
        merge_source_fini(&source);
    else
        *out_source = source;
    return rc;
}

void merge_source_fini(struct merge_source *source)
{
    free(source->name);
    spool_file_fini(&source->spool);
    inventory_fini(&source->inventory);
    memset(source, 0, sizeof *source);
}

static bool source_is_cut_short(enum gpu_status status, const char *reason)
{
    return status == GPU_FAILED && reason &&
           strncmp(reason, GPU_RESULT_INTERRUPTED, sizeof GPU_RESULT_INTERRUPTED - 1) == 0;
}

/* The sorted UUIDs of GPUs that an interrupted survey did not measure, freed with free(). */
static const char **source_find_cut_short(const struct inventory *inventory, size_t *out_count)
{
    const char **uuids = mem_array(inventory->unmeasured_count, sizeof *uuids);
    size_t count = 0;
    for (size_t i = 0; i < inventory->unmeasured_count; i++) {
        const struct inventory_unmeasured *entry = &inventory->unmeasured[i];
        if (entry->uuid && source_is_cut_short(entry->status, entry->reason))
            uuids[count++] = entry->uuid;
    }
    sort_stable(uuids, count, sizeof *uuids, str_item_order);
    *out_count = count;
    return uuids;
}

static void pool_inventory(const struct merge_source *source, size_t number,
                           struct merge_pool *pool)
{
    const struct inventory *inventory = &source->inventory;
    size_t cut_count = 0;
    const char **cut_short = source_find_cut_short(inventory, &cut_count);
    double wall_s = isfinite(inventory->wall_s) ? inventory->wall_s : 0;
    uint64_t wall_ms = (uint64_t)(fmin(fmax(wall_s, 0), 1e9) * 1000);
    uint64_t begun_ms = source->time_ms > wall_ms ? source->time_ms - wall_ms : 0;
    for (size_t i = 0; i < inventory->gpu_count; i++) {
        const struct inventory_gpu *gpu = &inventory->gpus[i];
        const char *uuid = gpu->uuid;
        const struct merge_entry entry = {
            .uuid = uuid,
            .cut_short = uuid && bsearch(&uuid, cut_short, cut_count, sizeof uuid, str_item_order),
            /* Nothing is known about a lost GPU since the survey began. */
            .time_ms = gpu->status == GPU_LOST ? begun_ms : source->time_ms,
            .source = number,
            .place = i,
        };
        if (uuid)
            merge_pool_add(pool, &entry);
    }
    free(cut_short);
}

static void pool_plan(struct merge_source *source, size_t number, struct merge_pool *pool)
{
    struct spool_survey *survey = &source->spool.survey;
    for (size_t i = 0; i < survey->expected_count; i++) {
        struct gpu_result *gpu = &survey->expected[i];
        gpu->status = GPU_LOST;
        free(gpu->reason);
        gpu->reason = str_copy("its rank left no result");
        const struct merge_entry entry = {
            .uuid = gpu->uuid,
            .time_ms = source->time_ms,
            .source = number,
            .survey = source->spool.origin.survey,
            .planned = true,
            .result = gpu,
        };
        merge_pool_add(pool, &entry);
    }
}

void merge_source_pool(struct merge_source *source, size_t number, struct merge_pool *pool)
{
    const struct merge_entry entry = {
        .uuid = source->spool.gpu.uuid,
        .time_ms = source->time_ms,
        .source = number,
        .survey = source->spool.origin.survey,
        .cut_short = source_is_cut_short(source->spool.gpu.status, source->spool.gpu.reason),
        .result = &source->spool.gpu,
    };
    if (source->kind == MERGE_INVENTORY)
        pool_inventory(source, number, pool);
    else if (source->kind == MERGE_SURVEY)
        pool_plan(source, number, pool);
    else
        merge_pool_add(pool, &entry);
}
