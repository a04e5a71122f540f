/* The GPUs that the CUDA driver shows to this process. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "device/cuda/gpu.h"
#include "device/source.h"

enum { NAME_BYTES = 128, PCI_BYTES = 32, UUID_BYTES = 64, KEY_BYTES = 256 };

struct cuda_source {
    struct device_source base;
    struct driver driver;
    struct nvml nvml;
    CUdevice *devices;
    struct arena strings;
};

static const char *keep(struct cuda_source *source, const char *text)
{
    return arena_copy(&source->strings, text, strlen(text));
}

/* A MIG instance has a UUID of its own and is written with another prefix. */
static bool in_mig_mode(const struct cuda_source *source, nvml_device handle)
{
    unsigned current, pending;
    return handle && source->nvml.mig_mode &&
           source->nvml.mig_mode(handle, &current, &pending) == NVML_OK && current;
}

static void format_uuid(const CUuuid *uuid, bool mig, char out_text[UUID_BYTES])
{
    const unsigned char *b = (const unsigned char *)uuid->bytes;
    snprintf(out_text, UUID_BYTES,
             "%s-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
             mig ? "MIG" : "GPU", b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10],
             b[11], b[12], b[13], b[14], b[15]);
}

/* What makes a model: PCI device and subsystem id plus the name. Without NVML the ids are unknown,
 * and compute capability and SMs stand in for them. */
static int format_key(const struct cuda_source *source, nvml_device handle, CUdevice device,
                      const char *name, bool mig, char out_key[KEY_BYTES], struct err *err)
{
    const struct driver *driver = &source->driver;
    struct nvml_pci pci;
    int major, minor, sms;
    if (handle && source->nvml.pci_info && source->nvml.pci_info(handle, &pci) == NVML_OK && !mig) {
        snprintf(out_key, KEY_BYTES, "%08x:%08x %s", pci.pci_device_id, pci.pci_subsystem_id, name);
        return 0;
    }
    CUresult result =
        driver->cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
    if (result == CUDA_SUCCESS)
        result = driver->cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
                                              device);
    if (result == CUDA_SUCCESS)
        result =
            driver->cuDeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
    if (result != CUDA_SUCCESS)
        return driver_check(driver, result, "cuDeviceGetAttribute", err);
    snprintf(out_key, KEY_BYTES, "cc%d.%d:%d%s %s", major, minor, sms, mig ? ":mig" : "", name);
    return 0;
}

static int describe(struct cuda_source *source, size_t i, struct err *err)
{
    const struct driver *driver = &source->driver;
    struct device_info *info = &source->base.infos[i];
    CUdevice device;
    CUuuid uuid;
    char name[NAME_BYTES] = "", pci[PCI_BYTES] = "", uuid_text[UUID_BYTES], key[KEY_BYTES];
    int rc = driver_check(driver, driver->cuDeviceGet(&device, (int)i), "cuDeviceGet", err);
    if (!rc)
        rc = driver_check(driver, driver->cuDeviceGetName(name, sizeof name, device),
                          "cuDeviceGetName", err);
    if (!rc)
        rc = driver_check(driver, driver->cuDeviceGetUuid(&uuid, device), "cuDeviceGetUuid", err);
    if (!rc)
        rc = driver_check(driver, driver->cuDeviceGetPCIBusId(pci, sizeof pci, device),
                          "cuDeviceGetPCIBusId", err);
    if (rc)
        return rc;
    nvml_device handle = nvml_find(&source->nvml, pci);
    bool mig = in_mig_mode(source, handle);
    unsigned minor_number;
    rc = format_key(source, handle, device, name, mig, key, err);
    if (rc)
        return rc;
    for (char *c = pci; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    format_uuid(&uuid, mig, uuid_text);
    source->devices[i] = device;
    info->index = -1;
    if (handle && source->nvml.minor_number &&
        source->nvml.minor_number(handle, &minor_number) == NVML_OK)
        info->index = (int32_t)minor_number;
    info->uuid = keep(source, uuid_text);
    info->pci = keep(source, pci);
    info->name = keep(source, name);
    info->model_key = keep(source, key);
    if (!info->uuid || !info->pci || !info->name || !info->model_key)
        return err_no_memory(err);
    return 0;
}

static int open_device(struct device_source *base, size_t i, struct device **out_device,
                       struct err *err)
{
    struct cuda_source *source = (struct cuda_source *)base;
    return cuda_open(&source->driver, &source->nvml, source->devices[i], out_device, err);
}

static void destroy(struct device_source *base)
{
    struct cuda_source *source = (struct cuda_source *)base;
    nvml_unload(&source->nvml);
    driver_unload(&source->driver);
    arena_fini(&source->strings);
    free(source->devices);
    free(source->base.infos);
    free(source);
}

static const struct device_source_ops source_ops = {
    .backend = "cuda",
    .open = open_device,
    .destroy = destroy,
};

int device_source_cuda(struct device_source **out_source, struct err *err)
{
    struct cuda_source *source = mem_array(1, sizeof *source);
    int count = 0;
    if (!source)
        return err_no_memory(err);
    source->base.ops = &source_ops;
    int rc = driver_load(&source->driver, err);
    if (rc)
        goto out;
    nvml_load(&source->nvml);
    rc = driver_check(&source->driver, source->driver.cuDeviceGetCount(&count), "cuDeviceGetCount",
                      err);
    if (!rc && count < 1)
        rc = err_set(err, -ENODEV, "the CUDA driver shows no GPU");
    if (rc)
        goto out;
    source->base.info_count = (size_t)count;
    source->base.infos = mem_array((size_t)count, sizeof *source->base.infos);
    source->devices = mem_array((size_t)count, sizeof *source->devices);
    if (!source->base.infos || !source->devices) {
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
