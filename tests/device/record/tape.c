/* A record made by hand. */
#include "tape.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../check.h"

static void must(int rc, const struct err *err)
{
    if (rc)
        fail_msg("%s: %s", err->file, err->text);
}

/* A new file each time: file systems write out at once what is written over an old one. */
static void write_file(const char *path, const char *bytes, size_t length)
{
    unlink(path);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
}

void tape_begin_with(struct tape *tape, struct device_source *inner)
{
    struct err err = {0};
    struct device_look look = {0};
    *tape = (struct tape){.folder = "/tmp/gpumemtopo-tape-XXXXXX"};
    assert_non_null(mkdtemp(tape->folder));
    snprintf(tape->path, sizeof tape->path, "%s/record.gmr", tape->folder);
    tape->fd = memfd_create("tape", 0);
    assert_true(tape->fd >= 0);
    tape->source = device_source_record(inner, tape->fd);
    must(device_source_look(tape->source, 0, false, &look, &err), &err);
    device_look_fini(&look);
}

void tape_begin(struct tape *tape)
{
    struct err err = {0};
    struct device_source *inner = NULL;
    char fleet[] = "/tmp/gpumemtopo-fleet-XXXXXX";
    static const char text[] = "nodes:\n  - {name: n1, model: " TINY_MODEL ", gpus: 1}\n";
    int fd = mkstemp(fleet);
    assert_true(fd >= 0);
    close(fd);
    write_file(fleet, text, sizeof text - 1);
    must(device_source_sim(fleet, 1, 0, 1, &inner, &err), &err);
    unlink(fleet);
    tape_begin_with(tape, inner);
    must(device_source_open(tape->source, 0, &tape->device, &err), &err);
}

void tape_body(const struct tape *tape, struct strbuf *out_body)
{
    char block[4096];
    ssize_t n;
    for (off_t at = 0; (n = pread(tape->fd, block, sizeof block, at)) > 0; at += n)
        strbuf_append(out_body, block, (size_t)n);
    assert_int_equal(n, 0);
}

static void close_gpu(struct tape *tape)
{
    device_destroy(tape->device);
    device_source_destroy(tape->source);
    tape->device = NULL;
    tape->source = NULL;
}

void tape_write(struct tape *tape, const struct strbuf *body, enum gpu_status status)
{
    char *command[] = {(char *)"gpumemtopo-survey", (char *)"--record"};
    char *bare[] = {(char *)"login1"};
    struct gpu_result unknown = {
        .node = (char *)"n2", .rank = 1, .status = GPU_LOST, .reason = (char *)"silent"};
    const struct record_provenance provenance = {.version = (char *)"1.2.3",
                                                 .backend = (char *)"sim",
                                                 .command = command,
                                                 .command_count = COUNT_OF(command),
                                                 .seed = 7,
                                                 .profile = 1,
                                                 .config = (char *)"survey.yaml",
                                                 .config_text = (char *)"{}",
                                                 .ranks = 3};
    const struct gpu_result gpu = {.uuid = (char *)"GPU-1",
                                   .node = (char *)"n1",
                                   .pci = (char *)"0000:01:00.0",
                                   .index = 2,
                                   .rank = 5,
                                   .name = (char *)"Tiny",
                                   .model_key = (char *)"key",
                                   .status = status,
                                   .reason = (char *)(status ? "it broke" : NULL)};
    const struct record_survey survey = {.nodes = 4,
                                         .lost_ranks = 1,
                                         .bare_nodes = bare,
                                         .bare_count = 1,
                                         .unknown = &unknown,
                                         .unknown_count = 1};
    struct record_file *file = NULL;
    struct strbuf part = {0};
    struct err err = {0};
    bool closed = false;
    size_t whole = record_body_whole(body->data, body->length, &closed);
    for (uint32_t session = 0; session <= tape->again; session++)
        record_put_gpu(&part, &gpu, session, body->data, whole, closed);
    assert_false(part.failed);
    must(record_file_create(tape->path, &provenance, &file, &err), &err);
    must(record_file_append(file, part.data, part.length, &err), &err);
    must(record_file_finish(file, &survey, &err), &err);
    record_file_destroy(file);
    strbuf_fini(&part);
}

void tape_end(struct tape *tape, enum gpu_status status)
{
    struct strbuf body = {0};
    close_gpu(tape);
    tape_body(tape, &body);
    tape_write(tape, &body, status);
    strbuf_fini(&body);
}

void tape_write_bytes(struct tape *tape, const char *bytes, size_t length)
{
    write_file(tape->path, bytes, length);
}

void tape_rewind(struct tape *tape)
{
    struct err err = {0};
    close_gpu(tape);
    must(device_source_replay(tape->path, 0, 1, &tape->source, &err), &err);
    assert_int_equal(device_source_count(tape->source), 1);
    must(replay_check(tape->source, &err), &err);
}

struct device *tape_replay(struct tape *tape)
{
    struct err err = {0};
    tape_rewind(tape);
    must(device_source_open(tape->source, 0, &tape->device, &err), &err);
    return tape->device;
}

void tape_read(const struct tape *tape, struct strbuf *out_bytes)
{
    char block[4096];
    FILE *file = fopen(tape->path, "rb");
    assert_non_null(file);
    for (size_t n; (n = fread(block, 1, sizeof block, file)) > 0;)
        strbuf_append(out_bytes, block, n);
    fclose(file);
}

void tape_fini(struct tape *tape)
{
    close_gpu(tape);
    close(tape->fd);
    unlink(tape->path);
    assert_int_equal(rmdir(tape->folder), 0);
}
