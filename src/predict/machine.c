/* Makes the configuration of the cache model from an inventory, and refuses geometry that makes no
 * sense. */
#include "predict/machine.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "inventory/measure.h"

/* The driver's choice of the carve-out, as 132 launches on an H200 showed it (docs/VALIDATION.md):
 * what a block takes beside its own; the carve-outs of compute capability 9.0; up to where the
 * driver takes more than the blocks need. */
static const uint64_t reserved = 1024, granule = 128;
static const uint64_t choices_kib[] = {8, 16, 32, 64, 100, 132, 164, 196, 228};
static const uint64_t generous_kib = 132;

static uint64_t machine_smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* So many times the blocks that the threads allow are provided for. */
static uint64_t generosity(uint32_t warps, uint64_t shared_bytes)
{
    if (warps >= 32)
        return 1;
    return shared_bytes ? 2 : 4;
}

uint64_t machine_hopper_carveout(const struct sm_limits *limits, uint32_t warps,
                                 uint64_t shared_bytes)
{
    uint64_t block = (shared_bytes + granule - 1) / granule * granule + reserved;
    uint64_t most = choices_kib[COUNT_OF(choices_kib) - 1] << 10;
    uint64_t blocks = machine_smaller(limits->blocks_max, limits->warps_max / warps);
    uint64_t needed = machine_smaller(blocks, most / block) * block;
    uint64_t wanted =
        machine_smaller(limits->blocks_max, blocks * generosity(warps, shared_bytes)) * block;
    wanted = machine_smaller(wanted, generous_kib << 10);
    wanted = wanted > needed ? wanted : needed;
    for (size_t i = 0; i < COUNT_OF(choices_kib); i++)
        if (choices_kib[i] << 10 >= wanted)
            return choices_kib[i] << 10;
    return most;
}

/* Text figures of a model: l1_data.policy, l1_data.index, l2.policy, l2.index. */
enum { MACHINE_WORDS = 4, MACHINE_WORD_TEXT_MAX = 80 };

enum { SHIFT_MAX = 16 };

/* The words of policies and indices: those of an inventory and of the seed. */
struct word {
    const char *name;
    int value;
    bool of_survey; /* a word of inventories, not for users */
};
static const struct word policies[] = {
    {"lru", CACHE_LRU},   {"fifo", CACHE_FIFO},    {"random", CACHE_RANDOM}, {"lfu", CACHE_LFU},
    {"tree", CACHE_TREE}, {"biased", CACHE_FERMI}, {"early", CACHE_EARLY},   {NULL, 0},
};
static const struct word indices[] = {
    {"modulo", CACHE_MODULO},     {"hashed", CACHE_HASHED},        {"xor", CACHE_XOR},
    {"prime", CACHE_PRIME},       {"smod", CACHE_SHIFTED},         {"bit", CACHE_MODULO, true},
    {"bits", CACHE_MODULO, true}, {"one_set", CACHE_MODULO, true}, {NULL, 0},
};

/* Text fields: which word a cache's policy or index is. */
static const struct {
    const char *key;
    const struct word *words;
    const char *assumed;
    bool of_l1;
} word_rows[MACHINE_WORDS] = {
    {"l1_data.policy", policies, "lru", true},
    {"l1_data.index", indices, "hashed", true},
    {"l2.policy", policies, "lru", false},
    {"l2.index", indices, "hashed", false},
};

static const char *machine_word_key(size_t row)
{
    return word_rows[row].key;
}

/* The survey may add numbers: modulo_65536, bits_7_to_12. */
static const struct word *find_word(const struct word *words, const char *name)
{
    for (const struct word *word = words; name && word->name; word++) {
        size_t length = strlen(word->name);
        if (strncmp(name, word->name, length) == 0 && (!name[length] || name[length] == '_'))
            return word;
    }
    return NULL;
}

/* The seed's SMODn: "smod" (n = 1), "smod2", "smod3". False: another word. */
static bool read_shift(const struct word *words, const char *name, uint64_t *out_shift)
{
    *out_shift = 1;
    if (words != indices || !name || strncmp(name, "smod", 4) != 0)
        return false;
    return !name[4] ||
           (str_parse_u64(name + 4, out_shift) == 0 && *out_shift >= 1 && *out_shift <= SHIFT_MAX);
}

static int unknown_word(const char *key, const char *name, const struct word *words,
                        struct err *err)
{
    char list[120] = "";
    for (const struct word *word = words; word->name; word++) {
        size_t length = strlen(list);
        if (!word->of_survey)
            snprintf(list + length, sizeof list - length, "%s%s", length ? ", " : "", word->name);
    }
    return err_set(err, -EINVAL, "%s is one of %s%s, not \"%.40s\"", key, list,
                   words == indices ? " (or smod2 to smod16: shifted by more bits)" : "", name);
}

/* Sets the policy or index in the configuration. changed: the user's word, or NULL; otherwise the
 * measured one counts (NULL: none). out_assumed: what was assumed instead of a word that is not
 * known; "" if none. -EINVAL: the user's word is unknown. */
static int machine_word_read(size_t row, const struct measure *measure, const char *changed,
                             struct model_config *config, char out_assumed[MACHINE_WORD_TEXT_MAX],
                             struct err *err)
{
    const char *key = word_rows[row].key;
    const char *measured =
        measure && measure->kind == MEASURE_WORDS && measure->word_count ? measure->words[0] : NULL;
    const char *name = changed ? changed : measured;
    const struct word *words = word_rows[row].words;
    uint64_t shift;
    bool shifted = read_shift(words, name, &shift);
    const struct word *word = find_word(words, shifted ? "smod" : name);
    struct cache_geometry *cache = word_rows[row].of_l1 ? &config->l1 : &config->l2;
    out_assumed[0] = 0;
    if (!word && changed)
        return unknown_word(key, name, words, err);
    if (!word) {
        snprintf(out_assumed, MACHINE_WORD_TEXT_MAX, name ? "%s (%.40s is not modelled)" : "%s",
                 word_rows[row].assumed, name);
        word = find_word(words, word_rows[row].assumed);
    }
    if (words == policies)
        cache->policy = (enum cache_policy)word->value;
    else
        cache->index = (enum cache_index)word->value;
    if (words == indices)
        cache->index_shift = (uint32_t)shift;
    return 0;
}

typedef unsigned long long number;

/* One cache, and which of its figures are the user's. */
struct level {
    const char *name;
    const struct cache_geometry *cache;
    bool size, ways;
};

static bool is_given(const struct what_if *what_if, const char *name, const char *figure)
{
    char key[WHAT_IF_WORD_MAX];
    snprintf(key, sizeof key, "%s.%s", name, figure);
    return what_if_value(what_if, key) != NULL;
}

static int machine_check_order(const struct level *l, struct err *err)
{
    const struct cache_geometry *c = l->cache;
    if (c->fetch > c->line)
        return err_set(err, -EINVAL,
                       "%s.fetch (%llu B) is larger than %s.line (%llu B), but a miss brings at "
                       "most its line; give both",
                       l->name, (number)c->fetch, l->name, (number)c->line);
    if (c->line > c->size)
        return err_set(err, -EINVAL,
                       "%s.line (%llu B) is larger than %s.size (%llu B), so that no line fits; "
                       "give a larger size or a smaller line",
                       l->name, (number)c->line, l->name, (number)c->size);
    if (c->line / c->sector > CACHE_SECTORS_MAX)
        return err_set(err, -EINVAL,
                       "%s.line (%llu B) has more than %d sectors of %llu B, which are not "
                       "modelled; give a smaller line, or a larger fetch of both caches",
                       l->name, (number)c->line, CACHE_SECTORS_MAX, (number)c->sector);
    return 0;
}

static int check_whole_lines(const struct level *l, struct err *err)
{
    const struct cache_geometry *c = l->cache;
    uint64_t below = c->size / c->line * c->line;
    if (!l->size || below == c->size)
        return 0;
    return err_set(err, -EINVAL,
                   "%s.size is not a multiple of %s.line (%llu B); the nearest ones are %llu and "
                   "%llu",
                   l->name, l->name, (number)c->line, (number)below, (number)(below + c->line));
}

static int check_ways(const struct level *l, struct err *err)
{
    const struct cache_geometry *c = l->cache;
    uint64_t lines = c->size / c->line, set = c->ways * c->line;
    if (c->ways > lines)
        return err_set(err, -EINVAL,
                       "%s.ways: %llu ways need as many lines, but %s.size (%llu B) has only %llu; "
                       "give a larger size or fewer ways (0: fully associative)",
                       l->name, (number)c->ways, l->name, (number)c->size, (number)lines);
    if (l->ways && set && !c->tags && lines % c->ways) {
        uint64_t below = c->size / set * set;
        return err_set(err, -EINVAL,
                       "%s.ways: %llu ways do not divide the %llu lines of %s.size; give both, "
                       "such as %s.ways=%llu+%s.size=%llu",
                       l->name, (number)c->ways, (number)lines, l->name, l->name, (number)c->ways,
                       l->name, (number)below);
    }
    if (c->policy == CACHE_TREE && (!c->ways || c->ways > CACHE_TREE_WAYS_MAX))
        return err_set(err, -EINVAL,
                       "%s.policy: a tree has 1 to %d ways, not %llu; give both, such as "
                       "%s.policy=tree+%s.ways=16",
                       l->name, CACHE_TREE_WAYS_MAX, (number)c->ways, l->name, l->name);
    return 0;
}

/* More tags than data: l1_data.sets is for that alone; otherwise size, line and ways say it. */
static int check_sets(const struct cache_geometry *l1, uint64_t sets, struct err *err)
{
    uint64_t tags = sets * l1->ways * l1->line;
    if (!l1->ways)
        return err_set(err, -EINVAL,
                       "l1_data.sets: a fully associative cache has one set; give the ways, too, "
                       "such as l1_data.sets=%llu+l1_data.ways=4",
                       (number)sets);
    if (tags < l1->size)
        return err_set(err, -EINVAL,
                       "l1_data.sets: %llu sets of %llu ways have tags for %llu B, less than "
                       "l1_data.size (%llu B); give more sets or a smaller size",
                       (number)sets, (number)l1->ways, (number)tags, (number)l1->size);
    if (tags > l1->size && !l1->tags)
        return err_set(err, -EINVAL,
                       "l1_data.sets: more tags than data are modelled for up to %d ways, not %llu",
                       CACHE_TAGS_WAYS_MAX, (number)l1->ways);
    return 0;
}

static int check_level(const char *name, const struct cache_geometry *cache,
                       const struct what_if *what_if, struct err *err)
{
    struct level level = {.name = name,
                          .cache = cache,
                          .size = is_given(what_if, name, "size"),
                          .ways = is_given(what_if, name, "ways")};
    int rc = machine_check_order(&level, err);
    rc = rc ? rc : check_whole_lines(&level, err);
    return rc ? rc : check_ways(&level, err);
}

/* 0, or -EINVAL: which figure contradicts which other one, and what to give instead. What was
 * measured need not be exact (a size may end within a line); what --what-if gives must be.
 * sets: of L1, 0: unknown. what_if: NULL for the GPU as it is. */
static int machine_check(const struct machine *machine, uint64_t sets,
                         const struct what_if *what_if, struct err *err)
{
    const struct model_config *config = &machine->config;
    int rc = check_level("l1_data", &config->l1, what_if, err);
    rc = rc ? rc : check_level("l2", &config->l2, what_if, err);
    if (!rc && is_given(what_if, "l1_data", "sets"))
        rc = check_sets(&config->l1, sets, err);
    return rc;
}

/* Gives shared memory `carveout` bytes of the storage that it shares with L1; L1 gets the rest. */
static int machine_check_carveout(struct machine *machine, uint64_t carveout,
                                  const struct what_if *what_if, struct err *err)
{
    struct cache_geometry *l1 = &machine->config.l1;
    uint64_t shared = machine->config.limits.shared_bytes;
    if (isnan(machine->shared_carveout))
        return err_set(err, -EINVAL,
                       "l1_data.carveout: L1 and shared memory do not share storage on this "
                       "model, so there is nothing to divide; l1_data.size and "
                       "shared_per_sm_bytes can be changed");
    if (is_given(what_if, "l1_data", "size"))
        return err_set(err, -EINVAL,
                       "l1_data.carveout already decides l1_data.size; give one of them");
    uint64_t storage = l1->size + (uint64_t)machine->shared_carveout;
    uint64_t most = storage - l1->line;
    if (shared && shared < most)
        most = shared;
    if (carveout > most)
        return err_set(err, -EINVAL,
                       "l1_data.carveout (%llu B) is more than the %llu B that shared memory can "
                       "have of the %llu B that it shares with L1; give at most %llu",
                       (number)carveout, (number)most, (number)storage, (number)most);
    l1->size = (storage - carveout) / l1->line * l1->line;
    machine->config.limits.shared_bytes = carveout ? carveout : 1; /* 0 would mean no limit */
    machine->shared_carveout = NAN; /* the division is fixed: L1 does not shrink further */
    return 0;
}

/* The numbers of a machine, as the inventory names them, and what is assumed of one that it does
 * not have. */
enum field {
    SMS,
    THREADS,
    BLOCKS,
    SHARED,
    REGISTERS,
    L1_SIZE,
    L1_LINE,
    L1_FETCH,
    L1_WAYS,
    L1_SETS,
    L1_PER_SM,
    L2_SIZE,
    L2_LINE,
    L2_FETCH,
    L2_WAYS,
    L1_READ,
    L2_READ,
    L2_WRITE,
    MAIN_READ,
    MAIN_WRITE,
    L1_LATENCY,
    L2_LATENCY,
    MAIN_LATENCY,
    L2_PARTS,
    GROUPS,
    FIELDS
};

enum source { IDENTITY, MEMORY, LATENCY };
enum need { REQUIRED, ASSUMED, OPTIONAL };

static const struct {
    const char *key;
    enum source source;
    enum need need;
    double otherwise; /* ASSUMED */
    double max;
    bool power_of_two;
    const char
        *equal; /* that has it if this was not measured: not by ticket, with equal work per SM */
} rows[FIELDS] = {
    [SMS] = {"sms", IDENTITY, REQUIRED, 0, 4096, false},
    [THREADS] = {"threads_per_sm", IDENTITY, REQUIRED, 0, 65536, false},
    [BLOCKS] = {"blocks_per_sm", IDENTITY, ASSUMED, 32, 1024, false},
    [SHARED] = {"shared_per_sm_bytes", IDENTITY, ASSUMED, 0, 1 << 30, false},
    [REGISTERS] = {"registers_per_sm", IDENTITY, ASSUMED, 0, 1 << 30, false},
    [L1_SIZE] = {"l1_data.size", MEMORY, REQUIRED, 0, 1 << 30, false},
    [L1_LINE] = {"l1_data.line", MEMORY, REQUIRED, 0, 4096, true},
    [L1_FETCH] = {"l1_data.fetch", MEMORY, REQUIRED, 0, 4096, true},
    [L1_WAYS] = {"l1_data.ways", MEMORY, ASSUMED, 0, 1 << 20, false},
    [L1_SETS] = {"l1_data.sets", MEMORY, OPTIONAL, 0, 1 << 20, false},
    [L1_PER_SM] = {"l1_data.per_sm", MEMORY, ASSUMED, 1, 8, false},
    [L2_SIZE] = {"l2.size", MEMORY, REQUIRED, 0, 8e9, false},
    [L2_LINE] = {"l2.line", MEMORY, REQUIRED, 0, 4096, true},
    [L2_FETCH] = {"l2.fetch", MEMORY, REQUIRED, 0, 4096, true},
    [L2_WAYS] = {"l2.ways", MEMORY, ASSUMED, 16, 1 << 20, false},
    [L1_READ] = {"l1_data.bandwidth.read", MEMORY, OPTIONAL, 0, 1e9, false},
    [L2_READ] = {"l2.bandwidth.read", MEMORY, OPTIONAL, 0, 1e9, false, "l2.bandwidth_equal.read"},
    [L2_WRITE] = {"l2.bandwidth.write", MEMORY, OPTIONAL, 0, 1e9, false,
                  "l2.bandwidth_equal.write"},
    [MAIN_READ] = {"main.bandwidth.read", MEMORY, OPTIONAL, 0, 1e9, false,
                   "main.bandwidth_equal.read"},
    [MAIN_WRITE] = {"main.bandwidth.write", MEMORY, OPTIONAL, 0, 1e9, false,
                    "main.bandwidth_equal.write"},
    [L1_LATENCY] = {"l1_data.latency", LATENCY, OPTIONAL, 0, 1e9, false},
    [L2_LATENCY] = {"l2.latency", LATENCY, OPTIONAL, 0, 1e9, false},
    [MAIN_LATENCY] = {"main.latency", LATENCY, OPTIONAL, 0, 1e9, false},
    [L2_PARTS] = {"l2.parts", MEMORY, ASSUMED, 1, MODEL_L2_PARTS_MAX, false},
    [GROUPS] = {"sm.groups", MEMORY, OPTIONAL, 0, 4096, false},
};

static const char carveout_key[] = "l1_data.carveout";

struct builder {
    struct machine *machine;
    const struct inventory_model *model;
    const struct what_if *what_if;
    double values[FIELDS];
    enum field missing[FIELDS]; /* what is needed, and neither measured nor given */
    size_t missing_count;
};

/* Appends "key what" to a list. */
static void note(char list[MACHINE_NOTE_MAX], const char *key, const char *what)
{
    size_t length = strlen(list);
    snprintf(list + length, MACHINE_NOTE_MAX - length, "%s%s %s", length ? ", " : "", key, what);
}

static void assume(struct builder *b, const char *key, const char *what)
{
    note(b->machine->assumed, key, what);
}

static bool is_changed(const struct builder *b, const char *key)
{
    return what_if_value(b->what_if, key) != NULL;
}

/* A figure that the survey tried to measure has the reason why it could not. */
static int missing_one(const struct builder *b, const char *key, struct err *err)
{
    const struct measure *measure = measures_get(&b->model->memory, key);
    if (measure && measure->reason)
        return err_set(err, -EINVAL, "%s was not measured (%.200s); --what-if %s=... gives one",
                       key, measure->reason, key);
    return err_set(err, -EINVAL, "the inventory has no %s; --what-if %s=... gives one", key, key);
}

/* A quick survey lacks several figures: all are named at once. */
static int missing(const struct builder *b, struct err *err)
{
    bool tried = false;
    char list[ERR_TEXT_MAX / 3] = "", given[ERR_TEXT_MAX / 3] = "";
    if (b->missing_count == 1)
        return missing_one(b, rows[b->missing[0]].key, err);
    for (size_t i = 0; i < b->missing_count; i++) {
        const char *key = rows[b->missing[i]].key;
        tried |= measures_get(&b->model->memory, key) != NULL;
        size_t length = strlen(list), end = strlen(given);
        snprintf(list + length, sizeof list - length, "%s%s", i ? ", " : "", key);
        snprintf(given + end, sizeof given - end, "%s%s=...", i ? "+" : "", key);
    }
    return err_set(err, -EINVAL, "the inventory lacks %s; %s--what-if %s gives them", list,
                   tried ? "" : "a survey with --profile standard measures them, and ", given);
}

static double from_inventory(const struct builder *b, enum field field)
{
    const char *key = rows[field].key;
    double value;
    if (rows[field].source == IDENTITY)
        return fact_number(facts_get(&b->model->identity, key));
    const struct measure *measure = measures_get(&b->model->memory, key);
    if (!measure && rows[field].equal)
        measure = measures_get(&b->model->memory, key = rows[field].equal);
    if (!measure || !measures_value(&b->model->memory, key, &value))
        return NAN;
    return rows[field].source == LATENCY ? fact_number(facts_get(&measure->notes, "ns")) : value;
}

static bool is_figure(enum field field)
{
    return field >= L1_READ && field <= MAIN_LATENCY;
}

/* Addresses are divided by shifts. */
static int check_power(const struct builder *b, enum field field, struct err *err)
{
    double value = b->values[field];
    uint64_t whole = (uint64_t)value, below = 1;
    const char *key = rows[field].key;
    if ((double)whole == value && !(whole & (whole - 1)))
        return 0;
    while (below * 2 < value)
        below *= 2;
    if (!is_changed(b, key))
        return err_set(err, -EINVAL,
                       "%s is %.15g B, and only powers of two are modelled; --what-if %s=%llu or "
                       "%llu predicts for the nearest",
                       key, value, key, (unsigned long long)below, (unsigned long long)below * 2);
    return err_set(err, -EINVAL, "%s is a power of two, not %.15g; the nearest are %llu and %llu",
                   key, value, (unsigned long long)below, (unsigned long long)below * 2);
}

static int machine_check_number(const struct builder *b, enum field field, struct err *err)
{
    double value = b->values[field];
    const char *key = rows[field].key;
    bool none_is_all = field == L1_WAYS || field == L2_WAYS; /* 0: fully associative */
    if (!(value > 0 || (none_is_all && value == 0)) || value > rows[field].max)
        return err_set(err, -EINVAL, "%s is a number above 0 and at most %.15g, not %.15g", key,
                       rows[field].max, value);
    if (field == THREADS && fmod(value, WARP_LANES) != 0)
        return err_set(err, -EINVAL, "%s is a multiple of %d, the threads of a warp, not %.15g",
                       key, WARP_LANES, value);
    return rows[field].power_of_two ? check_power(b, field, err) : 0;
}

static int parse_value(const char *key, const char *text, bool real, double *out_value,
                       struct err *err)
{
    uint64_t bytes = 0;
    int rc = real ? str_parse_f64(text, out_value) : str_parse_bytes(text, &bytes);
    if (rc)
        return err_set(err, -EINVAL, "%s: expected a number %s, not \"%s\"", key,
                       real ? "in GB/s or ns such as 350 or 19.5" : "such as 64 or 128K", text);
    if (!real)
        *out_value = (double)bytes;
    return 0;
}

/* A figure that is used, although its repetitions disagreed. */
static void note_uncertain(struct builder *b, enum field field)
{
    const struct measure *measure = measures_get(&b->model->memory, rows[field].key);
    char why[120];
    if (rows[field].source == IDENTITY || !measure || measure->status != MEASURE_NOISY)
        return;
    snprintf(why, sizeof why, "(%.100s)", measure->reason ? measure->reason : "noisy");
    note(b->machine->uncertain, rows[field].key, why);
}

/* The survey saw that global loads are not cached in L1, and nobody asks what if they were. */
static bool lacks_l1(const struct builder *b)
{
    const struct measure *loads = measures_get(&b->model->memory, "l1_data.global_loads");
    return loads && loads->kind == MEASURE_WORDS && loads->word_count &&
           strcmp(loads->words[0], "not_cached") == 0 && !is_changed(b, rows[L1_SIZE].key);
}

static bool is_of_l1(const char *key)
{
    return strncmp(key, "l1_data.", strlen("l1_data.")) == 0;
}

/* A figure of an L1 that is not there. */
static int check_absent(const struct builder *b, const char *key, struct err *err)
{
    if (!is_changed(b, key))
        return 0;
    return err_set(err, -EINVAL,
                   "%s: global loads are not cached in L1 on this model; "
                   "l1_data.size=...+l1_data.line=...+l1_data.fetch=... tells what if they were",
                   key);
}

static int machine_read_number(struct builder *b, enum field field, struct err *err)
{
    const char *key = rows[field].key, *changed = what_if_value(b->what_if, key);
    double *value = &b->values[field];
    *value = NAN;
    if (b->machine->config.no_l1 && is_of_l1(key))
        return check_absent(b, key, err);
    *value = from_inventory(b, field);
    if (changed) {
        int rc = parse_value(key, changed, is_figure(field), value, err);
        return rc ? rc : machine_check_number(b, field, err);
    }
    if (!isnan(*value)) {
        note_uncertain(b, field);
        return machine_check_number(b, field, err);
    }
    if (rows[field].need == REQUIRED)
        b->missing[b->missing_count++] = field;
    if (rows[field].need == ASSUMED) {
        char text[32];
        *value = rows[field].otherwise;
        snprintf(text, sizeof text, "%g", *value);
        assume(b, key, field == L1_WAYS ? "full" : *value > 0 ? text : "unlimited");
    }
    if (is_figure(field))
        assume(b, key, "no limit");
    return 0;
}

static int read_word(struct builder *b, size_t row, struct err *err)
{
    const char *key = machine_word_key(row), *changed = what_if_value(b->what_if, key);
    char assumed[MACHINE_WORD_TEXT_MAX];
    if (b->machine->config.no_l1 && is_of_l1(key))
        return check_absent(b, key, err);
    int rc = machine_word_read(row, measures_get(&b->model->memory, key), changed,
                               &b->machine->config, assumed, err);
    if (!rc && assumed[0])
        assume(b, key, assumed);
    return rc;
}

/* Hopper's SMs of a group merge up to four loads, each SM the stores to eight lines, and half
 * of L2 is dirty at most (docs/VALIDATION.md). Nobody has looked at others: there, all requests
 * reach L2, and all of it may be dirty. */
enum { HOPPER_MERGED_LOADS = 4, HOPPER_MERGED_STORE_LINES = 8 };

static void set_ways_to_l2(struct builder *b)
{
    struct model_config *config = &b->machine->config;
    double groups = b->values[GROUPS];
    const char *architecture = facts_text(&b->model->identity, "architecture");
    b->machine->hopper = architecture && strcmp(architecture, "hopper") == 0;
    config->l2_parts = (uint32_t)b->values[L2_PARTS];
    config->groups = groups >= 1 ? (uint32_t)groups : config->l2_parts;
    config->merged_loads = groups >= 1 && b->machine->hopper ? HOPPER_MERGED_LOADS : 1;
    config->merged_store_lines = HOPPER_MERGED_STORE_LINES;
    if (b->machine->hopper)
        config->l2.dirty_ways = ((uint32_t)config->l2.ways + 1) / 2;
}

/* Without an L1 its lines are those of L2, as accesses are coalesced into these. */
static void set_l1(struct builder *b)
{
    const double *v = b->values;
    struct cache_geometry *l1 = &b->machine->config.l1;
    const struct cache_geometry *l2 = &b->machine->config.l2;
    b->machine->config.l1_per_sm = 1;
    if (b->machine->config.no_l1) {
        *l1 = (struct cache_geometry){
            .size = l2->line, .line = l2->line, .fetch = l2->fetch, .ways = 1};
        return;
    }
    b->machine->config.l1_per_sm = (uint32_t)v[L1_PER_SM];
    l1->size = (uint64_t)v[L1_SIZE];
    l1->line = (uint64_t)v[L1_LINE];
    l1->fetch = (uint64_t)v[L1_FETCH];
    l1->ways = (uint64_t)v[L1_WAYS];
    double tags = v[L1_SETS] * v[L1_WAYS] * v[L1_LINE]; /* bytes; more than data on Hopper */
    if (tags > v[L1_SIZE] && l1->ways <= CACHE_TAGS_WAYS_MAX)
        l1->tags = (uint64_t)tags;
}

static void set_config(struct builder *b)
{
    const double *v = b->values;
    struct model_config *config = &b->machine->config;
    struct cache_geometry *l1 = &config->l1, *l2 = &config->l2;
    config->sms = (uint32_t)v[SMS];
    config->schedulers = 4; /* of every SM since Maxwell */
    config->limits = (struct sm_limits){.warps_max = (uint32_t)v[THREADS] / WARP_LANES,
                                        .blocks_max = (uint32_t)v[BLOCKS],
                                        .shared_bytes = (uint64_t)v[SHARED],
                                        .registers = (uint64_t)v[REGISTERS]};
    l2->size = (uint64_t)v[L2_SIZE];
    l2->line = (uint64_t)v[L2_LINE];
    l2->fetch = (uint64_t)v[L2_FETCH];
    l2->ways = (uint64_t)v[L2_WAYS];
    set_l1(b);
    l1->sector = l2->sector = l1->fetch < l2->fetch ? l1->fetch : l2->fetch;
    l1->early_fill = l2->early_fill = 1;
    l2->mostly_hits = true;
    config->seed = 1;
    set_ways_to_l2(b);
    b->machine->figures = (struct machine_figures){
        .l1_read = v[L1_READ],
        .l2_read = v[L2_READ],
        .l2_write = v[L2_WRITE],
        .main_read = v[MAIN_READ],
        .main_write = v[MAIN_WRITE],
        .l1_latency = config->no_l1 ? 0 : v[L1_LATENCY], /* nobody waits for it */
        .l2_latency = v[L2_LATENCY],
        .main_latency = v[MAIN_LATENCY],
    };
}

static int machine_build(struct builder *b, struct err *err)
{
    struct machine *machine = b->machine;
    const char *carveout = what_if_value(b->what_if, carveout_key);
    double bytes = 0;
    int rc = 0;
    machine->config.no_l1 = lacks_l1(b);
    for (int field = 0; field < FIELDS && !rc; field++)
        rc = machine_read_number(b, (enum field)field, err);
    rc = rc || !b->missing_count ? rc : missing(b, err);
    for (size_t row = 0; row < MACHINE_WORDS && !rc; row++)
        rc = read_word(b, row, err);
    if (rc)
        return rc;
    set_config(b);
    const struct measure *size = measures_get(&b->model->memory, "l1_data.size");
    machine->shared_carveout = size ? fact_number(facts_get(&size->notes, "carveout")) : NAN;
    if (carveout) {
        rc = parse_value(carveout_key, carveout, false, &bytes, err);
        rc = rc ? rc : machine_check_carveout(machine, (uint64_t)bytes, b->what_if, err);
    }
    uint64_t sets = b->values[L1_SETS] > 0 ? (uint64_t)b->values[L1_SETS] : 0;
    return rc ? rc : machine_check(machine, sets, b->what_if, err);
}

int machine_init(struct machine *machine, const struct inventory_model *model, const char *file,
                 const struct what_if *what_if, struct err *err)
{
    struct builder b = {.machine = machine, .model = model, .what_if = what_if};
    char text[WHAT_IF_TEXT_MAX];
    memset(machine, 0, sizeof *machine);
    int rc = machine_build(&b, err);
    if (rc && what_if) {
        what_if_text(what_if, text);
        err_prefix(err, "--what-if %s: model %s", text, model->id);
    } else if (rc) {
        err_prefix(err, "%s: model %s", file, model->id);
    }
    return rc;
}

uint64_t machine_l1_bytes(const struct machine *machine, const struct kernel_launch *launch)
{
    uint64_t size = machine->config.l1.size, line = machine->config.l1.line;
    uint32_t blocks =
        sm_blocks_in_flight(&machine->config.limits, launch, machine->config.registers);
    double shared = (double)launch->kernel->shared_bytes * blocks;
    if (machine->hopper)
        shared = (double)machine_hopper_carveout(&machine->config.limits, launch->warps_per_block,
                                                 launch->kernel->shared_bytes);
    double more = shared - machine->shared_carveout;
    if (machine->hopper && more < 0)
        return size + (uint64_t)-more;
    if (!(more > 0))
        return size;
    return more + (double)line < (double)size ? size - (uint64_t)more : line;
}

bool machine_has_key(const char *key, const char **out_near)
{
    const char *names[FIELDS + MACHINE_WORDS + 1];
    size_t count = 0;
    for (size_t i = 0; i < FIELDS; i++)
        names[count++] = rows[i].key;
    for (size_t i = 0; i < MACHINE_WORDS; i++)
        names[count++] = machine_word_key(i);
    names[count++] = carveout_key;
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i], key) == 0)
            return true;
    *out_near = str_nearest(key, names, count);
    return false;
}
