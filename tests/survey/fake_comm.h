/* A comm for tests: counts what is sent to each rank; nothing comes back by itself. */
#ifndef GPUMEMTOPO_TESTS_SURVEY_FAKE_COMM_H
#define GPUMEMTOPO_TESTS_SURVEY_FAKE_COMM_H

#include "../check.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "survey/comm/comm.h"
#include "survey/comm/message.h"

enum { RANKS_MAX = 8, TYPES = MESSAGE_BEAT + 1, FAKE_START_TIMEOUT_S = 20 };

struct fake {
    struct comm base;
    int sent[RANKS_MAX][TYPES];
    int broken;                  /* the rank to which nothing can be sent; -1: none */
    enum listing_status listing; /* last announced, */
    struct err why;              /* with this error */
    double elapsed_s;            /* of the last result, */
    enum gpu_status status;      /* its status, and how its first worker ended */
    enum gpu_status first_status;
    char first_reason[128];
};

static void fake_take_announce(struct fake *fake, const struct frame *frame)
{
    struct announce announce = {0};
    struct err err = {0};
    assert_int_equal(announce_decode(frame, &announce, &err), 0);
    fake->listing = announce.listing;
    fake->why = announce.err;
    announce_fini(&announce);
}

static void fake_take_result(struct fake *fake, const struct frame *frame)
{
    struct result_message message = {0};
    struct err err = {0};
    assert_int_equal(message_result_decode(frame, &message, &err), 0);
    fake->elapsed_s = message.result.elapsed_s;
    fake->status = message.result.status;
    fake->first_status = message.result.run.first_status;
    snprintf(fake->first_reason, sizeof fake->first_reason, "%s",
             message.result.run.first_reason ? message.result.run.first_reason : "");
    message_result_fini(&message);
}

static int fake_send(struct comm *comm, int to, struct strbuf *bytes, struct err *err)
{
    struct fake *fake = (struct fake *)comm;
    struct frame_reader reader = {0};
    struct frame frame;
    frame_reader_add(&reader, bytes->data, bytes->length);
    assert_int_equal(frame_reader_next(&reader, &frame, err), 1);
    fake->sent[to][frame.type]++;
    if (frame.type == MESSAGE_ANNOUNCE)
        fake_take_announce(fake, &frame);
    if (frame.type == MESSAGE_RESULT)
        fake_take_result(fake, &frame);
    frame_reader_fini(&reader);
    strbuf_fini(bytes);
    return to == fake->broken ? err_set(err, -EIO, "no way to rank %d", to) : 0;
}

static int fake_receive(struct comm *comm, int *out_from, struct strbuf *out_bytes, struct err *err)
{
    (void)comm, (void)out_from, (void)out_bytes, (void)err;
    return 0;
}

static int fake_flush(struct comm *comm)
{
    (void)comm;
    return 0;
}

static void fake_destroy(struct comm *comm)
{
    (void)comm;
}

static const struct comm_ops fake_ops = {fake_send, fake_receive, fake_flush, fake_destroy};

/* rank: whose it is; -1: nobody's, so that all messages pass through fake_send. */
static void fake_init(struct fake *fake, int rank, int size)
{
    memset(fake, 0, sizeof *fake);
    fake->broken = -1;
    const struct comm_place place = {
        .task = rank, .tasks = size, .job = "", .start_timeout_s = FAKE_START_TIMEOUT_S};
    comm_init(&fake->base, &fake_ops, rank, size, &place);
}

#endif
