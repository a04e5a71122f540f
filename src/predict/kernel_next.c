/* Runs a kernel's program for one warp, access by access. */
#include "predict/kernel.h"

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

static uint64_t smaller(uint64_t a, uint64_t b)
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
        b.high_x = smaller(b.high_x, blocks_up_to_t);
        break;
    case KERNEL_BLOCKS_LEFT:
        b.high_x = less(b.high_x, blocks_up_to_t);
        break;
    case KERNEL_ONE_COLUMN:
        b.low_x = x;
        b.high_x = smaller(b.high_x, x + 1);
        break;
    default:
        b = (struct bounds){x + 1, smaller(b.high_x, x + launch->block_x - 1), y + 1,
                            smaller(b.high_y, y + launch->block_y - 1)};
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
        b.high_x = smaller(b.high_x, less(launch->size, cursor->t + 1));
        break;
    case KERNEL_UPPER_OR_SAME:
        b.high_x = smaller(b.high_x, less(launch->size, cursor->t));
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
    uint64_t from_x = less(b->low_x, cursor->x), to_x = smaller(less(b->high_x, cursor->x), width);
    uint64_t from_y = less(b->low_y, cursor->y), to_y = smaller(less(b->high_y, cursor->y), rows);
    if (from_x >= to_x)
        return 0;
    uint32_t row = (uint32_t)(((UINT64_C(1) << to_x) - 1) & ~((UINT64_C(1) << from_x) - 1));
    for (uint64_t y = from_y; y < to_y; y++)
        mask |= row << (y * width);
    return mask & (uint32_t)((UINT64_C(1) << cursor->lanes) - 1);
}

/* The guard's lanes change with t only: they are kept until it changes, or another guard comes. */
static inline uint32_t mask_of(const struct kernel_launch *launch, struct kernel_cursor *cursor,
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
    access->mask = mask_of(launch, cursor, step->ref->guard);
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
