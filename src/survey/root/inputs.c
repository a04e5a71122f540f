/* Checks and reads the inputs of rank 0 before anything is measured. */
#include "survey/root/inputs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/out_file.h"
#include "device/record/record.h"
#include "device/turn.h"
#include "survey/root/emit.h"
#include "survey/root/recording.h"

void inputs_fini(struct inputs *inputs)
{
    survey_config_fini(&inputs->config);
    report_basis_fini(&inputs->basis);
    recording_destroy(inputs->recording);
    judging_fini(&inputs->judging);
    spooling_fini(&inputs->spooling);
}

/* How the recorded survey was run. */
static int adopt_recorded_options(const struct record_provenance *was,
                                  struct survey_options *options, struct err *err)
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

int inputs_open_record(struct survey_options *options, struct record **out_record, struct err *err)
{
    struct record *record = NULL;
    int rc = record_open(options->replay, &record, err);
    if (!rc)
        rc = adopt_recorded_options(record_provenance(record), options, err);
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

/* A replay uses the configuration of its record, unless the user names another. */
static int inputs_load_config(const struct inputs_request *input, struct survey_config *out_config,
                              struct err *err)
{
    if (!input->record || input->options->config)
        return survey_config_load(input->options->config, out_config, err);
    const struct record_provenance *was = record_provenance(input->record);
    int rc = survey_config_read(was->config_text, was->config, out_config, err);
    if (rc)
        err_prefix(err, "configuration in %.200s (use --config for another)",
                   input->options->replay);
    return rc;
}

static int inputs_begin_spool(const struct inputs_request *input, struct inputs *out,
                              struct err *err)
{
    bool in_place = comm_is_standalone(input->comm) && out_file_in_place(out->output);
    return spooling_begin(&out->spooling, input->options, &input->comm->place, out->output,
                          in_place ? out->default_output : out->output, err);
}

/* Other surveys may start here in the same second, so each gets a separate file. */
static int inputs_begin_default_output(const struct inputs_request *input, const char *stamp,
                                       struct inputs *out, struct err *err)
{
    enum { NAMES = 100 };
    int rc = -EBUSY;
    for (int i = 2; i <= NAMES && rc == -EBUSY; i++) {
        char *folder = realpath(".", NULL);
        if (turn_claim(folder ? folder : ".", out->default_output) &&
            access(out->default_output, F_OK))
            rc = inputs_begin_spool(input, out, err);
        free(folder);
        if (rc == -EBUSY)
            snprintf(out->default_output, sizeof out->default_output, "gpumemtopo-%s-%d.yaml",
                     stamp, i);
    }
    return rc == -EBUSY
               ? err_set(err, rc, "too many surveys start here at the same time: set --output")
               : rc;
}

static int inputs_check_files(const struct survey_options *options, const char *output,
                              struct err *err)
{
    struct stat info;
    const char *record = options->record;
    int rc = out_file_check("--output", output, err);
    if (!rc && options->html)
        rc = out_file_check("--html", options->html, err);
    if (!rc && record && stat(record, &info) == 0 && !S_ISREG(info.st_mode) &&
        !S_ISDIR(info.st_mode))
        rc = err_set_at(err, -EINVAL, record, 0, 0, "is no regular file; --record needs one");
    if (!rc && record)
        rc = out_file_check("--record", record, err);
    return rc ? rc : emit_check_inputs(options, output, err);
}

int inputs_begin(const struct inputs_request *input, struct inputs *out, struct err *err)
{
    const struct survey_options *options = input->options;
    char stamp[CLOCK_STAMP_MAX];
    clock_utc_stamp(1, stamp);
    bool standalone = comm_is_standalone(input->comm); /* then all processes must use one name */
    snprintf(out->default_output, sizeof out->default_output, "gpumemtopo-%s.yaml",
             standalone ? input->comm->place.job : stamp);
    out->output = options->output ? options->output : out->default_output;
    int rc = inputs_check_files(options, out->output, err);
    if (rc)
        return rc;
    rc = inputs_load_config(input, &out->config, err);
    if (!rc)
        rc = report_basis_load(options->reference, options->baseline, &out->basis, err);
    if (!rc)
        rc = report_basis_load_world(options->world.items, options->world.count, &out->basis, err);
    if (!rc && options->record) {
        const struct recording_input recorded = {
            .options = options,
            .config = &out->config,
            .argc = input->argc,
            .argv = input->argv,
            .ranks = input->comm->place.tasks,
        };
        rc = recording_begin(&recorded, &out->recording, err);
    }
    if (rc)
        return rc;
    return options->output || standalone ? inputs_begin_spool(input, out, err)
                                         : inputs_begin_default_output(input, stamp, out, err);
}
