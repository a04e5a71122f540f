/* Why the driver limits a clock, as a note of a measure. */
#include "probes/method/throttle_note.h"

#include <errno.h>

#include "base/str.h"
#include "inventory/throttle.h"

int throttle_note(struct facts *notes, const struct device_clocks *clocks)
{
    if (!clocks->throttle_known)
        return facts_set_unknown(notes, "throttle", "the driver does not tell");
    struct strbuf text = {0};
    throttle_put_text(clocks->throttle_reasons, &text);
    int rc = text.failed ? -ENOMEM : facts_set_text(notes, "throttle", text.data);
    strbuf_fini(&text);
    return rc;
}
