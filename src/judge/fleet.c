/* All results of a fleet as columns: how a result is copied into them, and look-ups. */
#include "judge/fleet.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "catalogue/metrics.h"
#include "schema/packed.h"

void fleet_init(struct fleet *fleet, size_t capacity)
{
    *fleet = (struct fleet){.capacity = capacity, .gpus = mem_array(capacity, sizeof *fleet->gpus)};
}

static void groups_fini(struct group *groups, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(groups[i].id);
        free(groups[i].members);
        for (int set = 0; set < SET_COUNT; set++)
            free(groups[i].usual[set]);
    }
    free(groups);
}

void fleet_fini(struct fleet *fleet)
{
    for (size_t i = 0; i < fleet->metric_count; i++) {
        struct metric_column *column = &fleet->metrics[i];
        for (size_t k = 0; k < column->note_count; k++)
            free(column->notes[k].notes);
        free(column->notes);
        free(column->cells);
    }
    for (int set = 0; set < SET_COUNT; set++) {
        for (size_t i = 0; i < fleet->facts[set].count; i++)
            free(fleet->facts[set].items[i].codes);
        free(fleet->facts[set].items);
    }
    groups_fini(fleet->groups, fleet->group_count);
    groups_fini(fleet->populations, fleet->population_count);
    free(fleet->metrics);
    free(fleet->order);
    for (size_t i = 0; i < fleet->count; i++)
        schema_fini(&gpu_run_schema, &fleet->gpus[i].run);
    free(fleet->gpus);
    symbols_fini(&fleet->symbols);
    memset(fleet, 0, sizeof *fleet);
}

const char *fleet_text(const struct fleet *fleet, uint32_t symbol)
{
    return symbols_data(&fleet->symbols, symbol);
}

const struct metric_column *fleet_metric(const struct fleet *fleet, const char *name)
{
    uint32_t symbol = symbols_find(&fleet->symbols, name);
    for (size_t i = 0; i < fleet->metric_count && symbol; i++)
        if (fleet->metrics[i].head.name == symbol)
            return &fleet->metrics[i];
    return NULL;
}

const struct cell *fleet_number(const struct metric_column *column, uint32_t gpu, bool noisy)
{
    const struct cell *cell = column ? &column->cells[gpu] : NULL;
    bool usable = cell && cell->present && !cell->left && cell->kind == MEASURE_NUMBER &&
                  (cell->status == MEASURE_OK || (noisy && cell->status == MEASURE_NOISY)) &&
                  cell->bound == MEASURE_EXACT && isfinite(cell->value);
    return usable ? cell : NULL;
}

void fleet_leave_second(struct fleet *fleet)
{
    for (size_t m = 0; m < metric_row_count; m++) {
        const char *unless = metric_rows[m].unless;
        const struct metric_column *first = unless ? fleet_metric(fleet, unless) : NULL;
        const struct metric_column *second = first ? fleet_metric(fleet, metric_rows[m].key) : NULL;
        for (uint32_t gpu = 0; second && gpu < fleet->count; gpu++)
            second->cells[gpu].left = fleet_number(first, gpu, false) != NULL;
    }
}

double fleet_value(const struct fleet *fleet, const char *metric, uint32_t gpu, bool noisy)
{
    const struct cell *cell = fleet_number(fleet_metric(fleet, metric), gpu, noisy);
    return cell ? cell->value : NAN;
}

const struct note_column *fleet_notes(const struct fleet *fleet, const struct metric_column *column,
                                      const char *key)
{
    uint32_t symbol = symbols_find(&fleet->symbols, key);
    for (size_t i = 0; column && symbol && i < column->note_count; i++)
        if (column->notes[i].head.name == symbol)
            return &column->notes[i];
    return NULL;
}

static bool fact_is_list(const struct fact *fact)
{
    return fact->kind == FACT_NUMBERS || fact->kind == FACT_TEXTS;
}

/* A list as bytes: packed numbers, or the number of texts and the texts with their NUL characters.
 */
static void list_put(struct strbuf *out, const struct fact *fact)
{
    if (fact->kind == FACT_NUMBERS)
        packed_put(out, fact);
    else
        strbuf_append(out, (const char *)&fact->count, sizeof fact->count);
    for (uint32_t i = 0; i < fact->count && fact->kind == FACT_TEXTS; i++)
        strbuf_append(out, fact->texts[i], strlen(fact->texts[i]) + 1);
}

/* Adds the fact with the list that these bytes are. */
static void list_get(const char *data, enum fact_kind kind, struct fact fact,
                     struct facts *out_facts)
{
    fact.kind = kind;
    if (kind == FACT_NUMBERS) {
        packed_get(data, &fact);
        facts_set(out_facts, &fact);
        free(fact.numbers);
        return;
    }
    memcpy(&fact.count, data, sizeof fact.count);
    data += sizeof fact.count;
    fact.texts = mem_array(fact.count, sizeof *fact.texts);
    for (uint32_t i = 0; i < fact.count; i++, data += strlen(data) + 1)
        fact.texts[i] = (char *)data;
    facts_set(out_facts, &fact);
    free(fact.texts);
}

void fleet_put_note(const struct fleet *fleet, const struct note_column *column,
                    const struct note *note, struct facts *out_facts)
{
    struct fact fact = {.key = (char *)fleet_text(fleet, column->head.name), .kind = note->kind};
    const char *data = fleet_text(fleet, note->text);
    switch (note->kind) {
    case FACT_UNKNOWN:
        return;
    case FACT_BOOL:
        fact.flag = note->number != 0;
        break;
    case FACT_INT:
        fact.integer = (int64_t)note->number;
        break;
    case FACT_REAL:
        fact.real = note->number;
        break;
    case FACT_TEXT:
        fact.text = (char *)data;
        break;
    case FACT_NUMBERS:
    case FACT_TEXTS:
        list_get(data, note->kind, fact, out_facts);
        return;
    }
    facts_set(out_facts, &fact);
}

/* Kind and value of a fact as bytes. 5 and 5.0 have the same code, because a file does not
 * distinguish them. */
struct coded {
    char kind; /* u: unknown, b: flag, n: number, i: integer that no double holds, t: text, l: list
                  of numbers (packed), w: list of texts (with their NUL characters) */
    char bytes[sizeof(double)];
};

/* Whole numbers up to this one are exact in a double. */
static const double whole_max = 0x1p53;

/* The code of a fact, by kind and value; `guess` (0: none) is the code that it probably has. */
static uint32_t fact_encode(struct symbols *symbols, const struct fact *fact, uint32_t guess)
{
    struct coded coded = {.kind = 'n'};
    double number = fact->kind == FACT_BOOL  ? fact->flag
                    : fact->kind == FACT_INT ? (double)fact->integer
                                             : fact->real;
    if (fact->kind == FACT_UNKNOWN || (fact->kind == FACT_TEXT && !fact->text))
        return symbols_add_guessed(symbols, "u", 1, guess);
    if (fact->kind == FACT_TEXT) {
        char small[256] = "t", *large = NULL;
        size_t length = strlen(fact->text);
        if (length < sizeof small)
            memcpy(small + 1, fact->text, length);
        else
            large = str_format("t%s", fact->text);
        uint32_t code = symbols_add_guessed(symbols, large ? large : small, length + 1, guess);
        free(large);
        return code;
    }
    if (fact_is_list(fact)) {
        struct strbuf bytes = {0};
        strbuf_puts(&bytes, fact->kind == FACT_NUMBERS ? "l" : "w");
        list_put(&bytes, fact);
        uint32_t code = symbols_add_guessed(symbols, bytes.data, bytes.length, guess);
        strbuf_fini(&bytes);
        return code;
    }
    memcpy(coded.bytes, &number, sizeof number);
    if (fact->kind == FACT_BOOL)
        coded.kind = 'b';
    if (fact->kind == FACT_INT && fabs(number) > whole_max) {
        coded.kind = 'i';
        memcpy(coded.bytes, &fact->integer, sizeof fact->integer);
    }
    return symbols_add_guessed(symbols, &coded, sizeof coded, guess);
}

bool fleet_known(const struct fleet *fleet, uint32_t code)
{
    return code && fleet_text(fleet, code)[0] != 'u';
}

struct fact fleet_fact(const struct fleet *fleet, const struct fact_column *column, uint32_t code)
{
    const char *data = fleet_text(fleet, code);
    struct fact fact = {.key = (char *)fleet_text(fleet, column->head.name), .kind = FACT_UNKNOWN};
    double number = 0;
    if (!fleet_known(fleet, code) || data[0] == 'l' || data[0] == 'w')
        return fact;
    if (data[0] == 't') {
        fact.kind = FACT_TEXT;
        fact.text = (char *)data + 1;
        return fact;
    }
    memcpy(&number, data + 1, sizeof number);
    if (data[0] == 'b') {
        fact.kind = FACT_BOOL;
        fact.flag = number != 0;
    } else if (data[0] == 'i') {
        fact.kind = FACT_INT;
        memcpy(&fact.integer, data + 1, sizeof fact.integer);
    } else if (number == floor(number) && fabs(number) <= whole_max) {
        fact.kind = FACT_INT;
        fact.integer = (int64_t)number;
    } else {
        fact.kind = FACT_REAL;
        fact.real = number;
    }
    return fact;
}

void fleet_put_fact(const struct fleet *fleet, const struct fact_column *column, uint32_t code,
                    struct facts *out_facts)
{
    const struct fact fact = fleet_fact(fleet, column, code);
    const char *data = fleet_text(fleet, code);
    if (data && (data[0] == 'l' || data[0] == 'w'))
        list_get(data + 1, data[0] == 'l' ? FACT_NUMBERS : FACT_TEXTS, fact, out_facts);
    else
        facts_set(out_facts, &fact);
}

void fleet_put_facts(const struct fleet *fleet, enum fact_set set, const char *const *keys,
                     size_t count, uint32_t gpu, struct facts *out_facts)
{
    for (size_t i = 0; i < count; i++) {
        const struct fact_column *column = fleet_facts(fleet, set, keys[i]);
        if (column && column->codes[gpu])
            fleet_put_fact(fleet, column, column->codes[gpu], out_facts);
    }
}

const struct fact_column *fleet_facts(const struct fleet *fleet, enum fact_set set, const char *key)
{
    const struct fact_columns *columns = &fleet->facts[set];
    uint32_t symbol = symbols_find(&fleet->symbols, key);
    for (size_t i = 0; i < columns->count && symbol; i++)
        if (columns->items[i].head.name == symbol)
            return &columns->items[i];
    return NULL;
}

double fleet_code_number(const struct fleet *fleet, uint32_t code)
{
    const struct fact fact = fleet_fact(fleet, &(struct fact_column){0}, code);
    switch (fact.kind) {
    case FACT_BOOL:
        return fact.flag;
    case FACT_INT:
        return (double)fact.integer;
    case FACT_REAL:
        return fact.real;
    default:
        return NAN;
    }
}

double fleet_fact_number(const struct fleet *fleet, const struct fact_column *column, uint32_t gpu)
{
    return column ? fleet_code_number(fleet, column->codes[gpu]) : NAN;
}

const char *fleet_fact_text(const struct fleet *fleet, const struct fact_column *column,
                            uint32_t gpu)
{
    if (!column)
        return NULL;
    const struct fact fact = fleet_fact(fleet, column, column->codes[gpu]);
    return fact.kind == FACT_TEXT ? fact.text : NULL;
}

/* Longer texts and lists of notes are left out. The longest one is the map of SMs and slices. */
enum { NOTE_TEXT_MAX = 8000, NOTE_NUMBERS_MAX = 16000 };

/* The result of a GPU that was not measured is partial: its positions are not used. */
static uint32_t column_position(const struct fleet *fleet, size_t place)
{
    return fleet->gpus[fleet->count].measured ? (uint32_t)place : UINT32_MAX;
}

/* The index of the column with that name; `count` if there is none. `guess` is tried first, because
 * most GPUs list the same columns in the same order. */
static size_t column_find(const struct fleet *fleet, void *columns, size_t count, size_t size,
                          const char *name, size_t guess)
{
    char *base = columns;
    size_t at = guess < count ? guess : 0;
    for (size_t tried = 0; tried < count; tried++, at = (at + 1) % count) {
        struct column_head *head = (struct column_head *)(base + at * size);
        if (strcmp(fleet_text(fleet, head->name), name) != 0)
            continue;
        uint32_t position = column_position(fleet, guess);
        head->position = position < head->position ? position : head->position;
        return at;
    }
    return count;
}

static struct column_head column_head_new(struct fleet *fleet, const char *name, size_t guess)
{
    return (struct column_head){.name = symbols_of(&fleet->symbols, name),
                                .position = column_position(fleet, guess)};
}

/* The column of a metric, of a note and of a fact; a new one if there is none. */
static struct metric_column *metric_column(struct fleet *fleet, const char *name, size_t guess)
{
    size_t found = column_find(fleet, fleet->metrics, fleet->metric_count, sizeof *fleet->metrics,
                               name, guess);
    if (found < fleet->metric_count)
        return &fleet->metrics[found];
    fleet->metrics = mem_grow(fleet->metrics, &fleet->metric_capacity, fleet->metric_count + 1,
                              sizeof *fleet->metrics);
    struct metric_column *column = &fleet->metrics[fleet->metric_count++];
    *column = (struct metric_column){.head = column_head_new(fleet, name, guess),
                                     .cells = mem_array(fleet->capacity, sizeof *column->cells)};
    return column;
}

static struct note_column *note_column(struct fleet *fleet, struct metric_column *column,
                                       const char *key, size_t guess)
{
    size_t found =
        column_find(fleet, column->notes, column->note_count, sizeof *column->notes, key, guess);
    if (found < column->note_count)
        return &column->notes[found];
    column->notes = mem_grow(column->notes, &column->note_capacity, column->note_count + 1,
                             sizeof *column->notes);
    struct note_column *notes = &column->notes[column->note_count++];
    *notes = (struct note_column){.head = column_head_new(fleet, key, guess),
                                  .notes = mem_array(fleet->capacity, sizeof *notes->notes)};
    return notes;
}

static struct fact_column *fact_column(struct fleet *fleet, enum fact_set set, const char *key,
                                       size_t guess)
{
    struct fact_columns *columns = &fleet->facts[set];
    size_t found =
        column_find(fleet, columns->items, columns->count, sizeof *columns->items, key, guess);
    if (found < columns->count)
        return &columns->items[found];
    columns->items =
        mem_grow(columns->items, &columns->capacity, columns->count + 1, sizeof *columns->items);
    struct fact_column *column = &columns->items[columns->count++];
    *column = (struct fact_column){.head = column_head_new(fleet, key, guess),
                                   .codes = mem_array(fleet->capacity, sizeof *column->codes)};
    return column;
}

/* The bytes of a list in symbols: equal lists have the same number. */
static uint32_t fleet_add_list(struct fleet *fleet, const struct fact *fact, uint32_t guess)
{
    struct strbuf bytes = {0};
    list_put(&bytes, fact);
    uint32_t symbol =
        symbols_add_guessed(&fleet->symbols, bytes.data ? bytes.data : "", bytes.length, guess);
    strbuf_fini(&bytes);
    return symbol;
}

static bool note_is_too_long(const struct fact *fact)
{
    size_t length = 0;
    if (fact->kind == FACT_NUMBERS)
        return fact->count > NOTE_NUMBERS_MAX;
    for (uint32_t i = 0; i < fact->count && fact->kind == FACT_TEXTS; i++)
        length += strlen(fact->texts[i]) + 1;
    return length > NOTE_TEXT_MAX ||
           (fact->kind == FACT_TEXT && strlen(fact->text) > NOTE_TEXT_MAX);
}

static void fleet_add_notes(struct fleet *fleet, struct metric_column *column,
                            const struct facts *facts)
{
    for (size_t i = 0; i < facts->count; i++) {
        const struct fact *fact = &facts->items[i];
        struct note *note = &note_column(fleet, column, fact->key, i)->notes[fleet->count];
        uint32_t guess = fleet->count ? note[-1].text : 0;
        note->kind = fact->kind;
        if (note_is_too_long(fact) || (fact->kind == FACT_REAL && !isfinite(fact->real))) {
            note->kind = FACT_UNKNOWN;
        } else if (fact_is_list(fact)) {
            note->text = fleet_add_list(fleet, fact, guess);
        } else if (fact->kind == FACT_TEXT) {
            note->text = symbols_of_guessed(&fleet->symbols, fact->text, guess);
        } else {
            note->number = fact->kind == FACT_BOOL  ? fact->flag
                           : fact->kind == FACT_INT ? (double)fact->integer
                                                    : fact->real;
        }
    }
}

static uint32_t fleet_join_words(struct fleet *fleet, const struct measure *measure)
{
    struct strbuf joined = {0};
    for (size_t i = 0; i < measure->word_count; i++)
        strbuf_append(&joined, measure->words[i], strlen(measure->words[i]) + 1);
    uint32_t symbol = joined.length ? symbols_add(&fleet->symbols, joined.data, joined.length) : 0;
    strbuf_fini(&joined);
    return symbol;
}

static void fleet_add_measure(struct fleet *fleet, const struct measure *measure, size_t guess)
{
    /* A damaged GPU can give a value that is not a finite number. */
    bool broken = measure->kind == MEASURE_NUMBER && measure_status_valued(measure->status) &&
                  !isfinite(measure->value);
    struct symbols *symbols = &fleet->symbols;
    struct metric_column *column = metric_column(fleet, measure->metric, guess);
    struct cell *cell = &column->cells[fleet->count];
    /* Most GPUs have the texts of the one before. */
    const struct cell before = fleet->count ? cell[-1] : (struct cell){0};
    *cell = (struct cell){
        .present = true,
        .kind = (uint8_t)measure->kind,
        .status = (uint8_t)(broken ? MEASURE_FAILED : measure->status),
        .bound = (uint8_t)measure->bound,
        .n = measure->n,
        .gpus = measure->gpus,
        .unit = symbols_of_guessed(symbols, measure->unit, before.unit),
        .method = symbols_of_guessed(symbols, measure->method, before.method),
        .reason = symbols_of_guessed(symbols, broken ? "not a finite number" : measure->reason,
                                     before.reason),
        .words = fleet_join_words(fleet, measure),
        .word_count = (uint32_t)measure->word_count,
        .value = measure->value,
        .spread = measure->spread,
        .confidence = measure->confidence,
    };
    fleet_add_notes(fleet, column, &measure->notes);
}

void fleet_add(struct fleet *fleet, const struct gpu_result *gpu)
{
    struct symbols *symbols = &fleet->symbols;
    const struct facts *const sets[SET_COUNT] = {[SET_HARDWARE] = &gpu->hardware,
                                                 [SET_BOARD] = &gpu->board,
                                                 [SET_CONFIG] = &gpu->config,
                                                 [SET_HEALTH] = &gpu->health};
    fleet->gpus[fleet->count] =
        (struct fleet_gpu){.index = gpu->index,
                           .rank = gpu->rank,
                           .status = gpu->status,
                           .uuid = symbols_of(symbols, gpu->uuid),
                           .node = symbols_of(symbols, gpu->node),
                           .pci = symbols_of(symbols, gpu->pci),
                           .name = symbols_of(symbols, gpu->name),
                           .model_key = symbols_of(symbols, gpu->model_key),
                           .reason = symbols_of(symbols, gpu->reason),
                           .measured = gpu->status == GPU_OK || gpu->status == GPU_OUTLIER ||
                                       (gpu->status == GPU_BUSY && gpu->measures.count)};
    schema_copy(&gpu_run_schema, &fleet->gpus[fleet->count].run, &gpu->run);
    for (int set = 0; set < SET_COUNT; set++)
        for (size_t i = 0; i < sets[set]->count; i++) {
            const struct fact *fact = &sets[set]->items[i];
            uint32_t *code =
                &fact_column(fleet, (enum fact_set)set, fact->key, i)->codes[fleet->count];
            *code = fact_encode(symbols, fact, fleet->count ? code[-1] : 0);
        }
    for (size_t i = 0; i < gpu->measures.count; i++)
        fleet_add_measure(fleet, &gpu->measures.items[i], i);
    fleet->count++;
}
