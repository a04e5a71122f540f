/* Messages between ranks and rank 0, and their binary form.
 *
 * rank -> 0: ANNOUNCE, then RESULT for each GPU assigned to it, and for each that was measured
 * again. 0 -> rank: ASSIGN, AGAIN (measure some GPUs again), STOP (end the workers, report what
 * there is), QUIT. BEAT goes both ways: the sender lives; rank 0 answers each. The BEAT of a rank
 * says what its slowest worker is doing; that of rank 0 is empty. */
#ifndef GPUMEMTOPO_SURVEY_COMM_MESSAGE_H
#define GPUMEMTOPO_SURVEY_COMM_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "inventory/gpu_result.h"
#include "inventory/wire/frame.h"
#include "schema/schema.h"

enum message_type {
    MESSAGE_ANNOUNCE = 1,
    MESSAGE_ASSIGN,
    MESSAGE_RESULT,
    MESSAGE_STOP,
    MESSAGE_QUIT,
    MESSAGE_BEAT,
    MESSAGE_AGAIN,
};

/* How listing the GPUs went. */
enum listing_status {
    LISTING_OK,
    LISTING_NO_DEVICE, /* no driver, no GPU, or no backend for the GPU */
    LISTING_BAD_INPUT, /* the fleet file or the record is bad */
    LISTING_FAILED,    /* the listing worker crashed, hung, ... */
};

/* Zero-initialised is empty. */
struct announce {
    char *host;
    char *boot_id;    /* distinguishes machines of the same name; NULL: unknown */
    uint32_t at_once; /* workers that the rank runs at the same time; 0: all */
    enum listing_status listing;
    enum gpu_status failed_as; /* LISTING_FAILED: timed_out, crashed, failed */
    struct err err;            /* not LISTING_OK: why */
    uint32_t gpus_allocated;   /* as in struct gpu_run */
    struct gpu_result *gpus;   /* identity only */
    size_t gpu_count, gpu_capacity;
    char **bare_nodes; /* nodes without a GPU, as the source says */
    size_t bare_count, bare_capacity;
    struct gpu_result *dead; /* nodes whose driver does not answer: node, reason, gpus_allocated */
    size_t dead_count, dead_capacity;
};
void announce_encode(const struct announce *announce, struct strbuf *buffer);
int announce_decode(const struct frame *frame, struct announce *out_announce, struct err *err);
void announce_fini(struct announce *announce);

/* Zero-initialised is empty. */
struct assignment {
    double time_limit_s;
    double stagger_s;      /* the loads of different nodes begin within this time */
    uint64_t region_bytes; /* of the memory test */
    uint32_t *positions;   /* in the announced list */
    size_t count;
    char *spool;  /* folder for the results; NULL: none */
    char *survey; /* its name in spool files */
    char *owner;  /* the file to lock there */
};
void assignment_encode(const struct assignment *assignment, struct strbuf *buffer);
int assignment_decode(const struct frame *frame, struct assignment *out_assignment,
                      struct err *err);
void assignment_fini(struct assignment *assignment);

/* RESULT: the GPU's position in the announced list, its result, and its part of the record if the
 * survey is recorded. unspooled: why the result could not be spooled; NULL: it is spooled. */
struct result_message {
    uint32_t position;
    uint32_t session; /* of device_source */
    struct gpu_result result;
    const char *record; /* after decoding, points into the frame */
    size_t record_bytes;
    char *unspooled;
};
void message_result_encode(const struct result_message *message, struct strbuf *buffer);
int message_result_decode(const struct frame *frame, struct result_message *out_message,
                          struct err *err);
void message_result_fini(struct result_message *message); /* for a message that was read */

/* AGAIN: one GPU to be measured again. */
struct again {
    uint32_t position; /* in the announced list */
    char *probes;      /* comma-separated */
};
void again_encode(const struct again *again, struct strbuf *buffer);
int again_decode(const struct frame *frame, struct again *out_again, struct err *err);
void again_fini(struct again *again); /* for one that was read */

/* BEAT of a rank: the worker that runs longest; probe "": none runs. */
struct doing {
    uint32_t position;
    double since_s; /* seconds since it started */
    char probe[48]; /* the probe that it began last */
};
void doing_encode(const struct doing *doing, struct strbuf *buffer);
int doing_decode(const struct frame *frame, struct doing *out_doing, struct err *err);

/* QUIT: says whether ranks are lost; if so, no rank should wait for all others. */
void message_quit_encode(bool lost_ranks, struct strbuf *buffer);
int message_quit_decode(const struct frame *frame, bool *out_lost_ranks, struct err *err);

/* Parts that the worker's messages share: a GPU's identity (uuid, node, pci, index, name,
 * model_key) and a node whose driver does not answer (node, reason, gpus_allocated), both of a
 * struct gpu_result; and an error. */
extern const struct schema message_identity, message_dead_node;
void message_put_err(struct strbuf *buffer, const struct err *err);
void message_get_err(struct wire_reader *reader, struct err *out_err);

/* Reads a frame that has nothing but the members that the schema describes, into a zeroed struct.
 * After an error, which names the schema, the struct is released. */
int message_decode(const struct schema *schema, const struct frame *frame, void *out_object,
                   struct err *err);

#endif
