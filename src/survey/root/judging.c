/* Judges results as they arrive, and asks for those of GPUs that look bad again. */
#include "survey/root/judging.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "base/str.h"
#include "probes/probes.h"

/* A replayed GPU belongs to the rank that measured it. Makes the judge with the first one. */
static int judging_add(struct judging *judging, size_t capacity, const struct gpu_result *result,
                       struct err *err)
{
    struct gpu_result view = *result;
    const struct record_gpu *was =
        judging->replayed ? record_find_gpu(judging->replayed, result->uuid, 0) : NULL;
    if (was)
        view.rank = was->gpu.rank;
    if (!judging->judge)
        judging->judge = judge_create(judging->basis, capacity);
    return judge_add(judging->judge, &view, err);
}

int judging_take(void *user, size_t capacity, uint32_t session, struct gpu_result *result,
                 struct err *err)
{
    struct judging *judging = user;
    struct gpu_result *slowest = &judging->slowest;
    int rc = 0;
    if (session && judging->compared && result->status == GPU_OK)
        judge_add_again(judging->judge, result);
    else if (!session && !judging->compared) {
        rc = judging_add(judging, capacity, result, err);
        if (!rc && result->timings.count &&
            (!slowest->uuid || slowest->elapsed_s < result->elapsed_s)) {
            gpu_result_fini(slowest);
            slowest->elapsed_s = result->elapsed_s;
            facts_copy(&slowest->timings, &result->timings);
            slowest->uuid = str_copy(result->uuid);
        }
    }
    gpu_result_drop_figures(result);
    return rc;
}

int judging_compare(struct judging *judging, const struct gpu_result *unmeasured, size_t count,
                    struct err *err)
{
    if (judging->compared)
        return 0;
    int rc = 0;
    if (!judging->judge)
        judging->judge = judge_create(judging->basis, count);
    for (size_t i = 0; i < count && !rc; i++)
        if (unmeasured[i].uuid)
            rc = judging_add(judging, count, &unmeasured[i], err);
    if (!rc)
        judge_compare(judging->judge);
    judging->compared = !rc;
    return rc;
}

void judging_finish(struct judging *judging, struct inventory *inventory)
{
    judge_finish(judging->judge, inventory);
}

void judging_fini(struct judging *judging)
{
    judge_destroy(judging->judge);
    gpu_result_fini(&judging->slowest);
    memset(judging, 0, sizeof *judging);
}

struct suspect {
    char *uuid;
    struct strbuf probes; /* names, comma-separated */
};

struct suspects {
    struct suspect *items;
    size_t count, capacity;
};

static bool list_has_name(const char *list, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = list; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, name, length) == 0 && (!at[length] || at[length] == ','))
            return true;
    }
    return false;
}

/* The probe behind a figure or its spread; NULL: it is a fact, which is not measured. */
static const char *probe_behind(const char *metric)
{
    char *name = str_copy(metric);
    char *end = strrchr(name, '.');
    if (end && str_equal(end, MEASURE_SPREAD))
        *end = '\0';
    const char *probe = probe_of_metric(name);
    free(name);
    return probe;
}

/* All suspicions about one GPU come in a row. */
static void suspects_add(void *user, const char *uuid, const char *metric)
{
    struct suspects *suspects = user;
    const char *probe = probe_behind(metric);
    if (!probe)
        return;
    if (!suspects->count || !str_equal(suspects->items[suspects->count - 1].uuid, uuid)) {
        suspects->items = mem_grow(suspects->items, &suspects->capacity, suspects->count + 1,
                                   sizeof *suspects->items);
        suspects->items[suspects->count++] = (struct suspect){.uuid = str_copy(uuid)};
    }
    struct strbuf *probes = &suspects->items[suspects->count - 1].probes;
    if (!probes->length || !list_has_name(probes->data, probe))
        strbuf_printf(probes, "%s%s", probes->length ? "," : "", probe);
}

size_t judging_measure_again(const struct judging *judging, struct root *root)
{
    struct suspects suspects = {0};
    judge_suspicions(judging->judge, suspects_add, &suspects);
    struct root_suspect *list = mem_array(suspects.count, sizeof *list);
    for (size_t i = 0; i < suspects.count; i++)
        list[i] = (struct root_suspect){suspects.items[i].uuid, suspects.items[i].probes.data};
    if (suspects.count)
        sort_stable(list, suspects.count, sizeof *list, root_suspect_order);
    root_measure_again(root, list, suspects.count);
    free(list);
    for (size_t i = 0; i < suspects.count; i++) {
        free(suspects.items[i].uuid);
        strbuf_fini(&suspects.items[i].probes);
    }
    free(suspects.items);
    return suspects.count;
}
