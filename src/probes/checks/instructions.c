/* The probe of instructions: how long each takes until its result can be used, and how many an SM
 * begins in a cycle. */
#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "device/instruction.h"
#include "probes/method/repeats.h"

/* Loops of two lengths: their difference is free of what is not the loop's instructions. */
enum { SHORT = 64, LONG = 192, LATENCY_REPEATS = 32 };

enum { RATE_CHAINS = 4, RATE_WARPS = INSTRUCTION_WARPS_MAX, NAME_MAX_BYTES = 64 };

/* More repeats where the start of the warps would count; fewer where one takes long. */
static uint32_t rate_repeats(double latency_cycles)
{
    return latency_cycles < 100 ? 64 : latency_cycles < 1000 ? 8 : 2;
}

/* How far from a whole number the count of machine instructions may be: some loops keep a copy. */
static const double machine_tolerance = 0.25;

/* Of one instruction in the loop. */
struct cost {
    double cycles;  /* between the ends of two successive instructions of a warp */
    double machine; /* machine instructions; 0: not known */
    double most;    /* of these: the most frequent operation; 0: not known */
};

static int instructions_measure_cost(struct probe_context *context, size_t row, uint32_t chains,
                                     uint32_t warps, uint32_t repeats, struct cost *out_cost,
                                     struct err *err)
{
    static const uint32_t lengths[] = {SHORT, LONG};
    struct device_code_answer answers[2];
    for (int i = 0; i < 2; i++) {
        const struct device_code code = {.instruction = (uint32_t)row,
                                         .chains = chains,
                                         .warps = warps,
                                         .length = lengths[i],
                                         .repeats = repeats};
        int rc = device_run_code(context->device, &code, &answers[i], err);
        if (rc)
            return rc;
    }
    double more = LONG - SHORT;
    out_cost->cycles = ((double)answers[1].cycles - (double)answers[0].cycles) / (more * repeats);
    out_cost->machine = ((double)answers[1].machine - (double)answers[0].machine) / more;
    out_cost->most = ((double)answers[1].most - (double)answers[0].most) / more;
    if (out_cost->cycles <= 0)
        return err_set(err, -ENODATA, "a longer loop did not take longer");
    return 0;
}

static void instructions_add(struct probe_context *context, const struct instruction *instruction,
                             const char *what, double value, const char *unit, double machine,
                             double kinds)
{
    char metric[NAME_MAX_BYTES];
    snprintf(metric, sizeof metric, "instructions.%s.%s", instruction->name, what);
    struct measure *m =
        measures_add(context->measures, metric, value, unit, "loops of two lengths");
    if (machine > 0)
        facts_set_real(&m->notes, "machine_instructions", machine);
    if (kinds > 1)
        facts_set_real(&m->notes, "machine_operations", kinds);
}

/* The compiler may join two of them into one machine instruction; then the figures are of that. It
 * may also take different operations in turn for the same work: then they are means of these. */
static void instructions_report(struct probe_context *context,
                                const struct instruction *instruction, const struct cost *alone,
                                const struct cost *busy)
{
    double machine = round(4 * alone->machine) / 4;
    double joined = machine > 0 && machine < 1 ? machine : 1;
    bool in_turn = instruction->machine == 1 && alone->most > 0 && machine > 0;
    double kinds = in_turn ? round(machine / alone->most) : 1;
    instructions_add(context, instruction, "latency", alone->cycles / joined, "cycles", machine,
                     kinds);
    double rate = RATE_WARPS * (double)instruction->operations / busy->cycles * joined;
    instructions_add(context, instruction, "rate", rate, MEASURE_OPERATIONS, 0, kinds);
}

/* Only an unusable device ends the probe. */
static int instructions_measure_row(struct probe_context *context, size_t row, bool *out_measured,
                                    struct err *err)
{
    const struct instruction *instruction = &instruction_table[row];
    struct cost alone = {0}, busy = {0};
    struct err own = {0};
    int rc = instructions_measure_cost(context, row, 1, 1, LATENCY_REPEATS, &alone, &own);
    if (!rc && alone.machine > instruction->machine + machine_tolerance)
        rc = err_set(&own, -ENOTSUP, "the compiler replaces it by %.1f machine instructions",
                     alone.machine);
    if (!rc)
        rc = instructions_measure_cost(context, row, RATE_CHAINS, RATE_WARPS,
                                       rate_repeats(alone.cycles), &busy, &own);
    *out_measured = !rc;
    if (rc == -ENOSYS)
        return rc;
    if (rc == -EIO)
        return err_set(err, rc, "%s: %s", instruction->name, own.text);
    if (rc) {
        char metric[NAME_MAX_BYTES];
        snprintf(metric, sizeof metric, "instructions.%s.latency", instruction->name);
        measures_add_missing(context->measures, metric,
                             rc == -ENOTSUP ? MEASURE_UNSUPPORTED : MEASURE_FAILED, own.text);
        return 0;
    }
    instructions_report(context, instruction, &alone, &busy);
    return 0;
}

static int instructions_run(struct probe_context *context, struct err *err)
{
    uint32_t count = 0;
    for (size_t i = 0; i < instruction_count; i++) {
        bool measured = false;
        int rc = instructions_measure_row(context, i, &measured, err);
        if (rc == -ENOSYS) {
            repeats_unsupported(context, "instructions.count", "this device executes no code");
            return 0;
        }
        if (rc)
            return rc;
        count += measured;
    }
    measures_add(context->measures, "instructions.count", count, "",
                 "instructions that were measured");
    return 0;
}

const struct probe probe_instructions = {
    .description = {"instructions", "latency and rate of instructions", PROFILE_FULL},
    .metrics = {"instructions.count", "instructions.*"},
    .run = instructions_run,
};
