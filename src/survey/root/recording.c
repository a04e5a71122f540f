/* The record of the whole survey, made by rank 0. */
#include "survey/root/recording.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/host.h"
#include "base/mem.h"
#include "base/str.h"
#include "device/record/record.h"
#include "inventory/pseudonyms.h"
#include "survey/config.h"
#include "survey/options.h"
#include "survey/root/root.h"

struct recording {
    struct record_file *file;
    const char *path;  /* of the record, from the options */
    char *named_path;  /* --anonymous: of the record with names, removed at the end; else NULL */
    struct err failed; /* code 0: no failure */
};

int recording_begin(const struct recording_input *input, struct recording **out_recording,
                    struct err *err)
{
    const struct survey_options *options = input->options;
    struct recording *recording = mem_array(1, sizeof *recording);
    char **command = mem_array((size_t)input->argc, sizeof *command);
    char stamp[CLOCK_STAMP_MAX], host[HOST_NAME_MAX_BYTES];
    for (int i = 0; i < input->argc; i++)
        command[i] = i ? input->argv[i] : (char *)str_last_part(input->argv[i]);
    clock_utc_stamp(0, stamp);
    host_name(host);
    const struct record_provenance provenance = {
        .version = (char *)GPUMEMTOPO_VERSION,
        .date = stamp,
        .host = host,
        .backend = (char *)(options->simulate ? "sim" : "cuda"),
        .command = command,
        .command_count = (size_t)input->argc,
        .seed = options->seed,
        .profile = options->profile,
        .probes = (char *)options->probes,
        .measure_busy = options->busy == SURVEY_BUSY_MEASURE,
        .config = (char *)str_last_part(input->config->name),
        .config_text = input->config->text,
        .ranks = (uint32_t)input->ranks,
    };
    recording->path = options->record;
    if (options->anonymous)
        recording->named_path = str_format("%s.names", options->record);
    int rc = record_file_create(options->anonymous ? recording->named_path : options->record,
                                &provenance, &recording->file, err);
    if (rc)
        recording_destroy(recording);
    else
        *out_recording = recording;
    free(command);
    return rc;
}

void recording_add(struct recording *recording, const char *part, size_t length)
{
    struct err err = {0};
    if (record_file_append(recording->file, part, length, &err) && !recording->failed.code)
        recording->failed = err;
}

int recording_end(struct recording *recording, const struct root_view *view, struct err *err)
{
    struct gpu_result *unknown = mem_array(view->unmeasured_count, sizeof *unknown);
    struct record_survey survey = {
        .nodes = (uint32_t)view->node_count,
        .lost_ranks = (uint32_t)view->lost_ranks,
        .bare_nodes = (char **)view->bare_nodes,
        .bare_count = view->bare_count,
        .unknown = unknown,
    };
    for (size_t i = 0; i < view->unmeasured_count; i++) {
        const struct gpu_result *result = &view->unmeasured[i];
        if (!result->uuid)
            unknown[survey.unknown_count++] = *result;
        else if (result->status ==
                 GPU_LOST) { /* the record has its identity, and that it is lost */
            struct strbuf part = {0};
            record_put_gpu(&part, result, 0, NULL, 0, false);
            recording_add(recording, part.data, part.length);
            strbuf_fini(&part);
        }
    }
    if (recording->failed.code)
        *err = recording->failed;
    int rc = recording->failed.code ? err->code : record_file_finish(recording->file, &survey, err);
    free(unknown);
    return rc;
}

/* Pseudonyms of the names in a record. */
static int learn_recorded_names(const char *path, struct pseudonyms *names, struct err *err)
{
    struct record *record = NULL;
    int rc = record_open(path, &record, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < record_gpu_count(record); i++) {
        const struct gpu_result *gpu = &record_gpu(record, i)->gpu;
        pseudonyms_add(names, PSEUDONYM_NODE, gpu->node);
        pseudonyms_add(names, PSEUDONYM_SLOT, gpu->pci);
        pseudonyms_add(names, PSEUDONYM_GPU, gpu->uuid);
    }
    pseudonyms_seal(names);
    record_close(record);
    return 0;
}

int recording_anonymise(struct recording *recording, struct pseudonyms *names, struct err *err)
{
    struct pseudonyms *own = NULL;
    int rc = 0;
    if (!recording->named_path)
        return 0;
    if (!names) {
        own = pseudonyms_create();
        rc = learn_recorded_names(recording->named_path, own, err);
    }
    if (!rc)
        rc =
            record_anonymous_copy(recording->named_path, recording->path, names ? names : own, err);
    pseudonyms_destroy(own);
    return rc;
}

void recording_destroy(struct recording *recording)
{
    if (!recording)
        return;
    record_file_destroy(recording->file);
    if (recording->named_path)
        unlink(recording->named_path);
    free(recording->named_path);
    free(recording);
}
