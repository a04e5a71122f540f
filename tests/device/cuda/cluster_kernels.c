/* Clusters and bulk copies on a real GPU: the own shared memory is nearer than that of other SMs,
 * twice the work takes twice as long, and memory is further than L2. Skipped, and counted as such,
 * where there is no GPU or no clusters. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "device/device.h"
#include "real_gpu.h"

enum { LOADS = 256 };

static struct device *device;

/* Kernels of CUDA 11.8 have no copies: what a kernel that is not there would do is skipped. */
static void expect_done(int rc, const char *what, const struct err *err)
{
    if (rc == -ENOTSUP) {
        printf("%s\n", err->text);
        skip();
    }
    if (rc)
        fail_msg("%s: %s", what, err->text);
}

static struct device_cluster_answer ask(const struct device_cluster *asked)
{
    struct device_cluster_answer answer;
    struct err err = {0};
    expect_done(device_run_cluster(device, asked, &answer, &err), "clusters", &err);
    return answer;
}

static double mean_cycles(const struct device_cluster *asked)
{
    struct device_cluster_answer answer = ask(asked);
    double sum = 0;
    for (size_t i = 0; i < answer.cycle_count; i++)
        sum += (double)answer.cycles[i];
    sum /= (double)answer.cycle_count;
    device_cluster_answer_fini(&answer);
    return sum;
}

static void own_is_nearer(void **state)
{
    (void)state;
    const struct device_cluster asked = {.work = DEVICE_CLUSTER_LOADS, .size = 8, .count = LOADS};
    struct device_cluster_answer answer = ask(&asked);
    uint64_t own = 0, nearest = UINT64_MAX;
    for (size_t i = 0; i < answer.cycle_count; i++) {
        bool same = i / asked.size % asked.size == i % asked.size;
        if (same && answer.cycles[i] > own)
            own = answer.cycles[i];
        if (!same && answer.cycles[i] < nearest)
            nearest = answer.cycles[i];
    }
    printf("own at most %.1f cycles, others at least %.1f\n", (double)own / LOADS,
           (double)nearest / LOADS);
    assert_true(2 * own < nearest);
    device_cluster_answer_fini(&answer);
}

static void twice_the_work(void **state)
{
    (void)state;
    struct device_cluster works[] = {
        {.work = DEVICE_CLUSTER_READ, .size = 4, .count = 200},
        {.work = DEVICE_CLUSTER_COPY, .size = 4, .count = 256, .bytes = 8192, .in_flight = 8},
        {.work = DEVICE_CLUSTER_COPY, .size = 2, .count = 256, .bytes = 16}};
    for (size_t i = 0; i < sizeof works / sizeof *works; i++) {
        double once = mean_cycles(&works[i]);
        works[i].count *= 2;
        double twice = mean_cycles(&works[i]);
        printf("work %d: %.0f and %.0f cycles\n", (int)works[i].work, once, twice);
        assert_true(twice > 1.9 * once && twice < 2.1 * once);
    }
}

static uint64_t bulk_cycles(enum device_bulk_source from)
{
    const struct device_bulk asked = {
        .source = from, .alone = true, .bytes = 16, .in_flight = 1, .copies = 512};
    struct device_bulk_answer answer;
    struct err err = {0};
    expect_done(device_copy_bulk(device, &asked, &answer, &err), "bulk copies", &err);
    return answer.cycles / asked.copies;
}

static void memory_is_further(void **state)
{
    (void)state;
    uint64_t l2 = bulk_cycles(DEVICE_BULK_L2), memory = bulk_cycles(DEVICE_BULK_MEMORY);
    printf("bulk copies: %u cycles from L2, %u from memory\n", (unsigned)l2, (unsigned)memory);
    assert_true(l2 > 0 && memory > l2 + l2 / 4);
}

static bool has_clusters(void)
{
    const struct device_cluster asked = {.work = DEVICE_CLUSTER_PLACES, .size = 2};
    struct device_cluster_answer answer;
    struct err err = {0};
    int rc = device_run_cluster(device, &asked, &answer, &err);
    device_cluster_answer_fini(&answer);
    printf("%s\n", rc ? err.text : "clusters");
    return rc != -ENOTSUP;
}

static int all_tests(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(own_is_nearer),
                                       cmocka_unit_test(twice_the_work),
                                       cmocka_unit_test(memory_is_further)};
    return has_clusters() ? cmocka_run_group_tests(tests, NULL, NULL) : REAL_GPU_SKIPPED;
}

int main(void)
{
    return real_gpu_run(&device, all_tests);
}
