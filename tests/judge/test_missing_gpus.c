/* Nodes with fewer GPUs than expected are failing; nodes that are smaller by right are not. */
#include "../check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "inventory/build.h"
#include "judge/judge.h"

/* Some nodes with as many GPUs each. */
struct nodes {
    size_t count;
    uint32_t gpus, given;
    const char *model; /* NULL: h200 */
    bool mig;
    size_t second; /* so many of the GPUs are of another model */
};
enum { KINDS = 4, GPUS_MAX = 1024 };

static void add_gpu(struct inventory *inventory, const struct nodes *kind, size_t node, uint32_t i)
{
    struct inventory_gpu *gpu = &inventory->gpus[inventory->gpu_count++];
    const char *model = kind->model ? kind->model : "h200";
    gpu->uuid = str_format("%s-%zu-%u", kind->mig ? "MIG" : "GPU", node, i);
    gpu->node = str_format("n%02zu", node);
    gpu->model = str_copy(i < kind->gpus - kind->second ? model : "l40");
    gpu->run.gpus_allocated = kind->given;
    assert_true(gpu->uuid && gpu->node && gpu->model);
}

static size_t acted_on(const struct inventory *inventory)
{
    size_t count = 0;
    for (size_t i = 0; i < inventory->node_finding_count; i++)
        count += inventory->node_findings[i].action == ACTION_DRAIN &&
                 !inventory->node_findings[i].gpu_count;
    return count;
}

static void make(struct inventory *out, const struct nodes *kinds)
{
    *out = (struct inventory){0};
    out->gpus = mem_array(GPUS_MAX, sizeof *out->gpus);
    size_t node = 0;
    for (size_t k = 0; k < KINDS; k++)
        for (size_t n = 0; n < kinds[k].count; n++, node++)
            for (uint32_t i = 0; i < kinds[k].gpus; i++)
                add_gpu(out, &kinds[k], node, i);
}

static void add_rank(struct inventory *inventory, const char *node, enum gpu_status status,
                     uint32_t given)
{
    const struct inventory_unmeasured rank = {.node = (char *)node,
                                              .rank = 3,
                                              .status = status,
                                              .reason = (char *)"cuInit: unknown error",
                                              .gpus_allocated = given};
    inventory_add_unknown(inventory, &rank);
}

static void look(struct inventory *inventory, const struct judge_config *config,
                 const struct inventory *baseline)
{
    static struct judge_config none;
    policy_read(NULL, &none.policy, NULL);
    const struct judge_basis basis = {.config = config ? config : &none, .baseline = baseline};
    judge_missing_gpus(&basis, inventory);
}

static const struct inventory_node *only(const struct inventory *inventory)
{
    assert_int_equal(inventory->node_finding_count, 1);
    return &inventory->node_findings[0];
}

static void likes(void **state)
{
    (void)state;
    static const struct {
        struct nodes kinds[KINDS];
        size_t accused, told; /* nodes */
        const char *finding;
    } rows[] = {
        {{{3, 8}, {1, 7}}, 1, 1, "7 of 8 GPUs: 3 of 4 nodes with h200 have 8"},
        {{{3, 4}, {1, 3}}, 1, 1, "3 of 4 GPUs: 3 of 4 nodes with h200 have 4"},
        {{{9, 8}, {1, 5}, {1, 6}, {1, 7}}, 3, 3, NULL},
        {{{40, 8}, {2, 7}}, 2, 2, NULL},
        {{{3, 8, .given = 8}, {1, 7, .given = 8}}, 1, 1, "7 of 8 GPUs that the job was given"},
        /* Too few nodes, or no majority. */
        {{{2, 8}, {1, 7}}, 0, 0, NULL},
        {{{3, 8}, {2, 7}}, 0, 0, NULL},
        {{{4, 8}}, 0, 0, NULL},
        {{{1, 3}}, 0, 0, NULL},
        /* Smaller by right, perhaps: half the size, or many of them. */
        {{{9, 8}, {1, 4}}, 0, 1, "4 of 8"},
        {{{9, 4}, {1, 1}}, 0, 1, "1 of 4"},
        {{{9, 2}, {1, 1}}, 0, 1, "1 of 2"},
        {{{9, 8}, {3, 6}}, 0, 3, "6 of 8"},
        {{{1, 8}, {3, 6}}, 0, 0, NULL}, /* more than the others */
        /* The job was given fewer GPUs of that node. */
        {{{3, 8, .given = 8}, {1, 6, .given = 6}}, 0, 0, NULL},
        {{{9, 1, .given = 1}}, 0, 0, NULL},
        {{{3, 8}, {1, 7, .given = 7}}, 0, 0, NULL},
        /* A launcher's setting that hides GPUs does so on most nodes. */
        {{{9, 1, .given = 8}}, 0, 9, "1 of 8 GPUs that the job was given"},
        {{{2, 8, .given = 8}, {1, 7, .given = 8}}, 0, 1, "7 of 8"},
        /* Another model, two models in one node, MIG. */
        {{{9, 8}, {1, 7, .model = "a100"}}, 0, 0, NULL},
        {{{9, 8}, {1, 7, .second = 3}}, 0, 0, NULL},
        {{{3, 8, .second = 4}, {1, 7, .second = 4}, {9, 8}},
         1,
         1,
         "7 of 8 GPUs: 3 of 4 nodes with h200 and l40"},
        {{{9, 7, .mig = true}, {1, 5, .mig = true}}, 0, 0, NULL},
        /* All GPUs of one of two models are gone; many such nodes are built this way. */
        {{{3, 8, .second = 2}, {1, 6}},
         0,
         1,
         "6 of 8 GPUs: none is l40, which 3 of 4 nodes with h200 have"},
        {{{3, 8, .second = 2}, {1, 2, .model = "l40"}}, 0, 1, "2 of 8 GPUs: none is h200"},
        {{{2, 8, .second = 2}, {1, 6}}, 0, 0, NULL},
        {{{9, 8, .second = 2}, {3, 6}}, 0, 0, NULL},
        {{{9, 8, .second = 2}, {1, 6, .model = "a100"}}, 0, 0, NULL},
        {{{9, 8, .second = 2}, {1, 8}}, 0, 0, NULL},
        {{{9, 8, .second = 2}, {1, 6, .given = 6}}, 0, 0, NULL},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct inventory inventory;
        make(&inventory, rows[i].kinds);
        look(&inventory, NULL, NULL);
        if (acted_on(&inventory) != rows[i].accused || inventory.node_finding_count != rows[i].told)
            fail_msg("row %zu: %zu accused, %zu told", i, acted_on(&inventory),
                     inventory.node_finding_count);
        for (size_t k = 0; k < inventory.node_finding_count; k++) {
            const struct inventory_node *node = &inventory.node_findings[k];
            assert_true(node->action < ACTION_ALERT || node->verdict == VERDICT_FAILING);
            if (rows[i].finding && !strstr(node->finding, rows[i].finding))
                fail_msg("row %zu: %s", i, node->finding);
        }
        inventory_fini(&inventory);
    }
}

/* Ranks that list no GPU. */
static void ranks(void **state)
{
    (void)state;
    static const struct {
        const char *node;
        enum gpu_status status;
        uint32_t given;
        size_t accused, told;
    } rows[] = {
        {"n08", GPU_FAILED, 4, 1, 1},    /* the driver is dead, and the job was given GPUs there */
        {"n08", GPU_TIMED_OUT, 4, 1, 1}, /* it hangs */
        {"n08", GPU_FAILED, 0, 0, 0},    /* nobody promised any */
        {"n07", GPU_FAILED, 4, 1, 1},    /* one task of four: 3 of 4 GPUs are there */
        {"n07", GPU_FAILED, 3, 0, 0},    /* three were given, and three are there */
        {"n07", GPU_FAILED, 0, 0, 0},    /* its worker could not be started */
        {"n07", GPU_LOST, 0, 0, 1},      /* the fourth may be with the lost rank */
        {"n07", GPU_LOST, 4, 0, 1},      {NULL, GPU_LOST, 0, 0, 1},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const struct nodes kinds[KINDS] = {{7, 4, .given = 4}, {1, 3}};
        struct inventory inventory;
        make(&inventory, kinds);
        add_rank(&inventory, rows[i].node, rows[i].status, rows[i].given);
        look(&inventory, NULL, NULL);
        size_t others = rows[i].node && strcmp(rows[i].node, "n08") == 0; /* n07 has 3 of 4 */
        if (acted_on(&inventory) != rows[i].accused + others ||
            inventory.node_finding_count != rows[i].told + others)
            fail_msg("row %zu: %zu accused, %zu told", i, acted_on(&inventory),
                     inventory.node_finding_count);
        inventory_fini(&inventory);
    }
}

/* If nearly every rank lists no GPU, the launcher hides them. */
static void hidden_everywhere(void **state)
{
    (void)state;
    const struct nodes kinds[KINDS] = {{4, 8, .given = 8}};
    struct inventory inventory;
    make(&inventory, kinds);
    add_rank(&inventory, "n10", GPU_FAILED, 8);
    add_rank(&inventory, "n11", GPU_FAILED, 8);
    add_rank(&inventory, "n12", GPU_FAILED, 8);
    look(&inventory, NULL, NULL);
    assert_int_equal(inventory.node_finding_count, 3);
    assert_int_equal(acted_on(&inventory), 0);
    inventory_fini(&inventory);
}

static void setting(void **state)
{
    (void)state;
    struct judge_node_size sizes[] = {{(char *)"n00", 7}, {(char *)"n*", 8}};
    struct judge_config config = {.node_sizes = sizes, .node_size_count = 2};
    policy_read(NULL, &config.policy, NULL);
    static const struct {
        struct nodes kinds[KINDS];
        size_t accused;
    } rows[] = {
        {{{2, 7}}, 1}, /* n00 has seven by right */
        {{{1, 7}, {1, 4}}, 1},
        {{{1, 8}, {1, 8}}, 0},
        {{{1, 7}, {1, 4, .given = 4}}, 0}, /* the job asked for four */
        {{{1, 7}, {1, 5, .mig = true}}, 0},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct inventory inventory;
        make(&inventory, rows[i].kinds);
        look(&inventory, &config, NULL);
        if (acted_on(&inventory) != rows[i].accused)
            fail_msg("row %zu: %zu accused", i, acted_on(&inventory));
        if (rows[i].accused)
            assert_string_equal(only(&inventory)->node, "n01");
        inventory_fini(&inventory);
    }
}

static void baseline(void **state)
{
    (void)state;
    const struct nodes before[KINDS] = {{2, 8}, {1, 4}}, same[KINDS] = {{2, 8}, {1, 4}},
                       fewer[KINDS] = {{1, 8}, {1, 7}, {1, 4}},
                       given[KINDS] = {{1, 8, .given = 8}, {1, 7, .given = 7}, {1, 4}};
    struct inventory was, is;
    make(&was, before);
    make(&is, same);
    look(&is, NULL, &was);
    assert_int_equal(is.node_finding_count, 0);
    inventory_fini(&is);
    make(&is, given);
    look(&is, NULL, &was);
    assert_int_equal(is.node_finding_count, 0);
    inventory_fini(&is);
    make(&is, fewer);
    look(&is, NULL, &was);
    assert_string_equal(only(&is)->node, "n01");
    assert_string_equal(only(&is)->finding, "7 of 8 GPUs: so many were in the baseline");
    assert_true(only(&is)->action >= ACTION_ALERT);
    inventory_fini(&is);
    /* A GPU that was moved to another node is not missing. */
    make(&is, fewer);
    free(is.gpus[0].uuid);
    is.gpus[0].uuid = str_copy("GPU-1-7");
    look(&is, NULL, &was);
    assert_int_equal(is.node_finding_count, 0);
    inventory_fini(&is);
    inventory_fini(&was);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(likes),   cmocka_unit_test(ranks),    cmocka_unit_test(hidden_everywhere),
        cmocka_unit_test(setting), cmocka_unit_test(baseline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
