/* Kernels: what each thread loads and stores, as rows of a table. */
#ifndef GPUMEMTOPO_PREDICT_KERNEL_H
#define GPUMEMTOPO_PREDICT_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "predict/warp.h"

/* A thread runs BEFORE; for each t: HEAD, for each k: FIRST, for each k: SECOND, TAIL; then AFTER.
 */
enum kernel_phase {
    KERNEL_BEFORE,
    KERNEL_HEAD,
    KERNEL_FIRST,
    KERNEL_SECOND,
    KERNEL_TAIL,
    KERNEL_AFTER,
    KERNEL_PHASES
};

/* Which threads execute a reference. x and y: the thread's place in the grid. */
enum kernel_guard {
    KERNEL_ALL,
    KERNEL_FIRST_ROW,     /* y = 0 */
    KERNEL_LATER_ROWS,    /* y > 0 */
    KERNEL_LATER_COLUMNS, /* x > 0 */
    KERNEL_INNER,         /* neither first nor last, in x and y */
    KERNEL_BUT_LAST,      /* not the last, in x and y */
    KERNEL_UPPER,         /* x + t < N - 1 */
    KERNEL_UPPER_OR_SAME, /* x + t < N */
    KERNEL_AFTER_T,       /* x > t */
    KERNEL_UP_TO_T,       /* blocks 0 .. t of a row of blocks */
    KERNEL_BLOCKS_LEFT,   /* all but the last t + 1 blocks of a row */
    KERNEL_ONE_COLUMN,    /* the first x of a block */
    KERNEL_BLOCK_INNER,   /* neither first nor last of its block, in x and y */
};

/* An index is replaced by a pseudo-random one; the same one for the same index. */
enum kernel_scatter {
    KERNEL_EXACT,
    KERNEL_ANY_ROW,
    KERNEL_ANY_COLUMN,
    KERNEL_NEAR_COLUMN, /* within KERNEL_NEAR of x */
};
enum { KERNEL_NEAR = 2048 };

/* A sum of multiples: of x and y, the place in the block (tx, ty), the block (bx, by), the loops'
 * counters and 1. */
struct kernel_index {
    int16_t x, y, tx, ty, bx, by, t, k, one;
};

struct kernel_ref {
    enum kernel_phase phase;
    bool store;
    uint32_t array;
    struct kernel_index plane, row, column;
    enum kernel_guard guard;
    enum kernel_scatter scatter;
};

/* fixed + n x N / divisor (0: 1) */
struct kernel_extent {
    uint32_t fixed, n, divisor;
};

enum { KERNEL_ARRAYS_MAX = 8, KERNEL_REFS_MAX = 48 };

struct kernel_array {
    struct kernel_extent planes, rows, columns; /* zero: 1 */
    uint32_t element_bytes;                     /* 0: 4 */
};

/* One row of the table. The texts:
 * - threads, "N" or "NxN": threads in x and y. N is the size; "8N/7", "N+1" and "16" are extents,
 *   too.
 * - loops, "t=N first=16": how often they run; 1 if not named.
 * - arrays, "NxN N Nx16:2": A is N x N, B has N elements, C has elements of 2 bytes (otherwise 4).
 * - program, "before load C[x]; first load A[x][k] inner; ...": phase, kind, array[row][column],
 *   guard and scatter (kernel.c has their words). */
struct kernel {
    const char *name, *summary;
    uint32_t size; /* N */
    uint32_t block_x, block_y, shared_bytes;
    const char *threads, *loops, *arrays, *program;
};

/* What the texts of a row say. */
struct kernel_program {
    struct kernel_extent threads_x, threads_y, loop_t, loop_first, loop_second; /* zero: 1 */
    struct kernel_array arrays[KERNEL_ARRAYS_MAX];
    struct kernel_ref refs[KERNEL_REFS_MAX];
    size_t ref_count;
};
int kernel_parse(const struct kernel *kernel, struct kernel_program *program, struct err *err);

extern const struct kernel kernel_table[];
extern const size_t kernel_table_count;

/* The kernel of this name; NULL and, if one is near, its name. */
const struct kernel *kernel_find(const char *name, const char **out_near);

/* A reference with all indices turned into bytes. */
struct kernel_step {
    uint64_t base;
    int64_t x, y, bx, by, t, k;
    uint64_t span, unit; /* scattered: so many units of so many bytes */
    const struct kernel_ref *ref;
    uint32_t bytes;
};

struct kernel_launch {
    const struct kernel *kernel;
    struct kernel_program program;
    uint64_t size;
    uint32_t block_x, block_y, warps_per_block;
    uint32_t lanes_x, rows_of_lanes; /* of a warp: so many side by side, in so many rows */
    uint64_t threads_x, threads_y, blocks_x, blocks;
    uint64_t busy_blocks; /* that have accesses */
    uint64_t loop_t, loop_first, loop_second;
    uint64_t footprint_bytes;
    uint32_t registers;           /* of a thread; 0: not known */
    uint32_t element_bytes_max;   /* of a lane; 0: at most a sector */
    struct access_source *source; /* of all accesses; NULL: the program of the kernel */
    struct kernel_step steps[KERNEL_REFS_MAX];
    uint32_t first[KERNEL_PHASES + 1]; /* steps of a phase: first[phase] .. first[phase + 1] - 1 */
};

/* size, block_x, block_y: 0 as in the table. -EINVAL: a size or a shape that makes no sense. */
int kernel_launch_init(struct kernel_launch *launch, const struct kernel *kernel, uint64_t size,
                       uint32_t block_x, uint32_t block_y, struct err *err);

/* Where a warp is in its program. */
struct kernel_cursor {
    uint64_t x, y, bx, by, t, k;
    uint32_t lanes, phase, step;
    bool accessed;        /* in this loop */
    uint32_t guard, mask; /* the last guard + 1 and its lanes; 0: none since t changed */
    void *place;          /* in the launch's source; the rest is unused then */
};
void kernel_begin(const struct kernel_launch *launch, uint64_t block, uint32_t warp,
                  struct kernel_cursor *out_cursor);

/* The warp's next access; false: it has ended. */
bool kernel_next(const struct kernel_launch *launch, struct kernel_cursor *cursor,
                 struct warp_access *out_access);

/* 0, or why the launch's source could not go on; all its warps have ended then. */
int kernel_failure(const struct kernel_launch *launch, struct err *err);

/* After a whole run: 0, or why its source did not tell the truth about its accesses. */
int kernel_finish(const struct kernel_launch *launch, uint64_t accesses, uint64_t loads,
                  struct err *err);

#endif
