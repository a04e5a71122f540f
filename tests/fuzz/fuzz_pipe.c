/* What comes out of a worker's pipe: the first byte chooses listing or measuring, then raw
 * bytes, frames with their sums put right, and one good frame around the rest. */
#include <stdlib.h>

#include "fuzz.h"
#include "inventory/wire/frame.h"
#include "survey/comm/message.h"
#include "survey/rank/outcome.h"

static void take_all(const uint8_t *data, size_t size, bool listing)
{
    struct frame_reader reader = {0};
    struct outcome outcome = {0};
    struct frame frame;
    struct err err = {0};
    char *reason = NULL;
    frame_reader_add(&reader, data, size);
    while (frame_reader_next(&reader, &frame, &err) > 0)
        if (listing ? outcome_take_listing(&outcome, &frame, &err)
                    : outcome_take_measuring(&outcome, &frame, &err))
            break;
    const struct ending ending = {.half_record = frame_reader_pending(&reader) > 0};
    outcome_judge(&outcome, &ending, &reason);
    free(reason);
    outcome_fini(&outcome);
    frame_reader_fini(&reader);
}

/* The bytes behind the version that the empty message begins with; the buffer is used for both. */
static struct frame behind_version(struct strbuf *empty, const struct frame *frame)
{
    empty->length = 4;
    strbuf_append(empty, frame->payload, frame->length);
    return (struct frame){.type = frame->type, .payload = empty->data, .length = empty->length};
}

/* What the ranks tell each other has the same form. */
static void take_messages(const struct frame *frame)
{
    struct err err = {0};
    struct announce announce = {0};
    struct assignment assignment = {0};
    struct strbuf announced = {0}, assigned = {0};
    announce_encode(&announce, &announced);
    assignment_encode(&assignment, &assigned);
    const struct frame to_root = behind_version(&announced, frame);
    const struct frame to_rank = behind_version(&assigned, frame);
    struct result_message result = {0};
    bool lost_ranks;
    if (announce_decode(&to_root, &announce, &err) == 0)
        announce_fini(&announce);
    if (assignment_decode(&to_rank, &assignment, &err) == 0)
        assignment_fini(&assignment);
    if (message_result_decode(frame, &result, &err) == 0)
        message_result_fini(&result);
    message_quit_decode(frame, &lost_ranks, &err);
    strbuf_fini(&announced);
    strbuf_fini(&assigned);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct strbuf bytes = {0};
    if (size < 2)
        return 0;
    bool listing = data[0] & 1;
    uint8_t *payload = fuzz_copy(data + 2, size - 2); /* a result's texts are moved in it */
    const struct frame frame = {
        .type = data[1], .payload = (const char *)payload, .length = size - 2};
    take_messages(&frame);
    free(payload);
    take_all(data + 1, size - 1, listing);
    uint8_t *sealed = fuzz_copy(data + 1, size - 1);
    fuzz_seal_frames(sealed, size - 1);
    take_all(sealed, size - 1, listing);
    free(sealed);
    frame_write(&bytes, data[1] % 16, data + 2, size - 2);
    take_all((const uint8_t *)bytes.data, bytes.length, listing);
    strbuf_fini(&bytes);
    return 0;
}
