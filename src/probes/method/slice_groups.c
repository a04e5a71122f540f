/* Groups lines of L2 by their latencies from all SMs. */
#include "probes/method/slice_groups.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* Two lines of one slice differ by √2 standard deviations per SM, root mean square. A line belongs
 * to a group whose mean is nearer than this many of them: over many SMs chance adds little. */
static const double NEAR = 1.35;

/* Slices whose latencies differ by less than this share are one group. On H200s neighbours differ
 * by 2 or 3 cycles, groups of neighbours by more than 4. */
static const double ALIKE = 0.015;

enum { ROUNDS = 4 };

static double distance_to(const struct slice_profiles *profiles, const struct slice_groups *groups,
                          size_t line, size_t group)
{
    double sum = 0;
    for (size_t sm = 0; sm < profiles->sms; sm++) {
        double d = profiles->cycles[sm * profiles->lines + line] -
                   groups->cycles[group * profiles->sms + sm];
        sum += d * d;
    }
    return sqrt(sum / (double)profiles->sms);
}

static size_t nearest(const struct slice_profiles *profiles, const struct slice_groups *groups,
                      size_t line, double *out_distance)
{
    size_t best = 0;
    *out_distance = INFINITY;
    for (size_t g = 0; g < groups->count; g++) {
        double distance = distance_to(profiles, groups, line, g);
        best = distance < *out_distance ? g : best;
        *out_distance = fmin(*out_distance, distance);
    }
    return best;
}

/* Sets the means of the groups; a group without a line is removed. */
static void average(const struct slice_profiles *profiles, struct slice_groups *groups)
{
    size_t kept = 0, renamed[SLICE_GROUPS_MAX];
    memset(groups->sizes, 0, sizeof groups->sizes);
    for (size_t i = 0; i < profiles->lines; i++)
        groups->sizes[groups->of_line[i]]++;
    for (size_t g = 0; g < groups->count; g++) {
        renamed[g] = kept;
        groups->sizes[kept] = groups->sizes[g];
        kept += groups->sizes[g] > 0;
    }
    groups->count = kept;
    memset(groups->cycles, 0, kept * profiles->sms * sizeof *groups->cycles);
    for (size_t i = 0; i < profiles->lines; i++) {
        size_t g = renamed[groups->of_line[i]];
        groups->of_line[i] = (uint8_t)g;
        for (size_t sm = 0; sm < profiles->sms; sm++)
            groups->cycles[g * profiles->sms + sm] +=
                profiles->cycles[sm * profiles->lines + i] / (double)groups->sizes[g];
    }
}

/* Each line joins the nearest group; if that is too far and there is room, it begins a new one. */
static void assign(const struct slice_profiles *profiles, struct slice_groups *groups, double limit)
{
    for (size_t i = 0; i < profiles->lines; i++) {
        double distance;
        size_t g = nearest(profiles, groups, i, &distance);
        if (distance > limit && groups->count < SLICE_GROUPS_MAX) {
            g = groups->count++;
            for (size_t sm = 0; sm < profiles->sms; sm++)
                groups->cycles[g * profiles->sms + sm] = profiles->cycles[sm * profiles->lines + i];
        }
        groups->of_line[i] = (uint8_t)g;
    }
}

int slice_groups_find(const struct slice_profiles *profiles, struct slice_groups *out_groups,
                      struct err *err)
{
    struct slice_groups groups = {
        .of_line = mem_array(profiles->lines, sizeof *groups.of_line),
        .cycles = mem_array(SLICE_GROUPS_MAX * profiles->sms, sizeof *groups.cycles)};
    if (!groups.of_line || !groups.cycles) {
        slice_groups_fini(&groups);
        return err_no_memory(err);
    }
    double mean = 0, cells = (double)(profiles->sms * profiles->lines);
    for (size_t i = 0; i < profiles->sms * profiles->lines; i++)
        mean += profiles->cycles[i] / cells;
    double limit = fmax(NEAR * sqrt(2) * profiles->noise_cycles, ALIKE * mean);
    for (int round = 0; round < ROUNDS; round++) {
        assign(profiles, &groups, limit);
        average(profiles, &groups);
    }
    *out_groups = groups;
    return 0;
}

void slice_groups_fini(struct slice_groups *groups)
{
    free(groups->of_line);
    free(groups->cycles);
    *groups = (struct slice_groups){0};
}
