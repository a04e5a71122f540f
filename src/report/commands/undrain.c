/* gpumemtopo-report undrain: commands that return healthy nodes to service. */
#include "report/commands/commands.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/sort.h"
#include "base/yaml.h"
#include "report/command.h"
#include "report/drain.h"
#include "report/looked_for.h"
#include "report/merge/merge.h"

/* With fewer GPUs of a model, a slower one is not found by comparing (JUDGE.md). */
enum { PEERS_MIN = 5 };

/* One line of the list, split in place. */
struct drained {
    const char *node;
    int64_t since_s;
    const char *verdict, *uuid, *cause, *metric; /* of the reason; NULL: it is not ours */
};

static bool undrain_is_measured(const struct inventory_gpu *gpu)
{
    return gpu->status == GPU_OK || gpu->status == GPU_OUTLIER;
}

int undrain_times_add(struct undrain_times *times, const struct inventory *inventory,
                      const char *path, struct err *err)
{
    int64_t measured_s = 0;
    if (inventory->command_count > 1 && str_equal(inventory->command[1], "merge"))
        return err_set_at(err, -ESTALE, path, 0, 0,
                          "was made by merge and does not tell when each GPU was measured: give "
                          "the inventories of the surveys");
    if (clock_parse_stamp(inventory->generated, &measured_s))
        return err_set_at(err, -EINVAL, path, 0, 0, "does not tell when it was made");
    for (size_t i = 0; i < inventory->gpu_count; i++) {
        const struct inventory_gpu *gpu = &inventory->gpus[i];
        if (!gpu->uuid || !undrain_is_measured(gpu))
            continue;
        times->items =
            mem_grow(times->items, &times->capacity, times->count + 1, sizeof *times->items);
        times->items[times->count++] = (struct undrain_time){str_copy(gpu->uuid), measured_s};
    }
    return 0;
}

void undrain_times_fini(struct undrain_times *times)
{
    for (size_t i = 0; i < times->count; i++)
        free(times->items[i].uuid);
    free(times->items);
    *times = (struct undrain_times){0};
}

static int time_order(const void *a, const void *b)
{
    const struct undrain_time *left = a, *right = b;
    return strcmp(left->uuid, right->uuid);
}

/* Sorts by UUID and keeps the latest time of each. */
static void undrain_settle(struct undrain_times *times)
{
    size_t count = 0;
    if (times->count)
        sort_stable(times->items, times->count, sizeof *times->items, time_order);
    for (size_t i = 0; i < times->count; i++) {
        struct undrain_time *last = count ? &times->items[count - 1] : NULL;
        if (!last || strcmp(last->uuid, times->items[i].uuid) != 0) {
            times->items[count++] = times->items[i];
            continue;
        }
        if (times->items[i].measured_s > last->measured_s)
            last->measured_s = times->items[i].measured_s;
        free(times->items[i].uuid);
    }
    times->count = count;
}

static bool undrain_is_measured_since(const struct undrain_times *times,
                                      const struct inventory_gpu *gpu, int64_t since_s)
{
    const struct undrain_time wanted = {.uuid = gpu->uuid};
    if (!gpu->uuid || !undrain_is_measured(gpu) || !times->count)
        return false;
    const struct undrain_time *found =
        bsearch(&wanted, times->items, times->count, sizeof *times->items, time_order);
    return found && found->measured_s > since_s;
}

static uint32_t undrain_peers_of(const struct inventory *judged, const struct inventory_gpu *gpu)
{
    for (size_t i = 0; i < judged->model_count; i++)
        if (str_equal(judged->models[i].id, gpu->model))
            return judged->models[i].count;
    return 0;
}

/* The GPUs of a drained node in the inventory. */
struct node_gpus {
    size_t count;
    const char *stale;                 /* one that was not measured since */
    const struct inventory_gpu *named; /* the one of the reason */
};

static struct node_gpus undrain_find_gpus(const struct inventory *judged,
                                          const struct undrain_times *times,
                                          const struct drained *drained)
{
    struct node_gpus found = {0};
    for (size_t i = 0; i < judged->gpu_count; i++) {
        const struct inventory_gpu *gpu = &judged->gpus[i];
        if (!str_equal(gpu->node, drained->node))
            continue;
        found.count++;
        if (!undrain_is_measured_since(times, gpu, drained->since_s))
            found.stale = gpu->uuid ? gpu->uuid : "a GPU";
        if (str_equal(gpu->uuid, drained->uuid))
            found.named = gpu;
    }
    return found;
}

/* Why the node stays drained; NULL: it is healthy. */
static const char *undrain_refusal(const struct inventory *judged, const struct drained *drained,
                                   const struct node_gpus *gpus, const struct drain_lines *bad)
{
    size_t there = 0, wanted = 0;
    if (!gpus->count || gpus->stale)
        return "not all of its GPUs were measured since it was drained";
    if (drain_lines_find(bad, drained->node))
        return "is still bad";
    if (strcmp(drained->uuid, "-") == 0)
        return sscanf(drained->cause, "%zu of %zu GPUs are there", &there, &wanted) != 2
                   ? "was drained for a finding that is not of one GPU: look at it yourself"
               : gpus->count < wanted ? "GPUs are still missing"
                                      : NULL;
    if (!gpus->named)
        return "the GPU for which it was drained is no longer there: look at it yourself";
    if (!report_looked_for(gpus->named, drained->metric))
        return "what it was drained for was not measured since: survey it with the profile that "
               "found it";
    if (strcmp(drained->verdict, "failing") != 0 &&
        undrain_peers_of(judged, gpus->named) < PEERS_MIN)
        return "too few GPUs of its model were surveyed to tell whether it is still slower";
    return NULL;
}

/* Splits the reason into its fields if it is one of drain. */
static void split_reason(char *reason, struct drained *out)
{
    enum { PROGRAM, VERDICT, UUID, CAUSE, METRIC, FIELDS };
    char *fields[FIELDS] = {0};
    size_t count = 0;
    for (char *rest = reason; rest && count < FIELDS;)
        fields[count++] = strsep(&rest, ":");
    if (count <= CAUSE || strcmp(fields[PROGRAM], "gpumemtopo") != 0)
        return;
    out->verdict = fields[VERDICT];
    out->uuid = fields[UUID];
    out->cause = fields[CAUSE];
    out->metric = fields[METRIC];
}

/* false: not of the form NODE|SECONDS|REASON. */
static bool split_line(char *line, struct drained *out)
{
    char *since = strchr(line, '|'), *end = NULL;
    char *reason = since ? strchr(since + 1, '|') : NULL;
    if (!reason)
        return false;
    *since = *reason = '\0';
    errno = 0;
    *out = (struct drained){.node = line, .since_s = strtoll(since + 1, &end, 10)};
    if (end == since + 1 || *end || errno || !drain_is_node_name(line))
        return false;
    split_reason(reason + 1, out);
    return true;
}

static void undrain_put_node(const struct inventory *judged, const struct undrain_times *times,
                             const struct drain_lines *bad, const struct drained *drained,
                             struct strbuf *out_lines, struct strbuf *out_notes)
{
    if (!drained->verdict)
        return;
    struct node_gpus gpus = undrain_find_gpus(judged, times, drained);
    const char *why = undrain_refusal(judged, drained, &gpus, bad);
    if (why)
        strbuf_printf(out_notes, "%s: %s\n", drained->node, why);
    else
        strbuf_printf(out_lines, "scontrol update NodeName=%s State=RESUME\n", drained->node);
}

int report_undrain(const char *list, const char *list_name, const struct inventory *judged,
                   struct undrain_times *times, struct strbuf *out_lines, struct strbuf *out_notes,
                   struct err *err)
{
    struct drain_lines bad;
    struct strbuf refused = {0};
    char *copy = str_copy(list), *rest = copy, *before = NULL;
    int rc = 0;
    drain_lines_init(&bad, judged, &refused);
    strbuf_fini(&refused);
    undrain_settle(times);
    for (int number = 1; rest && *rest && !rc; number++) {
        struct drained drained;
        char *line = strsep(&rest, "\n");
        if (!split_line(line, &drained))
            rc = err_set_at(err, -EINVAL, list_name, number, 1,
                            "expected NODE|SECONDS|REASON, as SLURM_TIME_FORMAT=%%s sinfo -h -N -t "
                            "drain -o '%%N|%%H|%%E' prints it");
        /* A node is listed once for each of its partitions. */
        else if (!before || strcmp(before, drained.node) != 0)
            undrain_put_node(judged, times, &bad, &drained, out_lines, out_notes);
        before = line;
    }
    drain_lines_fini(&bad);
    free(copy);
    return rc;
}

static void undrain_say(void *user, const char *text)
{
    (void)user;
    log_info("%s", text);
}

/* Each file is read twice: for its times, and to be judged with the others. One that was made by
 * merge may lie in the same folder: it is left out, and named. */
static int undrain_add_file(struct report_merge *merge, struct undrain_times *times,
                            const char *path, struct err *err)
{
    struct inventory inventory;
    int rc = inventory_read_file(path, &inventory, err);
    if (rc)
        return rc;
    rc = inventory.anonymous
             ? err_set_at(err, -EINVAL, path, 0, 0,
                          "is anonymous: its nodes have pseudonyms that Slurm does not know")
             : undrain_times_add(times, &inventory, path, err);
    inventory_fini(&inventory);
    if (rc == -ESTALE) {
        log_warning("%s %s", path, err->text);
        *err = (struct err){0};
        return 0;
    }
    if (!rc)
        report_merge_add(merge, path);
    return rc;
}

static int undrain_judge(const struct command_options *options, struct report_basis *basis,
                         struct undrain_times *times, struct inventory *judged, struct err *err)
{
    struct report_merge *merge = report_merge_create(undrain_say, NULL);
    int rc = report_basis_load(NULL, NULL, basis, err);
    for (int i = 0; i < options->file_count && !rc; i++)
        rc = undrain_add_file(merge, times, options->files[i], err);
    const struct report_merge_request request = {.basis = basis, .version = GPUMEMTOPO_VERSION};
    if (!rc)
        rc = report_merge_finish(merge, &request, judged, err);
    report_merge_destroy(merge);
    return rc;
}

int command_undrain(const struct command_options *options)
{
    struct report_basis basis = {0};
    struct undrain_times times = {0};
    struct inventory judged = {0};
    struct strbuf list = {0}, lines = {0}, notes = {0};
    struct err err = {0};
    if (!options->drained) {
        log_error("undrain: --drained names the list of drained nodes; see gpumemtopo-report "
                  "undrain --help");
        return EXIT_BAD_INPUT;
    }
    int rc = yaml_load_text(options->drained, &yaml_limits_inventory, &list, &err);
    if (!rc)
        rc = undrain_judge(options, &basis, &times, &judged, &err);
    if (!rc)
        rc = report_undrain(list.data ? list.data : "", options->drained, &judged, &times, &lines,
                            &notes, &err);
    inventory_fini(&judged);
    undrain_times_fini(&times);
    report_basis_fini(&basis);
    strbuf_fini(&list);
    if (rc) {
        log_failure(&err);
        strbuf_fini(&lines);
        strbuf_fini(&notes);
        return command_exit_code(rc);
    }
    if (notes.length)
        log_info("these nodes stay drained:\n%s", notes.data);
    strbuf_fini(&notes);
    return command_write(&lines, NULL);
}
