/* Reads facts from NVML by table: one row per fact; each is known or unknown by itself. */
#ifndef GPUMEMTOPO_DEVICE_CUDA_NVML_FACTS_H
#define GPUMEMTOPO_DEVICE_CUDA_NVML_FACTS_H

#include <stddef.h>
#include <stdint.h>

#include "device/cuda/nvml.h"
#include "schema/facts.h"

/* A GPU as NVML knows it. */
struct nvml_gpu {
    const struct nvml *nvml;
    nvml_device handle;   /* NULL: NVML does not know it */
    nvml_device instance; /* the MIG instance, if it is one; else the same as handle */
};

/* How the function of a row is called, and what its answer is. */
enum nvml_shape {
    NVML_SHAPE_NUMBER,    /* nvml_get_number, divided by `divisor` */
    NVML_SHAPE_FLAG,      /* nvml_get_number, true or false */
    NVML_SHAPE_WORD,      /* nvml_get_number, an index in `words` */
    NVML_SHAPE_TEXT,      /* nvml_get_text */
    NVML_SHAPE_CHOSEN,    /* nvml_get_chosen of a[0] */
    NVML_SHAPE_PAIR,      /* nvml_get_pair: a flag, number a[0] of the two */
    NVML_SHAPE_ECC_TOTAL, /* nvml_get_ecc_total of error a[0], counter a[1] */
    NVML_SHAPE_ECC_AT,    /* nvml_get_ecc_at of error a[0], counter a[1], place a[2] */
    NVML_SHAPE_RETIRED,   /* nvml_get_retired: how many for cause a[0] */
    NVML_SHAPE_REMAPPED,  /* nvml_get_remapped: a number (a[0] < 2) or a flag of the four */
    NVML_SHAPE_BANKS,     /* nvml_get_banks: number a[0] of the five */
    NVML_SHAPE_FIELD,     /* nvml_get_fields of field a[0] */
    NVML_SHAPE_VALID,     /* nvml_check: whether the InfoROM is sound */
};

struct nvml_row {
    const char *key;
    enum nvml_shape shape;
    size_t function; /* offset in struct nvml */
    int a[3];
    unsigned divisor; /* 0: 1 */
    const char *const *words;
};
#define NVML_AT(function) offsetof(struct nvml, function)

/* What a call gave: NVML_OK and the answer, or why there is none. */
struct nvml_value {
    int result;
    int64_t number;
    char text[NVML_TEXT_BYTES];
};
struct nvml_value nvml_read(const struct nvml_gpu *gpu, const struct nvml_row *row);

/* Sets the facts of all rows; a value that NVML does not tell is set unknown, with the reason. 0 or
 * -ENOMEM. */
int nvml_tell(const struct nvml_gpu *gpu, const struct nvml_row *rows, size_t count,
              struct facts *facts);

/* Sets one fact: the number, or why it is unknown. */
int nvml_tell_number(const struct nvml_gpu *gpu, const char *key, int result, int64_t number,
                     struct facts *facts);

#endif
