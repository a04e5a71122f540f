/* What comes out of a worker's pipe: the first byte chooses listing or measuring, then either raw
 * bytes or payloads in good frames. */
#include <stdlib.h>

#include "fuzz.h"
#include "inventory/frame.h"
#include "survey/message.h"
#include "survey/outcome.h"

static void take_all(struct frame_reader *reader, bool listing)
{
    struct outcome outcome = {0};
    struct frame frame;
    struct err err = {0};
    char *reason = NULL;
    while (frame_reader_next(reader, &frame, &err) > 0)
        if (listing ? outcome_take_listing(&outcome, &frame, &err)
                    : outcome_take_measuring(&outcome, &frame, &err))
            break;
    const struct ending ending = {.half_record = frame_reader_pending(reader) > 0};
    outcome_judge(&outcome, &ending, &reason);
    free(reason);
    outcome_fini(&outcome);
}

/* What the ranks tell each other has the same form. */
static void take_messages(const struct frame *frame)
{
    struct err err = {0};
    struct announce announce = {0};
    struct assignment assignment = {0};
    struct result_message result = {0};
    struct quit quit;
    uint32_t position;
    if (announce_decode(frame, &announce, &err) == 0)
        announce_fini(&announce);
    if (assignment_decode(frame, &assignment, &err) == 0)
        assignment_fini(&assignment);
    if (result_decode(frame, &result, &err) == 0)
        result_fini(&result);
    ack_decode(frame, &position, &err);
    quit_decode(frame, &quit, &err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct frame_reader raw = {0}, framed = {0};
    struct strbuf bytes = {0};
    if (size < 2)
        return 0;
    const struct frame frame = {
        .type = data[1], .payload = (const char *)data + 2, .length = size - 2};
    take_messages(&frame);
    frame_write(&bytes, data[1] % 16, data + 2, size - 2);
    if (frame_reader_add(&raw, data + 1, size - 1) == 0)
        take_all(&raw, data[0] & 1);
    if (frame_reader_add(&framed, bytes.data, bytes.length) == 0)
        take_all(&framed, data[0] & 1);
    frame_reader_fini(&raw);
    frame_reader_fini(&framed);
    strbuf_fini(&bytes);
    return 0;
}
