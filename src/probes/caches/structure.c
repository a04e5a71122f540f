/* The structure of the caches of an SM: sets, ways, how an address chooses its set, and which line
 * goes when a new one comes. */
#include <math.h>
#include <stdio.h>

#include "base/number.h"
#include "probes/caches/cache_report.h"
#include "probes/caches/cache_sets.h"
#include "probes/caches/line.h"
#include "probes/caches/replacement.h"
#include "probes/caches/study.h"
#include "probes/caches/tag_scatter.h"

enum { REASON_MAX = 160, WORD_MAX = 40 };

static const char *const attributes[] = {"sets", "ways", "index", "policy", NULL};

/* Of what is checked against a second stage, but comes from one GPU in one run. */
static const double CHECKED = 0.99, DOUBTED = 0.5;

/* There are more tags than data if they are for more than this many times what stays resident. */
static const double MORE_TAGS = 1.08;

static void report_all_missing(struct probe_context *context, const char *memory,
                               const char *reason)
{
    for (size_t i = 0; attributes[i]; i++)
        cache_report_missing(context, memory, attributes[i], MEASURE_FAILED, reason);
}

/* Status and confidence of a figure that a doubt concerns; an empty doubt is none. */
static void structure_settle(struct measure *m, const struct cache_sets *sets, const char *doubt)
{
    m->n = sets->loads;
    m->confidence = *doubt ? DOUBTED : CHECKED;
    if (*doubt)
        measure_set_status(m, MEASURE_NOISY, doubt);
}

/* Sets x ways x line against the size: they must agree within a line. */
static void check_size(const struct probe_context *context, const struct study *study,
                       const struct cache_sets *sets, char doubt[REASON_MAX])
{
    char name[CACHE_METRIC_MAX];
    const struct measure *size =
        measures_get(context->measures, cache_metric(name, study_name(study->id), "size"));
    const struct measure *line =
        measures_get(context->measures, cache_metric(name, study_name(study->id), "line"));
    double bytes = (double)cache_sets_bytes(sets, study->line_bytes);
    double room = (double)study->line_bytes;
    snprintf(doubt, REASON_MAX, "%s", sets->doubt);
    if (!*doubt && (study->line_confidence < LINE_SURE || (line && line->status == MEASURE_NOISY)))
        snprintf(doubt, REASON_MAX, "the line is not certain");
    if (*doubt || !sets->sets || !size || !measure_status_valued(size->status))
        return;
    if (sets->scattered && bytes > size->value) /* tags for more than data: noted, not doubted */
        return;
    if (size->status == MEASURE_NOISY) /* by the resident share, which does not resolve lines */
        room = fmax(room, 3 * size->spread + 0.01 * size->value);
    if (fabs(bytes - size->value) > room)
        snprintf(doubt, REASON_MAX, "sets, ways and line make %.0f B, the size is %.0f B", bytes,
                 size->value);
}

static const char METHOD[] = "lines that miss in an array one line too long";

static const char METHOD_SCATTERED[] = "share of lines, drawn at random, that miss";

static const char *method_of(const struct cache_sets *sets)
{
    return sets->scattered ? METHOD_SCATTERED : METHOD;
}

static int low_bit(uint64_t x)
{
    return __builtin_ctzll(x);
}

/* Address bits choose the set if both the run and the number of sets are powers of two. */
static bool chosen_by_bits(const struct study *study, const struct cache_sets *sets)
{
    return sets->index == CACHE_SETS_REGULAR &&
           number_is_power_of_two(sets->run * study->line_bytes) &&
           number_is_power_of_two(sets->sets);
}

/* Lists of words have no notes, so what belongs to the index and the policy stands beside the
 * numbers. */
static void note_index(struct measure *m, const struct study *study, const struct cache_sets *sets)
{
    uint64_t run = sets->run * study->line_bytes;
    if (sets->larger)
        facts_set_int(&m->notes, "larger", (int64_t)sets->larger);
    if (sets->scattered)
        facts_set_int(&m->notes, "tag_bytes", (int64_t)cache_sets_bytes(sets, study->line_bytes));
    if (sets->index == CACHE_SETS_REGULAR) {
        facts_set_int(&m->notes, "period", (int64_t)(sets->sets * run));
        facts_set_int(&m->notes, "run", (int64_t)run);
    }
    if (chosen_by_bits(study, sets)) {
        facts_set_int(&m->notes, "lowest_bit", low_bit(run));
        facts_set_int(&m->notes, "highest_bit", low_bit(run * sets->sets) - 1);
    }
}

static void structure_report_sets(struct probe_context *context, const struct study *study,
                                  const struct cache_sets *sets, const char *doubt)
{
    char name[CACHE_METRIC_MAX];
    const char *memory = study_name(study->id);
    if (!sets->sets) {
        cache_report_missing(context, memory, "sets", MEASURE_FAILED,
                             "hashed sets of unequal size");
        return;
    }
    struct measure *m = measures_add(context->measures, cache_metric(name, memory, "sets"),
                                     (double)sets->sets, "", method_of(sets));
    structure_settle(m, sets, doubt);
    note_index(m, study, sets);
}

/* Shares of the evictions by way, in the order in which they are filled. */
static void note_policy(struct measure *m, const struct cache_sets *sets,
                        const struct replacement *found)
{
    char key[32];
    if (sets->larger)
        facts_set_int(&m->notes, "largest", (int64_t)sets->ways + 1);
    for (uint64_t i = 0; found->policy == REPLACEMENT_BIASED && i < sets->ways; i++) {
        snprintf(key, sizeof key, "way_%u", (unsigned)i + 1);
        facts_set_real(&m->notes, key, found->shares[i]);
    }
    if (found->policy != REPLACEMENT_UNKNOWN && *found->reason)
        facts_set_text(&m->notes, "seen", found->reason);
}

static void report_ways(struct probe_context *context, const struct study *study,
                        const struct cache_sets *sets, const struct replacement *found,
                        const char *doubt)
{
    char name[CACHE_METRIC_MAX];
    struct measure *m =
        measures_add(context->measures, cache_metric(name, study_name(study->id), "ways"),
                     (double)sets->ways, "", method_of(sets));
    structure_settle(m, sets, doubt);
    note_policy(m, sets, found);
}

static void structure_report_index(struct probe_context *context, const struct study *study,
                                   const struct cache_sets *sets, const char *doubt)
{
    char name[CACHE_METRIC_MAX], text[WORD_MAX];
    uint64_t run = sets->run * study->line_bytes, period = run * sets->sets;
    if (sets->index == CACHE_SETS_ONE)
        snprintf(text, sizeof text, "one_set");
    else if (sets->index == CACHE_SETS_HASHED)
        snprintf(text, sizeof text, "hashed");
    else if (!chosen_by_bits(study, sets))
        snprintf(text, sizeof text, "modulo_%llu", (unsigned long long)period);
    else if (sets->sets == 2)
        snprintf(text, sizeof text, "bit_%d", low_bit(run));
    else
        snprintf(text, sizeof text, "bits_%d_to_%d", low_bit(run), low_bit(period) - 1);
    const char *word = text;
    struct measure *m =
        measures_add_words(context->measures, cache_metric(name, study_name(study->id), "index"),
                           &word, 1, "which lines share a set, strides of whole periods");
    structure_settle(m, sets, doubt);
}

static void structure_report_policy(struct probe_context *context, const struct study *study,
                                    const struct cache_sets *sets, const struct replacement *found,
                                    const char *doubt)
{
    char name[CACHE_METRIC_MAX];
    const char *word = replacement_name(found->policy);
    if (found->policy == REPLACEMENT_UNKNOWN) {
        cache_report_missing(context, study_name(study->id), "policy", MEASURE_FAILED,
                             found->reason);
        return;
    }
    struct measure *m =
        measures_add_words(context->measures, cache_metric(name, study_name(study->id), "policy"),
                           &word, 1, "order of misses in a set one line too full");
    structure_settle(m, sets, doubt);
    m->n = found->n;
}

static int structure_report(struct probe_context *context, const struct study *study,
                            const struct cache_sets *sets, struct err *err)
{
    char doubt[REASON_MAX];
    struct replacement found;
    int rc = replacement_measure(context, study, sets, &found, err);
    if (rc)
        return rc;
    check_size(context, study, sets, doubt);
    if (found.unexplained)
        snprintf(doubt, sizeof doubt, "lines stay as under no policy by which the sets were told");
    structure_report_sets(context, study, sets, doubt);
    report_ways(context, study, sets, &found, doubt);
    structure_report_index(context, study, sets, doubt);
    structure_report_policy(context, study, sets, &found, doubt);
    return 0;
}

/* True when there are tags for more lines than stay resident. */
static bool more_tags(const struct study *study, const struct tag_scatter *found)
{
    double tags = (double)(found->sets * found->ways * study->line_bytes);
    return found->told && found->exact && tags > MORE_TAGS * study->resident_bytes;
}

/* Without more tags than data the first stage should have told: what contradicted it remains. */
static void take_scattered(const struct study *study, const struct tag_scatter *found,
                           struct cache_sets *sets)
{
    char doubt[CACHE_SETS_DOUBT_MAX];
    snprintf(doubt, sizeof doubt, "%s", more_tags(study, found) ? "" : sets->doubt);
    cache_sets_fini(sets);
    *sets = (struct cache_sets){.told = true,
                                .scattered = true,
                                .index = found->regular ? CACHE_SETS_REGULAR : CACHE_SETS_HASHED,
                                .ways = found->ways,
                                .sets = found->sets,
                                .run = 1,
                                .period = found->sets,
                                .loads = found->n};
    snprintf(sets->doubt, sizeof sets->doubt, "%s", doubt);
    if (!found->exact)
        snprintf(sets->doubt, sizeof sets->doubt, "%llu to %llu sets explain the misses as well",
                 (unsigned long long)found->sets_least, (unsigned long long)found->sets_most);
}

/* If no set overflows as a set does, or those that follow do not, the tags are looked at by lines
 * scattered at random. */
static int structure_measure_sets(struct probe_context *context, const struct study *study,
                                  struct cache_sets *out_sets, struct err *err)
{
    struct tag_scatter scattered;
    int rc = tag_scatter_measure(context, study, &scattered, err);
    if (!rc)
        rc = cache_sets_measure(context, study, more_tags(study, &scattered), out_sets, err);
    if (!rc && *out_sets->doubt && scattered.told)
        take_scattered(study, &scattered, out_sets);
    return rc;
}

static int run_structure(struct probe_context *context, enum study_id id, struct err *err)
{
    const char *memory = study_name(id);
    const struct study *study = &context->studies[id];
    int rc = study_reach(context, id, STUDY_RESIDENT, err);
    if (rc)
        return rc;
    if (!study->supported) {
        cache_report_unsupported(context, memory, attributes, study);
        return 0;
    }
    if (study->unbounded) /* nothing can be told; the bound of the size says why */
        return 0;
    if (!study->line_bytes) {
        report_all_missing(context, memory, "the line is not known");
        return 0;
    }
    struct study own = *study;
    struct cache_sets sets;
    bool shared = false;
    if (own.at_once != 1)
        rc = study_find_sharing(context, &own, &shared, err);
    if (shared) /* jobs run one after the other: they load the same lines */
        own.at_once = 1;
    if (!rc)
        rc = structure_measure_sets(context, &own, &sets, err);
    if (rc)
        return rc;
    if (!sets.told) {
        report_all_missing(context, memory, sets.doubt);
        return 0;
    }
    rc = structure_report(context, &own, &sets, err);
    cache_sets_fini(&sets);
    return rc;
}

#define STRUCTURE(id, name, words)                                                                 \
    [id] = {                                                                                       \
        .description = {"structure." name, "sets, ways, index and policy of the " words,           \
                        PROFILE_FULL},                                                             \
        .depends = {name ".line", name ".size"},                                                   \
        .metrics = {name ".sets", name ".ways", name ".index", name ".policy"},                    \
        .run_study = run_structure,                                                                \
        .study = id,                                                                               \
    }

const struct probe probe_structures[STUDY_COUNT] = {
    STRUCTURE(STUDY_L1_DATA, "l1_data", "L1 data cache"),
    STRUCTURE(STUDY_TEXTURE, "texture", "texture cache"),
    STRUCTURE(STUDY_READ_ONLY, "read_only", "read-only cache"),
    STRUCTURE(STUDY_CONSTANT_L1, "constant_l1", "constant L1 cache"),
    STRUCTURE(STUDY_CONSTANT_L15, "constant_l15", "constant L1.5 cache"),
};
