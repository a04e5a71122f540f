/* Shares and histograms of a prediction. */
#include "predict/prediction.h"

#include <math.h>

const char prediction_no_l1[] =
    "global loads are not cached in L1, as the survey saw: all go to L2, and L1 has no figures";

double prediction_ratio(uint64_t part, uint64_t whole)
{
    return whole ? (double)part / (double)whole : NAN;
}

double prediction_l1_hits(const struct prediction *p)
{
    return p->machine.config.no_l1 ? NAN
                                   : prediction_ratio(p->counts.l1_read_hits, p->counts.l1_reads);
}

double prediction_l1_transactions(const struct prediction *p)
{
    return p->machine.config.no_l1 ? NAN : (double)(p->counts.l1_reads + p->counts.l1_writes);
}

double prediction_l2_hits(const struct model_l2_counts *l2)
{
    return prediction_ratio(l2->read_hits + l2->write_hits, l2->reads + l2->writes);
}

size_t prediction_distances(const struct model_curve *curve,
                            struct prediction_distance out[PREDICTION_DISTANCES_MAX])
{
    uint64_t from = 0, hits = 0;
    size_t count = 0;
    for (size_t i = 0; i < curve->count; i++) {
        uint64_t lines = curve->lines[i];
        if (lines & (lines - 1) && i + 1 < curve->count)
            continue; /* between two powers of two */
        out[count++] = (struct prediction_distance){from, lines - 1, curve->hits[i] - hits};
        from = lines;
        hits = curve->hits[i];
    }
    if (count)
        out[count++] = (struct prediction_distance){from, 0, curve->accesses - hits};
    return count;
}
