/* What the launcher's variables say about the GPUs of a node. */
#include "../check.h"

#include "survey/rank/rank.h"

static void environments(void **state)
{
    (void)state;
    static const struct {
        struct allocated_environment environment; /* gpus, visible, tasks, node, local size */
        uint32_t listed, given;
    } rows[] = {
        {{0}, 8, 0},
        {{.visible = "0,1"}, 2, 2}, /* no promise of a launcher */
        {{.visible = "0,1,2,3,4,5,6,7"}, 4, 4},
        {{.visible = ""}, 0, 0},
        {{"8", NULL, NULL, NULL, NULL}, 7, 8},
        {{"8", "0,1,2,3,4,5,6,7", "1(x4)", "3", NULL}, 7, 8}, /* one task of the node */
        {{"8", "0,1,2,3,4,5,6", "1(x4)", "3", NULL}, 7, 7},
        {{"8", "0", "8(x4)", "0", NULL}, 1, 8}, /* a GPU per task */
        {{"8", "0", "8(x3),4,2(x2)", "3", NULL}, 1, 4},
        {{"8", "0", "8(x3),4,2(x2)", "5", NULL}, 1, 2},
        {{"8", "0", "8(x3)", "3", NULL}, 1, 1}, /* the list does not say */
        {{"8", "0", NULL, NULL, "8"}, 1, 8},    /* mpirun in a job */
        {{"8", "0", NULL, NULL, NULL}, 1, 1},
        {{"2", "0,1,2,3", "1", "0", NULL}, 2, 2},
        {{"8", "GPU-ab,GPU-cd", "1", "0", NULL}, 2, 2},
        {{"8", "0,-1,2", "1", "0", NULL}, 1, 1},
        {{"8", "", "8", "0", NULL}, 0, 0}, /* the user hides them */
        {{"8", "NoDevFiles", "8", "0", NULL}, 0, 0},
        {{"0", "NoDevFiles", "8", "0", NULL}, 0, 0},
        {{"x", "0", "8", "0", NULL}, 1, 1},
        {{"8", "0", "(x)", "0", NULL}, 1, 1},
        {{"8", "0", "8(x", "0", NULL}, 1, 1},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        uint32_t given = rank_allocated_gpus(&rows[i].environment, rows[i].listed);
        if (given != rows[i].given)
            fail_msg("row %zu: %u", i, given);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(environments)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
