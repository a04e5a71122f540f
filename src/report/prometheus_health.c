/* Metrics of the health of GPUs: what the driver counted. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "inventory/xid.h"
#include "report/prometheus_parts.h"

/* Facts of which a value other than 0 tells of an error or a repair. Temperatures, power and
 * whatever else every GPU has are left to exporters that read them every few seconds. */
static const char *const counters[] = {
    "ecc_corrected_dram",
    "ecc_corrected_new",
    "ecc_corrected_sram",
    "ecc_corrected_volatile",
    "ecc_uncorrected_dram",
    "ecc_uncorrected_new",
    "ecc_uncorrected_sram",
    "ecc_uncorrected_volatile",
    "nvlink_errors",
    "nvlink_errors_new",
    "nvlinks_down",
    "pcie_replays",
    "pcie_replays_new",
    "remap_banks_high",
    "remap_banks_low",
    "remap_banks_none",
    "remap_banks_partial",
    "remap_failed",
    "remap_pending",
    "remapped_rows_corrected",
    "remapped_rows_uncorrected",
    "retired_pages_corrected",
    "retired_pages_pending",
    "retired_pages_uncorrected",
};

/* GPUs have only the facts that differ from those of most of their model. */
struct usual {
    const struct fact **facts; /* one per model; NULL: most do not have it */
    const uint32_t *models;    /* of each GPU; the number of models: none */
};

/* NULL: not known. Of a GPU that was not measured completely only its own facts are known. */
static const struct fact *fact_of(const struct inventory *inventory, const struct usual *usual,
                                  size_t gpu, const char *key)
{
    const struct fact *own = facts_get(&inventory->gpus[gpu].health, key);
    if (own || !prometheus_was_judged(&inventory->gpus[gpu]))
        return own;
    uint32_t model = usual->models[gpu];
    return model < inventory->model_count ? usual->facts[model] : NULL;
}

static void find_usual(const struct inventory *inventory, const char *key, struct usual *usual)
{
    for (size_t m = 0; m < inventory->model_count; m++)
        usual->facts[m] = facts_get(&inventory->models[m].health, key);
}

static void put_sample(const struct exposition *to, const struct inventory_gpu *gpu,
                       const char *fact, double value)
{
    prometheus_put_gpu(to, "gpumemtopo_gpu_health", gpu);
    exposition_label(to, ",fact=\"", fact);
    exposition_value(to, "} ", value);
}

/* NaN: not known, or no counter. */
static double counted(const struct fact *fact)
{
    return fact && fact->kind == FACT_BOOL ? fact->flag : fact_number(fact);
}

/* Returns how many GPUs told the counter. */
static size_t put_counter(const struct exposition *to, const struct inventory *inventory,
                          struct usual *usual, const char *key)
{
    size_t known = 0;
    find_usual(inventory, key, usual);
    for (size_t i = 0; i < inventory->gpu_count; i++) {
        double value = counted(fact_of(inventory, usual, i, key));
        if (!inventory->gpus[i].uuid || !isfinite(value))
            continue;
        known++;
        if (value != 0)
            put_sample(to, &inventory->gpus[i], key, value);
    }
    return known;
}

/* Xid events are a list of numbers. A list names no number twice: each is a sample. */
static size_t put_xids(const struct exposition *to, const struct inventory *inventory,
                       struct usual *usual)
{
    size_t known = 0;
    find_usual(inventory, "xid", usual);
    for (size_t i = 0; i < inventory->gpu_count; i++) {
        const struct fact *fact = fact_of(inventory, usual, i, "xid");
        unsigned numbers[XID_LIST_MAX];
        if (!inventory->gpus[i].uuid || !fact || fact->kind != FACT_TEXT)
            continue;
        known++;
        size_t count = xid_parse_list(fact->text, numbers);
        for (size_t k = 0; k < count; k++) {
            char name[24];
            size_t first = 0;
            while (numbers[first] != numbers[k])
                first++;
            snprintf(name, sizeof name, "xid_%u", numbers[k]);
            if (first == k)
                put_sample(to, &inventory->gpus[i], name, 1);
        }
    }
    return known;
}

static void put_all(const struct exposition *to, const struct inventory *inventory,
                    struct usual *usual)
{
    static const char told[] = "gpumemtopo_health_known_gpus";
    size_t known[COUNT_OF(counters) + 1];
    exposition_gauge(to, "gpumemtopo_gpu_health", NULL,
                     "What the driver counted of a GPU; only counters that are not 0.");
    for (size_t i = 0; i < COUNT_OF(counters); i++)
        known[i] = put_counter(to, inventory, usual, counters[i]);
    known[COUNT_OF(counters)] = put_xids(to, inventory, usual);
    exposition_gauge(to, told, NULL,
                     "GPUs of which the driver told this counter. Without a sample of "
                     "gpumemtopo_gpu_health it is 0 for them.");
    for (size_t i = 0; i <= COUNT_OF(counters); i++) {
        strbuf_puts(to->out, told);
        exposition_label(to, "{fact=\"", i < COUNT_OF(counters) ? counters[i] : "xid");
        exposition_value(to, "} ", (double)known[i]);
    }
}

static uint32_t model_index(const struct inventory *inventory, const char *id)
{
    uint32_t m = 0;
    while (m < inventory->model_count && !(id && str_equal(inventory->models[m].id, id)))
        m++;
    return m;
}

void prometheus_put_health(const struct exposition *to, const struct inventory *inventory)
{
    uint32_t *models = mem_array(inventory->gpu_count, sizeof *models);
    struct usual usual = {mem_array(inventory->model_count, sizeof *usual.facts), models};
    if (models && usual.facts) {
        for (size_t i = 0; i < inventory->gpu_count; i++)
            models[i] = model_index(inventory, inventory->gpus[i].model);
        put_all(to, inventory, &usual);
    } else
        to->out->failed = true;
    free(usual.facts);
    free(models);
}
