/* The parts of a record's file, as entries: provenance, a GPU's head, the survey, the end. */
#ifndef GPUMEMTOPO_DEVICE_REPLAY_PARTS_H
#define GPUMEMTOPO_DEVICE_REPLAY_PARTS_H

#include "device/replay/entry.h"
#include "device/replay/record.h"

/* The first bytes of every record; the version follows as four bytes. They contain line ends and an
 * end-of-text character, so that a copy in text mode is detected. */
enum { RECORD_MAGIC_BYTES = 8, RECORD_HEAD_BYTES = RECORD_MAGIC_BYTES + 4 };
extern const char replay_magic[RECORD_MAGIC_BYTES];

/* The head of one GPU; its body of body_bytes follows. */
struct record_gpu {
    struct gpu_result gpu; /* identity, rank, status, reason */
    uint32_t session;      /* as device_source.session */
    bool closed;           /* all calls are there */
    uint64_t body_offset;  /* in the file */
    uint64_t body_bytes;
};

void parts_put_provenance(struct strbuf *buffer, const struct record_provenance *provenance);
void parts_put_survey(struct strbuf *buffer, const struct record_survey *survey);
void parts_put_end(struct strbuf *buffer, uint64_t file_bytes); /* bytes before it */

/* Read the payload of an entry. The result must be zeroed before; its fini releases it, also when
 * the reader is bad. */
void parts_get_provenance(struct wire_reader *reader, struct record_provenance *out_provenance);
void parts_get_gpu(struct wire_reader *reader, struct record_gpu *out_gpu);
void parts_get_survey(struct wire_reader *reader, struct record_survey *out_survey);

#endif
