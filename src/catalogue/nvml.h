/* How NVML is asked for a fact: the function, how it is called, and what its answer is. */
#ifndef GPUMEMTOPO_CATALOGUE_NVML_H
#define GPUMEMTOPO_CATALOGUE_NVML_H

/* The names differ from those of NVIDIA's nvml.h, so that a test can compare both. */
enum nvml_clock { NVML_CLOCK_OF_SM = 1, NVML_CLOCK_OF_MEMORY = 2 };
enum { NVML_SENSOR_GPU = 0, NVML_THRESHOLD_SLOWDOWN = 1 };
enum { NVML_CORRECTED = 0, NVML_UNCORRECTED = 1 };
enum { NVML_SINCE_RESET = 0, NVML_EVER = 1 };
enum nvml_place {
    NVML_PLACE_L1 = 0,
    NVML_PLACE_L2 = 1,
    NVML_PLACE_DRAM = 2,
    NVML_PLACE_REGISTERS = 3,
    NVML_PLACE_TEXTURE = 4,
    NVML_PLACE_SHARED = 5,
    NVML_PLACE_CBU = 6,
    NVML_PLACE_SRAM = 7,
};
enum { NVML_RETIRED_CORRECTED = 0, NVML_RETIRED_UNCORRECTED = 1 };
enum { NVML_FIELD_MEMORY_TEMPERATURE = 82, NVML_FIELD_ENERGY = 83, NVML_FIELD_POWER_NOW = 186 };

/* nvmlGpuVirtualizationMode_t. */
enum {
    NVML_VIRTUALIZATION_NONE,
    NVML_VIRTUALIZATION_PASSTHROUGH,
    NVML_VIRTUALIZATION_VGPU,
    NVML_VIRTUALIZATION_HOST_VGPU,
    NVML_VIRTUALIZATION_HOST_VSGA,
};

/* Confidential computing: off, on, or the mode of several GPUs together (nvml_get_confidential). */
enum {
    NVML_CONFIDENTIAL_OFF,
    NVML_CONFIDENTIAL_ON,
    NVML_CONFIDENTIAL_PROTECTED_PCIE,
    NVML_CONFIDENTIAL_ENCRYPTED_NVLINK,
};

/* How a function is called, and what its answer is. */
enum nvml_shape {
    NVML_SHAPE_NONE,         /* no function tells the fact by itself: code reads it */
    NVML_SHAPE_NUMBER,       /* nvml_get_number, divided by `divisor` */
    NVML_SHAPE_FLAG,         /* nvml_get_number, true or false */
    NVML_SHAPE_WORD,         /* nvml_get_number, an index in `words` */
    NVML_SHAPE_TEXT,         /* nvml_get_text */
    NVML_SHAPE_CHOSEN,       /* nvml_get_chosen of a[0] */
    NVML_SHAPE_PAIR,         /* nvml_get_pair: a flag, number a[0] of the two */
    NVML_SHAPE_ECC_TOTAL,    /* nvml_get_ecc_total of error a[0], counter a[1] */
    NVML_SHAPE_ECC_AT,       /* nvml_get_ecc_at of error a[0], counter a[1], place a[2] */
    NVML_SHAPE_RETIRED,      /* nvml_get_retired: how many for cause a[0] */
    NVML_SHAPE_REMAPPED,     /* nvml_get_remapped: a number (a[0] < 2) or a flag of the four */
    NVML_SHAPE_BANKS,        /* nvml_get_banks: number a[0] of the five */
    NVML_SHAPE_FIELD,        /* nvml_get_fields of field a[0] */
    NVML_SHAPE_VALID,        /* nvml_check: whether the InfoROM is sound */
    NVML_SHAPE_CONFIDENTIAL, /* nvml_get_confidential: an index in `words`; with a[0], a flag:
                                whether developer tools may look inside */
};

/* Which device is asked. A MIG instance has a handle beside that of its GPU. */
enum nvml_of {
    NVML_OF_GPU,      /* the GPU, also if this is an instance of it */
    NVML_OF_INSTANCE, /* the instance; other GPUs do not have the fact */
    NVML_OF_PARENT,   /* the GPU of the instance; other GPUs do not have the fact */
};

struct nvml_question {
    enum nvml_shape shape;
    const char *symbol; /* "nvmlDeviceGetSerial" */
    int a[3];
    unsigned divisor; /* 0: 1 */
    const char *const *words;
    enum nvml_of of;
};

#endif
