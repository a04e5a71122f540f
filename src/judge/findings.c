/* The list of findings. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "judge/stages.h"

struct finding *findings_add(struct judge *judge, uint32_t gpu, const char *metric,
                             enum basis basis)
{
    struct findings *findings = &judge->findings;
    struct finding *grown =
        mem_grow(findings->items, &findings->capacity, findings->count + 1, sizeof *grown);
    uint32_t symbol;
    if (grown)
        findings->items = grown;
    if (!grown || symbols_text(&judge->fleet.symbols, metric, &symbol))
        return NULL;
    struct finding *finding = &grown[findings->count++];
    *finding = (struct finding){.gpu = gpu,
                                .metric = symbol,
                                .basis = basis,
                                .rule = -1,
                                .kind = KIND_DEGRADED,
                                .value = NAN,
                                .expected = NAN,
                                .deviation = NAN,
                                .score = NAN,
                                .previous = findings->last[gpu]};
    findings->last[gpu] = (uint32_t)findings->count;
    return finding;
}

int findings_add_rule(struct judge *judge, uint32_t gpu, const char *metric, bool accused,
                      enum inventory_kind kind, double value, char *cause)
{
    struct finding *finding = cause ? findings_add(judge, gpu, metric, BASIS_RULE) : NULL;
    if (!finding) {
        free(cause);
        return -ENOMEM;
    }
    finding->accused = accused;
    finding->kind = kind;
    finding->value = value;
    finding->cause = cause;
    return symbols_text(&judge->fleet.symbols, "", &finding->unit);
}

struct finding *finding_of(struct judge *judge, uint32_t gpu, const char *metric, enum basis basis)
{
    uint32_t symbol = symbols_find(&judge->fleet.symbols, metric);
    for (uint32_t at = judge->findings.last[gpu]; at; at = judge->findings.items[at - 1].previous) {
        struct finding *finding = &judge->findings.items[at - 1];
        if (finding->metric == symbol && finding->basis == basis)
            return finding;
    }
    return NULL;
}

bool findings_accuse(const struct judge *judge, uint32_t gpu, size_t metric)
{
    for (uint32_t at = judge->findings.last[gpu]; at; at = judge->findings.items[at - 1].previous) {
        const struct finding *finding = &judge->findings.items[at - 1];
        if (finding->rule == (int32_t)metric && finding->accused && !finding->dropped)
            return true;
    }
    return false;
}

void findings_fini(struct findings *findings)
{
    for (size_t i = 0; i < findings->count; i++)
        free(findings->items[i].cause);
    free(findings->items);
    free(findings->last);
    memset(findings, 0, sizeof *findings);
}
