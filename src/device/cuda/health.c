/* What NVML reports of a GPU's health: counters, sensors, processes, NVLinks and the fabric behind
 * them, and the Xid events while the GPU is open. */
#include "device/cuda/health.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "inventory/fabric.h"
#include "inventory/throttle.h"

enum { TRIES = 4, ROOM = 8, UNTOUCHED = 0xaa };

struct pids {
    unsigned *items;
    size_t count, capacity;
};

static void pids_add(struct pids *pids, unsigned pid)
{
    for (size_t i = 0; i < pids->count; i++)
        if (pids->items[i] == pid)
            return;
    pids->items = mem_grow(pids->items, &pids->capacity, pids->count + 1, sizeof *pids->items);
    pids->items[pids->count++] = pid;
}

/* The driver does not say how large its entries are: it shows in how far it wrote. */
static size_t entry_bytes(const unsigned char *buffer, unsigned count)
{
    for (size_t i = count * sizeof(struct nvml_process); i < count * NVML_PROCESS_R535_BYTES; i++)
        if (buffer[i] != UNTOUCHED)
            return NVML_PROCESS_R535_BYTES;
    return sizeof(struct nvml_process);
}

/* Fills a buffer, which grows until all entries fit; processes may start between two tries. */
static int read_processes(nvml_get_processes *get, nvml_device device, unsigned char **out_buffer,
                          unsigned *out_count)
{
    unsigned room = 0;
    for (int i = 0; i < TRIES; i++) {
        size_t bytes = (size_t)room * NVML_PROCESS_R535_BYTES;
        unsigned char *buffer = room ? mem_array(bytes, 1) : NULL;
        if (buffer)
            memset(buffer, UNTOUCHED, bytes);
        unsigned count = room;
        int result = get(device, &count, (struct nvml_process *)buffer);
        if (result == NVML_OK && count <= room) {
            *out_buffer = buffer;
            *out_count = count;
            return NVML_OK;
        }
        free(buffer);
        if (result != NVML_TOO_SMALL)
            return result == NVML_OK ? NVML_INVALID_ARGUMENT : result;
        room = count + ROOM;
    }
    return NVML_TOO_SMALL;
}

static int list_processes(nvml_get_processes *get, nvml_device device, struct pids *pids)
{
    unsigned char *buffer = NULL;
    unsigned count = 0;
    int result = get ? read_processes(get, device, &buffer, &count) : NVML_FUNCTION_NOT_FOUND;
    if (result != NVML_OK)
        return result;
    size_t step = entry_bytes(buffer, count);
    for (unsigned i = 0; i < count; i++) {
        unsigned pid;
        memcpy(&pid, buffer + i * step, sizeof pid);
        pids_add(pids, pid);
    }
    free(buffer);
    return NVML_OK;
}

struct processes processes_count(const struct nvml_gpu *gpu)
{
    struct pids pids = {0};
    struct processes processes = {.result = NVML_NOT_SUPPORTED};
    if (!gpu->handle)
        return processes;
    processes.result = list_processes(gpu->nvml->processes, gpu->instance, &pids);
    if (processes.result == NVML_OK) /* failures are ignored: many systems run no MPS */
        list_processes(gpu->nvml->mps_processes, gpu->instance, &pids);
    processes.count = (uint32_t)pids.count;
    for (size_t i = 0; i < pids.count; i++)
        processes.own |= pids.items[i] == (unsigned)getpid();
    free(pids.items);
    return processes;
}

struct nvlinks {
    int result; /* NVML_OK, or why nothing is known */
    int64_t active, down;
    struct nvml_value errors; /* of all links and counters together */
};

/* Only links that exist report a state. A counter that a link does not have counts as 0. */
static struct nvlinks nvlinks_read(const struct nvml_gpu *gpu)
{
    const struct nvml *nvml = gpu->nvml;
    struct nvlinks links = {.result = NVML_FUNCTION_NOT_FOUND};
    for (unsigned link = 0; gpu->handle && nvml->link_state && link < NVML_LINKS; link++) {
        unsigned is_active = 0;
        int state = nvml->link_state(gpu->handle, link, &is_active);
        if (link == 0)
            links.result = state;
        if (state != NVML_OK)
            continue;
        links.result = NVML_OK;
        is_active ? links.active++ : links.down++;
        for (int counter = 0; nvml->link_errors && counter < NVML_LINK_COUNTERS; counter++) {
            unsigned long long count = 0;
            if (nvml->link_errors(gpu->handle, link, counter, &count) == NVML_OK)
                links.errors.number += (int64_t)count;
        }
    }
    links.errors.result = links.result;
    return links;
}

/* Drivers before R550 have only the first version, which has no mask. */
static int read_fabric(const struct nvml_gpu *gpu, struct nvml_fabric *out)
{
    *out = (struct nvml_fabric){.version = NVML_FABRIC_VERSION};
    int result = gpu->nvml->fabric ? gpu->nvml->fabric(gpu->handle, out) : NVML_FUNCTION_NOT_FOUND;
    if (result == NVML_OK || !gpu->nvml->fabric_v1)
        return result;
    struct nvml_fabric_v1 first = {{0}};
    result = gpu->nvml->fabric_v1(gpu->handle, &first);
    *out =
        (struct nvml_fabric){.status = first.status, .clique = first.clique, .state = first.state};
    memcpy(out->cluster, first.cluster, sizeof out->cluster);
    return result;
}

/* The status is valid only if the registration is completed. */
static void fabric_put_state(const struct nvml_fabric *fabric, struct strbuf *text)
{
    switch (fabric->state) {
    case NVML_FABRIC_NOT_STARTED:
        strbuf_puts(text, "not_started");
        break;
    case NVML_FABRIC_IN_PROGRESS:
        strbuf_puts(text, "in_progress");
        break;
    case NVML_FABRIC_COMPLETED:
        if (fabric->status != NVML_OK)
            strbuf_puts(text, "failed");
        else
            fabric_put_text(fabric->health, text);
        if (!text->length)
            strbuf_puts(text, "completed");
        break;
    default:
        break;
    }
}

static void fabric_put_clique(const struct nvml_fabric *fabric, struct strbuf *text)
{
    for (size_t i = 0; i < sizeof fabric->cluster; i++)
        strbuf_printf(text, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
                      fabric->cluster[i]);
    strbuf_printf(text, "/%u", fabric->clique);
}

static void report_text(const struct nvml_gpu *gpu, enum health_fact fact, int result,
                        struct strbuf *text, struct facts *health)
{
    if (text->length)
        facts_set_text(health, health_key(fact), text->data);
    else
        nvml_report_number(gpu, health_key(fact), result == NVML_OK ? NVML_NOT_SUPPORTED : result,
                           0, health);
    strbuf_fini(text);
}

/* Cluster and clique are valid only if the registration is completed. */
static void report_fabric(const struct nvml_gpu *gpu, struct facts *health)
{
    struct nvml_fabric fabric = {.state = NVML_FABRIC_NOT_SUPPORTED};
    struct strbuf state = {0}, clique = {0};
    int result = gpu->handle ? read_fabric(gpu, &fabric) : NVML_FUNCTION_NOT_FOUND;
    if (result == NVML_OK)
        fabric_put_state(&fabric, &state);
    if (result == NVML_OK && fabric.state == NVML_FABRIC_COMPLETED && fabric.status == NVML_OK)
        fabric_put_clique(&fabric, &clique);
    report_text(gpu, HEALTH_FABRIC_STATE, result, &state, health);
    report_text(gpu, HEALTH_FABRIC_CLIQUE, result, &clique, health);
}

/* Sets nvlinks_active, nvlinks_down, nvlink_errors, fabric_state and fabric_clique. */
static void nvlinks_report(const struct nvml_gpu *gpu, const struct nvlinks *links,
                           struct facts *health)
{
    const struct {
        const char *key;
        int64_t number;
    } rows[] = {{health_key(HEALTH_NVLINKS_ACTIVE), links->active},
                {health_key(HEALTH_NVLINKS_DOWN), links->down},
                {health_key(HEALTH_NVLINK_ERRORS), links->errors.number}};
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        nvml_report_number(gpu, rows[i].key, links->result, rows[i].number, health);
    report_fabric(gpu, health);
}

/* A GPU that reports errors without end must not hold up the survey. */
enum { EVENTS_MAX = 1024 };

/* Accepts a zeroed struct. */
static void xid_watch_end(struct xid_watch *watch, const struct nvml_gpu *gpu)
{
    if (watch->events)
        gpu->nvml->events_free(watch->events);
    watch->events = NULL;
}

/* Asks NVML to collect events. Never fails: a driver that reports none is an unknown fact. */
static void xid_watch_begin(struct xid_watch *watch, const struct nvml_gpu *gpu)
{
    const struct nvml *nvml = gpu->nvml;
    *watch = (struct xid_watch){.result = NVML_FUNCTION_NOT_FOUND};
    if (!gpu->handle || !nvml->events_create || !nvml->events_register || !nvml->events_wait ||
        !nvml->events_free)
        return;
    watch->result = nvml->events_create(&watch->events);
    if (watch->result != NVML_OK) {
        watch->events = NULL;
        return;
    }
    watch->result = nvml->events_register(gpu->handle, NVML_EVENT_XID, watch->events);
    if (watch->result != NVML_OK)
        xid_watch_end(watch, gpu);
}

static void xid_watch_keep(struct xid_watch *watch, const struct nvml_event *event)
{
    for (size_t i = 0; i < watch->count; i++)
        if (watch->numbers[i] == event->data)
            return;
    if (event->type == NVML_EVENT_XID && watch->count < XID_LIST_MAX)
        watch->numbers[watch->count++] = (unsigned)event->data;
}

/* NVML queues the events; it answers NVML_TIMED_OUT when none is left. */
static void take_events(struct xid_watch *watch, const struct nvml_gpu *gpu)
{
    for (int taken = 0; taken < EVENTS_MAX; taken++) {
        struct nvml_event event = {0};
        watch->result = gpu->nvml->events_wait(watch->events, &event, 0);
        if (watch->result != NVML_OK)
            break;
        xid_watch_keep(watch, &event);
    }
    if (watch->result == NVML_TIMED_OUT)
        watch->result = NVML_OK;
}

/* Sets `xid`: the events since xid_watch_begin, or why they are not known. */
static void xid_watch_report(struct xid_watch *watch, const struct nvml_gpu *gpu,
                             struct facts *health)
{
    if (watch->events)
        take_events(watch, gpu);
    /* After an error it is not known whether there were others: those that came are reported. */
    if (!watch->count && watch->result != NVML_OK) {
        nvml_report_number(gpu, health_key(HEALTH_XID), watch->result, 0, health);
        return;
    }
    struct strbuf text = {0};
    xid_put_list(&text, watch->numbers, watch->count);
    facts_set_text(health, health_key(HEALTH_XID), text.data);
    strbuf_fini(&text);
}

static const uint64_t POLL_NS = 20000000;

/* A GPU that failed at once was open for a shorter time, in which no rate can be given. */
static const double OPEN_S_MIN = 0.1;

/* The question of a fact, by the catalogue. */
static const struct nvml_question *question_of(enum health_fact fact)
{
    return &catalogue_health[fact].nvml;
}

/* How many degrees the GPU is below its slowdown temperature. On GPUs before Ada, NVML knows that
 * temperature instead of the margin. */
static void report_margin(const struct nvml_gpu *gpu, struct facts *health)
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
    nvml_report_number(gpu, health_key(HEALTH_TEMPERATURE_MARGIN), result, margin_c, health);
}

/* Before Turing, NVML has no sum over all SRAMs: add up the counters of each. */
static void report_sram(const struct nvml_gpu *gpu, enum health_fact fact, int error,
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
    nvml_report_number(gpu, health_key(fact), sum.result, sum.number, health);
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

static void report_processes(const struct nvml_gpu *gpu, const struct watch *watch,
                             struct facts *health)
{
    const struct processes now = processes_count(gpu);
    nvml_report_number(gpu, health_key(HEALTH_PROCESSES), now.result, others_of(watch, &now),
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

static void report_growth(const struct nvml_gpu *gpu, enum health_fact fact,
                          const struct nvml_value *before, const struct nvml_value *now,
                          struct facts *health)
{
    nvml_report_number(gpu, health_key(fact),
                       before->result != NVML_OK ? before->result : now->result,
                       growth_of(before, now), health);
}

/* The growth of an error counter, in total and per second of the time in which the GPU was open. */
static void report_counter(const struct nvml_gpu *gpu, const enum health_fact facts[2],
                           const struct nvml_value *before, const struct nvml_value *now,
                           double open_s, struct facts *health)
{
    int result = before->result != NVML_OK ? before->result : now->result;
    report_growth(gpu, facts[0], before, now, health);
    nvml_report_number(gpu, health_key(facts[1]), result,
                       llround((double)growth_of(before, now) / open_s), health);
}

/* What every GPU may have, and what is bad only if it comes fast. */
static void report_new_errors(const struct nvml_gpu *gpu, const struct watch *watch,
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
    for (size_t i = 0; i < COUNT_OF(now); i++)
        report_counter(gpu, facts[i], before[i], &now[i], open_s, health);
}

static void report_throttle(const struct nvml_gpu *gpu, const struct watch *watch,
                            struct facts *health)
{
    struct strbuf text = {0};
    if (!gpu->handle || !watch->throttle_known) {
        nvml_report_number(gpu, health_key(HEALTH_THROTTLE), watch->throttle_result, 0, health);
        return;
    }
    throttle_put_text(watch->throttle_reasons, &text);
    facts_set_text(health, health_key(HEALTH_THROTTLE), text.data);
    strbuf_fini(&text);
}

static void report_watched(const struct nvml_gpu *gpu, const struct watch *watch,
                           struct facts *health)
{
    const struct nvml_value ecc = read_fact(gpu, HEALTH_ECC_UNCORRECTED_VOLATILE);
    const struct nvml_value power = read_violation(gpu, NVML_POLICY_POWER);
    const struct nvml_value thermal = read_violation(gpu, NVML_POLICY_THERMAL);
    report_throttle(gpu, watch, health);
    report_growth(gpu, HEALTH_VIOLATION_POWER, &watch->violation_power, &power, health);
    report_growth(gpu, HEALTH_VIOLATION_THERMAL, &watch->violation_thermal, &thermal, health);
    report_growth(gpu, HEALTH_ECC_UNCORRECTED_NEW, &watch->ecc_uncorrected, &ecc, health);
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

void health_report(const struct nvml_gpu *gpu, const struct watch *watch, struct facts *health)
{
    for (enum health_fact fact = 0; fact < HEALTH_FACTS; fact++)
        if (question_of(fact)->shape && fact != HEALTH_INFOROM_VALID) /* it takes long */
            nvml_report(gpu, health_key(fact), question_of(fact), health);
    report_margin(gpu, health);
    if (watch)
        report_watched(gpu, watch, health);
    report_sram(gpu, HEALTH_ECC_CORRECTED_SRAM, NVML_CORRECTED, health);
    report_sram(gpu, HEALTH_ECC_UNCORRECTED_SRAM, NVML_UNCORRECTED, health);
    report_processes(gpu, watch, health);
}

void health_report_slow(const struct nvml_gpu *gpu, struct watch *watch, struct facts *health)
{
    const struct nvlinks links = nvlinks_read(gpu);
    nvml_report(gpu, health_key(HEALTH_INFOROM_VALID), question_of(HEALTH_INFOROM_VALID), health);
    nvlinks_report(gpu, &links, health);
    if (!watch)
        return;
    report_new_errors(gpu, watch, &links, health);
    xid_watch_report(&watch->xids, gpu, health);
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

void watch_opened(struct watch *watch, const struct nvml_gpu *gpu, uint32_t processes_before)
{
    const struct processes now = processes_count(gpu);
    watch->hidden = now.result == NVML_OK && !now.own && now.count == processes_before + 1;
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
