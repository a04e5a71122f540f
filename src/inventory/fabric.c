/* The health of a GPU in the NVLink fabric, in words. */
#include "inventory/fabric.h"

#include "base/mem.h"

enum { TRISTATE = 0x3, YES = 1, CONFIGURATION = 8, CONFIGURATION_FIELD = 0xf };

#define CONFIGURED(value, word, verdict, finding)                                                  \
    {                                                                                              \
        word, CONFIGURATION, CONFIGURATION_FIELD, value, true, verdict, finding                    \
    }

/* NVML's constants NVML_GPU_FABRIC_HEALTH_MASK_*. A tristate is not supported, true or false. */
const struct fabric_fault fabric_faults[] = {
    {"degraded_bandwidth", 0, TRISTATE, YES, true, VERDICT_DEGRADED,
     "the NVLink fabric gives this GPU less bandwidth"},
    {"route_recovery", 2, TRISTATE, YES, false, VERDICT_DEGRADED,
     "the NVLink fabric is restoring the routes of this GPU"},
    {"route_unhealthy", 4, TRISTATE, YES, true, VERDICT_FAILING,
     "a route of this GPU through the NVLink fabric is unhealthy"},
    {"access_timeout_recovery", 6, TRISTATE, YES, false, VERDICT_DEGRADED,
     "the NVLink fabric recovers from accesses of this GPU that timed out"},
    CONFIGURED(2, "incorrect_sysguid", VERDICT_MISCONFIGURED,
               "the NVLink fabric expects another system GUID of this GPU"),
    CONFIGURED(3, "incorrect_chassis_serial", VERDICT_MISCONFIGURED,
               "the NVLink fabric expects another chassis serial number of this GPU"),
    CONFIGURED(4, "no_partition", VERDICT_MISCONFIGURED,
               "this GPU is in no partition of the NVLink fabric"),
    CONFIGURED(5, "insufficient_nvlinks", VERDICT_FAILING,
               "too few NVLinks connect this GPU to the fabric"),
    CONFIGURED(6, "incompatible_firmware", VERDICT_MISCONFIGURED,
               "the firmware of this GPU does not fit the NVLink fabric"),
    CONFIGURED(7, "invalid_location", VERDICT_MISCONFIGURED,
               "the NVLink fabric does not know the place of this GPU"),
};
const size_t fabric_fault_count = COUNT_OF(fabric_faults);

void fabric_put_text(uint32_t mask, struct strbuf *out_text)
{
    const char *comma = "";
    uint32_t configuration = mask >> CONFIGURATION & CONFIGURATION_FIELD;
    bool known = configuration <= YES; /* 0: not supported; 1: nothing is wrong */
    for (size_t i = 0; i < COUNT_OF(fabric_faults); i++) {
        const struct fabric_fault *fault = &fabric_faults[i];
        if ((mask >> fault->shift & fault->field) != fault->value)
            continue;
        strbuf_printf(out_text, "%s%s", comma, fault->word);
        comma = ",";
        known |= fault->shift == CONFIGURATION;
    }
    if (!known)
        strbuf_printf(out_text, "%sconfiguration_%u", comma, configuration);
}

const struct fabric_fault *fabric_worst(const char *list)
{
    const struct fabric_fault *worst = NULL;
    for (size_t i = 0; i < COUNT_OF(fabric_faults); i++) {
        const struct fabric_fault *fault = &fabric_faults[i];
        if (str_list_has(list, fault->word) && (!worst || (fault->accuses && !worst->accuses)))
            worst = fault;
    }
    return worst;
}
