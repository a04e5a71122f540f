/* Checks and reads the inputs of rank 0 before anything is measured. */
#include "survey/root/inputs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/out_file.h"
#include "device/replay/record.h"
#include "device/replay/record_read.h"
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

/* A replay uses the configuration of its record, unless the user names another. */
static int load_config(const struct inputs_request *input, struct survey_config *out_config,
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

static int begin_recording(const struct inputs_request *input, struct inputs *out, struct err *err)
{
    const struct recording_input recorded = {
        .options = input->options,
        .config = &out->config,
        .argc = input->argc,
        .argv = input->argv,
        .ranks = input->comm->place.tasks,
    };
    return recording_begin(&recorded, &out->recording, err);
}

static int check_record(const char *path, struct err *err)
{
    struct stat info;
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode))
        return err_set_at(err, -EINVAL, path, 0, 0, "is no regular file; --record needs one");
    return out_file_check("--record", path, err);
}

static int begin_spool(const struct inputs_request *input, struct inputs *out, struct err *err)
{
    bool in_place = comm_is_standalone(input->comm) && out_file_in_place(out->output);
    return spooling_begin(&out->spooling, input->options, &input->comm->place, out->output,
                          in_place ? out->default_output : out->output, err);
}

/* Other surveys may start here in the same second, so each gets a separate file. */
static int begin_default(const struct inputs_request *input, const char *stamp, struct inputs *out,
                         struct err *err)
{
    enum { NAMES = 100 };
    int rc = -EBUSY;
    for (int i = 2; i <= NAMES && rc == -EBUSY; i++) {
        char *folder = realpath(".", NULL);
        if (turn_claim(folder ? folder : ".", out->default_output) &&
            access(out->default_output, F_OK))
            rc = begin_spool(input, out, err);
        free(folder);
        if (rc == -EBUSY)
            snprintf(out->default_output, sizeof out->default_output, "gpumemtopo-%s-%d.yaml",
                     stamp, i);
    }
    return rc == -EBUSY
               ? err_set(err, rc, "too many surveys start here at the same time: set --output")
               : rc;
}

static int check_files(const struct survey_options *options, const char *output, struct err *err)
{
    int rc = out_file_check("--output", output, err);
    if (rc)
        return rc;
    rc = options->html ? out_file_check("--html", options->html, err) : 0;
    if (rc)
        return rc;
    rc = options->record ? check_record(options->record, err) : 0;
    if (rc)
        return rc;
    return emit_check_inputs(options, output, err);
}

int inputs_begin(const struct inputs_request *input, struct inputs *out, struct err *err)
{
    const struct survey_options *options = input->options;
    char stamp[CLOCK_STAMP_MAX];
    clock_utc_stamp(1, stamp);
    bool apart =
        comm_is_standalone(input->comm); /* then all processes must use the same file name */
    snprintf(out->default_output, sizeof out->default_output, "gpumemtopo-%s.yaml",
             apart ? input->comm->place.job : stamp);
    out->output = options->output ? options->output : out->default_output;
    int rc = check_files(options, out->output, err);
    if (rc)
        return rc;
    rc = load_config(input, &out->config, err);
    if (rc)
        return rc;
    rc = report_basis_load(options->reference, options->baseline, &out->basis, err);
    if (rc)
        return rc;
    rc = report_basis_load_world(options->world.items, options->world.count, &out->basis, err);
    if (rc)
        return rc;
    rc = options->record ? begin_recording(input, out, err) : 0;
    if (rc)
        return rc;
    return options->output || apart ? begin_spool(input, out, err)
                                    : begin_default(input, stamp, out, err);
}
