/* A record made by hand: one simulated GPU behind the recorder, and the file of what it said. */
#ifndef GPUMEMTOPO_TESTS_DEVICE_RECORD_TAPE_H
#define GPUMEMTOPO_TESTS_DEVICE_RECORD_TAPE_H

#include "device/record/record.h"
#include "device/record/replay.h"

struct tape {
    char folder[64], path[96];
    int fd;     /* what the recorder writes to */
    bool again; /* the record has a second measurement with the same answers */
    struct device_source *source;
    struct device *device;
};

/* A tiny GPU, opened, its calls recorded. */
void tape_begin(struct tape *tape);

/* The same with another source of one GPU, looked at but not opened. */
void tape_begin_with(struct tape *tape, struct device_source *inner);

/* What was recorded so far; the caller releases it. */
void tape_body(const struct tape *tape, struct strbuf *out_body);

/* Closes the GPU and writes the file: its body, cut to whole entries, and how it ended. */
void tape_end(struct tape *tape, enum gpu_status status);
void tape_write(struct tape *tape, const struct strbuf *body, enum gpu_status status);
void tape_write_bytes(struct tape *tape, const char *bytes, size_t length);

/* Opens the file again and checks it, then its only GPU. */
void tape_rewind(struct tape *tape);
struct device *tape_replay(struct tape *tape);

/* Closes all and removes the folder. */
void tape_fini(struct tape *tape);

/* The whole file; the caller releases it. */
void tape_read(const struct tape *tape, struct strbuf *out_bytes);

#endif
