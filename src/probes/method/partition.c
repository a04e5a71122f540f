/* Divides SMs into groups, by the odds of every pair to belong together. */
#include "probes/method/partition.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/mem.h"

enum {
    SETTLE_MAX = 16, /* rounds until no SM changes its group */
    ALONE = UINT32_MAX,
};

int partition_init(struct partition *p, size_t sms, struct err *err)
{
    *p = (struct partition){.sms = sms,
                            .odds = mem_array(sms * sms, sizeof *p->odds),
                            .group = mem_array(sms, sizeof *p->group)};
    return p->odds && p->group ? 0 : err_no_memory(err);
}

void partition_fini(struct partition *p)
{
    free(p->odds);
    free(p->group);
    *p = (struct partition){0};
}

void partition_add(struct partition *p, size_t a, size_t b, double odds)
{
    p->odds[a * p->sms + b] += odds;
    p->odds[b * p->sms + a] += odds;
}

uint32_t partition_size(const struct partition *p, uint32_t group)
{
    uint32_t size = 0;
    for (size_t i = 0; i < p->sms; i++)
        size += p->group[i] == group;
    return size;
}

/* The other SMs' group that an SM most probably belongs to, and by how much it beats the second
 * best. ALONE has odds of 0. */
static uint32_t best_group(const struct partition *p, size_t sm, double *sums, double *out_margin)
{
    uint32_t best = ALONE;
    double first = 0, second = -INFINITY;
    for (uint32_t g = 0; g < p->group_count; g++)
        sums[g] = 0;
    for (size_t i = 0; i < p->sms; i++)
        if (i != sm && p->group[i] != ALONE)
            sums[p->group[i]] += p->odds[sm * p->sms + i];
    for (uint32_t g = 0; g < p->group_count; g++) {
        if (sums[g] > first) {
            second = first;
            first = sums[g];
            best = g;
        } else if (sums[g] != 0) { /* neither the SM's own group nor one that was abandoned */
            second = fmax(second, sums[g]);
        }
    }
    *out_margin = best == ALONE ? -second : first - fmax(second, 0);
    return best;
}

/* One after the other, each SM joins the group that fits best. */
static void found_groups(struct partition *p, double *sums)
{
    double margin;
    p->group_count = 0;
    for (size_t i = 0; i < p->sms; i++)
        p->group[i] = ALONE;
    for (size_t i = 0; i < p->sms; i++) {
        uint32_t best = best_group(p, i, sums, &margin);
        p->group[i] = best == ALONE ? p->group_count++ : best;
    }
}

/* Merges groups that belong together by the odds of all their pairs. */
static bool merge_groups(struct partition *p, double *sums)
{
    for (uint32_t g = 0; g < p->group_count; g++) {
        for (uint32_t h = 0; h < p->group_count; h++)
            sums[h] = 0;
        for (size_t i = 0; i < p->sms; i++)
            for (size_t k = 0; p->group[i] == g && k < p->sms; k++)
                sums[p->group[k]] += i == k ? 0 : p->odds[i * p->sms + k];
        for (uint32_t h = g + 1; h < p->group_count; h++) {
            if (sums[h] <= 0)
                continue;
            for (size_t i = 0; i < p->sms; i++)
                p->group[i] = p->group[i] == h ? g : p->group[i];
            return true;
        }
    }
    return false;
}

static void number_groups(struct partition *p, uint32_t *numbers)
{
    uint32_t count = 0;
    for (uint32_t g = 0; g < p->group_count; g++)
        numbers[g] = ALONE;
    for (size_t i = 0; i < p->sms; i++) {
        uint32_t *number = &numbers[p->group[i]];
        if (*number == ALONE)
            *number = count++;
        p->group[i] = *number;
    }
    p->group_count = count;
}

/* Moves each SM to the group that fits best, or out of a group that does not fit. */
static bool move_sms(struct partition *p, double *sums)
{
    bool moved = false;
    double margin;
    for (size_t i = 0; i < p->sms; i++) {
        uint32_t best = best_group(p, i, sums, &margin);
        if (best == p->group[i] || (best == ALONE && partition_size(p, p->group[i]) == 1))
            continue;
        p->group[i] = best == ALONE ? p->group_count++ : best;
        moved = true;
    }
    return moved;
}

static void judge_groups(struct partition *p, double *sums)
{
    double against = 0, pairs = 0, margin;
    p->confidence = 1;
    for (size_t i = 0; i < p->sms; i++) {
        best_group(p, i, sums, &margin);
        p->confidence -= exp(-fmax(margin, 0));
        for (size_t k = i + 1; k < p->sms; k++, pairs++)
            against += (p->odds[i * p->sms + k] > 0) != (p->group[i] == p->group[k]);
    }
    p->confidence = fmax(p->confidence, 0);
    p->contradicted = pairs > 0 ? against / pairs : 0;
}

int partition_divide(struct partition *p, struct err *err)
{
    /* In one round every SM may leave its group and found a new one. */
    double *sums = mem_array(2 * p->sms, sizeof *sums);
    uint32_t *numbers = mem_array(2 * p->sms, sizeof *numbers);
    if (!sums || !numbers) {
        free(sums);
        free(numbers);
        return err_no_memory(err);
    }
    found_groups(p, sums);
    int moved = 1;
    for (uint32_t round = 0; moved && round < SETTLE_MAX; round++) {
        moved = merge_groups(p, sums);
        number_groups(p, numbers);
        moved |= move_sms(p, sums);
    }
    number_groups(p, numbers);
    judge_groups(p, sums);
    free(sums);
    free(numbers);
    return 0;
}
