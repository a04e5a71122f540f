/* What the GPU's ECC counters say of a test of its memory. */
#include "probes/checks/ecc_counts.h"

#include "base/mem.h"

/* A counter that is lower afterwards began again. */
static void add_rise(struct measures *measures, const char *metric, const char *method,
                     uint64_t before, uint64_t after, uint32_t n)
{
    uint64_t came = after - (after < before ? 0 : before);
    struct measure *m = measures_add(measures, metric, (double)came, "", method);
    facts_set_int(&m->notes, "before", (int64_t)before);
    facts_set_int(&m->notes, "after", (int64_t)after);
    m->n = n;
}

void ecc_counts_add(struct measures *measures, const char *corrected, const char *uncorrected,
                    const struct device_ecc *before, const struct device_ecc *after, uint32_t n)
{
    add_rise(measures, corrected, "corrected ECC errors, after the test less before it",
             before->corrected, after->corrected, n);
    add_rise(measures, uncorrected, "uncorrectable ECC errors, after the test less before it",
             before->uncorrected, after->uncorrected, n);
}
