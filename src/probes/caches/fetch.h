/* The fetch unit of a cache, from which loads of cold chases miss: pure functions. */
#ifndef GPUMEMTOPO_PROBES_CACHES_FETCH_H
#define GPUMEMTOPO_PROBES_CACHES_FETCH_H

#include <stddef.h>
#include <stdint.h>

/* The least contrast between loads that begin a fetch unit and the others. */
extern const double FETCH_CLEAR;

/* A cold chase with one stride. */
struct fetch_row {
    uint64_t stride_bytes;
    size_t loads;           /* timed */
    uint32_t passes;        /* each by this many cold chases */
    const uint32_t *misses; /* by load, of all passes */
};

/* Which load has which address. */
enum fetch_order {
    FETCH_IN_ORDER,       /* load i at i strides */
    FETCH_WITHOUT_FIRST,  /* load i at i + 1 strides: the first one was not timed */
    FETCH_IN_RANDOM_ORDER /* of as many neighbouring elements: only how many miss is known */
};

struct fetch_unit {
    uint64_t bytes;  /* 0: no unit has more misses where it begins than elsewhere */
    double contrast; /* share of misses where fetch units begin, less that elsewhere */
    double likely;   /* log-likelihood */
};

/* The multiple of word_bytes, up to longest_bytes, that explains the misses of all rows best. */
struct fetch_unit fetch_judge(const struct fetch_row *rows, size_t count, enum fetch_order order,
                              uint64_t word_bytes, uint64_t longest_bytes);

#endif
