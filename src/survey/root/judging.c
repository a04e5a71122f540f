/* Judges results as they arrive. */
#include "survey/root/judging.h"

#include <string.h>

static int make_judge(struct judging *judging, size_t capacity, struct err *err)
{
    return judging->judge ? 0 : judge_create(judging->basis, capacity, &judging->judge, err);
}

/* A replayed GPU belongs to the rank that measured it. */
static int32_t rank_of(const struct judging *judging, const struct gpu_result *result)
{
    const struct record_gpu *was =
        judging->replayed ? record_find_gpu(judging->replayed, result->uuid, 0) : NULL;
    return was ? was->gpu.rank : result->rank;
}

static int keep_slowest(struct judging *judging, const struct gpu_result *result, struct err *err)
{
    struct gpu_result *slowest = &judging->slowest;
    if (!result->timings.count || (slowest->uuid && slowest->elapsed_s >= result->elapsed_s))
        return 0;
    gpu_result_fini(slowest);
    slowest->elapsed_s = result->elapsed_s;
    if (facts_copy(&slowest->timings, &result->timings) ||
        str_copy_to(&slowest->uuid, result->uuid))
        return err_no_memory(err);
    return 0;
}

static int take_first(struct judging *judging, size_t capacity, struct gpu_result *result,
                      struct err *err)
{
    struct gpu_result view = *result;
    view.rank = rank_of(judging, result);
    int rc = make_judge(judging, capacity, err);
    if (rc)
        return rc;
    rc = judge_add(judging->judge, &view, err);
    return rc ? rc : keep_slowest(judging, result, err);
}

int judging_take(struct judging *judging, size_t capacity, uint32_t session,
                 struct gpu_result *result, struct err *err)
{
    int rc = 0;
    if (session && judging->compared && result->status == GPU_OK)
        rc = judge_add_again(judging->judge, result, err);
    else if (!session && !judging->compared)
        rc = take_first(judging, capacity, result, err);
    gpu_result_drop_figures(result);
    return rc;
}

int judging_compare(struct judging *judging, const struct gpu_result *unmeasured, size_t count,
                    struct err *err)
{
    if (judging->compared)
        return 0;
    int rc = make_judge(judging, count, err);
    for (size_t i = 0; i < count && !rc; i++) {
        struct gpu_result view = unmeasured[i];
        view.rank = rank_of(judging, &view);
        if (view.uuid)
            rc = judge_add(judging->judge, &view, err);
    }
    if (!rc)
        rc = judge_compare(judging->judge, err);
    judging->compared = !rc;
    return rc;
}

int judging_finish(struct judging *judging, struct inventory *inventory, struct err *err)
{
    return judge_finish(judging->judge, inventory, err);
}

void judging_fini(struct judging *judging)
{
    judge_destroy(judging->judge);
    gpu_result_fini(&judging->slowest);
    memset(judging, 0, sizeof *judging);
}
