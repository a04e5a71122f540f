/* What NVML tells, out of a stand-in for it: each fact with its own validity. */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../../check.h"
#include "base/mem.h"
#include "device/source.h"

static struct device_source *source;
static struct device *device;
static struct facts hardware, board, config, health;

static void fake(const char *settings, const char *pids, const char *mps)
{
    setenv("FAKE_NVML", settings ? settings : "", 1);
    setenv("FAKE_NVML_PIDS", pids ? pids : "", 1);
    setenv("FAKE_NVML_MPS", mps ? mps : "", 1);
}

static void open_gpu(void)
{
    struct err err = {0};
    int rc = device_source_cuda(&source, &err);
    if (!rc)
        rc = device_source_open(source, 0, &device, &err);
    if (rc)
        fail_msg("%s", err.text);
}

static void forget(void)
{
    facts_fini(&hardware);
    facts_fini(&board);
    facts_fini(&config);
    facts_fini(&health);
}

static void ask(void)
{
    forget();
    assert_int_equal(device_identify(device, &hardware, &board, &config, NULL), 0);
    assert_int_equal(device_read_health(device, &config, &health, NULL), 0);
}

static void close_gpu(void)
{
    device_destroy(device);
    device_source_destroy(source);
    device = NULL;
    source = NULL;
}

/* Opens, asks, closes. */
static void look_with(const char *settings, const char *pids, const char *mps)
{
    fake(settings, pids, mps);
    open_gpu();
    ask();
    close_gpu();
}

static int reset(void **state)
{
    (void)state;
    fake(NULL, NULL, NULL);
    return 0;
}

static int clean(void **state)
{
    (void)state;
    forget();
    if (source)
        close_gpu();
    return 0;
}

/* Every fact, what it is as the stand-in has it, and which answer it comes from. */
struct row {
    struct facts *facts;
    const char *key;
    enum fact_kind kind;
    int64_t number;
    const char *text;
    const char *setting; /* NULL: made of several answers */
};

static const struct row rows[] = {
    {&hardware, "pcie_gen_max", FACT_INT, 5, NULL, "pcie_gen_max"},
    {&hardware, "pcie_width_max", FACT_INT, 16, NULL, "pcie_width_max"},
    {&board, "serial", FACT_TEXT, 0, "1650000000007", "serial"},
    {&board, "part", FACT_TEXT, 0, "900-21010-0040-000", "part"},
    {&board, "vbios", FACT_TEXT, 0, "96.00.A0.00.03", "vbios"},
    {&board, "inforom", FACT_TEXT, 0, "G525.0225.00.05", "inforom"},
    {&board, "driver", FACT_TEXT, 0, "580.65.06", "driver"},
    {&config, "compute_mode", FACT_TEXT, 0, "exclusive_process", "compute_mode"},
    {&config, "persistence", FACT_BOOL, 1, NULL, "persistence"},
    {&config, "ecc", FACT_BOOL, 1, NULL, "ecc_mode"},
    {&config, "ecc_pending", FACT_BOOL, 0, NULL, "ecc_mode"},
    {&config, "mig", FACT_BOOL, 0, NULL, "mig_mode"},
    {&config, "mig_pending", FACT_BOOL, 1, NULL, "mig_mode"},
    {&config, "virtualization", FACT_TEXT, 0, "none", "virtualization"},
    {&config, "confidential_computing", FACT_TEXT, 0, "off", "confidential"},
    {&config, "confidential_devtools", FACT_BOOL, 0, NULL, "confidential"},
    {&config, "power_limit_w", FACT_INT, 650, NULL, "power_limit"},
    {&config, "power_limit_default_w", FACT_INT, 700, NULL, "power_default"},
    {&config, "sm_clock_limit_mhz", FACT_INT, 1980, NULL, "clock_max"},
    {&config, "memory_clock_limit_mhz", FACT_INT, 3201, NULL, "clock_max"},
    {&config, "sm_clock_application_mhz", FACT_INT, 1830, NULL, "clock_application"},
    {&config, "sm_clock_application_default_mhz", FACT_INT, 1975, NULL,
     "clock_application_default"},
    {&config, "memory_clock_application_mhz", FACT_INT, 2619, NULL, "clock_application"},
    {&config, "pcie_gen", FACT_INT, 4, NULL, "pcie_gen"},
    {&config, "pcie_width", FACT_INT, 8, NULL, "pcie_width"},
    {&config, "pcie_under_load", FACT_BOOL, 1, NULL, NULL},
    {&health, "temperature_c", FACT_INT, 46, NULL, "temperature"},
    {&health, "temperature_memory_c", FACT_INT, -5, NULL, "memory_temperature"},
    {&health, "temperature_margin_c", FACT_INT, 41, NULL, NULL},
    {&health, "power_draw_w", FACT_INT, 411, NULL, "power_usage"},
    {&health, "throttle", FACT_TEXT, 0, "none", "throttle"},
    {&health, "violation_power_ns", FACT_INT, 0, NULL, "violation_power"},
    {&health, "violation_thermal_ns", FACT_INT, 0, NULL, "violation_thermal"},
    {&health, "ecc_corrected_volatile", FACT_INT, 100, NULL, "ecc_corrected"},
    {&health, "ecc_uncorrected_volatile", FACT_INT, 110, NULL, "ecc_uncorrected"},
    {&health, "ecc_uncorrected_new", FACT_INT, 0, NULL, "ecc_uncorrected"},
    {&health, "ecc_corrected_new", FACT_INT, 0, NULL, "ecc_corrected"},
    {&health, "ecc_corrected_per_s", FACT_INT, 0, NULL, "ecc_corrected"},
    {&health, "ecc_corrected_sram", FACT_INT, 1017, NULL, NULL},
    {&health, "ecc_uncorrected_sram", FACT_INT, 1117, NULL, NULL},
    {&health, "ecc_corrected_dram", FACT_INT, 1012, NULL, "ecc_place_2"},
    {&health, "ecc_uncorrected_dram", FACT_INT, 1112, NULL, "ecc_place_2"},
    {&health, "retired_pages_corrected", FACT_INT, 3, NULL, "retired_single"},
    {&health, "retired_pages_uncorrected", FACT_INT, 4, NULL, "retired_double"},
    {&health, "retired_pages_pending", FACT_BOOL, 1, NULL, "retired_pending"},
    {&health, "remapped_rows_corrected", FACT_INT, 6, NULL, "remapped"},
    {&health, "remapped_rows_uncorrected", FACT_INT, 8, NULL, "remapped"},
    {&health, "remap_pending", FACT_BOOL, 1, NULL, "remapped"},
    {&health, "remap_failed", FACT_BOOL, 0, NULL, "remapped"},
    {&health, "remap_banks_max", FACT_INT, 636, NULL, "banks"},
    {&health, "remap_banks_high", FACT_INT, 1, NULL, "banks"},
    {&health, "remap_banks_partial", FACT_INT, 2, NULL, "banks"},
    {&health, "remap_banks_low", FACT_INT, 3, NULL, "banks"},
    {&health, "remap_banks_none", FACT_INT, 4, NULL, "banks"},
    {&health, "inforom_valid", FACT_BOOL, 1, NULL, NULL},
    {&health, "pcie_replays", FACT_INT, 17, NULL, "replays"},
    {&health, "pcie_replays_new", FACT_INT, 0, NULL, "replays"},
    {&health, "pcie_replays_per_s", FACT_INT, 0, NULL, "replays"},
    {&health, "nvlinks_active", FACT_INT, 2, NULL, "links"},
    {&health, "nvlinks_down", FACT_INT, 1, NULL, "links"},
    {&health, "nvlink_errors", FACT_INT, 99, NULL, "links"},
    {&health, "nvlink_errors_new", FACT_INT, 0, NULL, "links"},
    {&health, "nvlink_errors_per_s", FACT_INT, 0, NULL, "links"},
    {&health, "fabric_state", FACT_TEXT, 0, "completed", "fabric"},
    {&health, "fabric_clique", FACT_TEXT, 0, "00010203-0405-0607-0809-0a0b0c0d0e0f/1", "fabric"},
    {&health, "xid", FACT_TEXT, 0, "none", "event_set"},
    {&health, "processes", FACT_INT, 0, NULL, "processes"},
};

static void check_row(const struct row *row, bool known, const char *reason)
{
    const struct fact *fact = facts_get(row->facts, row->key);
    if (!fact)
        fail_msg("%s is missing", row->key);
    if (fact->kind != (known ? row->kind : FACT_UNKNOWN))
        fail_msg("%s has kind %d", row->key, fact->kind);
    if (!known) {
        if (strcmp(fact->text, reason) != 0)
            fail_msg("%s is unknown: %s", row->key, fact->text);
        return;
    }
    int64_t number = fact->kind == FACT_BOOL ? fact->flag : fact->integer;
    if (row->text ? strcmp(fact->text, row->text) != 0 : number != row->number)
        fail_msg("%s is %lld %s", row->key, (long long)number, fact->text ? fact->text : "");
}

static void all_is_told(void **state)
{
    (void)state;
    look_with(NULL, NULL, NULL);
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        check_row(&rows[i], true, NULL);
    size_t told = board.count + config.count + health.count + 2;
    /* `cuda`, `kernels`, memory_free_bytes and l2_fetch_limit_bytes are the driver's own. */
    assert_int_equal(told, COUNT_OF(rows) + 4);
    assert_int_equal(facts_get(&hardware, "cores")->kind, FACT_UNKNOWN);
    assert_string_equal(facts_get(&hardware, "cores")->text, "not in this NVML");
}

/* One answer less makes just its own facts unknown. */
static void each_has_its_own_validity(void **state)
{
    (void)state;
    static const struct {
        const char *code, *reason;
    } errors[] = {{"e3", "not supported"}, {"e4", "some error"}, {"e15", "GPU is lost"}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char settings[64];
        bool again = i && rows[i].setting && rows[i - 1].setting &&
                     strcmp(rows[i].setting, rows[i - 1].setting) == 0;
        if (!rows[i].setting || again)
            continue;
        snprintf(settings, sizeof settings, "%s=%s", rows[i].setting, errors[i % 3].code);
        look_with(settings, NULL, NULL);
        for (size_t k = 0; k < COUNT_OF(rows); k++) {
            bool same = rows[k].setting && strcmp(rows[k].setting, rows[i].setting) == 0;
            check_row(&rows[k], !same, errors[i % 3].reason);
        }
    }
}

static void all_ones_are_no_number(void **state)
{
    (void)state;
    look_with("power_limit=-1 temperature=-1 ecc_uncorrected=-1", NULL, NULL);
    static const char *const keys[] = {"temperature_c", "ecc_uncorrected_volatile",
                                       "ecc_uncorrected_new"};
    for (size_t i = 0; i < COUNT_OF(keys); i++)
        assert_int_equal(facts_get(&health, keys[i])->kind, FACT_UNKNOWN);
    assert_int_equal(facts_get(&config, "power_limit_w")->kind, FACT_UNKNOWN);
    look_with("compute_mode=9", NULL, NULL);
    assert_int_equal(facts_get(&config, "compute_mode")->kind, FACT_UNKNOWN);
}

/* Older GPUs: what is asked for in another way. */
static void older_ways(void **state)
{
    (void)state;
    look_with("margin=e3 ecc_place_7=e3 ecc_place_5=e3 ecc_place_6=e3", NULL, NULL);
    assert_int_equal(facts_int(&health, "temperature_margin_c", 0), 92 - 46);
    assert_int_equal(facts_int(&health, "ecc_corrected_sram", 0), 1010 + 1011 + 1013 + 1014);
    assert_int_equal(facts_int(&health, "ecc_uncorrected_sram", 0), 1110 + 1111 + 1113 + 1114);
    look_with("margin=-3", NULL, NULL);
    assert_int_equal(facts_int(&health, "temperature_margin_c", 0), -3);
    look_with("margin=e3 threshold=e3", NULL, NULL);
    assert_int_equal(facts_get(&health, "temperature_margin_c")->kind, FACT_UNKNOWN);
}

static void inforom(void **state)
{
    (void)state;
    look_with("inforom_check=14", NULL, NULL);
    assert_int_equal(facts_get(&health, "inforom_valid")->kind, FACT_BOOL);
    assert_false(facts_get(&health, "inforom_valid")->flag);
    look_with("inforom_check=3", NULL, NULL);
    assert_int_equal(facts_get(&health, "inforom_valid")->kind, FACT_UNKNOWN);
}

static void no_nvml(void **state)
{
    (void)state;
    static const struct {
        const char *settings, *reason;
    } cases[] = {{"handle=e6", "NVML does not know this GPU"}, {"init=e9", "nvmlInit: some error"}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        look_with(cases[i].settings, NULL, NULL);
        for (size_t k = 0; k < COUNT_OF(rows); k++) {
            bool own =
                strcmp(rows[k].key, "driver") == 0 || strcmp(rows[k].key, "pcie_under_load") == 0;
            if (!own)
                check_row(&rows[k], false, cases[i].reason);
        }
        assert_false(facts_get(&config, "pcie_under_load")->flag);
    }
}

/* What grew since the GPU was opened, and what was seen meanwhile. */
static void watched(void **state)
{
    (void)state;
    enum { BETWEEN_POLLS_US = 25000 };
    struct device_stream stream = {
        .kind = DEVICE_STREAM_H2D, .footprint_bytes = 4096, .total_bytes = 4096};
    struct device_stream_answer answer;
    fake("ecc_uncorrected=7 violation_power=500 violation_thermal=900", NULL, NULL);
    open_gpu();
    fake("throttle=0x5", NULL, NULL);
    usleep(BETWEEN_POLLS_US);
    assert_int_equal(device_stream(device, &stream, &answer, NULL), 0);
    fake("throttle=0x21", NULL, NULL);
    usleep(BETWEEN_POLLS_US);
    assert_int_equal(device_stream(device, &stream, &answer, NULL), 0);
    fake("ecc_uncorrected=9 violation_power=600 violation_thermal=901 throttle=1", NULL, NULL);
    usleep(BETWEEN_POLLS_US);
    ask();
    assert_int_equal(facts_int(&health, "ecc_uncorrected_volatile", 0), 9);
    assert_int_equal(facts_int(&health, "ecc_uncorrected_new", 0), 2);
    assert_int_equal(facts_int(&health, "violation_power_ns", 0), 100);
    assert_int_equal(facts_int(&health, "violation_thermal_ns", 0), 1);
    assert_string_equal(facts_text(&health, "throttle"), "power_cap,sw_thermal");
}

/* Errors that came while the GPU was open, and how fast. The time is not known, but that it was at
 * least the pause is. */
static void error_growth(void **state)
{
    (void)state;
    enum { PAUSE_US = 200000 };
    static const struct {
        const char *before, *after, *count, *rate;
        int64_t growth, most_per_s;
    } cases[] = {
        {"ecc_corrected=1000", "ecc_corrected=5000", "ecc_corrected_new", "ecc_corrected_per_s",
         4000, 20000},
        {"ecc_corrected=5000", "ecc_corrected=1000", "ecc_corrected_new", "ecc_corrected_per_s", 0,
         0},
        {"replays=7", "replays=9", "pcie_replays_new", "pcie_replays_per_s", 2, 10},
        {"link_errors=0", "link_errors=600", "nvlink_errors_new", "nvlink_errors_per_s", 600, 3000},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        fake(cases[i].before, NULL, NULL);
        open_gpu();
        usleep(PAUSE_US);
        fake(cases[i].after, NULL, NULL);
        ask();
        close_gpu();
        int64_t rate = facts_int(&health, cases[i].rate, -1);
        assert_int_equal(facts_int(&health, cases[i].count, -1), cases[i].growth);
        if (rate < 0 || rate > cases[i].most_per_s || (rate == 0 && cases[i].growth > 100))
            fail_msg("case %zu: %lld per second", i, (long long)rate);
    }
    look_with("ecc_corrected=-1 replays=-1", NULL, NULL);
    assert_int_equal(facts_get(&health, "ecc_corrected_new")->kind, FACT_UNKNOWN);
    assert_int_equal(facts_get(&health, "pcie_replays_per_s")->kind, FACT_UNKNOWN);
}

static void xids(void **state)
{
    (void)state;
    static const struct {
        const char *settings, *xids, *text, *reason;
    } cases[] = {
        {NULL, "79", "79 (the GPU has fallen off the bus)", NULL},
        {NULL, "48,45,48,power",
         "48 (uncorrectable (double-bit) ECC error), "
         "45 (an application's channel was removed, often after another error)",
         NULL},
        {NULL, "999", "999 (see NVIDIA's Xid catalogue)", NULL},
        {"event_wait=e15", "62", "62 (internal microcontroller halted: the GPU needs a reset)",
         NULL},
        {"event_wait=e15", "", NULL, "GPU is lost"},
        {"event_set=e3", "79", NULL, "not supported"},
        {"event_register=e3", "79", NULL, "not supported"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        setenv("FAKE_NVML_XIDS", cases[i].xids, 1);
        look_with(cases[i].settings, NULL, NULL);
        const struct fact *fact = facts_get(&health, "xid");
        const char *wanted = cases[i].text ? cases[i].text : cases[i].reason;
        if (fact->kind != (cases[i].text ? FACT_TEXT : FACT_UNKNOWN) ||
            strcmp(fact->text, wanted) != 0)
            fail_msg("case %zu: %s", i, fact->text);
        assert_string_equal(getenv("FAKE_NVML_SETS_LEFT"), "0");
    }
    /* An event is not forgotten when it was told once. */
    setenv("FAKE_NVML_XIDS", "79", 1);
    fake(NULL, NULL, NULL);
    open_gpu();
    ask();
    ask();
    unsetenv("FAKE_NVML_XIDS");
    assert_string_equal(facts_text(&health, "xid"), "79 (the GPU has fallen off the bus)");
}

static void fabric(void **state)
{
    (void)state;
    static const struct {
        const char *settings, *text;
    } cases[] = {
        {"fabric=1", "not_started"},
        {"fabric=2 fabric_status=9", "in_progress"},
        {"fabric=3 fabric_status=9", "failed"},
        {"fabric=3 fabric_health=1", "degraded_bandwidth"},
        {"fabric=3 fabric_health=0x1aa", "completed"},
        {"fabric=3 fabric_health=0x2aa", "incorrect_sysguid"},
        {"fabric=3 fabric_health=0x69", "degraded_bandwidth,access_timeout_recovery"},
        {"fabric=3 fabric_health=0x515", "degraded_bandwidth,route_recovery,route_unhealthy,"
                                         "insufficient_nvlinks"},
        {"fabric=3 fabric_health=0x9aa", "configuration_9"},
        {"fabric=3 fabric_health=0", "completed"},
        {"old_fabric=1 fabric_health=1", "completed"},
        {"old_fabric=1 fabric=3 fabric_status=9", "failed"},
        {"fabric=0", NULL},
        {"fabric=7", NULL},
        {"fabric=e3", NULL},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        look_with(cases[i].settings, NULL, NULL);
        const struct fact *fact = facts_get(&health, "fabric_state");
        if (fact->kind != (cases[i].text ? FACT_TEXT : FACT_UNKNOWN) ||
            strcmp(fact->text, cases[i].text ? cases[i].text : "not supported") != 0)
            fail_msg("%s: %s", cases[i].settings, fact->text);
    }
}

static void other_processes(void **state)
{
    (void)state;
    static const struct {
        const char *settings, *pids, *mps;
        int64_t before, after;
    } cases[] = {
        {NULL, NULL, NULL, 0, 0},
        {NULL, "own", NULL, 0, 0},
        {NULL, "hidden", NULL, 0, 0},
        {NULL, "100,own,200", NULL, 2, 2},
        {NULL, "100,200,hidden", NULL, 2, 2},
        {NULL, "100,own", "100,300", 2, 2},
        {"r535=1", "100,200,own,300", NULL, 3, 3},
        {"r535=1", "own", "400,500", 2, 2},
        {"r535=1", "100,200,own", "200", 2, 2},
        {NULL, "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,own", NULL, 18, 18},
        {"mig_mode=1", "100,own", NULL, 1, 1},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct device_look look = {0};
        fake(cases[i].settings, cases[i].pids, cases[i].mps);
        assert_int_equal(device_source_cuda(&source, NULL), 0);
        assert_int_equal(device_source_look(source, 0, false, &look, NULL), 0);
        assert_int_equal(device_source_open(source, 0, &device, NULL), 0);
        ask();
        close_gpu();
        int64_t before = facts_int(&look.health, "processes", -1);
        int64_t after = facts_int(&health, "processes", -1);
        device_look_fini(&look);
        if (before != cases[i].before || after != cases[i].after)
            fail_msg("case %zu: %lld, then %lld", i, (long long)before, (long long)after);
    }
}

/* Who it is shows before anybody opens it; what needs watching does not. */
static void looked_at(void **state)
{
    (void)state;
    struct device_look look = {0};
    assert_int_equal(device_source_cuda(&source, NULL), 0);
    assert_int_equal(device_source_look(source, 0, false, &look, NULL), 0);
    assert_string_equal(facts_text(&look.board, "serial"), "1650000000007");
    assert_int_equal(facts_int(&look.config, "power_limit_w", 0), 650);
    assert_int_equal(facts_int(&look.health, "ecc_uncorrected_dram", 0), 1112);
    assert_null(facts_get(&look.health, "throttle"));
    assert_null(facts_get(&look.health, "ecc_corrected_new"));
    assert_null(facts_get(&look.health, "inforom_valid"));
    assert_int_equal(device_source_look(source, 0, true, &look, NULL), 0);
    assert_int_equal(facts_get(&look.health, "inforom_valid")->kind, FACT_BOOL);
    assert_int_equal(device_source_look(source, 1, false, &look, NULL), -EINVAL);
    assert_int_equal(device_source_info(source, 0)->index, 5);
    assert_string_equal(device_source_info(source, 0)->model_key, "233510de:18be10de Fake GPU");
    device_look_fini(&look);
}

/* A MIG instance is a model of its own, with its profile in the name. */
static void mig(void **state)
{
    (void)state;
    static const struct {
        const char *settings, *name;
    } cases[] = {{"mig_mode=1", "Fake GPU MIG 2g.36gb"},
                 {"mig_mode=1 compute_slices=1", "Fake GPU MIG 1c.2g.36gb"},
                 {"mig_mode=1 compute_slices=e3", "Fake GPU MIG 4 SMs"}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        fake(cases[i].settings, NULL, NULL);
        assert_int_equal(device_source_cuda(&source, NULL), 0);
        const struct device_info *info = device_source_info(source, 0);
        char key[128];
        snprintf(key, sizeof key, "233510de:18be10de %s, 4 SMs", cases[i].name);
        assert_memory_equal(info->uuid, "MIG-00112233-4455-6677-8899-aabb", 32);
        assert_string_equal(info->name, cases[i].name);
        assert_string_equal(info->model_key, key);
        device_source_destroy(source);
        source = NULL;
    }
}

/* CPUs near the GPU while its link is measured, and those from before afterwards. */
static void near_cpus(void **state)
{
    (void)state;
    cpu_set_t before, meanwhile, after;
    struct device_link link;
    char settings[64];
    int first = 0;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    while (!CPU_ISSET(first, &before))
        first++;
    if (first >= 64)
        skip();
    snprintf(settings, sizeof settings, "cpus=%llu", 1ull << first);
    fake(settings, NULL, NULL);
    open_gpu();
    device_begin_link(device, &link);
    assert_true(link.near && link.alone);
    assert_int_equal(sched_getaffinity(0, sizeof meanwhile, &meanwhile), 0);
    device_end_link(device);
    assert_int_equal(sched_getaffinity(0, sizeof after, &after), 0);
    assert_true(CPU_ISSET(first, &meanwhile) && CPU_COUNT(&meanwhile) == 1);
    assert_true(CPU_EQUAL(&before, &after));
    static const char *const vain[] = {"cpus=0", "cpus=e3"};
    for (size_t i = 0; i < COUNT_OF(vain); i++) {
        fake(vain[i], NULL, NULL);
        device_begin_link(device, &link);
        assert_false(link.near);
        device_end_link(device);
        assert_int_equal(sched_getaffinity(0, sizeof after, &after), 0);
        assert_true(CPU_EQUAL(&before, &after));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(all_is_told, reset, clean),
        cmocka_unit_test_setup_teardown(each_has_its_own_validity, reset, clean),
        cmocka_unit_test_setup_teardown(all_ones_are_no_number, reset, clean),
        cmocka_unit_test_setup_teardown(older_ways, reset, clean),
        cmocka_unit_test_setup_teardown(inforom, reset, clean),
        cmocka_unit_test_setup_teardown(no_nvml, reset, clean),
        cmocka_unit_test_setup_teardown(watched, reset, clean),
        cmocka_unit_test_setup_teardown(error_growth, reset, clean),
        cmocka_unit_test_setup_teardown(xids, reset, clean),
        cmocka_unit_test_setup_teardown(fabric, reset, clean),
        cmocka_unit_test_setup_teardown(other_processes, reset, clean),
        cmocka_unit_test_setup_teardown(looked_at, reset, clean),
        cmocka_unit_test_setup_teardown(mig, reset, clean),
        cmocka_unit_test_setup_teardown(near_cpus, reset, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
