/* GPUs whose SMs are all wrong alike in the screen for wrong results. Where the host knows the
 * answer, a GPU that gives another one is wrong if others give that of the host; alone, it is told
 * of, since the host can be wrong, too. Otherwise GPUs that run the same machine code must have the
 * same digest: this needs no file of right answers. */
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/sort.h"
#include "base/str.h"
#include "catalogue/screens.h"
#include "judge/evidence/stages.h"
#include "judge/model.h"
#include "judge/world.h"

enum { AGREE_MIN = 3 }; /* GPUs that say what is right, if they are two thirds of all */

static const char CODE[] = "compute.code";

static const struct digest_metric {
    const char *metric, *host_metric, *words;
    bool by_host;
} digest_metrics[] = {
#define DIGEST_METRIC(id, name, words, host, ...)                                                  \
    {"compute.digest." name, "compute.not_as_host." name, words, host},
    SCREENS(DIGEST_METRIC)};

struct digest {
    double code, value;
    uint32_t gpu;
};

static int by_code_and_value(const void *a, const void *b)
{
    const struct digest *x = a, *y = b;
    if (x->code != y->code)
        return x->code < y->code ? -1 : 1;
    return (x->value > y->value) - (x->value < y->value);
}

/* The most frequent value of digests in order, and how many have it. */
static double most_frequent(const struct digest *digests, size_t count, size_t *out_most)
{
    double found = NAN;
    *out_most = 0;
    for (size_t i = 0, same = 0; i < count; i++) {
        same = i && digests[i].value == digests[i - 1].value ? same + 1 : 1;
        found = same > *out_most ? digests[i].value : found;
        *out_most = same > *out_most ? same : *out_most;
    }
    return found;
}

/* What all GPUs elsewhere have, with the same code, if they are enough; NaN: not known. */
static double value_elsewhere(const struct judge *judge, const struct digest *digest,
                              const char *metric, uint32_t *out_count)
{
    const struct fleet *fleet = &judge->fleet;
    const struct world_peers peers =
        model_world(judge, &fleet->populations[fleet->gpus[digest->gpu].population], metric);
    const struct world_figure *code =
        peers.population ? world_find_figure(peers.population, CODE) : NULL;
    if (!peers.figure || !code || peers.figure->n < AGREE_MIN || code->median != digest->code ||
        code->quantiles[0] != code->quantiles[WORLD_QUANTILES - 1] ||
        peers.figure->quantiles[0] != peers.figure->quantiles[WORLD_QUANTILES - 1])
        return NAN;
    *out_count = peers.figure->n;
    return peers.figure->median;
}

/* GPUs that run the same code. */
static void judge_digests(struct judge *judge, const struct digest_metric *metric,
                          const struct digest *digests, size_t count)
{
    size_t most = 0;
    double right = most_frequent(digests, count, &most);
    bool known = most >= AGREE_MIN && 3 * most >= 2 * count;
    for (size_t i = 0; i < count; i++) {
        const struct digest *digest = &digests[i];
        uint32_t elsewhere = 0;
        char *text = NULL;
        double wanted = known ? right : value_elsewhere(judge, digest, metric->metric, &elsewhere);
        if (isnan(wanted) && 2 * most > count)
            wanted = right;
        if (digest->value == wanted)
            continue;
        if (known)
            text =
                str_format("%s give another result than on %zu of %zu GPUs with the same program",
                           metric->words, most, count);
        else if (elsewhere)
            text =
                str_format("%s give another result than on %u GPUs elsewhere with the same program",
                           metric->words, elsewhere);
        else
            text =
                str_format("%s do not give the same result on %zu GPUs with the same program: too "
                           "few agree to tell who is right",
                           metric->words, count);
        findings_add_rule(judge, digest->gpu, metric->metric,
                          known       ? EVIDENCE_MINORITY
                          : elsewhere ? EVIDENCE_HINT
                                      : EVIDENCE_NO_MAJORITY,
                          VERDICT_FAILING, digest->value, text);
    }
}

/* GPUs of a model that differ from the host. */
static void judge_by_host(struct judge *judge, const struct digest_metric *metric,
                          const struct group *model, const struct metric_column *differ)
{
    const struct fleet *fleet = &judge->fleet;
    const struct metric_column *screened = fleet_metric(fleet, "compute.screen");
    size_t others = 0, all = 0;
    for (size_t i = 0; i < model->count; i++) {
        uint32_t gpu = model->members[i];
        if (!fleet_number(screened, gpu, false) || !fleet_judged(&fleet->gpus[gpu]))
            continue;
        all++;
        others += fleet_number(differ, gpu, false) == NULL;
    }
    for (size_t i = 0; i < model->count; i++) {
        uint32_t gpu = model->members[i];
        const struct cell *cell = fleet_number(differ, gpu, false);
        if (!cell || !fleet_judged(&fleet->gpus[gpu]))
            continue;
        findings_add_rule(
            judge, gpu, metric->host_metric, others ? EVIDENCE_FAULT : EVIDENCE_HINT,
            VERDICT_FAILING, cell->value,
            others ? str_format("%s: all SMs give another result than the host, with which %zu of "
                                "%zu GPUs of its model agree",
                                metric->words, others, all)
                   : str_format("%s: all SMs give another result than the host, and no other GPU "
                                "shows who is right",
                                metric->words));
    }
}

/* The digests of the GPUs of a model that have one, in order. */
static size_t digests_of(const struct fleet *fleet, const struct group *model,
                         const struct metric_column *codes, const struct metric_column *values,
                         struct digest *out_digests)
{
    size_t count = 0;
    for (size_t i = 0; i < model->count; i++) {
        uint32_t gpu = model->members[i];
        const struct cell *code = fleet_number(codes, gpu, false);
        const struct cell *value = fleet_number(values, gpu, false);
        if (code && value && fleet_judged(&fleet->gpus[gpu]))
            out_digests[count++] = (struct digest){code->value, value->value, gpu};
    }
    sort_stable(out_digests, count, sizeof *out_digests, by_code_and_value);
    return count;
}

void stage_digests(struct judge *judge)
{
    const struct fleet *fleet = &judge->fleet;
    for (size_t m = 0; m < COUNT_OF(digest_metrics); m++) {
        const struct metric_column *differ = fleet_metric(fleet, digest_metrics[m].host_metric);
        for (size_t g = 0; g < fleet->group_count && differ; g++)
            judge_by_host(judge, &digest_metrics[m], &fleet->groups[g], differ);
    }
    const struct metric_column *codes = fleet_metric(fleet, CODE);
    struct digest *digests = mem_array(fleet->count ? fleet->count : 1, sizeof *digests);
    for (size_t m = 0; m < COUNT_OF(digest_metrics) && codes; m++) {
        const struct metric_column *values = fleet_metric(fleet, digest_metrics[m].metric);
        for (size_t g = 0; g < fleet->group_count && values && !digest_metrics[m].by_host; g++) {
            size_t count = digests_of(fleet, &fleet->groups[g], codes, values, digests);
            for (size_t i = 0, end; i < count; i = end) {
                for (end = i + 1; end < count && digests[end].code == digests[i].code;)
                    end++;
                judge_digests(judge, &digest_metrics[m], digests + i, end - i);
            }
        }
    }
    free(digests);
}
