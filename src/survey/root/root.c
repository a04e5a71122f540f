/* The part of the survey that only rank 0 does. All messages are point to point: a rank that dies
 * loses only its own GPUs. */
#include "survey/root/root.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/shipped.h"
#include "base/sort.h"
#include "base/str.h"
#include "survey/comm/limits.h"
#include "survey/comm/message.h"
#include "survey/root/ranks.h"
#include "survey/root/resources.h"
#include "survey/start/slurm.h"

/* One announcement of a node. The boot id distinguishes machines of the same name. */
struct node_entry {
    const char *name;    /* of the announcement */
    const char *boot_id; /* likewise; NULL: simulated */
    bool empty;          /* no GPU was seen there */
};

/* The nodes of a survey: how many there are and which of them have no GPU. */
struct node_list {
    struct node_entry *entries;
    size_t count, capacity;
    size_t node_count; /* distinct nodes */
    const char **bare; /* names of those without a GPU, sorted */
    size_t bare_count;
};

struct root {
    struct comm *comm;
    struct root_settings settings;
    double announce_until_s;
    struct ranks ranks;
    struct node_list nodes; /* filled when GPUs are assigned */
    size_t unspooled;
    char *unspooled_why; /* the first reason */
};

struct root *root_create(struct comm *comm, const struct root_settings *settings, double now_s)
{
    struct root *root = mem_array(1, sizeof *root);
    root->comm = comm;
    root->settings = *settings;
    ranks_init(&root->ranks, (size_t)comm->size, settings->time_limit_s);
    root->ranks.first = comm_is_standalone(comm) ? comm->place.task : 0;
    root->ranks.start_timeout_s = comm->place.start_timeout_s;
    root->ranks.now_s = now_s;
    /* A rank that sends heartbeats enforces the limit of its listing itself. */
    root->announce_until_s = now_s + comm->place.start_timeout_s + LIMIT_LISTING_S + LIMIT_GRACE_S;
    return root;
}

/* Sends and releases the payload. A rank that cannot be reached loses its GPUs at its deadline;
 * everything else continues. */
static void root_send(struct root *root, size_t rank, enum message_type type,
                      struct strbuf *payload)
{
    struct err why = {0};
    bool *unreachable = &root->ranks.items[rank].unreachable;
    int rc = comm_send_payload(root->comm, (int)rank, type, payload, &why);
    if (rc && !*unreachable)
        log_warning("rank %zu cannot be reached: %s", rank, why.text);
    *unreachable |= rc != 0;
}

static int root_pass_on(const struct root *root, uint32_t session, struct gpu_result *result,
                        struct err *err)
{
    const struct root_settings *settings = &root->settings;
    if (!settings->take_result)
        return 0;
    return settings->take_result(settings->user, root->ranks.gpu_total, session, result, err);
}

static int root_keep_result(struct root *root, size_t rank, struct result_message *message,
                            struct err *err)
{
    const struct gpu_result *result = &message->result;
    log_debug("%s on %s, rank %zu: %s%s%s", result->uuid, result->node, rank,
              gpu_status_name(result->status), result->reason ? ": " : "",
              result->reason ? result->reason : "");
    if (root->settings.recording)
        recording_add(root->settings.recording, message->record, message->record_bytes);
    if (message->unspooled && !root->unspooled++) {
        root->unspooled_why = message->unspooled;
        message->unspooled = NULL;
    }
    int rc = root_pass_on(root, 0, &message->result, err);
    if (!rc)
        ranks_done(&root->ranks, rank, message->position);
    return rc;
}

static int root_keep_repeat(struct root *root, size_t rank, struct result_message *message,
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
    if (root->settings.recording)
        recording_add(root->settings.recording, message->record, message->record_bytes);
    return root_pass_on(root, message->session, &message->result, err);
}

static int root_take_result(struct root *root, size_t rank, const struct frame *frame,
                            struct err *err)
{
    struct result_message message = {0};
    int rc = message_result_decode(frame, &message, err);
    if (rc)
        return rc;
    uint32_t position = message.position;
    if (!ranks_expects(&root->ranks, rank, position, message.result.uuid))
        rc = err_set(err, -EBADMSG, "unexpected result");
    else if (message.session)
        rc = root_keep_repeat(root, rank, &message, err);
    else if (!root->ranks.items[rank].received[position])
        rc = root_keep_result(root, rank, &message, err);
    message_result_fini(&message);
    return rc;
}

/* Answers a heartbeat, so that the rank knows that rank 0 lives. Rank 0 does not answer itself. */
static int root_take_beat(struct root *root, size_t rank, const struct frame *frame,
                          struct err *err)
{
    struct strbuf nothing = {0};
    int rc = doing_decode(frame, &root->ranks.items[rank].doing, err);
    if (!rc && root->comm->rank != (int)rank)
        root_send(root, rank, MESSAGE_BEAT, &nothing);
    return rc;
}

bool root_slowest(const struct root *root, struct root_slowest *out)
{
    struct root_slowest found = {0};
    for (size_t rank = 0; rank < root->ranks.count; rank++) {
        const struct known_rank *member = &root->ranks.items[rank];
        const struct doing *doing = &member->doing;
        if (member->state != RANK_MEASURING || !doing->probe[0] ||
            doing->position >= member->announce.gpu_count || member->received[doing->position])
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
        return root_take_beat(root, rank, &message->frame, err);
    case MESSAGE_ANNOUNCE:
        return ranks_announce(&root->ranks, rank, &message->frame, err);
    case MESSAGE_RESULT:
        return root_take_result(root, rank, &message->frame, err);
    default:
        return err_set(err, -EBADMSG, "unexpected message of type %u", message->frame.type);
    }
}

/* Warns of ranks that see no GPU while others do: usually a launcher's option is missing. */
static void warn_of_ranks_without_gpu(const struct root *root)
{
    enum { WARNINGS_MAX = 3 };
    size_t without = 0;
    for (size_t rank = 0; rank < root->ranks.count; rank++) {
        const struct known_rank *member = &root->ranks.items[rank];
        if (!rank_state_is_announced(member->state) ||
            member->announce.listing != LISTING_NO_DEVICE || member->announce.gpus_allocated)
            continue;
        if (without++ < WARNINGS_MAX)
            log_warning("no GPU visible to rank %d on %.60s: %s", root->ranks.first + (int)rank,
                        member->announce.host, member->announce.err.text);
    }
    if (without > WARNINGS_MAX)
        log_warning("no GPU visible to %zu more ranks", without - WARNINGS_MAX);
}

static int root_no_gpu(const struct announce *first, struct err *err)
{
    struct err ignored = {0};
    char *fleet = NULL;
    const char *lacks = slurm_missing_gpus(getenv);
    if (lacks)
        return err_set(err, -EINVAL, "no GPU to survey: %s", lacks);
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
static void fail_ranks_without_their_gpus(struct root *root)
{
    for (size_t rank = 0; rank < root->ranks.count; rank++) {
        struct announce *announce = &root->ranks.items[rank].announce;
        if (!rank_state_is_announced(root->ranks.items[rank].state) || !announce->gpus_allocated ||
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
        return root_no_gpu(first, err);
    warn_of_ranks_without_gpu(root);
    fail_ranks_without_their_gpus(root);
    return 0;
}

static void node_list_add(struct node_list *list, const char *name, const char *boot_id, bool empty)
{
    list->entries =
        mem_grow(list->entries, &list->capacity, list->count + 1, sizeof *list->entries);
    list->entries[list->count++] = (struct node_entry){name, boot_id, empty};
}

/* Adds what one rank announced: the nodes of its GPUs, nodes known to have no GPU, and its own host
 * unless the GPUs are simulated. If listing failed, the rank's host does not count as a node
 * without a GPU. */
static void node_list_add_announced(struct node_list *list, const struct announce *announce,
                                    bool simulated)
{
    const char *boot_id = simulated ? NULL : announce->boot_id;
    for (size_t i = 0; i < announce->gpu_count; i++)
        if (!i || !str_equal(announce->gpus[i].node, announce->gpus[i - 1].node))
            node_list_add(list, announce->gpus[i].node, boot_id, false);
    for (size_t i = 0; i < announce->bare_count; i++)
        node_list_add(list, announce->bare_nodes[i], boot_id, true);
    for (size_t i = 0; i < announce->dead_count; i++)
        node_list_add(list, announce->dead[i].node, boot_id, false);
    if (!simulated && !announce->gpu_count)
        node_list_add(list, announce->host, boot_id, announce->listing != LISTING_FAILED);
}

static int node_announcement_order(const void *a, const void *b)
{
    const struct node_entry *left = a, *right = b;
    int order = str_order(left->name, right->name);
    return order ? order : str_order(left->boot_id, right->boot_id);
}

/* Counts the nodes, in O(n log n). */
static void root_count_nodes(struct root *root)
{
    struct node_list *list = &root->nodes;
    for (size_t rank = 0; rank < root->ranks.count; rank++)
        if (rank_state_is_announced(root->ranks.items[rank].state))
            node_list_add_announced(list, &root->ranks.items[rank].announce,
                                    root->settings.simulated);
    list->bare = mem_array(list->count, sizeof *list->bare);
    if (list->count)
        sort_stable(list->entries, list->count, sizeof *list->entries, node_announcement_order);
    for (size_t i = 0; i < list->count;) {
        const struct node_entry *first = &list->entries[i];
        bool empty = true;
        for (; i < list->count && node_announcement_order(first, &list->entries[i]) == 0; i++)
            empty &= list->entries[i].empty;
        list->node_count++;
        if (empty)
            list->bare[list->bare_count++] = first->name;
    }
}

/* All GPUs are known, and none is measured yet. */
static int root_check_memory(const struct root *root, struct err *err)
{
    size_t gpus = root->ranks.gpu_total;
    struct err why = {0};
    if (gpus < RESOURCES_FEW_GPUS)
        return 0;
    const struct resources_memory memory = resources_find_memory("/proc", "/sys/fs/cgroup");
    enum resources_verdict verdict = resources_for_gpus(&memory, gpus, &why);
    if (verdict == RESOURCES_TOO_SMALL) {
        *err = why;
        return why.code;
    }
    if (verdict == RESOURCES_SCARCE)
        log_warning("%s", why.text);
    return 0;
}

/* Spools the plan of the survey before anything is measured, so that a missing result can be named
 * later. Unmeasured are only ranks of which nothing is known. A write error is kept by the
 * spooling. */
static void root_spool_plan(const struct root *root)
{
    const struct root_settings *settings = &root->settings;
    const struct ranks *ranks = &root->ranks;
    struct gpu_result *expected = mem_array(ranks->gpu_total, sizeof *expected);
    char **command = mem_array(settings->command_count, sizeof *command);
    struct spool_survey plan = {
        .command = command,
        .command_count = settings->command_count,
        .config_name = (char *)settings->config_name,
        .config_text = (char *)settings->config_text,
        .ranks = (uint32_t)root->comm->place.tasks,
        .apart = comm_is_standalone(root->comm),
        .rank = (uint32_t)root->comm->place.task,
        .nodes = (uint32_t)root->nodes.node_count,
        .lost_ranks = (uint32_t)ranks_lost(ranks),
        .bare_nodes = (char **)root->nodes.bare,
        .bare_count = root->nodes.bare_count,
        .expected = expected,
        .unknown = ranks->unmeasured.items,
        .unknown_count = ranks->unmeasured.count,
    };
    for (size_t i = 0; i < plan.command_count; i++)
        command[i] = i ? settings->command[i] : (char *)str_last_part(settings->command[i]);
    for (size_t rank = 0; rank < ranks->count; rank++) {
        const struct known_rank *member = &ranks->items[rank];
        for (size_t i = 0; i < member->share.count; i++) {
            struct gpu_result *gpu = &expected[plan.expected_count++];
            *gpu = member->announce.gpus[member->share.positions[i]]; /* borrows all strings */
            gpu->rank = ranks->first + (int32_t)rank;
        }
    }
    spooling_survey(settings->spooling, &plan);
    free(expected);
    free(command);
}

static void root_send_assignment(struct root *root, size_t rank)
{
    const struct root_settings *settings = &root->settings;
    const struct spooling *spooling = settings->spooling;
    const struct assign_share *share = &root->ranks.items[rank].share;
    struct strbuf payload = {0};
    const struct assignment assignment = {
        .time_limit_s = settings->time_limit_s,
        .stagger_s = root->nodes.node_count > 1 ? settings->stagger_s : 0,
        .region_bytes = settings->region_bytes,
        .positions = share->positions,
        .count = share->count,
        .spool = spooling ? spooling->folder : NULL,
        .survey = spooling ? spooling->survey : NULL,
        .owner = spooling ? spooling->owner.path : NULL,
    };
    assignment_encode(&assignment, &payload);
    root_send(root, rank, MESSAGE_ASSIGN, &payload);
}

/* All ranks have announced themselves, or their time is over. */
static int root_begin_measuring(struct root *root, double now_s, struct err *err)
{
    struct ranks *ranks = &root->ranks;
    int rc = check_listings(root, err);
    if (rc)
        return rc;
    ranks_assign(ranks, root->settings.standalone_job);
    rc = root_check_memory(root, err);
    if (rc)
        return rc;
    ranks_open(ranks, now_s);
    root_count_nodes(root);
    if (root->settings.spooling)
        root_spool_plan(root);
    for (size_t rank = 0; rank < ranks->count; rank++)
        if (rank_state_is_announced(ranks->items[rank].state))
            root_send_assignment(root, rank);
    return 0;
}

int root_step(struct root *root, double now_s, struct err *err)
{
    struct ranks *ranks = &root->ranks;
    ranks->now_s = now_s;
    if (!ranks_assigned(ranks) && (ranks_all_announced(ranks) || now_s > root->announce_until_s))
        return root_begin_measuring(root, now_s, err);
    ranks_check(ranks, now_s);
    return 0;
}

int root_suspect_order(const void *left, const void *right)
{
    const struct root_suspect *a = left, *b = right;
    return strcmp(a->uuid, b->uuid);
}

void root_measure_again(struct root *root, const struct root_suspect *suspects, size_t count)
{
    for (size_t rank = 0; rank < root->ranks.count; rank++) {
        const struct known_rank *member = &root->ranks.items[rank];
        for (size_t i = 0; i < member->share.count; i++) {
            uint32_t position = member->share.positions[i];
            const struct root_suspect wanted = {.uuid = member->announce.gpus[position].uuid};
            const struct root_suspect *found =
                bsearch(&wanted, suspects, count, sizeof wanted, root_suspect_order);
            struct strbuf payload = {0};
            if (!found || !ranks_ask_again(&root->ranks, rank, position))
                continue;
            again_encode(&(struct again){.position = position, .probes = (char *)found->probes},
                         &payload);
            root_send(root, rank, MESSAGE_AGAIN, &payload);
        }
    }
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
    const struct spooling *spooling = root->settings.spooling;
    int rc = 0;
    for (size_t i = root->ranks.unmeasured.count; spooling && i > 0 && !rc; i--) {
        const char *uuid = root->ranks.unmeasured.items[i - 1].uuid;
        struct gpu_result result = {0};
        if (!uuid || spool_read_gpu(spooling->folder, spooling->survey, uuid, &result))
            continue;
        ranks_recovered(&root->ranks, i - 1);
        rc = root_pass_on(root, 0, &result, err);
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
        .unmeasured = ranks->unmeasured.items,
        .unmeasured_count = ranks->unmeasured.count,
        .bare_nodes = root->nodes.bare,
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
    free(root->nodes.entries);
    free(root->nodes.bare);
    free(root->unspooled_why);
    free(root);
}
