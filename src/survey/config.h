/* The configuration file of the survey. */
#ifndef GPUMEMTOPO_SURVEY_CONFIG_H
#define GPUMEMTOPO_SURVEY_CONFIG_H

#include "base/err.h"
#include "judge/judge.h"
#include "probes/probes.h"

enum { PROFILE_COUNT = PROFILE_FULL + 1 };

/* How long ranks wait for the start of all others: least_s + per_rank_s * ranks. */
struct survey_start_timeout {
    double least_s, per_rank_s;
};

struct survey_config {
    double time_limit_s[PROFILE_COUNT]; /* for one GPU, by profile */
    struct survey_start_timeout start_timeout;
    double load_stagger_s;
    uint64_t region_bytes; /* of the memory test: a power of two */
    struct judge_config judge;
    char *name; /* of the file */
    char *text;
};

/* Reads `path`. If it is NULL, reads the survey.yaml that shipped_path() finds. -EINVAL with
 * position for a bad file. out_config untouched on failure; released with survey_config_fini. */
int survey_config_load(const char *path, struct survey_config *out_config, struct err *err);

/* The same from a text. name: what error messages call it. */
int survey_config_read(const char *text, const char *name, struct survey_config *out_config,
                       struct err *err);

/* The values that are used when no file can be read: no limits, nothing is judged. */
void survey_config_defaults(struct survey_config *out_config);
void survey_config_fini(struct survey_config *config);

#endif
