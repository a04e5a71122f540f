/* Links between GPUs: who is accused, and who is not. */
#include "made.h"

#include "../check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 8, PER = MADE_PER_NODE }; /* two nodes */

struct cell {
    const char *state;
    double read, write;
    double cycles, mhz; /* of a load; 0: 1000, at 1000 MHz */
};
static struct cell cells[COUNT][PER]; /* by GPU and place on its node */

static void reset(double rate)
{
    for (size_t i = 0; i < COUNT; i++)
        for (size_t j = 0; j < PER; j++)
            cells[i][j] = (struct cell){"ok", rate, rate};
}

/* Both directions, seen by both GPUs. */
static void set_pair(size_t i, size_t j, const char *state, double rate)
{
    cells[i][j % PER] = cells[j][i % PER] = (struct cell){state, rate, rate};
}

static void add_row(struct gpu_result *gpus, size_t i, int nvlinks)
{
    const char *peers[PER], *states[PER];
    double figures[4][PER];
    static const char *const keys[] = {"read", "write", "latency", "latency_ns"};
    struct measure *m = measures_add(&gpus[i].measures, "links.peers", PER - 1, "", "test");
    assert_non_null(m);
    size_t n = 0;
    for (size_t j = 0; j < PER; j++) {
        if (i % PER == j)
            continue;
        double cycles = cells[i][j].cycles ? cells[i][j].cycles : 1000;
        peers[n] = gpus[i / PER * PER + j].uuid;
        states[n] = cells[i][j].state;
        figures[0][n] = cells[i][j].read > 0 ? cells[i][j].read : NAN;
        figures[1][n] = cells[i][j].write > 0 ? cells[i][j].write : NAN;
        figures[2][n] = cycles;
        figures[3][n] = cycles * 1000 / (cells[i][j].mhz ? cells[i][j].mhz : 1000);
        n++;
    }
    facts_set_texts(&m->notes, "gpus", peers, n);
    facts_set_texts(&m->notes, "state", states, n);
    for (size_t k = 0; k < COUNT_OF(keys); k++)
        facts_set_numbers(&m->notes, keys[k], figures[k], n);
    facts_set_int(&gpus[i].health, "nvlinks_active", nvlinks);
    facts_set_text(&gpus[i].health, "fabric_state", "completed");
}

static struct inventory judged(int nvlinks, struct gpu_result **out_gpus)
{
    struct gpu_result *gpus = made_fleet(COUNT, 3);
    for (size_t i = 0; i < COUNT; i++)
        add_row(gpus, i, nvlinks);
    *out_gpus = gpus;
    return made_judged(gpus, COUNT);
}

static void expect(const struct inventory_outlier *entry, const char *metric, const char *cause)
{
    assert_non_null(entry);
    assert_non_null(made_finding(entry, metric));
    assert_string_equal(made_finding(entry, metric)->cause, cause);
}

static void done(struct inventory *inventory, struct gpu_result *gpus)
{
    inventory_fini(inventory);
    made_free(gpus, COUNT);
}

static void healthy(void **state)
{
    (void)state;
    struct gpu_result *gpus;
    reset(400);
    struct inventory inventory = judged(18, &gpus);
    assert_int_equal(inventory.total_outliers + inventory.watch_count, 0);
    size_t count = 0;
    char *const *states = facts_texts(&inventory.gpus[0].links, "state", &count);
    assert_int_equal(count, PER - 1);
    for (size_t i = 0; i < count; i++)
        assert_string_equal(states[i], "ok");
    done(&inventory, gpus);
    /* A PCIe tree of two pairs: other rates across, on every node. */
    for (size_t i = 0; i < COUNT; i++)
        for (size_t j = 0; j < PER; j++)
            cells[i][j] = (struct cell){"ok", i % PER / 2 == j / 2 ? 24 : 12, 12};
    inventory = judged(0, &gpus);
    assert_int_equal(inventory.total_outliers, 0);
    done(&inventory, gpus);
}

/* If no link of the survey works, the fault may be the survey's: nobody is accused. */
static void no_link_works(void **state)
{
    (void)state;
    static const char *const states[] = {"failed", "wrong"};
    for (size_t k = 0; k < 2; k++) {
        struct gpu_result *gpus;
        for (size_t i = 0; i < COUNT; i++)
            for (size_t j = 0; j < PER; j++)
                cells[i][j] = (struct cell){states[k], 0, 0};
        struct inventory inventory = judged(18, &gpus);
        assert_int_equal(inventory.total_outliers, 0);
        assert_int_equal(inventory.watch_count, COUNT);
        done(&inventory, gpus);
    }
}

static void a_dead_pair(void **state)
{
    (void)state;
    struct gpu_result *gpus;
    reset(400);
    set_pair(1, 3, "failed", 0);
    struct inventory inventory = judged(18, &gpus);
    assert_int_equal(inventory.total_outliers, 2);
    expect(made_outlier(&inventory, gpus[1].uuid), "links.peers",
           "no link: copies fail to GPU 3, although 18 NVLinks are active");
    expect(made_outlier(&inventory, gpus[3].uuid), "links.peers",
           "no link: copies fail to GPU 1, although 18 NVLinks are active");
    assert_int_equal(made_outlier(&inventory, gpus[3].uuid)->verdict, VERDICT_FAILING);
    done(&inventory, gpus);
    cells[1][3] = (struct cell){"ok", 400, 400}; /* only one of both saw it */
    inventory = judged(18, &gpus);
    assert_int_equal(inventory.total_outliers, 0);
    assert_non_null(made_watched(&inventory, gpus[3].uuid));
    done(&inventory, gpus);
}

static void a_slow_gpu(void **state)
{
    (void)state;
    struct gpu_result *gpus;
    reset(400);
    for (size_t j = 4; j < 7; j++)
        set_pair(7, j, "ok", 300);
    struct inventory inventory = judged(18, &gpus);
    assert_int_equal(inventory.total_outliers, 1);
    expect(made_outlier(&inventory, gpus[7].uuid), "links.read",
           "slow links to 3 of 3 GPUs of the node");
    assert_int_equal(made_outlier(&inventory, gpus[7].uuid)->verdict, VERDICT_DEGRADED);
    done(&inventory, gpus);
    /* Without NVLinks it may be farther away, on another socket. */
    inventory = judged(0, &gpus);
    assert_int_equal(inventory.total_outliers, 0);
    assert_non_null(made_watched(&inventory, gpus[7].uuid));
    done(&inventory, gpus);
    /* Only its own measurements are slow, not those of its peers. */
    reset(400);
    for (size_t j = 0; j < 3; j++)
        cells[7][j] = (struct cell){"ok", 300, 300};
    inventory = judged(18, &gpus);
    assert_int_equal(inventory.total_outliers, 0);
    done(&inventory, gpus);
}

static void a_dead_fabric(void **state)
{
    (void)state;
    struct gpu_result *gpus;
    reset(400);
    for (size_t j = 0; j < 3; j++)
        set_pair(3, j, "host", 19.6);
    struct inventory inventory = judged(18, &gpus);
    assert_int_equal(inventory.total_outliers, 1);
    expect(made_outlier(&inventory, gpus[3].uuid), "links.read",
           "reaches nobody above 20 GB/s, although 18 NVLinks are active");
    assert_int_equal(made_outlier(&inventory, gpus[3].uuid)->verdict, VERDICT_FAILING);
    done(&inventory, gpus);
    reset(20); /* on all nodes: nothing to compare with, but the number of links */
    inventory = judged(18, &gpus);
    assert_int_equal(inventory.total_outliers, COUNT);
    done(&inventory, gpus);
    inventory = judged(2, &gpus);
    assert_int_equal(inventory.total_outliers, 0);
    done(&inventory, gpus);
}

static void high_latencies(void **state)
{
    (void)state;
    struct gpu_result *gpus;
    reset(400);
    cells[1][3].cycles = cells[3][1].cycles = 1600;
    struct inventory inventory = judged(18, &gpus);
    assert_int_equal(inventory.total_outliers, 2);
    expect(made_outlier(&inventory, gpus[1].uuid), "links.latency",
           "high latency of the link to GPU 3");
    const struct inventory_evidence *finding =
        made_finding(made_outlier(&inventory, gpus[3].uuid), "links.latency");
    assert_true(finding->value == 1600 && finding->expected == 1000);
    assert_int_equal(made_outlier(&inventory, gpus[3].uuid)->verdict, VERDICT_DEGRADED);
    done(&inventory, gpus);
    reset(400);
    for (size_t j = 0; j < 3; j++)
        cells[3][j].cycles = cells[j][3].cycles = 1400;
    inventory = judged(18, &gpus);
    assert_int_equal(inventory.total_outliers, 1);
    expect(made_outlier(&inventory, gpus[3].uuid), "links.latency",
           "high latency of the links to 3 of 3 GPUs of the node");
    done(&inventory, gpus);
    /* Another clock is no other latency: more cycles in the same time, or more time for the same
     * cycles. */
    for (size_t i = 0; i < 2; i++) {
        for (size_t j = 0; j < 3; j++) {
            cells[3][j].cycles = cells[j][3].cycles = i ? 1000 : 1600;
            cells[3][j].mhz = cells[j][3].mhz = i ? 600 : 1600;
        }
        inventory = judged(18, &gpus);
        assert_int_equal(inventory.total_outliers + inventory.watch_count, 0);
        done(&inventory, gpus);
    }
}

static void wrong_data(void **state)
{
    (void)state;
    struct gpu_result *gpus;
    reset(400);
    cells[0][2].state = "wrong";
    struct inventory inventory = judged(0, &gpus);
    assert_int_equal(inventory.total_outliers, 2);
    expect(made_outlier(&inventory, gpus[2].uuid), "links.peers", "data is wrong from or to GPU 0");
    done(&inventory, gpus);
}

/* What was not measured, and peers that are not in the fleet, say nothing. */
static void odd_rows(void **state)
{
    (void)state;
    static const struct {
        const char *peers[3];
        size_t count;
    } odd[] = {{{NULL}, 0}, {{"GPU-other"}, 1}, {{"GPU-001"}, 1}, {{"GPU-001", "GPU-002", ""}, 3}};
    struct gpu_result *gpus;
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        reset(400);
        set_pair(0, 1, "unknown", 0);
        gpus = made_fleet(COUNT, 3);
        for (size_t k = 0; k < COUNT; k++)
            add_row(gpus, k, 18);
        struct measure *m = &gpus[0].measures.items[gpus[0].measures.count - 1];
        facts_set_texts(&m->notes, "gpus", odd[i].peers, odd[i].count);
        facts_set_texts(&m->notes, "state", (const char *const[]){"nonsense"}, 1);
        struct inventory inventory = made_judged(gpus, COUNT);
        assert_int_equal(inventory.total_outliers, 0);
        done(&inventory, gpus);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(healthy),        cmocka_unit_test(a_dead_pair),
        cmocka_unit_test(no_link_works),  cmocka_unit_test(a_slow_gpu),
        cmocka_unit_test(a_dead_fabric),  cmocka_unit_test(wrong_data),
        cmocka_unit_test(high_latencies), cmocka_unit_test(odd_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
