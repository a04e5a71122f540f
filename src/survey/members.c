/* The ranks as rank 0 sees them. */
#include "survey/members.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "device/turn.h"
#include "survey/limits.h"

/* Looking at every rank's deadline in every round would cost more than all else. */
static const double check_every_s = 0.5;

int members_init(struct members *members, size_t count, double time_limit_s,
                 struct unmeasured *unmeasured, struct err *err)
{
    struct member *items = mem_array(count, sizeof *items);
    if (!items)
        return err_no_memory(err);
    *members = (struct members){
        .items = items, .count = count, .unmeasured = unmeasured, .time_limit_s = time_limit_s};
    return 0;
}

void members_fini(struct members *members)
{
    for (size_t rank = 0; rank < members->count; rank++) {
        announce_fini(&members->items[rank].announce);
        free(members->items[rank].share.positions);
        free(members->items[rank].heard);
    }
    free(members->items);
    memset(members, 0, sizeof *members);
}

/* A result that no worker gave. gpu NULL: nothing is known of the rank's GPUs. */
static int add_unmeasured(struct members *members, size_t rank, const struct gpu_result *gpu,
                          enum gpu_status status, const char *reason, struct err *err)
{
    const struct gpu_result unknown = {.index = -1, .node = members->items[rank].announce.host};
    return unmeasured_add(members->unmeasured, gpu ? gpu : &unknown, members->first + (int32_t)rank,
                          status, reason, err);
}

int members_announce(struct members *members, size_t rank, const struct frame *frame,
                     struct err *err)
{
    struct member *member = &members->items[rank];
    if (member->announced || members->assigned)
        return err_set(err, -EBADMSG, "announced %s", member->announced ? "twice" : "too late");
    int rc = announce_decode(frame, &member->announce, err);
    if (rc)
        return rc;
    member->announced = true;
    members->announced++;
    return 0;
}

bool members_all_announced(const struct members *members)
{
    size_t lost = members->assigned ? 0 : members->lost;
    return members->announced + lost >= members->count;
}

static void keep_claimed(struct member *member, const char *job)
{
    size_t kept = 0;
    for (size_t i = 0; i < member->share.count; i++) {
        uint32_t position = member->share.positions[i];
        if (turn_claim(job, member->announce.gpus[position].uuid))
            member->share.positions[kept++] = position;
    }
    member->share.count = kept;
}

int members_assign(struct members *members, const char *apart_job, struct err *err)
{
    size_t ranks = members->count;
    size_t total = 0;
    for (size_t rank = 0; rank < ranks; rank++)
        total += members->items[rank].announce.gpu_count;
    struct assign_rank *seen = mem_array(ranks, sizeof *seen);
    struct assign_share *shares = mem_array(ranks, sizeof *shares);
    const char **uuids = mem_array(total, sizeof *uuids);
    int rc = seen && shares && uuids ? 0 : err_no_memory(err);
    size_t used = 0;
    for (size_t rank = 0; rank < ranks && !rc; rank++) {
        const struct announce *announce = &members->items[rank].announce;
        seen[rank] = (struct assign_rank){uuids + used, announce->gpu_count};
        for (size_t i = 0; i < announce->gpu_count; i++)
            uuids[used++] = announce->gpus[i].uuid;
    }
    if (!rc)
        rc = assign_gpus(seen, ranks, shares, err);
    for (size_t rank = 0; rank < ranks && !rc; rank++)
        members->items[rank].share = shares[rank];
    for (size_t rank = 0; rank < ranks && !rc && apart_job; rank++)
        keep_claimed(&members->items[rank], apart_job);
    free(uuids);
    free(shares);
    free(seen);
    return rc;
}

/* A rank holds its workers to their limit by itself, and is lost when it falls silent: this
 * deadline is for one that lives and yet does not end. Its workers run in rounds, each up to the
 * limit and the few seconds that ending a stubborn worker takes. */
static double deadline_s(const struct members *members, const struct member *member, double now_s)
{
    const double ending_s = 5;
    size_t at_once = member->announce.at_once ? member->announce.at_once : SIZE_MAX;
    size_t rounds = member->share.count / at_once + (member->share.count % at_once != 0);
    if (members->stopped)
        return now_s + LIMIT_INTERRUPTED_S;
    return now_s + (double)rounds * (members->time_limit_s + ending_s) + members->patience_s;
}

/* A rank that was taken for lost speaks: it is waited for again. One whose GPUs are not known came
 * too late. */
static void take_back(struct members *members, size_t rank)
{
    struct member *member = &members->items[rank];
    if (!member->lost || (members->assigned && !member->announced))
        return;
    member->lost = false;
    members->lost--;
    if (!members->assigned)
        return;
    unmeasured_drop_lost(members->unmeasured, members->first + (int32_t)rank);
    members->open += member->missing > 0;
}

void members_hear(struct members *members, size_t rank)
{
    members->items[rank].spoke = true;
    members->items[rank].heard_s = members->now_s;
    take_back(members, rank);
}

static int open_member(struct members *members, struct member *member, double now_s,
                       struct err *err)
{
    member->heard = mem_array(member->announce.gpu_count, sizeof *member->heard);
    if (!member->heard)
        return err_no_memory(err);
    member->missing = member->share.count;
    member->deadline_s = deadline_s(members, member, now_s);
    members->gpu_total += member->share.count;
    members->open += member->missing > 0;
    members->idle += member->missing == 0 && member->announce.listing != LISTING_FAILED;
    return 0;
}

static int lose_unannounced(struct members *members, size_t rank, struct err *err)
{
    struct member *member = &members->items[rank];
    char reason[96];
    snprintf(reason, sizeof reason, "rank %d %s", members->first + (int)rank,
             !member->spoke ? "was never heard"
             : member->lost ? "fell silent before it had listed its GPUs"
                            : "did not announce itself in time");
    members->lost += !member->lost;
    member->lost = true;
    return add_unmeasured(members, rank, NULL, GPU_LOST, reason, err);
}

int members_open(struct members *members, double now_s, struct err *err)
{
    int rc = 0;
    for (size_t rank = 0; rank < members->count && !rc; rank++) {
        struct member *member = &members->items[rank];
        const struct announce *announce = &member->announce;
        if (!member->announced)
            rc = lose_unannounced(members, rank, err);
        else if (announce->listing == LISTING_FAILED)
            rc = add_unmeasured(members, rank, NULL, announce->failed_as, announce->err.text, err);
        if (!rc && member->announced)
            rc = open_member(members, member, now_s, err);
    }
    members->assigned = true;
    return rc;
}

static bool is_assigned(const struct member *member, uint32_t position)
{
    for (size_t i = 0; i < member->share.count; i++)
        if (member->share.positions[i] == position)
            return true;
    return false;
}

bool members_expect(const struct members *members, size_t rank, uint32_t position, const char *uuid)
{
    const struct member *member = &members->items[rank];
    return member->heard && position < member->announce.gpu_count &&
           str_equal(uuid, member->announce.gpus[position].uuid) && is_assigned(member, position);
}

void members_done(struct members *members, size_t rank, uint32_t position)
{
    struct member *member = &members->items[rank];
    member->heard[position] = true;
    members->gpu_done++;
    if (--member->missing == 0 && !member->lost)
        members->open--;
}

void members_recovered(struct members *members, const struct gpu_result *lost)
{
    size_t rank = (size_t)(lost->rank - members->first);
    struct member *member = &members->items[rank];
    for (uint32_t i = 0; i < member->announce.gpu_count; i++)
        if (members_expect(members, rank, i, lost->uuid) && !member->heard[i])
            members_done(members, rank, i);
    bool told_all = member->lost && !member->missing;
    member->lost &= !told_all;
    members->lost -= told_all;
}

static int lose(struct members *members, size_t rank, const char *how, struct err *err)
{
    struct member *member = &members->items[rank];
    char reason[128];
    int rc = 0;
    member->lost = true;
    members->lost++;
    if (!members->assigned)
        return 0; /* members_open tells it */
    snprintf(reason, sizeof reason, "rank %d on %.64s %s", members->first + (int)rank,
             member->announce.host, how);
    members->open -= member->missing > 0;
    if (!member->share.count && member->announce.listing != LISTING_FAILED)
        rc = add_unmeasured(members, rank, NULL, GPU_LOST, reason, err);
    for (size_t i = 0; i < member->share.count && !rc; i++) {
        uint32_t position = member->share.positions[i];
        if (!member->heard[position])
            rc = add_unmeasured(members, rank, &member->announce.gpus[position], GPU_LOST, reason,
                                err);
    }
    return rc;
}

/* Rank 0's own part lives as long as rank 0. */
static bool unheard(const struct members *members, size_t rank, double for_s)
{
    return rank && members->now_s - members->items[rank].heard_s > for_s;
}

static bool silent(const struct members *members, size_t rank)
{
    return unheard(members, rank,
                   members->items[rank].spoke ? limit_silence_s((int)members->count)
                                              : members->patience_s);
}

size_t members_quiet(const struct members *members)
{
    const double beats = 2.5;
    size_t count = 0;
    for (size_t rank = 0; rank < members->count; rank++)
        count += !members->items[rank].lost &&
                 unheard(members, rank, beats * limit_beat_s((int)members->count));
    return count;
}

/* Has something to tell yet, or nothing to do at all but to be there. */
static bool watched(const struct members *members, const struct member *member)
{
    if (member->lost)
        return false;
    return members->assigned ? member->missing || !member->share.count : !member->announced;
}

int members_check(struct members *members, double now_s, struct err *err)
{
    int rc = 0;
    members->now_s = now_s;
    if ((members->assigned && !members->open) || now_s < members->next_check_s)
        return 0;
    members->next_check_s = now_s + check_every_s;
    for (size_t rank = 0; rank < members->count && !rc; rank++) {
        struct member *member = &members->items[rank];
        if (!watched(members, member))
            continue;
        if (silent(members, rank))
            rc = lose(members, rank, "fell silent", err);
        else if (member->missing && now_s > member->deadline_s)
            rc = lose(members, rank,
                      members->stopped ? "did not answer when the survey was interrupted"
                                       : "is over its time",
                      err);
    }
    return rc;
}

void members_stop(struct members *members, double now_s)
{
    double until_s = now_s + LIMIT_INTERRUPTED_S;
    members->stopped = true;
    for (size_t rank = 0; rank < members->count; rank++)
        if (members->items[rank].deadline_s > until_s)
            members->items[rank].deadline_s = until_s;
}
