/* When a GPU may draw much power. */
#include "probes/checks/load_turn.h"

#include <math.h>
#include <time.h>

#include "base/clock.h"

/* What is left to the GPU after the load, of its time limit: to read its health and to end. */
static const double MARGIN_S = 2;

static const uint64_t LOAD_TURN = UINT64_C(0x6c6f6164206f6e65);

double load_turn_left_s(const struct probe_options *options)
{
    return options->ends_s > 0 ? options->ends_s - clock_monotonic_s() - MARGIN_S : INFINITY;
}

static void sleep_s(double s)
{
    struct timespec pause = {.tv_sec = (time_t)s, .tv_nsec = (long)((s - floor(s)) * 1e9)};
    if (s > 0)
        nanosleep(&pause, NULL);
}

struct load_turn load_turn_take(const struct probe_options *options, double wanted_s)
{
    struct load_turn turn = {.turn = {.name = LOAD_TURN}, .alone = options->load_one};
    double begun_s = clock_monotonic_s();
    turn.waited_ms = (uint32_t)(options->load_wait_s * 1000);
    if (options->ends_s <= 0)
        return turn;
    sleep_s(fmin(options->load_wait_s, load_turn_left_s(options) - wanted_s));
    double may_s = fmin(fmax(load_turn_left_s(options), 0), 86400);
    if (options->load_one)
        turn.alone = turn_take(&turn.turn, (int)(may_s * 1000));
    turn.waited_ms = (uint32_t)((clock_monotonic_s() - begun_s) * 1000);
    return turn;
}

void load_turn_give(struct load_turn *turn)
{
    turn_give(&turn->turn);
}
