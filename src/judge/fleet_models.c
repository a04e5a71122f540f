/* Sorts the fleet, groups its GPUs by model and by population, and finds the majorities of facts.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "base/str.h"
#include "catalogue/facts.h"
#include "judge/fleet.h"

bool fleet_judged(const struct fleet_gpu *gpu)
{
    return gpu->measured && !gpu->busy;
}

bool fleet_is_kind(const struct fleet *fleet, enum gpu_kind kind, uint32_t gpu)
{
    const struct fact_column *column = fleet_facts(fleet, SET_CONFIG, gpu_kind_key(kind));
    return gpu_kind_is(kind, fleet_fact_text(fleet, column, gpu));
}

void fleet_find_busy(struct fleet *fleet)
{
    const struct fact_column *processes = fleet_facts(fleet, SET_HEALTH, "processes");
    for (size_t i = 0; i < fleet->count; i++) {
        struct fleet_gpu *gpu = &fleet->gpus[i];
        gpu->busy = gpu->status == GPU_BUSY || fleet_fact_number(fleet, processes, (uint32_t)i) > 0;
        gpu->sliced = fleet_is_kind(fleet, GPU_KIND_VIRTUAL, (uint32_t)i);
    }
}

static int fleet_text_order(const struct fleet *fleet, uint32_t a, uint32_t b)
{
    return a == b ? 0 : str_order(fleet_text(fleet, a), fleet_text(fleet, b));
}

static int fleet_gpu_order(const void *left, const void *right, void *user)
{
    const struct fleet *fleet = user;
    const struct fleet_gpu *a = &fleet->gpus[*(const uint32_t *)left];
    const struct fleet_gpu *b = &fleet->gpus[*(const uint32_t *)right];
    int order = fleet_text_order(fleet, a->node, b->node);
    if (!order)
        order = fleet_text_order(fleet, a->pci, b->pci);
    if (!order)
        order = fleet_text_order(fleet, a->uuid, b->uuid);
    return order ? order : (a->rank > b->rank) - (a->rank < b->rank);
}

static int group_model_order(const void *left, const void *right, void *user)
{
    const struct fleet *fleet = user;
    const struct group *a = left, *b = right;
    int order = fleet_text_order(fleet, a->name, b->name);
    return order ? order : fleet_text_order(fleet, a->key, b->key);
}

static int column_position_order(const void *left, const void *right, void *user)
{
    const struct column_head *a = left, *b = right;
    int order = (a->position > b->position) - (a->position < b->position);
    return order ? order : fleet_text_order(user, a->name, b->name);
}

static int column_name_order(const void *left, const void *right, void *user)
{
    const struct column_head *a = left, *b = right;
    return fleet_text_order(user, a->name, b->name);
}

/* Settings and health are sorted by name: an inventory lists only unusual ones, so that the
 * position of a key says nothing. */
static void fleet_sort_columns(struct fleet *fleet)
{
    for (size_t i = 0; i < fleet->metric_count; i++) {
        struct metric_column *column = &fleet->metrics[i];
        if (column->note_count)
            sort_stable_with(column->notes, column->note_count, sizeof *column->notes,
                             column_position_order, fleet);
    }
    if (fleet->metric_count)
        sort_stable_with(fleet->metrics, fleet->metric_count, sizeof *fleet->metrics,
                         column_position_order, fleet);
    for (int set = 0; set < SET_COUNT; set++) {
        struct fact_columns *columns = &fleet->facts[set];
        if (columns->count)
            sort_stable_with(columns->items, columns->count, sizeof *columns->items,
                             set == SET_CONFIG || set == SET_HEALTH ? column_name_order
                                                                    : column_position_order,
                             fleet);
    }
}

/* "NVIDIA H200" -> "nvidia-h200". The result has only letters, digits and dashes. */
static char *model_slug(const char *name)
{
    char *id = str_copy(name && *name ? name : "unknown");
    size_t length = 0;
    for (const char *at = id; *at && length < 60; at++) {
        if (isalnum((unsigned char)*at))
            id[length++] = (char)tolower((unsigned char)*at);
        else if (length && id[length - 1] != '-')
            id[length++] = '-';
    }
    while (length && id[length - 1] == '-')
        length--;
    if (!length)
        id[length++] = 'x';
    id[length] = '\0';
    return id;
}

/* If models have the same name (other board, other MIG profile), the further ones get -2, -3, ...
 */
static void name_groups(struct fleet *fleet)
{
    struct symbols taken = {0}, bases = {0}; /* ids in use; their names without a number */
    size_t *numbers = NULL, capacity = 0;    /* by base: the last number, 2 after "x-2" */
    for (size_t i = 0; i < fleet->group_count; i++) {
        char *base = model_slug(fleet_text(fleet, fleet->groups[i].name)), *id = NULL;
        uint32_t symbol = symbols_of(&bases, base);
        numbers = mem_grow(numbers, &capacity, (size_t)symbol + 1, sizeof *numbers);
        do {
            free(id);
            size_t number = ++numbers[symbol];
            id = number == 1 ? str_copy(base) : str_format("%s-%zu", base, number);
        } while (symbols_find(&taken, id));
        symbols_of(&taken, id);
        fleet->groups[i].id = id;
        free(base);
    }
    symbols_fini(&taken);
    symbols_fini(&bases);
    free(numbers);
}

/* One group per model key. A GPU of unknown model has no group. */
static void open_groups(struct fleet *fleet)
{
    uint32_t *by_key = mem_array(fleet->symbols.count, sizeof *by_key); /* not 0: has a group */
    size_t capacity = 0;
    for (size_t i = 0; i < fleet->count; i++) {
        const struct fleet_gpu *gpu = &fleet->gpus[fleet->order[i]];
        if (!gpu->model_key || by_key[gpu->model_key])
            continue;
        fleet->groups =
            mem_grow(fleet->groups, &capacity, fleet->group_count + 1, sizeof *fleet->groups);
        fleet->groups[fleet->group_count++] =
            (struct group){.name = gpu->name, .key = gpu->model_key};
        by_key[gpu->model_key] = 1;
    }
    if (fleet->group_count)
        sort_stable_with(fleet->groups, fleet->group_count, sizeof *fleet->groups,
                         group_model_order, fleet);
    for (size_t i = 0; i < fleet->group_count; i++)
        by_key[fleet->groups[i].key] = (uint32_t)i;
    for (size_t i = 0; i < fleet->count; i++) {
        struct fleet_gpu *gpu = &fleet->gpus[i];
        gpu->group = gpu->model_key ? by_key[gpu->model_key] : GROUP_NONE;
    }
    free(by_key);
}

static void fill_groups(struct fleet *fleet)
{
    for (size_t i = 0; i < fleet->count; i++)
        if (fleet->gpus[i].group != GROUP_NONE)
            fleet->groups[fleet->gpus[i].group].count++;
    for (size_t i = 0; i < fleet->group_count; i++) {
        struct group *group = &fleet->groups[i];
        group->members = mem_array(group->count, sizeof *group->members);
        group->count = 0;
    }
    for (size_t i = 0; i < fleet->count; i++) {
        uint32_t number = fleet->gpus[fleet->order[i]].group;
        if (number != GROUP_NONE)
            fleet->groups[number].members[fleet->groups[number].count++] = fleet->order[i];
    }
}

void fleet_group(struct fleet *fleet)
{
    fleet->order = mem_array(fleet->count, sizeof *fleet->order);
    for (size_t i = 0; i < fleet->count; i++)
        fleet->order[i] = (uint32_t)i;
    if (fleet->count)
        sort_stable_with(fleet->order, fleet->count, sizeof *fleet->order, fleet_gpu_order, fleet);
    fleet_sort_columns(fleet);
    open_groups(fleet);
    name_groups(fleet);
    fill_groups(fleet);
}

static const struct fact_column *kind_column(const struct fleet *fleet,
                                             const struct setting_row *row)
{
    return fleet_facts(fleet, row->set == INVENTORY_BOARD ? SET_BOARD : SET_CONFIG, row->key);
}

/* The code of the GPU's kind; 0: the usual one, or not known. */
static uint32_t kind_code(const struct fleet *fleet, const struct setting_row *row,
                          const struct fact_column *column, uint32_t gpu)
{
    uint32_t code = column ? column->codes[gpu] : 0;
    if (!fleet_known(fleet, code))
        return 0;
    const struct fact fact = fleet_fact(fleet, column, code);
    return catalogue_kind_is_usual(row, &fact) ? 0 : code;
}

enum kinds_compare fleet_kinds_compare(const struct fleet *fleet, uint32_t gpu, uint32_t other,
                                       const char *figure)
{
    enum kinds_compare found = KINDS_ALIKE;
    for (size_t i = 0; i < catalogue_setting_count && found != KINDS_APART; i++) {
        const struct setting_row *row = &catalogue_settings[i];
        bool changes = catalogue_kind_changes(row, figure);
        if (row->compared != COMPARED_KIND || (row->figures && !changes))
            continue;
        const struct fact_column *column = kind_column(fleet, row);
        if (kind_code(fleet, row, column, gpu) != kind_code(fleet, row, column, other))
            found = changes ? KINDS_APART : KINDS_BOARDS;
    }
    return found;
}

static struct fact read_fleet_kind(const struct kind_view *view, const struct setting_row *row)
{
    const struct fact_column *column = kind_column(view->from, row);
    return column ? fleet_fact(view->from, column, column->codes[view->number]) : (struct fact){0};
}

struct kind_view fleet_kind_view(const struct fleet *fleet, uint32_t gpu)
{
    return (struct kind_view){.read = read_fleet_kind, .from = fleet, .number = gpu};
}

/* Whether the populations of the model differ in this fact. */
static bool kind_divides(const struct fleet *fleet, const struct group *model,
                         const struct setting_row *row, const struct fact_column *column)
{
    const struct group *first = &fleet->populations[model->populations_at];
    for (size_t i = 1; i < model->populations && row->compared == COMPARED_KIND; i++)
        if (kind_code(fleet, row, column, first[i].like) !=
            kind_code(fleet, row, column, first->like))
            return true;
    return false;
}

void fleet_put_kind(const struct fleet *fleet, const struct group *model,
                    const struct group *population, struct strbuf *keys, struct strbuf *values)
{
    const char *before = "";
    for (size_t i = 0; i < catalogue_setting_count; i++) {
        const struct setting_row *row = &catalogue_settings[i];
        const struct fact_column *column = kind_column(fleet, row);
        bool is_part = row->set == INVENTORY_BOARD;
        if (!kind_divides(fleet, model, row, column))
            continue;
        const struct fact fact = fleet_fact(fleet, column, column->codes[population->like]);
        if (keys)
            strbuf_printf(keys, "%s%s.%s", before, is_part ? "board" : "config", row->key);
        strbuf_printf(values, "%s%s%s", before, is_part ? "" : row->words, is_part ? "" : " ");
        if (fact.kind == FACT_INT)
            strbuf_printf(values, "%lld", (long long)fact.integer);
        else
            strbuf_puts(values, fact.kind == FACT_TEXT ? fact.text
                                : row->nvml.words      ? row->nvml.words[0]
                                                       : "unknown");
        before = ", ";
    }
}

struct division {
    struct fleet *fleet;
    const struct fact_column *parts; /* NULL: no GPU knows its board part */
    uint32_t *keys;                  /* per GPU: a number for its kind; 0: nothing is known */
    uint32_t *numbers;               /* by key: population + 1; 0: none in this model */
    size_t capacity;
};

/* The key of a kind is the symbol of the codes of all its facts. */
static void division_find_keys(struct division *division)
{
    const struct fleet *fleet = division->fleet;
    const struct fact_column **columns = mem_array(catalogue_setting_count, sizeof *columns);
    struct symbols kinds = {0};
    struct strbuf text = {0};
    for (size_t k = 0; k < catalogue_setting_count; k++)
        if (catalogue_settings[k].compared == COMPARED_KIND)
            columns[k] = kind_column(fleet, &catalogue_settings[k]);
    for (uint32_t gpu = 0; gpu < fleet->count; gpu++) {
        bool known = false;
        text.length = 0;
        for (size_t k = 0; k < catalogue_setting_count; k++) {
            uint32_t code = kind_code(fleet, &catalogue_settings[k], columns[k], gpu);
            known |= columns[k] && fleet_known(fleet, columns[k]->codes[gpu]);
            if (code)
                strbuf_printf(&text, "%zu:%u ", k, code);
        }
        division->keys[gpu] = known ? symbols_of(&kinds, text.length ? text.data : "usual") : 0;
    }
    division->numbers = mem_array(kinds.count + 2, sizeof *division->numbers);
    strbuf_fini(&text);
    symbols_fini(&kinds);
    free(columns);
}

static char *population_id(const struct division *division, const struct group *model,
                           const struct group *population)
{
    struct strbuf keys = {0}, values = {0};
    if (model->populations == 1)
        return str_copy(model->id);
    fleet_put_kind(division->fleet, model, population, &keys, &values);
    bool by_part = keys.data && strncmp(keys.data, "board.part", strlen("board.part")) == 0;
    bool unknown = str_equal(keys.data, "board.part") && !population->part;
    char *id = unknown
                   ? str_format("%s, unknown board part", model->id)
                   : str_format("%s, %s%s", model->id, by_part ? "board part " : "", values.data);
    strbuf_fini(&keys);
    strbuf_fini(&values);
    return id;
}

static void populations_fill(const struct division *division, const struct group *model)
{
    struct fleet *fleet = division->fleet;
    for (size_t i = 0; i < model->populations; i++) {
        struct group *population = &fleet->populations[model->populations_at + i];
        population->members = mem_array(population->count, sizeof *population->members);
        population->count = 0;
        population->id = population_id(division, model, population);
    }
    for (size_t i = 0; i < model->count; i++) {
        uint32_t gpu = model->members[i];
        struct group *population = &fleet->populations[fleet->gpus[gpu].population];
        population->members[population->count++] = gpu;
    }
}

/* In this order: GPUs of a later pass join the populations that are there. */
enum pass { MEASURED, MEASURED_UNKNOWN_KIND, UNMEASURED, PASSES };

static enum pass division_pass(const struct division *division, uint32_t gpu)
{
    const struct fleet *fleet = division->fleet;
    bool board_known = !division->parts || fleet_known(fleet, division->parts->codes[gpu]);
    if (!fleet->gpus[gpu].measured)
        return UNMEASURED;
    return division->keys[gpu] && board_known ? MEASURED : MEASURED_UNKNOWN_KIND;
}

/* Whether the GPU may be of the kind of the other: all that is known of it is so of the other. */
static bool kind_may_be(const struct fleet *fleet, uint32_t gpu, uint32_t other)
{
    for (size_t i = 0; i < catalogue_setting_count; i++) {
        const struct setting_row *row = &catalogue_settings[i];
        const struct fact_column *column =
            row->compared == COMPARED_KIND ? kind_column(fleet, row) : NULL;
        if (column && fleet_known(fleet, column->codes[gpu]) &&
            kind_code(fleet, row, column, gpu) != kind_code(fleet, row, column, other))
            return false;
    }
    return true;
}

/* The number of the only population, of the first `count` of the model, whose kind the GPU may be;
 * 0: there is none, or several. */
static uint32_t division_only_match(const struct fleet *fleet, const struct group *model,
                                    size_t count, uint32_t gpu)
{
    uint32_t found = 0;
    for (size_t i = model->populations_at; i < model->populations_at + count; i++) {
        if (!kind_may_be(fleet, gpu, fleet->populations[i].like))
            continue;
        if (found)
            return 0;
        found = (uint32_t)i + 1;
    }
    return found;
}

/* A measured GPU opens the population of its kind. If its board is not known, it joins the only
 * population that agrees with what is known of it; with several or none, it opens one of its own
 * kind. A GPU that was not measured joins the population of its kind, or the first one: often
 * nothing is known of it. */
static void division_assign(struct division *division, const struct group *model, enum pass pass)
{
    struct fleet *fleet = division->fleet;
    size_t before = fleet->population_count - model->populations_at;
    for (size_t i = 0; i < model->count; i++) {
        uint32_t gpu = model->members[i], key = division->keys[gpu];
        if (division_pass(division, gpu) != pass)
            continue;
        uint32_t joined =
            pass == MEASURED_UNKNOWN_KIND ? division_only_match(fleet, model, before, gpu) : 0;
        bool opens =
            !joined && (pass != UNMEASURED || fleet->population_count == model->populations_at);
        if (!division->numbers[key] && opens) {
            uint32_t part = division->parts ? division->parts->codes[gpu] : 0;
            fleet->populations = mem_grow(fleet->populations, &division->capacity,
                                          fleet->population_count + 1, sizeof *fleet->populations);
            fleet->populations[fleet->population_count++] =
                (struct group){.name = model->name,
                               .key = model->key,
                               .part = fleet_known(fleet, part) ? part : 0,
                               .like = gpu};
            division->numbers[key] = (uint32_t)fleet->population_count;
        }
        uint32_t number = joined ? joined : division->numbers[key];
        fleet->gpus[gpu].population = number ? number - 1 : (uint32_t)model->populations_at;
        fleet->populations[fleet->gpus[gpu].population].count++;
    }
}

void fleet_populate(struct fleet *fleet)
{
    struct division division = {
        .fleet = fleet,
        .parts = fleet_facts(fleet, SET_BOARD, "part"),
        .keys = mem_array(fleet->count, sizeof *division.keys),
    };
    division_find_keys(&division);
    for (size_t i = 0; i < fleet->count; i++)
        fleet->gpus[i].population = GROUP_NONE;
    for (size_t i = 0; i < fleet->group_count; i++) {
        struct group *model = &fleet->groups[i];
        model->populations_at = fleet->population_count;
        for (int pass = 0; pass < PASSES; pass++)
            division_assign(&division, model, (enum pass)pass);
        model->populations = fleet->population_count - model->populations_at;
        for (size_t k = 0; k < model->populations; k++)
            division.numbers[division.keys[fleet->populations[model->populations_at + k].like]] = 0;
        populations_fill(&division, model);
    }
    free(division.keys);
    free(division.numbers);
}

/* votes: one counter per symbol; all are 0 before and after the call. */
static struct usual usual_count(const struct fleet *fleet, const struct group *group,
                                const struct fact_column *column, uint32_t *votes)
{
    struct usual usual = {0};
    for (size_t i = 0; i < group->count; i++) {
        uint32_t code = column->codes[group->members[i]];
        if (!fleet->gpus[group->members[i]].measured || !fleet_known(fleet, code))
            continue;
        votes[code]++;
        usual.known++;
    }
    for (size_t i = 0; i < group->count; i++) {
        uint32_t code = column->codes[group->members[i]];
        if (votes[code] > usual.votes) {
            usual.code = code;
            usual.votes = votes[code];
        }
    }
    for (size_t i = 0; i < group->count; i++)
        votes[column->codes[group->members[i]]] = 0;
    return usual;
}

static void groups_find_usual(const struct fleet *fleet, struct group *groups, size_t count,
                              uint32_t *votes)
{
    for (size_t g = 0; g < count; g++)
        for (int set = 0; set < SET_COUNT; set++) {
            const struct fact_columns *columns = &fleet->facts[set];
            groups[g].usual[set] = mem_array(columns->count, sizeof *groups[g].usual[set]);
            for (size_t i = 0; i < columns->count; i++)
                groups[g].usual[set][i] = usual_count(fleet, &groups[g], &columns->items[i], votes);
        }
}

void fleet_find_usual(struct fleet *fleet)
{
    uint32_t *votes = mem_array(fleet->symbols.count, sizeof *votes);
    groups_find_usual(fleet, fleet->groups, fleet->group_count, votes);
    groups_find_usual(fleet, fleet->populations, fleet->population_count, votes);
    free(votes);
}

const struct usual *fleet_usual(const struct fleet *fleet, const struct group *group,
                                enum fact_set set, const struct fact_column *column)
{
    return column ? &group->usual[set][column - fleet->facts[set].items] : NULL;
}

bool usual_holds(const struct usual *usual)
{
    return usual && 2 * (uint64_t)usual->votes > usual->known;
}

bool usual_is_clear(const struct usual *usual)
{
    return usual && usual->votes >= 3 && 3 * (uint64_t)usual->votes >= 2 * (uint64_t)usual->known;
}
