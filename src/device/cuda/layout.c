/* Chains and starting points of a job's steps. */
#include "device/cuda/layout.h"

#include <errno.h>

#include "device/cuda/kernels.h"

/* The smallest unit that any cache fetches: words inside it are cached together. */
enum { SECTOR_BYTES = 32 };

enum memory layout_memory(enum device_path path)
{
    switch (path) {
    case DEVICE_CONSTANT:
        return MEMORY_CONSTANT;
    case DEVICE_SHARED:
        return MEMORY_SHARED;
    case DEVICE_HOST:
        return MEMORY_HOST;
    default:
        return MEMORY_GLOBAL;
    }
}

uint32_t layout_word_bytes(enum device_path path)
{
    return path == DEVICE_TEXTURE || path == DEVICE_CONSTANT || path == DEVICE_SHARED ? 4 : 8;
}

static bool same_place(const struct device_array *a, const struct device_array *b)
{
    return a->offset_bytes == b->offset_bytes && a->size_bytes == b->size_bytes &&
           a->stride_bytes == b->stride_bytes && a->order == b->order &&
           (a->order != DEVICE_RANDOM || a->seed == b->seed);
}

static bool same_array(const struct device_array *a, const struct device_array *b)
{
    return a->path == b->path && same_place(a, b) && a->seed == b->seed;
}

/* All paths that load pointers can use the same chain. */
static bool same_words(const struct device_array *a, const struct device_array *b)
{
    return layout_memory(a->path) == layout_memory(b->path) &&
           layout_word_bytes(a->path) == layout_word_bytes(b->path) && same_place(a, b);
}

bool layout_same_chain(const struct layout_chain *a, const struct layout_chain *b)
{
    return a->slot_bytes == b->slot_bytes && same_words(&a->array, &b->array);
}

static int find_chain(const struct layout *layout, const struct device_array *array)
{
    for (uint32_t i = 0; i < layout->chain_count; i++)
        if (same_words(&layout->chains[i].array, array))
            return (int)i;
    return -1;
}

static int check_step(const struct device_step *step, bool chained, struct err *err)
{
    const struct device_array *array = &step->array;
    uint32_t word = layout_word_bytes(array->path);
    uint64_t elements = array->size_bytes / array->stride_bytes;
    if (chained && array->order == DEVICE_DESCENDING)
        return err_set(err, -ENOTSUP, "a chain cannot be descending");
    if (array->stride_bytes % word || array->offset_bytes % word ||
        (step->lanes > 1 && step->lane_stride_bytes % word))
        return err_set(err, -ENOTSUP,
                       "strides and offsets on this path must be multiples of %u bytes", word);
    if (chained && step->lanes > 1)
        return err_set(err, -ENOTSUP, "several lanes cannot follow one chain");
    if (elements > UINT32_MAX || step->loads > UINT32_MAX)
        return err_set(err, -ENOTSUP, "more than 2^32 elements or loads in a step");
    if (step->kind == DEVICE_FILL && layout_memory(array->path) != MEMORY_GLOBAL)
        return err_set(err, -ENOTSUP, "only global memory can be filled into L2");
    if (step->kind == DEVICE_FILL && array->order == DEVICE_RANDOM && step->loads % elements)
        return err_set(err, -ENOTSUP, "a random part of an array cannot be filled into L2");
    return 0;
}

static int add_step(struct layout *layout, const struct device_step *step,
                    struct layout_step *out_step, struct err *err)
{
    const struct device_array *array = &step->array;
    bool chained = step->kind == DEVICE_AVERAGE;
    int rc = check_step(step, chained, err);
    if (rc)
        return rc;
    out_step->elements = array->size_bytes / array->stride_bytes;
    out_step->loads = step->loads ? step->loads : out_step->elements;
    out_step->chain = chained ? find_chain(layout, array) : -1;
    if (chained && out_step->chain < 0) {
        out_step->chain = (int)layout->chain_count++;
        layout->chains[out_step->chain] =
            (struct layout_chain){.array = *array, .count = out_step->elements};
    }
    uint64_t end = device_step_end_bytes(step);
    uint64_t *end_bytes = &layout->end_bytes[layout_memory(array->path)];
    if (*end_bytes < end)
        *end_bytes = end;
    return 0;
}

static bool arrays_overlap(const struct device_array *a, const struct device_array *b)
{
    return layout_memory(a->path) == layout_memory(b->path) &&
           a->offset_bytes < b->offset_bytes + b->size_bytes &&
           b->offset_bytes < a->offset_bytes + a->size_bytes;
}

static bool overlaps_any(const struct layout *layout, uint32_t i)
{
    for (uint32_t j = 0; j < layout->chain_count; j++)
        if (j != i && arrays_overlap(&layout->chains[i].array, &layout->chains[j].array))
            return true;
    return false;
}

/* Chains over the same memory use different words of each sector. */
static int assign_slots(struct layout *layout, struct err *err)
{
    uint32_t crowded = 0, slots = 1;
    for (uint32_t i = 0; i < layout->chain_count; i++)
        crowded += overlaps_any(layout, i);
    while (slots < crowded)
        slots *= 2;
    for (uint32_t i = 0, slot = 0; i < layout->chain_count; i++) {
        struct layout_chain *chain = &layout->chains[i];
        /* Texture chains share memory with pointer chains, so their words count as pointers. */
        uint32_t word = layout_memory(chain->array.path) == MEMORY_GLOBAL
                            ? 8
                            : layout_word_bytes(chain->array.path);
        if (!overlaps_any(layout, i))
            continue;
        if (slots * word > SECTOR_BYTES || chain->array.stride_bytes % (slots * word) ||
            chain->array.offset_bytes % (slots * word))
            return err_set(
                err, -ENOTSUP,
                "%u overlapping chains need strides and offsets that are multiples of %u bytes",
                crowded, slots * word);
        chain->slot_bytes = slot++ * word;
    }
    return 0;
}

uint32_t layout_key(const struct device_array *array)
{
    return (uint32_t)(array->seed ^ array->seed >> 32);
}

static uint64_t position_of(const struct device_array *array, uint64_t count, uint64_t element)
{
    if (array->order == DEVICE_SEQUENTIAL)
        return element;
    if (array->order == DEVICE_DESCENDING)
        return count - 1 - element;
    return kernel_unpermute((uint32_t)element, (uint32_t)count, layout_key(array));
}

static uint64_t element_at(const struct device_array *array, uint64_t count, uint64_t position)
{
    if (array->order == DEVICE_SEQUENTIAL)
        return position;
    if (array->order == DEVICE_DESCENDING)
        return count - 1 - position;
    return kernel_permute((uint32_t)position, (uint32_t)count, layout_key(array));
}

static void set_starts(struct layout *layout, const struct device_job *job)
{
    int previous[DEVICE_AGENTS_MAX] = {-1, -1};
    for (uint32_t i = 0; i < job->step_count; i++) {
        const struct device_step *step = &job->steps[i];
        int before = previous[step->agent];
        struct layout_step *at = &layout->steps[i];
        const struct layout_step *last = before < 0 ? NULL : &layout->steps[before];
        if (last && same_array(&job->steps[before].array, &step->array))
            at->position = (last->position + last->loads) % at->elements;
        else
            at->position = position_of(&step->array, at->elements, step->start);
        at->first = element_at(&step->array, at->elements, at->position);
        previous[step->agent] = (int)i;
    }
}

int layout_init(struct layout *layout, const struct device_job *job, struct err *err)
{
    *layout = (struct layout){0};
    for (uint32_t i = 0; i < job->step_count; i++) {
        int rc = add_step(layout, &job->steps[i], &layout->steps[i], err);
        if (rc)
            return rc;
    }
    int rc = assign_slots(layout, err);
    if (rc)
        return rc;
    set_starts(layout, job);
    return 0;
}

bool layout_has_chains(const struct layout *layout, enum memory memory)
{
    for (uint32_t i = 0; i < layout->chain_count; i++)
        if (layout_memory(layout->chains[i].array.path) == memory)
            return true;
    return false;
}

static bool contains(const struct layout *layout, const struct layout_chain *chain)
{
    for (uint32_t i = 0; i < layout->chain_count; i++)
        if (layout_same_chain(&layout->chains[i], chain))
            return true;
    return false;
}

bool layout_same(const struct layout *a, const struct layout *b, enum memory memory)
{
    for (uint32_t i = 0; i < a->chain_count; i++)
        if (layout_memory(a->chains[i].array.path) == memory && !contains(b, &a->chains[i]))
            return false;
    for (uint32_t i = 0; i < b->chain_count; i++)
        if (layout_memory(b->chains[i].array.path) == memory && !contains(a, &b->chains[i]))
            return false;
    return true;
}

uint64_t layout_element_bytes(const struct layout *layout, const struct device_job *job,
                              uint32_t step, uint64_t element)
{
    const struct device_array *array = &job->steps[step].array;
    int chain = layout->steps[step].chain;
    uint32_t slot = chain < 0 ? 0 : layout->chains[chain].slot_bytes;
    return array->offset_bytes + element * array->stride_bytes + slot;
}

void layout_image(const struct layout *layout, enum memory memory, uint32_t *words)
{
    for (uint32_t i = 0; i < layout->chain_count; i++) {
        const struct layout_chain *chain = &layout->chains[i];
        if (layout_memory(chain->array.path) != memory)
            continue;
        uint64_t base = chain->array.offset_bytes + chain->slot_bytes;
        for (uint64_t j = 0; j < chain->count; j++) {
            uint64_t next = j + 1 < chain->count ? j + 1 : 0;
            uint64_t from = element_at(&chain->array, chain->count, j);
            uint64_t to = element_at(&chain->array, chain->count, next);
            words[(base + from * chain->array.stride_bytes) / 4] =
                (uint32_t)(base + to * chain->array.stride_bytes);
        }
    }
}
