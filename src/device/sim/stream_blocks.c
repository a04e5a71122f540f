/* Executes the blocks of a stream. Between two moments at which blocks end, every SM has the rate
 * that follows from its bytes in flight and the latency (Little's law), up to its limit and its
 * share of the level's. */
#include "device/sim/stream_blocks.h"

#include <math.h>
#include <stdbool.h>

enum { KINDS = 2, BISECTIONS = 40 };

/* Latency rises late: on an H200 that copies, by 8 % of the whole rise at 0.6 of the rate, by 40 %
 * at 0.84. */
enum { QUEUE_POWER = 5 };

/* SMs that have the same blocks: some have one more than the others. */
struct sm_kind {
    double sms;
    uint32_t waiting; /* blocks of each SM that have not begun */
    uint32_t running;
    double left; /* work of each running block; a block's whole work is 1 */
    double rate; /* of each SM */
};

static void begin_blocks(const struct stream_blocks *run, struct sm_kind *kind)
{
    kind->running = kind->waiting < run->at_once ? kind->waiting : run->at_once;
    kind->waiting -= kind->running;
    kind->left = 1;
}

/* What the SMs would take together if the level were so busy. The more it is, the longer its
 * queues.
 */
static double demand(const struct stream_blocks *run, struct sm_kind *kinds, double busy)
{
    double more = run->loaded_ns > run->latency_ns ? run->loaded_ns - run->latency_ns : 0;
    double latency_ns = run->latency_ns + more * pow(busy, QUEUE_POWER), sum = 0;
    for (int i = 0; i < KINDS; i++) {
        kinds[i].rate = fmin(run->sm_limit, kinds[i].running * run->block_in_flight / latency_ns);
        sum += kinds[i].sms * kinds[i].rate;
    }
    return sum;
}

/* The level serves the SMs in turn: none gets more than the others while these want more. */
static void share_level(const struct stream_blocks *run, struct sm_kind *kinds)
{
    struct sm_kind *less = kinds[0].rate < kinds[1].rate ? &kinds[0] : &kinds[1];
    struct sm_kind *most = less == kinds ? kinds + 1 : kinds;
    double fair = run->level_limit / (kinds[0].sms + kinds[1].sms);
    if (less->rate * less->sms <= 0)
        fair = run->level_limit / most->sms;
    less->rate = fmin(less->rate, fair);
    if (most->sms > 0)
        most->rate = fmin(most->rate, (run->level_limit - less->rate * less->sms) / most->sms);
}

/* The level is as busy as the SMs make it. */
static void set_rates(const struct stream_blocks *run, struct sm_kind *kinds)
{
    double low = 0, high = 1;
    if (run->level_limit <= 0) {
        demand(run, kinds, 0);
        return;
    }
    for (int i = 0; i < BISECTIONS; i++) {
        double busy = (low + high) / 2;
        if (demand(run, kinds, busy) > busy * run->level_limit)
            low = busy;
        else
            high = busy;
    }
    if (demand(run, kinds, high) > run->level_limit)
        share_level(run, kinds);
}

/* Runs until the next blocks end, and begins those that wait for them. Returns the time it takes,
 * in ns for each byte of a block's work. */
static double advance(const struct stream_blocks *run, struct sm_kind *kinds)
{
    double time = INFINITY;
    set_rates(run, kinds);
    for (int i = 0; i < KINDS; i++)
        if (kinds[i].running)
            time = fmin(time, kinds[i].left * kinds[i].running / kinds[i].rate);
    for (int i = 0; i < KINDS; i++) {
        if (!kinds[i].running)
            continue;
        bool ends = kinds[i].left * kinds[i].running / kinds[i].rate <= time * (1 + 1e-9);
        kinds[i].left -= time * kinds[i].rate / kinds[i].running;
        if (ends)
            begin_blocks(run, &kinds[i]);
    }
    return time;
}

double stream_blocks_rate(const struct stream_blocks *run)
{
    uint32_t each = run->blocks / run->sms, more = run->blocks % run->sms;
    struct sm_kind kinds[KINDS] = {{.sms = more, .waiting = each + 1},
                                   {.sms = run->sms - more, .waiting = each}};
    double time = 0;
    if (!more)
        kinds[0].waiting = 0;
    for (int i = 0; i < KINDS; i++)
        begin_blocks(run, &kinds[i]);
    while (kinds[0].running || kinds[1].running)
        time += advance(run, kinds);
    return run->blocks / time;
}
