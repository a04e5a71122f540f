/* How a job's arrays lie in the GPU's memories: which of them need stored chains, and where each
 * step begins. Pure functions, no CUDA.
 *
 * An array that is warmed or timed load by load needs no chain: the next address is computed
 * outside the timed part. An average needs one, since the address arithmetic would be timed too.
 * Chains are closed cycles. */
#ifndef GPUMEMTOPO_DEVICE_CUDA_LAYOUT_H
#define GPUMEMTOPO_DEVICE_CUDA_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "device/device.h"

enum memory { MEMORY_GLOBAL, MEMORY_CONSTANT, MEMORY_SHARED, MEMORY_HOST, MEMORY_COUNT };
enum memory layout_memory(enum device_path path);

/* Bytes that one load of a path reads: 8 for pointers, 4 for indices and offsets. */
uint32_t layout_word_bytes(enum device_path path);

struct layout_chain {
    struct device_array array;
    uint64_t count;      /* elements */
    uint32_t slot_bytes; /* distance from the element's address: chains over the same memory use
                            different words of each sector */
};

struct layout_step {
    int chain;         /* index, -1: none */
    uint64_t elements; /* of its array */
    uint64_t first;    /* element */
    uint64_t position; /* of it in a random order */
    uint64_t loads;
};

struct layout {
    struct layout_chain chains[DEVICE_STEPS_MAX];
    uint32_t chain_count;
    struct layout_step steps[DEVICE_STEPS_MAX];
    uint64_t end_bytes[MEMORY_COUNT]; /* how much of each memory the job's steps use */
};

/* -ENOTSUP for what the kernels cannot do. */
int layout_init(struct layout *layout, const struct device_job *job, struct err *err);

bool layout_has_chains(const struct layout *layout, enum memory memory);

/* True when both have the same chains in this memory. */
bool layout_same(const struct layout *a, const struct layout *b, enum memory memory);
bool layout_same_chain(const struct layout_chain *a, const struct layout_chain *b);

/* The key of the permutation of a random array (kernels.h). */
uint32_t layout_key(const struct device_array *array);

/* Offset of an element of a step's array from the beginning of its memory. */
uint64_t layout_element_bytes(const struct layout *layout, const struct device_job *job,
                              uint32_t step, uint64_t element);

/* Writes the content of constant or shared memory: chains of byte offsets. words: zeroed before. */
void layout_image(const struct layout *layout, enum memory memory, uint32_t *words);

#endif
