/* The fingerprint of a die: facts and comparison. */
#include "inventory/fingerprint.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/portable_math.h"
#include "schema/packed.h"

enum { OTHER_SMS = 2 };

enum { DISTANCES, USUAL, NOISE };
const char *const fingerprint_keys[FINGERPRINT_KEYS] = {
    [DISTANCES] = FINGERPRINT_FACT,
    [USUAL] = "fingerprint_cycles",
    [NOISE] = "fingerprint_noise",
};

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
        .sms = sms, .usual_cycles = sm_median(latencies, sms), .noise_cycles = noise_cycles};
    for (size_t i = 0; i < sms; i++)
        out_fingerprint->cycles[i] = latencies[i] - out_fingerprint->usual_cycles;
}

void fingerprint_put(const struct fingerprint *fingerprint, struct facts *out_facts)
{
    double cycles[FINGERPRINT_SMS_MAX];
    for (size_t i = 0; i < fingerprint->sms; i++)
        cycles[i] = facts_decimals(fingerprint->cycles[i], 1);
    facts_set_numbers(out_facts, fingerprint_keys[DISTANCES], cycles, fingerprint->sms);
    facts_set_real(out_facts, fingerprint_keys[USUAL],
                   facts_decimals(fingerprint->usual_cycles, 1));
    facts_set_real(out_facts, fingerprint_keys[NOISE],
                   facts_decimals(fingerprint->noise_cycles, 2));
}

int fingerprint_read(const struct facts *facts, struct fingerprint *out_fingerprint)
{
    struct fingerprint read = {0};
    const double *cycles = facts_numbers(facts, fingerprint_keys[DISTANCES], &read.sms);
    read.usual_cycles = fact_number(facts_get(facts, fingerprint_keys[USUAL]));
    read.noise_cycles = fact_number(facts_get(facts, fingerprint_keys[NOISE]));
    if (!cycles || !read.sms || read.sms > FINGERPRINT_SMS_MAX || !isfinite(read.usual_cycles) ||
        !(read.usual_cycles > 0) || !isfinite(read.noise_cycles) || !(read.noise_cycles >= 0))
        return -EINVAL;
    for (size_t i = 0; i < read.sms; i++) {
        if (!isfinite(cycles[i]))
            return -EINVAL;
        read.cycles[i] = cycles[i];
    }
    *out_fingerprint = read;
    return 0;
}

/* A list of usual latency, noise, and the distances. */
void fingerprint_pack(const struct fingerprint *fingerprint, struct strbuf *out_bytes)
{
    double numbers[FINGERPRINT_SMS_MAX + 2] = {fingerprint->usual_cycles,
                                               fingerprint->noise_cycles};
    memcpy(numbers + 2, fingerprint->cycles, fingerprint->sms * sizeof *numbers);
    const struct fact fact = {
        .kind = FACT_NUMBERS, .count = (uint32_t)fingerprint->sms + 2, .numbers = numbers};
    packed_put(out_bytes, &fact);
}

void fingerprint_unpack(const char *bytes, struct fingerprint *out_fingerprint)
{
    struct fact fact = {0};
    packed_get(bytes, &fact);
    *out_fingerprint = (struct fingerprint){
        .sms = fact.count - 2, .usual_cycles = fact.numbers[0], .noise_cycles = fact.numbers[1]};
    memcpy(out_fingerprint->cycles, fact.numbers + 2, out_fingerprint->sms * sizeof *fact.numbers);
    free(fact.numbers);
}

struct fingerprint_score fingerprint_compare(const struct fingerprint *was,
                                             const struct fingerprint *is)
{
    double noise = portable_hypot(was->noise_cycles, is->noise_cycles), squares = 0;
    double limit = fmax(MOVED_CYCLES, MOVED_NOISE * noise), changes[FINGERPRINT_SMS_MAX];
    struct fingerprint_score score = {
        .match = FINGERPRINT_UNCERTAIN, .distance_cycles = NAN, .noise_cycles = noise};
    double rescaled = fabs(is->usual_cycles / was->usual_cycles - 1);
    if (was->sms != is->sms || !(noise <= NOISE_MAX_CYCLES) || !(rescaled <= USUAL_WITHIN))
        return score;
    for (size_t i = 0; i < is->sms; i++)
        changes[i] = is->cycles[i] - was->cycles[i];
    double middle = sm_median(changes, is->sms);
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
