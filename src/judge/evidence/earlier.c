/* Findings of earlier surveys that the GPU's result did not look for: they are told, so that they
 * do not disappear. */
#include "base/mem.h"
#include "base/str.h"
#include "judge/evidence/stages.h"

static void earlier_report(struct judge *judge, uint32_t gpu, const struct judge_earlier *earlier)
{
    const struct inventory_evidence *was = earlier->evidence;
    const bool told = str_equal(was->basis, judge_basis_earlier);
    struct finding finding = finding_new(judge, gpu, was->metric, BASIS_EARLIER, EVIDENCE_HINT);
    finding.unit = judge_symbol(judge, was->unit);
    finding.value = was->value;
    finding.expected = was->expected;
    finding.deviation = was->deviation;
    findings_add(judge, finding,
                 told ? str_copy(was->cause)
                      : str_format("found by the survey of %s, not measured again since: %s",
                                   earlier->stamp, was->cause ? was->cause : "cause unknown"));
}

void stage_earlier(struct judge *judge)
{
    const struct fleet *fleet = &judge->fleet;
    for (size_t i = 0; i < judge->earlier_count; i++) {
        const uint32_t uuid = symbols_find(&fleet->symbols, judge->earlier[i].uuid);
        for (uint32_t gpu = 0; uuid && gpu < fleet->count; gpu++)
            if (fleet->gpus[gpu].uuid == uuid)
                earlier_report(judge, gpu, &judge->earlier[i]);
    }
}
