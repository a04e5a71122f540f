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
struct group {
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

static int group_order(const void *a, const void *b)
{
    const struct group *left = a, *right = b;
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

static size_t collect(const struct assign_rank *ranks, size_t rank_count, struct sighting *out)
{
    size_t count = 0;
    for (size_t rank = 0; rank < rank_count; rank++)
        for (size_t i = 0; i < ranks[rank].count; i++)
            out[count++] = (struct sighting){
                .uuid = ranks[rank].uuids[i], .rank = (uint32_t)rank, .position = (uint32_t)i};
    qsort(out, count, sizeof *out, sighting_order);
    return count;
}

static size_t make_groups(const struct sighting *sightings, size_t count, struct group *out)
{
    size_t groups = 0;
    for (size_t i = 0; i < count; i++) {
        if (groups && strcmp(out[groups - 1].first->uuid, sightings[i].uuid) == 0)
            out[groups - 1].count++;
        else
            out[groups++] = (struct group){.first = &sightings[i], .count = 1};
    }
    qsort(out, groups, sizeof *out, group_order);
    return groups;
}

static int give(const struct group *group, struct assign_share *shares, size_t *capacities)
{
    const struct sighting *best = group->first;
    for (size_t i = 1; i < group->count; i++)
        if (shares[group->first[i].rank].count < shares[best->rank].count)
            best = &group->first[i];
    struct assign_share *share = &shares[best->rank];
    uint32_t *grown = mem_grow(share->positions, &capacities[best->rank], share->count + 1,
                               sizeof *share->positions);
    if (!grown)
        return -1;
    share->positions = grown;
    share->positions[share->count++] = best->position;
    return 0;
}

int assign_gpus(const struct assign_rank *ranks, size_t rank_count, struct assign_share *out_shares,
                struct err *err)
{
    size_t total = 0;
    for (size_t rank = 0; rank < rank_count; rank++)
        total += ranks[rank].count;
    struct sighting *sightings = mem_array(total, sizeof *sightings);
    struct group *groups = mem_array(total, sizeof *groups);
    size_t *capacities = mem_array(rank_count, sizeof *capacities);
    struct assign_share *shares = mem_array(rank_count, sizeof *shares);
    int rc = 0;
    if (!sightings || !groups || !capacities || !shares) {
        rc = err_no_memory(err);
        goto out;
    }
    size_t count = collect(ranks, rank_count, sightings);
    size_t group_count = make_groups(sightings, count, groups);
    for (size_t i = 0; i < group_count; i++)
        if (give(&groups[i], shares, capacities)) {
            rc = err_no_memory(err);
            goto out;
        }
    for (size_t rank = 0; rank < rank_count; rank++)
        if (shares[rank].count)
            qsort(shares[rank].positions, shares[rank].count, sizeof *shares[rank].positions,
                  position_order);
    memcpy(out_shares, shares, rank_count * sizeof *shares);
    free(shares);
    shares = NULL;
out:
    if (shares)
        assign_shares_fini(shares, rank_count);
    free(shares);
    free(capacities);
    free(groups);
    free(sightings);
    return rc;
}

void assign_shares_fini(struct assign_share *shares, size_t rank_count)
{
    for (size_t rank = 0; rank < rank_count; rank++)
        free(shares[rank].positions);
    memset(shares, 0, rank_count * sizeof *shares);
}
