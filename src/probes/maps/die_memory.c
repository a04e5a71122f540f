/* The probe that maps how far each SM is from regions of main memory. */
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "cpd/cpd.h"
#include "inventory/fingerprint.h"
#include "probes/method/repeats.h"

enum {
    REGIONS = 32,
    LOADS = 64, /* of each SM in each region */
    FEW = 16,   /* of both, on a simulated device, which executes each load */
};

struct memory {
    struct probe_context *context;
    struct device_sm_map map;
    size_t sms;
    uint64_t region_bytes;
    double *cycles; /* by SM, then by region: mean of its loads */
    double *sums;   /* scratch: medians of SMs, of regions, and what is left */
};

/* Medians of the rows (SMs) or columns (regions), and how far apart the outermost are. */
static double range_of(const struct memory *memory, bool of_sms)
{
    size_t regions = memory->map.regions, rows = of_sms ? memory->sms : regions;
    size_t columns = of_sms ? regions : memory->sms;
    double low = INFINITY, high = -INFINITY;
    for (size_t i = 0; i < rows; i++) {
        for (size_t k = 0; k < columns; k++)
            memory->sums[k] = memory->cycles[of_sms ? i * regions + k : k * regions + i];
        double middle = cpd_median(memory->sums, columns);
        low = fmin(low, middle);
        high = fmax(high, middle);
    }
    return high - low;
}

static void die_memory_report(const struct memory *memory)
{
    size_t cells = memory->sms * memory->map.regions;
    struct measure *m =
        repeats_add(memory->context, "die.memory_latency", memory->cycles, cells, "cycles",
                    "each SM loads lines of each region that no SM has loaded");
    double *map = mem_array(cells, sizeof *map);
    for (size_t i = 0; i < cells; i++)
        map[i] = facts_decimals(memory->cycles[i], 0);
    facts_set_int(&m->notes, "regions", memory->map.regions);
    facts_set_real(&m->notes, "sms_apart_cycles", range_of(memory, true));
    facts_set_real(&m->notes, "regions_apart_cycles", range_of(memory, false));
    facts_set_int(&m->notes, "region_bytes", (int64_t)memory->region_bytes);
    facts_set_rows(&m->notes, FINGERPRINT_REGIONS, map, memory->sms, memory->map.regions);
    free(map);
    m->spread = CPD_MAD_SIGMA * cpd_mad(memory->cycles, cells);
    m->n = (uint32_t)(cells * memory->map.loads);
    m->confidence = NAN; /* SMs and regions differ: that is no error */
}

static void die_memory_take_answer(struct memory *memory, const struct device_sm_map_answer *answer)
{
    memory->region_bytes = answer->region_bytes;
    memory->cycles = mem_array(answer->value_count, sizeof *memory->cycles);
    memory->sums = mem_array(answer->value_count, sizeof *memory->sums);
    for (size_t i = 0; i < answer->value_count; i++)
        memory->cycles[i] = (double)answer->values[i] / memory->map.loads;
    die_memory_report(memory);
}

static int die_memory_run(struct probe_context *context, struct err *err)
{
    const struct device_limits *limits = device_limits(context->device);
    struct memory memory = {.context = context,
                            .sms = limits->sm_count,
                            .map = {.kind = DEVICE_SM_MAP_MEMORY,
                                    .regions = limits->loads_max ? FEW : REGIONS,
                                    .loads = limits->loads_max ? FEW : LOADS}};
    struct device_sm_map_answer answer;
    struct err own = {0};
    int rc = device_map_sms(context->device, &memory.map, &answer, &own);
    if (rc)
        return repeats_end(context, "die.memory_latency", rc, &own, err);
    die_memory_take_answer(&memory, &answer);
    free(memory.cycles);
    free(memory.sums);
    device_sm_map_answer_fini(&answer);
    return rc;
}

const struct probe probe_die_memory = {
    .description = {"die.memory", "latency of each SM to regions of main memory", PROFILE_FULL},
    .metrics = {"die.memory_latency"},
    .last = true, /* it takes all memory */
    .run = die_memory_run,
};
