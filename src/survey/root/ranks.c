/* The ranks as rank 0 sees them. */
#include "survey/root/ranks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/sort.h"
#include "base/str.h"
#include "device/turn.h"
#include "survey/comm/limits.h"

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

void ranks_assign_gpus(const struct assign_rank *ranks, size_t rank_count,
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
    sort_stable(sightings, count, sizeof *sightings, sighting_order);
    for (size_t i = 0; i < count; i++) {
        if (group_count && strcmp(groups[group_count - 1].first->uuid, sightings[i].uuid) == 0)
            groups[group_count - 1].count++;
        else
            groups[group_count++] = (struct sighting_group){.first = &sightings[i], .count = 1};
    }
    sort_stable(groups, group_count, sizeof *groups, sighting_group_order);

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
            sort_stable(out_shares[rank].positions, out_shares[rank].count,
                        sizeof *out_shares[rank].positions, position_order);
    free(capacities);
    free(groups);
    free(sightings);
}

/* Checking every rank's deadline in every iteration would cost more than everything else. */
static const double check_every_s = 0.5;

void ranks_init(struct ranks *ranks, size_t count, double time_limit_s)
{
    *ranks = (struct ranks){.items = mem_array(count, sizeof *ranks->items),
                            .count = count,
                            .time_limit_s = time_limit_s};
    for (size_t rank = 0; rank < count; rank++)
        ranks->items[rank].state = RANK_UNHEARD;
    ranks->in_state[RANK_UNHEARD] = count;
}

void ranks_fini(struct ranks *ranks)
{
    for (size_t rank = 0; rank < ranks->count; rank++) {
        announce_fini(&ranks->items[rank].announce);
        free(ranks->items[rank].share.positions);
        free(ranks->items[rank].received);
        free(ranks->items[rank].repeating);
    }
    free(ranks->items);
    for (size_t i = 0; i < ranks->unmeasured.count; i++)
        gpu_result_fini(&ranks->unmeasured.items[i]);
    free(ranks->unmeasured.items);
    memset(ranks, 0, sizeof *ranks);
}

/* Every change of a rank's state is made here, so that the counts are right. A refused event is
 * ignored. Returns the state that the rank was in. */
static enum rank_state ranks_apply(struct ranks *ranks, size_t rank, enum rank_event event)
{
    struct known_rank *member = &ranks->items[rank];
    enum rank_state was = member->state;
    if (rank_state_apply(&member->state, event)) {
        ranks->in_state[was]--;
        ranks->in_state[member->state]++;
    }
    return was;
}

static size_t ranks_in_states(const struct ranks *ranks, bool (*has)(enum rank_state state))
{
    size_t count = 0;
    for (int state = 0; state < RANK_STATES; state++)
        count += has((enum rank_state)state) ? ranks->in_state[state] : 0;
    return count;
}

bool ranks_assigned(const struct ranks *ranks)
{
    return ranks_in_states(ranks, rank_state_is_assigned) == ranks->count;
}

bool ranks_complete(const struct ranks *ranks)
{
    return ranks_assigned(ranks) && !ranks->in_state[RANK_MEASURING] &&
           !ranks->in_state[RANK_REPEATING];
}

size_t ranks_lost(const struct ranks *ranks)
{
    return ranks_in_states(ranks, rank_state_is_lost);
}

size_t ranks_idle(const struct ranks *ranks)
{
    return ranks->in_state[RANK_IDLE] + ranks->in_state[RANK_IDLE_LOST] - ranks->unlisted;
}

static void unmeasured_add(struct ranks_unmeasured *list, const struct gpu_result *gpu,
                           int32_t rank, enum gpu_status status, const char *reason)
{
    struct gpu_result view = *gpu, copy = {0};
    view.rank = rank;
    view.status = status;
    view.reason = (char *)reason; /* gpu_result_copy copies it */
    gpu_result_copy(&copy, &view);
    list->items = mem_grow(list->items, &list->capacity, list->count + 1, sizeof *list->items);
    list->items[list->count++] = copy;
}

static void unmeasured_drop(struct ranks_unmeasured *list, size_t index)
{
    gpu_result_fini(&list->items[index]);
    list->count--;
    memmove(&list->items[index], &list->items[index + 1],
            (list->count - index) * sizeof *list->items);
}

/* Adds a result that does not come from a worker. gpu NULL: the rank's GPUs are not known. */
static void ranks_add_unmeasured(struct ranks *ranks, size_t rank, const struct gpu_result *gpu,
                                 enum gpu_status status, const char *reason)
{
    const struct announce *announce = &ranks->items[rank].announce;
    const struct gpu_result unknown = {
        .index = -1,
        .node = announce->host,
        .run.gpus_allocated = announce->listing == LISTING_FAILED ? announce->gpus_allocated : 0};
    unmeasured_add(&ranks->unmeasured, gpu ? gpu : &unknown, ranks->first + (int32_t)rank, status,
                   reason);
}

int ranks_announce(struct ranks *ranks, size_t rank, const struct frame *frame, struct err *err)
{
    struct known_rank *member = &ranks->items[rank];
    if (!rank_state_takes(member->state, RANK_EVENT_ANNOUNCED))
        return err_set(err, -EBADMSG, "announced %s",
                       rank_state_is_announced(member->state) ? "twice" : "too late");
    int rc = announce_decode(frame, &member->announce, err);
    if (rc)
        return rc;
    ranks_apply(ranks, rank, RANK_EVENT_ANNOUNCED);
    return 0;
}

bool ranks_all_announced(const struct ranks *ranks)
{
    return !ranks->in_state[RANK_UNHEARD] && !ranks->in_state[RANK_STARTING];
}

/* Keeps only the GPUs that no other process of this job has claimed. */
static void ranks_claim_gpus(struct known_rank *member, const char *job)
{
    size_t kept = 0;
    for (size_t i = 0; i < member->share.count; i++) {
        uint32_t position = member->share.positions[i];
        if (turn_claim(job, member->announce.gpus[position].uuid))
            member->share.positions[kept++] = position;
    }
    member->share.count = kept;
}

void ranks_assign(struct ranks *ranks, const char *standalone_job)
{
    size_t count = ranks->count, total = 0, used = 0;
    for (size_t rank = 0; rank < count; rank++)
        total += ranks->items[rank].announce.gpu_count;
    struct assign_rank *viewers = mem_array(count, sizeof *viewers);
    struct assign_share *shares = mem_array(count, sizeof *shares);
    const char **uuids = mem_array(total, sizeof *uuids);
    for (size_t rank = 0; rank < count; rank++) {
        const struct announce *announce = &ranks->items[rank].announce;
        viewers[rank] = (struct assign_rank){uuids + used, announce->gpu_count};
        for (size_t i = 0; i < announce->gpu_count; i++)
            uuids[used++] = announce->gpus[i].uuid;
    }
    ranks_assign_gpus(viewers, count, shares);
    for (size_t rank = 0; rank < count; rank++) {
        ranks->items[rank].share = shares[rank];
        if (standalone_job)
            ranks_claim_gpus(&ranks->items[rank], standalone_job);
        ranks->gpu_total += ranks->items[rank].share.count;
    }
    free(uuids);
    free(shares);
    free(viewers);
}

/* A rank enforces the time limit of its workers itself, and is lost when it falls silent. This
 * deadline is for a rank that lives but does not finish. Its workers run in rounds; in each of them
 * two workers of a GPU may hang, one after the other, and each takes the time limit and a few
 * seconds to end. */
static double rank_deadline_s(const struct ranks *ranks, const struct known_rank *member,
                              double now_s)
{
    const double ending_s = 5;
    size_t at_once = member->announce.at_once ? member->announce.at_once : SIZE_MAX;
    size_t rounds = member->share.count / at_once + (member->share.count % at_once != 0);
    if (ranks->stopped)
        return now_s + LIMIT_INTERRUPTED_S;
    return now_s + (double)rounds * LIMIT_TRIES * (ranks->time_limit_s + ending_s) +
           ranks->start_timeout_s;
}

void ranks_hear(struct ranks *ranks, size_t rank)
{
    struct ranks_unmeasured *list = &ranks->unmeasured;
    ranks->items[rank].heard_s = ranks->now_s;
    enum rank_state was = ranks_apply(ranks, rank, RANK_EVENT_HEARD);
    if (was != RANK_LOST && was != RANK_IDLE_LOST)
        return;
    for (size_t i = list->count; i > 0; i--)
        if (list->items[i - 1].status == GPU_LOST &&
            list->items[i - 1].rank == ranks->first + (int32_t)rank)
            unmeasured_drop(list, i - 1);
}

static void ranks_open_announced(struct ranks *ranks, size_t rank, double now_s)
{
    struct known_rank *member = &ranks->items[rank];
    const struct announce *announce = &member->announce;
    bool failed = announce->listing == LISTING_FAILED;
    if (failed)
        ranks_add_unmeasured(ranks, rank, NULL, announce->failed_as, announce->err.text);
    for (size_t i = 0; i < announce->dead_count; i++)
        unmeasured_add(&ranks->unmeasured, &announce->dead[i], -1, GPU_FAILED,
                       announce->dead[i].reason);
    member->received = mem_array(announce->gpu_count, sizeof *member->received);
    member->repeating = mem_array(announce->gpu_count, sizeof *member->repeating);
    member->missing = member->share.count;
    member->deadline_s = rank_deadline_s(ranks, member, now_s);
    ranks->unlisted += failed && member->state == RANK_IDLE;
}

void ranks_open(struct ranks *ranks, double now_s)
{
    for (size_t rank = 0; rank < ranks->count; rank++) {
        bool given = ranks->items[rank].share.count > 0;
        enum rank_state was =
            ranks_apply(ranks, rank, given ? RANK_EVENT_GIVEN_GPUS : RANK_EVENT_GIVEN_NONE);
        if (was == RANK_ANNOUNCED) {
            ranks_open_announced(ranks, rank, now_s);
            continue;
        }
        char reason[96];
        snprintf(reason, sizeof reason, "rank %d %s", ranks->first + (int)rank,
                 was == RANK_STARTING ? "did not announce itself in time"
                 : was == RANK_SILENT ? "fell silent before it had listed its GPUs"
                                      : "was never heard");
        ranks_add_unmeasured(ranks, rank, NULL, GPU_LOST, reason);
    }
}

bool ranks_expects(const struct ranks *ranks, size_t rank, uint32_t position, const char *uuid)
{
    const struct known_rank *member = &ranks->items[rank];
    if (!rank_state_is_assigned(member->state) || position >= member->announce.gpu_count ||
        !str_equal(uuid, member->announce.gpus[position].uuid))
        return false;
    for (size_t i = 0; i < member->share.count; i++)
        if (member->share.positions[i] == position)
            return true;
    return false;
}

void ranks_done(struct ranks *ranks, size_t rank, uint32_t position)
{
    struct known_rank *member = &ranks->items[rank];
    member->received[position] = true;
    ranks->gpu_done++;
    if (--member->missing == 0)
        ranks_apply(ranks, rank, RANK_EVENT_GOT_ALL);
}

bool ranks_ask_again(struct ranks *ranks, size_t rank, uint32_t position)
{
    struct known_rank *member = &ranks->items[rank];
    if (!rank_state_takes(member->state, RANK_EVENT_ASKED_AGAIN))
        return false;
    if (ranks_apply(ranks, rank, RANK_EVENT_ASKED_AGAIN) == RANK_FINISHED) {
        member->missing = 0;
        member->heard_s = ranks->now_s; /* a finished rank was not watched */
        member->deadline_s = rank_deadline_s(ranks, member, ranks->now_s);
    }
    member->repeating[position] = true;
    member->missing++;
    return true;
}

bool ranks_repeated(struct ranks *ranks, size_t rank, uint32_t position)
{
    struct known_rank *member = &ranks->items[rank];
    if (member->state != RANK_REPEATING || !member->repeating[position])
        return false;
    member->repeating[position] = false;
    if (--member->missing == 0)
        ranks_apply(ranks, rank, RANK_EVENT_GOT_ALL);
    return true;
}

void ranks_recovered(struct ranks *ranks, size_t index)
{
    const struct gpu_result *lost = &ranks->unmeasured.items[index];
    size_t rank = (size_t)(lost->rank - ranks->first);
    struct known_rank *member = &ranks->items[rank];
    for (uint32_t i = 0; i < member->announce.gpu_count; i++)
        if (ranks_expects(ranks, rank, i, lost->uuid) && !member->received[i])
            ranks_done(ranks, rank, i);
    unmeasured_drop(&ranks->unmeasured, index);
}

/* The first results are here, so nothing is lost but what would have confirmed them. */
static void ranks_warn_unrepeated(const struct ranks *ranks, size_t rank, const char *how)
{
    const struct known_rank *member = &ranks->items[rank];
    for (size_t i = 0; i < member->share.count; i++) {
        uint32_t position = member->share.positions[i];
        if (member->repeating[position])
            log_warning("rank %d on %.64s %s: %s could not be measured again; its first result is "
                        "used",
                        ranks->first + (int)rank, member->announce.host, how,
                        member->announce.gpus[position].uuid);
    }
}

static void ranks_lose(struct ranks *ranks, size_t rank, enum rank_event event, const char *how)
{
    struct known_rank *member = &ranks->items[rank];
    char reason[128];
    enum rank_state was = ranks_apply(ranks, rank, event);
    if (!rank_state_is_assigned(member->state))
        return; /* ranks_open adds the reason */
    if (was == RANK_REPEATING) {
        ranks_warn_unrepeated(ranks, rank, how);
        return;
    }
    snprintf(reason, sizeof reason, "rank %d on %.64s %s", ranks->first + (int)rank,
             member->announce.host, how);
    if (!member->share.count && member->announce.listing != LISTING_FAILED)
        ranks_add_unmeasured(ranks, rank, NULL, GPU_LOST, reason);
    for (size_t i = 0; i < member->share.count; i++) {
        uint32_t position = member->share.positions[i];
        if (!member->received[position])
            ranks_add_unmeasured(ranks, rank, &member->announce.gpus[position], GPU_LOST, reason);
    }
}

/* This process is rank 0, so rank 0 is never silent. */
static bool rank_unheard_for(const struct ranks *ranks, size_t rank, double seconds)
{
    return rank && ranks->now_s - ranks->items[rank].heard_s > seconds;
}

size_t ranks_quiet(const struct ranks *ranks)
{
    const double beats = 2.5;
    size_t count = 0;
    for (size_t rank = 0; rank < ranks->count; rank++)
        count += !rank_state_is_lost(ranks->items[rank].state) &&
                 rank_unheard_for(ranks, rank, beats * limit_beat_s((int)ranks->count));
    return count;
}

void ranks_check(struct ranks *ranks, double now_s)
{
    ranks->now_s = now_s;
    if (ranks_complete(ranks) || now_s < ranks->next_check_s)
        return;
    ranks->next_check_s = now_s + check_every_s;
    for (size_t rank = 0; rank < ranks->count; rank++) {
        const struct known_rank *member = &ranks->items[rank];
        double silence_s = member->state == RANK_UNHEARD ? ranks->start_timeout_s
                                                         : limit_silence_s((int)ranks->count);
        if (rank_state_takes(member->state, RANK_EVENT_FELL_SILENT) &&
            rank_unheard_for(ranks, rank, silence_s))
            ranks_lose(ranks, rank, RANK_EVENT_FELL_SILENT, "fell silent");
        else if (rank_state_takes(member->state, RANK_EVENT_OVERDUE) && now_s > member->deadline_s)
            ranks_lose(ranks, rank, RANK_EVENT_OVERDUE,
                       ranks->stopped ? "did not answer when the survey was interrupted"
                                      : "is over its time");
    }
}

void ranks_stop(struct ranks *ranks, double now_s)
{
    double until_s = now_s + LIMIT_INTERRUPTED_S;
    ranks->stopped = true;
    for (size_t rank = 0; rank < ranks->count; rank++)
        if (ranks->items[rank].deadline_s > until_s)
            ranks->items[rank].deadline_s = until_s;
}
