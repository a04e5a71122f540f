/* Replay of a recorded survey. */
#include "survey/root/replaying.h"

#include <errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "probes/probes.h"

static int adopt(const struct record_provenance *was, struct survey_options *options,
                 struct err *err)
{
    struct probe_selection selection = {0};
    if (was->profile > PROFILE_FULL)
        return err_set_at(err, -EINVAL, options->replay, 0, 0,
                          "recorded with unknown profile %u (this program has %d)", was->profile,
                          PROFILE_FULL);
    if (!options->probes && !options->profile_given)
        options->probes = was->probes;
    if (!options->profile_given)
        options->profile = (enum probe_profile)was->profile;
    if (!options->seed_given)
        options->seed = was->seed;
    if (!options->busy_given)
        options->busy = was->measure_busy ? SURVEY_BUSY_MEASURE : SURVEY_BUSY_SKIP;
    int rc = probes_select(options->profile, options->probes, &selection, err);
    free(selection.indices);
    return rc;
}

int replaying_open(struct survey_options *options, struct record **out_record, struct err *err)
{
    struct record *record = NULL;
    int rc = record_open(options->replay, &record, err);
    if (!rc)
        rc = adopt(record_provenance(record), options, err);
    if (rc) {
        record_close(record);
        return rc;
    }
    const struct record_provenance *was = record_provenance(record);
    log_debug("%s: recorded %s on %s by version %s, %zu GPUs", options->replay,
              was->date ? was->date : "?", was->host ? was->host : "?", was->version,
              record_gpu_count(record));
    *out_record = record;
    return 0;
}
