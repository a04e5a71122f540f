/* NVML: loaded at run time, and asked by the questions of the catalogue. */
#include "device/cuda/nvml.h"

#include <dlfcn.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

#define AT(field) offsetof(struct nvml, field)

/* `other`: the name in other versions of NVML, for the same arguments. */
static const struct symbol {
    size_t offset;
    const char *name, *other;
    bool required;
} symbols[] = {
    {AT(init), "nvmlInit_v2", NULL, true},
    {AT(shutdown), "nvmlShutdown", NULL, true},
    {AT(handle_by_pci), "nvmlDeviceGetHandleByPciBusId_v2", NULL, true},
    {AT(handle_by_uuid), "nvmlDeviceGetHandleByUUID"},
    {AT(error_string), "nvmlErrorString"},
    {AT(system_driver_version), "nvmlSystemGetDriverVersion"},
    {AT(pci_info), "nvmlDeviceGetPciInfo_v3"},
    {AT(attributes), "nvmlDeviceGetAttributes_v2"},
    {AT(profile), "nvmlDeviceGetGpuInstanceProfileInfo"},
    {AT(margin), "nvmlDeviceGetMarginTemperature"},
    {AT(violation), "nvmlDeviceGetViolationStatus"},
    {AT(link_state), "nvmlDeviceGetNvLinkState"},
    {AT(link_errors), "nvmlDeviceGetNvLinkErrorCounter"},
    {AT(fabric), "nvmlDeviceGetGpuFabricInfoV"},
    {AT(fabric_v1), "nvmlDeviceGetGpuFabricInfo"},
    {AT(events_create), "nvmlEventSetCreate"},
    {AT(events_register), "nvmlDeviceRegisterEvents"},
    {AT(events_wait), "nvmlEventSetWait_v2", "nvmlEventSetWait"},
    {AT(events_free), "nvmlEventSetFree"},
    {AT(cpu_affinity), "nvmlDeviceGetCpuAffinity"},
    {AT(throttle_reasons), "nvmlDeviceGetCurrentClocksEventReasons",
     "nvmlDeviceGetCurrentClocksThrottleReasons"},
    {AT(minor_number), "nvmlDeviceGetMinorNumber"},
    {AT(virtualization), "nvmlDeviceGetVirtualizationMode"},
    {AT(mig_mode), "nvmlDeviceGetMigMode"},
    {AT(processes), "nvmlDeviceGetComputeRunningProcesses_v3",
     "nvmlDeviceGetComputeRunningProcesses_v2"},
    {AT(mps_processes), "nvmlDeviceGetMPSComputeRunningProcesses_v3",
     "nvmlDeviceGetMPSComputeRunningProcesses_v2"},
};

static bool nvml_find_symbols(struct nvml *nvml)
{
    for (size_t i = 0; i < COUNT_OF(symbols); i++) {
        void *address = dlsym(nvml->library, symbols[i].name);
        if (!address && symbols[i].other)
            address = dlsym(nvml->library, symbols[i].other);
        if (!address && symbols[i].required) {
            snprintf(nvml->missing, sizeof nvml->missing, "NVML has no %s", symbols[i].name);
            return false;
        }
        memcpy((char *)nvml + symbols[i].offset, &address, sizeof address);
    }
    return true;
}

void nvml_load(struct nvml *nvml)
{
    *nvml = (struct nvml){0};
    nvml->library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!nvml->library) {
        snprintf(nvml->missing, sizeof nvml->missing, "libnvidia-ml.so.1 not found");
        return;
    }
    bool usable = nvml_find_symbols(nvml);
    if (usable) {
        int result = nvml->init();
        usable = result == NVML_OK;
        if (!usable)
            snprintf(nvml->missing, sizeof nvml->missing, "nvmlInit: %s",
                     nvml_reason(nvml, result));
    }
    if (!usable) {
        dlclose(nvml->library);
        nvml->library = NULL;
    }
}

void nvml_unload(struct nvml *nvml)
{
    if (nvml->library) {
        nvml->shutdown();
        dlclose(nvml->library);
    }
    *nvml = (struct nvml){0};
}

void *nvml_symbol(const struct nvml *nvml, const char *name)
{
    return nvml->library ? dlsym(nvml->library, name) : NULL;
}

nvml_device nvml_find(const struct nvml *nvml, const char *pci)
{
    nvml_device device = NULL;
    if (!nvml->library || nvml->handle_by_pci(pci, &device) != NVML_OK)
        return NULL;
    return device;
}

nvml_device nvml_find_uuid(const struct nvml *nvml, const char *uuid)
{
    nvml_device device = NULL;
    if (!nvml->library || !nvml->handle_by_uuid || nvml->handle_by_uuid(uuid, &device) != NVML_OK)
        return NULL;
    return device;
}

const char *nvml_reason(const struct nvml *nvml, int result)
{
    if (result == NVML_NOT_SUPPORTED)
        return "not supported";
    if (result == NVML_FUNCTION_NOT_FOUND)
        return "not in this NVML";
    return nvml->error_string ? nvml->error_string(result) : "NVML error";
}

/* NVML_VALUE_NOT_AVAILABLE: all bits set, in an answer that is otherwise valid. */
static int known(int result, bool available)
{
    return result == NVML_OK && !available ? NVML_NOT_SUPPORTED : result;
}

/* The function of a question; its type follows from the shape. NULL: this NVML does not have it. */
static void nvml_find_function(const struct nvml_gpu *gpu, const struct nvml_question *question,
                               void *out_function)
{
    void *address = nvml_symbol(gpu->nvml, question->symbol);
    memcpy(out_function, &address, sizeof address);
}

static int read_nvml_number(const struct nvml_gpu *gpu, const struct nvml_question *question,
                            int64_t *out)
{
    nvml_get_number *get;
    unsigned value = 0, divisor = question->divisor ? question->divisor : 1;
    nvml_find_function(gpu, question, &get);
    int result = get(question->of == NVML_OF_INSTANCE ? gpu->instance : gpu->handle, &value);
    *out = ((int64_t)value + divisor / 2) / divisor;
    return known(result, value != UINT_MAX);
}

static int read_text(const struct nvml_gpu *gpu, const struct nvml_question *question,
                     char out[NVML_TEXT_BYTES])
{
    nvml_get_text *get;
    nvml_find_function(gpu, question, &get);
    int result = get(gpu->handle, out, NVML_TEXT_BYTES);
    out[NVML_TEXT_BYTES - 1] = '\0';
    return result;
}

static int read_chosen(const struct nvml_gpu *gpu, const struct nvml_question *question,
                       int64_t *out)
{
    nvml_get_chosen *get;
    unsigned value = 0;
    nvml_find_function(gpu, question, &get);
    int result = get(gpu->handle, question->a[0], &value);
    *out = value;
    return known(result, value != UINT_MAX);
}

static int read_pair(const struct nvml_gpu *gpu, const struct nvml_question *question, int64_t *out)
{
    nvml_get_pair *get;
    unsigned values[2] = {0};
    nvml_find_function(gpu, question, &get);
    int result = get(gpu->handle, &values[0], &values[1]);
    *out = values[question->a[0]];
    return result;
}

static int read_ecc_total(const struct nvml_gpu *gpu, const struct nvml_question *question,
                          int64_t *out)
{
    nvml_get_ecc_total *get;
    unsigned long long count = 0;
    nvml_find_function(gpu, question, &get);
    int result = get(gpu->handle, question->a[0], question->a[1], &count);
    *out = (int64_t)count;
    return known(result, count != ULLONG_MAX);
}

static int read_ecc_at(const struct nvml_gpu *gpu, const struct nvml_question *question,
                       int64_t *out)
{
    nvml_get_ecc_at *get;
    unsigned long long count = 0;
    nvml_find_function(gpu, question, &get);
    int result = get(gpu->handle, question->a[0], question->a[1], question->a[2], &count);
    *out = (int64_t)count;
    return known(result, count != ULLONG_MAX);
}

/* Called without room for addresses, NVML returns how many there are. */
static int read_retired(const struct nvml_gpu *gpu, const struct nvml_question *question,
                        int64_t *out)
{
    nvml_get_retired *get;
    unsigned count = 0;
    nvml_find_function(gpu, question, &get);
    int result = get(gpu->handle, question->a[0], &count, NULL);
    *out = count;
    return result == NVML_TOO_SMALL ? NVML_OK : result;
}

static int read_remapped(const struct nvml_gpu *gpu, const struct nvml_question *question,
                         int64_t *out)
{
    nvml_get_remapped *get;
    unsigned values[4] = {0};
    nvml_find_function(gpu, question, &get);
    int result = get(gpu->handle, &values[0], &values[1], &values[2], &values[3]);
    *out = values[question->a[0]];
    return result;
}

static int read_banks(const struct nvml_gpu *gpu, const struct nvml_question *question,
                      int64_t *out)
{
    nvml_get_banks *get;
    struct nvml_banks banks = {0};
    nvml_find_function(gpu, question, &get);
    int result = get(gpu->handle, &banks);
    const unsigned values[] = {banks.max, banks.high, banks.partial, banks.low, banks.none};
    *out = values[question->a[0]];
    return result;
}

static int64_t number_of(const struct nvml_field *field)
{
    switch (field->type) {
    case NVML_IS_REAL:
        return llround(field->value.real);
    case NVML_IS_UNSIGNED:
        return field->value.unsigned_int;
    case NVML_IS_SIGNED:
        return field->value.signed_int;
    case NVML_IS_SIGNED_LONG_LONG:
        return field->value.signed_long_long;
    default:
        return (int64_t)field->value.unsigned_long_long;
    }
}

static int read_nvml_field(const struct nvml_gpu *gpu, const struct nvml_question *question,
                           int64_t *out)
{
    nvml_get_fields *get;
    struct nvml_field field = {.id = (unsigned)question->a[0]};
    nvml_find_function(gpu, question, &get);
    int result = get(gpu->handle, 1, &field);
    *out = number_of(&field);
    return result == NVML_OK ? field.result : result;
}

static int read_valid(const struct nvml_gpu *gpu, const struct nvml_question *question,
                      int64_t *out)
{
    nvml_check *check;
    nvml_find_function(gpu, question, &check);
    int result = check(gpu->handle);
    *out = result == NVML_OK;
    return result == NVML_CORRUPTED_INFOROM ? NVML_OK : result;
}

/* Confidential computing is a mode of the whole node, and drivers before R550 know only whether it
 * is on. GPUs that are protected together (multi_gpu) need not have it on one by one. */
static int read_confidential(const struct nvml_gpu *gpu, const struct nvml_question *question,
                             int64_t *out)
{
    nvml_get_confidential *get;
    nvml_get_confidential_state *get_state;
    void *address = nvml_symbol(gpu->nvml, "nvmlSystemGetConfComputeSettings");
    struct nvml_confidential is = {.version = NVML_CONFIDENTIAL_VERSION};
    struct nvml_confidential_state state = {0};
    memcpy(&get, &address, sizeof get);
    int result = get ? get(&is) : NVML_FUNCTION_NOT_FOUND;
    if (result != NVML_OK) {
        nvml_find_function(gpu, question, &get_state);
        result = get_state(&state);
        is = (struct nvml_confidential){.enabled = state.enabled, .devtools = state.devtools};
    }
    if (question->a[0])
        *out = is.devtools;
    else
        *out = is.multi_gpu ? 1 + (int64_t)is.multi_gpu : is.enabled;
    return result;
}

static int read_nvml_shape(const struct nvml_gpu *gpu, const struct nvml_question *question,
                           struct nvml_value *out)
{
    switch (question->shape) {
    case NVML_SHAPE_TEXT:
        return read_text(gpu, question, out->text);
    case NVML_SHAPE_CHOSEN:
        return read_chosen(gpu, question, &out->number);
    case NVML_SHAPE_PAIR:
        return read_pair(gpu, question, &out->number);
    case NVML_SHAPE_ECC_TOTAL:
        return read_ecc_total(gpu, question, &out->number);
    case NVML_SHAPE_ECC_AT:
        return read_ecc_at(gpu, question, &out->number);
    case NVML_SHAPE_RETIRED:
        return read_retired(gpu, question, &out->number);
    case NVML_SHAPE_REMAPPED:
        return read_remapped(gpu, question, &out->number);
    case NVML_SHAPE_BANKS:
        return read_banks(gpu, question, &out->number);
    case NVML_SHAPE_FIELD:
        return read_nvml_field(gpu, question, &out->number);
    case NVML_SHAPE_VALID:
        return read_valid(gpu, question, &out->number);
    case NVML_SHAPE_CONFIDENTIAL:
        return read_confidential(gpu, question, &out->number);
    default:
        return read_nvml_number(gpu, question, &out->number);
    }
}

struct nvml_value nvml_read(const struct nvml_gpu *gpu, const struct nvml_question *question)
{
    struct nvml_value value = {.result = NVML_FUNCTION_NOT_FOUND};
    void (*function)(void);
    nvml_find_function(gpu, question, &function);
    if (function)
        value.result = read_nvml_shape(gpu, question, &value);
    return value;
}

static const char *word_of(const struct nvml_question *question, int64_t number)
{
    for (int64_t i = 0; question->words[i]; i++)
        if (i == number)
            return question->words[i];
    return NULL;
}

static bool is_flag(const struct nvml_question *question)
{
    return question->shape == NVML_SHAPE_FLAG || question->shape == NVML_SHAPE_PAIR ||
           question->shape == NVML_SHAPE_VALID ||
           (question->shape == NVML_SHAPE_CONFIDENTIAL && question->a[0]) ||
           (question->shape == NVML_SHAPE_REMAPPED && question->a[0] >= 2);
}

static const char *no_handle(const struct nvml_gpu *gpu)
{
    if (!gpu->nvml->library)
        return gpu->nvml->missing;
    return gpu->handle ? "NVML does not know this MIG instance" : "NVML does not know this GPU";
}

void nvml_report(const struct nvml_gpu *gpu, const char *key, const struct nvml_question *question,
                 struct facts *facts)
{
    if (question->of != NVML_OF_GPU && !gpu->profile[0])
        return;
    if (!gpu->handle || (question->of == NVML_OF_INSTANCE && !gpu->instance)) {
        facts_set_unknown(facts, key, no_handle(gpu));
        return;
    }
    const struct nvml_value value = nvml_read(gpu, question);
    const char *word = question->words ? word_of(question, value.number) : NULL;
    if (value.result != NVML_OK)
        facts_set_unknown(facts, key, nvml_reason(gpu->nvml, value.result));
    else if (question->shape == NVML_SHAPE_TEXT)
        facts_set_text(facts, key, value.text);
    else if (is_flag(question))
        facts_set_bool(facts, key, value.number != 0);
    else if (!question->words)
        facts_set_int(facts, key, value.number);
    else if (word)
        facts_set_text(facts, key, word);
    else
        facts_set_unknown(facts, key, "not known to this program");
}

void nvml_report_settings(const struct nvml_gpu *gpu, enum inventory_facts set, struct facts *facts)
{
    for (size_t i = 0; i < catalogue_setting_count; i++)
        if (catalogue_settings[i].set == set && catalogue_settings[i].nvml.shape)
            nvml_report(gpu, catalogue_settings[i].key, &catalogue_settings[i].nvml, facts);
}

void nvml_report_number(const struct nvml_gpu *gpu, const char *key, int result, int64_t number,
                        struct facts *facts)
{
    if (!gpu->handle)
        facts_set_unknown(facts, key, no_handle(gpu));
    else if (result != NVML_OK)
        facts_set_unknown(facts, key, nvml_reason(gpu->nvml, result));
    else
        facts_set_int(facts, key, number);
}
