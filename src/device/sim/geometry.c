/* The sections of a model that describe caches, carve-out and L2. */
#include <errno.h>
#include <stddef.h>

#include "base/mem.h"
#include "base/str.h"
#include "device/sim/model.h"

const char *const sim_index_words[] = {"modulo", "hashed", NULL};
const char *const sim_policy_words[] = {"lru", "random", "fermi", "early", "fifo", "tree", NULL};
const char *const sim_scope_words[] = {"sm", "tpc", "cpc", "gpc", "gpu", NULL};
static const char *const warp_map_words[] = {"interleaved", "blocked", NULL};
static const char *const parts_words[] = {"one", "homes", "copies", NULL};

/* A line number times a number of sets must stay below 2^64 (struct divider). */
enum { LINE_MIN = 16, LINE_MAX = 4096, L2_LINE_MIN = 32, BYTES_MAX = 1 << 30 };

struct cache_text {
    uint64_t size, nominal, line, sector, fetch, set_bytes, tags;
    const struct yaml_node *ways;
    int index, policy, scope, warp_map, parts;
    double early_fill, slack, slice_cycles, group_cycles;
    uint64_t prefetch;
    uint32_t prefetch_after;
    const struct yaml_node *far_cycles;
    uint32_t instances;
    uint64_t reported;
    bool carveout;
};

static const struct yaml_field cache_fields[] = {
    {"size", YAML_BYTES, offsetof(struct cache_text, size), .min = LINE_MIN, .max = BYTES_MAX},
    {"nominal", YAML_BYTES, offsetof(struct cache_text, nominal)},
    {"line", YAML_BYTES, offsetof(struct cache_text, line), true, LINE_MIN, LINE_MAX},
    {"sector", YAML_BYTES, offsetof(struct cache_text, sector), .min = 4, .max = LINE_MAX},
    {"ways", YAML_NODE, offsetof(struct cache_text, ways), true},
    {"index", YAML_WORD, offsetof(struct cache_text, index), .words = sim_index_words},
    {"tags", YAML_BYTES, offsetof(struct cache_text, tags), .max = BYTES_MAX},
    {"set_bytes", YAML_BYTES, offsetof(struct cache_text, set_bytes), .max = BYTES_MAX},
    {"policy", YAML_WORD, offsetof(struct cache_text, policy), .words = sim_policy_words},
    {"early_fill", YAML_F64, offsetof(struct cache_text, early_fill), .min = 0, .max = 1},
    {"slack", YAML_F64, offsetof(struct cache_text, slack), .min = 0, .max = 1},
    {"scope", YAML_WORD, offsetof(struct cache_text, scope), .words = sim_scope_words},
    {"instances", YAML_U32, offsetof(struct cache_text, instances), .min = 1,
     .max = SIM_INSTANCES_MAX},
    {"warp_map", YAML_WORD, offsetof(struct cache_text, warp_map), .words = warp_map_words},
    {"carveout", YAML_BOOL, offsetof(struct cache_text, carveout)},
};

static const struct yaml_field l2_fields[] = {
    {"size", YAML_BYTES, offsetof(struct cache_text, size), true, L2_LINE_MIN, BYTES_MAX},
    {"reported", YAML_BYTES, offsetof(struct cache_text, reported)},
    {"line", YAML_BYTES, offsetof(struct cache_text, line), true, L2_LINE_MIN, LINE_MAX},
    {"sector", YAML_BYTES, offsetof(struct cache_text, sector), .min = 4, .max = LINE_MAX},
    {"fetch", YAML_BYTES, offsetof(struct cache_text, fetch), .min = 4, .max = LINE_MAX},
    {"ways", YAML_NODE, offsetof(struct cache_text, ways), true},
    {"index", YAML_WORD, offsetof(struct cache_text, index), .words = sim_index_words},
    {"set_bytes", YAML_BYTES, offsetof(struct cache_text, set_bytes), .max = BYTES_MAX},
    {"policy", YAML_WORD, offsetof(struct cache_text, policy), .words = sim_policy_words},
    {"early_fill", YAML_F64, offsetof(struct cache_text, early_fill), .min = 0, .max = 1},
    {"slack", YAML_F64, offsetof(struct cache_text, slack), .min = 0, .max = 1},
    {"parts", YAML_WORD, offsetof(struct cache_text, parts), .words = parts_words},
    {"far_cycles", YAML_NODE, offsetof(struct cache_text, far_cycles)},
    {"slice_cycles", YAML_F64, offsetof(struct cache_text, slice_cycles), .min = 0, .max = 1e6},
    {"group_cycles", YAML_F64, offsetof(struct cache_text, group_cycles), .min = 0, .max = 1e6},
    {"prefetch", YAML_BYTES, offsetof(struct cache_text, prefetch), .max = BYTES_MAX},
    {"prefetch_after", YAML_U32, offsetof(struct cache_text, prefetch_after), .min = 2,
     .max = UINT32_MAX},
};

int sim_read_ways(const struct yaml_node *node, uint64_t lines, uint64_t *out_ways, struct err *err)
{
    if (str_equal(yaml_text(node), "full")) {
        *out_ways = 0;
        return 0;
    }
    uint64_t ways;
    int rc = yaml_as_u64(node, 0, UINT32_MAX, &ways, err);
    if (rc) {
        err_prefix(err, "ways (a number or `full`)");
        return rc;
    }
    if (ways > lines)
        return yaml_error(node, err, "%llu ways, but the cache has only %llu lines",
                          (unsigned long long)ways, (unsigned long long)lines);
    *out_ways = ways;
    return 0;
}

static int check_sets(const struct yaml_node *node, const struct cache_text *text, uint64_t size,
                      uint64_t ways, struct err *err)
{
    if (text->set_bytes % text->line)
        return yaml_error(sim_at(node, "set_bytes"), err, "must be a whole number of lines");
    if (text->tags &&
        (text->tags < size || text->tags % text->line || !ways || ways > CACHE_TAGS_WAYS_MAX ||
         text->policy == CACHE_EARLY || text->set_bytes))
        return yaml_error(
            sim_at(node, "tags"), err,
            "must be whole lines, as many as data or more, of 1 to %d ways, not early",
            CACHE_TAGS_WAYS_MAX);
    if (text->policy == CACHE_TREE && (!ways || ways > CACHE_TREE_WAYS_MAX))
        return yaml_error(sim_at(node, "policy"), err, "a tree has 1 to %d ways",
                          CACHE_TREE_WAYS_MAX);
    return 0;
}

/* size: of the cache, stated or derived from the carve-out. */
static int check_geometry(const struct yaml_node *node, struct cache_text *text, uint64_t size,
                          struct cache_geometry *out_geometry, struct err *err)
{
    text->sector = text->sector ? text->sector : text->line;
    text->fetch = text->fetch ? text->fetch : text->sector;
    if (text->line % text->sector)
        return yaml_error(sim_at(node, "sector"), err,
                          "a line of %llu bytes does not divide into sectors of %llu",
                          (unsigned long long)text->line, (unsigned long long)text->sector);
    if (text->line / text->sector > CACHE_SECTORS_MAX)
        return yaml_error(sim_at(node, "sector"), err, "a line has at most %d sectors",
                          CACHE_SECTORS_MAX);
    if (text->fetch % text->sector || text->line % text->fetch)
        return yaml_error(sim_at(node, "fetch"), err,
                          "fetch must be a multiple of the sector and divide the line");
    if (!size || size % text->line)
        return yaml_error(sim_at(node, "size"), err,
                          "%llu bytes are not a whole number of lines of %llu bytes",
                          (unsigned long long)size, (unsigned long long)text->line);
    struct cache_geometry geometry = {.size = size,
                                      .line = text->line,
                                      .sector = text->sector,
                                      .fetch = text->fetch,
                                      .set_bytes = text->set_bytes,
                                      .tags = text->tags,
                                      .index = (enum cache_index)text->index,
                                      .policy = (enum cache_policy)text->policy,
                                      .early_fill = text->early_fill,
                                      .slack = text->slack};
    int rc = sim_read_ways(text->ways, size / text->line, &geometry.ways, err);
    if (rc)
        return rc;
    rc = check_sets(node, text, size, geometry.ways, err);
    if (rc)
        return rc;
    *out_geometry = geometry;
    return 0;
}

static int check_cache(const struct yaml_node *node, const struct cache_text *text,
                       const struct sim_model *model, struct err *err)
{
    if (text->carveout && !model->carveout.present)
        return yaml_error(sim_at(node, "carveout"), err, "the model has no section `carveout`");
    if (text->carveout && (text->size || text->instances > 1 || text->scope != SIM_SCOPE_SM))
        return yaml_error(node, err,
                          "a carved-out cache is one per SM and gets its size from `carveout`");
    if (!text->carveout && !text->size)
        return yaml_error(node, err, "key \"size\" is missing");
    if (text->instances > 1 && text->scope != SIM_SCOPE_SM)
        return yaml_error(sim_at(node, "instances"), err,
                          "several instances need `scope: sm`: they are counted per SM");
    if (text->nominal && text->nominal < text->size)
        return yaml_error(sim_at(node, "nominal"), err, "nominal is smaller than size");
    return 0;
}

static int read_cache(const char *name, const struct yaml_node *node, struct sim_model *model,
                      struct err *err)
{
    struct cache_text text = {.early_fill = 0.8, .instances = 1};
    int rc = yaml_read_fields(node, cache_fields, COUNT_OF(cache_fields), &text, err);
    if (rc)
        return rc;
    rc = check_cache(node, &text, model, err);
    if (rc)
        return rc;
    struct sim_cache *cache = &model->caches[model->cache_count];
    uint64_t size = text.size;
    if (text.carveout) {
        /* A carve-out may leave any number of bytes; the cache uses the whole lines in them. */
        size = model->carveout.total - model->carveout.uncached - model->carveout.steps[0];
        size -= size % text.line;
    }
    rc = check_geometry(node, &text, size, &cache->geometry, err);
    if (rc)
        return rc;
    rc = sim_copy_text(node, "caches", name, cache->name, err);
    if (rc)
        return rc;
    cache->nominal = text.nominal;
    cache->scope = text.scope;
    cache->instances = text.instances;
    cache->warp_map = text.warp_map;
    cache->carveout = text.carveout;
    model->cache_count++;
    return 0;
}

int sim_read_caches(const struct yaml_node *node, struct sim_model *model, struct err *err)
{
    if (yaml_expect(node, YAML_MAPPING, err))
        return -EINVAL;
    if (yaml_count(node) > SIM_CACHES_MAX)
        return yaml_error(node, err, "at most %d caches", SIM_CACHES_MAX);
    for (size_t i = 0; i < yaml_count(node); i++) {
        const char *name = yaml_key(node, i);
        if (str_equal(name, "l2") || str_equal(name, "main"))
            return yaml_error(yaml_at(node, i), err, "\"%s\" has a section of its own", name);
        int rc = read_cache(name, yaml_at(node, i), model, err);
        if (rc) {
            err_prefix(err, "cache %s", name);
            return rc;
        }
    }
    return 0;
}

struct carveout_text {
    uint64_t total, reserve, uncached;
    const struct yaml_node *steps;
};

static const struct yaml_field carveout_fields[] = {
    {"total", YAML_BYTES, offsetof(struct carveout_text, total), true, LINE_MIN, BYTES_MAX},
    {"steps", YAML_NODE, offsetof(struct carveout_text, steps), true},
    {"reserve", YAML_BYTES, offsetof(struct carveout_text, reserve)},
    {"uncached", YAML_BYTES, offsetof(struct carveout_text, uncached)},
};

static int read_steps(const struct yaml_node *node, struct sim_carveout *carveout, struct err *err)
{
    if (yaml_expect(node, YAML_SEQUENCE, err))
        return -EINVAL;
    if (yaml_count(node) < 1 || yaml_count(node) > SIM_STEPS_MAX)
        return yaml_error(node, err, "expected 1 to %d steps", SIM_STEPS_MAX);
    for (size_t i = 0; i < yaml_count(node); i++) {
        const struct yaml_node *item = yaml_at(node, i);
        int rc = yaml_as_bytes(item, 0, carveout->total, &carveout->steps[i], err);
        if (rc)
            return rc;
        if (i && carveout->steps[i] <= carveout->steps[i - 1])
            return yaml_error(item, err, "steps must rise");
        if (carveout->steps[i] + carveout->uncached + LINE_MAX > carveout->total)
            return yaml_error(item, err, "this step leaves nothing of the total for L1");
    }
    carveout->step_count = (uint32_t)yaml_count(node);
    return 0;
}

int sim_read_carveout(const struct yaml_node *node, struct sim_model *model, struct err *err)
{
    struct carveout_text text = {0};
    int rc = yaml_read_fields(node, carveout_fields, COUNT_OF(carveout_fields), &text, err);
    if (rc)
        return rc;
    struct sim_carveout *carveout = &model->carveout;
    carveout->total = text.total;
    carveout->reserve = text.reserve;
    carveout->uncached = text.uncached;
    rc = read_steps(text.steps, carveout, err);
    if (rc)
        return rc;
    uint64_t largest = carveout->steps[carveout->step_count - 1];
    if (carveout->reserve >= largest)
        return yaml_error(sim_at(node, "reserve"), err, "no step holds more than the reserve");
    carveout->present = true;
    model->shared_bytes_max = largest - carveout->reserve;
    return 0;
}

int sim_carveout_grant(const struct sim_carveout *carveout, uint64_t wish, uint64_t *out_granted,
                       uint64_t *out_l1, struct err *err)
{
    for (uint32_t i = 0; i < carveout->step_count; i++) {
        if (carveout->steps[i] < carveout->reserve || carveout->steps[i] - carveout->reserve < wish)
            continue;
        *out_granted = carveout->steps[i];
        *out_l1 = carveout->total - carveout->steps[i] - carveout->uncached;
        return 0;
    }
    return err_set(err, -EINVAL, "no carve-out holds %llu bytes of shared memory",
                   (unsigned long long)wish);
}

/* One number: two parts. Two or three numbers: two dies of two parts each; additional cycles to the
 * other part of the die, to the other die, and to the furthest part of it. */
static int read_far(const struct yaml_node *node, struct sim_l2 *l2, struct err *err)
{
    static const double most = 1e6;
    l2->part_count = 2;
    if (!node || yaml_kind(node) != YAML_SEQUENCE)
        return node ? yaml_as_f64(node, 0, most, &l2->far_cycles[1], err) : 0;
    size_t count = yaml_count(node);
    if (count < 1 || count >= SIM_PARTS_MAX)
        return yaml_error(node, err, "expected 1 to %d distances", SIM_PARTS_MAX - 1);
    l2->part_count = count > 1 ? 4 : 2;
    for (size_t i = 1; i < SIM_PARTS_MAX; i++) {
        int rc = yaml_as_f64(yaml_at(node, i <= count ? i - 1 : count - 1), 0, most,
                             &l2->far_cycles[i], err);
        if (rc)
            return rc;
    }
    return 0;
}

int sim_read_l2(const struct yaml_node *node, struct sim_model *model, struct err *err)
{
    struct cache_text text = {.early_fill = 0.8, .prefetch_after = 2};
    int rc = yaml_read_fields(node, l2_fields, COUNT_OF(l2_fields), &text, err);
    if (rc)
        return rc;
    rc = check_geometry(node, &text, text.size, &model->l2.geometry, err);
    if (rc)
        return rc;
    model->l2.part_count = 1;
    model->l2.parts = text.parts;
    if (text.parts != SIM_ONE)
        rc = read_far(text.far_cycles, &model->l2, err);
    else if (text.far_cycles)
        rc = yaml_error(text.far_cycles, err, "an L2 with one part has no far part");
    if (rc)
        return rc;
    if ((text.size / text.line) % model->l2.part_count)
        return yaml_error(sim_at(node, "size"), err,
                          "the number of lines must be a multiple of the %u parts",
                          model->l2.part_count);
    model->l2.reported = text.reported ? text.reported : text.size;
    model->l2.geometry.mostly_hits = true;
    model->l2.slice_cycles = text.slice_cycles;
    model->l2.group_cycles = text.group_cycles;
    if (text.prefetch % text.fetch || text.prefetch > text.size)
        return yaml_error(sim_at(node, "prefetch"), err,
                          "must be a multiple of the fetch unit, and not more than the size");
    model->l2.prefetch_units = text.prefetch / text.fetch;
    model->l2.prefetch_after = text.prefetch_after;
    return 0;
}
