/* Which lines share a set, as a rule. */
#include "probes/method/set_pattern.h"

static bool same_set(const struct set_pattern *pattern, uint64_t a, uint64_t b)
{
    return a / pattern->run % pattern->sets == b / pattern->run % pattern->sets;
}

static bool explains(const struct set_pattern *pattern, const uint64_t *group, uint64_t count,
                     uint64_t lines)
{
    uint64_t at = 0;
    for (uint64_t i = 0; i < lines; i++) {
        bool member = at < count && group[at] == i;
        if (member != same_set(pattern, i, lines - 1))
            return false;
        at += member;
    }
    return at == count;
}

bool set_pattern_find(const uint64_t *group, uint64_t count, uint64_t lines,
                      struct set_pattern *out_pattern)
{
    uint64_t run = 1;
    while (run < count && group[run] == group[0] + run)
        run++;
    struct set_pattern pattern = {.run = 1, .sets = 1};
    if (run < count) {
        uint64_t period = group[run] - group[0];
        if (period % run)
            return false;
        pattern = (struct set_pattern){.run = run, .sets = period / run};
    }
    if (!explains(&pattern, group, count, lines))
        return false;
    *out_pattern = pattern;
    return true;
}

uint64_t set_pattern_run(const uint64_t *group, uint64_t count)
{
    uint64_t run = 1, whole = 0;
    while (run < count && group[run] == group[0] + run)
        run++;
    for (uint64_t i = 0; i + run < count; i += run, whole++) {
        if (group[i] % run || group[i + run - 1] != group[i] + run - 1)
            return 1;
    }
    return whole ? run : 1;
}

/* Lines of set s among the first `lines`. */
static uint64_t lines_in(const struct set_pattern *pattern, uint64_t s, uint64_t lines)
{
    uint64_t period = pattern->run * pattern->sets, rest = lines % period;
    uint64_t begin = s * pattern->run;
    uint64_t more = rest <= begin ? 0 : rest - begin;
    return lines / period * pattern->run + (more < pattern->run ? more : pattern->run);
}

uint64_t set_pattern_missing(const struct set_pattern *pattern, uint64_t ways, uint64_t larger,
                             uint64_t lines)
{
    uint64_t missing = 0;
    for (uint64_t s = 0; s < pattern->sets; s++) {
        uint64_t own = lines_in(pattern, s, lines);
        missing += own > ways + (s < larger) ? own : 0;
    }
    return missing;
}
