/* Merge sort. */
#include "base/sort.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

struct sort {
    size_t size;
    int (*order)(const void *, const void *, void *);
    void *user;
    char *spare; /* room for the first half of all items */
};

static void sort_part(const struct sort *sort, char *items, size_t count)
{
    size_t size = sort->size, half = count / 2;
    if (count < 2)
        return;
    char *right = items + half * size, *end = items + count * size, *to = items;
    sort_part(sort, items, half);
    sort_part(sort, right, count - half);
    if (sort->order(right - size, right, sort->user) <= 0)
        return;
    memcpy(sort->spare, items, half * size);
    const char *left = sort->spare, *left_end = left + half * size;
    while (left < left_end && right < end) {
        bool from_left = sort->order(left, right, sort->user) <= 0;
        memcpy(to, from_left ? left : right, size);
        left += from_left ? size : 0;
        right += from_left ? 0 : size;
        to += size;
    }
    memcpy(to, left, (size_t)(left_end - left));
}

void sort_stable_with(void *items, size_t count, size_t size,
                      int (*order)(const void *, const void *, void *user), void *user)
{
    enum { SMALL_BYTES = 1024 };
    char small[SMALL_BYTES];
    size_t bytes = count / 2 * size;
    struct sort sort = {size, order, user, bytes <= sizeof small ? small : mem_bytes(bytes)};
    sort_part(&sort, items, count);
    if (sort.spare != small)
        free(sort.spare);
}

struct plain_order {
    int (*order)(const void *, const void *);
};

static int sort_plain_order(const void *a, const void *b, void *user)
{
    return ((const struct plain_order *)user)->order(a, b);
}

void sort_stable(void *items, size_t count, size_t size, int (*order)(const void *, const void *))
{
    sort_stable_with(items, count, size, sort_plain_order, &(struct plain_order){order});
}

int sort_by_u64(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}
