/* Reads the note `map` of sm.groups: a number per SM. */
#include "probes/method/sm_group_map.h"

#include <stdlib.h>

bool sm_group_map_read(const struct probe_context *context, size_t sms, uint16_t *out_groups)
{
    const struct measure *m = measures_get(context->measures, "sm.groups");
    const char *text = m && measure_status_valued(m->status) ? facts_text(&m->notes, "map") : NULL;
    size_t count = 0;
    while (text && count < sms) {
        char *end;
        unsigned long group = strtoul(text, &end, 10);
        if (end == text || group >= sms)
            return false;
        out_groups[count++] = (uint16_t)group;
        text = end;
    }
    return text && count == sms;
}
