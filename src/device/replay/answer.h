/* What a device answered, packed for the record. */
#ifndef GPUMEMTOPO_DEVICE_REPLAY_ANSWER_H
#define GPUMEMTOPO_DEVICE_REPLAY_ANSWER_H

#include "base/err.h"
#include "base/str.h"
#include "device/device.h"
#include "device/straight.h"
#include "schema/wire.h"

uint32_t answer_get_u32(struct wire_reader *reader); /* bad if it is larger */

/* A count of items that take at least item_bytes each. */
uint32_t answer_get_count(struct wire_reader *reader, size_t item_bytes);

void answer_put_limits(struct strbuf *buffer, const struct device_limits *limits);
void answer_get_limits(struct wire_reader *reader, struct device_limits *out_limits);

void answer_put_clocks(struct strbuf *buffer, const struct device_clocks *clocks);
void answer_get_clocks(struct wire_reader *reader, struct device_clocks *out_clocks);

void answer_put_link(struct strbuf *buffer, const struct device_link *link);
void answer_get_link(struct wire_reader *reader, struct device_link *out_link);

void answer_put_peer(struct strbuf *buffer, const struct device_peer_answer *answer);
void answer_get_peer(struct wire_reader *reader, struct device_peer_answer *out_answer);
void answer_put_code(struct strbuf *buffer, const struct device_code_answer *answer);
void answer_get_code(struct wire_reader *reader, struct device_code_answer *out_answer);
void answer_put_share(struct strbuf *buffer, const struct device_host_share_answer *answer);
void answer_get_share(struct wire_reader *reader, struct device_host_share_answer *out_answer);

void answer_put_straight(struct strbuf *buffer, const struct device_straight_answer *answer);
void answer_get_straight(struct wire_reader *reader, struct device_straight_answer *out_answer);

/* The map of a test with so many patterns. */
void answer_put_map(struct strbuf *buffer, uint32_t patterns, const struct device_memory_map *map);

/* Reads it back. out_map: empty; released with device_memory_map_fini, also when bad. NULL: only
 * checks. */
void answer_get_map(struct wire_reader *reader, uint64_t patterns,
                    struct device_memory_map *out_map);

/* The map of the SMs. */
void answer_put_sm_map(struct strbuf *buffer, const struct device_sm_map_answer *answer);

/* Reads it back. out_answer: empty; released with device_sm_map_answer_fini, also when bad. NULL:
 * only checks. */
void answer_get_sm_map(struct wire_reader *reader, struct device_sm_map_answer *out_answer);

/* The places and cycles of clusters (answer_cluster.c). */
void answer_put_cluster(struct strbuf *buffer, const struct device_cluster *cluster,
                        const struct device_cluster_answer *answer);

/* Reads them back: bad unless all SMs are below sm_count. out_answer: empty; released with
 * device_cluster_answer_fini, also when bad. NULL: only checks. */
void answer_get_cluster(struct wire_reader *reader, const struct device_cluster *cluster,
                        uint32_t sm_count, struct device_cluster_answer *out_answer);

void answer_put_bulk(struct strbuf *buffer, const struct device_bulk_answer *answer);
void answer_get_bulk(struct wire_reader *reader, struct device_bulk_answer *out_answer);

/* The samples of a load. */
void answer_put_load(struct strbuf *buffer, const struct device_load_answer *answer);

/* Reads it back. out_answer: empty; released with device_load_answer_fini, also when bad. NULL:
 * only checks. */
void answer_get_load(struct wire_reader *reader, struct device_load_answer *out_answer);

/* The samples of one job, without what follows from the job: histograms as gaps and counts, kept
 * latencies as differences. */
void answer_put_job(struct strbuf *buffer, const struct device_job *job,
                    const struct device_answer *answer);

/* Reads them back: bad unless they are samples of the job's timed steps, on SMs that the device
 * has. out_answer: zeroed; released with device_answers_fini, also when bad. NULL: only checks. */
void answer_get_job(struct wire_reader *reader, const struct device_job *job, uint32_t sm_count,
                    struct device_answer *out_answer);

/* An error: code and text. */
void answer_put_err(struct strbuf *buffer, int code, const char *text);
int answer_get_err(struct wire_reader *reader, struct err *err); /* the code; -ENOMEM; 0 when bad */

/* The check of a unit. Of the places only those are listed that have wrong hashes, or another
 * number of hashes than the first one. */
void answer_put_check(struct strbuf *buffer, const struct device_check_answer *answer);

/* Reads it back. out_answer: empty; released with device_check_answer_fini, also when bad. NULL:
 * only checks. */
void answer_get_check(struct wire_reader *reader, struct device_check_answer *out_answer);

#endif
