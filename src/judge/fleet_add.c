/* Copies the result of a GPU into the columns of the fleet. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "judge/fleet.h"

/* Longer texts of notes are left out. The longest one is the map of SMs and slices. */
enum { NOTE_TEXT_MAX = 8000 };

static bool named(const struct fleet *fleet, uint32_t symbol, const char *name)
{
    return strcmp(fleet_text(fleet, symbol), name) == 0;
}

/* The result of a GPU that was not measured is partial: its positions are not used. */
static uint32_t position_of(const struct fleet *fleet, size_t place)
{
    return fleet->gpus[fleet->count].measured ? (uint32_t)place : UINT32_MAX;
}

/* The index of the column with that name; `count` if there is none. `guess` is tried first, because
 * most GPUs list the same columns in the same order. */
static size_t find_column(const struct fleet *fleet, void *columns, size_t count, size_t size,
                          const char *name, size_t guess)
{
    char *base = columns;
    size_t at = guess < count ? guess : 0;
    for (size_t tried = 0; tried < count; tried++, at = (at + 1) % count) {
        struct column_head *head = (struct column_head *)(base + at * size);
        uint32_t position = position_of(fleet, guess);
        if (!named(fleet, head->name, name))
            continue;
        head->position = position < head->position ? position : head->position;
        return at;
    }
    return count;
}

/* The column of a metric; a new one if there is none. NULL: out of memory. */
static struct metric_column *metric_column(struct fleet *fleet, const char *name, size_t guess)
{
    size_t found = find_column(fleet, fleet->metrics, fleet->metric_count, sizeof *fleet->metrics,
                               name, guess);
    if (found < fleet->metric_count)
        return &fleet->metrics[found];
    struct metric_column *grown =
        mem_grow(fleet->metrics, &fleet->metric_capacity, fleet->metric_count + 1, sizeof *grown);
    if (!grown)
        return NULL;
    fleet->metrics = grown;
    struct metric_column *column = &grown[fleet->metric_count];
    *column = (struct metric_column){.head.position = position_of(fleet, guess),
                                     .cells = mem_array(fleet->capacity, sizeof *column->cells)};
    if (!column->cells || symbols_text(&fleet->symbols, name, &column->head.name)) {
        free(column->cells);
        return NULL;
    }
    fleet->metric_count++;
    return column;
}

static struct note_column *note_column(struct fleet *fleet, struct metric_column *column,
                                       const char *key, size_t guess)
{
    size_t found =
        find_column(fleet, column->notes, column->note_count, sizeof *column->notes, key, guess);
    if (found < column->note_count)
        return &column->notes[found];
    struct note_column *grown =
        mem_grow(column->notes, &column->note_capacity, column->note_count + 1, sizeof *grown);
    if (!grown)
        return NULL;
    column->notes = grown;
    struct note_column *notes = &grown[column->note_count];
    *notes = (struct note_column){.head.position = position_of(fleet, guess),
                                  .notes = mem_array(fleet->capacity, sizeof *notes->notes)};
    if (!notes->notes || symbols_text(&fleet->symbols, key, &notes->head.name)) {
        free(notes->notes);
        return NULL;
    }
    column->note_count++;
    return notes;
}

static int add_notes(struct fleet *fleet, struct metric_column *column, const struct facts *facts)
{
    for (size_t i = 0; i < facts->count; i++) {
        const struct fact *fact = &facts->items[i];
        struct note_column *notes = note_column(fleet, column, fact->key, i);
        if (!notes)
            return -ENOMEM;
        struct note *note = &notes->notes[fleet->count];
        note->kind = fact->kind;
        note->number = fact->kind == FACT_BOOL  ? fact->flag
                       : fact->kind == FACT_INT ? (double)fact->integer
                                                : fact->real;
        if ((fact->kind == FACT_TEXT && strlen(fact->text) > NOTE_TEXT_MAX) ||
            (fact->kind == FACT_REAL && !isfinite(fact->real)))
            note->kind = FACT_UNKNOWN;
        else if (fact->kind == FACT_TEXT &&
                 symbols_text_guessed(&fleet->symbols, fact->text, fleet->count ? note[-1].text : 0,
                                      &note->text))
            return -ENOMEM;
    }
    return 0;
}

static int join_words(struct fleet *fleet, const struct measure *measure, uint32_t *out_symbol)
{
    struct strbuf joined = {0};
    for (size_t i = 0; i < measure->word_count; i++)
        strbuf_append(&joined, measure->words[i], strlen(measure->words[i]) + 1);
    uint32_t symbol = joined.length ? symbols_add(&fleet->symbols, joined.data, joined.length) : 0;
    bool failed = joined.failed || (joined.length && !symbol);
    strbuf_fini(&joined);
    if (failed)
        return -ENOMEM;
    *out_symbol = symbol;
    return 0;
}

/* A damaged GPU can give a value that is not a finite number. */
static bool is_broken(const struct measure *measure)
{
    return measure->kind == MEASURE_NUMBER && measure_status_valued(measure->status) &&
           !isfinite(measure->value);
}

static int add_measure(struct fleet *fleet, const struct measure *measure, size_t guess)
{
    bool broken = is_broken(measure);
    struct metric_column *column = metric_column(fleet, measure->metric, guess);
    if (!column)
        return -ENOMEM;
    struct cell *cell = &column->cells[fleet->count];
    /* Most GPUs have the texts of the one before. */
    const struct cell before = fleet->count ? cell[-1] : (struct cell){0};
    *cell = (struct cell){.present = true,
                          .kind = (uint8_t)measure->kind,
                          .status = (uint8_t)(broken ? MEASURE_FAILED : measure->status),
                          .bound = (uint8_t)measure->bound,
                          .n = measure->n,
                          .word_count = (uint32_t)measure->word_count,
                          .value = measure->value,
                          .spread = measure->spread,
                          .confidence = measure->confidence};
    if (symbols_text_guessed(&fleet->symbols, measure->unit, before.unit, &cell->unit) ||
        symbols_text_guessed(&fleet->symbols, measure->method, before.method, &cell->method) ||
        symbols_text_guessed(&fleet->symbols, broken ? "not a finite number" : measure->reason,
                             before.reason, &cell->reason) ||
        join_words(fleet, measure, &cell->words))
        return -ENOMEM;
    return add_notes(fleet, column, &measure->notes);
}

static struct fact_column *fact_column(struct fleet *fleet, enum fact_set set, const char *key,
                                       size_t guess)
{
    struct fact_columns *columns = &fleet->facts[set];
    size_t found =
        find_column(fleet, columns->items, columns->count, sizeof *columns->items, key, guess);
    if (found < columns->count)
        return &columns->items[found];
    struct fact_column *grown =
        mem_grow(columns->items, &columns->capacity, columns->count + 1, sizeof *grown);
    if (!grown)
        return NULL;
    columns->items = grown;
    struct fact_column *column = &grown[columns->count];
    *column = (struct fact_column){.head.position = position_of(fleet, guess),
                                   .codes = mem_array(fleet->capacity, sizeof *column->codes)};
    if (!column->codes || symbols_text(&fleet->symbols, key, &column->head.name)) {
        free(column->codes);
        return NULL;
    }
    columns->count++;
    return column;
}

static int add_facts(struct fleet *fleet, enum fact_set set, const struct facts *facts)
{
    for (size_t i = 0; i < facts->count; i++) {
        struct fact_column *column = fact_column(fleet, set, facts->items[i].key, i);
        uint32_t *code = column ? &column->codes[fleet->count] : NULL;
        if (!column || fleet_encode(fleet, &facts->items[i], fleet->count ? code[-1] : 0, code))
            return -ENOMEM;
    }
    return 0;
}

/* Clears the cells of a GPU that could not be added. The next GPU gets the same cells and may not
 * set all of them. */
static void forget_last(struct fleet *fleet)
{
    for (size_t i = 0; i < fleet->metric_count; i++) {
        struct metric_column *column = &fleet->metrics[i];
        column->cells[fleet->count] = (struct cell){0};
        for (size_t k = 0; k < column->note_count; k++)
            column->notes[k].notes[fleet->count] = (struct note){0};
    }
    for (int set = 0; set < SET_COUNT; set++)
        for (size_t i = 0; i < fleet->facts[set].count; i++)
            fleet->facts[set].items[i].codes[fleet->count] = 0;
}

static int fill_last(struct fleet *fleet, const struct gpu_result *gpu)
{
    struct symbols *symbols = &fleet->symbols;
    struct fleet_gpu *out = &fleet->gpus[fleet->count];
    *out = (struct fleet_gpu){.index = gpu->index,
                              .rank = gpu->rank,
                              .status = gpu->status,
                              .first_status = gpu->first_status,
                              .gpus_given = gpu->gpus_given};
    out->measured = gpu->status == GPU_OK || gpu->status == GPU_OUTLIER ||
                    (gpu->status == GPU_BUSY && gpu->measures.count);
    if (symbols_text(symbols, gpu->uuid, &out->uuid) ||
        symbols_text(symbols, gpu->node, &out->node) ||
        symbols_text(symbols, gpu->pci, &out->pci) ||
        symbols_text(symbols, gpu->name, &out->name) ||
        symbols_text(symbols, gpu->model_key, &out->model_key) ||
        symbols_text(symbols, gpu->reason, &out->reason) ||
        symbols_text(symbols, gpu->first_reason, &out->first_reason) ||
        add_facts(fleet, SET_HARDWARE, &gpu->hardware) ||
        add_facts(fleet, SET_BOARD, &gpu->board) || add_facts(fleet, SET_CONFIG, &gpu->config) ||
        add_facts(fleet, SET_HEALTH, &gpu->health))
        return -ENOMEM;
    for (size_t i = 0; i < gpu->measures.count; i++)
        if (add_measure(fleet, &gpu->measures.items[i], i))
            return -ENOMEM;
    return 0;
}

int fleet_add(struct fleet *fleet, const struct gpu_result *gpu)
{
    if (fleet->count == fleet->capacity)
        return -ENOMEM;
    int rc = fill_last(fleet, gpu);
    if (rc)
        forget_last(fleet);
    else
        fleet->count++;
    return rc;
}
