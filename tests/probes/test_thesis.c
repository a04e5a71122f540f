/* The six GPUs of the thesis, simulated: its tables 5.4 to 5.9 come out again. */
#include "../check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "device/source.h"
#include "inventory/measure.h"
#include "probes/probes.h"

static const char *fleet_path;

/* A row of a table. Sizes in KiB as the tables and the choices in configs/sim have them; 0: "-".
 * at_least: the table's "> 62.5 KiB". shared: words, NULL: not compared. per_sm 0: "-". */
struct row {
    const char *memory;
    double size_kib;
    bool at_least;
    double fetch_bytes, latency_cycles;
    const char *shared;
    double per_sm;
};

enum { ROWS = 8 };
struct table {
    const char *gpu;
    struct row rows[ROWS];
};

static const struct table tables[] = {
    {"Tesla K20c",
     {{"l1_data", 16, false, 128, 64, "", 1},
      {"texture", 12, false, 32, 111, "read_only", 4},
      {"read_only", 12, false, 32, 130, "texture", 4},
      {"constant_l1", 2, false, 64, 50, "", 4},
      {"constant_l15", 32, false, 256, 120, NULL, 0},
      {"shared", 48, false, 0, 47, NULL, 0},
      {"l2", 1280, false, 32, 223, NULL, 0},
      {"main", 4744. * 1024, false, 0, 339, NULL, 0}}},
    {"NVIDIA GeForce 840M",
     {{"l1_data", 0, false, 0, 0, NULL, 0},
      {"texture", 12, false, 32, 92, "read_only", 2},
      {"read_only", 12, false, 32, 92, "texture", 2},
      {"constant_l1", 2, false, 64, 33, "", 1},
      {"constant_l15", 32, false, 256, 86, NULL, 0},
      {"shared", 64, false, 0, 31, NULL, 0},
      {"l2", 1024, false, 32, 173, NULL, 0},
      {"main", 2005. * 1024, false, 0, 448, NULL, 0}}},
    {"Quadro P6000",
     {{"l1_data", 24, false, 32, 92, "texture read_only", 2},
      {"texture", 24, false, 32, 85, "l1_data read_only", 2},
      {"read_only", 24, false, 32, 94, "l1_data texture", 2},
      {"constant_l1", 2, false, 64, 33, "", 1},
      {"constant_l15", 32, false, 256, 94, NULL, 0},
      {"shared", 96, false, 0, 31, NULL, 0},
      {"l2", 3072, false, 32, 243, NULL, 0},
      {"main", 24450. * 1024, false, 0, 412, NULL, 0}}},
    {"Tesla V100-PCIE-32GB",
     {{"l1_data", 25.629, false, 32, 36, "texture read_only", 1},
      {"texture", 25.629, false, 32, 80, "l1_data read_only", 1},
      {"read_only", 25.629, false, 32, 36, "l1_data texture", 1},
      {"constant_l1", 2, false, 64, 32, "", 1},
      {"constant_l15", 64, true, 256, 105, NULL, 0},
      {"shared", 96, false, 0, 27, NULL, 0},
      {"l2", 6144, false, 64, 215, NULL, 0},
      {"main", 32510. * 1024, false, 0, 430, NULL, 0}}},
    {"NVIDIA GeForce RTX 2080 Ti",
     {{"l1_data", 26.137, false, 32, 40, "texture read_only", 1},
      {"texture", 26.137, false, 32, 86, "l1_data read_only", 1},
      {"read_only", 26.137, false, 32, 40, "l1_data texture", 1},
      {"constant_l1", 2, false, 64, 32, "", 1},
      {"constant_l15", 46, false, 256, 105, NULL, 0},
      {"shared", 64, false, 0, 30, NULL, 0},
      {"l2", 5632, false, 64, 230, NULL, 0},
      {"main", 11. * 1024 * 1024, false, 0, 425, NULL, 0}}},
    {"NVIDIA A100-PCIE-40GB",
     {{"l1_data", 22.254, false, 32, 39, "texture read_only", 1},
      {"texture", 22.254, false, 32, 89, "l1_data read_only", 1},
      {"read_only", 22.254, false, 32, 38, "l1_data texture", 1},
      {"constant_l1", 2, false, 64, 34, "", 1},
      {"constant_l15", 64, true, 256, 114, NULL, 0},
      {"shared", 164, false, 0, 28, NULL, 0},
      {"l2", 40960, false, 64, 223, NULL, 0},
      {"main", 40355. * 1024, false, 0, 567, NULL, 0}}},
};

static const struct measure *find(const struct measures *found, const char *memory,
                                  const char *attribute)
{
    char metric[64];
    snprintf(metric, sizeof metric, "%s.%s", memory, attribute);
    return measures_get(found, metric);
}

/* Prints a cell and gives 1 when it is wrong. */
static int cell(const struct measures *found, const char *memory, const char *attribute,
                double expected, double tolerance, double unit)
{
    const struct measure *m = find(found, memory, attribute);
    bool there = m && (m->status == MEASURE_OK || m->status == MEASURE_NOISY);
    bool right = expected > 0 ? there && fabs(m->value / unit - expected) <= tolerance : !there;
    if (there)
        printf(" %s%.6g%s", m->bound == MEASURE_AT_LEAST ? ">=" : "", m->value / unit,
               right ? "" : " (!)");
    else
        printf(" -%s", right ? "" : " (!)");
    return !right;
}

static int shared_cell(const struct measures *found, const struct row *row)
{
    const struct measure *m = find(found, row->memory, "shared_with");
    struct strbuf words = {0};
    strbuf_puts(&words, "");
    for (size_t i = 0; m && i < m->word_count; i++)
        strbuf_printf(&words, "%s%s", i ? " " : "", m->words[i]);
    int wrong = row->shared && strcmp(words.data, row->shared) != 0;
    printf(" [%s]%s", words.data, wrong ? " (!)" : "");
    strbuf_fini(&words);
    return wrong;
}

static int compare_row(const struct measures *found, const struct row *row)
{
    int wrong = 0;
    bool cache = row->fetch_bytes > 0 || row->size_kib == 0;
    double size_room = fmax(0.02 * row->size_kib, row->fetch_bytes / 1024);
    printf("  %-13s", row->memory);
    wrong += cell(found, row->memory, "size", row->size_kib, size_room, 1024);
    if (cache)
        wrong += cell(found, row->memory, "fetch", row->fetch_bytes, 0, 1);
    wrong +=
        cell(found, row->memory, "latency", row->latency_cycles, 0.02 * row->latency_cycles, 1);
    const struct measure *size = find(found, row->memory, "size");
    wrong += row->at_least != (size && size->bound == MEASURE_AT_LEAST);
    if (row->shared)
        wrong += shared_cell(found, row);
    if (row->per_sm > 0)
        wrong += cell(found, row->memory, "per_sm", row->per_sm, 0, 1);
    printf("\n");
    return wrong;
}

static const struct table *table_of(const char *gpu)
{
    for (size_t i = 0; i < COUNT_OF(tables); i++)
        if (strcmp(tables[i].gpu, gpu) == 0)
            return &tables[i];
    fail_msg("no table for %s", gpu);
    return NULL;
}

static void reproduces_the_tables(void **state)
{
    (void)state;
    struct device_source *source;
    struct probe_selection selection;
    struct err err = {0};
    const struct probe_options options = {.profile = PROFILE_STANDARD, .seed = 1};
    int wrong = 0;
    if (device_source_sim(fleet_path, 1, 0, 1, &source, &err) ||
        probes_select(PROFILE_STANDARD, NULL, &selection, &err))
        fail_msg("%s", err.text);
    assert_int_equal(device_source_count(source), COUNT_OF(tables));
    for (size_t i = 0; i < COUNT_OF(tables); i += CHECK_EVERY) {
        struct device *device;
        struct measures found = {0};
        const char *name = device_source_info(source, i)->name;
        if (device_source_open(source, i, &device, &err) ||
            probes_run(device, &selection, &options, NULL, &found, &err))
            fail_msg("%s: %s", name, err.text);
        printf("%s: size (KiB), fetch (B), latency (cycles), shared with, per SM\n", name);
        for (size_t r = 0; r < ROWS; r++)
            wrong += compare_row(&found, &table_of(name)->rows[r]);
        measures_fini(&found);
        device_destroy(device);
    }
    printf("%d cells differ from the thesis\n", wrong);
    free(selection.indices);
    device_source_destroy(source);
    assert_int_equal(wrong, 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(reproduces_the_tables)};
    if (argc != 2)
        return 2;
    fleet_path = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
