/* Why the driver limits a clock, in words. */
#include <inttypes.h>

#include "base/mem.h"
#include "inventory/throttle.h"

/* By bit of NVML's clock event reasons. */
static const char *const names[] = {
    NULL,         "applications_clocks", "power_cap",      "hw_slowdown", "sync_boost",
    "sw_thermal", "hw_thermal",          "hw_power_brake", "display",
};

void throttle_put_text(uint64_t reasons, struct strbuf *out_text)
{
    uint64_t rest = reasons & ~UINT64_C(1);
    if (!rest)
        strbuf_puts(out_text, "none");
    const char *comma = "";
    for (size_t bit = 1; bit < COUNT_OF(names); bit++) {
        if (!(rest & UINT64_C(1) << bit))
            continue;
        strbuf_printf(out_text, "%s%s", comma, names[bit]);
        rest &= ~(UINT64_C(1) << bit);
        comma = ",";
    }
    if (rest)
        strbuf_printf(out_text, "%s0x%" PRIx64, comma, rest);
}

bool throttle_by_hardware(uint64_t reasons)
{
    enum { HW_SLOWDOWN = 0x8, HW_THERMAL = 0x40, HW_POWER_BRAKE = 0x80 };
    return reasons & (HW_SLOWDOWN | HW_THERMAL | HW_POWER_BRAKE);
}
