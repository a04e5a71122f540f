/* The GPUs that the CUDA driver shows to this process, and the instances of GPUs that MIG divides.
 */
#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "device/cuda/gpu.h"
#include "device/source.h"

/* Older drivers give the UUID of the GPU, so that its instances are listed as that GPU, which
 * cannot be opened. */
enum { MIG_UUID_VERSION = 11040 };

/* True when MIG divides this GPU; then CUDA shows instances only. */
static bool mig_enabled(const struct nvml *nvml, nvml_device handle)
{
    unsigned current = 0, pending = 0;
    return handle && nvml->mig_mode && nvml->mig_mode(handle, &current, &pending) == NVML_OK &&
           current;
}

/* The instance's profile, "1g.10gb" or "1c.2g.20gb"; false where NVML does not say. NVIDIA's names:
 * slices of the GPU, then memory in GiB rounded up. The number of compute slices comes first if the
 * instance does not have all of them. */
static bool mig_profile(const struct nvml *nvml, nvml_device instance,
                        char out_profile[NVML_PROFILE_BYTES])
{
    struct nvml_attributes is = {0};
    if (!instance || !nvml->attributes || nvml->attributes(instance, &is) != NVML_OK)
        return false;
    unsigned long long gib = (is.memory_mib + 1023) / 1024;
    if (is.compute_slices < is.gpu_slices)
        snprintf(out_profile, NVML_PROFILE_BYTES, "%uc.%ug.%llugb", is.compute_slices,
                 is.gpu_slices, gib);
    else
        snprintf(out_profile, NVML_PROFILE_BYTES, "%ug.%llugb", is.gpu_slices, gib);
    return true;
}

static const char MIG_IN_NAME[] = " MIG ";

enum { NAME_BYTES = 128, PCI_BYTES = 32, UUID_BYTES = 64, KEY_BYTES = 256 };

struct cuda_source {
    struct device_source base;
    struct driver driver;
    struct nvml nvml;
    CUdevice *devices;
    struct nvml_gpu *nvml_gpus; /* as devices parallel to the infos */
    struct arena strings;
    struct turn turn;   /* of the GPU that is looked at, or open */
    struct flag coming; /* of the same GPU */
};

static const char *source_keep(struct cuda_source *source, const char *text)
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

/* The number of SMs replaces the PCI ids, or the MIG profile, where NVML does not report them. */
static int count_sms(const struct driver *driver, CUdevice device, int *out_sms, struct err *err)
{
    return driver_check(
        driver,
        driver->cuDeviceGetAttribute(out_sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device),
        "cuDeviceGetAttribute", err);
}

/* Adds the profile of a MIG instance to its name, as newer drivers do, and keeps it in nvml_gpu. */
static int name_instance(const struct cuda_source *source, CUdevice device,
                         struct nvml_gpu *nvml_gpu, char name[NAME_BYTES], struct err *err)
{
    const char *named = strstr(name, MIG_IN_NAME);
    size_t length = strlen(name);
    int sms = 0;
    if (named) {
        snprintf(nvml_gpu->profile, sizeof nvml_gpu->profile, "%.40s", named + strlen(MIG_IN_NAME));
        return 0;
    }
    if (!mig_profile(&source->nvml, nvml_gpu->instance, nvml_gpu->profile)) {
        int rc = count_sms(&source->driver, device, &sms, err);
        if (rc)
            return rc;
        snprintf(nvml_gpu->profile, sizeof nvml_gpu->profile, "%d SMs", sms);
    }
    snprintf(name + length, NAME_BYTES - length, "%s%s", MIG_IN_NAME, nvml_gpu->profile);
    return 0;
}

/* A virtual GPU is a share of a GPU in memory and time: a model of its own. */
static void name_virtual(const struct nvml *nvml, nvml_device handle, char name[NAME_BYTES])
{
    unsigned mode = 0;
    size_t length = strlen(name);
    if (handle && nvml->virtualization && nvml->virtualization(handle, &mode) == NVML_OK &&
        mode == NVML_VIRTUALIZATION_VGPU && !strstr(name, "vGPU"))
        snprintf(name + length, NAME_BYTES - length, " vGPU");
}

/* The key of a model: PCI device and subsystem id, and the name. The SMs of MIG instances of one
 * profile may differ by their place on the die: those with equal ones are a model. */
static int format_key(const struct cuda_source *source, const struct nvml_gpu *nvml_gpu,
                      CUdevice device, const char *name, char out_key[KEY_BYTES], struct err *err)
{
    struct nvml_pci pci = {0};
    int sms = 0;
    bool known = nvml_gpu->handle && source->nvml.pci_info &&
                 source->nvml.pci_info(nvml_gpu->handle, &pci) == NVML_OK;
    if (!known || nvml_gpu->profile[0]) {
        int rc = count_sms(&source->driver, device, &sms, err);
        if (rc)
            return rc;
    }
    if (!known)
        snprintf(out_key, KEY_BYTES, "%d SMs %s", sms, name);
    else
        snprintf(out_key, KEY_BYTES, "%08x:%08x %s", pci.pci_device_id, pci.pci_subsystem_id, name);
    if (known && nvml_gpu->profile[0])
        snprintf(out_key + strlen(out_key), KEY_BYTES - strlen(out_key), ", %d SMs", sms);
    return 0;
}

/* What the driver reports of device i; the PCI address in lower case. */
struct seen {
    CUdevice device;
    CUuuid uuid;
    char name[NAME_BYTES], pci[PCI_BYTES];
};

static int see_device(const struct driver *driver, int i, struct seen *out_seen, struct err *err)
{
    struct seen seen = {0};
    int rc = driver_check(driver, driver->cuDeviceGet(&seen.device, i), "cuDeviceGet", err);
    if (rc)
        return rc;
    rc = driver_check(driver, driver->cuDeviceGetName(seen.name, sizeof seen.name, seen.device),
                      "cuDeviceGetName", err);
    if (rc)
        return rc;
    rc = driver_check(driver, driver->cuDeviceGetUuid_v2(&seen.uuid, seen.device),
                      "cuDeviceGetUuid", err);
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
    struct nvml_gpu *nvml_gpu = &source->nvml_gpus[i];
    const struct nvml *nvml = &source->nvml;
    char uuid[UUID_BYTES], key[KEY_BYTES];
    unsigned minor = 0;
    struct seen seen;
    int rc = see_device(&source->driver, (int)i, &seen, err);
    if (rc)
        return rc;
    nvml_device handle = nvml_find(nvml, seen.pci);
    bool mig = mig_enabled(nvml, handle) && source->driver.version >= MIG_UUID_VERSION;
    format_uuid(&seen.uuid, mig, uuid);
    *nvml_gpu = (struct nvml_gpu){nvml, handle, mig ? nvml_find_uuid(nvml, uuid) : handle};
    if (mig)
        rc = name_instance(source, seen.device, nvml_gpu, seen.name, err);
    if (rc)
        return rc;
    name_virtual(nvml, handle, seen.name);
    rc = format_key(source, nvml_gpu, seen.device, seen.name, key, err);
    if (rc)
        return rc;
    source->devices[i] = seen.device;
    bool numbered = handle && nvml->minor_number && nvml->minor_number(handle, &minor) == NVML_OK;
    *info = (struct device_info){.uuid = source_keep(source, uuid),
                                 .pci = source_keep(source, seen.pci),
                                 .index = numbered ? (int32_t)minor : -1,
                                 .name = source_keep(source, seen.name),
                                 .model_key = source_keep(source, key)};
    return 0;
}

static void source_take_turn(struct cuda_source *source, size_t i)
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

static void source_give_turn(struct cuda_source *source)
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
    if (mig_enabled(&source->nvml, source->nvml_gpus[i].handle) &&
        source->driver.version < MIG_UUID_VERSION)
        return err_set(err, -ENOTSUP,
                       "a GPU with MIG needs a driver that supports CUDA 11.4 or newer: this one "
                       "does not tell its instances apart");
    source_take_turn(source, i);
    int rc = cuda_open(&source->driver, &source->nvml_gpus[i], &seen, out_device, err);
    if (rc)
        source_give_turn(source);
    return rc;
}

static int source_look(struct device_source *base, size_t i, bool thorough,
                       struct device_look *look, struct err *err)
{
    struct cuda_source *source = (struct cuda_source *)base;
    const struct nvml_gpu *nvml_gpu = &source->nvml_gpus[i];
    (void)err;
    source_take_turn(source, i);
    cuda_report_board(nvml_gpu, &source->driver, &look->board);
    cuda_report_config(nvml_gpu, &look->config);
    health_report(nvml_gpu, NULL, &look->health);
    if (thorough)
        health_report_slow(nvml_gpu, NULL, &look->health);
    return 0;
}

static void source_destroy(struct device_source *base)
{
    struct cuda_source *source = (struct cuda_source *)base;
    source_give_turn(source);
    nvml_unload(&source->nvml);
    driver_unload(&source->driver);
    arena_fini(&source->strings);
    free(source->devices);
    free(source->nvml_gpus);
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
    .look = source_look,
    .destroy = source_destroy,
};

int device_source_cuda(struct device_source **out_source, struct err *err)
{
    struct cuda_source *source = mem_array(1, sizeof *source);
    int count = 0;
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
    source->nvml_gpus = mem_array((size_t)count, sizeof *source->nvml_gpus);
    for (size_t i = 0; !rc && i < (size_t)count; i++)
        rc = describe(source, i, err);
out:
    if (rc)
        source_destroy(&source->base);
    else
        *out_source = &source->base;
    return rc;
}
