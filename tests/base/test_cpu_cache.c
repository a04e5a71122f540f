/* Dropping lines from the caches of the CPU: what is in memory stays. That they are dropped, only
 * times show. */
#include "../check.h"

#include <string.h>

#include "base/cpu_cache.h"

enum { BYTES = 4096 };

static void contents_stay(void **state)
{
    static unsigned char bytes[BYTES];
    static const size_t strides[] = {1, 64, 100, BYTES + 1};
    (void)state;
    for (size_t i = 0; i < BYTES; i++)
        bytes[i] = (unsigned char)(i * 7);
    for (size_t i = 0; i < COUNT_OF(strides); i++) {
        cpu_cache_evict(bytes + i, BYTES - i, strides[i]);
        cpu_cache_evict(bytes, 0, strides[i]);
    }
    for (size_t i = 0; i < BYTES; i++)
        assert_int_equal(bytes[i], (unsigned char)(i * 7));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(contents_stay)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
