/* Xid events: error numbers of NVIDIA's driver. */
#include "inventory/xid.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* The meanings follow NVIDIA's Xid catalogue (docs.nvidia.com/deploy/xid-errors). Failing: the
 * catalogue wants a reset of the GPU or a reboot of the node at once, or the event is an
 * uncorrectable ECC error. Degraded: the hardware has a fault, and can still be used. Watched: an
 * application or the driver may be the cause, or the number alone does not say how bad it is.
 * NVIDIA's device plugin for Kubernetes also ignores 13, 31, 43, 45, 68 and 109. */
static const struct xid xids[] = {
    {8, false, VERDICT_DEGRADED, "the GPU stopped processing; an application may be the cause"},
    {11, false, VERDICT_DEGRADED, "invalid command stream; an application may be the cause"},
    {13, false, VERDICT_DEGRADED,
     "exception of the compute engine; usually an application's fault"},
    {31, false, VERDICT_DEGRADED, "memory page fault; usually an application's fault"},
    {32, false, VERDICT_DEGRADED, "invalid or corrupted push buffer; driver or application"},
    {38, false, VERDICT_DEGRADED, "driver firmware error"},
    {43, false, VERDICT_DEGRADED, "an application's channel was reset"},
    {45, false, VERDICT_DEGRADED,
     "an application's channel was removed, often after another error"},
    {46, true, VERDICT_FAILING, "the GPU stopped processing: it needs a reset"},
    {48, true, VERDICT_FAILING, "uncorrectable (double-bit) ECC error"},
    {54, true, VERDICT_DEGRADED, "the auxiliary power is not connected"},
    {61, true, VERDICT_DEGRADED, "internal microcontroller: breakpoint or warning"},
    {62, true, VERDICT_FAILING, "internal microcontroller halted: the GPU needs a reset"},
    /* The repair is recorded; a rule reports one that is still pending. */
    {63, false, VERDICT_DEGRADED, "a row remap or page retirement was recorded"},
    {64, true, VERDICT_FAILING, "a row remap or page retirement failed"},
    {68, false, VERDICT_DEGRADED, "exception of a video decoder"},
    {69, false, VERDICT_DEGRADED,
     "class error of the compute engine; usually an application's fault"},
    {74, true, VERDICT_DEGRADED, "NVLink error"},
    {79, true, VERDICT_FAILING, "the GPU has fallen off the bus"},
    {92, true, VERDICT_DEGRADED, "high rate of corrected (single-bit) ECC errors"},
    {93, false, VERDICT_DEGRADED, "the InfoROM is written too often"},
    {94, true, VERDICT_FAILING, "uncorrectable ECC error, contained to one application"},
    {95, true, VERDICT_FAILING, "uncorrectable ECC error, not contained: the GPU needs a reset"},
    {109, false, VERDICT_DEGRADED, "timeout of a context switch; an application may be the cause"},
    {110, true, VERDICT_FAILING, "security fault: the GPU needs a reset"},
    {119, true, VERDICT_FAILING, "the GPU's system processor (GSP) does not answer"},
    {120, true, VERDICT_FAILING, "error of the GPU's system processor (GSP)"},
    {121, false, VERDICT_DEGRADED, "corrected error on the link between the chips (C2C)"},
    {136, true, VERDICT_FAILING, "the training of an NVLink failed"},
    {137, false, VERDICT_DEGRADED, "NVLink access fault; the cause is often another GPU"},
    {140, true, VERDICT_FAILING, "ECC error that could not be recovered: the GPU needs a reset"},
    {143, true, VERDICT_FAILING, "the GPU could not be initialised"},
    /* NVLink 5. Most events of the first five numbers are harmless; those of the others are not. */
    {144, false, VERDICT_DEGRADED, "NVLink error (SAW)"},
    {145, false, VERDICT_DEGRADED, "NVLink error (RLW)"},
    {146, false, VERDICT_DEGRADED, "NVLink error (TLW)"},
    {147, false, VERDICT_DEGRADED, "NVLink error (TREX)"},
    {148, false, VERDICT_DEGRADED, "NVLink error (power control)"},
    {149, true, VERDICT_DEGRADED, "NVLink error (network interface)"},
    {150, true, VERDICT_DEGRADED, "NVLink error (management)"},
    {154, false, VERDICT_DEGRADED,
     "the driver's advice for a recovery changed; see the system log"},
    {155, true, VERDICT_FAILING, "NVLink error: the GPU needs a reset"},
    {156, true, VERDICT_FAILING, "a part of the GPU is to be retired: the GPU needs a reset"},
    {157, true, VERDICT_DEGRADED, "the retirement of a part of the GPU failed"},
    {158, true, VERDICT_FAILING, "fatal timeout: the GPU needs a reset"},
};

const struct xid *xid_find(unsigned number)
{
    static const struct xid other = {0, false, VERDICT_DEGRADED, "see NVIDIA's Xid catalogue"};
    for (size_t i = 0; i < COUNT_OF(xids); i++)
        if (xids[i].number == number)
            return &xids[i];
    return &other;
}

void xid_put_list(struct strbuf *out_text, const unsigned *numbers, size_t count)
{
    if (!count)
        strbuf_puts(out_text, "none");
    for (size_t i = 0; i < count; i++)
        strbuf_printf(out_text, "%s%u (%s)", i ? ", " : "", numbers[i],
                      xid_find(numbers[i])->meaning);
}

/* Other numbers in the text belong to a meaning: only one before " (" is an event's. */
size_t xid_parse_list(const char *text, unsigned out_numbers[XID_LIST_MAX])
{
    size_t count = 0;
    while (text && isdigit((unsigned char)*text) && count < XID_LIST_MAX) {
        char *end;
        unsigned long number = strtoul(text, &end, 10);
        if (strncmp(end, " (", 2) != 0)
            break;
        out_numbers[count++] = (unsigned)number;
        text = strstr(end, "), ");
        text = text ? text + 3 : NULL;
    }
    return count;
}
