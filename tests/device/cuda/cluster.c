/* Clusters and bulk copies through the stand-in for the driver: blocks, SMs and cycles arrive where
 * they belong, and a GPU without clusters says so. */
#include "opened.h"

#include <errno.h>
#include <stdlib.h>

#include "fake_cluster.h"

static void every_work(void **state)
{
    (void)state;
    for (int work = 0; work < DEVICE_CLUSTER_WORK_COUNT; work++)
        for (uint32_t size = 1; size <= FAKE_CLUSTER_MAX; size++) {
            bool copies = work == DEVICE_CLUSTER_COPY;
            const struct device_cluster asked = {.work = (enum device_cluster_work)work,
                                                 .size = size,
                                                 .count = work == DEVICE_CLUSTER_PLACES ? 0 : 64,
                                                 .bytes = copies ? 1024 : 0,
                                                 .in_flight = copies ? 2 : 0};
            size_t each = device_cluster_cycles(&asked) / size;
            struct device_cluster_answer answer;
            struct err err = {0};
            assert_int_equal(device_run_cluster(device, &asked, &answer, &err), 0);
            assert_int_equal(answer.clusters, SMS / size);
            assert_int_equal(answer.cycle_count, SMS * each);
            for (uint32_t i = 0; i < SMS; i++) {
                assert_int_equal(answer.sms[i], i);
                for (size_t k = 0; k < each; k++)
                    assert_int_equal(answer.cycles[i * each + k],
                                     (FAKE_CLUSTER_CYCLES + i + k) * 64);
            }
            device_cluster_answer_fini(&answer);
        }
}

static void bulk(void **state)
{
    (void)state;
    for (int source_of = 0; source_of < DEVICE_BULK_SOURCE_COUNT; source_of++)
        for (int alone = 0; alone < 2; alone++) {
            const struct device_bulk asked = {.source = (enum device_bulk_source)source_of,
                                              .alone = alone,
                                              .bytes = 4096,
                                              .in_flight = 4,
                                              .copies = 64};
            struct device_bulk_answer answer;
            struct err err = {0};
            assert_int_equal(device_copy_bulk(device, &asked, &answer, &err), 0);
            assert_int_equal(answer.sms, alone ? 1 : SMS);
            assert_int_equal(answer.elapsed_ns, 64);
            /* The mean of all SMs. */
            assert_int_equal(answer.cycles, 64 * FAKE_CLUSTER_CYCLES + (alone ? 0 : 64 * 3 / 2));
        }
}

static int cluster_rc(const struct device_cluster *asked)
{
    struct device_cluster_answer answer;
    struct err err = {0};
    int rc = device_run_cluster(device, asked, &answer, &err);
    device_cluster_answer_fini(&answer);
    return rc;
}

static void bad_requests(void **state)
{
    (void)state;
    const struct device_cluster loads = {.work = DEVICE_CLUSTER_LOADS, .size = 2, .count = 64};
    const struct device_cluster copy = {
        .work = DEVICE_CLUSTER_COPY, .size = 2, .count = 64, .bytes = 1024, .in_flight = 2};
    struct device_cluster bad[] = {loads, loads, loads, loads, copy, copy, copy, copy};
    bad[0].size = 0;
    bad[1].size = DEVICE_CLUSTER_MAX + 1;
    bad[2].count = 33;
    bad[3].work = DEVICE_CLUSTER_WORK_COUNT;
    bad[4].bytes = 24;
    bad[5].bytes = DEVICE_CLUSTER_ROOM_BYTES;
    bad[6].in_flight = DEVICE_BULK_FLIGHTS_MAX + 1;
    bad[7].count = 1;
    assert_int_equal(cluster_rc(&loads), 0);
    assert_int_equal(cluster_rc(&copy), 0);
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        assert_int_equal(cluster_rc(&bad[i]), -EINVAL);
    struct device_bulk_answer answer;
    struct err err = {0};
    struct device_bulk bulk = {.bytes = 16, .in_flight = 1, .copies = 0};
    assert_int_equal(device_copy_bulk(device, &bulk, &answer, &err), -EINVAL);
    bulk.copies = 1;
    assert_int_equal(device_copy_bulk(device, &bulk, &answer, &err), 0);
    bulk.source = DEVICE_BULK_SOURCE_COUNT;
    assert_int_equal(device_copy_bulk(device, &bulk, &answer, &err), -EINVAL);
}

/* A size that the GPU does not have; no clusters at all; blocks on one SM; not at once. */
static void refused(void **state)
{
    (void)state;
    const struct device_bulk bulk = {.bytes = 16, .in_flight = 1, .copies = 1};
    struct device_cluster asked = {.work = DEVICE_CLUSTER_READ, .size = 3, .count = 1};
    struct device_bulk_answer answer;
    struct err err = {0};
    assert_int_equal(cluster_rc(&asked), -ENOTSUP);
    asked.size = 2;
    setenv("FAKE_CUDA_CLUSTERS", "0", 1);
    assert_int_equal(cluster_rc(&asked), -ENOTSUP);
    assert_int_equal(device_copy_bulk(device, &bulk, &answer, &err), -ENOTSUP);
    unsetenv("FAKE_CUDA_CLUSTERS");
    setenv("FAKE_CUDA_TOGETHER", "1", 1);
    assert_int_equal(cluster_rc(&asked), -EBUSY);
    unsetenv("FAKE_CUDA_TOGETHER");
    setenv("FAKE_CUDA_SHARED", "1", 1);
    assert_int_equal(cluster_rc(&asked), -EBUSY);
    unsetenv("FAKE_CUDA_SHARED");
    assert_int_equal(cluster_rc(&asked), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_work, set_up, tear_down),
        cmocka_unit_test_setup_teardown(bulk, set_up, tear_down),
        cmocka_unit_test_setup_teardown(bad_requests, set_up, tear_down),
        cmocka_unit_test_setup_teardown(refused, set_up, tear_down),
    };
    unsetenv("CUDA_VISIBLE_DEVICES");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
