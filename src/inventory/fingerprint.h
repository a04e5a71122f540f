/* The fingerprint of a die: how far each of its SMs is from L2, and whether two of them are of one
 * die.
 *
 * The distances follow from the places of the SMs that are in use, which are chosen when the die is
 * made. Dies of one model may have the same places: equal fingerprints do not prove one die,
 * different ones prove two. */
#ifndef GPUMEMTOPO_INVENTORY_FINGERPRINT_H
#define GPUMEMTOPO_INVENTORY_FINGERPRINT_H

#include <stdbool.h>
#include <stddef.h>

#include "inventory/sm_rates.h"

/* The facts of a board: the distances of the SMs (FINGERPRINT_FACT), the latency of the median SM,
 * the noise. And the notes of measures with the maps behind them. */
#define FINGERPRINT_FACT "fingerprint"
#define FINGERPRINT_MAP "slice_map"
#define FINGERPRINT_REGIONS "region_map" /* of SMs and regions of the memory */

enum { FINGERPRINT_SMS_MAX = SM_RATES_SMS_MAX, FINGERPRINT_KEYS = 3 };
extern const char *const fingerprint_keys[FINGERPRINT_KEYS];

struct fingerprint {
    size_t sms;
    double usual_cycles;                /* of the median SM */
    double noise_cycles;                /* standard error of one distance */
    double cycles[FINGERPRINT_SMS_MAX]; /* latency of each SM less that of the median one */
};

/* Makes a fingerprint from the latency of each SM. sms: 1 to FINGERPRINT_SMS_MAX. */
void fingerprint_make(const double *latencies, size_t sms, double noise_cycles,
                      struct fingerprint *out_fingerprint);

/* Sets the facts: distances in tenths of a cycle. */
void fingerprint_put(const struct fingerprint *fingerprint, struct facts *out_facts);

/* 0, or -EINVAL if the facts have no fingerprint, or one that fingerprint_put does not write. */
int fingerprint_read(const struct facts *facts, struct fingerprint *out_fingerprint);

/* The same in few bytes, for those who keep many, and back. */
void fingerprint_pack(const struct fingerprint *fingerprint, struct strbuf *out_bytes);
void fingerprint_unpack(const char *bytes, struct fingerprint *out_fingerprint);

enum fingerprint_match {
    FINGERPRINT_SAME,      /* no SM is at another distance */
    FINGERPRINT_OTHER,     /* so many SMs are that it is another die */
    FINGERPRINT_CHANGED,   /* one SM is: one die, on which it became slower or faster */
    FINGERPRINT_UNCERTAIN, /* they cannot be compared: other clock, other SMs, too much noise */
};
struct fingerprint_score {
    enum fingerprint_match match;
    size_t moved; /* SMs at another distance */
    bool moved_sms[FINGERPRINT_SMS_MAX];
    double distance_cycles; /* root mean square over the SMs; NaN if they cannot be compared */
    double noise_cycles;    /* what chance gives for it */
    size_t worst_sm;        /* the SM that moved most, and by how much */
    double worst_cycles;
};
struct fingerprint_score fingerprint_compare(const struct fingerprint *was,
                                             const struct fingerprint *is);

#endif
