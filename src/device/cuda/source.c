/* The GPUs that the CUDA driver shows to this process. */
#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "device/cuda/gpu.h"
#include "device/cuda/mig.h"
#include "device/source.h"

enum { NAME_BYTES = 128, PCI_BYTES = 32, UUID_BYTES = 64, KEY_BYTES = 256 };

struct cuda_source {
    struct device_source base;
    struct driver driver;
    struct nvml nvml;
    CUdevice *devices;
    struct nvml_gpu *told; /* devices and told run parallel to the infos */
    struct arena strings;
    struct turn turn;   /* of the GPU that is looked at, or open */
    struct flag coming; /* of the same GPU */
};

static const char *keep(struct cuda_source *source, const char *text)
{
    return arena_copy(&source->strings, text, strlen(text));
}

/* A MIG instance has a UUID of its own and is written with another prefix. */
static void format_uuid(const CUuuid *uuid, bool mig, char out_text[UUID_BYTES])
{
    const unsigned char *b = (const unsigned char *)uuid->bytes;
    snprintf(out_text, UUID_BYTES,
             "%s-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
             mig ? "MIG" : "GPU", b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10],
             b[11], b[12], b[13], b[14], b[15]);
}

/* The number of SMs replaces the PCI ids, or the MIG profile, where NVML does not tell them. */
static int count_sms(const struct driver *driver, CUdevice device, int *out_sms, struct err *err)
{
    return driver_check(
        driver,
        driver->cuDeviceGetAttribute(out_sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device),
        "cuDeviceGetAttribute", err);
}

/* Adds the profile of a MIG instance to its name, as newer drivers do. */
static int complete_name(const struct cuda_source *source, const struct nvml_gpu *told,
                         CUdevice device, char name[NAME_BYTES], struct err *err)
{
    char profile[MIG_PROFILE_BYTES];
    int sms = 0;
    size_t length = strlen(name);
    if (strstr(name, " MIG "))
        return 0;
    if (!mig_profile(&source->nvml, told->instance, profile)) {
        int rc = count_sms(&source->driver, device, &sms, err);
        if (rc)
            return rc;
        snprintf(profile, sizeof profile, "%d SMs", sms);
    }
    snprintf(name + length, NAME_BYTES - length, " MIG %s", profile);
    return 0;
}

/* The key of a model: PCI device and subsystem id, and the name. */
static int format_key(const struct cuda_source *source, const struct nvml_gpu *told,
                      CUdevice device, const char *name, char out_key[KEY_BYTES], struct err *err)
{
    struct nvml_pci pci = {0};
    int sms = 0;
    if (told->handle && source->nvml.pci_info &&
        source->nvml.pci_info(told->handle, &pci) == NVML_OK) {
        snprintf(out_key, KEY_BYTES, "%08x:%08x %s", pci.pci_device_id, pci.pci_subsystem_id, name);
        return 0;
    }
    int rc = count_sms(&source->driver, device, &sms, err);
    if (rc)
        return rc;
    snprintf(out_key, KEY_BYTES, "%d SMs %s", sms, name);
    return 0;
}

/* What the driver tells of device i; the PCI address in lower case. */
struct seen {
    CUdevice device;
    CUuuid uuid;
    char name[NAME_BYTES], pci[PCI_BYTES];
};

static int see(const struct driver *driver, int i, struct seen *out_seen, struct err *err)
{
    struct seen seen = {0};
    int rc = driver_check(driver, driver->cuDeviceGet(&seen.device, i), "cuDeviceGet", err);
    if (rc)
        return rc;
    rc = driver_check(driver, driver->cuDeviceGetName(seen.name, sizeof seen.name, seen.device),
                      "cuDeviceGetName", err);
    if (rc)
        return rc;
    rc = driver_check(driver, driver->cuDeviceGetUuid(&seen.uuid, seen.device), "cuDeviceGetUuid",
                      err);
    if (rc)
        return rc;
    rc = driver_check(driver, driver->cuDeviceGetPCIBusId(seen.pci, sizeof seen.pci, seen.device),
                      "cuDeviceGetPCIBusId", err);
    if (rc)
        return rc;
    for (char *c = seen.pci; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    *out_seen = seen;
    return 0;
}

static int describe(struct cuda_source *source, size_t i, struct err *err)
{
    struct device_info *info = &source->base.infos[i];
    struct nvml_gpu *told = &source->told[i];
    const struct nvml *nvml = &source->nvml;
    char uuid[UUID_BYTES], key[KEY_BYTES];
    unsigned minor = 0;
    struct seen seen;
    int rc = see(&source->driver, (int)i, &seen, err);
    if (rc)
        return rc;
    nvml_device handle = nvml_find(nvml, seen.pci);
    bool mig = mig_enabled(nvml, handle);
    format_uuid(&seen.uuid, mig, uuid);
    *told = (struct nvml_gpu){nvml, handle, mig ? nvml_find_uuid(nvml, uuid) : handle};
    if (mig)
        rc = complete_name(source, told, seen.device, seen.name, err);
    if (rc)
        return rc;
    rc = format_key(source, told, seen.device, seen.name, key, err);
    if (rc)
        return rc;
    source->devices[i] = seen.device;
    bool numbered = handle && nvml->minor_number && nvml->minor_number(handle, &minor) == NVML_OK;
    *info = (struct device_info){.uuid = keep(source, uuid),
                                 .pci = keep(source, seen.pci),
                                 .index = numbered ? (int32_t)minor : -1,
                                 .name = keep(source, seen.name),
                                 .model_key = keep(source, key)};
    return info->uuid && info->pci && info->name && info->model_key ? 0 : err_no_memory(err);
}

static void take_turn(struct cuda_source *source, size_t i)
{
    const char *uuid = source->base.infos[i].uuid;
    uint64_t name = cuda_turn_name(uuid);
    if (source->turn.held && source->turn.name == name)
        return;
    flag_lower(&source->coming);
    turn_give(&source->turn);
    source->turn = (struct turn){.name = name};
    source->coming = (struct flag){.name = cuda_coming_name(uuid)};
    cuda_take_turn(&source->turn, uuid);
    flag_raise(&source->coming); /* without it, this GPU is not waited for */
}

static void give_turn(struct cuda_source *source)
{
    flag_lower(&source->coming);
    turn_give(&source->turn);
}

static int open_device(struct device_source *base, size_t i, struct device **out_device,
                       struct err *err)
{
    struct cuda_source *source = (struct cuda_source *)base;
    const struct cuda_seen seen = {.infos = base->infos,
                                   .devices = source->devices,
                                   .count = base->info_count,
                                   .own = i,
                                   .turn = &source->turn,
                                   .coming = &source->coming};
    take_turn(source, i);
    int rc = cuda_open(&source->driver, &source->told[i], &seen, out_device, err);
    if (rc)
        give_turn(source);
    return rc;
}

static int look_at(struct device_source *base, size_t i, bool thorough, struct device_look *look,
                   struct err *err)
{
    struct cuda_source *source = (struct cuda_source *)base;
    const struct nvml_gpu *told = &source->told[i];
    take_turn(source, i);
    if (cuda_tell_board(told, &source->driver, &look->board) ||
        cuda_tell_config(told, &look->config) || health_tell(told, NULL, &look->health))
        return err_no_memory(err);
    if (thorough && health_tell_slow(told, NULL, &look->health))
        return err_no_memory(err);
    return 0;
}

static void destroy(struct device_source *base)
{
    struct cuda_source *source = (struct cuda_source *)base;
    give_turn(source);
    nvml_unload(&source->nvml);
    driver_unload(&source->driver);
    arena_fini(&source->strings);
    free(source->devices);
    free(source->told);
    free(source->base.infos);
    free(source);
}

static void *load_nvml(void *nvml)
{
    nvml_load(nvml);
    return NULL;
}

/* Loads both libraries at the same time, since each mostly waits for the kernel driver. No two
 * kernels ever run at once, so one hardware queue is enough: a context with the usual eight takes
 * 0.1 s longer to create and to destroy. cuInit reads the variable; if it cannot be set, only time
 * is lost. */
static int load_libraries(struct cuda_source *source, struct err *err)
{
    pthread_t thread;
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "1", 1);
    bool apart = pthread_create(&thread, NULL, load_nvml, &source->nvml) == 0;
    int rc = driver_load(&source->driver, err);
    if (apart)
        pthread_join(thread, NULL);
    else if (!rc)
        nvml_load(&source->nvml);
    return rc;
}

static const struct device_source_ops source_ops = {
    .backend = "cuda",
    .open = open_device,
    .look = look_at,
    .destroy = destroy,
};

int device_source_cuda(struct device_source **out_source, struct err *err)
{
    struct cuda_source *source = mem_array(1, sizeof *source);
    int count = 0;
    if (!source)
        return err_no_memory(err);
    source->base.ops = &source_ops;
    int rc = load_libraries(source, err);
    if (rc)
        goto out;
    rc = driver_check(&source->driver, source->driver.cuDeviceGetCount(&count), "cuDeviceGetCount",
                      err);
    if (rc)
        goto out;
    if (count < 1) {
        rc = err_set(err, -ENODEV, "the CUDA driver shows no GPU");
        goto out;
    }
    source->base.info_count = (size_t)count;
    source->base.infos = mem_array((size_t)count, sizeof *source->base.infos);
    source->devices = mem_array((size_t)count, sizeof *source->devices);
    source->told = mem_array((size_t)count, sizeof *source->told);
    if (!source->base.infos || !source->devices || !source->told) {
        rc = err_no_memory(err);
        goto out;
    }
    for (size_t i = 0; !rc && i < (size_t)count; i++)
        rc = describe(source, i, err);
out:
    if (rc)
        destroy(&source->base);
    else
        *out_source = &source->base;
    return rc;
}
