/* The loads of a chase: in which order it visits the elements of an array, and what each load
 * costs: SM caches, TLBs, L2 in one or more parts, DRAM. */
#include "device/sim/route.h"

#include <errno.h>

#include "base/rng.h"

/* A random cycle is a permutation of positions: an unbalanced Feistel network over the next power
 * of two, applied again while it leaves the range (cycle walking; Black, Rogaway 2002). */
static inline uint64_t round_hash(uint64_t value, uint64_t key)
{
    uint64_t x = (value ^ key) * 0x9e3779b97f4a7c15u;
    return (x ^ (x >> 32)) * 0xbf58476d1ce4e5b9u >> 32;
}

static inline uint64_t low_mask(uint32_t bits)
{
    return (UINT64_C(1) << bits) - 1;
}

static inline uint64_t walk_element(const struct walk *walk, uint64_t position)
{
    do {
        uint64_t low = position & low_mask(walk->low_bits), high = position >> walk->low_bits;
        for (int i = 0; i < WALK_ROUNDS; i += 2) {
            high ^= round_hash(low, walk->keys[i]) & low_mask(walk->high_bits);
            low ^= round_hash(high, walk->keys[i + 1]) & low_mask(walk->low_bits);
        }
        position = high << walk->low_bits | low;
    } while (position >= walk->count);
    return position;
}

/* The other way round. */
static uint64_t walk_position(const struct walk *walk, uint64_t element)
{
    do {
        uint64_t low = element & low_mask(walk->low_bits), high = element >> walk->low_bits;
        for (int i = WALK_ROUNDS - 2; i >= 0; i -= 2) {
            low ^= round_hash(high, walk->keys[i + 1]) & low_mask(walk->low_bits);
            high ^= round_hash(low, walk->keys[i]) & low_mask(walk->high_bits);
        }
        element = high << walk->low_bits | low;
    } while (element >= walk->count);
    return element;
}

void walk_init(struct walk *walk, const struct device_array *array, uint64_t start)
{
    *walk = (struct walk){
        .first = array->offset_bytes,
        .stride = array->stride_bytes,
        .count = array->size_bytes / array->stride_bytes,
        .position = start,
    };
    if (array->order == DEVICE_DESCENDING) {
        walk->first += (walk->count - 1) * walk->stride;
        walk->stride = -walk->stride;
        walk->position = walk->count - 1 - start;
    }
    if (array->order != DEVICE_RANDOM || walk->count < 2)
        return;
    uint32_t bits = 64 - (uint32_t)__builtin_clzll(walk->count - 1);
    walk->random = true;
    walk->low_bits = bits / 2;
    walk->high_bits = bits - bits / 2;
    for (int i = 0; i < WALK_ROUNDS; i++)
        walk->keys[i] = rng_derive(array->seed, "walk", (uint64_t)i);
    walk->position = walk_position(walk, start);
}

void walk_next(struct walk *walk, uint64_t *out_addresses, uint32_t count)
{
    uint64_t position = walk->position;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t element = walk->random ? walk_element(walk, position) : position;
        out_addresses[i] = walk->first + element * walk->stride;
        position = position + 1 == walk->count ? 0 : position + 1;
    }
    walk->position = position;
}

enum { GRANULE_LINES = 32, SLICE_SHIFT = 9, LANE_BYTES = 4, ATOMIC_CYCLES = 30 };

/* Above all of global memory; a multiple of 3 and 5, so that lines of odd sizes begin there. */
static const uint64_t constant_base = UINT64_C(15) << 38;
static const uint64_t local_end = UINT64_C(1) << 42;

static const char *const path_names[DEVICE_PATH_COUNT] = {
    [DEVICE_GLOBAL_CA] = "cached global", [DEVICE_GLOBAL_CG] = "global",
    [DEVICE_READ_ONLY] = "read-only",     [DEVICE_TEXTURE] = "texture",
    [DEVICE_CONSTANT] = "constant",       [DEVICE_SHARED] = "shared memory",
    [DEVICE_HOST] = "host memory",
};

static struct cache **cache_slot(struct gpu *gpu, uint32_t index, const struct route_place *place)
{
    const struct sim_cache *spec = &gpu->model.caches[index];
    if (spec->scope != SIM_SCOPE_SM)
        return &gpu->wide[index][gpu_group_of(&gpu->model, spec->scope, place->sm)];
    uint32_t warps = gpu->device.limits.warp_count;
    uint32_t per_instance = (warps + spec->instances - 1) / spec->instances;
    uint32_t instance =
        spec->warp_map == SIM_BLOCKED ? place->warp / per_instance : place->warp % spec->instances;
    return &place->context->caches[index][instance];
}

static struct cache *prepare_cache(struct gpu *gpu, uint32_t index, const struct route_place *place)
{
    const struct sim_cache *spec = &gpu->model.caches[index];
    struct cache **slot = cache_slot(gpu, index, place);
    if (!*slot)
        *slot = cache_create(&spec->geometry);
    uint64_t epoch = spec->scope == SIM_SCOPE_SM ? place->epoch : place->launch;
    if ((*slot)->epoch != epoch) {
        uint64_t size = spec->carveout ? place->l1_bytes : spec->geometry.size;
        cache_reset(*slot, size);
        (*slot)->epoch = epoch;
    }
    return *slot;
}

/* A TLB that SMs share keeps its pages from launch to launch. */
static struct cache *prepare_tlb(struct gpu *gpu, int level, const struct route_place *place)
{
    const struct sim_tlb *tlb = &gpu->model.tlbs[level];
    bool own = tlb->scope == SIM_SCOPE_SM;
    struct cache **slot = own ? &place->context->tlbs[level]
                              : &gpu->tlbs[level][gpu_group_of(&gpu->model, tlb->scope, place->sm)];
    if (!*slot)
        *slot = cache_create(&tlb->geometry);
    if (own && (*slot)->epoch != place->epoch) {
        cache_reset(*slot, tlb->geometry.size);
        (*slot)->epoch = place->epoch;
    }
    return *slot;
}

static void prepare_tlbs(struct gpu *gpu, const struct route_place *place, struct route *route)
{
    for (int i = 0; i < SIM_TLBS; i++) {
        const struct sim_tlb *tlb = &gpu->model.tlbs[i];
        if (!tlb->present)
            break;
        route->tlbs[i] = prepare_tlb(gpu, i, place);
        route->tlb_cycles[i] = tlb->miss_cycles;
    }
    route->translate_first = gpu->model.translate_first;
}

static bool places_by_gpc(const struct sim_model *model)
{
    return model->gpc_count >= model->l2.part_count && model->gpc_count > 1;
}

/* SMs in the order of their GPCs: the first part_sms[0] of them are near the first part. */
static uint32_t part_by_sms(const struct sim_model *model, uint32_t sm)
{
    uint32_t before = 0, part = 0, rank = model->gpc_rank[model->gpc_of[sm]];
    for (uint32_t i = 0; i < model->sms; i++) {
        uint32_t other = model->gpc_rank[model->gpc_of[i]];
        before += other < rank || (other == rank && i < sm);
    }
    while (part + 1 < model->l2.part_count && before >= model->l2.part_sms[part])
        before -= model->l2.part_sms[part++];
    return part;
}

/* Unless the model says how many SMs they have, all parts have the same number of GPCs, or of SMs
 * if there are too few GPCs. */
uint32_t route_part(const struct sim_model *model, uint32_t sm)
{
    uint32_t parts = model->l2.part_count;
    if (model->l2.part_sms[0])
        return part_by_sms(model, sm);
    bool by_gpc = places_by_gpc(model);
    uint32_t number = by_gpc ? model->gpc_rank[model->gpc_of[sm]] : sm;
    return number * parts / (by_gpc ? model->gpc_count : model->sms);
}

/* Within a part, every second GPC or SM is nearer to the other half of its slices. */
static void prepare_place(const struct sim_model *model, uint32_t sm, struct route *route)
{
    uint32_t number = places_by_gpc(model) ? model->gpc_rank[model->gpc_of[sm]] : sm;
    route->side = route_part(model, sm);
    route->group = number & 1;
}

static void prepare_l2(struct gpu *gpu, const struct sim_path *path,
                       const struct route_place *place, double factor, struct route *route)
{
    const struct sim_model *model = &gpu->model;
    const struct sim_l2 *l2 = &model->l2;
    for (int i = 0; i < SIM_PARTS_MAX; i++)
        route->l2[i] = gpu->l2[i];
    if (l2->prefetch_units) {
        route->misses = &gpu->l2_misses;
        route->fetch = divider_of(l2->geometry.fetch);
        route->prefetch_units = l2->prefetch_units;
        route->prefetch_after = l2->prefetch_after;
    }
    route->parts = l2->parts;
    route->part_count = l2->part_count;
    route->part_shift = l2->part_count > 2 ? 62 : 63;
    prepare_place(model, place->sm, route);
    route->granule = divider_of(GRANULE_LINES * l2->geometry.line);
    if (l2->parts == SIM_COPIES) {
        uint64_t span = cache_span(gpu->l2[0]);
        route->copies_at = (local_end / span + 1) * span;
    }
    route->l2_cycles = path->l2_cycles * factor + model->l2_distance[place->sm];
    route->far_cycles = l2->far_cycles;
    route->slice_cycles = l2->slice_cycles;
    route->group_cycles = l2->group_cycles;
    route->dram_slow_share = model->dram_slow_share;
    route->dram_slow_cycles = model->dram_slow_cycles;
    double memory_clock = model->nominal_clock.memory_mhz / model->clock.memory_mhz;
    double clocked = 1 - model->dram_clocked + model->dram_clocked * memory_clock;
    route->dram_cycles = (path->main_cycles - path->l2_cycles) * model->dram_factor * clocked;
}

int route_prepare(struct gpu *gpu, enum device_path which, const struct route_place *place,
                  struct route *out_route, struct err *err)
{
    const struct sim_model *model = &gpu->model;
    const struct sim_path *path = &model->paths[which];
    if (!path->present)
        return err_set(err, -ENOTSUP, "this GPU has no %s path", path_names[which]);
    struct route route = {.banks = &model->banks};
    double factor = (int64_t)place->sm == model->slow_sm ? 1 + model->slow_share : 1;
    if (which == DEVICE_SHARED || which == DEVICE_HOST) {
        route.direct = true;
        route.host = which == DEVICE_HOST;
        route.direct_cycles = path->main_cycles * (route.host ? 1 : factor);
    } else {
        route.base = which == DEVICE_CONSTANT ? constant_base : 0;
        route.cache_count = path->cache_count;
        for (uint32_t i = 0; i < path->cache_count; i++) {
            route.caches[i] = prepare_cache(gpu, path->caches[i], place);
            route.cache_cycles[i] = path->cache_cycles[i] * factor;
        }
        prepare_l2(gpu, path, place, factor, &route);
        if (which == DEVICE_CONSTANT && model->constant_first_cycles > 0) {
            route.first_cycles = model->constant_first_cycles;
            route.first_epoch = &place->context->constant_epoch;
            route.epoch = place->epoch;
        }
        if (which != DEVICE_CONSTANT)
            prepare_tlbs(gpu, place, &route);
    }
    *out_route = route;
    return 0;
}

int route_prepare_atomics(struct gpu *gpu, uint32_t sm, struct route *out_route, struct err *err)
{
    const struct sim_path *path = &gpu->model.paths[DEVICE_GLOBAL_CG];
    const struct route_place place = {.sm = sm};
    if (!path->present)
        return err_set(err, -ENOTSUP, "this GPU has no %s path", path_names[DEVICE_GLOBAL_CG]);
    *out_route = (struct route){0};
    prepare_l2(gpu, path, &place, (int64_t)sm == gpu->model.slow_sm ? 1 + gpu->model.slow_share : 1,
               out_route);
    return 0;
}

void route_set_clock(struct route *route, double share_of_nominal)
{
    route->dram_now = route->dram_cycles * share_of_nominal;
    route->direct_now = route->direct_cycles * (route->host ? share_of_nominal : 1);
}

/* Granules are dealt in groups of as many as there are parts, one to each part, in an order that a
 * hash decides. This is as irregular as real address hashing, but splits any contiguous array
 * evenly. */
static inline uint32_t route_home(const struct route *route, uint64_t address, uint64_t *out_local)
{
    uint64_t granule = divide(&route->granule, address);
    uint64_t unit = granule / route->part_count;
    uint64_t hash = (unit + 1) * 0x9e3779b97f4a7c15u;
    *out_local = address - (granule - unit) * route->granule.d;
    return (uint32_t)((granule ^ (hash >> route->part_shift)) & (route->part_count - 1));
}

/* An SM is not equally far from all slices. The slice of an address is as good as random, and a
 * copy lies in another slice than the line itself. Half of the slices lie on the other side. */
static inline double slice_offset(const struct route *route, uint64_t address, bool copy)
{
    if (route->slice_cycles <= 0 && route->group_cycles <= 0)
        return 0;
    uint64_t number = (address >> SLICE_SHIFT) + 1 + (copy ? UINT64_C(1) << 40 : 0);
    uint64_t hash = number * 0x9e3779b97f4a7c15u;
    double spread = route->slice_cycles * ((double)(hash >> 40) / (1 << 24) - 0.5);
    return spread + route->group_cycles * ((hash >> 39 & 1) == route->group ? -0.5 : 0.5);
}

static double route_load_dram(const struct route *route, struct rng *rng)
{
    double cycles = route->dram_now;
    if (route->dram_slow_share > 0 && rng_uniform(rng) < route->dram_slow_share)
        cycles += route->dram_slow_cycles * rng_uniform(rng);
    return cycles;
}

/* [M] 4.6: misses in ascending order bring what follows, too. */
static void route_prefetch(const struct route *route, uint64_t address, struct rng *rng)
{
    uint64_t unit = divide(&route->fetch, address), next = unit + 1;
    struct miss_stream *stream = route->misses;
    stream->misses = unit == stream->next_unit ? stream->misses + 1 : 1;
    if (stream->misses >= route->prefetch_after)
        next += route->prefetch_units;
    for (uint64_t ahead = unit + 1; ahead < next; ahead++) {
        uint64_t local = ahead * route->fetch.d;
        uint32_t home = route->part_count > 1 ? route_home(route, local, &local) : 0;
        cache_access(route->l2[home], local, rng);
    }
    stream->next_unit = next;
}

/* With copies, the near part is searched first, even if the line's home is elsewhere. */
static double route_load_l2(const struct route *route, uint64_t address, struct rng *rng)
{
    uint64_t local = address;
    uint32_t home = route->part_count > 1 ? route_home(route, address, &local) : 0;
    uint32_t distance = home ^ route->side;
    if (route->parts == SIM_COPIES && distance &&
        cache_access(route->l2[route->side], local + (home + 1) * route->copies_at, rng))
        return route->l2_cycles + slice_offset(route, address, true);
    double cycles =
        route->l2_cycles + route->far_cycles[distance] + slice_offset(route, address, false);
    if (cache_access(route->l2[home], local, rng))
        return cycles;
    if (route->misses)
        route_prefetch(route, address, rng);
    return cycles + route_load_dram(route, rng);
}

double route_atomic(const struct route *route, uint64_t address)
{
    uint64_t local = address;
    uint32_t home = route->part_count > 1 ? route_home(route, address, &local) : 0;
    return ATOMIC_CYCLES + route->l2_cycles + route->far_cycles[home ^ route->side] +
           slice_offset(route, address, false);
}

/* The cost of finding the page. */
static inline double route_translate(const struct route *route, uint64_t address, struct rng *rng)
{
    double cycles = 0;
    for (int i = 0; i < SIM_TLBS && route->tlbs[i]; i++) {
        if (cache_is_last(route->tlbs[i], address) || cache_access(route->tlbs[i], address, rng))
            break;
        cycles += route->tlb_cycles[i];
    }
    return cycles;
}

static inline double route_first_load(const struct route *route)
{
    if (!route->first_epoch || *route->first_epoch == route->epoch)
        return 0;
    *route->first_epoch = route->epoch;
    return route->first_cycles;
}

static inline double route_load_one(const struct route *route, uint64_t address, struct rng *rng)
{
    if (route->direct)
        return route->direct_now;
    double first = route_first_load(route), page = 0;
    address += route->base;
    if (route->translate_first)
        page = route_translate(route, address, rng);
    for (uint32_t i = 0; i < route->cache_count; i++)
        if (cache_access(route->caches[i], address, rng))
            return first + (page > 0 ? route->l2_cycles + page : route->cache_cycles[i]);
    page = route->translate_first ? page : route_translate(route, address, rng);
    return first + page + route_load_l2(route, address, rng);
}

void route_load(const struct route *route, const uint64_t *addresses, uint32_t count,
                struct rng *rng, double *out_cycles)
{
    for (uint32_t i = 0; i < count; i++)
        out_cycles[i] = route_load_one(route, addresses[i], rng);
}

double route_load_lanes(const struct route *route, uint64_t address, uint32_t lanes,
                        uint32_t lane_stride_bytes, struct rng *rng)
{
    if (route->direct) {
        const struct sim_lanes words = {address, lanes, lane_stride_bytes, LANE_BYTES};
        uint32_t passes = route->host ? 1 : sim_banks_passes(route->banks, &words);
        return route->direct_now + (passes - 1) * route->banks->conflict_cycles;
    }
    double slowest = 0;
    for (uint32_t lane = 0; lane < lanes; lane++) {
        double cycles = route_load_one(route, address + (uint64_t)lane * lane_stride_bytes, rng);
        slowest = cycles > slowest ? cycles : slowest;
    }
    return slowest;
}

void route_fill(const struct route *route, uint64_t address, struct rng *rng)
{
    if (route->direct)
        return;
    address += route->base;
    route_translate(route, address, rng);
    route_load_l2(route, address, rng);
}

uint64_t route_fills(const struct route *route)
{
    uint64_t fills = 0;
    for (uint32_t i = 0; i < route->cache_count; i++)
        fills += route->caches[i]->fills;
    for (int i = 0; i < SIM_TLBS && route->tlbs[i]; i++)
        fills += route->tlbs[i]->fills;
    for (int i = 0; i < SIM_PARTS_MAX && route->l2[i]; i++)
        fills += route->l2[i]->fills;
    return fills;
}
