/* Makes the configuration of the cache model from an inventory. */
#include "predict/machine.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

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
    [L2_READ] = {"l2.bandwidth.read", MEMORY, OPTIONAL, 0, 1e9, false},
    [L2_WRITE] = {"l2.bandwidth.write", MEMORY, OPTIONAL, 0, 1e9, false},
    [MAIN_READ] = {"main.bandwidth.read", MEMORY, OPTIONAL, 0, 1e9, false},
    [MAIN_WRITE] = {"main.bandwidth.write", MEMORY, OPTIONAL, 0, 1e9, false},
    [L1_LATENCY] = {"l1_data.latency", LATENCY, OPTIONAL, 0, 1e9, false},
    [L2_LATENCY] = {"l2.latency", LATENCY, OPTIONAL, 0, 1e9, false},
    [MAIN_LATENCY] = {"main.latency", LATENCY, OPTIONAL, 0, 1e9, false},
};

/* The words of policies and indices: those of an inventory and of the seed. */
struct word {
    const char *name;
    int value;
};
static const struct word policies[] = {
    {"lru", CACHE_LRU},   {"fifo", CACHE_FIFO},    {"random", CACHE_RANDOM}, {"lfu", CACHE_LFU},
    {"tree", CACHE_TREE}, {"biased", CACHE_FERMI}, {"early", CACHE_EARLY},   {NULL, 0},
};
static const struct word indices[] = {
    {"modulo", CACHE_MODULO}, {"bit", CACHE_MODULO},
    {"bits", CACHE_MODULO},   {"one_set", CACHE_MODULO},
    {"hashed", CACHE_HASHED}, {"xor", CACHE_XOR},
    {"prime", CACHE_PRIME},   {NULL, 0},
};

/* Text fields: which word a cache's policy or index is. */
static const struct {
    const char *key;
    const struct word *words;
    const char *assumed;
    size_t offset; /* of the int in struct model_config */
} word_rows[] = {
    {"l1_data.policy", policies, "lru", offsetof(struct model_config, l1.policy)},
    {"l1_data.index", indices, "hashed", offsetof(struct model_config, l1.index)},
    {"l2.policy", policies, "lru", offsetof(struct model_config, l2.policy)},
    {"l2.index", indices, "hashed", offsetof(struct model_config, l2.index)},
};

struct builder {
    struct machine *machine;
    const struct inventory_model *model;
    const char *file;
    const struct machine_change *change;
    double values[FIELDS];
};

static void assume(struct builder *b, const char *key, const char *what)
{
    char *text = b->machine->assumed;
    size_t length = strlen(text);
    snprintf(text + length, sizeof b->machine->assumed - length, "%s%s %s", length ? ", " : "", key,
             what);
}

static bool is_changed(const struct builder *b, const char *key)
{
    return b->change && strcmp(b->change->key, key) == 0;
}

static int missing(const struct builder *b, const char *key, struct err *err)
{
    const struct measure *measure = measures_get(&b->model->memory, key);
    if (measure && measure->reason)
        return err_set(err, -EINVAL,
                       "%s: model %s: %s was not measured (%.200s); --what-if %s=... "
                       "gives one",
                       b->file, b->model->id, key, measure->reason, key);
    return err_set(err, -EINVAL, "%s: model %s has no %s; --what-if %s=... gives one", b->file,
                   b->model->id, key, key);
}

static double from_inventory(const struct builder *b, enum field field)
{
    const char *key = rows[field].key;
    double value;
    if (rows[field].source == IDENTITY)
        return fact_number(facts_get(&b->model->identity, key));
    const struct measure *measure = measures_get(&b->model->memory, key);
    if (!measure || !measures_value(&b->model->memory, key, &value))
        return NAN;
    return rows[field].source == LATENCY ? fact_number(facts_get(&measure->notes, "ns")) : value;
}

static int check_number(const struct builder *b, enum field field, struct err *err)
{
    double value = b->values[field];
    const char *key = rows[field].key;
    bool none_is_all = field == L1_WAYS || field == L2_WAYS; /* 0: fully associative */
    if (!(value > 0 || (none_is_all && value == 0)) || value > rows[field].max)
        return err_set(err, -EINVAL, "%s: model %s: %s is a number above 0 and at most %g, not %g",
                       b->file, b->model->id, key, rows[field].max, value);
    uint64_t whole = (uint64_t)value;
    if (rows[field].power_of_two && ((double)whole != value || (whole & (whole - 1))))
        return err_set(err, -EINVAL, "%s: model %s: %s is a power of two, not %g", b->file,
                       b->model->id, key, value);
    return 0;
}

static int read_number(struct builder *b, enum field field, struct err *err)
{
    const char *key = rows[field].key;
    double value = from_inventory(b, field);
    uint64_t bytes;
    if (is_changed(b, key)) {
        if (str_parse_bytes(b->change->value, &bytes))
            return err_set(err, -EINVAL, "--what-if %s=%s: expected a number such as 64 or 128K",
                           key, b->change->value);
        value = (double)bytes;
    }
    b->values[field] = value;
    if (!isnan(value))
        return check_number(b, field, err);
    if (rows[field].need == REQUIRED)
        return missing(b, key, err);
    if (rows[field].need == ASSUMED) {
        char text[32];
        b->values[field] = rows[field].otherwise;
        snprintf(text, sizeof text, "%g", rows[field].otherwise);
        assume(b, key, field == L1_WAYS ? "full" : rows[field].otherwise > 0 ? text : "unlimited");
    }
    if (field >= L1_READ && field <= MAIN_LATENCY)
        assume(b, key, "no limit");
    return 0;
}

/* What a text field is called in the inventory or by the user; NULL: unknown. */
static const char *word_of(const struct builder *b, const char *key)
{
    const struct measure *measure = measures_get(&b->model->memory, key);
    if (is_changed(b, key))
        return b->change->value;
    return measure && measure->kind == MEASURE_WORDS && measure->word_count ? measure->words[0]
                                                                            : NULL;
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

static int read_word(struct builder *b, size_t row, struct err *err)
{
    const char *key = word_rows[row].key, *name = word_of(b, key);
    const struct word *words = word_rows[row].words, *word = find_word(words, name);
    if (!word && is_changed(b, key))
        return err_set(err, -EINVAL, "--what-if %s=%s: no such word; the man page lists them", key,
                       name);
    if (!word) {
        char text[80];
        snprintf(text, sizeof text, "%s (%.40s is not modelled)", word_rows[row].assumed,
                 name ? name : "");
        assume(b, key, name ? text : word_rows[row].assumed);
        word = find_word(words, word_rows[row].assumed);
    }
    *(int *)((char *)&b->machine->config + word_rows[row].offset) = word->value;
    return 0;
}

static int check_cache(const struct builder *b, const char *name,
                       const struct cache_geometry *cache, struct err *err)
{
    if (cache->fetch > cache->line || cache->line > cache->size)
        return err_set(err, -EINVAL,
                       "%s: model %s: %s: fetch <= line <= size does not hold: %llu, %llu, %llu",
                       b->file, b->model->id, name, (unsigned long long)cache->fetch,
                       (unsigned long long)cache->line, (unsigned long long)cache->size);
    if (cache->ways > cache->size / cache->line)
        return err_set(err, -EINVAL, "%s: model %s: %s.ways: it has only %llu lines, not %llu ways",
                       b->file, b->model->id, name, (unsigned long long)(cache->size / cache->line),
                       (unsigned long long)cache->ways);
    if (cache->policy == CACHE_TREE && (!cache->ways || cache->ways > CACHE_TREE_WAYS_MAX))
        return err_set(err, -EINVAL, "%s: model %s: %s.policy: a tree has 1 to %d ways", b->file,
                       b->model->id, name, CACHE_TREE_WAYS_MAX);
    return 0;
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
    config->l1_per_sm = (uint32_t)v[L1_PER_SM];
    l1->size = (uint64_t)v[L1_SIZE];
    l1->line = (uint64_t)v[L1_LINE];
    l1->fetch = (uint64_t)v[L1_FETCH];
    l1->ways = (uint64_t)v[L1_WAYS];
    double tags = v[L1_SETS] * v[L1_WAYS] * v[L1_LINE]; /* bytes; more than data on Hopper */
    if (tags > v[L1_SIZE] && l1->ways <= CACHE_TAGS_WAYS_MAX)
        l1->tags = (uint64_t)tags;
    l2->size = (uint64_t)v[L2_SIZE];
    l2->line = (uint64_t)v[L2_LINE];
    l2->fetch = (uint64_t)v[L2_FETCH];
    l2->ways = (uint64_t)v[L2_WAYS];
    l1->sector = l2->sector = l1->fetch < l2->fetch ? l1->fetch : l2->fetch;
    l1->early_fill = l2->early_fill = 1;
    l2->mostly_hits = true;
    config->seed = 1;
    b->machine->figures = (struct machine_figures){
        .l1_read = v[L1_READ],
        .l2_read = v[L2_READ],
        .l2_write = v[L2_WRITE],
        .main_read = v[MAIN_READ],
        .main_write = v[MAIN_WRITE],
        .l1_latency = v[L1_LATENCY],
        .l2_latency = v[L2_LATENCY],
        .main_latency = v[MAIN_LATENCY],
    };
}

int machine_init(struct machine *machine, const struct inventory_model *model, const char *file,
                 const struct machine_change *change, struct err *err)
{
    struct builder b = {.machine = machine, .model = model, .file = file, .change = change};
    int rc = 0;
    memset(machine, 0, sizeof *machine);
    for (int field = 0; field < FIELDS && !rc; field++)
        rc = read_number(&b, (enum field)field, err);
    for (size_t row = 0; row < COUNT_OF(word_rows) && !rc; row++)
        rc = read_word(&b, row, err);
    if (rc)
        return rc;
    set_config(&b);
    const struct measure *size = measures_get(&model->memory, "l1_data.size");
    machine->shared_carveout = size ? fact_number(facts_get(&size->notes, "carveout")) : NAN;
    rc = check_cache(&b, "l1_data", &machine->config.l1, err);
    return rc ? rc : check_cache(&b, "l2", &machine->config.l2, err);
}

uint64_t machine_l1_bytes(const struct machine *machine, const struct kernel_launch *launch)
{
    uint64_t size = machine->config.l1.size, line = machine->config.l1.line;
    uint32_t blocks =
        sm_blocks_in_flight(&machine->config.limits, launch, machine->config.registers);
    double more = (double)launch->kernel->shared_bytes * blocks - machine->shared_carveout;
    if (!(more > 0))
        return size;
    return more + (double)line < (double)size ? size - (uint64_t)more : line;
}

bool machine_has_key(const char *key, const char **out_near)
{
    const char *names[FIELDS + COUNT_OF(word_rows)];
    size_t count = 0;
    for (size_t i = 0; i < FIELDS; i++)
        names[count++] = rows[i].key;
    for (size_t i = 0; i < COUNT_OF(word_rows); i++)
        names[count++] = word_rows[i].key;
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i], key) == 0)
            return true;
    *out_near = str_nearest(key, names, count);
    return false;
}
