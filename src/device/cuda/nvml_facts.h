/* Reads facts from NVML by table: one row per fact; each is known or unknown by itself. */
#ifndef GPUMEMTOPO_DEVICE_CUDA_NVML_FACTS_H
#define GPUMEMTOPO_DEVICE_CUDA_NVML_FACTS_H

#include <stddef.h>
#include <stdint.h>

#include "catalogue/facts.h"
#include "device/cuda/nvml.h"
#include "schema/facts.h"

/* A GPU as NVML knows it. */
struct nvml_gpu {
    const struct nvml *nvml;
    nvml_device handle;   /* NULL: NVML does not know it */
    nvml_device instance; /* the MIG instance, if it is one; else the same as handle */
};

/* What a call gave: NVML_OK and the answer, or why there is none. */
struct nvml_value {
    int result;
    int64_t number;
    char text[NVML_TEXT_BYTES];
};
struct nvml_value nvml_read(const struct nvml_gpu *gpu, const struct nvml_question *question);

/* Sets the fact `key` to what NVML answers; if it does not, to unknown, with the reason. */
void nvml_tell(const struct nvml_gpu *gpu, const char *key, const struct nvml_question *question,
               struct facts *facts);

/* The same for all facts of this set that a row of the catalogue has a question for. */
void nvml_tell_settings(const struct nvml_gpu *gpu, enum inventory_facts set, struct facts *facts);

/* Sets one fact: the number, or why it is unknown. Always 0. */
int nvml_tell_number(const struct nvml_gpu *gpu, const char *key, int result, int64_t number,
                     struct facts *facts);

#endif
