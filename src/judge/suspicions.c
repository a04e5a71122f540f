/* The figures by which GPUs would be accused, and their second values. */
#include "judge/confirmations.h"

int judge_suspicions(const struct judge *judge, judge_suspicion_taker *take, void *user,
                     struct err *err)
{
    const struct fleet *fleet = &judge->fleet;
    for (size_t i = 0; i < fleet->count; i++) {
        uint32_t gpu = fleet->order[i];
        if (!fleet_judged(&fleet->gpus[gpu]))
            continue;
        for (uint32_t at = judge->findings.last[gpu]; at;) {
            const struct finding *finding = &judge->findings.items[at - 1];
            int rc = finding->accused ? take(user, fleet_text(fleet, fleet->gpus[gpu].uuid),
                                             fleet_text(fleet, finding->metric), err)
                                      : 0;
            if (rc)
                return rc;
            at = finding->previous;
        }
    }
    return 0;
}

int judge_add_again(struct judge *judge, const struct gpu_result *again, struct err *err)
{
    const struct fleet *fleet = &judge->fleet;
    uint32_t symbol = symbols_find(&fleet->symbols, again->uuid), gpu = 0;
    struct facts values = {0};
    int rc = gpu_result_second_values(again, &values);
    while (gpu < fleet->count && fleet->gpus[gpu].uuid != symbol)
        gpu++;
    if (!rc && gpu < fleet->count)
        rc = confirmations_add(judge, gpu, &values);
    facts_fini(&values);
    return rc ? err_no_memory(err) : 0;
}

int judge_end_again(struct judge *judge, struct err *err)
{
    return confirmations_end(judge) ? err_no_memory(err) : 0;
}
