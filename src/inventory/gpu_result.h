/* Everything known about one GPU after its worker ended, and its checked binary form. */
#ifndef GPUMEMTOPO_INVENTORY_GPU_RESULT_H
#define GPUMEMTOPO_INVENTORY_GPU_RESULT_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "inventory/measure.h"
#include "schema/schema.h"

enum gpu_status {
    GPU_OK,
    GPU_OUTLIER, /* set by the judge only */
    GPU_TIMED_OUT,
    GPU_CRASHED,
    GPU_FAILED,
    GPU_LOST,
    GPU_BUSY,
    GPU_STATUS_COUNT
};
extern const char *const gpu_status_names[GPU_STATUS_COUNT + 1]; /* the last one is NULL */
const char *gpu_status_name(enum gpu_status status);

/* How the reason begins if the survey was ended before the GPU was measured: it says nothing about
 * the GPU. */
#define GPU_RESULT_INTERRUPTED "the survey was interrupted"

/* How the measurement of a GPU went, beside its status: from the result to the judge and into the
 * inventory. A new member is a line here and a row below. */
struct gpu_run {
    /* If a first worker crashed, hung or failed, and this is the result of a second one: how the
     * first one ended. GPU_OK and NULL: there was only one. */
    enum gpu_status first_status;
    char *first_reason;
    uint32_t gpus_allocated; /* GPUs of the node that the launcher lets its tasks use; 0: not
                                known */
};
extern const struct schema gpu_run_schema, gpu_first_try_schema;

/* The rows of a struct with the member `struct gpu_run run`. */
#define GPU_RUN_ROWS(s)                                                                            \
    {"first_try", FIELD_STRUCT(s, run, &gpu_first_try_schema), .flags = SCHEMA_OPTIONAL,           \
     .words = "if a first worker gave no result and the GPU was tried again"},                     \
    {                                                                                              \
        "gpus_allocated", FIELD_U32(s, run.gpus_allocated),                                        \
            .flags = SCHEMA_OPTIONAL,                                                              \
            .words = "GPUs of the node that the launcher lets its tasks use; absent: not known"    \
    }

/* Zero-initialised is empty. Strings are owned; NULL is unknown. */
struct gpu_result {
    char *uuid;
    char *node;
    char *pci;     /* "0000:1b:00.0" */
    int32_t index; /* NVML's minor number; -1 unknown */
    int32_t rank;
    char *name;      /* "NVIDIA H200" */
    char *model_key; /* identifies the model: PCI device and subsystem id, name, MIG profile */
    enum gpu_status status;
    char *reason; /* NULL while ok */
    struct gpu_run run;
    double elapsed_s;
    struct facts hardware; /* equal for all GPUs of a model: sms, memory_bytes, l2_bytes, ... */
    struct facts board;    /* of this unit: serial, part, vbios, driver */
    struct facts config;   /* settings: ecc, power_limit_w, ... */
    struct facts timings;  /* seconds by probe, in the order they ran; not in the inventory */
    struct facts health;   /* wear and errors (catalogue/facts.h) */
    struct measures measures;
    struct facts measured_again; /* second values of figures that looked bad, by metric */
    bool in_message;             /* all texts lie in a message: they are valid as long as it is,
                                    and not freed with the result */
};

/* All members; those that are known before a GPU is measured. */
extern const struct schema gpu_result_schema, gpu_plan_schema;

void gpu_result_fini(struct gpu_result *result);

/* Frees all facts and measures; identity, status and reason stay. */
void gpu_result_drop_figures(struct gpu_result *result);

/* Copies the identity (not the rank). */
void gpu_result_set_identity(struct gpu_result *to, const struct gpu_result *from);

/* Whether the driver named a reason that held the clock down in the second measurement: 1 or 0. */
#define GPU_RESULT_THROTTLED "clock.throttled"

/* What a second measurement of a GPU says: its figures and GPU_RESULT_THROTTLED. */
void gpu_result_second_values(const struct gpu_result *again, struct facts *out_values);

/* Moves the fingerprint of the die and the rates of its SMs from the notes of their measures to the
 * facts of the board. */
void gpu_result_take_fingerprint(struct gpu_result *result);

void gpu_result_copy(struct gpu_result *to, const struct gpu_result *from); /* to is empty */

/* Appends the binary form. Errors only set buffer->failed. A measure with status ok whose value is
 * not a number is written as failed. */
void gpu_result_encode(const struct gpu_result *result, struct strbuf *buffer);

/* Reads the binary form. -EBADMSG for anything that gpu_result_encode of the same
 * version did not write: lengths and counts are checked before use, numbers are finite and in
 * range. out_result untouched on failure. */
int gpu_result_decode(const void *data, size_t length, struct gpu_result *out_result,
                      struct err *err);

/* The same for a payload of a checked frame: the frame's checksum covers these bytes, so theirs is
 * not checked again. The texts of the result stay in the payload (in_message), which is changed: it
 * cannot be read a second time. */
int gpu_result_decode_framed(void *data, size_t length, struct gpu_result *out_result,
                             struct err *err);

#endif
