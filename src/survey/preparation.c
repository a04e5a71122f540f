/* What rank 0 needs before anything is measured. */
#include "survey/preparation.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "device/replay/record.h"
#include "device/replay/record_read.h"
#include "survey/emit.h"
#include "survey/recording.h"

void preparation_fini(struct preparation *preparation)
{
    survey_config_fini(&preparation->config);
    report_basis_fini(&preparation->basis);
    recording_destroy(preparation->recording);
    judging_fini(&preparation->judging);
    spooling_fini(&preparation->spooling);
    if (preparation->claim)
        rmdir(preparation->claim);
    free(preparation->claim);
}

/* A replay judges by the configuration of its record, unless another is named. */
static int load_config(const struct preparation_input *input, struct survey_config *out_config,
                       struct err *err)
{
    if (!input->record || input->options->config)
        return survey_config_load(input->options->config, out_config, err);
    const struct record_provenance *was = record_provenance(input->record);
    int rc = survey_config_read(was->config_text, was->config, out_config, err);
    if (rc)
        err_prefix(err, "configuration in %.200s (--config names another)", input->options->replay);
    return rc;
}

static int begin_recording(const struct preparation_input *input, struct preparation *out,
                           struct err *err)
{
    const struct recording_input recorded = {
        .options = input->options,
        .config = &out->config,
        .argc = input->argc,
        .argv = input->argv,
        .ranks = input->ranks,
    };
    return recording_begin(&recorded, &out->recording, err);
}

static int check_record(const char *path, struct err *err)
{
    struct stat info;
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode))
        return err_set_at(err, -EINVAL, path, 0, 0, "is no regular file; --record names one");
    return emit_check_output("--record", path, err);
}

/* Another survey may have begun here in this very second: who makes the folder of the default spool
 * has the name, also where it spools elsewhere or not at all. */
static void claim_output(const struct survey_options *options, const char *stamp,
                         struct preparation *out)
{
    static const struct survey_options defaults = {0};
    enum { NAMES = 100 };
    bool claimed = false;
    for (int i = 2; i <= NAMES && !claimed; i++) {
        char *folder = spooling_folder(&defaults, out->default_output);
        bool made = folder && mkdir(folder, 0777) == 0;
        claimed = (made || !folder || errno != EEXIST) && access(out->default_output, F_OK);
        if (made && !claimed)
            rmdir(folder);
        if (!claimed)
            snprintf(out->default_output, sizeof out->default_output, "gpumemtopo-%s-%d.yaml",
                     stamp, i);
        if (made && claimed && (options->spool || options->replay))
            out->claim = folder;
        else
            free(folder);
    }
}

int preparation_begin(const struct preparation_input *input, struct preparation *out,
                      struct err *err)
{
    const struct survey_options *options = input->options;
    char stamp[CLOCK_STAMP_MAX];
    clock_utc_stamp(1, stamp);
    snprintf(out->default_output, sizeof out->default_output, "gpumemtopo-%s.yaml", stamp);
    out->output = options->output ? options->output : out->default_output;
    int rc = emit_check_output("--output", out->output, err);
    if (!rc && options->html)
        rc = emit_check_output("--html", options->html, err);
    if (!rc && options->record)
        rc = check_record(options->record, err);
    if (!rc)
        rc = emit_check_inputs(options, out->output, err);
    if (!rc)
        rc = load_config(input, &out->config, err);
    if (!rc)
        rc = report_basis_load(options->reference, options->baseline, &out->basis, err);
    if (!rc && options->record)
        rc = begin_recording(input, out, err);
    if (!rc && !options->output)
        claim_output(options, stamp, out);
    if (!rc)
        rc = spooling_begin(&out->spooling, options, out->output, err);
    return rc;
}
