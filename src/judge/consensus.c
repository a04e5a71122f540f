/* One record per model: medians of numbers, majorities of everything else.
 *
 * A GPU whose result is at hand (from a survey, a spool) has all its figures in the fleet. An
 * inventory has only the judged figures of each GPU, and all the others once per model: that record
 * of the model then counts as often as GPUs are behind it. */
#include "judge/consensus.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "base/str.h"
#include "catalogue/metrics.h"
#include "inventory/curves.h"
#include "inventory/fingerprint.h"
#include "inventory/link_row.h"
#include "judge/robust.h"
#include "judge/state.h"

/* At most this many kinds of cells are counted for the majority. */
enum { KINDS_MAX = 64 };

/* One metric of the GPUs from which the consensus is made. */
struct consensus_column {
    const struct fleet *fleet;
    const struct metric_column *metric;
    uint32_t *gpus; /* that have the metric */
    size_t count;
    uint32_t
        *weights;    /* of each of `gpus`, which stand for records of models; NULL: GPUs, each 1 */
    double *numbers; /* room for one figure per GPU, as they are taken for a median */
    struct robust_weighted *weighted; /* the same, if there are weights */
};

static const struct cell *column_cell(const struct consensus_column *column, size_t i)
{
    return &column->metric->cells[column->gpus[i]];
}

static uint32_t column_weight(const struct consensus_column *column, size_t i)
{
    return column->weights ? column->weights[i] : 1;
}

/* Takes the number number `n`, which entry i has, for column_quantile. */
static void column_take(const struct consensus_column *column, size_t n, size_t i, double number)
{
    if (column->weights)
        column->weighted[n] = (struct robust_weighted){number, column_weight(column, i)};
    else
        column->numbers[n] = number;
}

/* Of the first n numbers taken. */
static double column_quantile(const struct consensus_column *column, size_t n, double q)
{
    return column->weights ? robust_weighted_quantile(column->weighted, n, q)
                           : robust_quantile(column->numbers, n, q);
}

static double column_median(const struct consensus_column *column, size_t n)
{
    return column_quantile(column, n, 0.5);
}

static bool cell_is_number(const struct cell *cell)
{
    return cell->kind == MEASURE_NUMBER && measure_status_valued(cell->status);
}

/* Of the same kind for the majority: same bound, unit, words, and status if there is no value. */
static bool cells_alike(const struct cell *a, const struct cell *b)
{
    if (a->kind != b->kind || a->bound != b->bound || cell_is_number(a) != cell_is_number(b) ||
        a->word_count != b->word_count || a->words != b->words || a->unit != b->unit)
        return false;
    return cell_is_number(a) || a->kind != MEASURE_NUMBER || a->status == b->status;
}

/* The first cell of the most frequent kind. */
static const struct cell *column_majority(const struct consensus_column *column)
{
    const struct cell *kinds[KINDS_MAX];
    uint64_t votes[KINDS_MAX];
    size_t count = 0, best = 0;
    for (size_t i = 0; i < column->count; i++) {
        const struct cell *cell = column_cell(column, i);
        size_t k = 0;
        while (k < count && !cells_alike(kinds[k], cell))
            k++;
        if (k == KINDS_MAX)
            continue;
        if (k == count) {
            kinds[count] = cell;
            votes[count++] = 0;
        }
        votes[k] += column_weight(column, i);
    }
    for (size_t k = 1; k < count; k++)
        if (votes[k] > votes[best])
            best = k;
    return kinds[best];
}

static void measure_put_words(const struct fleet *fleet, const struct cell *cell,
                              struct measure *out)
{
    const char *word = fleet_text(fleet, cell->words);
    out->words = cell->word_count ? mem_array(cell->word_count, sizeof *out->words) : NULL;
    for (; out->word_count < cell->word_count; out->word_count++) {
        out->words[out->word_count] = str_copy(word);
        word += strlen(word) + 1;
    }
}

static bool note_is_text_or_list(enum fact_kind kind)
{
    return kind == FACT_TEXT || kind == FACT_NUMBERS || kind == FACT_TEXTS;
}

/* A picture differs on every GPU: that of the GPU whose figure is nearest to the median stands for
 * the model. */
static const struct note *column_nearest_note(const struct consensus_column *column,
                                              const struct cell *kind,
                                              const struct note_column *notes, double median)
{
    const struct note *nearest = NULL;
    double least = INFINITY;
    for (size_t i = 0; i < column->count; i++) {
        const struct note *note = &notes->notes[column->gpus[i]];
        double distance = fabs(column_cell(column, i)->value - median);
        if (!cells_alike(kind, column_cell(column, i)) || !note_is_text_or_list(note->kind) ||
            !(distance < least))
            continue;
        least = distance;
        nearest = note;
    }
    return nearest;
}

/* Pictures of one GPU, which no two GPUs have alike: the page draws them. */
static bool note_is_picture(const struct consensus_column *column, const char *key)
{
    static const char *const pictures[][2] = {
        {"shared.conflict.latency", "table"},         {"shared.conflict.latency", "table_threads"},
        {"shared.conflict.latency", "table_strides"}, {"main.whole.latency", "map"},
        {"main.whole.slow_regions", "read_map"},      {"main.whole.slow_regions", "write_map"}};
    const char *metric = fleet_text(column->fleet, column->metric->head.name);
    for (size_t i = 0; i < COUNT_OF(pictures); i++)
        if (strcmp(metric, pictures[i][0]) == 0 && strcmp(key, pictures[i][1]) == 0)
            return true;
    if (load_curve_has(key))
        return strcmp(metric, LOAD_CURVE_METRIC) == 0;
    if (strncmp(key, SURFACE_CURVES_KEYS, strlen(SURFACE_CURVES_KEYS)) == 0)
        return strncmp(metric, SURFACE_CURVES_METRICS, strlen(SURFACE_CURVES_METRICS)) == 0;
    return (strcmp(key, "map") == 0 && strncmp(metric, "die.bandwidth.", 14) == 0) ||
           strcmp(key, FINGERPRINT_REGIONS) == 0;
}

/* Whether KEY_at is `second` and KEY is `first`. */
static bool notes_are_pair(const char *first, const char *second)
{
    size_t length = strlen(first);
    return strncmp(first, second, length) == 0 && strcmp(second + length, "_at") == 0;
}

/* Whether the lists of both keys belong to one picture, or to one set of pairs
 * (measure_note_pairs). */
static bool notes_are_related(const char *a, const char *b)
{
    static const char *const families[] = {"curve_", SURFACE_CURVES_KEYS, "surface"};
    for (size_t i = 0; i < COUNT_OF(families); i++)
        if (strncmp(a, families[i], strlen(families[i])) == 0)
            return strncmp(b, families[i], strlen(families[i])) == 0;
    return notes_are_pair(a, b) || notes_are_pair(b, a);
}

/* Whether two GPUs have the same text or list. Lists that belong together are taken together. */
static bool notes_alike(const struct consensus_column *column, const struct note_column *notes,
                        uint32_t a, uint32_t b)
{
    const char *key = fleet_text(column->fleet, notes->head.name);
    for (size_t i = 0; i < column->metric->note_count; i++) {
        const struct note_column *other = &column->metric->notes[i];
        bool differs = other->notes[a].kind != other->notes[b].kind ||
                       other->notes[a].text != other->notes[b].text;
        if (differs &&
            (other == notes || notes_are_related(key, fleet_text(column->fleet, other->head.name))))
            return false;
    }
    return true;
}

/* The text or list that more than half of `total` have, by weight; NULL: none. */
static const struct note *column_common_note(const struct consensus_column *column,
                                             const struct cell *kind,
                                             const struct note_column *notes, uint64_t total)
{
    uint32_t candidate = 0;
    uint64_t lead = 0, same = 0;
    for (size_t i = 0; i < column->count; i++) { /* majority vote of Boyer and Moore */
        uint32_t gpu = column->gpus[i], weight = column_weight(column, i);
        if (!note_is_text_or_list(notes->notes[gpu].kind) ||
            !cells_alike(kind, column_cell(column, i)))
            continue;
        bool agrees = lead && notes_alike(column, notes, candidate, gpu);
        if (!agrees && weight > lead)
            candidate = gpu;
        lead = agrees ? lead + weight : weight > lead ? weight - lead : lead - weight;
    }
    for (size_t i = 0; i < column->count; i++)
        if (note_is_text_or_list(notes->notes[column->gpus[i]].kind) &&
            cells_alike(kind, column_cell(column, i)) &&
            notes_alike(column, notes, candidate, column->gpus[i]))
            same += column_weight(column, i);
    return 2 * same > total ? &notes->notes[candidate] : NULL;
}

/* A duration in ns follows from cycles and clock: it is the value at the median clock, so that
 * cycles, ns and clock fit together. NaN: not known. */
static double column_nanoseconds(const struct consensus_column *column, const struct cell *kind,
                                 const struct note_column *notes, double cycles)
{
    size_t n = 0;
    for (size_t i = 0; i < column->count; i++) {
        const struct cell *cell = column_cell(column, i);
        double ns = notes->notes[column->gpus[i]].number;
        enum fact_kind has = notes->notes[column->gpus[i]].kind;
        if ((has == FACT_INT || has == FACT_REAL) && cells_alike(kind, cell) && ns > 0 &&
            cell->value > 0)
            column_take(column, n++, i, cell->value / ns);
    }
    return cycles / column_median(column, n);
}

/* Sets the note to the median of the numbers, or to the text or list that more than half have. */
static void consensus_note(const struct consensus_column *column, const struct cell *kind,
                           const struct note_column *notes, struct measure *out)
{
    const char *key = fleet_text(column->fleet, notes->head.name);
    uint64_t counts[FACT_TEXTS + 1] = {0};
    size_t n = 0;
    for (size_t i = 0; i < column->count; i++)
        if (cells_alike(kind, column_cell(column, i)))
            counts[notes->notes[column->gpus[i]].kind] += column_weight(column, i);
    /* In a file a real number without decimals looks like an integer. */
    bool real = counts[FACT_REAL] > 0;
    counts[FACT_REAL] += counts[FACT_INT];
    enum fact_kind most = FACT_BOOL;
    if (counts[FACT_REAL] > counts[most])
        most = FACT_REAL;
    counts[FACT_TEXT] += counts[FACT_NUMBERS] + counts[FACT_TEXTS];
    if (counts[FACT_TEXT] > counts[most])
        most = FACT_TEXT;
    if (!counts[most])
        return;
    if (most == FACT_TEXT) {
        const struct note *note = note_is_picture(column, key) && cell_is_number(kind)
                                      ? column_nearest_note(column, kind, notes, out->value)
                                      : NULL;
        if (!note)
            note = column_common_note(column, kind, notes, counts[FACT_TEXT]);
        if (note)
            fleet_put_note(column->fleet, notes, note, &out->notes);
        return;
    }
    if (most == FACT_REAL && strcmp(key, "ns") == 0 && str_equal(out->unit, "cycles")) {
        double ns = column_nanoseconds(column, kind, notes, out->value);
        if (isfinite(ns))
            facts_set_real(&out->notes, key, ns);
        return;
    }
    for (size_t i = 0; i < column->count; i++) {
        const struct note *note = &notes->notes[column->gpus[i]];
        bool fits = most == FACT_BOOL ? note->kind == FACT_BOOL
                                      : note->kind == FACT_INT || note->kind == FACT_REAL;
        if (fits && cells_alike(kind, column_cell(column, i)))
            column_take(column, n++, i, note->number);
    }
    double median = column_median(column, n);
    if (most == FACT_BOOL)
        facts_set_bool(&out->notes, key, median > 0.5);
    else if (real)
        facts_set_real(&out->notes, key, median);
    else
        facts_set_int(&out->notes, key, llround(median));
}

/* How far the GPUs lie apart. n: their number. */
static double consensus_spread(const struct consensus_column *column, const struct cell *kind,
                               uint64_t n)
{
    size_t k = 0;
    /* With one GPU there is no scatter between GPUs. Keep its own spread: 0 would look certain. */
    if (n == 1)
        return kind->spread;
    for (size_t i = 0; i < column->count; i++)
        if (cells_alike(kind, column_cell(column, i)))
            column_take(column, k++, i, column_cell(column, i)->value);
    double spread = column_quantile(column, k, 0.75);
    spread = (spread - column_quantile(column, k, 0.25)) / 2;
    /* The value of a record is already a median: its GPUs lie apart, too. */
    k = 0;
    for (size_t i = 0; i < column->count && column->weights; i++)
        if (cells_alike(kind, column_cell(column, i)) && column_weight(column, i) > 1 &&
            isfinite(column_cell(column, i)->spread))
            column_take(column, k++, i, column_cell(column, i)->spread);
    return k ? fmax(spread, column_median(column, k)) : spread;
}

static void consensus_numbers(const struct consensus_column *column, const struct cell *kind,
                              uint64_t n, struct measure *out)
{
    size_t k = 0;
    for (size_t i = 0; i < column->count; i++)
        if (cells_alike(kind, column_cell(column, i)))
            column_take(column, k++, i, column_cell(column, i)->value);
    out->value = column_median(column, k);
    out->spread = consensus_spread(column, kind, n);
    k = 0;
    for (size_t i = 0; i < column->count; i++)
        if (cells_alike(kind, column_cell(column, i)) && !isnan(column_cell(column, i)->confidence))
            column_take(column, k++, i, column_cell(column, i)->confidence);
    out->confidence = column_median(column, k);
}

/* The median of the GPUs that say it. */
static uint32_t consensus_repetitions(const struct consensus_column *column,
                                      const struct cell *kind)
{
    size_t k = 0;
    for (size_t i = 0; i < column->count; i++)
        if (cells_alike(kind, column_cell(column, i)) && column_cell(column, i)->n)
            column_take(column, k++, i, column_cell(column, i)->n);
    return k ? (uint32_t)column_median(column, k) : 0;
}

/* Fills *out from `values`, and its notes from `notes`, which is another column of the same metric
 * if not everything that has a value has its notes, too. */
static void consensus_cells(const struct consensus_column *values,
                            const struct consensus_column *notes, struct measure *out)
{
    const struct fleet *fleet = values->fleet;
    const struct cell *kind = column_majority(values);
    uint64_t noisy = 0, n = 0;
    uint32_t reason = 0;
    for (size_t i = 0; i < values->count; i++) {
        const struct cell *cell = column_cell(values, i);
        if (!cells_alike(kind, cell))
            continue;
        n += column_weight(values, i);
        noisy += cell->status == MEASURE_NOISY ? column_weight(values, i) : 0;
        reason = cell->status == MEASURE_NOISY && !reason ? cell->reason : reason;
    }
    out->kind = kind->kind;
    out->status = kind->status;
    out->bound = kind->bound;
    out->n = consensus_repetitions(values, kind);
    out->gpus = n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
    out->confidence = kind->confidence;
    if (cell_is_number(kind)) {
        out->status = 2 * noisy > n ? MEASURE_NOISY : MEASURE_OK;
        consensus_numbers(values, kind, n, out);
    }
    reason = cell_is_number(kind) ? (2 * noisy > n ? reason : 0) : kind->reason;
    out->unit = str_copy(fleet_text(fleet, kind->unit));
    out->method = str_copy(fleet_text(fleet, kind->method));
    out->reason = str_copy(fleet_text(fleet, reason));
    measure_put_words(fleet, kind, out);
    bool rows = str_equal(fleet_text(fleet, values->metric->head.name), LINK_ROW_METRIC);
    for (size_t i = 0; i < notes->metric->note_count && !rows; i++) /* rows are of one GPU */
        consensus_note(notes, kind, &notes->metric->notes[i], out);
    if (cell_is_number(kind))
        measure_round(out);
}

static bool column_is_name(const struct consensus_column *column, const char *metric)
{
    return metric_is_name(metric, fleet_text(column->fleet, column_cell(column, 0)->unit));
}

static void consensus_identity(const struct fleet *fleet, const struct group *group,
                               struct facts *out_identity)
{
    const struct fact_columns *columns = &fleet->facts[SET_HARDWARE];
    for (size_t i = 0; i < columns->count; i++) {
        bool present = false;
        for (size_t k = 0; k < group->count && !present; k++)
            present = columns->items[i].codes[group->members[k]];
        if (present)
            fleet_put_fact(fleet, &columns->items[i], group->usual[SET_HARDWARE][i].code,
                           out_identity);
    }
}

static bool gpu_is_healthy(const struct fleet_gpu *gpu)
{
    return fleet_judged(gpu) && !gpu->deviates;
}

static bool gpu_is_busy(const struct fleet_gpu *gpu)
{
    return gpu->measured && gpu->busy;
}

/* The GPUs from which the consensus is made: healthy GPUs, otherwise outliers, otherwise busy GPUs;
 * then *out_disturbed is set. Never a mixture. */
static size_t consensus_choose(const struct fleet *fleet, const struct group *group,
                               uint32_t *out_gpus, bool *out_disturbed)
{
    static bool (*const wanted[])(const struct fleet_gpu *) = {gpu_is_healthy, fleet_judged,
                                                               gpu_is_busy};
    size_t count = 0;
    for (size_t w = 0; w < COUNT_OF(wanted) && !count; w++) {
        for (size_t i = 0; i < group->count; i++)
            if (wanted[w](&fleet->gpus[group->members[i]]))
                out_gpus[count++] = group->members[i];
        *out_disturbed = wanted[w] == gpu_is_busy;
    }
    return count;
}

/* From the figures that each GPU has itself. */
static void consensus_fleet(const struct fleet *fleet, const uint32_t *gpus, size_t count,
                            struct measures *out_memory)
{
    struct consensus_column column = {.fleet = fleet,
                                      .gpus = mem_array(count, sizeof *column.gpus),
                                      .numbers = mem_array(count, sizeof *column.numbers)};
    for (size_t m = 0; m < fleet->metric_count; m++) {
        const char *name = fleet_text(fleet, fleet->metrics[m].head.name);
        column.metric = &fleet->metrics[m];
        column.count = 0;
        for (size_t i = 0; i < count; i++)
            if (column.metric->cells[gpus[i]].present)
                column.gpus[column.count++] = gpus[i];
        if (column.count && (count == 1 || !column_is_name(&column, name)))
            consensus_cells(&column, &column,
                            measures_add_missing(out_memory, name, MEASURE_FAILED, NULL));
    }
    free(column.gpus);
    free(column.numbers);
}

/* The record of a model in an inventory whose GPUs are judged again. */
struct model_record {
    const struct measures *memory;
    const struct judged_inventory *inventory;
    uint32_t gpus; /* of the consensus; 0: other files have newer results of all its GPUs, or all
                      that are left are outliers */
    size_t first;  /* of these GPUs: its place in the list */
    bool has_own;  /* its GPUs have figures of their own of the metric in question */
};

struct model_records {
    struct model_record *items;
    size_t count;
    const uint32_t *gpus; /* from which the consensus is made */
    size_t gpu_count;
    size_t *of_gpu;     /* of each of these: number of its record + 1; 0: it is in no inventory */
    struct fleet fleet; /* entry 0: what the GPUs give themselves; i + 1: record i */
    struct consensus_column values, notes;
};

/* By the first GPU; those without any stay in the order of the inventories. */
static int record_order(const void *a, const void *b)
{
    const struct model_record *left = a, *right = b;
    if (left->first != right->first)
        return left->first < right->first ? -1 : 1;
    return (left->inventory > right->inventory) - (left->inventory < right->inventory);
}

static void records_find(struct model_records *records, const struct judge *judge, const char *key)
{
    size_t capacity = 0;
    for (size_t i = 0; i < judge->inventory_count; i++)
        capacity += judge->inventories[i].inventory->model_count;
    records->items = mem_array(capacity, sizeof *records->items);
    for (size_t i = 0; i < judge->inventory_count; i++) {
        const struct judged_inventory *judged = &judge->inventories[i];
        for (size_t m = 0; m < judged->inventory->model_count; m++)
            if (str_equal(judged->inventory->models[m].key, key))
                records->items[records->count++] =
                    (struct model_record){.memory = &judged->inventory->models[m].memory,
                                          .inventory = judged,
                                          .first = SIZE_MAX};
    }
}

/* Counts the GPUs behind each record. */
static void records_count_gpus(struct model_records *records, const struct judge *judge)
{
    size_t *places = mem_array(judge->fleet.count, sizeof *places); /* in the list, + 1 */
    records->of_gpu = mem_array(records->gpu_count, sizeof *records->of_gpu);
    for (size_t i = 0; i < records->gpu_count; i++)
        places[records->gpus[i]] = i + 1;
    for (size_t r = 0; r < records->count; r++) {
        struct model_record *record = &records->items[r];
        for (size_t k = 0; k < record->inventory->gpu_count; k++) {
            size_t place = places[record->inventory->first_gpu + k];
            record->gpus += place > 0;
            if (place && place - 1 < record->first)
                record->first = place - 1;
        }
    }
    sort_stable(records->items, records->count, sizeof *records->items, record_order);
    for (size_t r = 0; r < records->count; r++) {
        const struct judged_inventory *inventory = records->items[r].inventory;
        for (size_t k = 0; k < inventory->gpu_count; k++)
            if (places[inventory->first_gpu + k])
                records->of_gpu[places[inventory->first_gpu + k] - 1] = r + 1;
    }
    free(places);
}

/* One entry of the fleet for each record. Only the longest ones say in which order figures are
 * listed: a short one would move its few figures to the front. */
static void records_fill(struct model_records *records, const struct measures *own)
{
    size_t longest = own->count;
    for (size_t r = 0; r < records->count; r++)
        if (records->items[r].memory->count > longest)
            longest = records->items[r].memory->count;
    for (size_t r = 0; r <= records->count; r++) {
        const struct measures *memory = r ? records->items[r - 1].memory : own;
        const struct gpu_result entry = {.status = memory->count == longest ? GPU_OK : GPU_FAILED,
                                         .measures = *memory};
        fleet_add(&records->fleet, &entry);
    }
    fleet_group(&records->fleet);
}

static void column_add(struct consensus_column *column, size_t entry, uint32_t weight)
{
    column->gpus[column->count] = (uint32_t)entry;
    column->weights[column->count++] = weight;
}

/* How many GPUs have a figure of their own without being in an inventory. Sets `has_own` of all
 * records. own: the column of that metric; may be NULL. */
static uint32_t records_find_own(struct model_records *records, const struct metric_column *own)
{
    uint32_t alone = 0;
    for (size_t i = 0; i < records->count; i++)
        records->items[i].has_own = false;
    for (size_t i = 0; i < records->gpu_count && own; i++) {
        size_t record = records->of_gpu[i];
        if (!own->cells[records->gpus[i]].present)
            continue;
        if (record)
            records->items[record - 1].has_own = true;
        else
            alone++;
    }
    return alone;
}

/* Who gives the value of the metric, and who its notes. If no GPU of the consensus has it, the
 * last record that does. */
static void records_choose(struct model_records *records, const struct metric_column *metric,
                           const struct metric_column *own)
{
    struct consensus_column *values = &records->values, *notes = &records->notes;
    size_t last = 0;
    values->metric = notes->metric = metric;
    values->count = notes->count = 0;
    uint32_t alone = records_find_own(records, own);
    if (metric->cells[0].present)
        column_add(values, 0, metric->cells[0].gpus ? metric->cells[0].gpus : 1);
    if (metric->cells[0].present && alone)
        column_add(notes, 0, alone);
    for (size_t r = 0; r < records->count; r++) {
        const struct model_record *record = &records->items[r];
        const struct cell *cell = &metric->cells[r + 1];
        if (!cell->present)
            continue;
        last = r + 1;
        uint32_t weight = cell->gpus && cell->gpus < record->gpus ? cell->gpus : record->gpus;
        if (weight)
            column_add(notes, r + 1, weight);
        if (weight && !record->has_own)
            column_add(values, r + 1, weight);
    }
    uint32_t weight = last && metric->cells[last].gpus ? metric->cells[last].gpus : 1;
    if (!values->count)
        column_add(values, last, weight);
    if (!notes->count && last)
        column_add(notes, last, weight);
}

/* Adds to `memory` what only the records of the model in inventories have: figures that are not
 * judged, and notes. */
static void consensus_records(const struct judge *judge, const struct group *group,
                              const uint32_t *gpus, size_t count, struct measures *memory)
{
    struct model_records records = {.gpus = gpus, .gpu_count = count};
    struct measures whole = {0};
    records_find(&records, judge, fleet_text(&judge->fleet, group->key));
    if (!records.count) {
        free(records.items);
        return;
    }
    struct consensus_column *const columns[] = {&records.values, &records.notes};
    struct robust_weighted *weighted = mem_array(records.count + 1, sizeof *weighted);
    fleet_init(&records.fleet, records.count + 1);
    records_count_gpus(&records, judge);
    records_fill(&records, memory);
    for (size_t i = 0; i < COUNT_OF(columns); i++) {
        columns[i]->fleet = &records.fleet;
        columns[i]->gpus = mem_array(records.count + 1, sizeof *columns[i]->gpus);
        columns[i]->weights = mem_array(records.count + 1, sizeof *columns[i]->weights);
        columns[i]->weighted = weighted;
    }
    for (size_t i = 0; i < records.fleet.metric_count; i++) {
        const struct metric_column *metric = &records.fleet.metrics[i];
        const char *name = fleet_text(&records.fleet, metric->head.name);
        records_choose(&records, metric, fleet_metric(&judge->fleet, name));
        if (count <= 1 || !column_is_name(&records.values, name))
            consensus_cells(&records.values, &records.notes,
                            measures_add_missing(&whole, name, MEASURE_FAILED, NULL));
    }
    measures_fini(memory);
    *memory = whole;
    for (size_t i = 0; i < COUNT_OF(columns); i++) {
        free(columns[i]->gpus);
        free(columns[i]->weights);
    }
    free(weighted);
    free(records.of_gpu);
    free(records.items);
    fleet_fini(&records.fleet);
}

void consensus_build(const struct judge *judge, const struct group *group,
                     struct inventory_model *out_model)
{
    uint32_t *gpus = mem_array(group->count, sizeof *gpus);
    struct measures *memory = &out_model->memory;
    bool disturbed = false;
    consensus_identity(&judge->fleet, group, &out_model->identity);
    size_t count = consensus_choose(&judge->fleet, group, gpus, &disturbed);
    consensus_fleet(&judge->fleet, gpus, count, memory);
    consensus_records(judge, group, gpus, count, memory);
    for (size_t i = 0; i < memory->count && disturbed; i++)
        if (memory->items[i].status == MEASURE_OK)
            measure_set_status(&memory->items[i], MEASURE_NOISY,
                               "measured beside other processes only");
    free(gpus);
}
