/* What the tests of the memory and of the SMs found: they compare a GPU only with what must come
 * out. */
#include <math.h>

#include "base/mem.h"
#include "base/str.h"
#include "catalogue/screens.h"
#include "judge/evidence/stages.h"
#include "judge/fact_text.h"

/* A count of a self-test that is reported if it is not 0, and where the first or worst one lies. */
struct self_check {
    const char *metric, *words;
    enum evidence evidence;
    enum verdict verdict;
    const char *place_metric, *place_words;
    bool in_memory; /* the place is an offset; otherwise an SM */
    /* If this metric is known and less, it happened once, and is told; NULL: it counts at once. */
    const char *repeat_metric;
    double repeat_least;
    /* Appends what else is known; NULL: nothing. */
    void (*describe)(const struct fleet *fleet, uint32_t gpu, const struct self_check *check,
                     struct strbuf *out);
};

/* No more are kept (DEVICE_WRONG_WORDS_MAX): then `again` is not known. */
static const char FIRST_WRONG_WORDS[] = "of the first 1,024: ";

/* "; 3 words, 3 of them wrong again; only bit 5, read as 1; at distances that are multiples of
 * 4096 B; in 1 page of 2 MiB" */
static void describe_wrong_memory(const struct fleet *fleet, uint32_t gpu,
                                  const struct self_check *check, struct strbuf *out)
{
    (void)check;
    double places = fleet_value(fleet, "main.march.places", gpu, false);
    double again = fleet_value(fleet, "main.march.again", gpu, false);
    double bits = fleet_value(fleet, "main.march.bits", gpu, false);
    double ones = fleet_value(fleet, "main.march.ones", gpu, false);
    double pages = fleet_value(fleet, "main.march.pages", gpu, false);
    double period = fleet_value(fleet, "main.march.period", gpu, false);
    if (!(places > 0) || !(bits > 0))
        return;
    strbuf_printf(out, "; %s%.0f %s", isnan(again) ? FIRST_WRONG_WORDS : "", places,
                  places == 1 ? "word" : "words");
    if (!isnan(again))
        strbuf_printf(out, ", %.0f of them wrong again", again);
    if (bits == 1)
        strbuf_printf(out, "; only bit %.0f", fleet_value(fleet, "main.march.bit", gpu, false));
    else
        strbuf_printf(out, "; %.0f of 64 bits", bits);
    strbuf_puts(out, ones == 1   ? ", read as 1"
                     : ones == 0 ? ", read as 0"
                                 : ", read as 0 and as 1");
    if (period > 0) {
        strbuf_puts(out, "; at distances that are multiples of ");
        fact_text_put_number(out, period, "B");
    }
    strbuf_printf(out, "; in %.0f %s of 2 MiB", pages, pages == 1 ? "page" : "pages");
}

/* ", most often at 500 pulses per second" */
static void put_pulses(const struct fleet *fleet, uint32_t gpu, const struct self_check *check,
                       struct strbuf *out)
{
    (void)check;
    double hz = fleet_value(fleet, "compute.pulse_hz", gpu, false);
    if (hz > 0)
        strbuf_printf(out, ", most often at %.0f pulses per second", hz);
    else if (hz == 0)
        strbuf_puts(out, ", most often without pauses");
}

/* ", sub-core 2: 12 of 40; wrong again in 16 of 16 launches; lane 7, set 0, period 5, step 3, word
 * 2: 0x... instead of 0x..., of operands 0x... 0x...; bits 0x...; at 1740 MHz, 312 W, 52 degrees C"
 */
static void describe_wrong_place(const struct fleet *fleet, uint32_t gpu,
                                 const struct self_check *check, struct strbuf *out)
{
    static const struct {
        const char *key, *before, *behind;
    } parts[] = {{"sub_core", ", sub-core ", ""},
                 {"wrong", ": ", ""},
                 {"of", " of ", ""},
                 {"again_wrong", "; wrong again in ", ""},
                 {"again", " of ", " launches"},
                 {"lane", "; lane ", ""},
                 {"set", ", set ", ""},
                 {"period", ", period ", ""},
                 {"step", ", step ", ""},
                 {"word", ", word ", ""},
                 {"found", ": ", ""},
                 {"expected", " instead of ", ""},
                 {"operands", ", of operands ", ""},
                 {"bits", "; bits ", ""},
                 {"sm_mhz", "; at ", " MHz"},
                 {"power_w", ", ", " W"},
                 {"temperature_c", ", ", " degrees C"}};
    const struct metric_column *column = fleet_metric(fleet, check->place_metric);
    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        const struct note_column *notes = fleet_notes(fleet, column, parts[i].key);
        if (!notes || notes->notes[gpu].kind == FACT_UNKNOWN)
            continue;
        strbuf_puts(out, parts[i].before);
        if (notes->notes[gpu].kind == FACT_TEXT)
            strbuf_puts(out, fleet_text(fleet, notes->notes[gpu].text));
        else
            strbuf_printf(out, "%.0f", notes->notes[gpu].number);
        strbuf_puts(out, parts[i].behind);
    }
}

#define WRONG_IN(unit, of)                                                                         \
    {.metric = "compute.wrong_in." unit,                                                           \
     .words = "checks of the " of " with a wrong result: ",                                        \
     .evidence = EVIDENCE_FAULT,                                                                   \
     .verdict = VERDICT_FAILING,                                                                   \
     .place_metric = "compute.wrong_sm",                                                           \
     .place_words = "most on SM ",                                                                 \
     .repeat_metric = "compute.wrong_in." unit,                                                    \
     .repeat_least = 2},
#define WRONG_ON(id, name, of, ...)                                                                \
    {.metric = "compute.wrong_on." name,                                                           \
     .words = "wrong launches in the screen of " of ": ",                                          \
     .evidence = EVIDENCE_FAULT,                                                                   \
     .verdict = VERDICT_FAILING,                                                                   \
     .place_metric = "compute.wrong_at." name,                                                     \
     .place_words = "most on SM ",                                                                 \
     .repeat_metric = "compute.wrong_on." name,                                                    \
     .repeat_least = 2,                                                                            \
     .describe = describe_wrong_place},

static const struct self_check self_checks[] = {
    {.metric = "main.whole.errors",
     .words = "words of memory that read back wrong, over all patterns: ",
     .evidence = EVIDENCE_FAULT,
     .verdict = VERDICT_FAILING,
     .place_metric = "main.whole.first_error",
     .place_words = "the first at ",
     .in_memory = true},
    {.metric = "main.whole.ecc_uncorrected",
     .words = "uncorrectable ECC errors while all memory was written and read: ",
     .evidence = EVIDENCE_FAULT,
     .verdict = VERDICT_FAILING},
    /* Healthy GPUs have a few. A storm of them is accused by the counters of the survey. */
    {.metric = "main.whole.ecc_corrected",
     .words = "corrected ECC errors while all memory was written and read: ",
     .evidence = EVIDENCE_HINT,
     .verdict = VERDICT_DEGRADED},
    {.metric = "main.march.errors",
     .words = "words of memory that a March test read wrong: ",
     .evidence = EVIDENCE_FAULT,
     .verdict = VERDICT_FAILING,
     .place_metric = "main.march.first_error",
     .place_words = "the first at ",
     .in_memory = true,
     .repeat_metric = "main.march.again",
     .repeat_least = 1,
     .describe = describe_wrong_memory},
    {.metric = "main.march.ecc_uncorrected",
     .words = "uncorrectable ECC errors in a March test of all memory: ",
     .evidence = EVIDENCE_FAULT,
     .verdict = VERDICT_FAILING},
    {.metric = "main.march.ecc_corrected",
     .words = "corrected ECC errors in a March test of all memory: ",
     .evidence = EVIDENCE_HINT,
     .verdict = VERDICT_DEGRADED},
    /* Not known well enough to accuse: no GPU with a weak region was met. */
    {.metric = "main.whole.slow_regions",
     .words = "regions of memory that are slower than the others in every pass of writing, or of "
              "reading: ",
     .evidence = EVIDENCE_HINT,
     .verdict = VERDICT_DEGRADED,
     .place_metric = "main.whole.slowest_region",
     .place_words = "the slowest at ",
     .in_memory = true},
    {.metric = "main.whole.late_regions",
     .words = "regions of memory with a higher latency than the others, again when repeated: ",
     .evidence = EVIDENCE_HINT,
     .verdict = VERDICT_DEGRADED,
     .place_metric = "main.whole.latency_worst_region",
     .place_words = "the highest at ",
     .in_memory = true},
    /* clang-format off */
    WRONG_IN("int", "integer units")
    WRONG_IN("fp32", "FP32 units")
    WRONG_IN("fp64", "FP64 units")
    WRONG_IN("mma_f16", "tensor units (FP16)")
    WRONG_IN("mma_bf16", "tensor units (BF16)")
    WRONG_IN("mma_fp8", "tensor units (FP8)")
    WRONG_IN("wgmma_f16", "tensor units (FP16, wgmma)")
    WRONG_IN("wgmma_bf16", "tensor units (BF16, wgmma)")
    WRONG_IN("wgmma_fp8", "tensor units (FP8, wgmma)")
    WRONG_IN("shared", "shared memory")
    WRONG_IN("registers", "registers")
    WRONG_IN("atomics", "atomics")
    SCREENS(WRONG_ON)
    /* clang-format on */
    {.metric = "compute.pulse",
     .words = "launches of the screen under stress with a wrong result: ",
     .evidence = EVIDENCE_FAULT,
     .verdict = VERDICT_FAILING,
     .place_metric = "compute.pulse_sm",
     .place_words = "most on SM ",
     .repeat_metric = "compute.pulse",
     .repeat_least = 2,
     .describe = put_pulses},
    {.metric = "compute.hot",
     .words = "launches of the screen on the hot GPU with a wrong result: ",
     .evidence = EVIDENCE_FAULT,
     .verdict = VERDICT_FAILING,
     .place_metric = "compute.hot_sm",
     .place_words = "most on SM ",
     .repeat_metric = "compute.hot",
     .repeat_least = 2},
};

static void self_check_report(struct judge *judge, uint32_t gpu, const struct self_check *check,
                              double value)
{
    const struct fleet *fleet = &judge->fleet;
    double place = fleet_value(fleet, check->place_metric, gpu, false);
    bool once = fleet_value(fleet, check->repeat_metric, gpu, false) < check->repeat_least;
    struct strbuf text = {0};
    strbuf_printf(&text, "%s%.0f", check->words, value);
    if (isfinite(place)) {
        strbuf_printf(&text, ", %s", check->place_words);
        fact_text_put_number(&text, place, check->in_memory ? "B" : "");
        strbuf_puts(&text, check->in_memory ? " of the memory that was tested" : "");
    }
    if (check->describe)
        check->describe(fleet, gpu, check, &text);
    if (once)
        strbuf_puts(&text, "; it was seen once: measure it again");
    findings_add_rule(judge, gpu, check->metric, once ? EVIDENCE_HINT : check->evidence,
                      check->verdict, value, text.data);
}

void stage_self_checks(struct judge *judge)
{
    const struct fleet *fleet = &judge->fleet;
    const struct metric_column *columns[COUNT_OF(self_checks)];
    for (size_t k = 0; k < COUNT_OF(self_checks); k++)
        columns[k] = fleet_metric(fleet, self_checks[k].metric);
    for (size_t i = 0; i < fleet->count; i++)
        for (size_t k = 0; k < COUNT_OF(self_checks); k++) {
            const struct cell *cell = fleet_number(columns[k], fleet->order[i], false);
            if (cell && cell->value > 0)
                self_check_report(judge, fleet->order[i], &self_checks[k], cell->value);
        }
}
