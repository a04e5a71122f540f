/* What the GPUs of a model were built with, where it explains figures. Told once per model; nobody
 * is accused. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "cpd/cpd.h"
#include "judge/conditions.h"
#include "judge/evidence/stages.h"
#include "judge/model.h"
#include "judge/verdict.h"

/* A figure of the GPU, also one that is not judged. */
static double built_figure(const struct metric_column *column, uint32_t gpu)
{
    const struct cell *cell = column ? &column->cells[gpu] : NULL;
    return cell && cell->present && cell->status == MEASURE_OK ? cell->value : NAN;
}

/* The figures that splits change. */
struct split_columns {
    const struct metric_column *parts, *part_sms, *sms;
    const struct metric_column *read, *write, *equal_read, *equal_write;
};

static struct split_columns split_columns_of(const struct fleet *fleet)
{
    return (struct split_columns){.parts = fleet_metric(fleet, "l2.parts"),
                                  .part_sms = fleet_metric(fleet, "l2.part_sms"),
                                  .sms = fleet_metric(fleet, "sm.count"),
                                  .read = fleet_metric(fleet, "main.bandwidth.read"),
                                  .write = fleet_metric(fleet, "main.bandwidth.write"),
                                  .equal_read = fleet_metric(fleet, "main.bandwidth_equal.read"),
                                  .equal_write = fleet_metric(fleet, "main.bandwidth_equal.write")};
}

/* What a stream with equal work per SM gets of what the memory delivers: mean of reads and
 * writes. */
static double equal_share(const struct split_columns *columns, uint32_t gpu)
{
    return (built_figure(columns->equal_read, gpu) / built_figure(columns->read, gpu) +
            built_figure(columns->equal_write, gpu) / built_figure(columns->write, gpu)) /
           2;
}

/* SMs near the smaller part of an L2 with two parts; NaN: not known. */
static double smaller_part(const struct split_columns *columns, uint32_t gpu)
{
    return built_figure(columns->parts, gpu) == 2 ? built_figure(columns->part_sms, gpu) : NAN;
}

/* What a place costs at least to be told, as by the default policy. */
static const double PLACE_LOSS = 0.01;

/* Ways to place SMs, and splits: more are left out. */
enum { VALUES_MAX = 16 };

/* What streams with equal work per SM lose by the most uneven split that was seen (60 and 72 of 132
 * SMs), with some room. */
static const double SPLIT_LOSS = 0.07;

/* Older programs, and probes chosen by hand, measure streams with equal work per SM alone. A GPU
 * whose SMs are spread unevenly over the parts of L2 is slower in these, and nothing is wrong with
 * it. */
void stage_splits(struct judge *judge)
{
    const struct split_columns columns = split_columns_of(&judge->fleet);
    size_t count = judge->findings.issue_count;
    for (size_t i = 0; i < count; i++) {
        const struct issue *issue = &judge->findings.issues[i];
        const struct finding *finding = issue_finding(judge, issue);
        if (issue->basis == BASIS_BASELINE || finding->explained_by ||
            !strstr(fleet_text(&judge->fleet, issue->metric), ".bandwidth_equal.") ||
            !isnan(smaller_part(&columns, issue->gpu)) || !(fabs(finding->deviation) <= SPLIT_LOSS))
            continue;
        findings_add(judge, finding_about(judge, issue, EVIDENCE_PERHAPS_BUILT),
                     str_copy("perhaps its build: with equal work per SM a GPU is slower whose SMs "
                              "are spread unevenly over the parts of L2, and the spread was not "
                              "measured"));
    }
}

/* Values that are not NaN, rising, each once. Returns how many; more than VALUES_MAX are left out.
 */
static size_t list_values(const double *values, size_t count, double out_values[VALUES_MAX])
{
    size_t listed = 0;
    for (size_t i = 0; i < count; i++) {
        size_t at = 0;
        while (at < listed && out_values[at] < values[i])
            at++;
        if (isnan(values[i]) || listed == VALUES_MAX ||
            (at < listed && out_values[at] == values[i]))
            continue;
        memmove(&out_values[at + 1], &out_values[at], (listed++ - at) * sizeof *out_values);
        out_values[at] = values[i];
    }
    return listed;
}

/* The median of the shares with this value, and how many GPUs have it, also without a share. */
static double median_share(const double *values, const double *shares, size_t count, double value,
                           double *scratch, size_t *out_count)
{
    size_t n = 0;
    *out_count = 0;
    for (size_t i = 0; i < count; i++) {
        if (values[i] != value)
            continue;
        *out_count += 1;
        if (isfinite(shares[i]))
            scratch[n++] = shares[i];
    }
    return n ? cpd_median(scratch, n) : NAN;
}

/* The parts of L2 share the memory alike. If they have different numbers of SMs, and each SM has
 * the same work, the SMs of the smaller part end first. One sentence for all splits of a model. */
static void report_splits(const struct judge *judge, const struct group *model,
                          struct inventory *inventory)
{
    const struct split_columns columns = split_columns_of(&judge->fleet);
    double *smaller = mem_array(3 * model->count, sizeof *smaller);
    double *shares = smaller + model->count, *scratch = shares + model->count;
    double splits[VALUES_MAX], most = 0, worst = NAN;
    for (size_t i = 0; i < model->count; i++) {
        uint32_t gpu = model->members[i];
        smaller[i] = smaller_part(&columns, gpu);
        shares[i] = isnan(smaller[i]) ? NAN : equal_share(&columns, gpu);
        most = fmax(most, built_figure(columns.sms, gpu));
    }
    size_t even_count = 0;
    double even = median_share(smaller, shares, model->count, most / 2, scratch, &even_count);
    struct strbuf text = {0};
    size_t listed = list_values(smaller, model->count, splits);
    for (size_t s = 0; s < listed && splits[s] < most / 2; s++) {
        size_t count = 0;
        double share = median_share(smaller, shares, model->count, splits[s], scratch, &count);
        if (text.length)
            strbuf_printf(&text, ", %zu %s %.0f and %.0f", count, count == 1 ? "has" : "have",
                          splits[s], most - splits[s]);
        else
            strbuf_printf(&text, "%zu of %zu GPUs of %s %s %.0f and %.0f SMs on the parts of L2",
                          count, model->count, model->id, count == 1 ? "has" : "have", splits[s],
                          most - splits[s]);
        double loss = 1 - share / even;
        if (isfinite(loss))
            strbuf_printf(&text, ": kernels with equal work per SM lose %.1f %%", 100 * loss);
        worst = fmax(worst, loss); /* NaN only if both are */
    }
    free(smaller);
    if (!text.length)
        return;
    strbuf_puts(&text, isnan(worst) ? ": kernels with equal work per SM lose by it" : "");
    strbuf_puts(&text, "; what the memory delivers is the same");
    verdict_add_place(judge->basis.config, inventory, EVIDENCE_BUILT, VERDICT_BUILT_SLOWER,
                      worst > 0 ? measure_digits(worst, 3) : NAN, NULL, text.data);
}

/* A group of few SMs (a GPC) reads less of L2, and the larger ones cannot make up for it. One
 * sentence for all places of a model that cost something; more than chips differ by is a loss. */
static void report_places(const struct judge *judge, const struct group *model, size_t metric,
                          struct inventory *inventory)
{
    const struct judge_metric *rule = &judge->basis.config->metrics[metric];
    const struct metric_column *column = fleet_metric(&judge->fleet, rule->place_metric);
    double listed[VALUES_MAX], worst = 0, usual = NAN;
    double *places = mem_array(3 * model->count, sizeof *places);
    double *shares = places + model->count, *scratch = shares + model->count;
    struct strbuf text = {0};
    for (size_t i = 0; i < model->count; i++) {
        places[i] = built_figure(column, model->members[i]);
        shares[i] = model_share_of_usual(judge, model->members[i], metric);
        usual = isnan(usual) ? model_figure(judge, model->members[i], metric)->place : usual;
    }
    size_t known = isnan(usual) ? 0 : list_values(places, model->count, listed);
    for (size_t i = 0; i < known; i++) {
        size_t count;
        double loss = 1 - median_share(places, shares, model->count, listed[i], scratch, &count);
        if (listed[i] == usual || !(loss >= PLACE_LOSS && loss <= model_constants[BUILT_APART]))
            continue;
        if (text.length)
            strbuf_printf(&text, ", %zu one of %.0f", count, listed[i]);
        else
            strbuf_printf(&text, "%zu of %zu GPUs of %s %s a group of %.0f SMs", count,
                          model->count, model->id, count == 1 ? "has" : "have", listed[i]);
        strbuf_printf(&text, ": %s is %.1f %% less", rule->metric, 100 * loss);
        worst = fmax(worst, loss);
    }
    free(places);
    if (!text.length)
        return;
    strbuf_printf(&text, " than with %.0f in the smallest", usual);
    verdict_add_place(judge->basis.config, inventory, EVIDENCE_BUILT, VERDICT_BUILT_SLOWER,
                      measure_digits(worst, 3), NULL, text.data);
}

/* A memory stack has 1024 data lines, so a bus of 6016 has lost 128 of 6144. The slices of L2 that
 * belong to them are off, and the driver counts them all the same. */
static void report_slices_off(const struct judge *judge, const struct group *model,
                              struct inventory *inventory)
{
    static const double STACK_BITS = 1024, ALIKE = 0.004;
    const struct fleet *fleet = &judge->fleet;
    const struct metric_column *sizes = fleet_metric(fleet, "l2.size");
    for (size_t i = 0; i < model->count; i++) {
        uint32_t gpu = model->members[i];
        double size = built_figure(sizes, gpu);
        double reported = judge_condition_value(fleet, JUDGE_L2, gpu);
        double bits = judge_condition_value(fleet, JUDGE_MEMORY_BUS, gpu);
        double whole = ceil(bits / STACK_BITS) * STACK_BITS;
        if (!(bits < whole) || !(fabs(size / reported - bits / whole) < ALIKE))
            continue;
        verdict_add_remark(
            inventory,
            str_format("%s: L2 holds %.1f of the %.1f MiB that the driver reports, as the bus "
                       "has %.0f of %.0f bits: slices of L2 are off with their memory",
                       model->id, size / 0x1p20, reported / 0x1p20, bits, whole));
        return;
    }
}

void stage_built(struct judge *judge, struct inventory *inventory)
{
    for (size_t g = 0; g < judge->fleet.group_count && !judge->basis.drift_only; g++) {
        report_splits(judge, &judge->fleet.groups[g], inventory);
        for (size_t m = 0; m < judge->basis.config->metric_count; m++)
            if (judge->columns[m] && judge->basis.config->metrics[m].place_metric)
                report_places(judge, &judge->fleet.groups[g], m, inventory);
        report_slices_off(judge, &judge->fleet.groups[g], inventory);
    }
}
