/* Requests to a device as numbers: packed for the record, hashed to be found again, and described
 * in words. */
#ifndef GPUMEMTOPO_DEVICE_REPLAY_ASK_H
#define GPUMEMTOPO_DEVICE_REPLAY_ASK_H

#include <stdint.h>

#include "base/str.h"
#include "device/device.h"
#include "device/shared_load.h"
#include "device/straight.h"
#include "schema/wire.h"

/* The calls of the device interface. The numbers are part of the format. */
enum ask_call {
    ASK_LOOK,
    ASK_OPEN,
    ASK_IDENTIFY,
    ASK_BATCH,
    ASK_STREAM,
    ASK_CLOCKS,
    ASK_HEALTH,
    ASK_LINK,
    ASK_MEMORY,
    ASK_CHECK,
    ASK_LOAD,
    ASK_PEERS,
    ASK_PEER,
    ASK_SHARE,
    ASK_SM_MAP,
    ASK_CODE,
    ASK_SHARED_LOAD,
    ASK_STRAIGHT,
    ASK_CLUSTER,
    ASK_BULK,
    ASK_CALL_COUNT,
};
const char *ask_call_name(enum ask_call call);

/* How many tables of facts the answer has. An error has them too, with what was known before it. */
size_t ask_tables(enum ask_call call);

enum {
    ASK_STEP_FIELDS = 13,
    ASK_JOB_FIELDS = 10 + DEVICE_STEPS_MAX * ASK_STEP_FIELDS,
    ASK_STREAM_FIELDS = 8,
    ASK_MEMORY_FIELDS = 3,
    ASK_CHECK_FIELDS = 2,
    ASK_LOAD_FIELDS = 1,
    ASK_PEER_FIELDS = 3,
    ASK_SHARE_FIELDS = 2,
    ASK_SM_MAP_FIELDS = 6,
    ASK_CODE_FIELDS = 5,
    ASK_SHARED_LOAD_FIELDS = 5,
    ASK_STRAIGHT_FIELDS = 4 * DEVICE_STRAIGHT_JOBS,
    ASK_CLUSTER_FIELDS = 5,
    ASK_BULK_FIELDS = 5,
};

/* A job (and how many of its batch run at once) or a stream, field by field. Requests for the same
 * work have the same fields:
 * - agents and steps beyond their count are 0;
 * - the random order of an array does not count, nor where it begins: the seed is replaced by the
 *   number of the first step with the same order, and the start is counted from that step's start;
 * - the place of a job's arrays in global memory counts only for arrays that begin at 0: any other
 *   place only keeps jobs apart. */
struct ask {
    enum ask_call call;
    uint64_t fields[ASK_JOB_FIELDS];
};
struct ask ask_of_job(const struct device_job *job, uint32_t at_once);
struct ask ask_of_stream(const struct device_stream *stream);
struct ask ask_of_memory_test(const struct device_memory_test *test); /* the seed does not count */
struct ask ask_of_check(const struct device_check *check);            /* likewise */
struct ask ask_of_call(enum ask_call call);                           /* a call without fields */
/* The length of a load does not count. */
struct ask ask_of_load(const struct device_load *load);
struct ask ask_of_peer_test(const struct device_peer_test *test);
struct ask ask_of_host_share(const struct device_host_share *asked);
struct ask ask_of_sm_map(const struct device_sm_map *map, uint32_t sm_count); /* turns as a hash */
struct ask ask_of_code(const struct device_code *code); /* its instruction by name */
struct ask ask_of_shared_load(const struct device_shared_load *load);
struct ask ask_of_straight(const struct device_straight *straight);
struct ask ask_of_cluster(const struct device_cluster *cluster);
struct device_cluster ask_to_cluster(const struct ask *ask);
struct ask ask_of_bulk(const struct device_bulk *bulk);
struct ask ask_of_call(enum ask_call call); /* a call without fields */

/* Whether requests of a call differ by fields. */
bool ask_has_fields(enum ask_call call);

/* A job from its fields. False for numbers that no job has. */
bool ask_to_job(const struct ask *ask, struct device_job *out_job);

/* Equal for equal requests. */
uint64_t ask_key(const struct ask *ask);

/* Writes the differences from `last`, then sets `last` to this request. Successive requests differ
 * in few fields. */
void ask_put(struct strbuf *buffer, const struct ask *ask, struct ask *last);
void ask_get(struct wire_reader *reader, enum ask_call call, struct ask *last);

/* "alone: warm 64 KiB global_ca by 32 B, chase 2048 loads of it". */
void ask_describe(const struct ask *ask, struct strbuf *out_text);

#endif
