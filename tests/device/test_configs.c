/* The model and fleet files that are shipped, and the examples of the documentation. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../check.h"
#include "base/mem.h"
#include "device/sim/model.h"
#include "device/source.h"

enum { FILES_MAX = 64 };

static int is_yaml(const struct dirent *entry)
{
    const char *dot = strrchr(entry->d_name, '.');
    return dot && strcmp(dot, ".yaml") == 0;
}

/* Paths of all YAML files of a folder below the configs; freed by free_paths. */
static size_t list(const char *folder, char *out_paths[FILES_MAX])
{
    char whole[512];
    snprintf(whole, sizeof whole, "%s/%s", CONFIGS, folder);
    struct dirent **entries;
    int count = scandir(whole, &entries, is_yaml, alphasort);
    assert_in_range(count, 1, FILES_MAX);
    for (int i = 0; i < count; i++) {
        assert_true(asprintf(&out_paths[i], "%s/%s", whole, entries[i]->d_name) > 0);
        free(entries[i]);
    }
    free(entries);
    return (size_t)count;
}

static void free_paths(char **paths, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(paths[i]);
}

static struct sim_model *read_model(const char *path)
{
    struct sim_model *model = NULL;
    struct err err = {0};
    if (sim_model_read_file(path, &model, &err))
        fail_msg("%s:%d:%d: %s", path, err.line, err.column, err.text);
    return model;
}

/* One pass over a few KiB on every path that the model has. */
static void use_paths(const struct sim_model *model)
{
    struct device *device;
    struct err err = {0};
    if (sim_open(model, NULL, 0, 1, &device, &err))
        fail_msg("%s: %s", sim_model_name(model), err.text);
    for (int path = 0; path < DEVICE_PATH_COUNT; path++) {
        if (!model->paths[path].present)
            continue;
        struct device_job job = {
            .agents = {{.sm = DEVICE_SM_ANY}},
            .agent_count = 1,
            .steps = {{.kind = DEVICE_CHASE,
                       .array = {.path = path, .size_bytes = 4096, .stride_bytes = 64}}},
            .step_count = 1,
            .shared_bytes = 4096};
        struct device_batch batch = {.jobs = &job, .job_count = 1};
        struct device_answer answer;
        if (device_run(device, &batch, &answer, &err))
            fail_msg("%s, path %d: %s", sim_model_name(model), path, err.text);
        device_answers_fini(&answer, 1);
    }
    device_destroy(device);
}

static void models_load_and_differ(void **state)
{
    (void)state;
    char *paths[FILES_MAX], *keys[FILES_MAX];
    size_t count = list("sim", paths);
    for (size_t i = 0; i < count; i++) {
        struct sim_model *model = read_model(paths[i]);
        keys[i] = strdup(sim_model_key(model));
        assert_non_null(keys[i]);
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(keys[i], keys[k]);
        use_paths(model);
        sim_model_destroy(model);
    }
    free_paths(keys, count);
    free_paths(paths, count);
}

/* main.latency chases four times the L2: each page must stay in the first TLB meanwhile, or the
 * model's latency of main memory could not be measured. */
static void tlbs_reach_four_times_the_l2(void **state)
{
    (void)state;
    char *paths[FILES_MAX];
    size_t count = list("sim", paths);
    for (size_t i = 0; i < count; i++) {
        struct sim_model *model = read_model(paths[i]);
        for (int k = 0; k < SIM_TLBS; k++) {
            const struct sim_tlb *tlb = &model->tlbs[k];
            if (tlb->present && tlb->geometry.size < 4 * model->l2.reported)
                fail_msg("%s: TLB level %d", paths[i], k + 1);
        }
        sim_model_destroy(model);
    }
    free_paths(paths, count);
}

static size_t load_fleet(const char *path)
{
    struct device_source *source = NULL;
    struct err err = {0};
    if (device_source_sim(path, 1, 0, 1, &source, &err))
        fail_msg("%s:%d:%d: %s", path, err.line, err.column, err.text);
    size_t count = device_source_count(source);
    device_source_destroy(source);
    return count;
}

static void fleets_load(void **state)
{
    (void)state;
    char *paths[FILES_MAX];
    size_t count = list("fleets", paths);
    for (size_t i = 0; i < count; i++)
        assert_true(load_fleet(paths[i]) > 0);
    free_paths(paths, count);
    assert_int_equal(load_fleet(CONFIGS "/fleets/thesis.yaml"), 6);
}

/* What tables 5.4 to 5.9 of the thesis print, a second time: sizes in KiB of one instance (0: the
 * bank cannot overfill it), fetch units, number per SM, latencies. */
struct level {
    double size_kib;
    uint64_t fetch;
    uint32_t per_sm;
    double cycles;
};
struct printed {
    const char *file;
    struct level l1, texture, read_only, constant_l1, constant_l15;
    double shared_kib, shared_cycles;
    double l2_mib;
    uint64_t l2_fetch;
    double l2_cycles, main_gib, main_cycles;
};
static const struct printed tables[] = {
    {"tesla-k20c",
     {16.137, 128, 1, 64},
     {12.012, 32, 4, 111},
     {12.129, 32, 4, 130},
     {2, 64, 4, 50},
     {32.813, 256, 1, 120},
     48,
     47,
     1.25,
     32,
     223,
     4.633,
     339},
    {"geforce-840m",
     {0},
     {12.129, 32, 2, 92},
     {12.129, 32, 2, 92},
     {2, 64, 1, 33},
     {30.469, 256, 1, 86},
     64,
     31,
     1,
     32,
     173,
     1.958,
     448},
    {"quadro-p6000",
     {24.012, 32, 2, 92},
     {24.012, 32, 2, 85},
     {24.012, 32, 2, 94},
     {2, 64, 1, 33},
     {31.25, 256, 1, 94},
     96,
     31,
     3,
     32,
     243,
     23.877,
     412},
    {"tesla-v100",
     {25.629, 32, 1, 36},
     {24.023, 32, 1, 80},
     {25.629, 32, 1, 36},
     {2, 64, 1, 32},
     {0, 256, 1, 105},
     96,
     27,
     6,
     64,
     215,
     31.748,
     430},
    {"rtx-2080-ti",
     {26.137, 32, 1, 40},
     {25.012, 32, 1, 86},
     {26.137, 32, 1, 40},
     {2, 64, 1, 32},
     {46, 256, 1, 105},
     64,
     30,
     5.5,
     64,
     230,
     11,
     425},
    {"a100",
     {22.254, 32, 1, 39},
     {21.191, 32, 1, 89},
     {22.254, 32, 1, 38},
     {2, 64, 1, 34},
     {0, 256, 1, 114},
     164,
     28,
     40,
     64,
     223,
     39.409,
     567},
};

/* 8 %: as far as the tables differ between spaces of one array and from the true L1.5. */
static const double size_tolerance = 0.08;

static bool near(double value, double printed, double share)
{
    return value >= printed * (1 - share) && value <= printed * (1 + share);
}

static bool level_matches(const struct sim_model *model, enum device_path path, uint32_t depth,
                          const struct level *printed)
{
    const struct sim_path *p = &model->paths[path];
    if (!printed->cycles)
        return p->present && p->cache_count == 0;
    if (!p->present || p->cache_count <= depth)
        return false;
    const struct sim_cache *cache = &model->caches[p->caches[depth]];
    double kib = (double)cache->geometry.size / 1024;
    bool size = printed->size_kib ? near(kib, printed->size_kib, size_tolerance)
                                  : cache->geometry.size > model->constant_bytes;
    return size && cache->geometry.fetch == printed->fetch && cache->instances == printed->per_sm &&
           p->cache_cycles[depth] == printed->cycles;
}

static bool outer_levels_match(const struct sim_model *model, const struct printed *t)
{
    const struct sim_path *cg = &model->paths[DEVICE_GLOBAL_CG];
    /* A chase through main memory meets the far part of L2 every second time. */
    double main_cycles = cg->main_cycles + model->l2.far_cycles[1] / 2;
    return near((double)model->shared_bytes_max / 1024, t->shared_kib, 0.01) &&
           model->paths[DEVICE_SHARED].main_cycles == t->shared_cycles &&
           (double)model->l2.geometry.size == t->l2_mib * 1024 * 1024 &&
           model->l2.geometry.fetch == t->l2_fetch && cg->l2_cycles == t->l2_cycles &&
           near((double)model->memory_bytes / 1024 / 1024 / 1024, t->main_gib, 0.001) &&
           main_cycles == t->main_cycles;
}

static void thesis_models_say_what_its_tables_print(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(tables); i++) {
        const struct printed *t = &tables[i];
        char path[512];
        snprintf(path, sizeof path, "%s/sim/%s.yaml", CONFIGS, t->file);
        struct sim_model *model = read_model(path);
        const bool matches[] = {
            level_matches(model, DEVICE_GLOBAL_CA, 0, &t->l1),
            level_matches(model, DEVICE_TEXTURE, 0, &t->texture),
            level_matches(model, DEVICE_READ_ONLY, 0, &t->read_only),
            level_matches(model, DEVICE_CONSTANT, 0, &t->constant_l1),
            level_matches(model, DEVICE_CONSTANT, 1, &t->constant_l15),
            outer_levels_match(model, t),
        };
        for (size_t k = 0; k < COUNT_OF(matches); k++)
            if (!matches[k])
                fail_msg("%s: row %zu of its table", t->file, k + 1);
        sim_model_destroy(model);
    }
}

static char *read_text(const char *path)
{
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    char *text = mem_array(1, 1 << 20);
    assert_non_null(text);
    size_t length = fread(text, 1, (1 << 20) - 1, file);
    assert_true(length > 0 && feof(file));
    fclose(file);
    return text;
}

/* Cuts the next fenced YAML block out of *at; NULL when there is none. */
static char *next_block(char **at)
{
    static const char open[] = "\n```yaml\n", close[] = "\n```";
    char *begin = strstr(*at, open);
    if (!begin)
        return NULL;
    begin += strlen(open);
    char *end = strstr(begin, close);
    assert_non_null(end);
    end[1] = '\0';
    *at = end + strlen(close);
    return begin;
}

/* Beside the example lies the folder of models, as in a real tree. */
static void load_example_fleet(const char *text)
{
    char folder[] = "/tmp/gpumemtopo-configs-XXXXXX", fleets[64], models[64], fleet[64];
    assert_non_null(mkdtemp(folder));
    snprintf(fleets, sizeof fleets, "%s/fleets", folder);
    snprintf(models, sizeof models, "%s/sim", folder);
    snprintf(fleet, sizeof fleet, "%s/fleets/example.yaml", folder);
    assert_int_equal(mkdir(fleets, 0700), 0);
    assert_int_equal(symlink(CONFIGS "/sim", models), 0);
    FILE *file = fopen(fleet, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    size_t count = load_fleet(fleet);
    unlink(fleet);
    unlink(models);
    rmdir(fleets);
    rmdir(folder);
    assert_int_equal(count, 124);
}

static void documented_examples_load(void **state)
{
    (void)state;
    char *text = read_text(SIMULATION_DOC), *at = text, *block;
    size_t models = 0, fleets = 0;
    while ((block = next_block(&at))) {
        struct sim_model *model = NULL;
        struct err err = {0};
        if (strstr(block, "\nnodes:")) {
            load_example_fleet(block);
            fleets++;
        } else if (sim_model_read_text(block, strlen(block), "example", &model, &err)) {
            fail_msg("model example, line %d column %d: %s", err.line, err.column, err.text);
        } else {
            use_paths(model);
            models++;
        }
        sim_model_destroy(model);
    }
    free(text);
    assert_int_equal(models, 1);
    assert_int_equal(fleets, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(models_load_and_differ),
        cmocka_unit_test(tlbs_reach_four_times_the_l2),
        cmocka_unit_test(fleets_load),
        cmocka_unit_test(thesis_models_say_what_its_tables_print),
        cmocka_unit_test(documented_examples_load),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
