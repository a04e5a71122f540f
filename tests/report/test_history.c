/* Inventories over time: who was accused how often, which figures fall, which cards moved. */
#include "../check.h"

#include "made.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "base/str.h"
#include "report/history/history.h"

static void must(int rc, const struct err *err)
{
    if (rc)
        fail_msg("%s", err->text);
}

/* Adds and releases the inventory. */
static void add(struct history *history, struct inventory *inventory, unsigned day)
{
    static const char *const paths[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"};
    struct err err = {0};
    free(inventory->generated);
    inventory->generated = str_format("2026-10-%02uT00:00:00Z", day);
    must(history_add(history, paths[day % COUNT_OF(paths)], day, inventory, &err), &err);
    inventory_fini(inventory);
}

static char *told(struct history *history)
{
    struct strbuf text = {0}, json = {0};
    history_finish(history, made_config());
    history_put_text(history, &text);
    history_put_json(history, &json);
    assert_false(text.failed || json.failed);
    strbuf_fini(&json);
    return text.data;
}

static void expect(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("\"%s\" is not in\n%s", part, text ? text : "nothing");
}

static void refuse(const char *text, const char *part)
{
    if (strstr(text, part))
        fail_msg("\"%s\" is in\n%s", part, text ? text : "nothing");
}

static void slow(struct gpu_result *gpu)
{
    made_scale(gpu, "main.bandwidth.read", 0.8);
    made_scale(gpu, "main.bandwidth.write", 0.8);
    made_scale(gpu, "l2.bandwidth.read", 0.8);
}

/* Given in another order than that of time. */
static void offenders(void **state)
{
    (void)state;
    enum { COUNT = 16 };
    static const unsigned days[] = {3, 1, 4, 2};
    struct history history = {0};
    for (size_t i = 0; i < COUNT_OF(days); i++) {
        unsigned day = days[i];
        struct gpu_result *gpus = made_fleet(COUNT, day);
        size_t count = COUNT;
        if (day != 3)
            slow(&gpus[5]);
        if (day == 1)
            slow(&gpus[9]);
        if (day == 2) {
            gpus[6].status = GPU_TIMED_OUT;
            gpus[6].reason = str_copy("no answer in 20 s");
        }
        if (day == 3) /* the last GPU of n03 is not there */
            count--;
        struct inventory inventory = made_judged(gpus, count);
        add(&history, &inventory, day);
        made_free(gpus, COUNT);
    }
    char *text = told(&history);
    expect(text, "4 surveys, 16 GPUs\n");
    expect(text, "1 2026-10-01T00:00:00Z 16 GPUs");
    expect(text, "  OO.O  n01 0000:01:00.0 GPU-005 (serial GPU-005)\n"
                 "      outlier in 3 of 4 surveys; 2026-10-04T00:00:00Z: degraded, ");
    expect(text, "  O...  n02 0000:01:00.0 GPU-009 (serial GPU-009)\n"
                 "      outlier in 1 of 4 surveys; 2026-10-01T00:00:00Z: degraded, ");
    expect(text, "  .u..  n01 0000:02:00.0 GPU-006 (serial GPU-006)\n"
                 "      not measured in 1 of 4 surveys; 2026-10-02T00:00:00Z: no answer in 20 s\n");
    expect(text, "  ..x.  n03 0000:03:00.0 GPU-015 (serial GPU-015)\n"
                 "      missing in 1 of 4 surveys\n");
    assert_true(strstr(text, "GPU-005") < strstr(text, "GPU-009"));
    refuse(text, "gone");
    refuse(text, "steadily");
    free(text);
    history_fini(&history);
}

/* A rolling survey repeats old results: they are no further offence. */
static void not_measured_again(void **state)
{
    (void)state;
    enum { COUNT = 12 };
    struct history history = {0};
    for (unsigned day = 1; day <= 6; day++) {
        struct gpu_result *gpus = made_fleet(COUNT, 7);
        slow(&gpus[2]);
        if (day >= 5)
            made_scale(&gpus[2], "l1_data.latency", 1.001);
        struct inventory inventory = made_judged(gpus, COUNT);
        add(&history, &inventory, day);
        made_free(gpus, COUNT);
    }
    char *text = told(&history);
    expect(text, "  O===O=  n00 0000:02:00.0 GPU-002");
    expect(text, "outlier in 2 of 2 surveys");
    free(text);
    history_fini(&history);
}

/* A card in a survey. */
struct card {
    unsigned day;
    const char *uuid, *serial, *node, *pci;
    const double *fingerprint; /* of eight SMs */
};

static void add_cards(struct history *history, const struct card *cards, size_t count, unsigned day)
{
    struct inventory inventory = {0};
    inventory.gpus = mem_array(count, sizeof *inventory.gpus);
    for (size_t i = 0; i < count; i++) {
        if (cards[i].day != day)
            continue;
        struct inventory_gpu *gpu = &inventory.gpus[inventory.gpu_count++];
        gpu->uuid = str_copy(cards[i].uuid);
        gpu->node = str_copy(cards[i].node);
        gpu->pci = str_copy(cards[i].pci);
        if (cards[i].serial)
            facts_set_text(&gpu->board, "serial", cards[i].serial);
        if (!cards[i].fingerprint)
            continue;
        facts_set_numbers(&gpu->board, "fingerprint", cards[i].fingerprint, 8);
        facts_set_real(&gpu->board, "fingerprint_cycles", 280);
        facts_set_real(&gpu->board, "fingerprint_noise", 0.2);
    }
    inventory.total_gpus = (uint32_t)inventory.gpu_count;
    add(history, &inventory, day);
}

static void places(void **state)
{
    (void)state;
    static const struct card cards[] = {
        {1, "A", "1", "n1", "s0"},
        {1, "B", "2", "n1", "s1"},
        {1, "C", "3", "n2", "s0"},
        {1, "D", "4", "n2", "s1"},
        {1, "E", "5", "n3", "s0"},
        {1, "F", NULL, "n4", "s0"},
        {1, "MIG-1", "9", "n5", "s0"},
        {1, "MIG-2", "9", "n5", "s0"},
        /* A and C change places; B is replaced by G; D is gone; n3 is not surveyed; F tells its
         * serial; H is new; n6 is new; the MIG instance is another one. */
        {2, "A", "1", "n2", "s0"},
        {2, "C", "3", "n1", "s0"},
        {2, "G", "6", "n1", "s1"},
        {2, "F", "7", "n4", "s0"},
        {2, "H", "8", "n4", "s1"},
        {2, "I", "10", "n6", "s0"},
        {2, "MIG-3", "9", "n5", "s0"},
        {2, "MIG-2", "9", "n5", "s0"},
        /* The board of G has another GPU; F another serial; E is back. */
        {3, "J", "6", "n1", "s1"},
        {3, "F", "11", "n4", "s0"},
        {3, "E", "5", "n3", "s0"}};
    struct history history = {0};
    for (unsigned day = 1; day <= 3; day++)
        add_cards(&history, cards, COUNT_OF(cards), day);
    char *text = told(&history);
    expect(text, "02T00:00:00Z n2 s0: A (serial 1) moved here from n1 s0\n");
    expect(text, "02T00:00:00Z n1 s0: C (serial 3) moved here from n2 s0\n");
    expect(text, "02T00:00:00Z n1 s0: C (serial 3) is in the place of A (serial 1)\n");
    expect(text, "02T00:00:00Z n1 s1: G (serial 6) is in the place of B (serial 2)\n");
    expect(text, "02T00:00:00Z n2 s1: D (serial 4) is gone\n");
    expect(text, "02T00:00:00Z n4 s1: H (serial 8) is new\n");
    expect(text, "02T00:00:00Z n6: surveyed for the first time\n");
    expect(text, "03T00:00:00Z n1 s1: J (serial 6) has the serial number of G\n");
    expect(text, "03T00:00:00Z n4 s0: F (serial 11) had the serial number 7\n");
    expect(text, "03T00:00:00Z n4 s1: H (serial 8) is gone\n");
    expect(text, "MIG-1 (serial 9) is gone");
    refuse(text, "E (serial 5)");
    refuse(text, "G (serial 6) is new");
    refuse(text, "B (serial 2) is gone");
    refuse(text, "I (serial 10) is new");
    refuse(text, "in the place of MIG");
    refuse(text, "has the serial number of MIG");
    refuse(text, "another cluster");
    free(text);
    history_fini(&history);
}

/* Programs read these names from the JSON. */
static void event_names(void **state)
{
    (void)state;
    static const char *const names[HISTORY_EVENT_TYPES] = {[HISTORY_MOVED] = "moved",
                                                           [HISTORY_SWAPPED] = "swapped",
                                                           [HISTORY_NEW] = "new",
                                                           [HISTORY_GONE] = "gone",
                                                           [HISTORY_SERIAL] = "other_serial",
                                                           [HISTORY_BOARD] = "other_uuid",
                                                           [HISTORY_NODE] = "new_node",
                                                           [HISTORY_DIE] = "other_die"};
    for (int type = 0; type < HISTORY_EVENT_TYPES; type++)
        assert_string_equal(history_event_name((enum history_event_type)type), names[type]);
}

/* A keeps its UUID and serial; its die is another one on day 4. On day 2 it was not measured. */
static void other_die(void **state)
{
    (void)state;
    static const double first[8] = {0}, other[8] = {5, 5, 0, 0, 0, 0, -6.4, -6.4}, none[8] = {NAN};
    static const struct card cards[] = {
        {1, "A", "1", "n1", "s0", first}, {1, "B", "2", "n1", "s1", first},
        {2, "A", "1", "n1", "s0", NULL},  {2, "B", "2", "n1", "s1", first},
        {3, "A", "1", "n1", "s0", first}, {3, "B", "2", "n1", "s1", none},
        {4, "A", "1", "n1", "s0", other}, {4, "B", "2", "n1", "s1", first}};
    struct history history = {0};
    for (unsigned day = 1; day <= 4; day++)
        add_cards(&history, cards, COUNT_OF(cards), day);
    char *text = told(&history);
    expect(text, "04T00:00:00Z n1 s0: A (serial 1) is not the die it was\n");
    refuse(text, "03T00:00:00Z n1");
    refuse(text, "B (serial 2) is not");
    free(text);
    history_fini(&history);
}

static void two_clusters(void **state)
{
    (void)state;
    static const struct card cards[] = {{1, "A", "1", "n1", "s0"},
                                        {2, "X", "2", "m1", "s0"},
                                        {3, "A", "1", "n1", "s0"},
                                        {4, "X", "2", "m1", "s0"}};
    struct history history = {0};
    for (unsigned day = 1; day <= 4; day++)
        add_cards(&history, cards, COUNT_OF(cards), day);
    char *text = told(&history);
    expect(text, "2 2026-10-02T00:00:00Z 1 GPU, 0 measured, 0 outliers c; no GPU in common with");
    const char *first = strstr(text, "another cluster?");
    assert_non_null(first);
    refuse(first + 1, "another cluster?");
    refuse(text, "gone");
    refuse(text, "first time");
    expect(text, "No GPU was flagged or watched, and no card moved.\n");
    free(text);
    history_fini(&history);
}

enum { SERIES = 40, DAYS = 9 };

static const struct {
    const char *metric;
    double value;
} figures[] = {{"main.bandwidth.read", 4555}, {"main.latency", 640}, {"l2.latency", 212},
               {"l2.bandwidth.read", 5900},   {"clock.sm", 1980},    {"host.bandwidth.h2d", 55}};

/* What happens to a figure of a GPU on a day, as a factor. */
typedef double fate(size_t gpu, const char *metric, unsigned day);

static void add_series(struct history *history, fate *factor, double sigma, uint64_t seed)
{
    struct rng rng;
    rng_init(&rng, seed, "series");
    for (unsigned day = 1; day <= DAYS; day++) {
        struct inventory inventory = {.total_gpus = SERIES, .total_measured = SERIES};
        inventory.gpus = mem_array(SERIES, sizeof *inventory.gpus);
        inventory.gpu_count = SERIES;
        for (size_t i = 0; i < SERIES; i++) {
            struct inventory_gpu *gpu = &inventory.gpus[i];
            *gpu = (struct inventory_gpu){.uuid = str_format("GPU-%02zu", i),
                                          .node = str_format("n%zu", i / 4),
                                          .pci = str_format("s%zu", i % 4),
                                          .model = str_copy("alpha"),
                                          .value_count = COUNT_OF(figures)};
            gpu->values = mem_array(gpu->value_count, sizeof *gpu->values);
            for (size_t k = 0; k < COUNT_OF(figures); k++) {
                double value = figures[k].value * (1 + 0.002 * (double)i) *
                               (1 + sigma * rng_normal(&rng)) * factor(i, figures[k].metric, day);
                gpu->values[k] = (struct inventory_value){str_copy(figures[k].metric), value, 0,
                                                          MEASURE_OK, MEASURE_EXACT};
            }
        }
        add(history, &inventory, day);
    }
}

static bool is(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

static double planted(size_t gpu, const char *metric, unsigned day)
{
    const double passed = (double)(day - 1) / (DAYS - 1);
    if (is(metric, "main.bandwidth.read")) /* one falls, one rises, one is disturbed once */
        return gpu == 4               ? 1 - 0.03 * passed
               : gpu == 5             ? 1 + 0.03 * passed
               : gpu == 6 && day == 3 ? 0.9
                                      : 1;
    if (is(metric, "main.latency")) /* a new driver for all; one becomes slower besides */
        return (day >= 5 ? 1.04 : 1) * (gpu == 7 ? 1 + 0.05 * passed : 1);
    if (is(metric, "l2.latency")) /* all */
        return 1 + 0.06 * passed;
    if (is(metric, "l2.bandwidth.read") && gpu == 8) /* a step is no trend */
        return day >= 6 ? 0.9 : 1;
    return 1;
}

static void trends(void **state)
{
    (void)state;
    struct history history = {0};
    add_series(&history, planted, 0.001, 1);
    char *text = told(&history);
    const char *list = strstr(text, "\nGetting steadily worse");
    assert_non_null(list);
    expect(list, "  the usual GPU of alpha: l2.latency +6.");
    expect(list, "  n1 s0 GPU-04: main.bandwidth.read -");
    expect(list, " % in 8.0 days (standard error 0.");
    expect(list, "  n1 s3 GPU-07: main.latency +");
    assert_int_equal(history.trend_count, 3);
    free(text);
    history_fini(&history);
}

static double nothing(size_t gpu, const char *metric, unsigned day)
{
    (void)gpu, (void)metric, (void)day;
    return 1;
}

static void no_false_trends(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct history history = {0};
        add_series(&history, nothing, seed % 2 ? 0.001 : 0.01, seed);
        free(told(&history));
        assert_int_equal(history.trend_count, 0);
        history_fini(&history);
    }
}

static void little(void **state)
{
    (void)state;
    struct history history = {0};
    char *text = told(&history);
    expect(text, "0 surveys, 0 GPUs\n");
    free(text);
    history_fini(&history);
    struct inventory inventory = {0};
    add(&history, &inventory, 1);
    text = told(&history);
    expect(text, "One survey has no history");
    assert_null(history_twin(&history, 2));
    assert_non_null(history_twin(&history, 1));
    free(text);
    history_fini(&history);
    struct err err = {0};
    inventory = (struct inventory){.generated = (char *)"yesterday"};
    assert_int_not_equal(history_add(&history, "x.yaml", 1, &inventory, &err), 0);
    expect(err.text, "x.yaml: gpumemtopo.generated is not a time");
    history_fini(&history);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(offenders),   cmocka_unit_test(not_measured_again),
        cmocka_unit_test(places),      cmocka_unit_test(other_die),
        cmocka_unit_test(event_names), cmocka_unit_test(two_clusters),
        cmocka_unit_test(trends),      cmocka_unit_test(no_false_trends),
        cmocka_unit_test(little),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
