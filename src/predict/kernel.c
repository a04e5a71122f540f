/* Finds kernels and prepares their launch: every reference becomes bytes per index. */
#include "predict/kernel.h"

#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

enum { NAMES_MAX = 64, SIZE_MAX_N = 1 << 24, THREADS_MAX = 1024 };

/* Like cudaMalloc, far from address 0. */
static const uint64_t first_address = UINT64_C(1) << 32, array_align = 256;
static const uint64_t footprint_max = UINT64_C(1) << 44;

const struct kernel *kernel_find(const char *name, const char **out_near)
{
    const char *names[NAMES_MAX];
    size_t count = 0;
    for (; count < NAMES_MAX && count < kernel_table_count; count++) {
        names[count] = kernel_table[count].name;
        if (strcmp(name, names[count]) == 0)
            return &kernel_table[count];
    }
    *out_near = str_nearest(name, names, count);
    return NULL;
}

/* At least 1. */
static uint64_t extent(struct kernel_extent extent, uint64_t size)
{
    uint64_t divisor = extent.divisor ? extent.divisor : 1;
    uint64_t value = extent.fixed + (extent.n * size + divisor - 1) / divisor;
    return value ? value : 1;
}

/* Bytes of a step of each variable, for one of the three indices of an array. */
static void add_index(struct kernel_step *step, const struct kernel_index *index, uint64_t unit,
                      const struct kernel_launch *launch)
{
    int64_t bytes = (int64_t)unit;
    step->x += (index->x + index->tx) * bytes;
    step->y += (index->y + index->ty) * bytes;
    step->bx += (index->bx - (int64_t)index->tx * launch->block_x) * bytes;
    step->by += (index->by - (int64_t)index->ty * launch->block_y) * bytes;
    step->t += index->t * bytes;
    step->k += index->k * bytes;
    step->base += (uint64_t)(index->one * bytes);
}

static void prepare_step(const struct kernel_launch *launch, const struct kernel_ref *ref,
                         uint64_t base, struct kernel_step *step)
{
    const struct kernel_array *array = &launch->program.arrays[ref->array];
    uint64_t bytes = array->element_bytes ? array->element_bytes : 4;
    uint64_t columns = extent(array->columns, launch->size);
    uint64_t rows = extent(array->rows, launch->size);
    *step = (struct kernel_step){.ref = ref, .bytes = (uint32_t)bytes, .base = base};
    bool any_row = ref->scatter == KERNEL_ANY_ROW;
    bool any_column = ref->scatter == KERNEL_ANY_COLUMN || ref->scatter == KERNEL_NEAR_COLUMN;
    step->unit = any_row ? columns * bytes : bytes;
    step->span = any_row ? rows : columns;
    add_index(step, &ref->plane, rows * columns * bytes, launch);
    if (!any_row)
        add_index(step, &ref->row, columns * bytes, launch);
    if (!any_column)
        add_index(step, &ref->column, bytes, launch);
}

static uint64_t array_bytes(const struct kernel_array *array, uint64_t size)
{
    uint64_t bytes = array->element_bytes ? array->element_bytes : 4;
    return extent(array->planes, size) * extent(array->rows, size) * extent(array->columns, size) *
           bytes;
}

static int prepare_steps(struct kernel_launch *launch, struct err *err)
{
    const struct kernel_program *program = &launch->program;
    uint64_t bases[KERNEL_ARRAYS_MAX], next = first_address;
    for (size_t a = 0; a < KERNEL_ARRAYS_MAX; a++) {
        bases[a] = next;
        next += array_bytes(&launch->program.arrays[a], launch->size);
        next = (next + array_align - 1) / array_align * array_align;
    }
    launch->footprint_bytes = next - first_address;
    if (launch->footprint_bytes > footprint_max)
        return err_set(err, -EINVAL, "%s: size %llu needs more memory than any GPU has",
                       launch->kernel->name, (unsigned long long)launch->size);
    uint32_t count = 0;
    for (uint32_t phase = 0; phase < KERNEL_PHASES; phase++) {
        launch->first[phase] = count;
        for (size_t i = 0; i < program->ref_count; i++)
            if (program->refs[i].phase == phase)
                prepare_step(launch, &program->refs[i], bases[program->refs[i].array],
                             &launch->steps[count++]);
    }
    launch->first[KERNEL_PHASES] = count;
    return 0;
}

static bool is_power_of_two(uint32_t x)
{
    return x && !(x & (x - 1));
}

static int check_shape(const struct kernel_launch *launch, struct err *err)
{
    uint32_t x = launch->block_x, y = launch->block_y;
    if ((!is_power_of_two(x) && x % WARP_LANES) || !x || !y)
        return err_set(err, -EINVAL,
                       "a block's width is a power of two or a multiple of %d, not %u", WARP_LANES,
                       x);
    if ((uint64_t)x * y > THREADS_MAX)
        return err_set(err, -EINVAL, "a block has at most %d threads, not %ux%u", THREADS_MAX, x,
                       y);
    if (launch->kernel->shared_bytes &&
        (x != launch->kernel->block_x || y != launch->kernel->block_y))
        return err_set(
            err, -EINVAL,
            "%s: its block of %ux%u threads is its tile in shared memory; --block cannot "
            "change it",
            launch->kernel->name, launch->kernel->block_x, launch->kernel->block_y);
    if (launch->size < 2 || launch->size > SIZE_MAX_N)
        return err_set(err, -EINVAL, "size is a number from 2 to %d, not %llu", SIZE_MAX_N,
                       (unsigned long long)launch->size);
    return 0;
}

/* Tiles are whole. */
static int check_tiles(const struct kernel_launch *launch, struct err *err)
{
    struct kernel_extent tiles = launch->program.loop_t;
    if (!tiles.divisor || tiles.n * launch->size % tiles.divisor == 0)
        return 0;
    uint64_t above = (launch->size / tiles.divisor + 1) * tiles.divisor;
    return err_set(err, -EINVAL, "%s: size is a multiple of %u, not %llu; the next one is %llu",
                   launch->kernel->name, tiles.divisor, (unsigned long long)launch->size,
                   (unsigned long long)above);
}

static bool has_steps(const struct kernel_launch *launch, enum kernel_phase phase)
{
    return launch->first[phase] < launch->first[phase + 1];
}

/* Where no thread is inside the borders, there is nothing to predict. */
static int check_any_access(const struct kernel_launch *launch, struct err *err)
{
    struct kernel_cursor cursor;
    struct warp_access access;
    for (uint64_t block = 0; block < launch->blocks; block++)
        for (uint32_t warp = 0; warp < launch->warps_per_block; warp++) {
            kernel_begin(launch, block, warp, &cursor);
            if (kernel_next(launch, &cursor, &access))
                return 0;
        }
    return err_set(err, -EINVAL, "%s: with size %llu it accesses nothing; give a larger one",
                   launch->kernel->name, (unsigned long long)launch->size);
}

int kernel_launch_init(struct kernel_launch *launch, const struct kernel *kernel, uint64_t size,
                       uint32_t block_x, uint32_t block_y, struct err *err)
{
    memset(launch, 0, sizeof *launch);
    launch->kernel = kernel;
    launch->size = size ? size : kernel->size;
    launch->block_x = block_x ? block_x : kernel->block_x;
    launch->block_y = block_y ? block_y : kernel->block_y;
    int rc = check_shape(launch, err);
    rc = rc ? rc : kernel_parse(kernel, &launch->program, err);
    rc = rc ? rc : check_tiles(launch, err);
    if (rc)
        return rc;
    uint32_t threads = launch->block_x * launch->block_y;
    launch->lanes_x = launch->block_x < WARP_LANES ? launch->block_x : WARP_LANES;
    launch->rows_of_lanes = WARP_LANES / launch->lanes_x;
    launch->warps_per_block = (threads + WARP_LANES - 1) / WARP_LANES;
    launch->threads_x = extent(launch->program.threads_x, launch->size);
    launch->threads_y = extent(launch->program.threads_y, launch->size);
    launch->blocks_x = (launch->threads_x + launch->block_x - 1) / launch->block_x;
    launch->blocks =
        launch->blocks_x * ((launch->threads_y + launch->block_y - 1) / launch->block_y);
    launch->busy_blocks = launch->blocks;
    rc = prepare_steps(launch, err);
    if (rc)
        return rc;
    launch->loop_t = extent(launch->program.loop_t, launch->size);
    launch->loop_first =
        has_steps(launch, KERNEL_FIRST) ? extent(launch->program.loop_first, launch->size) : 0;
    launch->loop_second =
        has_steps(launch, KERNEL_SECOND) ? extent(launch->program.loop_second, launch->size) : 0;
    return check_any_access(launch, err);
}
