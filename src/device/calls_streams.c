/* The calls that measure bandwidth: streams, work by ticket, copies of a node and links to other
 * GPUs. */
#include "device/call_row.h"

#include <errno.h>

/* Streams, and copies of all GPUs of a node at once. */

static const char *const stream_names[] = {"read",      "write", "copy", "h2d",  "d2h",
                                           "both_ways", "mul",   "add",  "triad"};
static const struct field stream_rows[] = {
    {FIELD_CHOICE(struct device_stream, kind, stream_names)},
    {FIELD_CHOICE(struct device_stream, path, device_path_names)},
    {FIELD(struct device_stream, footprint_bytes, U64)},
    {FIELD(struct device_stream, total_bytes, U64)},
    {FIELD(struct device_stream, width_bytes, U32)},
    {FIELD(struct device_stream, threads, U32)},
    {FIELD(struct device_stream, blocks, U32)},
    {FIELD(struct device_stream, unroll, U32)},
};
static const struct fields stream_fields = {FIELDS(struct device_stream, stream_rows)};
static const struct field stream_answer_rows[] = {
    {FIELD(struct device_stream_answer, bytes, U64)},
    {FIELD(struct device_stream_answer, elapsed_ns, U64)},
};
static const struct fields stream_answer_fields = {
    FIELDS(struct device_stream_answer, stream_answer_rows)};

static int stream_check(const struct device *device, const void *request, struct err *err)
{
    const struct device_stream *stream = request;
    if ((unsigned)stream->kind >= DEVICE_STREAM_KIND_COUNT)
        return err_set(err, -EINVAL, "no such kind of stream");
    /* One access of every thread of a block to every array. */
    uint64_t least =
        (uint64_t)stream->threads * stream->width_bytes * device_stream_arrays(stream->kind);
    bool partly = !device_stream_uses_host(stream->kind) && stream->path == DEVICE_GLOBAL_CG &&
                  stream->total_bytes >= least;
    if (!stream->footprint_bytes || (stream->total_bytes < stream->footprint_bytes && !partly))
        return err_set(err, -EINVAL, "a stream passes over its footprint at least once");
    if (device_stream_uses_host(stream->kind))
        return 0;
    bool written = stream->kind != DEVICE_STREAM_READ;
    if ((unsigned)stream->path >= DEVICE_HOST ||
        (written && stream->path != DEVICE_GLOBAL_CA && stream->path != DEVICE_GLOBAL_CG &&
         stream->path != DEVICE_SHARED))
        return err_set(err, -EINVAL, "this path cannot be streamed");
    uint32_t width = stream->width_bytes;
    if (width < 1 || width > 16 || (width & (width - 1)))
        return err_set(err, -EINVAL, "accesses are 1, 2, 4, 8 or 16 bytes wide, not %u", width);
    if (!stream->threads)
        return err_set(err, -EINVAL, "a block has at least one thread");
    uint64_t room = device_path_bytes(&device->limits, stream->path);
    if (room && stream->footprint_bytes > room)
        return err_set(err, -EINVAL, "the footprint is larger than the memory's %llu bytes",
                       (unsigned long long)room);
    return 0;
}

static const struct field tickets_rows[] = {
    {FIELD_CHOICE(struct device_tickets, kind, stream_names)},
    {FIELD(struct device_tickets, footprint_bytes, U64)},
    {FIELD(struct device_tickets, total_bytes, U64)},
    {FIELD(struct device_tickets, threads, U32)},
    {FIELD(struct device_tickets, blocks_per_sm, U32)},
    {FIELD(struct device_tickets, unroll, U32)},
    {FIELD(struct device_tickets, chunk_bytes, U32)},
    {FIELD(struct device_tickets, equal_percent, U32)},
    {FIELD(struct device_tickets, ends, BOOL)},
};
static const struct fields tickets_fields = {FIELDS(struct device_tickets, tickets_rows)};
static const struct field tickets_answer_rows[] = {
    {FIELD(struct device_tickets_answer, bytes, U64)},
    {FIELD(struct device_tickets_answer, elapsed_ns, U64)},
    {FIELD_COUNT(struct device_tickets_answer, end_count)},
    {FIELD_NUMBER_LIST(struct device_tickets_answer, end_ns, end_count, U64), .form = FIELD_NEAR},
};
static const struct fields tickets_answer_fields = {
    FIELDS(struct device_tickets_answer, tickets_answer_rows)};

static int tickets_check(const struct device *device, const void *request, struct err *err)
{
    enum { WARP = 32, ACCESS_BYTES = 16 };
    const struct device_tickets *tickets = request;
    if ((unsigned)tickets->kind > DEVICE_STREAM_COPY)
        return err_set(err, -EINVAL, "only reads, writes and copies go by ticket");
    if (!tickets->threads || tickets->threads % WARP || !tickets->blocks_per_sm)
        return err_set(err, -EINVAL, "%u blocks of %u threads", tickets->blocks_per_sm,
                       tickets->threads);
    if (!tickets->unroll || tickets->unroll > 8 || (tickets->unroll & (tickets->unroll - 1)))
        return err_set(err, -EINVAL, "1, 2, 4 or 8 accesses in flight, not %u", tickets->unroll);
    if (!tickets->chunk_bytes || tickets->chunk_bytes % ACCESS_BYTES ||
        tickets->footprint_bytes <
            (uint64_t)device_stream_arrays(tickets->kind) * tickets->chunk_bytes)
        return err_set(err, -EINVAL, "chunks of %u bytes in %llu", tickets->chunk_bytes,
                       (unsigned long long)tickets->footprint_bytes);
    uint64_t most = tickets->total_bytes > tickets->footprint_bytes ? tickets->total_bytes
                                                                    : tickets->footprint_bytes;
    if (tickets->equal_percent > 100 || most / tickets->chunk_bytes > UINT32_MAX / 2)
        return err_set(err, -EINVAL, "too many tickets, or more than 100 %%");
    uint64_t room = device->limits.global_bytes;
    if (room && tickets->footprint_bytes > room)
        return err_set(err, -EINVAL, "the footprint is larger than the memory's %llu bytes",
                       (unsigned long long)room);
    return 0;
}

static bool tickets_fits(const void *asked, const void *answer, uint32_t sm_count)
{
    const struct device_tickets *tickets = asked;
    return ((const struct device_tickets_answer *)answer)->end_count ==
           (tickets->ends ? sm_count : 0);
}

static const struct field share_rows[] = {
    {FIELD_CHOICE(struct device_host_share, kind, stream_names)},
    {FIELD(struct device_host_share, bytes, U64)},
};
static const struct fields share_fields = {FIELDS(struct device_host_share, share_rows)};
static const struct field share_answer_rows[] = {
    {FIELD(struct device_host_share_answer, gpus, U32)},
    {FIELD(struct device_host_share_answer, bytes, U64)},
    {FIELD(struct device_host_share_answer, elapsed_ns, U64)},
};
static const struct fields share_answer_fields = {
    FIELDS(struct device_host_share_answer, share_answer_rows)};

static int share_check(const struct device *device, const void *request, struct err *err)
{
    const struct device_host_share *asked = request;
    (void)device;
    if (!device_stream_uses_host(asked->kind) || !asked->bytes)
        return err_set(err, -EINVAL, "not a copy between host and GPU");
    return 0;
}

const struct device_call_row device_run_stream_row = {
    ROW("stream", &stream_fields, &stream_answer_fields, -ENOSYS, "this device has no streams"),
    .check = stream_check};
CALL_FUNCTION(device_stream, DEVICE_CALL_STREAM, struct device_stream, struct device_stream_answer)

const struct device_call_row device_stream_tickets_row = {
    ROW("tickets", &tickets_fields, &tickets_answer_fields, -ENOSYS,
        "this device hands out no work by ticket"),
    .check = tickets_check, .fits = tickets_fits};
CALL_FUNCTION(device_stream_tickets, DEVICE_CALL_TICKETS, struct device_tickets,
              struct device_tickets_answer)
CALL_FINI(device_tickets_answer_fini, struct device_tickets_answer, tickets_answer_fields)

const struct device_call_row device_share_host_row = {ROW("share", &share_fields,
                                                          &share_answer_fields, -ENOTSUP,
                                                          "other GPUs of the node are not known"),
                                                      .check = share_check};
CALL_FUNCTION(device_share_host, DEVICE_CALL_SHARE, struct device_host_share,
              struct device_host_share_answer)

/* The link to another GPU. How long to wait does not count. */

static const struct field peer_rows[] = {
    {FIELD(struct device_peer_test, peer, U32)},
    {FIELD(struct device_peer_test, bytes, U64)},
    {FIELD(struct device_peer_test, loads, U32)},
};
static const struct fields peer_fields = {FIELDS(struct device_peer_test, peer_rows)};
static const struct field peer_answer_rows[] = {
    {FIELD(struct device_peer_answer, copy_read_ns, U64)},
    {FIELD(struct device_peer_answer, copy_write_ns, U64)},
    {FIELD(struct device_peer_answer, copy_both_ns, U64)},
    {FIELD(struct device_peer_answer, mapped, BOOL)},
    {FIELD(struct device_peer_answer, read_ns, U64)},
    {FIELD(struct device_peer_answer, write_ns, U64)},
    {FIELD(struct device_peer_answer, both_ns, U64)},
    {FIELD(struct device_peer_answer, cycles, U64)},
    {FIELD(struct device_peer_answer, chase_ns, U64)},
    {FIELD(struct device_peer_answer, wrong_words, U64)},
};
static const struct fields peer_answer_fields = {
    FIELDS(struct device_peer_answer, peer_answer_rows)};

static int peer_check(const struct device *device, const void *request, struct err *err)
{
    const struct device_peer_test *test = request;
    (void)device;
    if (test->peer >= DEVICE_PEERS_MAX)
        return err_set(err, -EINVAL, "at most %d GPUs of a node are looked at", DEVICE_PEERS_MAX);
    if (test->bytes < DEVICE_REGION_MIN || test->bytes % DEVICE_REGION_MIN || !test->loads)
        return err_set(err, -EINVAL, "transfers are multiples of %d MiB, and loads at least 1",
                       DEVICE_REGION_MIN >> 20);
    return 0;
}

const struct device_call_row device_test_peer_row = {ROW("peer", &peer_fields, &peer_answer_fields,
                                                         -ENOTSUP,
                                                         "links to other GPUs cannot be measured"),
                                                     .check = peer_check};
CALL_FUNCTION(device_test_peer, DEVICE_CALL_PEER, struct device_peer_test,
              struct device_peer_answer)
