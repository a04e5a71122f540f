/* What model and fleet files may say, and how mistakes in them are told. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../check.h"
#include "base/mem.h"
#include "device/sim/sim.h"
#include "device/source.h"

/* Lines of a good model; a case replaces one of them. */
static const char *const good[] = {
    "name: Good",
    "sms: 4",
    "memory: {size: 1 GiB}",
    "clock: {sm_mhz: 1000, idle_mhz: 100}",
    "carveout: {total: 64 KiB, steps: [0, 8 KiB]}",
    "caches:",
    "  l1: {carveout: true, line: 128, ways: 4}",
    "  tex: {size: 8 KiB, line: 128, sector: 32, ways: 4}",
    "l2: {size: 1 MiB, line: 128, ways: 16}",
    "tlb: [{entries: 16, page: 64 KiB, miss_cycles: 9}]",
    "paths:",
    "  global_ca: [l1: 30, l2: 200, main: 500]",
    "  global_cg: [l2: 200, main: 500]",
    "  texture: [tex: 40, l2: 200, main: 500]",
};

static char *model_text(size_t line, const char *replacement)
{
    char *text = mem_array(1, 4096);
    assert_non_null(text);
    for (size_t i = 0; i < COUNT_OF(good); i++) {
        strcat(text, line == i + 1 ? replacement : good[i]);
        strcat(text, "\n");
    }
    return text;
}

struct bad_line {
    int line;
    const char *text;
    int column;
    const char *message;
};
static const struct bad_line bad_lines[] = {
    {1, "nme: Good", 1, "did you mean \"name\""},
    {2, "sms: many", 6, "whole number"},
    {2, "sms: 0", 6, "outside"},
    {2, "sms: -4", 6, "whole number"},
    {3, "memory: {size: -1}", 16, "expected a size"},
    {3, "memory: 1 GiB", 9, "mapping"},
    {3, "memory: {}", 9, "\"size\" is missing"},
    {4, "clock: {sm_mhz: 1000, idle_mhz: 2000}", 33, "idle_mhz is above"},
    {4, "clock: {sm_mhz: .nan}", 17, "number"},
    {5, "carveout: {total: 64 KiB, steps: [8 KiB, 8 KiB]}", 42, "rise"},
    {5, "carveout: {total: 64 KiB, steps: [64 KiB]}", 35, "leaves nothing"},
    {5, "carveout: {total: 64 KiB, steps: [8 KiB], reserve: 9 KiB}", 52, "reserve"},
    {5, "carveout: {total: 64 KiB, steps: []}", 34, "1 to 16"},
    {5, "# none", 0, "no section `carveout`"},
    {7, "  l1: {carveout: true, size: 4 KiB, line: 128, ways: 4}", 7, "gets its size from"},
    {7, "  l1: {line: 128, ways: 4}", 7, "\"size\" is missing"},
    {8, "  tex: {size: 8 KiB, line: 128, sector: 48, ways: 4}", 41, "does not divide"},
    {8, "  tex: {size: 8 KiB, line: 128, sector: 4, ways: 4}", 41, "at most 16 sectors"},
    {8, "  tex: {size: 8000, line: 128, ways: 4}", 15, "whole number of lines"},
    {8, "  tex: {size: 1 KiB, line: 128, ways: 9}", 39, "only 8 lines"},
    {8, "  tex: {size: 1 KiB, line: 128, ways: some}", 39, "`full`"},
    {8, "  tex: {size: 8 KiB, line: 128, ways: 4, policy: mru}", 50, "lru, random, fermi, early"},
    {8, "  tex: {size: 8 KiB, line: 128, ways: 4, instances: 9}", 53, "outside 1 to 8"},
    {8, "  tex: {size: 8 KiB, line: 128, ways: 4, instances: 2, scope: tpc}", 53, "scope: sm"},
    {8, "  tex: {size: 8 KiB, line: 128, ways: 4, nominal: 4 KiB}", 51, "nominal"},
    {8, "  l2: {size: 8 KiB, line: 128, ways: 4}", 7, "section of its own"},
    {9, "l2: {size: 1 MiB, line: 128, ways: 16, fetch: 48}", 47, "fetch"},
    {9, "l2: {size: 1 MiB, line: 128, ways: 16, far_cycles: 9}", 52, "no far part"},
    {9, "l2: {size: 128, line: 128, ways: 1, parts: homes}", 12, "multiple of the 2 parts"},
    {10, "tlb: [{entries: 16, page: 48 KiB, miss_cycles: 9}]", 27, "power of two"},
    {10, "tlb: [{page: 64 KiB, miss_cycles: 9}]", 7, "entries"},
    {10, "tlb: [{entries: 4, ways: [2, 3], page: 64 KiB, miss_cycles: 9}]", 26, "5 entries"},
    {10, "tlb: [{ways: [1000, 3], page: 64 KiB, miss_cycles: 9}]", 14, "differ too much"},
    {10, "tlb: [{entries: 16, miss_cycles: 9}]", 7, "\"page\" is missing"},
    {10, "tlb: {entries: 16}", 6, "a list"},
    {10, "instruction_caches: {cycles: 1}", 21, "\"levels\" is missing"},
    {10, "instruction_caches: {cycles: 1, levels: []}", 41, "1 to 4 levels"},
    {10,
     "instruction_caches: {cycles: 1, levels: [{size: 1000, line: 128, ways: 4, miss_cycles: 1}]}",
     49, "whole sets"},
    {10,
     "instruction_caches: {cycles: 1, levels: [{size: 1 KiB, line: 128, ways: 4, miss_cycles: 1}], "
     "jumps: [3]}",
     102, "[size, cycles]"},
    {12, "  global_ca: [l9: 30, l2: 200, main: 500]", 15, "no cache \"l9\""},
    {12, "  global_ca: [l1: 30, l2: 20, main: 500]", 27, "rise with depth"},
    {12, "  global_ca: [l1: 30, l2: 200]", 14, "must end in `main`"},
    {12, "  global_ca: [l1: 30, main: 500]", 23, "`l2` must come before"},
    {12, "  global_ca: [l1: 30, l2: 200, tex: 300, main: 500]", 32, "only `main`"},
    {12, "  global_ca: [l1: 30, l1: 40, l2: 200, main: 500]", 23, "twice"},
    {12, "  global_ca: 30", 14, "a list"},
    {4, "health: {ecc_uncorrected: 1}", 10, "did you mean"},
    {4, "health: {remap_pending: 1}", 25, "remap_pending"},
    {4, "health: {pcie_replays: 1.5}", 24, "whole number"},
    {4, "health: {pcie_replays: -1}", 24, "outside"},
    {4, "config: {virtualization: nonsense}", 26, "expected one of none, passthrough, vgpu, "},
    {4, "config: {confidential_computing: maybe}", 34, "expected one of off, on, protected_pcie, "},
    {4, "config: {compute_mode: fast}", 24, "expected one of default, exclusive_thread, "},
    {4, "config: {mig: false, mig_profile: 1g.10gb}", 15, "must be true, or absent, with a mig"},
    {13, "  global_cg: [l1: 30, l2: 200, main: 500]", 14, "begin at `l2`"},
    {13, "  # none", 0, "\"global_cg\" is missing"},
};

static void model_mistakes_have_a_position(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad_lines); i++) {
        const struct bad_line *c = &bad_lines[i];
        char *text = model_text((size_t)c->line, c->text);
        struct sim_model *model = NULL;
        struct err err = {0};
        int rc = sim_model_read_text(text, strlen(text), "model.yaml", &model, &err);
        bool placed = c->column ? err.line == c->line && err.column == c->column : err.line > 0;
        if (rc != -EINVAL || model || !placed || !strstr(err.text, c->message))
            fail_msg("%s: %d at %d:%d: %s", c->text, rc, err.line, err.column, err.text);
        free(text);
    }
    char *text = model_text(0, "");
    struct sim_model *model = NULL;
    struct err err = {0};
    assert_int_equal(sim_model_read_text(text, strlen(text), "model.yaml", &model, &err), 0);
    sim_model_destroy(model);
    free(text);
}

static char folder[] = "/tmp/gpumemtopo-fleet-XXXXXX";
static char fleet_path[64], model_path[64];

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static int setup(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    snprintf(fleet_path, sizeof fleet_path, "%s/fleet.yaml", folder);
    snprintf(model_path, sizeof model_path, "%s/good.yaml", folder);
    char *text = model_text(0, "");
    write_file(model_path, text);
    free(text);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    unlink(fleet_path);
    unlink(model_path);
    return rmdir(folder);
}

struct bad_fleet {
    const char *text;
    int line, column;
    const char *message;
};
static const struct bad_fleet bad_fleets[] = {
    {"nodes: []\n", 1, 8, "at least one node"},
    {"node: []\n", 1, 1, "did you mean \"nodes\""},
    {"nodes:\n  - {name: a, gpus: 1}\n", 2, 5, "\"model\" is missing"},
    {"nodes:\n  - {name: a, model: ./none.yaml, gpus: 1}\n", 2, 22, "none.yaml"},
    {"nodes:\n  - {name: a, model: /dev/zero, gpus: 1}\n", 2, 22, "/dev/zero: is no regular file"},
    {"nodes:\n  - {name: a, model: ./good.yaml, gpus: 1}\n  - {name: a, gpus: 0}\n", 0, 0,
     "second node"},
    {"nodes:\n  - {name: a, model: ./good.yaml, gpus: 3, links: {shape: hypercube, gb_per_s: 9}}\n",
     0, 0, "2, 4, 8, ... GPUs, not 3"},
    {"nodes:\n  - {name: a, model: ./good.yaml, gpus: 2, faults: [{gpu: 0, kind: dead_link}]}\n", 0,
     0, "no links between its GPUs"},
    {"nodes:\n  - {name: a, model: ./good.yaml, gpus: 2, links: {shape: switches, gb_per_s: 9}, "
     "faults: [{gpu: 0, kind: dead_link, peer: 0}]}\n",
     0, 0, "another one of the node's 2 GPUs"},
    {"nodes:\n  - {name: a, model: ./good.yaml, gpus: 2, links: {shape: pcie, gb_per_s: 9}, "
     "faults: [{gpu: 0, kind: fabric_down}]}\n",
     0, 0, "a PCIe tree has no fabric"},
    {"nodes:\n  - {name: a, count: 2, gpus: 0}\n", 2, 12, "need a %d"},
    {"nodes:\n  - {name: a%s, gpus: 0}\n", 2, 12, "at most one"},
    {"nodes:\n  - {name: a%d%d, gpus: 0}\n", 2, 12, "at most one"},
    {"nodes:\n  - {name: a%n, gpus: 0}\n", 2, 12, "at most one"},
    {"nodes:\n  - {name: 'a%', gpus: 0}\n", 2, 12, "at most one"},
    {"nodes:\n  - {name: a, gpus: -1}\n", 2, 21, "whole number"},
    {"nodes:\n  - {name: a, gpus: 999}\n", 2, 21, "outside"},
    {"faults: [{hits: 0.1, kind: dead_driver}]\nnodes:\n  - {name: a, model: ./good.yaml, gpus: "
     "2}\n",
     1, 10, "per: node"},
    {"nodes:\n  - {name: a, model: ./good.yaml, gpus: 2, given: 3}\n", 2, 51,
     "more than the 2 GPUs"},
    {"nodes:\n  - {name: a, model: ./good.yaml, gpus: 2, faults: [{gpu: 1, kind: dead_driver}]}\n",
     2, 59, "gpu: all"},
    {"nodes:\n  - {name: a, model: ./good.yaml, gpus: 2, faults: [{gpu: 1, kind: crash, tries: "
     "0}]}\n",
     2, 82, "outside"},
    {"nodes:\n  - {name: a%d, count: 1000, gpus: 250, model: ./good.yaml}\n", 2, 5, "200000 GPUs"},
    {"visibility: some\nnodes: []\n", 1, 13, "own, all"},
    {"vary: {sm_clock: 2}\nnodes: []\n", 1, 18, "outside"},
    {"nodes:\n  - name: a\n    model: ./good.yaml\n    gpus: 2\n    faults:\n"
     "      - {gpu: 2, kind: ecc_off}\n",
     6, 15, "outside 0 to 1"},
    {"nodes:\n  - name: a\n    model: ./good.yaml\n    gpus: 2\n    faults:\n"
     "      - {gpu: 0, kind: flood}\n",
     6, 24, "expected one of"},
    {"nodes:\n  - name: a\n    model: ./good.yaml\n    gpus: 2\n    faults:\n"
     "      - {gpu: 0, kind: virtualization, text: some}\n",
     6, 46, "expected one of none, passthrough, vgpu, host_vgpu, host_vsga; found \"some\""},
    {"nodes:\n  - name: a\n    model: ./good.yaml\n    gpus: 2\n    faults:\n"
     "      - {gpu: 0, kind: confidential, text: yes, factor: 2}\n",
     6, 44, "expected one of off, on, protected_pcie, encrypted_nvlink; found \"yes\""},
    {"nodes:\n  - name: a\n    model: ./good.yaml\n    gpus: 2\n    faults:\n"
     "      - {gpu: 0, kind: compute_mode, text: fast}\n",
     6, 44, "expected one of default, "},
    {"nodes:\n  - name: a\n    model: ./good.yaml\n    gpus: 2\n    faults:\n"
     "      - {gpu: 0, kind: slow_dram}\n",
     6, 9, "\"share\" is missing"},
    {"nodes:\n  - name: a\n    model: ./good.yaml\n    gpus: 2\n    faults:\n"
     "      - {gpu: 0, kind: ecc_off, share: 0.1}\n",
     6, 33, "unknown key \"share\""},
    {"nodes:\n  - name: a\n    model: ./good.yaml\n    gpus: 2\n    faults:\n"
     "      - {gpu: all, kind: slow_sm, sm: 4, share: 0.1}\n",
     6, 9, "only 4 SMs"},
    {"", 1, 1, ""},
};

static void fleet_mistakes_have_a_position(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad_fleets); i++) {
        const struct bad_fleet *c = &bad_fleets[i];
        write_file(fleet_path, c->text);
        struct device_source *source = NULL;
        struct err err = {0};
        int rc = device_source_sim(fleet_path, 1, 0, 1, &source, &err);
        bool placed = !c->line || (err.line == c->line && err.column == c->column);
        if (rc != -EINVAL || source || !placed || !strstr(err.text, c->message))
            fail_msg("case %zu: %d at %d:%d: %s", i, rc, err.line, err.column, err.text);
    }
    struct device_source *source = NULL;
    struct err err = {0};
    assert_int_equal(device_source_sim("no/such/file", 1, 0, 1, &source, &err), -ENOENT);
    assert_int_equal(device_source_sim(fleet_path, 1, 2, 2, &source, &err), -EINVAL);
}

static struct device_source *open_fleet(const char *path, uint64_t seed, uint32_t rank,
                                        uint32_t ranks)
{
    struct device_source *source;
    struct err err = {0};
    if (device_source_sim(path, seed, rank, ranks, &source, &err))
        fail_msg("%d:%d: %s", err.line, err.column, err.text);
    return source;
}

static void ranks_share_the_fleet(void **state)
{
    (void)state;
    write_file(fleet_path, "nodes:\n"
                           "  - {name: 'n%03d', count: 3, first: 8, gpus: 3, model: ./good.yaml}\n"
                           "  - {name: bare, gpus: 0}\n");
    struct device_source *all = open_fleet(fleet_path, 1, 0, 1);
    assert_int_equal(device_source_count(all), 9);
    assert_string_equal(device_source_info(all, 8)->node, "n010");
    assert_int_equal(device_source_info(all, 8)->index, 2);
    assert_string_equal(device_source_bare_node(all, 0), "bare");
    size_t bare = 0;
    for (uint32_t rank = 0; rank < 4; rank++) {
        struct device_source *own = open_fleet(fleet_path, 2, rank, 4);
        bare += device_source_bare_count(own);
        assert_int_equal(device_source_count(own), rank == 0 ? 3 : 2);
        for (size_t i = 0; i < device_source_count(own); i++) {
            const struct device_info *a = device_source_info(own, i);
            const struct device_info *b = device_source_info(all, rank + 4 * i);
            assert_string_equal(a->uuid, b->uuid); /* whatever the survey's seed */
            assert_string_equal(a->node, b->node);
            assert_string_equal(a->pci, b->pci);
        }
        device_source_destroy(own);
    }
    assert_int_equal(bare, 1);
    device_source_destroy(all);
}

static void all_are_visible_when_asked(void **state)
{
    (void)state;
    write_file(fleet_path, "visibility: all\nnodes:\n  - {name: n, gpus: 3, model: ./good.yaml}\n");
    struct device_source *source = open_fleet(fleet_path, 1, 1, 2);
    assert_int_equal(device_source_count(source), 3);
    device_source_destroy(source);
}

/* The last of four SMs is missing, and is also the one with a fault. */
static void missing_sms_have_no_other_fault(void **state)
{
    (void)state;
    static const char *const kinds[] = {"slow", "wrong"};
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        char text[300], expected[64];
        snprintf(text, sizeof text,
                 "nodes:\n  - name: n\n    model: ./good.yaml\n    gpus: 1\n    faults:\n"
                 "      - {gpu: 0, kind: %s_sm, sm: 3, share: 0.1}\n"
                 "      - {gpu: 0, kind: missing_sms}\n",
                 kinds[i]);
        snprintf(expected, sizeof expected, "the %s SM would be among the missing ones", kinds[i]);
        write_file(fleet_path, text);
        struct device_source *source = open_fleet(fleet_path, 1, 0, 1);
        struct device *device = NULL;
        struct err err = {0};
        assert_int_equal(device_source_open(source, 0, &device, &err), -EINVAL);
        assert_non_null(strstr(err.text, expected));
        device_source_destroy(source);
    }
}

/* What docs/simulation.md gives a default may be left out. */
static void faults_have_defaults(void **state)
{
    (void)state;
    write_file(fleet_path, "nodes:\n  - name: n\n    model: ./good.yaml\n    gpus: 2\n    faults:\n"
                           "      - {gpu: 0, kind: missing_sms}\n"
                           "      - {gpu: 0, kind: ecc_errors}\n");
    struct device_source *source = open_fleet(fleet_path, 1, 0, 1);
    struct device *devices[2];
    struct facts config = {0}, health = {0};
    struct err err = {0};
    for (size_t i = 0; i < COUNT_OF(devices); i++)
        assert_int_equal(device_source_open(source, i, &devices[i], &err), 0);
    assert_int_equal(device_limits(devices[0])->sm_count + 1, device_limits(devices[1])->sm_count);
    assert_int_equal(device_read_health(devices[0], &config, &health, &err), 0);
    assert_int_equal(facts_int(&health, "ecc_uncorrected_volatile", 0), 1);
    facts_fini(&config);
    facts_fini(&health);
    for (size_t i = 0; i < COUNT_OF(devices); i++)
        device_destroy(devices[i]);
    device_source_destroy(source);
}

/* Variation is the unit's own: the same in every survey, different between units. */
static void units_vary(void **state)
{
    (void)state;
    write_file(fleet_path, "vary: {sm_clock: 0.04}\n"
                           "nodes:\n  - {name: n, gpus: 8, model: ./good.yaml}\n");
    double first = 0, low = 1e9, high = 0;
    for (uint64_t seed = 1; seed < 3; seed++) {
        struct device_source *source = open_fleet(fleet_path, seed, 0, 1);
        for (size_t i = 0; i < 8; i++) {
            struct device *device;
            struct err err = {0};
            double mhz;
            assert_int_equal(device_source_open(source, i, &device, &err), 0);
            assert_int_equal(device_warm_up(device, &mhz, &err), 0);
            if (i == 0 && seed == 2)
                assert_true(mhz == first);
            first = i == 0 ? mhz : first;
            low = mhz < low ? mhz : low;
            high = mhz > high ? mhz : high;
            device_destroy(device);
        }
        device_source_destroy(source);
    }
    assert_true(low >= 959 && high <= 1041 && high - low > 20);
}

static void node_names_are_no_formats(void **state)
{
    (void)state;
    static const struct {
        const char *pattern, *name;
    } cases[] = {{"a", "a"}, {"%d", "7"}, {"n%03d-x", "n007-x"}, {"100%%-%d", "100%-7"}};
    struct arena arena = {0};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct err err = {0};
        assert_int_equal(sim_node_name_check(cases[i].pattern, 1, &err), 0);
        assert_string_equal(sim_node_name(&arena, cases[i].pattern, 7), cases[i].name);
    }
    arena_fini(&arena);
}

static void demo_fleet_opens(void **state)
{
    (void)state;
    struct device_source *source = open_fleet(DEMO_FLEET, 1, 0, 1);
    assert_true(device_source_count(source) >= 16);
    for (size_t i = 0; i < device_source_count(source); i++) {
        struct device *device;
        struct err err = {0};
        assert_int_equal(device_source_open(source, i, &device, &err), 0);
        device_destroy(device);
    }
    device_source_destroy(source);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(model_mistakes_have_a_position),
        cmocka_unit_test(fleet_mistakes_have_a_position),
        cmocka_unit_test(ranks_share_the_fleet),
        cmocka_unit_test(all_are_visible_when_asked),
        cmocka_unit_test(missing_sms_have_no_other_fault),
        cmocka_unit_test(faults_have_defaults),
        cmocka_unit_test(units_vary),
        cmocka_unit_test(node_names_are_no_formats),
        cmocka_unit_test(demo_fleet_opens),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
