/* The part of the survey that only rank 0 does. All messages are point to point: a rank that dies
 * loses only its own GPUs. */
#include "survey/root/root.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/shipped.h"
#include "survey/comm/limits.h"
#include "survey/comm/message.h"
#include "survey/root/nodes.h"
#include "survey/root/ranks.h"
#include "survey/root/room.h"

struct root {
    struct comm *comm;
    struct recording *recording; /* NULL: none */
    struct spool_plan spool;
    size_t unspooled;
    char *unspooled_why; /* the first reason */
    bool simulated;
    const char *apart_job; /* see ranks_assign */
    double announce_until_s;
    double stagger_s;
    uint64_t region_bytes;
    struct ranks ranks;
    struct unmeasured unmeasured;
    root_taker *taker; /* NULL: none */
    void *taker_user;
    struct node_list nodes;
};

int root_create(struct comm *comm, bool simulated, double time_limit_s, double now_s,
                struct root **out_root, struct err *err)
{
    struct root *root = mem_array(1, sizeof *root);
    if (!root)
        return err_no_memory(err);
    int rc = ranks_init(&root->ranks, (size_t)comm->size, time_limit_s, &root->unmeasured, err);
    if (rc) {
        free(root);
        return rc;
    }
    root->ranks.first = comm_is_standalone(comm) ? comm->place.task : 0;
    root->ranks.start_timeout_s = comm->place.start_timeout_s;
    root->ranks.now_s = now_s;
    root->comm = comm;
    root->simulated = simulated;
    /* A rank that sends heartbeats enforces the limit of its listing itself. */
    root->announce_until_s = now_s + comm->place.start_timeout_s + LIMIT_LISTING_S + LIMIT_GRACE_S;
    *out_root = root;
    return 0;
}

void root_spool(struct root *root, const struct spool_plan *spool)
{
    root->spool = *spool;
}

void root_stagger(struct root *root, double seconds)
{
    root->stagger_s = seconds;
}

void root_set_region(struct root *root, uint64_t bytes)
{
    root->region_bytes = bytes;
}

void root_claim(struct root *root, const char *apart_job)
{
    root->apart_job = apart_job;
}

void root_hand_on(struct root *root, root_taker *taker, void *user)
{
    root->taker = taker;
    root->taker_user = user;
}

void root_record(struct root *root, struct recording *recording)
{
    root->recording = recording;
}

/* Sends and releases the payload. A rank that cannot be reached loses its GPUs at its deadline;
 * everything else continues. */
static int tell(struct root *root, size_t rank, enum message_type type, struct strbuf *payload,
                struct err *err)
{
    struct err why = {0};
    int rc = comm_send_payload(root->comm, (int)rank, type, payload, &why);
    if (rc == -ENOMEM)
        return err_no_memory(err);
    bool *unreachable = &root->ranks.items[rank].unreachable;
    if (rc && !*unreachable)
        log_warning("rank %zu cannot be reached: %s", rank, why.text);
    *unreachable |= rc != 0;
    return 0;
}

static int hand_on(const struct root *root, uint32_t session, struct gpu_result *result,
                   struct err *err)
{
    size_t total = root->ranks.gpu_total;
    return root->taker ? root->taker(root->taker_user, total, session, result, err) : 0;
}

static int keep_result(struct root *root, size_t rank, struct result_message *message,
                       struct err *err)
{
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
    int rc = hand_on(root, 0, &message->result, err);
    if (!rc)
        ranks_done(&root->ranks, rank, message->position);
    return rc;
}

static int keep_repeat(struct root *root, size_t rank, struct result_message *message,
                       struct err *err)
{
    if (!ranks_repeated(&root->ranks, rank, message->position))
        return err_set(err, -EBADMSG, "a second result that was not asked for");
    if (message->result.status != GPU_OK && !message->result.reason)
        log_warning("%s could not be measured again", message->result.uuid);
    else if (message->result.status != GPU_OK)
        log_warning("%s could not be measured again: %s", message->result.uuid,
                    message->result.reason);
    else
        log_debug("%s was measured again", message->result.uuid);
    if (root->recording)
        recording_add(root->recording, message->record, message->record_bytes);
    return hand_on(root, message->session, &message->result, err);
}

static int take_result(struct root *root, size_t rank, const struct frame *frame, struct err *err)
{
    struct result_message message = {0};
    int rc = message_result_decode(frame, &message, err);
    if (rc)
        return rc;
    uint32_t position = message.position;
    if (!ranks_expect(&root->ranks, rank, position, message.result.uuid))
        rc = err_set(err, -EBADMSG, "unexpected result");
    else if (message.session)
        rc = keep_repeat(root, rank, &message, err);
    else if (!root->ranks.items[rank].heard[position])
        rc = keep_result(root, rank, &message, err);
    message_result_fini(&message);
    return rc;
}

/* Answers a heartbeat, so that the rank knows that rank 0 lives. Rank 0 does not answer itself. */
static int take_beat(struct root *root, size_t rank, const struct frame *frame, struct err *err)
{
    struct strbuf nothing = {0};
    int rc = doing_decode(frame, &root->ranks.items[rank].doing, err);
    if (rc || root->comm->rank == (int)rank)
        return rc;
    return tell(root, rank, MESSAGE_BEAT, &nothing, err);
}

bool root_slowest(const struct root *root, struct root_slowest *out)
{
    struct root_slowest found = {0};
    for (size_t rank = 0; rank < root->ranks.count; rank++) {
        const struct known_rank *member = &root->ranks.items[rank];
        const struct doing *doing = &member->doing;
        if (member->state != RANK_MEASURING || !doing->probe[0] ||
            doing->position >= member->announce.gpu_count || member->heard[doing->position])
            continue;
        double since_s = doing->since_s + root->ranks.now_s - member->heard_s;
        if (found.gpu && since_s <= found.since_s)
            continue;
        found =
            (struct root_slowest){&member->announce.gpus[doing->position], doing->probe, since_s};
    }
    if (found.gpu)
        *out = found;
    return found.gpu != NULL;
}

int root_take(struct root *root, const struct comm_message *message, struct err *err)
{
    size_t rank = (size_t)message->from;
    ranks_hear(&root->ranks, rank);
    switch (message->frame.type) {
    case MESSAGE_BEAT:
        return take_beat(root, rank, &message->frame, err);
    case MESSAGE_ANNOUNCE:
        return ranks_announce(&root->ranks, rank, &message->frame, err);
    case MESSAGE_RESULT:
        return take_result(root, rank, &message->frame, err);
    default:
        return err_set(err, -EBADMSG, "unexpected message of type %u", message->frame.type);
    }
}

/* Warns of ranks that see no GPU while others do: usually a launcher's option is missing. */
static void say_without(const struct root *root)
{
    enum { SAID_MAX = 3 };
    size_t without = 0;
    for (size_t rank = 0; rank < root->ranks.count; rank++) {
        const struct known_rank *member = &root->ranks.items[rank];
        if (!rank_state_is_announced(member->state) ||
            member->announce.listing != LISTING_NO_DEVICE || member->announce.gpus_given)
            continue;
        if (without++ < SAID_MAX)
            log_warning("no GPU visible to rank %d on %.60s: %s", root->ranks.first + (int)rank,
                        member->announce.host, member->announce.err.text);
    }
    if (without > SAID_MAX)
        log_warning("no GPU visible to %zu more ranks", without - SAID_MAX);
}

static int no_gpu(const struct announce *first, struct err *err)
{
    struct err ignored = {0};
    char *fleet = NULL;
    shipped_path("fleets/demo.yaml", &fleet, &ignored);
    char *real = fleet ? realpath(fleet, NULL) : NULL;
    err_set(err, -ENODEV, "no GPU to survey: %s; --simulate %s surveys a simulated fleet",
            first->err.text, real ? real : "FLEET.yaml");
    free(real);
    free(fleet);
    return -ENODEV;
}

/* Some ranks see GPUs. A rank that sees none, although the launcher gave GPUs to its node, then has
 * a broken driver or GPU: it is listed as unmeasured. */
static void fail_promised(struct root *root)
{
    for (size_t rank = 0; rank < root->ranks.count; rank++) {
        struct announce *announce = &root->ranks.items[rank].announce;
        if (!rank_state_is_announced(root->ranks.items[rank].state) || !announce->gpus_given ||
            announce->listing != LISTING_NO_DEVICE)
            continue;
        announce->listing = LISTING_FAILED;
        announce->failed_as = GPU_FAILED;
    }
}

/* Bad input on any rank ends the survey; the error of the lowest such rank is reported. The survey
 * also ends if no rank has a GPU and driver. If only some ranks have none, it continues. */
static int check_listings(struct root *root, struct err *err)
{
    size_t without = 0, ranks = root->ranks.count;
    const struct announce *first = NULL;
    for (size_t rank = 0; rank < ranks; rank++) {
        const struct announce *announce = &root->ranks.items[rank].announce;
        if (!rank_state_is_announced(root->ranks.items[rank].state))
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
    if (without && without == ranks && !comm_is_standalone(root->comm))
        return no_gpu(first, err);
    say_without(root);
    fail_promised(root);
    return 0;
}

static int send_assignment(struct root *root, size_t rank, struct err *err)
{
    struct known_rank *member = &root->ranks.items[rank];
    struct strbuf payload = {0};
    const struct assignment assignment = {
        .time_limit_s = root->ranks.time_limit_s,
        .stagger_s = root->nodes.node_count > 1 ? root->stagger_s : 0,
        .region_bytes = root->region_bytes,
        .positions = member->share.positions,
        .count = member->share.count,
        .spool = root->spool.spooling ? root->spool.spooling->folder : NULL,
        .survey = root->spool.spooling ? root->spool.spooling->survey : NULL,
        .owner = root->spool.spooling ? root->spool.spooling->owner.path : NULL,
    };
    assignment_encode(&assignment, &payload);
    return tell(root, rank, MESSAGE_ASSIGN, &payload, err);
}

static int send_assignments(struct root *root, struct err *err)
{
    int rc = 0;
    for (size_t rank = 0; rank < root->ranks.count && !rc; rank++)
        if (rank_state_is_announced(root->ranks.items[rank].state))
            rc = send_assignment(root, rank, err);
    return rc;
}

static int count_nodes(struct root *root, struct err *err)
{
    int rc = 0;
    for (size_t rank = 0; rank < root->ranks.count && !rc; rank++)
        if (rank_state_is_announced(root->ranks.items[rank].state))
            rc = nodes_add(&root->nodes, &root->ranks.items[rank].announce, root->simulated, err);
    return rc ? rc : nodes_settle(&root->nodes, err);
}

/* All GPUs are known, and none is measured yet. */
static int check_room(const struct root *root, struct err *err)
{
    if (root->ranks.gpu_total < ROOM_FEW_GPUS)
        return 0;
    const struct room room = room_find("/proc", "/sys/fs/cgroup");
    struct err why = {0};
    switch (room_for_gpus(&room, root->ranks.gpu_total, &why)) {
    case ROOM_SCARCE:
        log_warning("%s", why.text);
        return 0;
    case ROOM_TOO_SMALL:
        *err = why;
        return why.code;
    case ROOM_ENOUGH:
        break;
    }
    return 0;
}

static int begin(struct root *root, double now_s, struct err *err)
{
    int rc = check_listings(root, err);
    if (rc)
        return rc;
    rc = ranks_assign(&root->ranks, root->apart_job, err);
    if (rc)
        return rc;
    rc = check_room(root, err);
    if (rc)
        return rc;
    rc = ranks_open(&root->ranks, now_s, err);
    if (rc)
        return rc;
    rc = count_nodes(root, err);
    if (rc)
        return rc;
    if (root->spool.spooling) {
        rc = spool_plan_write(&root->spool, root->comm, &root->ranks, &root->nodes, err);
        if (rc)
            return rc;
    }
    return send_assignments(root, err);
}

int root_step(struct root *root, double now_s, struct err *err)
{
    struct ranks *ranks = &root->ranks;
    ranks->now_s = now_s;
    if (!ranks_assigned(ranks) && (ranks_all_announced(ranks) || now_s > root->announce_until_s))
        return begin(root, now_s, err);
    return ranks_check(ranks, now_s, err);
}

static int by_uuid(const void *left, const void *right)
{
    const struct root_suspect *a = left, *b = right;
    return strcmp(a->uuid, b->uuid);
}

static int ask_again(struct root *root, size_t rank, uint32_t position, const char *probes,
                     struct err *err)
{
    const struct again again = {.position = position, .probes = (char *)probes};
    struct strbuf payload = {0};
    if (!ranks_ask_again(&root->ranks, rank, position))
        return 0;
    again_encode(&again, &payload);
    return tell(root, rank, MESSAGE_AGAIN, &payload, err);
}

int root_measure_again(struct root *root, const struct root_suspect *suspects, size_t count,
                       struct err *err)
{
    int rc = 0;
    for (size_t rank = 0; rank < root->ranks.count; rank++) {
        const struct known_rank *member = &root->ranks.items[rank];
        for (size_t i = 0; i < member->share.count && !rc; i++) {
            uint32_t position = member->share.positions[i];
            const struct root_suspect wanted = {.uuid = member->announce.gpus[position].uuid};
            const struct root_suspect *found =
                bsearch(&wanted, suspects, count, sizeof wanted, by_uuid);
            if (found)
                rc = ask_again(root, rank, position, found->probes, err);
        }
    }
    return rc;
}

void root_stop(struct root *root, double now_s)
{
    struct err ignored = {0}; /* a rank that cannot be reached will miss its deadline */
    if (root->ranks.stopped)
        return;
    double until_s = now_s + LIMIT_INTERRUPTED_S;
    if (root->announce_until_s > until_s)
        root->announce_until_s = until_s;
    ranks_stop(&root->ranks, now_s);
    for (int rank = 0; rank < root->comm->size; rank++)
        comm_send(root->comm, rank, MESSAGE_STOP, NULL, 0, &ignored);
}

int root_recover(struct root *root, struct err *err)
{
    const struct spooling *spooling = root->spool.spooling;
    int rc = 0;
    for (size_t i = root->unmeasured.count; spooling && i > 0 && !rc; i--) {
        const struct gpu_result *lost = &root->unmeasured.items[i - 1];
        struct gpu_result result = {0};
        int missing = !lost->uuid;
        if (!missing)
            missing = spool_read_gpu(spooling->folder, spooling->survey, lost->uuid, &result);
        if (missing == -ENOMEM)
            return err_no_memory(err);
        if (missing)
            continue;
        ranks_recovered(&root->ranks, lost);
        unmeasured_drop(&root->unmeasured, i - 1);
        rc = hand_on(root, 0, &result, err);
        gpu_result_fini(&result);
    }
    return rc;
}

bool root_complete(const struct root *root)
{
    return ranks_complete(&root->ranks);
}

struct root_view root_view(const struct root *root)
{
    const struct ranks *ranks = &root->ranks;
    return (struct root_view){
        .unmeasured = root->unmeasured.items,
        .unmeasured_count = root->unmeasured.count,
        .bare_nodes = (const char *const *)root->nodes.bare,
        .bare_count = root->nodes.bare_count,
        .node_count = root->nodes.node_count,
        .gpu_total = ranks->gpu_total,
        .gpu_done = ranks->gpu_done,
        .lost_ranks = ranks_lost(ranks),
        .idle_ranks = ranks_idle(ranks),
        .assigned = ranks_assigned(ranks),
        .unspooled = root->unspooled,
        .unspooled_why = root->unspooled_why,
    };
}

size_t root_quiet_ranks(const struct root *root)
{
    return ranks_quiet(&root->ranks);
}

void root_destroy(struct root *root)
{
    if (!root)
        return;
    ranks_fini(&root->ranks);
    unmeasured_fini(&root->unmeasured);
    nodes_fini(&root->nodes);
    free(root->unspooled_why);
    free(root);
}
