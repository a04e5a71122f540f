/* Why the driver holds a clock down, in words. */
#include "probes/throttle.h"

#include <errno.h>
#include <inttypes.h>

#include "base/str.h"

/* NVML's clock event reasons. Bit 0, idle, is no reason here: clocks are read between two pieces
 * of work. */
static const char *const names[] = {
    NULL,         "application_clocks", "power_cap",   "hw_slowdown",   "sync_boost",
    "sw_thermal", "hw_thermal",         "power_brake", "display_clock",
};
enum { NAMES = sizeof names / sizeof *names };

int throttle_note(struct facts *notes, const struct device_clocks *clocks)
{
    if (!clocks->throttle_known)
        return facts_set_unknown(notes, "throttle", "the driver does not tell");
    struct strbuf text = {0};
    uint64_t rest = clocks->throttle_reasons & ~UINT64_C(1);
    for (size_t bit = 1; bit < NAMES; bit++) {
        if (rest & UINT64_C(1) << bit)
            strbuf_printf(&text, "%s%s", text.length ? " " : "", names[bit]);
        rest &= ~(UINT64_C(1) << bit);
    }
    if (rest)
        strbuf_printf(&text, "%s0x%" PRIx64, text.length ? " " : "", rest);
    int rc =
        text.failed ? -ENOMEM : facts_set_text(notes, "throttle", text.length ? text.data : "none");
    strbuf_fini(&text);
    return rc;
}
