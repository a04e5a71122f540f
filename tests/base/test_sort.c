/* Sorted items are in order, and equal ones in the order in which they came. */
#include "base/sort.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/rng.h"

struct item {
    uint32_t key, came;
    char more[9]; /* a size that is no power of two */
};

static int item_order(const void *a, const void *b)
{
    uint32_t x = ((const struct item *)a)->key, y = ((const struct item *)b)->key;
    return (x > y) - (x < y);
}

static void equal_items_keep_their_order(void **state)
{
    (void)state;
    static const size_t counts[] = {0, 1, 2, 3, 7, 64, 1000, 4099};
    struct rng rng;
    rng_init(&rng, 1, "sort");
    for (size_t c = 0; c < COUNT_OF(counts); c++)
        for (uint32_t keys = 1; keys <= 10000; keys *= 10) {
            size_t count = counts[c];
            struct item *items = mem_array(count, sizeof *items);
            for (size_t i = 0; i < count; i++)
                items[i] = (struct item){.key = (uint32_t)(rng_uniform(&rng) * keys),
                                         .came = (uint32_t)i,
                                         .more = {(char)i}};
            sort_stable(items, count, sizeof *items, item_order);
            for (size_t i = 0; i < count; i++) {
                assert_int_equal(items[i].more[0], (char)items[i].came);
                if (i > 0 && items[i - 1].key == items[i].key)
                    assert_true(items[i - 1].came < items[i].came);
                else
                    assert_true(i == 0 || items[i - 1].key < items[i].key);
            }
            free(items);
        }
    sort_stable(NULL, 0, sizeof(struct item), item_order);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(equal_items_keep_their_order)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
