/* Instructions on simulated SMs, and the `instructions` and `instruction_caches` of a model. In
 * loops: every instruction of every warp is issued, in order and not before its chain's last result
 * is there. Straight on: warps fetch their instructions line by line through the caches of
 * instructions. */
#include <errno.h>
#include <math.h>

#include "base/mem.h"
#include "base/str.h"
#include "device/instruction.h"
#include "device/sim/gpu.h"
#include "device/straight.h"

/* What is not the loop: reading clocks and the branch back, in cycles; machine instructions. */
static const double start_cycles = 30, loop_cycles = 7;
enum { OTHER_MACHINE_INSTRUCTIONS = 40, KINDS_MAX = 4 };

struct code_warp {
    double ready[INSTRUCTION_CHAINS_MAX]; /* when each chain's last result is there */
    double issued;                        /* cycle of its last instruction */
    uint64_t done;
};

/* A unit and the warps that use it. Most belong to a sub-core, which issues an instruction of one
 * of its warps in a cycle; that of shared memory and atomic operations to all sub-cores of the SM.
 * The unit begins an instruction every `interval` cycles. */
struct unit {
    struct code_warp warps[INSTRUCTION_WARPS_MAX];
    uint32_t warp_count;
    double issue_cycles; /* between two instructions of different warps */
    double issue_free, unit_free;
};

static double warp_earliest(const struct unit *unit, const struct code_warp *warp, uint32_t chains)
{
    double at = fmax(unit->issue_free, unit->unit_free);
    return fmax(at, fmax(warp->issued + 1, warp->ready[warp->done % chains]));
}

/* Of the warps that can issue soonest, the one that is furthest behind. */
static struct code_warp *next_code_warp(struct unit *unit, uint32_t chains, uint64_t total)
{
    struct code_warp *best = NULL;
    double best_at = 0;
    for (uint32_t i = 0; i < unit->warp_count; i++) {
        struct code_warp *warp = &unit->warps[i];
        if (warp->done == total)
            continue;
        double at = warp_earliest(unit, warp, chains);
        if (!best || at < best_at || (at == best_at && warp->done < best->done)) {
            best = warp;
            best_at = at;
        }
    }
    return best;
}

static double execute_code(const struct device_code *code, const struct sim_instruction *cost)
{
    bool wide = instruction_table[code->instruction].place != INSTRUCTION_NOWHERE;
    uint32_t units = wide ? 1 : DEVICE_SUB_CORES;
    struct unit unit = {.warp_count = (code->warps + units - 1) / units,
                        .issue_cycles = (double)units / DEVICE_SUB_CORES};
    uint64_t total = (uint64_t)code->length * code->repeats;
    double end = 0;
    struct code_warp *warp;
    while ((warp = next_code_warp(&unit, code->chains, total))) {
        double at = warp_earliest(&unit, warp, code->chains);
        unit.issue_free = at + unit.issue_cycles;
        unit.unit_free = at + cost->interval_cycles;
        warp->issued = at;
        warp->ready[warp->done % code->chains] = at + cost->latency_cycles;
        warp->done++;
        if (warp->done % code->length == 0)
            warp->issued += loop_cycles;
        end = fmax(end, at + cost->latency_cycles);
    }
    return end;
}

int gpu_run_code(struct device *device, const void *request, void *answer, struct err *err)
{
    const struct device_code *code = request;
    struct device_code_answer *out_answer = answer;
    struct gpu *gpu = (struct gpu *)device;
    const struct sim_instruction *cost = &gpu->model.instructions[code->instruction];
    const struct instruction *instruction = &instruction_table[code->instruction];
    struct rng rng;
    gpu_update(gpu);
    if (!gpu->model.has_instructions)
        return err_set(err, -ENOSYS, "this model has no `instructions`");
    if (cost->latency_cycles <= 0)
        return err_set(err, -ENOTSUP, "%s: this GPU does not have it", instruction->name);
    rng_init(&rng, rng_derive(gpu->noise_seed, "code", gpu->stream_number++), "noise");
    double noise = gpu->model.noise.jitter_cycles * rng_normal(&rng);
    double cycles = fmax(start_cycles + execute_code(code, cost) + noise, 1);
    out_answer->cycles = (uint64_t)(cycles + 0.5);
    out_answer->machine =
        OTHER_MACHINE_INSTRUCTIONS + (uint64_t)code->length * instruction->machine;
    out_answer->most = code->length / cost->kinds;
    gpu->busy_ns += cycles * 1e3 / gpu_clock_mhz(gpu, gpu->busy_ns);
    return 0;
}

static int find_instruction(const char *name)
{
    for (size_t i = 0; i < instruction_count; i++)
        if (str_equal(instruction_table[i].name, name))
            return (int)i;
    return -1;
}

int sim_read_instructions(const struct yaml_node *node, struct sim_model *model, struct err *err)
{
    static const double cycles_max = 1e6;
    if (yaml_kind(node) != YAML_MAPPING)
        return yaml_error(node, err, "expected instructions such as `fp32_fma: [4, 1]`");
    model->has_instructions = true;
    for (size_t i = 0; i < yaml_count(node); i++) {
        const struct yaml_node *item = yaml_at(node, i);
        int row = find_instruction(yaml_key(node, i));
        if (row < 0)
            return yaml_error(item, err, "no instruction is called \"%.60s\"", yaml_key(node, i));
        if (yaml_kind(item) != YAML_SEQUENCE || yaml_count(item) < 2 || yaml_count(item) > 3)
            return yaml_error(item, err, "expected [latency, interval] in cycles, [..., kinds]");
        struct sim_instruction *cost = &model->instructions[row];
        int rc = yaml_as_f64(yaml_at(item, 0), 1, cycles_max, &cost->latency_cycles, err);
        if (rc)
            return rc;
        rc = yaml_as_f64(yaml_at(item, 1), 0.5, cycles_max, &cost->interval_cycles, err);
        if (rc)
            return rc;
        cost->kinds = 1;
        if (yaml_count(item) == 3)
            rc = yaml_as_u64(yaml_at(item, 2), 1, KINDS_MAX, &cost->kinds, err);
        if (rc)
            return rc;
    }
    return 0;
}

/* The program in instructions: what every pass executes before and after its part of a copy. The
 * second copy follows the first. */
enum { INSTRUCTION_BYTES = 16, HEAD = 48, LOOP = 8, TAIL = 4 };

/* So many instructions behind the end of a pass are fetched before the branch is known. */
enum { AHEAD = 16 };

/* Of a pass beside its instructions; SMs do not begin at the same time. */
static const double pass_cycles = 40, skew_cycles = 1000;

/* Where a warp is: the instructions of a pass are the loop, a part of a copy and its tail. */
struct walker {
    struct cache *caches[SIM_INSTRUCTION_CACHES_MAX];
    uint32_t begin, end; /* of the part with its tail, in the program */
    uint32_t at;         /* the next instruction */
    uint32_t passes, pass;
    double far; /* 0: the nearest SM of its GPC, 1: the furthest */
    double now, timed_from;
};

/* TPCs are counted. */
static double far_share(const struct sim_model *model, uint32_t sm)
{
    uint32_t before = 0, all = 0;
    for (uint32_t i = 0; i < model->sms; i++) {
        bool first = i == 0 || model->tpc_of[i] != model->tpc_of[i - 1];
        if (!first || model->gpc_of[i] != model->gpc_of[sm])
            continue;
        all++;
        before += i <= sm;
    }
    return all > 1 ? (double)(before - 1) / (all - 1) : 0;
}

static struct walker walker_of(const struct sim_model *model, const struct device_straight_job *job)
{
    uint32_t end = HEAD + DEVICE_STRAIGHT_MAX;
    end += job->copy ? TAIL + DEVICE_STRAIGHT_SECOND_MAX : 0;
    return (struct walker){.begin = end - job->length,
                           .end = end + TAIL,
                           .at = HEAD - LOOP,
                           .far = far_share(model, job->sm),
                           .passes = job->repeats + 1};
}

/* Jobs on SMs of one group share the cache of that group. */
static void create_instruction_caches(const struct sim_model *model,
                                      const struct device_straight *straight,
                                      struct walker *walkers)
{
    for (uint32_t i = 0; i < straight->job_count; i++)
        for (uint32_t l = 0; l < model->instruction_cache_count; l++) {
            const struct sim_instruction_cache *level = &model->instruction_caches[l];
            uint32_t group = gpu_group_of(model, level->scope, straight->jobs[i].sm);
            bool same = i && group == gpu_group_of(model, level->scope, straight->jobs[0].sm);
            walkers[i].caches[l] = same ? walkers[0].caches[l] : cache_create(&level->geometry);
        }
}

static double jump_cycles(const struct sim_model *model, const struct walker *walker)
{
    uint64_t bytes = (uint64_t)(walker->end - walker->begin - TAIL) * INSTRUCTION_BYTES;
    double cycles = 0;
    for (uint32_t i = 0; i < model->jump_count; i++)
        cycles += bytes > model->jumps[i].size ? model->jumps[i].cycles : 0;
    return cycles;
}

static double fetch_cycles(const struct sim_model *model, struct walker *walker, uint32_t at,
                           struct rng *rng)
{
    double cycles = 0;
    for (uint32_t l = 0; l < model->instruction_cache_count; l++) {
        if (cache_access(walker->caches[l], (uint64_t)at * INSTRUCTION_BYTES, rng))
            break;
        cycles += model->instruction_caches[l].miss_cycles +
                  model->instruction_caches[l].far_cycles * walker->far;
    }
    return cycles;
}

/* The instructions up to the end of a line of the nearest cache. */
static void execute_line(const struct sim_model *model, struct walker *walker, struct rng *rng)
{
    uint32_t line = (uint32_t)(model->instruction_caches[0].geometry.line / INSTRUCTION_BYTES);
    uint32_t next = walker->at - walker->at % line + line;
    uint32_t limit = walker->at < HEAD ? HEAD : walker->end;
    next = next < limit ? next : limit;
    walker->now += fetch_cycles(model, walker, walker->at, rng);
    walker->now += model->straight_cycles * (next - walker->at);
    walker->at = next < walker->end ? next : walker->end;
    if (next == HEAD)
        walker->at = walker->begin;
    if (next != walker->end)
        return;
    walker->at = HEAD - LOOP;
    for (uint32_t ahead = line - 1; ahead < AHEAD; ahead += line)
        fetch_cycles(model, walker, next + ahead, rng);
    walker->now += pass_cycles + jump_cycles(model, walker);
    walker->now += model->noise.jitter_cycles * rng_normal(rng);
    if (walker->pass++ == 0)
        walker->timed_from = walker->now;
}

/* The one that is furthest behind goes on. */
static struct walker *next_walker(struct walker *walkers, uint32_t count)
{
    struct walker *next = NULL;
    for (uint32_t i = 0; i < count; i++)
        if (walkers[i].pass < walkers[i].passes && (!next || walkers[i].now < next->now))
            next = &walkers[i];
    return next;
}

int gpu_run_straight(struct device *device, const void *request, void *answer, struct err *err)
{
    const struct device_straight *straight = request;
    struct device_straight_answer *out_answer = answer;
    struct gpu *gpu = (struct gpu *)device;
    struct walker walkers[DEVICE_STRAIGHT_JOBS] = {0}, *walker;
    struct rng rng;
    gpu_update(gpu);
    if (!gpu->model.instruction_cache_count)
        return err_set(err, -ENOSYS, "this model has no `instruction_caches`");
    rng_init(&rng, rng_derive(gpu->noise_seed, "straight", gpu->stream_number++), "noise");
    for (uint32_t i = 0; i < straight->job_count; i++) {
        walkers[i] = walker_of(&gpu->model, &straight->jobs[i]);
        walkers[i].now = skew_cycles * rng_uniform(&rng);
    }
    create_instruction_caches(&gpu->model, straight, walkers);
    while ((walker = next_walker(walkers, straight->job_count)))
        execute_line(&gpu->model, walker, &rng);
    double longest = 0;
    out_answer->instruction_bytes = INSTRUCTION_BYTES;
    for (uint32_t i = 0; i < straight->job_count; i++) {
        double cycles = walkers[i].now - walkers[i].timed_from;
        out_answer->cycles[i] = (uint64_t)(cycles + 0.5);
        longest = fmax(longest, cycles);
    }
    gpu->busy_ns += longest * 1e3 / gpu_clock_mhz(gpu, gpu->busy_ns);
    for (uint32_t l = 0; l < gpu->model.instruction_cache_count; l++) {
        if (walkers[1].caches[l] != walkers[0].caches[l])
            cache_destroy(walkers[1].caches[l]);
        cache_destroy(walkers[0].caches[l]);
    }
    return 0;
}

/* Jumping code: where its first block is, and what a pass executes behind the last one. */
enum { BLOCK_BYTES = 128, BLOCKS_AT = 1024, BEHIND_BYTES = 256 };
enum { CODE_CACHES_MAX = SIM_INSTRUCTION_CACHES_MAX + 1 };
static const uint64_t constants_at = UINT64_C(1) << 32; /* in a cache that has code too */

/* One SM walks; the caches of code are the nearest first, that of a sub-core before all others. */
struct walk_caches {
    struct cache *code[CODE_CACHES_MAX], *constants[SIM_LEVELS_MAX];
    double miss_cycles[CODE_CACHES_MAX];
    uint32_t code_count, constant_count;
    bool unified; /* the last one of constants is the last one of code */
};

static void add_code_cache(struct walk_caches *caches, const struct sim_instruction_cache *level,
                           double far)
{
    caches->miss_cycles[caches->code_count] = level->jump_miss_cycles + level->far_cycles * far;
    caches->code[caches->code_count++] = cache_create(&level->geometry);
}

static void create_walk_caches(const struct sim_model *model, uint32_t sm,
                               struct walk_caches *caches)
{
    const struct sim_path *path = &model->paths[DEVICE_CONSTANT];
    double far = far_share(model, sm);
    if (model->sub_core_cache.geometry.size)
        add_code_cache(caches, &model->sub_core_cache, far);
    for (uint32_t l = 0; l < model->instruction_cache_count; l++)
        add_code_cache(caches, &model->instruction_caches[l], far);
    caches->constant_count = path->cache_count;
    caches->unified = model->code_and_constants && path->cache_count;
    for (uint32_t l = 0; l < path->cache_count; l++)
        caches->constants[l] = caches->unified && l + 1 == path->cache_count
                                   ? caches->code[caches->code_count - 1]
                                   : cache_create(&model->caches[path->caches[l]].geometry);
}

static void destroy_walk_caches(struct walk_caches *caches)
{
    for (uint32_t l = 0; l < caches->constant_count - (caches->unified ? 1 : 0); l++)
        cache_destroy(caches->constants[l]);
    for (uint32_t l = 0; l < caches->code_count; l++)
        cache_destroy(caches->code[l]);
}

/* Cycles that it takes to fetch the lines of a stretch of code. */
static double fetch_stretch(struct walk_caches *caches, uint64_t from, uint64_t bytes,
                            struct rng *rng)
{
    uint64_t line = caches->code[0]->geometry.line;
    double cycles = 0;
    for (uint64_t at = from - from % line; at < from + bytes; at += line)
        for (uint32_t l = 0; l < caches->code_count && !cache_access(caches->code[l], at, rng); l++)
            cycles += caches->miss_cycles[l];
    return cycles;
}

static double walk_code(const struct sim_model *model, const struct device_walk *walk,
                        struct walk_caches *caches, struct rng *rng)
{
    double cycles = pass_cycles + model->noise.jitter_cycles * rng_normal(rng);
    for (uint32_t class = walk->stride; class -- > 0;)
        for (uint32_t i = class; i < walk->blocks; i += walk->stride)
            cycles +=
                fetch_stretch(caches, BLOCKS_AT + (uint64_t)i * BLOCK_BYTES, BLOCK_BYTES, rng);
    cycles +=
        fetch_stretch(caches, BLOCKS_AT + DEVICE_WALK_BLOCKS_MAX * BLOCK_BYTES, BEHIND_BYTES, rng);
    return cycles + walk->blocks * (model->jump_cycles +
                                    model->straight_cycles * BLOCK_BYTES / INSTRUCTION_BYTES);
}

/* All constants are in L2. */
static double walk_constants(const struct sim_model *model, const struct device_walk *walk,
                             struct walk_caches *caches, struct rng *rng)
{
    const struct sim_path *path = &model->paths[DEVICE_CONSTANT];
    double cycles = pass_cycles + model->noise.jitter_cycles * rng_normal(rng);
    for (uint64_t i = 0; i < walk->constant_bytes / walk->constant_stride; i++) {
        uint32_t l = 0;
        while (l < caches->constant_count &&
               !cache_access(caches->constants[l], constants_at + i * walk->constant_stride, rng))
            l++;
        cycles += l < caches->constant_count ? path->cache_cycles[l] : path->l2_cycles;
    }
    return cycles;
}

int gpu_run_walk(struct device *device, const void *request, void *answer, struct err *err)
{
    const struct device_walk *walk = request;
    struct device_walk_answer *out_answer = answer;
    struct gpu *gpu = (struct gpu *)device;
    const struct sim_model *model = &gpu->model;
    struct walk_caches caches = {0};
    struct rng rng;
    double code = 0, constants = 0;
    gpu_update(gpu);
    if (!model->instruction_cache_count)
        return err_set(err, -ENOSYS, "this model has no `instruction_caches`");
    if (walk->constant_bytes && !model->paths[DEVICE_CONSTANT].present)
        return err_set(err, -ENOTSUP, "this model has no constant memory");
    rng_init(&rng, rng_derive(gpu->noise_seed, "walk", gpu->stream_number++), "noise");
    create_walk_caches(model, walk->sm, &caches);
    for (uint32_t pass = 0; pass <= walk->repeats; pass++) {
        double walked = walk_code(model, walk, &caches, &rng), loaded = 0;
        if (walk->constant_bytes)
            loaded = walk_constants(model, walk, &caches, &rng);
        code += pass ? walked : 0;
        constants += pass ? loaded : 0;
    }
    destroy_walk_caches(&caches);
    out_answer->block_bytes = BLOCK_BYTES;
    out_answer->code_cycles = (uint64_t)(code + 0.5);
    out_answer->constant_cycles = (uint64_t)(constants + 0.5);
    gpu->busy_ns += (code + constants) * 1e3 / gpu_clock_mhz(gpu, gpu->busy_ns);
    return 0;
}

struct level_text {
    uint64_t size, line, ways;
    int index, policy, scope;
    double miss_cycles, far_cycles, jump_miss_cycles;
};

enum { LINE_MIN = 32, LINE_MAX = 4096, BYTES_MAX = 1 << 24 };
static const struct yaml_field level_fields[] = {
    {"size", YAML_BYTES, offsetof(struct level_text, size), true, LINE_MIN, BYTES_MAX},
    {"line", YAML_BYTES, offsetof(struct level_text, line), true, LINE_MIN, LINE_MAX},
    {"ways", YAML_U64, offsetof(struct level_text, ways), true, 1, 4096},
    {"index", YAML_WORD, offsetof(struct level_text, index), .words = sim_index_words},
    {"policy", YAML_WORD, offsetof(struct level_text, policy), .words = sim_policy_words},
    {"scope", YAML_WORD, offsetof(struct level_text, scope), .words = sim_scope_words},
    {"miss_cycles", YAML_F64, offsetof(struct level_text, miss_cycles), true, 0, 1e4},
    {"far_cycles", YAML_F64, offsetof(struct level_text, far_cycles), .min = 0, .max = 1e4},
    {"jump_miss_cycles", YAML_F64, offsetof(struct level_text, jump_miss_cycles), .min = 0,
     .max = 1e4},
};

static int read_level(const struct yaml_node *node, struct sim_instruction_cache *out_level,
                      struct err *err)
{
    struct level_text text = {0};
    int rc = yaml_read_fields(node, level_fields, COUNT_OF(level_fields), &text, err);
    if (rc)
        return rc;
    if (text.line % INSTRUCTION_BYTES || text.size % (text.line * text.ways))
        return yaml_error(sim_at(node, "size"), err,
                          "expected whole sets of %llu lines of %llu bytes",
                          (unsigned long long)text.ways, (unsigned long long)text.line);
    *out_level = (struct sim_instruction_cache){
        .geometry = {.size = text.size,
                     .line = text.line,
                     .sector = text.line,
                     .fetch = text.line,
                     .ways = text.ways,
                     .index = (enum cache_index)text.index,
                     .policy = (enum cache_policy)text.policy},
        .scope = text.scope,
        .miss_cycles = text.miss_cycles,
        .jump_miss_cycles = text.jump_miss_cycles > 0 ? text.jump_miss_cycles : text.miss_cycles,
        .far_cycles = text.far_cycles,
    };
    return 0;
}

struct caches_text {
    double cycles, jump_cycles;
    bool constants;
    const struct yaml_node *levels, *jumps, *sub_core;
};

static const struct yaml_field caches_fields[] = {
    {"cycles", YAML_F64, offsetof(struct caches_text, cycles), true, 0.5, 1000},
    {"levels", YAML_NODE, offsetof(struct caches_text, levels), true},
    {"jumps", YAML_NODE, offsetof(struct caches_text, jumps)},
    {"jump_cycles", YAML_F64, offsetof(struct caches_text, jump_cycles), .min = 0, .max = 1000},
    {"sub_core", YAML_NODE, offsetof(struct caches_text, sub_core)},
    {"constants", YAML_BOOL, offsetof(struct caches_text, constants)},
};

static int read_jumps(const struct yaml_node *node, struct sim_model *model, struct err *err)
{
    if (yaml_expect(node, YAML_SEQUENCE, err))
        return -EINVAL;
    if (yaml_count(node) > SIM_JUMPS_MAX)
        return yaml_error(node, err, "at most %d jumps", SIM_JUMPS_MAX);
    for (size_t i = 0; i < yaml_count(node); i++) {
        const struct yaml_node *item = yaml_at(node, i);
        struct sim_jump *jump = &model->jumps[model->jump_count++];
        if (yaml_kind(item) != YAML_SEQUENCE || yaml_count(item) != 2)
            return yaml_error(item, err, "expected [size, cycles]");
        int rc = yaml_as_bytes(yaml_at(item, 0), 0, BYTES_MAX, &jump->size, err);
        if (!rc)
            rc = yaml_as_f64(yaml_at(item, 1), 0, 1e6, &jump->cycles, err);
        if (rc)
            return rc;
    }
    return 0;
}

int sim_read_instruction_caches(const struct yaml_node *node, struct sim_model *model,
                                struct err *err)
{
    struct caches_text text = {.jump_cycles = 12};
    int rc = yaml_read_fields(node, caches_fields, COUNT_OF(caches_fields), &text, err);
    if (rc)
        return rc;
    if (yaml_expect(text.levels, YAML_SEQUENCE, err))
        return -EINVAL;
    size_t count = yaml_count(text.levels);
    if (!count || count > SIM_INSTRUCTION_CACHES_MAX)
        return yaml_error(text.levels, err, "expected 1 to %d levels", SIM_INSTRUCTION_CACHES_MAX);
    model->straight_cycles = text.cycles;
    for (size_t i = 0; i < count; i++) {
        rc = read_level(yaml_at(text.levels, i),
                        &model->instruction_caches[model->instruction_cache_count++], err);
        if (rc) {
            err_prefix(err, "instruction_caches: level %zu", i + 1);
            return rc;
        }
    }
    model->jump_cycles = text.jump_cycles;
    model->code_and_constants = text.constants;
    if (text.sub_core && (rc = read_level(text.sub_core, &model->sub_core_cache, err))) {
        err_prefix(err, "instruction_caches: sub_core");
        return rc;
    }
    return text.jumps ? read_jumps(text.jumps, model, err) : 0;
}
