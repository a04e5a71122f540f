/* Which rank measures which GPU. */
#include "survey/root/assign.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* One rank that sees one GPU. */
struct sighting {
    const char *uuid;
    uint32_t rank;
    uint32_t position;
};

/* One GPU: consecutive sightings, the lowest rank first. */
struct sighting_group {
    const struct sighting *first;
    size_t count;
};

static int sighting_order(const void *a, const void *b)
{
    const struct sighting *left = a, *right = b;
    int order = strcmp(left->uuid, right->uuid);
    if (order)
        return order;
    if (left->rank != right->rank)
        return left->rank < right->rank ? -1 : 1;
    return (left->position > right->position) - (left->position < right->position);
}

static int sighting_group_order(const void *a, const void *b)
{
    const struct sighting_group *left = a, *right = b;
    if (left->count != right->count)
        return left->count < right->count ? -1 : 1;
    if (left->first->rank != right->first->rank)
        return left->first->rank < right->first->rank ? -1 : 1;
    return (left->first->position > right->first->position) -
           (left->first->position < right->first->position);
}

static int position_order(const void *a, const void *b)
{
    const uint32_t *left = a, *right = b;
    return (*left > *right) - (*left < *right);
}

void assign_gpus(const struct assign_rank *ranks, size_t rank_count,
                 struct assign_share *out_shares)
{
    size_t total = 0, count = 0, group_count = 0;
    for (size_t rank = 0; rank < rank_count; rank++)
        total += ranks[rank].count;
    struct sighting *sightings = mem_array(total, sizeof *sightings);
    struct sighting_group *groups = mem_array(total, sizeof *groups);
    size_t *capacities = mem_array(rank_count, sizeof *capacities);
    memset(out_shares, 0, rank_count * sizeof *out_shares);

    for (size_t rank = 0; rank < rank_count; rank++)
        for (size_t i = 0; i < ranks[rank].count; i++)
            sightings[count++] = (struct sighting){
                .uuid = ranks[rank].uuids[i], .rank = (uint32_t)rank, .position = (uint32_t)i};
    qsort(sightings, count, sizeof *sightings, sighting_order);
    for (size_t i = 0; i < count; i++) {
        if (group_count && strcmp(groups[group_count - 1].first->uuid, sightings[i].uuid) == 0)
            groups[group_count - 1].count++;
        else
            groups[group_count++] = (struct sighting_group){.first = &sightings[i], .count = 1};
    }
    qsort(groups, group_count, sizeof *groups, sighting_group_order);

    for (size_t i = 0; i < group_count; i++) {
        const struct sighting *best = groups[i].first;
        for (size_t k = 1; k < groups[i].count; k++)
            if (out_shares[groups[i].first[k].rank].count < out_shares[best->rank].count)
                best = &groups[i].first[k];
        struct assign_share *share = &out_shares[best->rank];
        share->positions = mem_grow(share->positions, &capacities[best->rank], share->count + 1,
                                    sizeof *share->positions);
        share->positions[share->count++] = best->position;
    }
    for (size_t rank = 0; rank < rank_count; rank++)
        if (out_shares[rank].count)
            qsort(out_shares[rank].positions, out_shares[rank].count,
                  sizeof *out_shares[rank].positions, position_order);
    free(capacities);
    free(groups);
    free(sightings);
}
