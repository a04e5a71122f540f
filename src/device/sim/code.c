/* Code on a simulated SM: every instruction of every warp is issued, in order and not before its
 * chain's last result is there; and the `instructions` of a model. */
#include <errno.h>
#include <math.h>

#include "base/str.h"
#include "device/instruction.h"
#include "device/sim/gpu.h"

/* What is not the loop: reading clocks and the branch back, in cycles; machine instructions. */
static const double start_cycles = 30, branch_cycles = 7;
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

static double earliest(const struct unit *unit, const struct code_warp *warp, uint32_t chains)
{
    double at = fmax(unit->issue_free, unit->unit_free);
    return fmax(at, fmax(warp->issued + 1, warp->ready[warp->done % chains]));
}

/* Of the warps that can issue soonest, the one that is furthest behind. */
static struct code_warp *choose(struct unit *unit, uint32_t chains, uint64_t total)
{
    struct code_warp *best = NULL;
    double best_at = 0;
    for (uint32_t i = 0; i < unit->warp_count; i++) {
        struct code_warp *warp = &unit->warps[i];
        if (warp->done == total)
            continue;
        double at = earliest(unit, warp, chains);
        if (!best || at < best_at || (at == best_at && warp->done < best->done)) {
            best = warp;
            best_at = at;
        }
    }
    return best;
}

static double execute(const struct device_code *code, const struct sim_instruction *cost)
{
    bool wide = instruction_table[code->instruction].place != INSTRUCTION_NOWHERE;
    uint32_t units = wide ? 1 : DEVICE_SUB_CORES;
    struct unit unit = {.warp_count = (code->warps + units - 1) / units,
                        .issue_cycles = (double)units / DEVICE_SUB_CORES};
    uint64_t total = (uint64_t)code->length * code->repeats;
    double end = 0;
    struct code_warp *warp;
    while ((warp = choose(&unit, code->chains, total))) {
        double at = earliest(&unit, warp, code->chains);
        unit.issue_free = at + unit.issue_cycles;
        unit.unit_free = at + cost->interval_cycles;
        warp->issued = at;
        warp->ready[warp->done % code->chains] = at + cost->latency_cycles;
        warp->done++;
        if (warp->done % code->length == 0)
            warp->issued += branch_cycles;
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
    double cycles = fmax(start_cycles + execute(code, cost) + noise, 1);
    out_answer->cycles = (uint64_t)(cycles + 0.5);
    out_answer->machine =
        OTHER_MACHINE_INSTRUCTIONS + (uint64_t)code->length * instruction->machine;
    out_answer->most = code->length / cost->kinds;
    gpu->busy_ns += cycles * 1e3 / gpu_clock_mhz(gpu, gpu->busy_ns);
    return 0;
}

static int find_row(const char *name)
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
        int row = find_row(yaml_key(node, i));
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
