/* Assignment: every GPU once, balanced, in rank order. */
#include "../check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "survey/root/ranks.h"

enum { RANKS_MAX = 8, LINE = 128 };

/* What each rank sees, and what it shall measure; ranks separated by '|', a GPU is a letter. */
struct assign_case {
    const char *name;
    const char *seen;
    const char *given;
};

static const struct assign_case cases[] = {
    {"each its own", "a|b|c|d", "a|b|c|d"},
    {"all see all", "abcd|abcd|abcd|abcd", "a|b|c|d"},
    {"fewer ranks than GPUs", "abcdef|abcdef", "ace|bdf"},
    {"one rank", "abc", "abc"},
    {"more ranks than GPUs", "ab|ab|ab|ab", "a|b||"},
    {"two ranks on one GPU", "a|a", "a|"},
    {"a rank without a GPU", "ab||ab", "a||b"},
    {"the narrow rank first", "ab|a", "b|a"},
    {"two nodes", "ab|ab|cd|cd", "a|b|c|d"},
    {"seen twice by one rank", "aa|b", "a|b"},
    {"uneven views", "abcd|ab|cd", "ad|b|c"},
    {"nobody sees anything", "||", "||"},
};

/* "ab|c" into uuid lists; a one-letter uuid is a string of its own. */
static size_t split(const char *text, char letters[][RANKS_MAX][2], const char *uuids[][RANKS_MAX],
                    struct assign_rank *out)
{
    size_t rank = 0, count = 0;
    for (;; text++) {
        if (*text && *text != '|') {
            letters[rank][count][0] = *text;
            letters[rank][count][1] = '\0';
            uuids[rank][count] = letters[rank][count];
            count++;
            continue;
        }
        out[rank] = (struct assign_rank){uuids[rank], count};
        rank++;
        count = 0;
        if (!*text)
            return rank;
    }
}

static void follows_table(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char letters[RANKS_MAX][RANKS_MAX][2];
        const char *uuids[RANKS_MAX][RANKS_MAX];
        struct assign_rank ranks[RANKS_MAX];
        struct assign_share shares[RANKS_MAX] = {0};
        char got[LINE] = "";
        size_t count = split(cases[i].seen, letters, uuids, ranks);
        ranks_assign_gpus(ranks, count, shares);
        for (size_t rank = 0; rank < count; rank++) {
            if (rank)
                strcat(got, "|");
            for (size_t k = 0; k < shares[rank].count; k++)
                strcat(got, ranks[rank].uuids[shares[rank].positions[k]]);
            free(shares[rank].positions);
        }
        if (strcmp(got, cases[i].given) != 0)
            fail_msg("%s: %s gave %s, expected %s", cases[i].name, cases[i].seen, got,
                     cases[i].given);
    }
}

/* 10,000 nodes of 8 ranks that all see their node's 8 GPUs. */
static void scales(void **state)
{
    (void)state;
    enum { NODES = 10000, PER_NODE = 8, RANKS = NODES * PER_NODE };
    char(*names)[16] = calloc(RANKS, sizeof *names);
    const char **uuids = calloc(RANKS, sizeof *uuids);
    struct assign_rank *ranks = calloc(RANKS, sizeof *ranks);
    struct assign_share *shares = calloc(RANKS, sizeof *shares);
    for (size_t i = 0; i < RANKS; i++) {
        snprintf(names[i], sizeof names[i], "GPU-%08zx", i * 2654435761u % 4294967291u);
        uuids[i] = names[i];
        ranks[i] = (struct assign_rank){&uuids[i / PER_NODE * PER_NODE], PER_NODE};
    }
    ranks_assign_gpus(ranks, RANKS, shares);
    for (size_t i = 0; i < RANKS; i++) {
        assert_int_equal(shares[i].count, 1);
        assert_int_equal(shares[i].positions[0], i % PER_NODE);
        free(shares[i].positions);
    }
    free(shares);
    free(ranks);
    free(uuids);
    free(names);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(follows_table), cmocka_unit_test(scales)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
