/* Makes one inventory from spool files and inventories. */
#include "report/merge/merge.h"

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "base/sort.h"
#include "base/str.h"
#include "base/yaml.h"
#include "report/merge/merge_source.h"

/* Files that could not be read. A GPU whose spool file is among them is failed, not lost. */
struct merge_skipped {
    char **paths;
    size_t count, capacity;
    size_t of_plans; /* how many are files of GPUs that a plan has */
};

/* The spool file of a GPU in the folder of the plan; freed with free(). */
static char *spool_file_beside(const char *plan, const char *uuid)
{
    const char *slash = strrchr(plan, '/');
    char *folder = slash ? str_copy_n(plan, (size_t)(slash - plan)) : str_copy(".");
    char *path = spool_gpu_path(folder, uuid);
    if (!slash) /* without "./" */
        memmove(path, path + 2, strlen(path + 2) + 1);
    free(folder);
    return path;
}

/* Sets GPUs of the plan whose spool file was skipped to failed, with that as reason. The plan must
 * be in the pool. */
static void merge_skipped_mark(struct merge_skipped *skipped, struct merge_source *plan)
{
    struct spool_survey *survey = &plan->spool.survey;
    if (!skipped->count)
        return;
    sort_stable(skipped->paths, skipped->count, sizeof *skipped->paths, str_item_order);
    for (size_t i = 0; i < survey->expected_count; i++) {
        struct gpu_result *gpu = &survey->expected[i];
        char *path = spool_file_beside(plan->name, gpu->uuid);
        bool found =
            bsearch(&path, skipped->paths, skipped->count, sizeof *skipped->paths, str_item_order);
        free(path);
        if (!found)
            continue;
        free(gpu->reason);
        gpu->reason = str_copy("its spool file is damaged");
        gpu->status = GPU_FAILED;
        skipped->of_plans++;
    }
}

/* More notes of one kind would hide the others. */
enum { NOTES_MAX = 5, NOTE_MAX = 4096 };

struct report_merge {
    report_note *note;
    void *user;
    struct merge_source *sources;
    size_t count, capacity;
    struct merge_skipped skipped;
    struct merge_pool pool;
    size_t twice;
};

struct report_merge *report_merge_create(report_note *note, void *user)
{
    struct report_merge *merge = mem_array(1, sizeof *merge);
    merge->note = note;
    merge->user = user;
    return merge;
}

void report_merge_destroy(struct report_merge *merge)
{
    if (!merge)
        return;
    merge_pool_fini(&merge->pool);
    for (size_t i = 0; i < merge->skipped.count; i++)
        free(merge->skipped.paths[i]);
    free(merge->skipped.paths);
    memset(&merge->skipped, 0, sizeof merge->skipped);
    for (size_t i = 0; i < merge->count; i++)
        merge_source_fini(&merge->sources[i]);
    free(merge->sources);
    free(merge);
}

static void merge_say(const struct report_merge *merge, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void merge_say(const struct report_merge *merge, const char *format, ...)
{
    char text[NOTE_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    merge->note(merge->user, text);
}

/* survey: NULL for any. A file that cannot be read is noted and skipped. */
static void merge_add_file(struct report_merge *merge, const char *path, const char *survey)
{
    merge->sources =
        mem_grow(merge->sources, &merge->capacity, merge->count + 1, sizeof *merge->sources);
    struct merge_source *source = &merge->sources[merge->count];
    struct err why = {0};
    char line[ERR_LINE_MAX];
    if (merge_source_read(path, source, &why)) {
        merge_say(merge, "skipped: %s", err_format(&why, line, sizeof line));
        merge->skipped.paths = mem_grow(merge->skipped.paths, &merge->skipped.capacity,
                                        merge->skipped.count + 1, sizeof *merge->skipped.paths);
        merge->skipped.paths[merge->skipped.count++] = str_copy(path);
    } else if (survey &&
               (source->kind == MERGE_INVENTORY || !str_equal(source->spool.origin.survey, survey)))
        merge_source_fini(source);
    else
        merge->count++;
}

void report_merge_add(struct report_merge *merge, const char *path)
{
    merge_add_file(merge, path, NULL);
}

static int merge_name_order(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* Skips hidden files such as the owner file, and temporary files that a killed process left. */
static int merge_is_wanted(const struct dirent *entry)
{
    return entry->d_name[0] != '.' && !strstr(entry->d_name, ".tmp.");
}

int report_merge_add_folder(struct report_merge *merge, const char *folder, const char *survey,
                            struct err *err)
{
    struct dirent **entries = NULL;
    int count = scandir(folder, &entries, merge_is_wanted, merge_name_order);
    if (count < 0)
        return err_set_at(err, -errno, folder, 0, 0, "cannot read: %s", strerror(errno));
    for (int i = 0; i < count; i++) {
        char *path = str_format("%s/%s", folder, entries[i]->d_name);
        struct stat info;
        /* A file for which stat fails is passed on: reading it fails too and notes its name. */
        if (stat(path, &info) || S_ISREG(info.st_mode))
            merge_add_file(merge, path, survey);
        else if (S_ISDIR(info.st_mode))
            merge_say(merge, "not merged: %s: a subfolder is merged only if it is named itself",
                      path);
        free(path);
        free(entries[i]);
    }
    free(entries);
    return 0;
}

struct report_merge_end report_merge_end(const struct report_merge *merge)
{
    return (struct report_merge_end){.files = merge->count, .skipped = merge->skipped.count};
}

static void merge_report_twice(void *user, const struct merge_entry *kept,
                               const struct merge_entry *dropped)
{
    struct report_merge *merge = user;
    if (merge->twice++ >= NOTES_MAX)
        return;
    merge_say(merge, "%s is in %s and %s: the first is %s and is used", kept->uuid,
              merge->sources[kept->source].name, merge->sources[dropped->source].name,
              dropped->cut_short && !kept->cut_short ? "of a survey that was not interrupted"
              : kept->time_ms > dropped->time_ms     ? "newer"
                                                     : "of the same time, comes later by name,");
}

/* Whether the source says how its survey was judged. An anonymous inventory does not, since that
 * may name nodes. */
static bool source_tells_config(const struct merge_source *source)
{
    return source->kind == MERGE_SURVEY ||
           (source->kind == MERGE_INVENTORY && !source->inventory.anonymous);
}

/* Reads how the survey of the source was judged. An inventory says only what differs from the
 * defaults. */
static int merge_read_config(const struct merge_source *source, struct report_basis *out_basis,
                             struct err *err)
{
    const struct spool_survey *survey = &source->spool.survey;
    const char *own = source->inventory.configuration;
    if (source->kind == MERGE_SURVEY)
        return report_basis_read_config(survey->config_text, survey->config_name, out_basis, err);
    char *name = str_format("%s, configuration", source->name);
    int rc = report_basis_read_config(own ? own : "judge: {}", name, out_basis, err);
    if (rc)
        err_prefix(err, "(--config chooses another one)");
    free(name);
    return rc;
}

/* Whether another survey was judged otherwise, or not so that it can be read. */
static bool merge_configs_differ(const struct report_merge *merge, const struct judge_config *used)
{
    bool differ = false;
    for (size_t i = 0; i < merge->count && !differ; i++) {
        struct report_basis other = {0};
        struct err ignored = {0};
        if (!source_tells_config(&merge->sources[i]))
            continue;
        differ = merge_read_config(&merge->sources[i], &other, &ignored) ||
                 !str_equal(used->own, other.config.own);
        judge_config_fini(&other.config);
    }
    return differ;
}

/* Uses the configuration of the newest survey, or the shipped one if no survey tells its own. */
static int merge_find_config(const struct report_merge *merge, struct report_basis *basis,
                             struct err *err)
{
    const struct merge_source *newest = NULL;
    for (size_t i = 0; i < merge->count; i++) /* by time */
        if (source_tells_config(&merge->sources[i]))
            newest = &merge->sources[i];
    if (!newest)
        return report_basis_load_config(NULL, basis, err);
    int rc = merge_read_config(newest, basis, err);
    if (!rc && merge_configs_differ(merge, &basis->config))
        merge_say(
            merge,
            "the surveys had different configurations: judged by that of the newest, %s; --config "
            "chooses another",
            newest->name);
    return rc;
}

/* Removes the GPUs of which another file is used. */
static void merge_thin_inventory(struct report_merge *merge, size_t number)
{
    struct inventory *inventory = &merge->sources[number].inventory;
    bool *kept = mem_array(inventory->gpu_count, sizeof *kept);
    size_t count = 0;
    for (size_t i = 0; i < inventory->gpu_count; i++)
        kept[i] = !inventory->gpus[i].uuid;
    for (size_t i = 0; i < merge->pool.count; i++) {
        const struct merge_entry *entry = &merge->pool.entries[i];
        if (entry->source == number && !entry->dropped)
            kept[entry->place] = true;
    }
    for (size_t i = 0; i < inventory->gpu_count; i++) {
        struct inventory_gpu gpu = inventory->gpus[i];
        if (kept[i])
            inventory->gpus[count++] = gpu;
        else
            inventory_gpu_fini(&gpu);
    }
    inventory->gpu_count = count;
    free(kept);
}

/* True if this program is like those so far; an empty word stands for none yet. */
static bool joins_program(const char *version, const char *backend, char word[WORLD_PROGRAM_MAX])
{
    char other[WORLD_PROGRAM_MAX];
    world_program(version, backend, other);
    if (word[0] && !world_program_alike(word, other))
        return false;
    memcpy(word, other, WORLD_PROGRAM_MAX);
    return true;
}

/* The program that measured all GPUs; one that no other is like if several did. */
static const char *common_program(const struct report_merge *merge,
                                  char out_word[WORLD_PROGRAM_MAX])
{
    bool same = true;
    out_word[0] = '\0';
    for (size_t i = 0; i < merge->count && same; i++) {
        const struct merge_source *source = &merge->sources[i];
        const struct inventory *made = &source->inventory;
        if (source->kind != MERGE_INVENTORY)
            same =
                joins_program(source->spool.origin.version, source->spool.origin.backend, out_word);
        else
            for (size_t k = 0; k < inventory_measured_by_count(made) && same; k++)
                same = joins_program(inventory_measured_by(made, k), made->backend, out_word);
    }
    return same ? out_word : "several versions";
}

static int merge_judge_all(struct report_merge *merge, const struct report_basis *basis,
                           struct inventory *inventory, struct err *err)
{
    char program[WORLD_PROGRAM_MAX];
    struct judge_basis view = report_basis_view(basis, NULL);
    view.program = common_program(merge, program);
    size_t capacity = merge->pool.count;
    for (size_t i = 0; i < merge->count; i++)
        capacity += merge->sources[i].inventory.gpu_count;
    struct judge *judge = judge_create(&view, capacity);
    size_t earlier = merge_add_earlier(merge->sources, merge->count, &merge->pool, judge);
    int rc = 0;
    if (earlier)
        merge_say(merge,
                  "%zu %s not looked for by the newer results of the GPUs: told as not measured "
                  "again",
                  earlier, earlier == 1 ? "finding was" : "findings were");
    for (size_t i = 0; i < merge->pool.count && !rc; i++) {
        const struct merge_entry *entry = &merge->pool.entries[i];
        if (entry->result && !entry->dropped)
            rc = judge_add(judge, entry->result, err);
    }
    for (size_t i = 0; i < merge->count && !rc; i++) {
        if (merge->sources[i].kind != MERGE_INVENTORY)
            continue;
        merge_thin_inventory(merge, i);
        rc = judge_add_inventory(judge, &merge->sources[i].inventory, err);
    }
    if (!rc)
        judge_finish(judge, inventory);
    judge_destroy(judge);
    return rc;
}

/* Counts what leaves unknown which GPUs there are, now or when an inventory was merged that is
 * still used: results whose survey's plan was not given, and files that could not be read. */
static void merge_count_gaps(const struct report_merge *merge, struct inventory *inventory)
{
    const char **planned = mem_array(merge->count, sizeof *planned);
    uint32_t *used = mem_array(merge->count, sizeof *used); /* by source: GPUs */
    size_t plans = 0;
    for (size_t i = 0; i < merge->count; i++)
        if (merge->sources[i].kind == MERGE_SURVEY)
            planned[plans++] = merge->sources[i].spool.origin.survey;
    sort_stable(planned, plans, sizeof *planned, str_item_order);
    for (size_t i = 0; i < merge->pool.count; i++) {
        const struct merge_entry *entry = &merge->pool.entries[i];
        used[entry->source] += !entry->dropped;
        inventory->total_unplanned +=
            entry->survey && !entry->dropped &&
            !bsearch(&entry->survey, planned, plans, sizeof *planned, str_item_order);
    }
    inventory->unread_files = (uint32_t)(merge->skipped.count - merge->skipped.of_plans);
    for (size_t i = 0; i < merge->count; i++) {
        const struct inventory *before = &merge->sources[i].inventory;
        inventory->total_unplanned +=
            before->total_unplanned < used[i] ? before->total_unplanned : used[i];
        inventory->unread_files += used[i] ? before->unread_files : 0;
    }
    free(planned);
    free(used);
}

static int merge_exit_code(const struct report_merge *merge, const struct inventory *inventory)
{
    if (merge->skipped.count || inventory_is_incomplete(inventory))
        return 4;
    return inventory_action(inventory) == ACTION_DRAIN ? 3 : 0;
}

/* By time, then by name: in which order files are given changes nothing. */
static int source_order(const void *a, const void *b)
{
    const struct merge_source *left = a, *right = b;
    if (left->time_ms != right->time_ms)
        return left->time_ms < right->time_ms ? -1 : 1;
    return strcmp(left->name, right->name);
}

int report_merge_finish(struct report_merge *merge, const struct report_merge_request *request,
                        struct inventory *inventory, struct err *err)
{
    if (merge->count)
        sort_stable(merge->sources, merge->count, sizeof *merge->sources, source_order);
    int rc = request->own_config ? 0 : merge_find_config(merge, request->basis, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < merge->count; i++) {
        merge_source_pool(&merge->sources[i], i, &merge->pool);
        merge_skipped_mark(&merge->skipped, &merge->sources[i]);
    }
    merge_find_again(merge->sources, merge->count);
    merge_pool_settle(&merge->pool, merge_report_twice, merge);
    merge_find_overtaken(merge->sources, merge->count, &merge->pool);
    if (merge->twice > NOTES_MAX)
        merge_say(merge, "%zu more results of GPUs that are in several files: the newest is used",
                  merge->twice - NOTES_MAX);
    if (merge->skipped.count)
        merge_say(merge,
                  "%zu %s could not be read: the inventory may lack results, so the exit code is 4",
                  merge->skipped.count, merge->skipped.count == 1 ? "file" : "files");
    merge_count_gaps(merge, inventory);
    if (inventory->total_unplanned)
        merge_say(
            merge,
            "the plan of the survey that measured %u of the GPUs (survey-*.spool) is missing: "
            "its GPUs without a result are not listed, so the exit code is 4",
            inventory->total_unplanned);
    merge_head(merge->sources, merge->count, &merge->pool, request, inventory);
    rc = merge_judge_all(merge, request->basis, inventory, err);
    if (rc)
        return rc;
    merge_unknown(merge->sources, merge->count, inventory);
    const struct judge_basis view = report_basis_view(request->basis, NULL);
    judge_missing_gpus(&view, inventory);
    inventory->exit_code = merge_exit_code(merge, inventory);
    return rc;
}
