/* What the tests of the whole memory and of the SMs found. They compare a GPU only with what must
 * come out, so they need no peers. */
#include <errno.h>
#include <math.h>

#include "base/mem.h"
#include "base/str.h"
#include "judge/fact_text.h"
#include "judge/stages.h"

#define MEMORY " of the memory that was tested"
#define WRONG_IN(unit, words)                                                                      \
    {                                                                                              \
        "compute.wrong_in." unit, "compute.wrong_sm", true, KIND_FAILING,                          \
            "checks of the " words " with a wrong result: ", "most on SM ", "", ""                 \
    }

/* A count that is reported if it is not 0, and where the first or worst one lies. */
static const struct count {
    const char *metric, *place_metric;
    bool accuses; /* otherwise it is watched */
    enum inventory_kind kind;
    const char *words, *place_words, *place_unit, *place_of;
} counts[] = {
    {"main.whole.errors", "main.whole.first_error", true, KIND_FAILING,
     "words of memory that read back wrong, over all patterns: ", "the first at ", "B", MEMORY},
    {"main.whole.ecc_uncorrected", NULL, true, KIND_FAILING,
     "uncorrectable ECC errors while all memory was written and read: ", NULL, NULL, NULL},
    /* Healthy GPUs have a few. A storm of them is accused by the counters of the survey. */
    {"main.whole.ecc_corrected", NULL, false, KIND_DEGRADED,
     "corrected ECC errors while all memory was written and read: ", NULL, NULL, NULL},
    /* Not known well enough to accuse: no GPU with a weak region was met. */
    {"main.whole.slow_regions", "main.whole.slowest_region", false, KIND_DEGRADED,
     "regions of memory that are slower than the others in every pass of writing, or of reading: ",
     "the slowest at ", "B", MEMORY},
    {"main.whole.late_regions", "main.whole.latency_worst_region", false, KIND_DEGRADED,
     "regions of memory with a higher latency than the others, again when repeated: ",
     "the highest at ", "B", MEMORY},
    WRONG_IN("int", "integer units"),
    WRONG_IN("fp32", "FP32 units"),
    WRONG_IN("fp64", "FP64 units"),
    WRONG_IN("mma_f16", "tensor units (FP16)"),
    WRONG_IN("mma_bf16", "tensor units (BF16)"),
    WRONG_IN("mma_fp8", "tensor units (FP8)"),
    WRONG_IN("wgmma_f16", "tensor units (FP16, wgmma)"),
    WRONG_IN("wgmma_bf16", "tensor units (BF16, wgmma)"),
    WRONG_IN("wgmma_fp8", "tensor units (FP8, wgmma)"),
    WRONG_IN("shared", "shared memory"),
    WRONG_IN("registers", "registers"),
    WRONG_IN("atomics", "atomics"),
};

static double value_of(const struct fleet *fleet, const char *metric, uint32_t gpu)
{
    const struct cell *cell = fleet_number(fleet_metric(fleet, metric), gpu, false);
    return cell ? cell->value : NAN;
}

/* "words of memory that read back wrong, over all patterns: 3, the first at 17.5 GiB of the memory
 * that was tested" */
static char *cause_of(const struct count *count, double value, double place)
{
    struct strbuf text = {0};
    strbuf_printf(&text, "%s%.0f", count->words, value);
    if (isfinite(place)) {
        strbuf_printf(&text, ", %s", count->place_words);
        fact_text_put_number(&text, place, count->place_unit);
        strbuf_puts(&text, count->place_of);
    }
    if (text.failed)
        strbuf_fini(&text);
    return text.data;
}

int judge_self_checks(struct judge *judge)
{
    const struct fleet *fleet = &judge->fleet;
    for (size_t i = 0; i < fleet->count; i++)
        for (size_t k = 0; k < COUNT_OF(counts); k++) {
            uint32_t gpu = fleet->order[i];
            double value = value_of(fleet, counts[k].metric, gpu);
            double place =
                counts[k].place_metric ? value_of(fleet, counts[k].place_metric, gpu) : NAN;
            if (value > 0 &&
                findings_add_rule(judge, gpu, counts[k].metric, counts[k].accuses, counts[k].kind,
                                  value, cause_of(&counts[k], value, place)))
                return -ENOMEM;
        }
    return 0;
}
