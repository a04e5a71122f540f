/* The fingerprint of a die: text and comparison. */
#include "inventory/fingerprint.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/quadrature.h"

enum { VERSION = 1, MIDDLE = SM_TEXT_CODES / 2, OTHER_SMS = 2 };
static const double STEP_CYCLES = 0.1;

/* An SM is at another distance if it moved by more than MOVED_CYCLES and by more than MOVED_NOISE
 * standard errors. On H200s one step of distance is 4.4 to 6 cycles; the distances of one card
 * repeat within 0.6 cycles with the same lines and within 2.3 with others. */
static const double MOVED_CYCLES = 3, MOVED_NOISE = 6;

/* With more noise than this a step could not be seen. */
static const double NOISE_MAX_CYCLES = 0.6;

/* A latency in cycles of the SM depends on the clocks of SM and L2: with other clocks a distance is
 * another number, at most by the same share. Above this one they are not compared. */
static const double USUAL_WITHIN = 0.06;

void fingerprint_make(const double *latencies, size_t sms, double noise_cycles,
                      struct fingerprint *out_fingerprint)
{
    *out_fingerprint = (struct fingerprint){
        .sms = sms, .usual_cycles = sm_text_median(latencies, sms), .noise_cycles = noise_cycles};
    for (size_t i = 0; i < sms; i++)
        out_fingerprint->cycles[i] = latencies[i] - out_fingerprint->usual_cycles;
}

void fingerprint_print(const struct fingerprint *fingerprint, char out_text[FINGERPRINT_TEXT_MAX])
{
    int at = snprintf(out_text, FINGERPRINT_TEXT_MAX, "%d %.1f %.2f ", VERSION,
                      fmin(fingerprint->usual_cycles, 1e6), fmin(fingerprint->noise_cycles, 1e6));
    for (size_t i = 0; i < fingerprint->sms; i++) {
        sm_text_put(MIDDLE + round(fingerprint->cycles[i] / STEP_CYCLES), out_text + at);
        at += 2;
    }
    out_text[at] = '\0';
}

int fingerprint_read(const char *text, struct fingerprint *out_fingerprint)
{
    struct fingerprint read = {0};
    char *end;
    if (strtol(text, &end, 10) != VERSION || *end != ' ')
        return -EINVAL;
    read.usual_cycles = strtod(end, &end);
    read.noise_cycles = strtod(end, &end);
    if (*end++ != ' ' || !(read.usual_cycles > 0) || !(read.noise_cycles >= 0))
        return -EINVAL;
    size_t length = strlen(end);
    if (!length || length % 2 || length / 2 > FINGERPRINT_SMS_MAX)
        return -EINVAL;
    read.sms = length / 2;
    for (size_t i = 0; i < read.sms; i++) {
        int code = sm_text_get(end + 2 * i);
        if (code < 0)
            return -EINVAL;
        read.cycles[i] = STEP_CYCLES * (code - MIDDLE);
    }
    *out_fingerprint = read;
    return 0;
}

static bool comparable(const struct fingerprint *was, const struct fingerprint *is, double noise)
{
    return was->sms == is->sms && noise <= NOISE_MAX_CYCLES &&
           fabs(is->usual_cycles / was->usual_cycles - 1) <= USUAL_WITHIN;
}

struct fingerprint_score fingerprint_compare(const struct fingerprint *was,
                                             const struct fingerprint *is)
{
    double noise = quadrature(was->noise_cycles, is->noise_cycles), squares = 0;
    double limit = fmax(MOVED_CYCLES, MOVED_NOISE * noise), changes[FINGERPRINT_SMS_MAX];
    struct fingerprint_score score = {
        .match = FINGERPRINT_UNCERTAIN, .distance_cycles = NAN, .noise_cycles = noise};
    if (!comparable(was, is, noise))
        return score;
    for (size_t i = 0; i < is->sms; i++)
        changes[i] = is->cycles[i] - was->cycles[i];
    double middle = sm_text_median(changes, is->sms);
    double rescaled = fabs(is->usual_cycles / was->usual_cycles - 1);
    for (size_t i = 0; i < is->sms; i++) {
        double change = changes[i] - middle;
        squares += change * change;
        score.moved_sms[i] = fabs(change) > limit + rescaled * fabs(was->cycles[i]);
        score.moved += score.moved_sms[i];
        if (fabs(change) <= fabs(score.worst_cycles))
            continue;
        score.worst_sm = i;
        score.worst_cycles = change;
    }
    score.distance_cycles = sqrt(squares / (double)is->sms);
    score.match = score.moved >= OTHER_SMS ? FINGERPRINT_OTHER
                  : score.moved            ? FINGERPRINT_CHANGED
                                           : FINGERPRINT_SAME;
    return score;
}
