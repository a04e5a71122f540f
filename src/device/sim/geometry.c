/* Reads the memory hierarchy of a model: caches, carve-out, L2, TLBs, and the paths that loads take
 * through them. */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "catalogue/facts.h"
#include "device/sim/model.h"

const struct yaml_node *sim_at(const struct yaml_node *mapping, const char *key)
{
    const struct yaml_node *node = yaml_get(mapping, key);
    return node ? node : mapping;
}

int sim_copy_text(const struct yaml_node *mapping, const char *key, const char *text,
                  char out_text[SIM_TEXT_MAX], struct err *err)
{
    if (strlen(text) >= SIM_TEXT_MAX)
        return yaml_error(sim_at(mapping, key), err, "longer than %d bytes", SIM_TEXT_MAX - 1);
    memcpy(out_text, text, strlen(text) + 1);
    return 0;
}

int sim_copy_setting(const struct yaml_node *mapping, const char *key, const char *setting,
                     const char *text, char out_text[SIM_TEXT_MAX], struct err *err)
{
    const char *const *words = catalogue_setting_words(setting);
    size_t count = 0, index;
    while (words && words[count])
        count++;
    int rc = words ? yaml_as_word(sim_at(mapping, key), words, count, &index, err) : 0;
    return rc ? rc : sim_copy_text(mapping, key, text, out_text, err);
}

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
    const struct yaml_node *far_cycles, *part_sms;
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
    {"part_sms", YAML_NODE, offsetof(struct cache_text, part_sms)},
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

static int check_cache_sets(const struct yaml_node *node, const struct cache_text *text,
                            uint64_t size, uint64_t ways, struct err *err)
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
                                      .marked = true,
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
    rc = check_cache_sets(node, text, size, geometry.ways, err);
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

static int read_part_sms(const struct yaml_node *node, uint32_t all, struct sim_l2 *l2,
                         struct err *err)
{
    uint64_t sum = 0;
    if (l2->part_count < 2 || yaml_kind(node) != YAML_SEQUENCE ||
        yaml_count(node) != l2->part_count)
        return yaml_error(node, err, "expected a number of SMs for each part of L2");
    int rc = 0;
    for (size_t i = 0; i < l2->part_count && !rc; i++) {
        uint64_t sms = 0;
        rc = yaml_as_u64(yaml_at(node, i), 1, SIM_SMS_MAX, &sms, err);
        l2->part_sms[i] = (uint32_t)sms;
        sum += sms;
    }
    if (!rc && sum != all)
        return yaml_error(node, err, "the parts have %llu SMs together, the GPU has %u",
                          (unsigned long long)sum, all);
    return rc;
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
    if (!rc && text.part_sms)
        rc = read_part_sms(text.part_sms, model->sms, &model->l2, err);
    if (rc)
        return rc;
    if ((text.size / text.line) % model->l2.part_count)
        return yaml_error(sim_at(node, "size"), err,
                          "the number of lines must be a multiple of the %u parts",
                          model->l2.part_count);
    model->l2.reported = text.reported ? text.reported : text.size;
    model->l2.slice_cycles = text.slice_cycles;
    model->l2.group_cycles = text.group_cycles;
    if (text.prefetch % text.fetch || text.prefetch > text.size)
        return yaml_error(sim_at(node, "prefetch"), err,
                          "must be a multiple of the fetch unit, and not more than the size");
    model->l2.prefetch_units = text.prefetch / text.fetch;
    model->l2.prefetch_after = text.prefetch_after;
    return 0;
}

enum { PAGE_MAX = 1 << 30 };

struct tlb_text {
    uint64_t entries, page;
    const struct yaml_node *ways;
    int policy, scope, index;
    double miss_cycles;
};

static const struct yaml_field tlb_fields[] = {
    {"entries", YAML_U64, offsetof(struct tlb_text, entries), .min = 1, .max = 1 << 20},
    {"ways", YAML_NODE, offsetof(struct tlb_text, ways)},
    {"index", YAML_WORD, offsetof(struct tlb_text, index), .words = sim_index_words},
    {"policy", YAML_WORD, offsetof(struct tlb_text, policy), .words = sim_policy_words},
    {"scope", YAML_WORD, offsetof(struct tlb_text, scope), .words = sim_scope_words},
    {"page", YAML_BYTES, offsetof(struct tlb_text, page), true, 4096, PAGE_MAX},
    {"miss_cycles", YAML_F64, offsetof(struct tlb_text, miss_cycles), true, 0, 1e6},
};

/* A list of the ways of each set. */
static int read_set_ways(const struct yaml_node *node, struct cache_geometry *geometry,
                         uint64_t *out_entries, struct err *err)
{
    uint64_t entries = 0;
    if (yaml_count(node) < 1 || yaml_count(node) > CACHE_SLOTS_MAX)
        return yaml_error(node, err, "expected 1 to %d sets", CACHE_SLOTS_MAX);
    for (size_t i = 0; i < yaml_count(node); i++) {
        uint64_t ways;
        int rc = yaml_as_u64(yaml_at(node, i), 1, UINT16_MAX, &ways, err);
        if (rc)
            return rc;
        geometry->set_ways[i] = (uint16_t)ways;
        entries += ways;
    }
    if (cache_slot_count(geometry) > CACHE_SLOTS_MAX)
        return yaml_error(node, err, "the sets differ too much");
    *out_entries = entries;
    return 0;
}

static int read_tlb_ways(const struct yaml_node *node, struct tlb_text *text,
                         struct cache_geometry *geometry, struct err *err)
{
    uint64_t entries = 0;
    if (!text->ways || yaml_kind(text->ways) != YAML_SEQUENCE) {
        if (!text->entries)
            return yaml_error(node, err, "key \"entries\" is missing");
        return text->ways ? sim_read_ways(text->ways, text->entries, &geometry->ways, err) : 0;
    }
    int rc = read_set_ways(text->ways, geometry, &entries, err);
    if (rc)
        return rc;
    if (text->entries && text->entries != entries)
        return yaml_error(text->ways, err, "the sets have %llu entries together",
                          (unsigned long long)entries);
    text->entries = entries;
    return 0;
}

static int read_tlb(const struct yaml_node *node, int scope, struct sim_tlb *tlb, struct err *err)
{
    struct tlb_text text = {.scope = scope};
    int rc = yaml_read_fields(node, tlb_fields, COUNT_OF(tlb_fields), &text, err);
    if (rc)
        return rc;
    if (text.page & (text.page - 1))
        return yaml_error(sim_at(node, "page"), err, "a page is a power of two");
    struct cache_geometry geometry = {.line = text.page,
                                      .marked = true,
                                      .sector = text.page,
                                      .fetch = text.page,
                                      .index = (enum cache_index)text.index,
                                      .policy = (enum cache_policy)text.policy};
    rc = read_tlb_ways(node, &text, &geometry, err);
    if (rc)
        return rc;
    if (text.policy == CACHE_TREE && (!geometry.ways || geometry.ways > CACHE_TREE_WAYS_MAX))
        return yaml_error(sim_at(node, "policy"), err, "a tree has 1 to %d ways",
                          CACHE_TREE_WAYS_MAX);
    geometry.size = text.entries * text.page;
    tlb->geometry = geometry;
    tlb->scope = text.scope;
    tlb->miss_cycles = text.miss_cycles;
    tlb->present = true;
    return 0;
}

int sim_read_tlbs(const struct yaml_node *node, struct sim_model *model, struct err *err)
{
    if (yaml_expect(node, YAML_SEQUENCE, err))
        return -EINVAL;
    if (yaml_count(node) > SIM_TLBS)
        return yaml_error(node, err, "at most %d TLB levels", SIM_TLBS);
    for (size_t i = 0; i < yaml_count(node); i++) {
        int rc = read_tlb(yaml_at(node, i), i ? SIM_SCOPE_GPU : SIM_SCOPE_SM, &model->tlbs[i], err);
        if (rc) {
            err_prefix(err, "TLB level %zu", i + 1);
            return rc;
        }
        if (i && model->tlbs[i].geometry.line < model->tlbs[i - 1].geometry.line)
            return yaml_error(sim_at(yaml_at(node, i), "page"), err,
                              "the page is smaller than that of the level before");
    }
    return 0;
}

static const char *const path_keys[DEVICE_PATH_COUNT] = {
    [DEVICE_GLOBAL_CA] = "global_ca", [DEVICE_GLOBAL_CG] = "global_cg",
    [DEVICE_READ_ONLY] = "read_only", [DEVICE_TEXTURE] = "texture",
    [DEVICE_CONSTANT] = "constant",   [DEVICE_SHARED] = "shared",
    [DEVICE_HOST] = "host",
};

static const double cycles_min = 1, cycles_max = 1e6;

static int find_cache_named(const struct sim_model *model, const char *name)
{
    for (uint32_t i = 0; i < model->cache_count; i++)
        if (str_equal(model->caches[i].name, name))
            return (int)i;
    return -1;
}

/* path->l2_cycles and path->main_cycles tell whether these levels were already listed. */
static int add_level(const struct sim_model *model, const struct yaml_node *item,
                     struct sim_path *path, double *previous, struct err *err)
{
    if (yaml_kind(item) != YAML_MAPPING || yaml_count(item) != 1)
        return yaml_error(item, err, "expected one level such as `l1: 32`");
    const char *name = yaml_key(item, 0);
    double cycles;
    int rc = yaml_as_f64(yaml_at(item, 0), cycles_min, cycles_max, &cycles, err);
    if (rc)
        return rc;
    if (cycles <= *previous)
        return yaml_error(yaml_at(item, 0), err, "latencies must rise with depth");
    *previous = cycles;
    if (path->main_cycles > 0)
        return yaml_error(item, err, "`main` must be the last level");
    if (str_equal(name, "main")) {
        if (path->l2_cycles <= 0)
            return yaml_error(item, err, "`l2` must come before `main`");
        path->main_cycles = cycles;
        return 0;
    }
    if (path->l2_cycles > 0)
        return yaml_error(item, err, "only `main` may follow `l2`");
    if (str_equal(name, "l2")) {
        path->l2_cycles = cycles;
        return 0;
    }
    int cache = find_cache_named(model, name);
    if (cache < 0)
        return yaml_error(item, err, "no cache \"%.60s\" in `caches`", name);
    for (uint32_t i = 0; i < path->cache_count; i++)
        if (path->caches[i] == (uint32_t)cache)
            return yaml_error(item, err, "the path passes \"%.60s\" twice", name);
    path->caches[path->cache_count] = (uint32_t)cache;
    path->cache_cycles[path->cache_count++] = cycles;
    return 0;
}

static int read_levels(const struct sim_model *model, const struct yaml_node *node,
                       struct sim_path *path, struct err *err)
{
    if (yaml_expect(node, YAML_SEQUENCE, err))
        return -EINVAL;
    if (yaml_count(node) > SIM_LEVELS_MAX)
        return yaml_error(node, err, "at most %d levels", SIM_LEVELS_MAX);
    double previous = 0;
    for (size_t i = 0; i < yaml_count(node); i++) {
        int rc = add_level(model, yaml_at(node, i), path, &previous, err);
        if (rc)
            return rc;
    }
    if (path->main_cycles <= 0)
        return yaml_error(node, err, "the path must end in `main`");
    return 0;
}

static int read_load_path(struct sim_model *model, enum device_path which,
                          const struct yaml_node *node, struct err *err)
{
    struct sim_path *path = &model->paths[which];
    int rc = which == DEVICE_SHARED || which == DEVICE_HOST
                 ? yaml_as_f64(node, cycles_min, cycles_max, &path->main_cycles, err)
                 : read_levels(model, node, path, err);
    if (rc)
        return rc;
    if (which == DEVICE_GLOBAL_CG && path->cache_count)
        return yaml_error(node, err, "must begin at `l2`: these loads go through no other cache");
    path->present = true;
    return 0;
}

int sim_read_overheads(const struct yaml_node *node, struct sim_model *model, struct err *err)
{
    static const double most = 10000;
    struct yaml_field fields[DEVICE_PATH_COUNT];
    double all;
    if (yaml_kind(node) == YAML_MAPPING) {
        for (size_t i = 0; i < DEVICE_PATH_COUNT; i++)
            fields[i] = (struct yaml_field){path_keys[i], YAML_F64, i * sizeof(double), .min = 0,
                                            .max = most};
        return yaml_read_fields(node, fields, DEVICE_PATH_COUNT, model->timer_overhead_cycles, err);
    }
    int rc = yaml_as_f64(node, 0, most, &all, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < DEVICE_PATH_COUNT; i++)
        model->timer_overhead_cycles[i] = all;
    return 0;
}

int sim_read_paths(const struct yaml_node *node, struct sim_model *model, struct err *err)
{
    struct yaml_field fields[DEVICE_PATH_COUNT];
    const struct yaml_node *nodes[DEVICE_PATH_COUNT] = {0};
    for (size_t i = 0; i < DEVICE_PATH_COUNT; i++)
        fields[i] = (struct yaml_field){
            .key = path_keys[i],
            .type = YAML_NODE,
            .offset = i * sizeof nodes[0],
            .required = i == DEVICE_GLOBAL_CA || i == DEVICE_GLOBAL_CG,
        };
    int rc = yaml_read_fields(node, fields, DEVICE_PATH_COUNT, nodes, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < DEVICE_PATH_COUNT; i++) {
        if (!nodes[i])
            continue;
        rc = read_load_path(model, (enum device_path)i, nodes[i], err);
        if (rc) {
            err_prefix(err, "path %s", path_keys[i]);
            return rc;
        }
    }
    return 0;
}
