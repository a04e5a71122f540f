/* One record per model: medians of numbers, majorities of everything else. */
#include "judge/consensus.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "inventory/fingerprint.h"
#include "inventory/link_row.h"
#include "inventory/load_curve.h"
#include "inventory/surface_curves.h"
#include "judge/robust.h"

/* At most this many kinds of cells are counted for the majority. */
enum { KINDS_MAX = 64 };

/* One metric of the GPUs from which the consensus is made. */
struct column {
    const struct fleet *fleet;
    const struct metric_column *metric;
    uint32_t *gpus; /* that have the metric */
    size_t count;
    double *numbers; /* room for one figure per GPU */
};

static const struct cell *cell_of(const struct column *column, size_t i)
{
    return &column->metric->cells[column->gpus[i]];
}

static bool is_number(const struct cell *cell)
{
    return cell->kind == MEASURE_NUMBER && measure_status_valued(cell->status);
}

/* Of the same kind for the majority: same bound, unit, words, and status if there is no value. */
static bool alike(const struct cell *a, const struct cell *b)
{
    if (a->kind != b->kind || a->bound != b->bound || is_number(a) != is_number(b) ||
        a->word_count != b->word_count || a->words != b->words || a->unit != b->unit)
        return false;
    return is_number(a) || a->kind != MEASURE_NUMBER || a->status == b->status;
}

/* The first cell of the most frequent kind. */
static const struct cell *majority(const struct column *column)
{
    const struct cell *kinds[KINDS_MAX];
    size_t votes[KINDS_MAX], count = 0, best = 0;
    for (size_t i = 0; i < column->count; i++) {
        const struct cell *cell = cell_of(column, i);
        size_t k = 0;
        while (k < count && !alike(kinds[k], cell))
            k++;
        if (k == KINDS_MAX)
            continue;
        if (k == count) {
            kinds[count] = cell;
            votes[count++] = 0;
        }
        votes[k]++;
    }
    for (size_t k = 1; k < count; k++)
        if (votes[k] > votes[best])
            best = k;
    return kinds[best];
}

static int put_words(const struct fleet *fleet, const struct cell *cell, struct measure *out)
{
    const char *word = fleet_text(fleet, cell->words);
    out->words = cell->word_count ? mem_array(cell->word_count, sizeof *out->words) : NULL;
    if (cell->word_count && !out->words)
        return -ENOMEM;
    for (; out->word_count < cell->word_count; out->word_count++) {
        if (str_copy_to(&out->words[out->word_count], word))
            return -ENOMEM;
        word += strlen(word) + 1;
    }
    return 0;
}

/* A picture differs on every GPU: that of the GPU with the median figure stands for the
 * model. */
static const struct note *median_note(const struct column *column, const struct cell *kind,
                                      const struct note_column *notes)
{
    const struct note *nearest = NULL;
    double least = INFINITY, median;
    size_t n = 0;
    for (size_t i = 0; i < column->count; i++)
        if (alike(kind, cell_of(column, i)))
            column->numbers[n++] = cell_of(column, i)->value;
    median = robust_median(column->numbers, n);
    for (size_t i = 0; i < column->count; i++) {
        const struct note *note = &notes->notes[column->gpus[i]];
        double distance = fabs(cell_of(column, i)->value - median);
        if (!alike(kind, cell_of(column, i)) || note->kind != FACT_TEXT || !(distance < least))
            continue;
        least = distance;
        nearest = note;
    }
    return nearest;
}

/* Pictures of one GPU, which no two GPUs have alike: the page draws them. */
static bool is_picture(const struct column *column, const char *key)
{
    static const char *const pictures[][2] = {{LOAD_CURVE_METRIC, LOAD_CURVE_KEY},
                                              {"shared.conflict.latency", "table"},
                                              {"main.whole.latency", "map"},
                                              {"main.whole.slow_regions", "read_map"},
                                              {"main.whole.slow_regions", "write_map"}};
    const char *metric = fleet_text(column->fleet, column->metric->head.name);
    for (size_t i = 0; i < COUNT_OF(pictures); i++)
        if (strcmp(metric, pictures[i][0]) == 0 && strcmp(key, pictures[i][1]) == 0)
            return true;
    if (strcmp(key, SURFACE_CURVES_KEY) == 0)
        return strncmp(metric, SURFACE_CURVES_METRICS, strlen(SURFACE_CURVES_METRICS)) == 0;
    return (strcmp(key, "map") == 0 && strncmp(metric, "die.bandwidth.", 14) == 0) ||
           strcmp(key, FINGERPRINT_REGIONS) == 0;
}

/* Sets the note to the median of the numbers, or to the text that more than half have. */
static int merge_note(const struct column *column, const struct cell *kind,
                      const struct note_column *notes, struct facts *out_notes)
{
    const char *key = fleet_text(column->fleet, notes->head.name);
    size_t counts[FACT_TEXT + 1] = {0}, n = 0, same = 0;
    const struct note *first = NULL, *candidate = NULL;
    enum fact_kind most = FACT_UNKNOWN;
    for (size_t i = 0; i < column->count; i++)
        if (alike(kind, cell_of(column, i)))
            counts[notes->notes[column->gpus[i]].kind]++;
    for (int k = FACT_UNKNOWN + 1; k <= FACT_TEXT; k++)
        if (counts[k] > counts[most] || most == FACT_UNKNOWN)
            most = counts[k] ? (enum fact_kind)k : most;
    if (most == FACT_UNKNOWN)
        return 0;
    size_t lead = 0;
    for (size_t i = 0; i < column->count; i++) {
        const struct note *note = &notes->notes[column->gpus[i]];
        if (note->kind != most || !alike(kind, cell_of(column, i)))
            continue;
        first = first ? first : note;
        column->numbers[n++] = note->number;
        if (!lead) /* majority vote of Boyer and Moore */
            candidate = note;
        lead += candidate->text == note->text ? 1 : (size_t)-1;
    }
    if (most == FACT_INT)
        return facts_set_int(out_notes, key, llround(robust_median(column->numbers, n)));
    if (most == FACT_REAL)
        return facts_set_real(out_notes, key, robust_median(column->numbers, n));
    if (most == FACT_BOOL)
        return facts_set_bool(out_notes, key, robust_median(column->numbers, n) > 0.5);
    if (is_picture(column, key) && is_number(kind)) {
        candidate = median_note(column, kind, notes);
        const char *text = candidate ? fleet_text(column->fleet, candidate->text) : NULL;
        return text ? facts_set_text(out_notes, key, text) : 0;
    }
    for (size_t i = 0; i < column->count; i++)
        same += notes->notes[column->gpus[i]].text == candidate->text &&
                alike(kind, cell_of(column, i));
    return 2 * same > n ? facts_set_text(out_notes, key, fleet_text(column->fleet, candidate->text))
                        : 0;
}

static void merge_numbers(const struct column *column, const struct cell *kind, size_t n,
                          struct measure *out)
{
    size_t k = 0;
    for (size_t i = 0; i < column->count; i++)
        if (alike(kind, cell_of(column, i)))
            column->numbers[k++] = cell_of(column, i)->value;
    double upper = robust_quantile(column->numbers, n, 0.75);
    out->value = robust_median(column->numbers, n);
    /* With one GPU there is no scatter between GPUs. Keep its own spread: 0 would look certain. */
    out->spread = n == 1 ? kind->spread : (upper - robust_quantile(column->numbers, n, 0.25)) / 2;
    k = 0;
    for (size_t i = 0; i < column->count; i++)
        if (alike(kind, cell_of(column, i)) && !isnan(cell_of(column, i)->confidence))
            column->numbers[k++] = cell_of(column, i)->confidence;
    out->confidence = robust_median(column->numbers, k);
}

static int merge_cells(const struct column *column, struct measure *out)
{
    const struct fleet *fleet = column->fleet;
    const struct cell *kind = majority(column);
    size_t noisy = 0, n = 0;
    uint32_t reason = 0;
    for (size_t i = 0; i < column->count; i++) {
        const struct cell *cell = cell_of(column, i);
        if (!alike(kind, cell))
            continue;
        n++;
        noisy += cell->status == MEASURE_NOISY;
        reason = cell->status == MEASURE_NOISY && !reason ? cell->reason : reason;
    }
    out->kind = kind->kind;
    out->status = kind->status;
    out->bound = kind->bound;
    out->n = (uint32_t)n;
    out->confidence = kind->confidence;
    if (is_number(kind)) {
        out->status = 2 * noisy > n ? MEASURE_NOISY : MEASURE_OK;
        merge_numbers(column, kind, n, out);
    }
    reason = is_number(kind) ? (2 * noisy > n ? reason : 0) : kind->reason;
    if (str_copy_to(&out->unit, fleet_text(fleet, kind->unit)) ||
        str_copy_to(&out->method, fleet_text(fleet, kind->method)) ||
        str_copy_to(&out->reason, fleet_text(fleet, reason)) || put_words(fleet, kind, out))
        return -ENOMEM;
    bool rows = str_equal(fleet_text(fleet, column->metric->head.name), LINK_ROW_METRIC);
    for (size_t i = 0; i < column->metric->note_count && !rows; i++) /* rows are of one GPU */
        if (merge_note(column, kind, &column->metric->notes[i], &out->notes))
            return -ENOMEM;
    if (is_number(kind))
        measure_round(out);
    return 0;
}

/* The number of an SM and an offset in the memory say where something is: they have no median. */
static bool is_place(const struct column *column, const char *metric)
{
    const char *unit = fleet_text(column->fleet, cell_of(column, 0)->unit);
    return (unit && strcmp(unit, "id") == 0) || strcmp(metric, "main.whole.first_error") == 0 ||
           strcmp(metric, "main.whole.slowest_region") == 0 ||
           strcmp(metric, "main.whole.latency_worst_region") == 0;
}

static int merge_metric(struct column *column, const uint32_t *gpus, size_t count,
                        struct measures *out_memory)
{
    const char *name = fleet_text(column->fleet, column->metric->head.name);
    column->count = 0;
    for (size_t i = 0; i < count; i++)
        if (column->metric->cells[gpus[i]].present)
            column->gpus[column->count++] = gpus[i];
    if (!column->count || (count > 1 && is_place(column, name)))
        return 0;
    struct measure *slot = measures_add_missing(out_memory, name, MEASURE_FAILED, NULL);
    return slot ? merge_cells(column, slot) : -ENOMEM;
}

static int merge_identity(const struct fleet *fleet, const struct group *group,
                          struct facts *out_identity)
{
    const struct fact_columns *columns = &fleet->facts[SET_HARDWARE];
    for (size_t i = 0; i < columns->count; i++) {
        bool present = false;
        for (size_t k = 0; k < group->count && !present; k++)
            present = columns->items[i].codes[group->members[k]];
        const struct fact fact =
            fleet_fact(fleet, &columns->items[i], group->usual[SET_HARDWARE][i].code);
        if (present && facts_set(out_identity, &fact))
            return -ENOMEM;
    }
    return 0;
}

static bool is_healthy(const struct fleet_gpu *gpu)
{
    return fleet_judged(gpu) && !gpu->outlier;
}

static bool is_busy(const struct fleet_gpu *gpu)
{
    return gpu->measured && gpu->busy;
}

/* The GPUs from which the consensus is made: healthy GPUs, otherwise outliers, otherwise busy GPUs;
 * then *out_disturbed is set. Never a mixture. */
static size_t choose(const struct fleet *fleet, const struct group *group, uint32_t *out_gpus,
                     bool *out_disturbed)
{
    static bool (*const wanted[])(const struct fleet_gpu *) = {is_healthy, fleet_judged, is_busy};
    size_t count = 0;
    for (size_t w = 0; w < COUNT_OF(wanted) && !count; w++) {
        for (size_t i = 0; i < group->count; i++)
            if (wanted[w](&fleet->gpus[group->members[i]]))
                out_gpus[count++] = group->members[i];
        *out_disturbed = wanted[w] == is_busy;
    }
    return count;
}

static int mark_disturbed(struct measures *memory)
{
    for (size_t i = 0; i < memory->count; i++)
        if (memory->items[i].status == MEASURE_OK &&
            measure_set_status(&memory->items[i], MEASURE_NOISY,
                               "measured beside other processes only"))
            return -ENOMEM;
    return 0;
}

int consensus_build(const struct fleet *fleet, const struct group *group,
                    struct inventory_model *out_model)
{
    struct column column = {.fleet = fleet,
                            .gpus = mem_array(group->count, sizeof *column.gpus),
                            .numbers = mem_array(group->count, sizeof *column.numbers)};
    uint32_t *gpus = mem_array(group->count, sizeof *gpus);
    bool disturbed = false;
    int rc = -ENOMEM;
    if (!column.gpus || !column.numbers || !gpus ||
        merge_identity(fleet, group, &out_model->identity))
        goto out;
    size_t count = choose(fleet, group, gpus, &disturbed);
    for (size_t i = 0; i < fleet->metric_count; i++) {
        column.metric = &fleet->metrics[i];
        if (merge_metric(&column, gpus, count, &out_model->memory))
            goto out;
    }
    rc = disturbed ? mark_disturbed(&out_model->memory) : 0;
out:
    free(column.gpus);
    free(column.numbers);
    free(gpus);
    return rc;
}
