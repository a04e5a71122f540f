/* Rank 0's part of the survey. Point to point only: a rank that is no more costs its own GPUs. */
#include "survey/root.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "survey/assign.h"
#include "survey/limits.h"
#include "survey/message.h"
#include "survey/nodes.h"
#include "survey/pulse.h"

/* One rank as rank 0 sees it. */
struct member {
    bool announced, lost;
    bool overdue; /* lost by its deadline, not by silence */
    bool renewed; /* its deadline, since it was taken back */
    struct announce announce;
    struct assign_share share;
    bool *heard;    /* per GPU of the announced list: its result is here */
    size_t missing; /* assigned but not heard */
    double deadline_s;
    double heard_s; /* its last sign of life, by root.clock */
    struct doing doing;
};

struct root {
    struct comm *comm;
    struct recording *recording; /* NULL: none */
    struct root_spool spool;     /* spooling NULL: none */
    size_t unspooled;
    char *unspooled_why; /* the first one */
    struct pulse_clock clock;
    bool simulated, assigned, stopped;
    double time_limit_s;
    double announce_until_s;
    double next_check_s;    /* of the deadlines */
    struct member *members; /* one per rank */
    size_t announced;
    size_t open; /* members neither lost nor complete */
    struct gpu_result *results;
    bool *taken;
    size_t result_count, result_capacity, taken_capacity;
    root_taker *taker; /* NULL: none */
    void *user;
    struct node_list nodes;
    size_t gpu_total, gpu_done, lost, idle;
};

/* Looking at every rank's deadline in every round would cost more than all else. */
static const double check_every_s = 0.5;

int root_create(struct comm *comm, bool simulated, double time_limit_s, double now_s,
                struct root **out_root, struct err *err)
{
    struct root *root = mem_array(1, sizeof *root);
    struct member *members = mem_array((size_t)comm->size, sizeof *members);
    if (!root || !members) {
        free(root);
        free(members);
        return err_no_memory(err);
    }
    root->comm = comm;
    root->simulated = simulated;
    root->time_limit_s = time_limit_s;
    root->announce_until_s = now_s + LIMIT_ANNOUNCE_S;
    root->members = members;
    *out_root = root;
    return 0;
}

void root_spool(struct root *root, const struct root_spool *spool)
{
    root->spool = *spool;
}

void root_hand_on(struct root *root, root_taker *taker, void *user)
{
    root->taker = taker;
    root->user = user;
}

void root_record(struct root *root, struct recording *recording)
{
    root->recording = recording;
}

/* Takes over the result. */
static int add_result(struct root *root, struct gpu_result *result, struct err *err)
{
    struct gpu_result *grown = mem_grow(root->results, &root->result_capacity,
                                        root->result_count + 1, sizeof *root->results);
    bool *taken =
        mem_grow(root->taken, &root->taken_capacity, root->result_count + 1, sizeof *root->taken);
    root->results = grown ? grown : root->results;
    root->taken = taken ? taken : root->taken;
    if (!grown || !taken) {
        gpu_result_fini(result);
        return err_no_memory(err);
    }
    root->taken[root->result_count] = false;
    root->results[root->result_count++] = *result;
    return 0;
}

static int hand_on(struct root *root, size_t i, struct err *err)
{
    root->taken[i] = root->taker != NULL;
    return root->taker ? root->taker(root->user, root->gpu_total, &root->results[i], err) : 0;
}

/* A result that no worker gave. gpu NULL: nothing is known of the rank's GPUs. */
static int add_unmeasured(struct root *root, size_t rank, const struct gpu_result *gpu,
                          enum gpu_status status, const char *reason, struct err *err)
{
    struct gpu_result result = {.index = -1};
    const char *host = root->members[rank].announce.host;
    if (gpu ? gpu_result_copy(&result, gpu) : (host && !(result.node = str_copy(host)))) {
        gpu_result_fini(&result);
        return err_no_memory(err);
    }
    result.rank = (int32_t)rank;
    result.status = status;
    result.reason = str_copy(reason);
    if (!result.reason) {
        gpu_result_fini(&result);
        return err_no_memory(err);
    }
    return add_result(root, &result, err);
}

static int take_announce(struct root *root, size_t rank, const struct frame *frame, struct err *err)
{
    struct member *member = &root->members[rank];
    if (member->announced || root->assigned)
        return err_set(err, -EBADMSG, "announced %s", member->announced ? "twice" : "too late");
    int rc = announce_decode(frame, &member->announce, err);
    if (rc)
        return rc;
    member->announced = true;
    root->announced++;
    return 0;
}

/* Sends and releases the payload. A rank that cannot be reached costs its own GPUs, by its
 * deadline; everything else goes on. */
static int tell(struct root *root, size_t rank, enum message_type type, struct strbuf *payload,
                struct err *err)
{
    struct err why = {0};
    int rc = comm_send_payload(root->comm, (int)rank, type, payload, &why);
    if (rc == -ENOMEM)
        return err_no_memory(err);
    if (rc)
        log_warning("rank %zu cannot be reached: %s", rank, why.text);
    return 0;
}

static bool is_assigned(const struct member *member, uint32_t position)
{
    for (size_t i = 0; i < member->share.count; i++)
        if (member->share.positions[i] == position)
            return true;
    return false;
}

static int acknowledge(struct root *root, size_t rank, uint32_t position, struct err *err)
{
    struct strbuf ack = {0};
    ack_encode(position, &ack);
    return tell(root, rank, MESSAGE_ACK, &ack, err);
}

static int keep_result(struct root *root, size_t rank, struct result_message *message,
                       struct err *err)
{
    struct member *member = &root->members[rank];
    const struct gpu_result *result = &message->result;
    log_debug("%s on %s, rank %zu: %s%s%s", result->uuid, result->node, rank,
              gpu_status_name(result->status), result->reason ? ": " : "",
              result->reason ? result->reason : "");
    if (root->recording)
        recording_add(root->recording, message->record, message->record_bytes);
    if (message->unspooled && !root->unspooled++) {
        root->unspooled_why = message->unspooled;
        message->unspooled = NULL;
    }
    member->heard[message->position] = true;
    int rc = add_result(root, &message->result, err);
    if (!rc)
        rc = hand_on(root, root->result_count - 1, err);
    if (rc)
        return rc;
    root->gpu_done++;
    if (--member->missing == 0)
        root->open--;
    return 0;
}

static int take_result(struct root *root, size_t rank, const struct frame *frame, struct err *err)
{
    struct member *member = &root->members[rank];
    struct result_message message = {0};
    int rc = result_decode(frame, &message, err);
    if (rc)
        return rc;
    uint32_t position = message.position;
    bool expected = member->heard && position < member->announce.gpu_count &&
                    str_equal(message.result.uuid, member->announce.gpus[position].uuid) &&
                    is_assigned(member, position);
    if (!expected)
        rc = err_set(err, -EBADMSG, "a result that was not expected");
    else if (!member->heard[position]) {
        rc = keep_result(root, rank, &message, err);
        memset(&message.result, 0, sizeof message.result); /* it is root's now */
    }
    result_fini(&message);
    return rc ? rc : acknowledge(root, rank, position, err);
}

/* Is answered, so that the rank knows the same of this one; rank 0 needs no answer of its own. */
static int take_beat(struct root *root, size_t rank, const struct frame *frame, struct err *err)
{
    struct strbuf nothing = {0};
    int rc = doing_decode(frame, &root->members[rank].doing, err);
    if (rc || root->comm->rank == (int)rank)
        return rc;
    return tell(root, rank, MESSAGE_BEAT, &nothing, err);
}

bool root_slowest(const struct root *root, struct root_slowest *out)
{
    struct root_slowest found = {0};
    for (size_t rank = 0; rank < (size_t)root->comm->size; rank++) {
        const struct member *member = &root->members[rank];
        const struct doing *doing = &member->doing;
        if (member->lost || !member->heard || !doing->probe[0] ||
            doing->position >= member->announce.gpu_count || member->heard[doing->position])
            continue;
        double since_s = doing->since_s + root->clock.awake_s - member->heard_s;
        if (found.gpu && since_s <= found.since_s)
            continue;
        found =
            (struct root_slowest){&member->announce.gpus[doing->position], doing->probe, since_s};
    }
    if (found.gpu)
        *out = found;
    return found.gpu != NULL;
}

/* Seconds in which a rank must be done: its workers run in rounds, each up to the limit and the
 * few seconds that ending a stubborn worker takes. */
static double possible_s(const struct root *root, const struct member *member)
{
    const double ending_s = 5;
    size_t at_once = member->announce.at_once ? member->announce.at_once : SIZE_MAX;
    size_t rounds = member->share.count / at_once + (member->share.count % at_once != 0);
    return (double)rounds * (root->time_limit_s + ending_s) + LIMIT_GRACE_S;
}

static void set_deadline(const struct root *root, struct member *member, double now_s)
{
    member->deadline_s = now_s + (root->stopped ? LIMIT_INTERRUPTED_S : possible_s(root, member));
}

/* Takes away what was said of the rank's GPUs when it was lost. */
static void drop_lost(struct root *root, size_t rank)
{
    size_t kept = 0;
    for (size_t i = 0; i < root->result_count; i++) {
        struct gpu_result *result = &root->results[i];
        if (!root->taken[i] && result->status == GPU_LOST && result->rank == (int32_t)rank) {
            gpu_result_fini(result);
            continue;
        }
        root->taken[kept] = root->taken[i];
        root->results[kept++] = *result;
    }
    root->result_count = kept;
}

/* A rank that was taken for lost speaks: it is waited for again. Its deadline is renewed once,
 * since it lost time too; one that comes and goes shall not keep the survey from its end. One that
 * is over its time gets no more, but the result it has counts; one whose GPUs are not known came
 * too late. */
static void take_back(struct root *root, size_t rank, enum message_type said)
{
    struct member *member = &root->members[rank];
    if (!member->lost || (root->assigned && !member->announced) ||
        (member->overdue && said != MESSAGE_RESULT))
        return;
    member->lost = false;
    root->lost--;
    if (!root->assigned)
        return;
    drop_lost(root, rank);
    root->open += member->missing > 0;
    if (!member->overdue && !member->renewed)
        set_deadline(root, member, root->clock.last_s);
    member->renewed = true;
}

int root_take(struct root *root, const struct comm_message *message, struct err *err)
{
    size_t rank = (size_t)message->from;
    root->members[rank].heard_s = root->clock.awake_s;
    take_back(root, rank, (enum message_type)message->frame.type);
    switch (message->frame.type) {
    case MESSAGE_BEAT:
        return take_beat(root, rank, &message->frame, err);
    case MESSAGE_ANNOUNCE:
        return take_announce(root, rank, &message->frame, err);
    case MESSAGE_RESULT:
        return take_result(root, rank, &message->frame, err);
    default:
        return err_set(err, -EBADMSG, "a message of type %u out of place", message->frame.type);
    }
}

/* Ranks without a GPU beside others that have one: most often a launcher's flag is missing. */
static void say_without(const struct root *root)
{
    enum { SAID_MAX = 3 };
    size_t without = 0;
    for (size_t rank = 0; rank < (size_t)root->comm->size; rank++) {
        const struct member *member = &root->members[rank];
        if (!member->announced || member->announce.listing != LISTING_NO_DEVICE)
            continue;
        if (without++ < SAID_MAX)
            log_warning("no GPU visible to rank %zu on %.60s: %s", rank, member->announce.host,
                        member->announce.err.text);
    }
    if (without > SAID_MAX)
        log_warning("no GPU visible to %zu more ranks", without - SAID_MAX);
}

/* Bad input anywhere ends the survey, the lowest rank speaks. No driver and no GPU anywhere does
 * too; on some ranks only, they simply have none. */
static int check_listings(const struct root *root, struct err *err)
{
    size_t without = 0, ranks = (size_t)root->comm->size;
    const struct announce *first = NULL;
    for (size_t rank = 0; rank < ranks; rank++) {
        const struct announce *announce = &root->members[rank].announce;
        if (!root->members[rank].announced)
            continue;
        if (announce->listing == LISTING_BAD_INPUT) {
            *err = announce->err;
            if (rank)
                err_prefix(err, "rank %zu on %s", rank, announce->host);
            return err->code = -EINVAL;
        }
        if (announce->listing == LISTING_NO_DEVICE) {
            without++;
            first = first ? first : announce;
        }
    }
    if (without && without == ranks)
        return err_set(err, -ENODEV,
                       "no GPU to survey: %s; --simulate configs/fleets/demo.yaml surveys a "
                       "simulated fleet",
                       first->err.text);
    say_without(root);
    return 0;
}

static int assign(struct root *root, struct err *err)
{
    size_t ranks = (size_t)root->comm->size;
    size_t total = 0;
    for (size_t rank = 0; rank < ranks; rank++)
        total += root->members[rank].announce.gpu_count;
    struct assign_rank *seen = mem_array(ranks, sizeof *seen);
    struct assign_share *shares = mem_array(ranks, sizeof *shares);
    const char **uuids = mem_array(total, sizeof *uuids);
    int rc = seen && shares && uuids ? 0 : err_no_memory(err);
    size_t used = 0;
    for (size_t rank = 0; rank < ranks && !rc; rank++) {
        const struct announce *announce = &root->members[rank].announce;
        seen[rank] = (struct assign_rank){uuids + used, announce->gpu_count};
        for (size_t i = 0; i < announce->gpu_count; i++)
            uuids[used++] = announce->gpus[i].uuid;
    }
    if (!rc)
        rc = assign_gpus(seen, ranks, shares, err);
    for (size_t rank = 0; rank < ranks && !rc; rank++)
        root->members[rank].share = shares[rank];
    free(uuids);
    free(shares);
    free(seen);
    return rc;
}

static int send_assignment(struct root *root, size_t rank, struct err *err)
{
    struct member *member = &root->members[rank];
    struct strbuf payload = {0};
    const struct assignment assignment = {
        .time_limit_s = root->time_limit_s,
        .positions = member->share.positions,
        .count = member->share.count,
        .spool = root->spool.spooling ? root->spool.spooling->folder : NULL,
        .survey = root->spool.spooling ? root->spool.spooling->survey : NULL,
    };
    assignment_encode(&assignment, &payload);
    return tell(root, rank, MESSAGE_ASSIGN, &payload, err);
}

static int open_member(struct root *root, struct member *member, double now_s, struct err *err)
{
    member->heard = mem_array(member->announce.gpu_count, sizeof *member->heard);
    if (!member->heard)
        return err_no_memory(err);
    member->missing = member->share.count;
    set_deadline(root, member, now_s);
    root->gpu_total += member->share.count;
    root->open += member->missing > 0;
    root->idle += member->missing == 0 && member->announce.listing != LISTING_FAILED;
    return 0;
}

static int open_members(struct root *root, double now_s, struct err *err)
{
    int rc = 0;
    for (size_t rank = 0; rank < (size_t)root->comm->size && !rc; rank++)
        if (root->members[rank].announced)
            rc = open_member(root, &root->members[rank], now_s, err);
    return rc;
}

static int send_assignments(struct root *root, struct err *err)
{
    int rc = 0;
    for (size_t rank = 0; rank < (size_t)root->comm->size && !rc; rank++)
        if (root->members[rank].announced)
            rc = send_assignment(root, rank, err);
    return rc;
}

static int settle_announced(struct root *root, struct err *err)
{
    int rc = 0;
    for (size_t rank = 0; rank < (size_t)root->comm->size && !rc; rank++) {
        struct member *member = &root->members[rank];
        const struct announce *announce = &member->announce;
        if (!member->announced) {
            char reason[96];
            snprintf(reason, sizeof reason, "rank %zu %s", rank,
                     member->lost ? "fell silent before it had listed its GPUs"
                                  : "did not announce itself in time");
            root->lost += !member->lost;
            member->lost = true;
            rc = add_unmeasured(root, rank, NULL, GPU_LOST, reason, err);
            continue;
        }
        if (announce->listing == LISTING_FAILED)
            rc = add_unmeasured(root, rank, NULL, announce->failed_as, announce->err.text, err);
        if (!rc)
            rc = nodes_add(&root->nodes, announce, root->simulated, err);
    }
    return rc ? rc : nodes_settle(&root->nodes, err);
}

/* Written before anything is measured, so that what is missing later has a name. */
static int spool_plan(struct root *root, struct err *err)
{
    const struct root_spool *spool = &root->spool;
    struct gpu_result *expected = mem_array(root->gpu_total, sizeof *expected);
    struct spool_survey survey = {
        .command_count = spool->command_count,
        .config_name = (char *)spool->config_name,
        .config_text = (char *)spool->config_text,
        .ranks = (uint32_t)root->comm->size,
        .nodes = (uint32_t)root->nodes.node_count,
        .lost_ranks = (uint32_t)root->lost,
        .bare_nodes = root->nodes.bare,
        .bare_count = root->nodes.bare_count,
        .expected = expected,
        .unknown = root->results, /* so far only ranks of which nothing is known */
        .unknown_count = root->result_count,
    };
    char **command = mem_array(spool->command_count, sizeof *command);
    if (!expected || !command) {
        free(expected);
        free(command);
        return err_no_memory(err);
    }
    for (size_t i = 0; i < spool->command_count; i++)
        command[i] = spool->command[i];
    if (spool->command_count)
        command[0] = (char *)str_last_part(command[0]);
    survey.command = command;
    for (size_t rank = 0; rank < (size_t)root->comm->size; rank++) {
        const struct member *member = &root->members[rank];
        for (size_t i = 0; i < member->share.count; i++) {
            struct gpu_result *gpu = &expected[survey.expected_count++];
            *gpu = member->announce.gpus[member->share.positions[i]]; /* a view */
            gpu->rank = (int32_t)rank;
        }
    }
    spooling_survey(spool->spooling, &survey);
    free(expected);
    free(command);
    return 0;
}

static int begin(struct root *root, double now_s, struct err *err)
{
    int rc = check_listings(root, err);
    if (!rc)
        rc = assign(root, err);
    if (!rc)
        rc = settle_announced(root, err);
    if (!rc)
        rc = open_members(root, now_s, err);
    if (!rc && root->spool.spooling)
        rc = spool_plan(root, err);
    if (!rc)
        rc = send_assignments(root, err);
    root->assigned = true;
    return rc;
}

static int lose(struct root *root, size_t rank, const char *how, struct err *err)
{
    struct member *member = &root->members[rank];
    char reason[128];
    int rc = 0;
    member->lost = true;
    root->lost++;
    if (!root->assigned)
        return 0; /* begin tells it */
    snprintf(reason, sizeof reason, "rank %zu on %.64s %s", rank, member->announce.host, how);
    root->open -= member->missing > 0;
    if (!member->share.count && member->announce.listing != LISTING_FAILED)
        rc = add_unmeasured(root, rank, NULL, GPU_LOST, reason, err);
    for (size_t i = 0; i < member->share.count && !rc; i++) {
        uint32_t position = member->share.positions[i];
        if (!member->heard[position])
            rc =
                add_unmeasured(root, rank, &member->announce.gpus[position], GPU_LOST, reason, err);
    }
    return rc;
}

/* Rank 0's own part lives as long as rank 0. */
static bool silent(const struct root *root, size_t rank)
{
    return rank &&
           root->clock.awake_s - root->members[rank].heard_s > pulse_silence_s(root->comm->size);
}

/* Has something to tell yet, or nothing to do at all but to be there. */
static bool watched(const struct root *root, const struct member *member)
{
    if (member->lost)
        return false;
    return root->assigned ? member->missing || !member->share.count : !member->announced;
}

static int look_for_lost(struct root *root, double now_s, struct err *err)
{
    int rc = 0;
    for (size_t rank = 0; rank < (size_t)root->comm->size && !rc; rank++) {
        struct member *member = &root->members[rank];
        if (!watched(root, member))
            continue;
        if (silent(root, rank))
            rc = lose(root, rank, "fell silent", err);
        else if (member->missing && now_s > member->deadline_s) {
            member->overdue = true;
            rc = lose(root, rank,
                      root->stopped ? "did not answer when the survey was interrupted"
                                    : "is over its time",
                      err);
        }
    }
    return rc;
}

static bool all_announced(const struct root *root)
{
    size_t lost = root->assigned ? 0 : root->lost;
    return root->announced + lost >= (size_t)root->comm->size;
}

int root_step(struct root *root, double now_s, struct err *err)
{
    pulse_tick(&root->clock, now_s);
    if (!root->assigned && (all_announced(root) || now_s > root->announce_until_s))
        return begin(root, now_s, err);
    if ((root->assigned && !root->open) || now_s < root->next_check_s)
        return 0;
    root->next_check_s = now_s + check_every_s;
    return look_for_lost(root, now_s, err);
}

void root_stop(struct root *root, double now_s)
{
    struct err ignored = {0}; /* a rank that cannot be told will miss its deadline */
    if (root->stopped)
        return;
    root->stopped = true;
    double until_s = now_s + LIMIT_INTERRUPTED_S;
    if (root->announce_until_s > until_s)
        root->announce_until_s = until_s;
    for (int rank = 0; rank < root->comm->size; rank++)
        if (root->members[rank].deadline_s > until_s)
            root->members[rank].deadline_s = until_s;
    for (int rank = 0; rank < root->comm->size; rank++)
        comm_send(root->comm, rank, MESSAGE_STOP, NULL, 0, &ignored);
}

bool root_complete(const struct root *root)
{
    return root->assigned && !root->open;
}

struct root_view root_view(const struct root *root)
{
    return (struct root_view){
        .results = root->results,
        .taken = root->taken,
        .result_count = root->result_count,
        .bare_nodes = (const char *const *)root->nodes.bare,
        .bare_count = root->nodes.bare_count,
        .node_count = root->nodes.node_count,
        .gpu_total = root->gpu_total,
        .gpu_done = root->gpu_done,
        .lost_ranks = root->lost,
        .idle_ranks = root->idle,
        .assigned = root->assigned,
        .unspooled = root->unspooled,
        .unspooled_why = root->unspooled_why,
    };
}

void root_destroy(struct root *root)
{
    if (!root)
        return;
    for (int rank = 0; rank < root->comm->size; rank++) {
        announce_fini(&root->members[rank].announce);
        free(root->members[rank].share.positions);
        free(root->members[rank].heard);
    }
    for (size_t i = 0; i < root->result_count; i++)
        gpu_result_fini(&root->results[i]);
    nodes_fini(&root->nodes);
    free(root->unspooled_why);
    free(root->results);
    free(root->taken);
    free(root->members);
    free(root);
}
