/* Which lines share a set, as a rule: from the lines that miss when one set overflows. */
#ifndef GPUMEMTOPO_PROBES_METHOD_SET_PATTERN_H
#define GPUMEMTOPO_PROBES_METHOD_SET_PATTERN_H

#include <stdbool.h>
#include <stdint.h>

/* Set of line i: (i / run) mod sets. */
struct set_pattern {
    uint64_t run;
    uint64_t sets;
};

/* The pattern that has exactly `group` (rising, count of them, at least two) among `lines` lines in
 * the set of the last one. False if there is none. */
bool set_pattern_find(const uint64_t *group, uint64_t count, uint64_t lines,
                      struct set_pattern *out_pattern);

/* The longest aligned run of lines that go to the same set, if each run of the group but the last,
 * which may be cut short, is as long or a multiple of it. */
uint64_t set_pattern_run(const uint64_t *group, uint64_t count);

/* Lines that miss among the first `lines`, if the first `larger` sets have ways + 1 and the others
 * `ways`: all lines of the sets that overflow. */
uint64_t set_pattern_missing(const struct set_pattern *pattern, uint64_t ways, uint64_t larger,
                             uint64_t lines);

#endif
