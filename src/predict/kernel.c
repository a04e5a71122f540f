/* Kernels of the table: reads the text of a row, prepares a launch (every reference becomes bytes
 * per index), and runs the program of a warp access by access. */
#include "predict/kernel.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/number.h"
#include "base/str.h"

/* A text being read. `bad` points to where it could not go on. */
struct reader {
    const char *at, *bad;
};

static void skip_spaces(struct reader *r)
{
    while (*r->at == ' ')
        r->at++;
}

static void kernel_text_fail(struct reader *r)
{
    if (!r->bad)
        r->bad = r->at;
}

static bool take_char(struct reader *r, char c)
{
    if (*r->at != c)
        return false;
    r->at++;
    return true;
}

/* A number, or `otherwise` if there is none. */
static uint32_t take_number(struct reader *r, uint32_t otherwise)
{
    char *end;
    if (*r->at < '0' || *r->at > '9')
        return otherwise;
    uint32_t value = (uint32_t)strtoul(r->at, &end, 10);
    r->at = end;
    return value;
}

static size_t word_length(const char *text)
{
    size_t n = 0;
    while ((text[n] >= 'a' && text[n] <= 'z') || text[n] == '_')
        n++;
    return n;
}

/* The number of the word among `words`, -1 if it is none of them. */
static int take_word(struct reader *r, const char *const *words, size_t count)
{
    size_t length = word_length(r->at);
    for (size_t i = 0; i < count; i++) {
        if (words[i] && strlen(words[i]) == length && strncmp(r->at, words[i], length) == 0) {
            r->at += length;
            return (int)i;
        }
    }
    return -1;
}

/* "N", "8N/7", "N+1", "256" */
static struct kernel_extent take_extent(struct reader *r)
{
    struct kernel_extent extent = {0};
    const char *begin = r->at;
    uint32_t number = take_number(r, 1);
    if (take_char(r, 'N')) {
        extent.n = number;
        if (take_char(r, '/'))
            extent.divisor = take_number(r, 1);
        if (take_char(r, '+'))
            extent.fixed = take_number(r, 1);
    } else {
        extent.fixed = number;
    }
    if (r->at == begin)
        kernel_text_fail(r);
    return extent;
}

/* "16bx+tx-1" */
static void take_index(struct reader *r, struct kernel_index *index)
{
    static const char *const names[] = {"x", "y", "tx", "ty", "bx", "by", "t", "k"};
    int16_t *const fields[] = {&index->x,  &index->y,  &index->tx, &index->ty,
                               &index->bx, &index->by, &index->t,  &index->k};
    while (*r->at && *r->at != ']') {
        const char *begin = r->at;
        int sign = take_char(r, '-') ? -1 : 1;
        if (sign > 0)
            take_char(r, '+');
        int value = sign * (int)take_number(r, 1);
        int name = take_word(r, names, COUNT_OF(names));
        int16_t *field = name < 0 ? &index->one : fields[name];
        *field = (int16_t)(*field + value);
        if (r->at == begin || (name < 0 && word_length(r->at))) {
            kernel_text_fail(r);
            return;
        }
    }
    if (!take_char(r, ']'))
        kernel_text_fail(r);
}

static void take_modifiers(struct reader *r, struct kernel_ref *ref)
{
    static const char *const guards[] = {
        [KERNEL_FIRST_ROW] = "first_row",      [KERNEL_LATER_ROWS] = "later_rows",
        [KERNEL_LATER_COLUMNS] = "later_cols", [KERNEL_INNER] = "inner",
        [KERNEL_BUT_LAST] = "but_last",        [KERNEL_UPPER] = "upper",
        [KERNEL_UPPER_OR_SAME] = "upper_same", [KERNEL_AFTER_T] = "after_t",
        [KERNEL_UP_TO_T] = "up_to_t",          [KERNEL_BLOCKS_LEFT] = "blocks_left",
        [KERNEL_ONE_COLUMN] = "one_column",    [KERNEL_BLOCK_INNER] = "block_inner",
    };
    static const char *const scatters[] = {[KERNEL_ANY_ROW] = "any_row",
                                           [KERNEL_ANY_COLUMN] = "any_col",
                                           [KERNEL_NEAR_COLUMN] = "near_col"};
    for (skip_spaces(r); *r->at && *r->at != ';'; skip_spaces(r)) {
        int guard = take_word(r, guards, COUNT_OF(guards));
        int scatter = guard < 0 ? take_word(r, scatters, COUNT_OF(scatters)) : -1;
        if (guard >= 0)
            ref->guard = (enum kernel_guard)guard;
        else if (scatter >= 0)
            ref->scatter = (enum kernel_scatter)scatter;
        else {
            kernel_text_fail(r);
            return;
        }
    }
}

/* "first load A[x][k] inner" */
static void take_ref(struct reader *r, struct kernel_ref *ref)
{
    static const char *const phases[] = {"before", "head", "first", "second", "tail", "after"};
    static const char *const kinds[] = {"load", "store"};
    int phase = take_word(r, phases, COUNT_OF(phases));
    skip_spaces(r);
    int kind = take_word(r, kinds, COUNT_OF(kinds));
    skip_spaces(r);
    if (phase < 0 || kind < 0 || *r->at < 'A' || *r->at >= 'A' + KERNEL_ARRAYS_MAX) {
        kernel_text_fail(r);
        return;
    }
    ref->phase = (enum kernel_phase)phase;
    ref->store = kind == 1;
    ref->array = (uint32_t)(*r->at++ - 'A');
    while (take_char(r, '[')) {
        ref->plane = ref->row;
        ref->row = ref->column;
        ref->column = (struct kernel_index){0};
        take_index(r, &ref->column);
    }
    take_modifiers(r, ref);
}

static void take_loops(struct reader *r, struct kernel_program *program)
{
    static const char *const names[] = {"t", "first", "second"};
    struct kernel_extent *const loops[] = {&program->loop_t, &program->loop_first,
                                           &program->loop_second};
    for (skip_spaces(r); *r->at && !r->bad; skip_spaces(r)) {
        int name = take_word(r, names, COUNT_OF(names));
        if (name < 0 || !take_char(r, '='))
            kernel_text_fail(r);
        else
            *loops[name] = take_extent(r);
    }
}

static int kernel_text_end(const struct reader *r, const struct kernel *kernel, const char *what,
                           struct err *err)
{
    const char *bad = r->bad ? r->bad : *r->at ? r->at : NULL;
    return bad ? err_set(err, -EINVAL, "kernel %s: bad %s at \"%.30s\"", kernel->name, what, bad)
               : 0;
}

int kernel_parse(const struct kernel *kernel, struct kernel_program *program, struct err *err)
{
    struct reader r = {.at = kernel->threads};
    memset(program, 0, sizeof *program);
    program->threads_x = take_extent(&r);
    if (take_char(&r, 'x'))
        program->threads_y = take_extent(&r);
    int rc = kernel_text_end(&r, kernel, "threads", err);
    if (rc)
        return rc;
    r = (struct reader){.at = kernel->loops ? kernel->loops : ""};
    take_loops(&r, program);
    rc = kernel_text_end(&r, kernel, "loops", err);
    if (rc)
        return rc;
    r = (struct reader){.at = kernel->arrays};
    for (size_t a = 0; *r.at && !r.bad && a < KERNEL_ARRAYS_MAX; a++, skip_spaces(&r)) {
        /* "NxNx4": the last one is the column; ":16" after it is the size of an element. */
        struct kernel_array *array = &program->arrays[a];
        array->columns = take_extent(&r);
        while (take_char(&r, 'x')) {
            array->planes = array->rows;
            array->rows = array->columns;
            array->columns = take_extent(&r);
        }
        if (take_char(&r, ':'))
            array->element_bytes = take_number(&r, 0);
    }
    rc = kernel_text_end(&r, kernel, "arrays", err);
    if (rc)
        return rc;
    r = (struct reader){.at = kernel->program};
    for (skip_spaces(&r); *r.at && !r.bad; skip_spaces(&r)) {
        if (program->ref_count == KERNEL_REFS_MAX)
            kernel_text_fail(&r);
        else
            take_ref(&r, &program->refs[program->ref_count++]);
        if (*r.at && !take_char(&r, ';'))
            kernel_text_fail(&r);
    }
    return kernel_text_end(&r, kernel, "program", err);
}

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

static int check_shape(const struct kernel_launch *launch, struct err *err)
{
    uint32_t x = launch->block_x, y = launch->block_y;
    if ((!number_is_power_of_two(x) && x % WARP_LANES) || !x || !y)
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

void kernel_begin(const struct kernel_launch *launch, uint64_t block, uint32_t warp,
                  struct kernel_cursor *out_cursor)
{
    if (launch->source) {
        *out_cursor =
            (struct kernel_cursor){.place = launch->source->begin(launch->source, block, warp)};
        return;
    }
    uint32_t thread = warp * WARP_LANES, threads = launch->block_x * launch->block_y;
    uint64_t bx = block % launch->blocks_x, by = block / launch->blocks_x;
    *out_cursor = (struct kernel_cursor){
        .bx = bx,
        .by = by,
        .x = bx * launch->block_x + thread % launch->block_x,
        .y = by * launch->block_y + thread / launch->block_x,
        .lanes = threads - thread < WARP_LANES ? threads - thread : WARP_LANES,
    };
}

/* Lanes take part where low_x <= x < high_x and low_y <= y < high_y. */
struct bounds {
    uint64_t low_x, high_x, low_y, high_y;
};

static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

static uint64_t kernel_smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Guards by the block. */
static struct bounds bounds_of_block(const struct kernel_launch *launch,
                                     const struct kernel_cursor *cursor, enum kernel_guard guard,
                                     struct bounds b)
{
    uint64_t x = cursor->bx * launch->block_x, y = cursor->by * launch->block_y;
    uint64_t blocks_up_to_t = (cursor->t + 1) * launch->block_x;
    switch (guard) {
    case KERNEL_UP_TO_T:
        b.high_x = kernel_smaller(b.high_x, blocks_up_to_t);
        break;
    case KERNEL_BLOCKS_LEFT:
        b.high_x = less(b.high_x, blocks_up_to_t);
        break;
    case KERNEL_ONE_COLUMN:
        b.low_x = x;
        b.high_x = kernel_smaller(b.high_x, x + 1);
        break;
    default:
        b = (struct bounds){x + 1, kernel_smaller(b.high_x, x + launch->block_x - 1), y + 1,
                            kernel_smaller(b.high_y, y + launch->block_y - 1)};
        break;
    }
    return b;
}

static struct bounds bounds_of(const struct kernel_launch *launch,
                               const struct kernel_cursor *cursor, enum kernel_guard guard)
{
    struct bounds b = {0, launch->threads_x, 0, launch->threads_y};
    switch (guard) {
    case KERNEL_ALL:
        break;
    case KERNEL_FIRST_ROW:
        b.high_y = 1;
        break;
    case KERNEL_LATER_ROWS:
        b.low_y = 1;
        break;
    case KERNEL_LATER_COLUMNS:
        b.low_x = 1;
        break;
    case KERNEL_INNER:
        b = (struct bounds){1, less(b.high_x, 1), 1, less(b.high_y, 1)};
        break;
    case KERNEL_BUT_LAST:
        b = (struct bounds){0, less(b.high_x, 1), 0, less(b.high_y, 1)};
        break;
    case KERNEL_UPPER:
        b.high_x = kernel_smaller(b.high_x, less(launch->size, cursor->t + 1));
        break;
    case KERNEL_UPPER_OR_SAME:
        b.high_x = kernel_smaller(b.high_x, less(launch->size, cursor->t));
        break;
    case KERNEL_AFTER_T:
        b.low_x = cursor->t + 1;
        break;
    default:
        return bounds_of_block(launch, cursor, guard, b);
    }
    return b;
}

/* The lanes of a warp within these bounds: the same ones of each row of lanes that is within. */
static uint32_t lanes_within(const struct kernel_launch *launch, const struct kernel_cursor *cursor,
                             const struct bounds *b)
{
    uint32_t width = launch->lanes_x, rows = launch->rows_of_lanes, mask = 0;
    uint64_t from_x = less(b->low_x, cursor->x),
             to_x = kernel_smaller(less(b->high_x, cursor->x), width);
    uint64_t from_y = less(b->low_y, cursor->y),
             to_y = kernel_smaller(less(b->high_y, cursor->y), rows);
    if (from_x >= to_x)
        return 0;
    uint32_t row = (uint32_t)(((UINT64_C(1) << to_x) - 1) & ~((UINT64_C(1) << from_x) - 1));
    for (uint64_t y = from_y; y < to_y; y++)
        mask |= row << (y * width);
    return mask & (uint32_t)((UINT64_C(1) << cursor->lanes) - 1);
}

/* The guard's lanes change with t only: they are kept until it changes, or another guard comes. */
static inline uint32_t kernel_mask(const struct kernel_launch *launch, struct kernel_cursor *cursor,
                                   enum kernel_guard guard)
{
    if (cursor->guard != (uint32_t)guard + 1) {
        struct bounds b = bounds_of(launch, cursor, guard);
        cursor->mask = lanes_within(launch, cursor, &b);
        cursor->guard = (uint32_t)guard + 1;
    }
    return cursor->mask;
}

static uint64_t scramble(uint64_t x)
{
    x = (x ^ (x >> 31)) * 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9u;
    return x ^ (x >> 32);
}

static uint64_t index_value(const struct kernel_launch *launch, const struct kernel_cursor *cursor,
                            const struct kernel_index *index, uint64_t x, uint64_t y)
{
    int64_t tx = (int64_t)(x - cursor->bx * launch->block_x);
    int64_t ty = (int64_t)(y - cursor->by * launch->block_y);
    return (uint64_t)(index->x * (int64_t)x + index->y * (int64_t)y + index->tx * tx +
                      index->ty * ty + index->bx * (int64_t)cursor->bx +
                      index->by * (int64_t)cursor->by + index->t * (int64_t)cursor->t +
                      index->k * (int64_t)cursor->k + index->one);
}

/* A pseudo-random index, in bytes; the same one for the same key. */
static uint64_t draw(const struct kernel_step *step, uint64_t key, uint64_t x)
{
    uint64_t drawn = scramble(key + ((uint64_t)step->ref->array << 56));
    if (step->ref->scatter == KERNEL_NEAR_COLUMN)
        drawn = x + drawn % KERNEL_NEAR;
    return drawn % step->span * step->unit;
}

/* Replaces the index of each lane by a pseudo-random one. */
static void scatter(const struct kernel_launch *launch, const struct kernel_cursor *cursor,
                    const struct kernel_step *step, struct warp_access *access)
{
    const struct kernel_ref *ref = step->ref;
    const struct kernel_index *index = ref->scatter == KERNEL_ANY_ROW ? &ref->row : &ref->column;
    uint64_t first = index_value(launch, cursor, index, cursor->x, cursor->y);
    uint64_t key_x = (uint64_t)(int64_t)(index->x + index->tx);
    uint64_t key_y = (uint64_t)(int64_t)(index->y + index->ty);
    bool same_for_all = !key_x && ref->scatter != KERNEL_NEAR_COLUMN;
    if (same_for_all && launch->rows_of_lanes == 1) {
        access->base += draw(step, first, cursor->x);
        return;
    }
    access->listed = true;
    for (uint32_t y = 0, lane = 0; y < launch->rows_of_lanes; y++) {
        uint64_t row = access->base + y * (uint64_t)step->y, key = first + y * key_y, drawn = 0;
        for (uint32_t x = 0; x < launch->lanes_x; x++, lane++) {
            if (x == 0 || !same_for_all)
                drawn = draw(step, key + x * key_x, cursor->x + x);
            access->addresses[lane] = row + x * (uint64_t)step->x + drawn;
        }
    }
}

static bool make_access(const struct kernel_launch *launch, struct kernel_cursor *cursor,
                        const struct kernel_step *step, struct warp_access *access)
{
    access->mask = kernel_mask(launch, cursor, step->ref->guard);
    if (!access->mask)
        return false;
    access->store = step->ref->store;
    access->listed = false;
    access->bytes = step->bytes;
    access->lanes_x = launch->lanes_x;
    access->step_x = step->x;
    access->step_y = step->y;
    access->base = step->base + cursor->x * (uint64_t)step->x + cursor->y * (uint64_t)step->y +
                   cursor->bx * (uint64_t)step->bx + cursor->by * (uint64_t)step->by +
                   cursor->t * (uint64_t)step->t + cursor->k * (uint64_t)step->k;
    if (step->ref->scatter != KERNEL_EXACT)
        scatter(launch, cursor, step, access);
    return true;
}

/* Goes on after the last step of a phase. A loop whose first turn accessed nothing never will: its
 * guards do not depend on k. */
static void next_phase(const struct kernel_launch *launch, struct kernel_cursor *cursor)
{
    uint64_t loop = cursor->phase == KERNEL_FIRST    ? launch->loop_first
                    : cursor->phase == KERNEL_SECOND ? launch->loop_second
                                                     : 0;
    if (cursor->accessed && cursor->k + 1 < loop) {
        cursor->k++;
    } else if (cursor->phase == KERNEL_TAIL && cursor->t + 1 < launch->loop_t) {
        cursor->t++;
        cursor->guard = 0;
        cursor->k = 0;
        cursor->phase = KERNEL_HEAD;
    } else {
        cursor->k = 0;
        cursor->phase++;
    }
    cursor->accessed = cursor->k > 0;
    if (cursor->phase < KERNEL_PHASES)
        cursor->step = launch->first[cursor->phase];
}

bool kernel_next(const struct kernel_launch *launch, struct kernel_cursor *cursor,
                 struct warp_access *out_access)
{
    if (launch->source)
        return cursor->place && launch->source->next(launch->source, cursor->place, out_access);
    while (cursor->phase < KERNEL_PHASES) {
        if (cursor->step == launch->first[cursor->phase + 1]) {
            next_phase(launch, cursor);
        } else if (make_access(launch, cursor, &launch->steps[cursor->step++], out_access)) {
            cursor->accessed = true;
            return true;
        }
    }
    return false;
}

int kernel_failure(const struct kernel_launch *launch, struct err *err)
{
    return launch->source ? launch->source->failure(launch->source, err) : 0;
}

int kernel_finish(const struct kernel_launch *launch, uint64_t accesses, uint64_t loads,
                  struct err *err)
{
    return launch->source ? launch->source->finish(launch->source, accesses, loads, err) : 0;
}
