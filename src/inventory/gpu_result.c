/* One GPU's result: names, copy and release. */
#include "inventory/gpu_result.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "inventory/fingerprint.h"
#include "inventory/names.h"
#include "inventory/sm_rates.h"

const char *const gpu_status_names[] = {"ok",     "outlier", "timed_out", "crashed",
                                        "failed", "lost",    "busy",      NULL};

const char *gpu_status_name(enum gpu_status status)
{
    return gpu_status_names[status];
}

static void drop_lists(struct gpu_result *result)
{
    facts_fini_list(&result->hardware);
    facts_fini_list(&result->board);
    facts_fini_list(&result->config);
    facts_fini_list(&result->health);
    facts_fini_list(&result->timings);
    measures_fini_lists(&result->measures);
    facts_fini_list(&result->measured_again);
}

void gpu_result_drop_figures(struct gpu_result *result)
{
    if (result->in_message) {
        drop_lists(result);
        return;
    }
    facts_fini(&result->hardware);
    facts_fini(&result->board);
    facts_fini(&result->config);
    facts_fini(&result->health);
    facts_fini(&result->timings);
    measures_fini(&result->measures);
    facts_fini(&result->measured_again);
}

void gpu_result_fini(struct gpu_result *result)
{
    if (!result->in_message) {
        free(result->uuid);
        free(result->node);
        free(result->pci);
        free(result->name);
        free(result->model_key);
        free(result->reason);
        free(result->first_reason);
    }
    gpu_result_drop_figures(result);
    memset(result, 0, sizeof *result);
}

int gpu_result_set_identity(struct gpu_result *to, const struct gpu_result *from)
{
    char **const places[] = {&to->uuid, &to->node, &to->pci, &to->name, &to->model_key};
    const char *const texts[] = {from->uuid, from->node, from->pci, from->name, from->model_key};
    char *copies[COUNT_OF(places)] = {NULL};
    for (size_t i = 0; i < COUNT_OF(places); i++)
        if (str_copy_to(&copies[i], texts[i]))
            goto no_memory;
    for (size_t i = 0; i < COUNT_OF(places); i++) {
        free(*places[i]);
        *places[i] = copies[i];
    }
    to->index = from->index;
    return 0;
no_memory:
    for (size_t i = 0; i < COUNT_OF(places); i++)
        free(copies[i]);
    return -ENOMEM;
}

int gpu_result_copy(struct gpu_result *to, const struct gpu_result *from)
{
    struct gpu_result copy = {
        .index = from->index,
        .rank = from->rank,
        .status = from->status,
        .elapsed_s = from->elapsed_s,
        .first_status = from->first_status,
        .gpus_given = from->gpus_given,
    };
    if (str_copy_to(&copy.uuid, from->uuid) || str_copy_to(&copy.node, from->node) ||
        str_copy_to(&copy.pci, from->pci) || str_copy_to(&copy.name, from->name) ||
        str_copy_to(&copy.model_key, from->model_key) || str_copy_to(&copy.reason, from->reason) ||
        str_copy_to(&copy.first_reason, from->first_reason) ||
        facts_copy(&copy.hardware, &from->hardware) || facts_copy(&copy.board, &from->board) ||
        facts_copy(&copy.config, &from->config) || facts_copy(&copy.health, &from->health) ||
        facts_copy(&copy.timings, &from->timings) ||
        measures_copy(&copy.measures, &from->measures) ||
        facts_copy(&copy.measured_again, &from->measured_again)) {
        gpu_result_fini(&copy);
        return -ENOMEM;
    }
    *to = copy;
    return 0;
}

int gpu_result_second_values(const struct gpu_result *again, struct facts *out_values)
{
    const struct fact *throttle = facts_get(&again->health, "throttle");
    if (measures_numbers(&again->measures, out_values))
        return -ENOMEM;
    if (!throttle || throttle->kind != FACT_TEXT)
        return 0;
    return facts_set_real(out_values, GPU_RESULT_THROTTLED, !str_equal(throttle->text, "none"));
}

static int take_note(struct gpu_result *result, const char *key)
{
    for (size_t i = 0; i < result->measures.count; i++) {
        struct facts *notes = &result->measures.items[i].notes;
        const char *text = facts_text(notes, key);
        if (!text)
            continue;
        if (facts_set_text(&result->board, key, text))
            return -ENOMEM;
        facts_remove(notes, key);
    }
    return 0;
}

int gpu_result_take_fingerprint(struct gpu_result *result)
{
    int rc = take_note(result, FINGERPRINT_FACT);
    return rc ? rc : take_note(result, SM_RATES_FACT);
}
