/* gpumemtopo-report rma FILE UUID: one archive about one GPU, for its vendor. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/out_file.h"
#include "base/yaml.h"
#include "report/command.h"
#include "report/record_bytes.h"
#include "report/rma.h"
#include "report/tar.h"

/* Reads a record and checks that the GPU is in it: its UUID is stored as text. */
static int load_record(const char *path, const char *uuid, struct strbuf *out, struct err *err)
{
    int rc = yaml_load_text(path, &yaml_limits_plain, out, err);
    if (rc)
        return rc;
    if (!report_record_begins(out))
        return err_set_at(err, -EINVAL, path, 0, 0,
                          "is not a record of gpumemtopo-survey --record");
    if (!memmem(out->data, out->length, uuid, strlen(uuid)))
        return err_set_at(
            err, -EINVAL, path, 0, 0,
            "has no record of %s: give the record of the survey that made this inventory", uuid);
    return 0;
}

/* "gpumemtopo-rma-GPU-...", of characters that are harmless in a file name. NULL: out of memory. */
static char *stem_of(const char *uuid)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-";
    enum { UUID_CHARS = 60 };
    char *stem = str_format("gpumemtopo-rma-%.*s", UUID_CHARS, uuid);
    for (char *at = stem; at && *at; at++)
        *at = strchr(allowed, *at) ? *at : '_';
    return stem;
}

static int add_member(struct strbuf *archive, const char *stem, const char *name, int64_t time_s,
                      const struct strbuf *content, struct err *err)
{
    char *path = content->failed ? NULL : str_format("%s/%s", stem, name);
    if (!path)
        return err_no_memory(err);
    int rc =
        tar_add(archive, path, time_s, content->data ? content->data : "", content->length, err);
    free(path);
    return rc;
}

/* record NULL: none. */
static int make_archive(struct rma *rma, const char *stem, const struct strbuf *record,
                        struct strbuf *archive, struct err *err)
{
    struct strbuf readme = {0}, json = {0};
    int64_t time_s = 0; /* of the survey, so that the archive is the same each time */
    clock_parse_stamp(rma->inventory->generated, &time_s);
    rma->has_record = record != NULL;
    rma->record_is_complete = record && report_record_is_complete(record);
    rma_put_readme(rma, &readme);
    rma_put_json(rma, &json);
    int rc = add_member(archive, stem, "README.txt", time_s, &readme, err);
    if (!rc)
        rc = add_member(archive, stem, "gpu.json", time_s, &json, err);
    if (!rc && record)
        rc = add_member(archive, stem, "record.gmr", time_s, record, err);
    tar_end(archive);
    strbuf_fini(&readme);
    strbuf_fini(&json);
    return rc;
}

static int write_archive(const struct command_options *options, const char *stem,
                         struct strbuf *archive)
{
    char *path = options->output ? str_copy(options->output) : str_format("%s.tar", stem);
    int code = EXIT_NO_REPORT;
    if (!path) {
        strbuf_fini(archive);
        log_error("out of memory");
        return code;
    }
    code = command_write(archive, path);
    if (code == EXIT_DONE && strcmp(path, "-") != 0)
        log_info("written to %s", path);
    free(path);
    return code;
}

static int pack(const struct command_options *options, const struct inventory *inventory,
                const struct inventory_gpu *gpu, struct err *err)
{
    struct strbuf archive = {0}, record = {0};
    struct rma rma = {0};
    char *stem = stem_of(gpu->uuid);
    int code = EXIT_NO_REPORT;
    int rc = stem ? 0 : err_no_memory(err);
    if (!rc && options->record)
        rc = load_record(options->record, gpu->uuid, &record, err);
    if (!rc)
        rc = rma_init(&rma, inventory, gpu, err);
    if (!rc)
        rc = make_archive(&rma, stem, options->record ? &record : NULL, &archive, err);
    if (!rc && rma.has_record && !rma.record_is_complete)
        log_warning("%s is cut off, so the vendor cannot replay it; README.txt says so",
                    options->record);
    strbuf_fini(&record);
    rma_fini(&rma);
    if (rc) {
        strbuf_fini(&archive);
        log_failure(err);
        code = command_exit_code(rc);
    } else
        code = write_archive(options, stem, &archive);
    free(stem);
    return code;
}

/* A record has names, unless it was made without them, like the inventory. */
static int check_names(const struct command_options *options, const struct inventory *inventory,
                       struct err *err)
{
    if (!options->anonymous || !options->record || inventory->anonymous)
        return 0;
    return err_set(err, -EINVAL,
                   "the record has names: make both without them with gpumemtopo-survey "
                   "--anonymous --record, or leave out --record");
}

int command_rma(const struct command_options *options)
{
    struct inventory inventory;
    const struct inventory_gpu *gpu = NULL;
    struct err err = {0};
    if (options->record && options->output && out_file_replaces(options->output, options->record)) {
        log_error("--record and --output name the same file");
        return EXIT_BAD_INPUT;
    }
    int code = command_read(options->files[0], &inventory);
    if (code)
        return code;
    int rc = check_names(options, &inventory, &err);
    if (!rc)
        rc = rma_find_gpu(&inventory, options->files[1], &gpu, &err);
    /* The GPU is found by its name; its entry stays where it is. */
    if (!rc && !inventory.anonymous &&
        command_anonymise(options, (struct inventory *const[]){&inventory}, 1, NULL))
        rc = err_no_memory(&err);
    if (rc) {
        err_prefix(&err, "%s", options->files[0]);
        log_failure(&err);
        code = command_exit_code(rc);
    } else
        code = pack(options, &inventory, gpu, &err);
    inventory_fini(&inventory);
    return code;
}
