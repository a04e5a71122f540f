/* Kernels as programs: coalescing, the lengths of the seed's table 4, and every row of the table.
 */
#include <errno.h>

#include "../check.h"
#include "predict/kernel.h"

static struct warp_access affine(uint64_t base, int64_t step_x, uint32_t lanes_x, int64_t step_y)
{
    return (struct warp_access){.mask = UINT32_MAX,
                                .bytes = 4,
                                .lanes_x = lanes_x,
                                .base = base,
                                .step_x = step_x,
                                .step_y = step_y};
}

/* Lines of 128 B in sectors of 32 B. */
static void warps_coalesce(void **state)
{
    (void)state;
    static const struct {
        uint64_t base;
        int64_t step_x;
        uint32_t lanes_x;
        int64_t step_y;
        uint32_t mask, lines, first_sectors;
    } cases[] = {
        {0, 4, 32, 0, UINT32_MAX, 1, 0xf},     {64, 4, 32, 0, UINT32_MAX, 2, 0xc},
        {0, 0, 32, 0, UINT32_MAX, 1, 0x1},     {0, 128, 32, 0, UINT32_MAX, 32, 0x1},
        {0, 8, 32, 0, UINT32_MAX, 2, 0xf},     {0, 4, 16, 128, UINT32_MAX, 2, 0x3},
        {0, 4, 16, 64, UINT32_MAX, 1, 0xf},    {0, 4, 32, 0, 0xff, 1, 0x1},
        {0, 4, 32, 0, 0x80000001, 1, 0x9},     {96, 16384, 32, 0, 0x7, 3, 0x8},
        {0, 4, 16, 16384, 0xffff0000, 1, 0x3}, {124, -4, 32, 0, UINT32_MAX, 1, 0xf},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct warp_line lines[WARP_LANES];
        struct warp_access access =
            affine(cases[i].base, cases[i].step_x, cases[i].lanes_x, cases[i].step_y);
        access.mask = cases[i].mask;
        uint32_t count = warp_coalesce(&access, (struct warp_unit){7, 5}, lines);
        if (count != cases[i].lines || lines[0].sectors != cases[i].first_sectors)
            fail_msg("case %zu: %u lines, sectors %x", i, count, lines[0].sectors);
    }
}

/* The fast way and the lane-by-lane way agree. */
static void listed_is_affine(void **state)
{
    (void)state;
    static const int64_t steps[] = {0, 4, 8, 12, 128, 132, 4096};
    for (size_t i = 0; i < COUNT_OF(steps); i++) {
        for (uint32_t lanes_x = 1; lanes_x <= WARP_LANES; lanes_x *= 2) {
            struct warp_line fast[WARP_LANES], slow[WARP_LANES];
            struct warp_access access = affine(48, steps[i], lanes_x, 1000 * 4);
            uint32_t count = warp_coalesce(&access, (struct warp_unit){7, 5}, fast);
            access.listed = true;
            for (uint32_t lane = 0; lane < WARP_LANES; lane++)
                access.addresses[lane] =
                    48 + lane % lanes_x * (uint64_t)steps[i] + lane / lanes_x * UINT64_C(4000);
            assert_int_equal(warp_coalesce(&access, (struct warp_unit){7, 5}, slow), count);
            for (uint32_t k = 0; k < count; k++) {
                assert_int_equal(fast[k].number, slow[k].number);
                assert_int_equal(fast[k].sectors, slow[k].sectors);
            }
        }
    }
}

static struct kernel_launch launch;

static void prepare(const char *name, uint64_t size, uint32_t x, uint32_t y)
{
    struct err err = {0};
    const char *near;
    const struct kernel *kernel = kernel_find(name, &near);
    assert_non_null(kernel);
    if (kernel_launch_init(&launch, kernel, size, x, y, &err))
        fail_msg("%s: %s", name, err.text);
}

/* Accesses of the longest warp. */
static uint64_t longest(void)
{
    uint64_t most = 0;
    for (uint64_t block = 0; block < launch.blocks; block++) {
        for (uint32_t w = 0; w < launch.warps_per_block; w++) {
            struct kernel_cursor cursor;
            struct warp_access access;
            uint64_t count = 0;
            kernel_begin(&launch, block, w, &cursor);
            while (kernel_next(&launch, &cursor, &access))
                count++;
            most = count > most ? count : most;
        }
    }
    return most;
}

/* The column L of table 4. Formulas of N are tried with a small N. CORR and COVAR: the seed's L is
 * that of a loop without its upper limit; their threads run N - 1 and N times. BP: both kernels
 * together have 16. NW's K1 and K2 have 35 accesses in each of N / 16 steps here; SRAD's 10 and 9.
 */
static void lengths_of_table_4(void **state)
{
    (void)state;
    enum { N = 64 };
    static const struct {
        const char *name;
        uint64_t length;
    } cases[] = {
        {"2dconv", 10},
        {"2mm", 3 * N},
        {"3dconv", 12 * N},
        {"atax1", 3 * N + 1},
        {"atax2", 3 * N + 1},
        {"bicg1", 3 * N + 1},
        {"bicg2", 3 * N + 1},
        {"corr", (3 * N + 2) * (N - 1) + 1},
        {"covar", (3 * N + 2) * N},
        {"fdtd1", 4},
        {"fdtd2", 4},
        {"fdtd3", 6},
        {"gesummv", 8 * N + 2},
        {"gramschm", 7 * N * (N - 1)},
        {"mvt1", 3 * N + 1},
        {"mvt2", 3 * N + 1},
        {"syr2k", 5 * N + 1},
        {"syrk", 3 * N + 2},
        {"bp1", 4},
        {"bp2", 9 + 3},
        {"cfd", 83},
        {"hotspot", 3},
        {"nw1", 35 * N / 16},
        {"nw2", 35 * (N / 16 - 1)},
        {"srad1", 10},
        {"srad2", 9},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        prepare(cases[i].name, N, 0, 0);
        uint64_t length = longest();
        if (length != cases[i].length)
            fail_msg("%s: %llu", cases[i].name, (unsigned long long)length);
    }
}

static void every_row_can_be_launched(void **state)
{
    (void)state;
    for (size_t i = 0; i < kernel_table_count; i++) {
        struct kernel_cursor cursor;
        struct warp_access access;
        prepare(kernel_table[i].name, 0, 0, 0);
        assert_int_equal(launch.size, kernel_table[i].size);
        assert_true(launch.blocks > 0 && launch.footprint_bytes > 0);
        kernel_begin(&launch, launch.blocks / 2, 0, &cursor);
        assert_true(kernel_next(&launch, &cursor, &access));
        assert_true(access.mask != 0);
    }
}

/* Accesses of all threads stay inside the arrays. */
static void addresses_are_inside(void **state)
{
    (void)state;
    enum { N = 448, ACCESSES = 5000 }; /* a multiple of all tiles */
    for (size_t i = 0; i < kernel_table_count; i++) {
        prepare(kernel_table[i].name, N, 0, 0);
        uint64_t first = UINT64_C(1) << 32, end = first + launch.footprint_bytes;
        for (uint64_t block = 0; block < launch.blocks; block += 1 + launch.blocks / 50) {
            struct kernel_cursor cursor;
            struct warp_access access;
            struct warp_line lines[WARP_LANES];
            kernel_begin(&launch, block, 0, &cursor);
            for (int n = 0; n < ACCESSES && kernel_next(&launch, &cursor, &access); n++) {
                uint32_t count = warp_coalesce(&access, (struct warp_unit){4, 4}, lines);
                for (uint32_t k = 0; k < count; k++)
                    if (lines[k].number * 16 < first || lines[k].number * 16 >= end)
                        fail_msg("%s: block %llu, %llx", kernel_table[i].name,
                                 (unsigned long long)block,
                                 (unsigned long long)lines[k].number * 16);
            }
        }
    }
}

static void nonsense_is_refused(void **state)
{
    (void)state;
    static const struct {
        uint64_t size;
        uint32_t x, y;
    } cases[] = {{1, 0, 0}, {UINT64_C(1) << 30, 0, 0}, {0, 24, 1}, {0, 1024, 2}, {1 << 24, 0, 0}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const char *none;
        const struct kernel *kernel = kernel_find("atax1", &none);
        assert_int_equal(
            kernel_launch_init(&launch, kernel, cases[i].size, cases[i].x, cases[i].y, NULL),
            -EINVAL);
    }
    const char *near;
    assert_int_equal(kernel_launch_init(&launch, kernel_find("nw1", &near), 100, 0, 0, NULL),
                     -EINVAL); /* tiles of 16 */
    assert_null(kernel_find("atax3", &near));
    assert_non_null(near);
    static const struct kernel bad[] = {
        {"a", "", 64, 32, 1, 0, "N", NULL, "N", "first load A[z]"},
        {"b", "", 64, 32, 1, 0, "N", NULL, "N", "first move A[x]"},
        {"c", "", 64, 32, 1, 0, "N", NULL, "N", "first load A[x"},
        {"d", "", 64, 32, 1, 0, "N", NULL, "N", "first load A[x] sometimes"},
        {"e", "", 64, 32, 1, 0, "", NULL, "N", "first load A[x]"},
        {"f", "", 64, 32, 1, 0, "N", "u=3", "N", "first load A[x]"},
        {"g", "", 64, 32, 1, 0, "N", NULL, "N:", "first load A[x] first load A[x]"},
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct kernel_program program;
        struct err err = {0};
        if (kernel_parse(&bad[i], &program, &err) != -EINVAL)
            fail_msg("kernel %s was taken", bad[i].name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(warps_coalesce),       cmocka_unit_test(listed_is_affine),
        cmocka_unit_test(lengths_of_table_4),   cmocka_unit_test(every_row_can_be_launched),
        cmocka_unit_test(addresses_are_inside), cmocka_unit_test(nonsense_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
