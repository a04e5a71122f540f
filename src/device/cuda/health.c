/* What NVML tells of a GPU's health. */
#include "device/cuda/health.h"

#include <errno.h>
#include <math.h>

#include "base/clock.h"
#include "base/mem.h"
#include "device/cuda/nvlink.h"
#include "device/cuda/processes.h"
#include "inventory/throttle.h"

static const uint64_t POLL_NS = 20000000;

/* A GPU that failed at once was open for a shorter time, in which no rate can be told. */
static const double OPEN_S_MIN = 0.1;

/* The question of a fact, by the catalogue. */
static const struct nvml_question *question_of(enum health_fact fact)
{
    return &health_rows[fact].nvml;
}

/* How many degrees the GPU is below its slowdown temperature. On GPUs before Ada, NVML knows that
 * temperature instead of the margin. */
static int tell_margin(const struct nvml_gpu *gpu, struct facts *health)
{
    static const struct nvml_question threshold = {
        NVML_SHAPE_CHOSEN, "nvmlDeviceGetTemperatureThreshold", {NVML_THRESHOLD_SLOWDOWN}};
    struct nvml_margin margin = {.version = NVML_MARGIN_VERSION};
    int64_t margin_c = 0;
    int result = NVML_FUNCTION_NOT_FOUND;
    if (gpu->handle && gpu->nvml->margin)
        result = gpu->nvml->margin(gpu->handle, &margin);
    margin_c = margin.margin_c;
    if (gpu->handle && result != NVML_OK) {
        const struct nvml_value limit = nvml_read(gpu, &threshold);
        const struct nvml_value now = nvml_read(gpu, question_of(HEALTH_TEMPERATURE));
        result = limit.result != NVML_OK ? limit.result : now.result;
        margin_c = limit.number - now.number;
    }
    return nvml_tell_number(gpu, health_key(HEALTH_TEMPERATURE_MARGIN), result, margin_c, health);
}

/* Before Turing, NVML has no sum over all SRAMs: add up the counters of each. */
static int tell_sram(const struct nvml_gpu *gpu, enum health_fact fact, int error,
                     struct facts *health)
{
    static const enum nvml_place parts[] = {NVML_PLACE_L1,      NVML_PLACE_L2,
                                            NVML_PLACE_TEXTURE, NVML_PLACE_REGISTERS,
                                            NVML_PLACE_SHARED,  NVML_PLACE_CBU};
    struct nvml_question question = {
        NVML_SHAPE_ECC_AT, "nvmlDeviceGetMemoryErrorCounter", {error, NVML_EVER, NVML_PLACE_SRAM}};
    struct nvml_value sum = {.result = NVML_FUNCTION_NOT_FOUND};
    if (gpu->handle)
        sum = nvml_read(gpu, &question);
    if (gpu->handle && sum.result == NVML_NOT_SUPPORTED) {
        sum.number = 0;
        for (size_t i = 0; i < COUNT_OF(parts); i++) {
            question.a[2] = parts[i];
            const struct nvml_value part = nvml_read(gpu, &question);
            if (part.result != NVML_OK)
                continue;
            sum.result = NVML_OK;
            sum.number += part.number;
        }
    }
    return nvml_tell_number(gpu, health_key(fact), sum.result, sum.number, health);
}

static uint32_t others_of(const struct watch *watch, const struct processes *now)
{
    if (watch && watch->counted)
        return watch->others;
    uint32_t own = now->own || (watch && watch->hidden);
    return now->count > own ? now->count - own : 0;
}

uint32_t watch_others(const struct watch *watch, const struct nvml_gpu *gpu)
{
    const struct processes now = processes_count(gpu);
    return now.result == NVML_OK ? others_of(watch, &now) : 0;
}

static int tell_processes(const struct nvml_gpu *gpu, const struct watch *watch,
                          struct facts *health)
{
    const struct processes now = processes_count(gpu);
    if (now.result == -ENOMEM)
        return -ENOMEM;
    return nvml_tell_number(gpu, health_key(HEALTH_PROCESSES), now.result, others_of(watch, &now),
                            health);
}

static struct nvml_value read_violation(const struct nvml_gpu *gpu, int policy)
{
    struct nvml_violation violation = {0};
    struct nvml_value value = {.result = NVML_FUNCTION_NOT_FOUND};
    if (gpu->handle && gpu->nvml->violation)
        value.result = gpu->nvml->violation(gpu->handle, policy, &violation);
    value.number = (int64_t)violation.violation_ns;
    return value;
}

static struct nvml_value read_fact(const struct nvml_gpu *gpu, enum health_fact fact)
{
    return gpu->handle ? nvml_read(gpu, question_of(fact))
                       : (struct nvml_value){NVML_FUNCTION_NOT_FOUND};
}

/* How much a counter grew since the GPU was opened. */
static int64_t growth_of(const struct nvml_value *before, const struct nvml_value *now)
{
    return now->number > before->number ? now->number - before->number : 0;
}

static int tell_growth(const struct nvml_gpu *gpu, enum health_fact fact,
                       const struct nvml_value *before, const struct nvml_value *now,
                       struct facts *health)
{
    return nvml_tell_number(gpu, health_key(fact),
                            before->result != NVML_OK ? before->result : now->result,
                            growth_of(before, now), health);
}

/* The growth of an error counter, in total and per second of the time in which the GPU was open. */
static int tell_errors(const struct nvml_gpu *gpu, const enum health_fact facts[2],
                       const struct nvml_value *before, const struct nvml_value *now, double open_s,
                       struct facts *health)
{
    int result = before->result != NVML_OK ? before->result : now->result;
    int rc = tell_growth(gpu, facts[0], before, now, health);
    if (rc)
        return rc;
    return nvml_tell_number(gpu, health_key(facts[1]), result,
                            llround((double)growth_of(before, now) / open_s), health);
}

/* What every GPU may have, and what is bad only if it comes fast. */
static int tell_new_errors(const struct nvml_gpu *gpu, const struct watch *watch,
                           const struct nvlinks *links, struct facts *health)
{
    static const enum health_fact facts[][2] = {
        {HEALTH_ECC_CORRECTED_NEW, HEALTH_ECC_CORRECTED_PER_S},
        {HEALTH_PCIE_REPLAYS_NEW, HEALTH_PCIE_REPLAYS_PER_S},
        {HEALTH_NVLINK_ERRORS_NEW, HEALTH_NVLINK_ERRORS_PER_S}};
    const struct nvml_value now[] = {read_fact(gpu, HEALTH_ECC_CORRECTED_VOLATILE),
                                     read_fact(gpu, HEALTH_PCIE_REPLAYS), links->errors};
    const struct nvml_value *before[] = {&watch->ecc_corrected, &watch->pcie_replays,
                                         &watch->nvlink_errors};
    double open_s = fmax((double)(clock_monotonic_ns() - watch->begun_ns) / 1e9, OPEN_S_MIN);
    for (size_t i = 0; i < COUNT_OF(now); i++) {
        int rc = tell_errors(gpu, facts[i], before[i], &now[i], open_s, health);
        if (rc)
            return rc;
    }
    return 0;
}

static int tell_throttle(const struct nvml_gpu *gpu, const struct watch *watch,
                         struct facts *health)
{
    struct strbuf text = {0};
    if (!gpu->handle || !watch->throttle_known)
        return nvml_tell_number(gpu, health_key(HEALTH_THROTTLE), watch->throttle_result, 0,
                                health);
    throttle_put_text(watch->throttle_reasons, &text);
    int rc = text.failed ? -ENOMEM : facts_set_text(health, health_key(HEALTH_THROTTLE), text.data);
    strbuf_fini(&text);
    return rc;
}

static int tell_watched(const struct nvml_gpu *gpu, const struct watch *watch, struct facts *health)
{
    const struct nvml_value ecc = read_fact(gpu, HEALTH_ECC_UNCORRECTED_VOLATILE);
    const struct nvml_value power = read_violation(gpu, NVML_POLICY_POWER);
    const struct nvml_value thermal = read_violation(gpu, NVML_POLICY_THERMAL);
    int rc = tell_throttle(gpu, watch, health);
    if (rc)
        return rc;
    rc = tell_growth(gpu, HEALTH_VIOLATION_POWER, &watch->violation_power, &power, health);
    if (rc)
        return rc;
    rc = tell_growth(gpu, HEALTH_VIOLATION_THERMAL, &watch->violation_thermal, &thermal, health);
    if (rc)
        return rc;
    return tell_growth(gpu, HEALTH_ECC_UNCORRECTED_NEW, &watch->ecc_uncorrected, &ecc, health);
}

bool health_read_ecc(const struct nvml_gpu *gpu, struct device_ecc *out_ecc)
{
    const struct nvml_value corrected = read_fact(gpu, HEALTH_ECC_CORRECTED_VOLATILE);
    const struct nvml_value uncorrected = read_fact(gpu, HEALTH_ECC_UNCORRECTED_VOLATILE);
    if (corrected.result != NVML_OK || uncorrected.result != NVML_OK)
        return false;
    *out_ecc = (struct device_ecc){(uint64_t)corrected.number, (uint64_t)uncorrected.number};
    return true;
}

int health_tell(const struct nvml_gpu *gpu, const struct watch *watch, struct facts *health)
{
    for (enum health_fact fact = 0; fact < HEALTH_FACTS; fact++)
        if (question_of(fact)->shape && fact != HEALTH_INFOROM_VALID) /* it takes long */
            nvml_tell(gpu, health_key(fact), question_of(fact), health);
    tell_margin(gpu, health);
    if (watch)
        tell_watched(gpu, watch, health);
    tell_sram(gpu, HEALTH_ECC_CORRECTED_SRAM, NVML_CORRECTED, health);
    tell_sram(gpu, HEALTH_ECC_UNCORRECTED_SRAM, NVML_UNCORRECTED, health);
    return tell_processes(gpu, watch, health);
}

int health_tell_slow(const struct nvml_gpu *gpu, struct watch *watch, struct facts *health)
{
    const struct nvlinks links = nvlinks_read(gpu);
    nvml_tell(gpu, health_key(HEALTH_INFOROM_VALID), question_of(HEALTH_INFOROM_VALID), health);
    int rc = nvlinks_tell(gpu, &links, health);
    if (rc || !watch)
        return rc;
    rc = tell_new_errors(gpu, watch, &links, health);
    return rc ? rc : xid_watch_tell(&watch->xids, gpu, health);
}

void watch_begin(struct watch *watch, const struct nvml_gpu *gpu)
{
    *watch = (struct watch){.ecc_uncorrected = read_fact(gpu, HEALTH_ECC_UNCORRECTED_VOLATILE),
                            .ecc_corrected = read_fact(gpu, HEALTH_ECC_CORRECTED_VOLATILE),
                            .pcie_replays = read_fact(gpu, HEALTH_PCIE_REPLAYS),
                            .nvlink_errors = nvlinks_read(gpu).errors,
                            .violation_power = read_violation(gpu, NVML_POLICY_POWER),
                            .violation_thermal = read_violation(gpu, NVML_POLICY_THERMAL),
                            .throttle_result = NVML_FUNCTION_NOT_FOUND};
    xid_watch_begin(&watch->xids, gpu);
    watch->begun_ns = clock_monotonic_ns();
}

void watch_end(struct watch *watch, const struct nvml_gpu *gpu)
{
    xid_watch_end(&watch->xids, gpu);
}

int watch_opened(struct watch *watch, const struct nvml_gpu *gpu, uint32_t processes_before)
{
    const struct processes now = processes_count(gpu);
    watch->hidden = now.result == NVML_OK && !now.own && now.count == processes_before + 1;
    return now.result == -ENOMEM ? -ENOMEM : 0;
}

void watch_poll(struct watch *watch, const struct nvml_gpu *gpu)
{
    unsigned long long reasons = 0;
    uint64_t now_ns = clock_monotonic_ns();
    if (!gpu->handle || !gpu->nvml->throttle_reasons || now_ns - watch->polled_ns < POLL_NS)
        return;
    watch->polled_ns = now_ns;
    watch->throttle_result = gpu->nvml->throttle_reasons(gpu->handle, &reasons);
    if (watch->throttle_result != NVML_OK)
        return;
    watch->throttle_reasons |= reasons;
    watch->throttle_known = true;
}
