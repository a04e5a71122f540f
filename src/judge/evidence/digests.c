/* GPUs whose SMs are all wrong alike in the screen for wrong results: only GPUs that run the same
 * machine code are compared, by their digests. Where the host knows the answer, a digest that
 * agrees with the host of its node is right; otherwise that of most GPUs, which needs no file of
 * right answers. */
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/sort.h"
#include "base/str.h"
#include "catalogue/screens.h"
#include "judge/evidence/stages.h"
#include "judge/world.h"

enum { AGREE_MIN = 3 }; /* GPUs that say what is right, if they are two thirds of all */

/* The driver compiled it. */
static const double NO_CODE = -1;

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
    bool not_as_host;
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

static bool is_same_everywhere(const struct world_figure *figure)
{
    return figure && figure->quantiles[0] == figure->quantiles[WORLD_QUANTILES - 1];
}

/* What all GPUs elsewhere have with the same code, if they are enough; NaN: not known. A digest
 * does not depend on the board. */
static double value_elsewhere(const struct judge *judge, const struct digest *digest,
                              const char *metric, uint32_t *out_count)
{
    const struct fleet *fleet = &judge->fleet;
    const struct group *population = &fleet->populations[fleet->gpus[digest->gpu].population];
    const struct world_model *model =
        world_find_model(judge->basis.world, fleet_text(fleet, population->key));
    double value = NAN;
    uint32_t count = 0;
    for (size_t i = 0; model && i < model->population_count; i++) {
        const struct world_figure *code = world_find_figure(&model->populations[i], CODE);
        const struct world_figure *figure = world_find_figure(&model->populations[i], metric);
        if (!is_same_everywhere(code) || code->median != digest->code || !figure)
            continue;
        if (!is_same_everywhere(figure) || (count && figure->median != value))
            return NAN;
        value = figure->median;
        count += figure->n;
    }
    if (count < AGREE_MIN)
        return NAN;
    *out_count = count;
    return value;
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
            text = str_format("%s give another result than on %zu of %zu GPUs with the same "
                              "program: digest %.0f instead of %.0f",
                              metric->words, most, count, digest->value, wanted);
        else if (elsewhere)
            text = str_format("%s give another result than on %u GPUs elsewhere with the same "
                              "program: digest %.0f instead of %.0f",
                              metric->words, elsewhere, digest->value, wanted);
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

/* The GPUs of a model, where the host knows the answer, which does not depend on the code. If a GPU
 * that differs from its host has the digest of one that does not, the host is wrong. */
static void judge_by_host(struct judge *judge, const struct digest_metric *metric,
                          const struct digest *digests, size_t count)
{
    double right = NAN;
    size_t agree = 0;
    for (size_t i = 0; i < count; i++) {
        right = digests[i].not_as_host ? right : digests[i].value;
        agree += !digests[i].not_as_host;
    }
    for (size_t i = 0; i < count; i++) {
        const struct digest *digest = &digests[i];
        bool host_is_wrong = digest->value == right, known = agree && !host_is_wrong;
        if (!digest->not_as_host)
            continue;
        findings_add_rule(
            judge, digest->gpu, metric->host_metric, known ? EVIDENCE_FAULT : EVIDENCE_HINT,
            host_is_wrong ? VERDICT_UNKNOWN : VERDICT_FAILING, 1,
            host_is_wrong
                ? str_format("%s give the result of the other GPUs (%zu); the CPU of the node "
                             "computes another one",
                             metric->words, agree)
            : known ? str_format("%s: all SMs give another result than the host, with which "
                                 "%zu of %zu GPUs of its model agree: digest %.0f "
                                 "instead of %.0f",
                                 metric->words, agree, count, digest->value, right)
                    : str_format("%s: all SMs give another result than the host, and no "
                                 "other GPU shows who is right",
                                 metric->words));
    }
}

/* The digests of the GPUs of a model that have one, in order. */
static size_t digests_of(const struct fleet *fleet, const struct group *model,
                         const struct digest_metric *metric, struct digest *out_digests)
{
    const struct metric_column *codes = fleet_metric(fleet, CODE);
    const struct metric_column *values = fleet_metric(fleet, metric->metric);
    const struct metric_column *differ = fleet_metric(fleet, metric->host_metric);
    size_t count = 0;
    for (size_t i = 0; i < model->count; i++) {
        uint32_t gpu = model->members[i];
        const struct cell *code = fleet_number(codes, gpu, false);
        const struct cell *value = fleet_number(values, gpu, false);
        if (value && (code || metric->by_host) && fleet_judged(&fleet->gpus[gpu]))
            out_digests[count++] = (struct digest){code ? code->value : NO_CODE, value->value, gpu,
                                                   fleet_number(differ, gpu, false) != NULL};
    }
    sort_stable(out_digests, count, sizeof *out_digests, by_code_and_value);
    return count;
}

void stage_digests(struct judge *judge)
{
    const struct fleet *fleet = &judge->fleet;
    struct digest *digests = mem_array(fleet->count ? fleet->count : 1, sizeof *digests);
    for (size_t m = 0; m < COUNT_OF(digest_metrics); m++)
        for (size_t g = 0; g < fleet->group_count; g++) {
            const struct digest_metric *metric = &digest_metrics[m];
            size_t count = digests_of(fleet, &fleet->groups[g], metric, digests);
            if (metric->by_host)
                judge_by_host(judge, metric, digests, count);
            for (size_t i = 0, end; i < count && !metric->by_host; i = end) {
                for (end = i + 1; end < count && digests[end].code == digests[i].code;)
                    end++;
                judge_digests(judge, metric, digests + i, end - i);
            }
        }
    free(digests);
}
