/* A stand-in for libnvidia-ml.so.1. Structs are written byte by byte at the offsets that NVIDIA
 * documents, so that a mistake in the project's own declarations shows.
 *
 * FAKE_NVML in the environment changes answers: "power_usage=1000 ecc_mode=e3" makes one function
 * answer with a number, the other with error 3. Not all functions of the real one are here; with
 * OLD_DRIVER, neither are those that say what kind of GPU it is. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

enum { OK = 0, NOT_SUPPORTED = 3, NOT_FOUND = 6, TOO_SMALL = 7, TIMED_OUT = 10 };

static const char *setting(const char *name)
{
    const char *at = getenv("FAKE_NVML");
    size_t length = strlen(name);
    for (; at && *at; at += strcspn(at, " "), at += strspn(at, " "))
        if (strncmp(at, name, length) == 0 && at[length] == '=')
            return at + length + 1;
    return NULL;
}

static int ask(const char *name, long long usual, long long *out)
{
    const char *text = setting(name);
    if (text && *text == 'e')
        return atoi(text + 1);
    *out = text ? strtoll(text, NULL, 0) : usual;
    return OK;
}

static int give(const char *name, long long usual, unsigned *out)
{
    long long value = 0;
    int result = ask(name, usual, &value);
    if (result == OK)
        *out = (unsigned)value;
    return result;
}

static int give_wide(const char *name, long long usual, unsigned long long *out)
{
    long long value = 0;
    int result = ask(name, usual, &value);
    if (result == OK)
        *out = (unsigned long long)value;
    return result;
}

static void put32(void *at, size_t offset, uint32_t value)
{
    memcpy((char *)at + offset, &value, sizeof value);
}

static void put64(void *at, size_t offset, uint64_t value)
{
    memcpy((char *)at + offset, &value, sizeof value);
}

static int put_text(const char *name, const char *usual, char *text, unsigned length)
{
    const char *wanted = setting(name);
    if (wanted && *wanted == 'e')
        return atoi(wanted + 1);
    snprintf(text, length, "%s", usual);
    return OK;
}

static void *const gpu = (void *)0x10, *const instance = (void *)0x20;

EXPORT int nvmlInit_v2(void)
{
    long long result = 0;
    return ask("init", 0, &result);
}

EXPORT int nvmlShutdown(void)
{
    return OK;
}

EXPORT const char *nvmlErrorString(int result)
{
    return result == 15 ? "GPU is lost" : "some error";
}

EXPORT int nvmlSystemGetDriverVersion(char *text, unsigned length)
{
    return put_text("driver", "580.65.06", text, length);
}

EXPORT int nvmlDeviceGetHandleByPciBusId_v2(const char *pci, void **device)
{
    long long found = 1;
    int result = ask("handle", 1, &found);
    if (result != OK || strncmp(pci, "ffff:1", 6) != 0)
        return result != OK ? result : NOT_FOUND;
    *device = gpu;
    return OK;
}

EXPORT int nvmlDeviceGetHandleByUUID(const char *uuid, void **device)
{
    if (strncmp(uuid, "MIG-00112233-4455-6677-8899-aabb", 32) != 0)
        return NOT_FOUND;
    *device = instance;
    return OK;
}

EXPORT int nvmlDeviceGetPciInfo_v3(void *device, void *pci)
{
    memset(pci, 0, 68);
    put32(pci, 28, 0x233510de);
    put32(pci, 32, 0x18be10de);
    return device == gpu ? OK : NOT_SUPPORTED;
}

EXPORT int nvmlDeviceGetAttributes_v2(void *device, void *attributes)
{
    long long slices = 0;
    int result = ask("compute_slices", 2, &slices);
    if (device != instance || result != OK)
        return NOT_SUPPORTED;
    put32(attributes, 0, 32);                /* SMs */
    put32(attributes, 24, 2);                /* slices of the GPU */
    put32(attributes, 28, (uint32_t)slices); /* of computing */
    put64(attributes, 32, 35968);            /* MiB */
    return OK;
}

#ifndef OLD_DRIVER
EXPORT int nvmlDeviceGetVirtualizationMode(void *device, unsigned *mode)
{
    return device == gpu ? give("virtualization", 0, mode) : NOT_SUPPORTED;
}

/* The settings have a version before the three numbers of the state, and one number more. */
static int put_confidential(void *to, size_t offset)
{
    long long enabled = 0, devtools = 0;
    int result = ask("confidential", 0, &enabled);
    ask("devtools", 0, &devtools);
    put32(to, offset, 2);
    put32(to, offset + 4, (uint32_t)enabled);
    put32(to, offset + 8, (uint32_t)devtools);
    return result;
}

EXPORT int nvmlSystemGetConfComputeState(void *state)
{
    return put_confidential(state, 0);
}

EXPORT int nvmlSystemGetConfComputeSettings(void *settings)
{
    uint32_t version;
    long long multi_gpu = 0;
    memcpy(&version, settings, sizeof version);
    if (version != (20 | 1 << 24))
        return 25;
    int result = ask("multi_gpu", 0, &multi_gpu);
    put32(settings, 16, (uint32_t)multi_gpu);
    return result != OK ? result : put_confidential(settings, 4);
}

EXPORT int nvmlDeviceGetGpuInstanceId(void *device, unsigned *id)
{
    return device == instance ? give("gpu_instance", 9, id) : 2;
}

EXPORT int nvmlDeviceGetComputeInstanceId(void *device, unsigned *id)
{
    return device == instance ? give("compute_instance", 1, id) : 2;
}

EXPORT int nvmlDeviceGetUUID(void *device, char *text, unsigned length)
{
    return device == gpu
               ? put_text("uuid", "GPU-ffeeddcc-bbaa-9988-7766-554433221100", text, length)
               : 2;
}

/* Profiles 0 and 4: an instance of one slice, and of all. */
EXPORT int nvmlDeviceGetGpuInstanceProfileInfo(void *device, unsigned number, void *profile)
{
    long long sms = 0;
    int result = ask("profiles", 132, &sms);
    if (device != gpu || (number != 0 && number != 4))
        return NOT_SUPPORTED;
    memset(profile, 0, 48);
    put32(profile, 16, number ? (uint32_t)sms : 16);
    put64(profile, 40, number ? 143771 : 17984);
    return result;
}
#endif

EXPORT int nvmlDeviceGetMarginTemperature(void *device, void *margin)
{
    uint32_t version;
    long long celsius = 0;
    (void)device;
    memcpy(&version, margin, sizeof version);
    if (version != (8 | 1 << 24))
        return 25;
    int result = ask("margin", 41, &celsius);
    put32(margin, 4, (uint32_t)celsius);
    return result;
}

EXPORT int nvmlDeviceGetViolationStatus(void *device, int policy, void *violation)
{
    long long ns = 0;
    (void)device;
    int result = ask(policy == 0   ? "violation_power"
                     : policy == 1 ? "violation_thermal"
                                   : "none",
                     1000, &ns);
    put64(violation, 0, 123456);
    put64(violation, 8, (uint64_t)ns);
    return result;
}

/* Links 0 and 1 are up, 2 is down, there is no 3. */
EXPORT int nvmlDeviceGetNvLinkState(void *device, unsigned link, unsigned *active)
{
    long long count = 0;
    (void)device;
    int result = ask("links", 3, &count);
    if (result != OK || link >= count)
        return result != OK ? result : 2;
    *active = link < 2;
    return OK;
}

EXPORT int nvmlDeviceGetNvLinkErrorCounter(void *device, unsigned link, int counter,
                                           unsigned long long *count)
{
    long long more = 0;
    (void)device;
    ask("link_errors", 0, &more);
    *count = 10 * link + (unsigned)counter + (link == 1 && counter == 0 ? (unsigned)more : 0);
    return counter == 3 ? NOT_SUPPORTED : OK;
}

/* status, state and health at these offsets; the second version has a version before them. */
static int put_fabric(void *fabric, size_t offset)
{
    long long state = 0, status = 0;
    int result = ask("fabric", 3, &state);
    ask("fabric_status", 0, &status);
    for (unsigned char i = 0; i < 16; i++)
        ((unsigned char *)fabric)[offset + i] = i;
    put32(fabric, offset + 16, (uint32_t)status);
    put32(fabric, offset + 20, 1);
    *((unsigned char *)fabric + offset + 24) = (unsigned char)state;
    return result;
}

EXPORT int nvmlDeviceGetGpuFabricInfo(void *device, void *fabric)
{
    (void)device;
    return put_fabric(fabric, 0);
}

EXPORT int nvmlDeviceGetGpuFabricInfoV(void *device, void *fabric)
{
    uint32_t version;
    long long health = 0;
    (void)device;
    memcpy(&version, fabric, sizeof version);
    if (version != (36 | 2 << 24) || setting("old_fabric"))
        return 25;
    ask("fabric_health", 2, &health);
    put32(fabric, 32, (uint32_t)health);
    return put_fabric(fabric, 4);
}

/* FAKE_NVML_XIDS: "48,45", the events since the set was created. "event_wait=e15" comes after them,
 * instead of a time-out. */
static size_t events_taken;
static int event_sets;

EXPORT int nvmlEventSetCreate(void **set)
{
    long long answer = 0;
    int result = ask("event_set", 0, &answer);
    if (result != OK)
        return result;
    *set = &events_taken;
    events_taken = 0;
    event_sets++;
    return OK;
}

EXPORT int nvmlDeviceRegisterEvents(void *device, unsigned long long types, void *set)
{
    long long answer = 0;
    if (device != gpu || types != 8 || set != &events_taken)
        return 2;
    return ask("event_register", 0, &answer);
}

/* The older name of nvmlEventSetWait_v2. */
EXPORT int nvmlEventSetWait(void *set, void *event, unsigned timeout_ms)
{
    const char *at = getenv("FAKE_NVML_XIDS");
    long long answer = 0;
    if (set != &events_taken || timeout_ms != 0)
        return 2;
    for (size_t i = 0; i < events_taken && at && *at; i++)
        at += strcspn(at, ","), at += *at == ',';
    if (!at || !*at)
        return ask("event_wait", 0, &answer) == OK ? TIMED_OUT : atoi(setting("event_wait") + 1);
    events_taken++;
    memcpy(event, &gpu, sizeof gpu);
    put64(event, 8, *at == 'p' ? 4 : 8); /* "p": another event, of the power state */
    put64(event, 16, (uint64_t)atoi(at));
    return OK;
}

EXPORT int nvmlEventSetFree(void *set)
{
    event_sets -= set == &events_taken;
    setenv("FAKE_NVML_SETS_LEFT", event_sets ? "1" : "0", 1);
    return OK;
}

EXPORT int nvmlDeviceGetCpuAffinity(void *device, unsigned words, unsigned long *cpus)
{
    (void)device;
    unsigned long long mask = 0;
    memset(cpus, 0, words * sizeof *cpus);
    int result = give_wide("cpus", -1, &mask);
    cpus[0] = (unsigned long)mask;
    return result;
}

/* The older name of nvmlDeviceGetCurrentClocksEventReasons. */
EXPORT int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *reasons)
{
    (void)device;
    return give_wide("throttle", 1, reasons);
}

#define NUMBER(function, name, usual)                                                              \
    EXPORT int function(void *device, unsigned *value)                                             \
    {                                                                                              \
        (void)device;                                                                              \
        return give(name, usual, value);                                                           \
    }
NUMBER(nvmlDeviceGetMinorNumber, "minor", 5)
NUMBER(nvmlDeviceGetPersistenceMode, "persistence", 1)
NUMBER(nvmlDeviceGetComputeMode, "compute_mode", 3)
NUMBER(nvmlDeviceGetPowerManagementLimit, "power_limit", 649600)
NUMBER(nvmlDeviceGetPowerManagementDefaultLimit, "power_default", 700000)
NUMBER(nvmlDeviceGetPowerUsage, "power_usage", 411400)
NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, "pcie_gen_max", 5)
NUMBER(nvmlDeviceGetMaxPcieLinkWidth, "pcie_width_max", 16)
NUMBER(nvmlDeviceGetPcieReplayCounter, "replays", 17)
NUMBER(nvmlDeviceGetRetiredPagesPendingStatus, "retired_pending", 1)

/* Trained down while idle. */
EXPORT int nvmlDeviceGetCurrPcieLinkGeneration(void *device, unsigned *value)
{
    (void)device;
    return give("pcie_gen", getenv("FAKE_COPYING") ? 4 : 1, value);
}

EXPORT int nvmlDeviceGetCurrPcieLinkWidth(void *device, unsigned *value)
{
    (void)device;
    return give("pcie_width", getenv("FAKE_COPYING") ? 8 : 2, value);
}

#define PAIR(function, name, first, second)                                                        \
    EXPORT int function(void *device, unsigned *current, unsigned *pending)                        \
    {                                                                                              \
        (void)device;                                                                              \
        *pending = second;                                                                         \
        return give(name, first, current);                                                         \
    }
PAIR(nvmlDeviceGetEccMode, "ecc_mode", 1, 0)
PAIR(nvmlDeviceGetMigMode, "mig_mode", 0, 1)

#define TEXT(function, name, usual)                                                                \
    EXPORT int function(void *device, char *text, unsigned length)                                 \
    {                                                                                              \
        (void)device;                                                                              \
        return put_text(name, usual, text, length);                                                \
    }
TEXT(nvmlDeviceGetSerial, "serial", "1650000000007")
TEXT(nvmlDeviceGetBoardPartNumber, "part", "900-21010-0040-000")
TEXT(nvmlDeviceGetVbiosVersion, "vbios", "96.00.A0.00.03")
TEXT(nvmlDeviceGetInforomImageVersion, "inforom", "G525.0225.00.05")

#define CLOCK(function, name, sm, memory)                                                          \
    EXPORT int function(void *device, int type, unsigned *mhz)                                     \
    {                                                                                              \
        (void)device;                                                                              \
        return give(name, type == 1 ? (sm) : type == 2 ? (memory) : 77, mhz);                      \
    }
CLOCK(nvmlDeviceGetClockInfo, "clock", 1755, 3199)
CLOCK(nvmlDeviceGetMaxClockInfo, "clock_max", 1980, 3201)
CLOCK(nvmlDeviceGetApplicationsClock, "clock_application", 1830, 2619)
CLOCK(nvmlDeviceGetDefaultApplicationsClock, "clock_application_default", 1975, 2618)

EXPORT int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *celsius)
{
    (void)device;
    return sensor ? 2 : give("temperature", 46, celsius);
}

EXPORT int nvmlDeviceGetTemperatureThreshold(void *device, int which, unsigned *celsius)
{
    (void)device;
    return give("threshold", which == 1 ? 92 : 60 + which, celsius);
}

EXPORT int nvmlDeviceGetTotalEccErrors(void *device, int error, int counter,
                                       unsigned long long *count)
{
    (void)device;
    return give_wide(error ? "ecc_uncorrected" : "ecc_corrected", 100 + 10 * error + counter,
                     count);
}

/* Place 7, all SRAM together, is not there before Turing. */
EXPORT int nvmlDeviceGetMemoryErrorCounter(void *device, int error, int counter, int place,
                                           unsigned long long *count)
{
    (void)device;
    char name[32];
    snprintf(name, sizeof name, "ecc_place_%d", place);
    return give_wide(name, 1000 + 100 * error + 10 * counter + place, count);
}

EXPORT int nvmlDeviceGetRetiredPages(void *device, int cause, unsigned *count,
                                     unsigned long long *addresses)
{
    unsigned room = *count;
    (void)device;
    int result = give(cause ? "retired_double" : "retired_single", 3 + cause, count);
    return result != OK ? result : *count > room || !addresses ? TOO_SMALL : OK;
}

EXPORT int nvmlDeviceGetRemappedRows(void *device, unsigned *corrected, unsigned *uncorrected,
                                     unsigned *pending, unsigned *failed)
{
    (void)device;
    *uncorrected = 8;
    *pending = 1;
    *failed = 0;
    return give("remapped", 6, corrected);
}

EXPORT int nvmlDeviceGetRowRemapperHistogram(void *device, void *banks)
{
    unsigned max = 0;
    (void)device;
    int result = give("banks", 636, &max);
    const uint32_t values[] = {max, 1, 2, 3, 4};
    memcpy(banks, values, sizeof values);
    return result;
}

/* By NVML's number of a field: what sets it, its usual value, NVML's type of it (5: a signed int).
 */
static const struct fake_field {
    uint32_t id;
    const char *setting;
    long long usual;
    uint32_t type;
} fake_fields[] = {
    {82, "memory_temperature", -5, 5},
};

EXPORT int nvmlDeviceGetFieldValues(void *device, int count, void *fields)
{
    uint32_t id;
    (void)device;
    memcpy(&id, fields, sizeof id);
    put32(fields, 28, 2);
    for (size_t i = 0; i < sizeof fake_fields / sizeof *fake_fields; i++) {
        const struct fake_field *field = &fake_fields[i];
        long long value = 0;
        if (field->id != id)
            continue;
        put32(fields, 28, (uint32_t)ask(field->setting, field->usual, &value));
        put32(fields, 24, field->type);
        put32(fields, 32, (uint32_t)value);
    }
    return count == 1 ? OK : 2;
}

EXPORT int nvmlDeviceValidateInforom(void *device)
{
    long long result = 0;
    (void)device;
    ask("inforom_check", 0, &result);
    return (int)result;
}

/* Entries of 24 bytes, or of 32 as R535 wrote them. FAKE_NVML_PIDS: "100,200", with "own" for this
 * process once it has a context, "hidden" for it under an id of another namespace. */
static int list(const char *variable, unsigned *count, unsigned char *entries)
{
    const char *at = getenv(variable);
    size_t step = setting("r535") ? 32 : 24;
    unsigned room = *count, found = 0;
    long long answer = 0;
    int result = ask("processes", 0, &answer);
    for (; result == OK && at && *at; at += strcspn(at, ","), at += *at == ',') {
        bool own = *at == 'o', hidden = *at == 'h';
        if ((own || hidden) && !getenv("FAKE_CONTEXT"))
            continue;
        if (found < room) {
            unsigned char *entry = entries + found * step;
            memset(entry, 0, step);
            put32(entry, 0, own ? (uint32_t)getpid() : hidden ? 4000000 : (uint32_t)atoi(at));
            put64(entry, 8, 1 << 20);
            put64(entry, 16, UINT64_MAX);
        }
        found++;
    }
    *count = found;
    return result != OK ? result : found > room ? TOO_SMALL : OK;
}

EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, void *entries)
{
    long long mig = 0;
    ask("mig_mode", 0, &mig);
    if (device != (mig ? instance : gpu))
        return 2;
    return list("FAKE_NVML_PIDS", count, entries);
}

EXPORT int nvmlDeviceGetMPSComputeRunningProcesses_v3(void *device, unsigned *count, void *entries)
{
    (void)device;
    return list("FAKE_NVML_MPS", count, entries);
}
