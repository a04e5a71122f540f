/* The replay backend's device: its answers come from a record. */
#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"
#include "device/replay/answer.h"
#include "device/replay/slot.h"
#include "schema/wire.h"

struct replayed {
    struct device base;
    struct slot *slot;
};

/* True when the worker did not end by itself: nothing is recorded after that point. */
static bool is_cut(const struct slot *slot)
{
    return !slot->gpu->closed && slot->gpu->gpu.status != GPU_OK;
}

static int end_here(struct slot *slot, struct err *err)
{
    const struct gpu_result *gpu = &slot->gpu->gpu;
    slot->ended = true;
    return err_set(err, -EIO, "the record ends: %s, %s", gpu_status_name(gpu->status),
                   gpu->reason ? gpu->reason : "");
}

static int miss(struct slot *slot, const struct ask *ask, struct err *err)
{
    struct strbuf what = {0};
    const char *mark = calls_mark_text(slot->calls);
    ask_describe(ask, &what);
    if (!slot->missed++)
        strbuf_printf(&slot->first, "by %s: %s", *mark ? mark : "no probe",
                      what.data ? what.data : "");
    slot->remark.length = 0;
    strbuf_printf(&slot->remark, "%zu request%s not in the record, the first %s", slot->missed,
                  slot->missed == 1 ? " is" : "s are", slot->first.data ? slot->first.data : "");
    bool told = !what.failed && !slot->first.failed && !slot->remark.failed;
    int rc = told ? err_set(err, -ENOENT, "not in the record%s: %s",
                            slot->gpu->closed ? "" : ", which is not complete",
                            what.data ? what.data : "")
                  : err_no_memory(err);
    strbuf_fini(&what);
    return rc;
}

/* Finds the recorded answer: 0 or the recorded error, and the values behind it. If there is none,
 * returns an error and no values. */
static int find(struct slot *slot, const struct ask *ask, struct wire_reader *out_values,
                struct err *err)
{
    bool cut = is_cut(slot);
    const struct call *call = NULL;
    *out_values = (struct wire_reader){0};
    if (calls_find(slot->calls, ask_key(ask), cut, &call))
        return err_no_memory(err);
    if (!call || !call->answered)
        return cut ? end_here(slot, err) : miss(slot, ask, err);
    *out_values =
        (struct wire_reader){.data = (const unsigned char *)slot->body.data + call->position,
                             .length = call->end - call->position};
    return call->failed ? answer_get_err(out_values, err) : 0;
}

static struct slot *slot_in(struct device *device)
{
    return ((struct replayed *)device)->slot;
}

/* Sets every fact of a recorded table. */
static int set_facts(struct wire_reader *values, struct facts *facts)
{
    struct facts recorded = {0};
    wire_get_facts(values, &recorded);
    int rc = values->no_memory ? -ENOMEM : 0;
    for (size_t i = 0; i < recorded.count && !rc; i++)
        rc = facts_set(facts, &recorded.items[i]);
    facts_fini(&recorded);
    return rc;
}

int slot_find_facts(struct slot *slot, enum ask_call call, struct facts *const *tables,
                    struct err *err)
{
    const struct ask ask = ask_of_call(call);
    struct wire_reader values;
    int rc = find(slot, &ask, &values, err);
    for (size_t i = 0; i < ask_tables(call); i++)
        if (set_facts(&values, tables[i]))
            return err_no_memory(err);
    return rc;
}

static int replay_identify(struct device *device, struct facts *hardware, struct facts *board,
                           struct facts *config, struct err *err)
{
    struct facts *const tables[] = {hardware, board, config};
    return slot_find_facts(slot_in(device), ASK_IDENTIFY, tables, err);
}

static int replay_read_health(struct device *device, struct facts *config, struct facts *health,
                              struct err *err)
{
    struct facts *const tables[] = {config, health};
    return slot_find_facts(slot_in(device), ASK_HEALTH, tables, err);
}

/* If this use of the link was not recorded, nothing is known of it; the requests that follow will
 * fail. */
static void replay_begin_link(struct device *device, struct device_link *out_link)
{
    const struct ask ask = ask_of_call(ASK_LINK);
    struct wire_reader values;
    struct err ignored = {0};
    *out_link = (struct device_link){0};
    if (find(slot_in(device), &ask, &values, &ignored) == 0)
        answer_get_link(&values, out_link);
}

static int replay_run_batch(struct device *device, const struct device_batch *batch,
                            struct device_answer *answers, struct err *err)
{
    int rc = 0;
    for (size_t i = 0; i < batch->job_count && !rc; i++) {
        const struct ask ask = ask_of_job(&batch->jobs[i], batch->at_once);
        struct wire_reader values;
        rc = find(slot_in(device), &ask, &values, err);
        if (rc == -ENOENT && batch->job_count > 1)
            err_prefix(err, "job %zu of %zu", i + 1, batch->job_count);
        if (rc)
            break;
        answer_get_job(&values, &batch->jobs[i], device->limits.sm_count, &answers[i]);
        if (values.bad) /* not damage, which was found when the record was read */
            rc = err_no_memory(err);
    }
    if (rc)
        device_answers_fini(answers, batch->job_count);
    return rc;
}

static int replay_run_stream(struct device *device, const struct device_stream *stream,
                             struct device_stream_answer *out_answer, struct err *err)
{
    const struct ask ask = ask_of_stream(stream);
    struct wire_reader values;
    int rc = find(slot_in(device), &ask, &values, err);
    if (rc)
        return rc;
    out_answer->bytes = wire_get_varint(&values);
    out_answer->elapsed_ns = wire_get_varint(&values);
    return 0;
}

static int replay_test_memory(struct device *device, const struct device_memory_test *test,
                              struct device_memory_map *out_map, struct err *err)
{
    const struct ask ask = ask_of_memory_test(test);
    struct wire_reader values;
    int rc = find(slot_in(device), &ask, &values, err);
    if (rc)
        return rc;
    answer_get_map(&values, test->patterns, out_map);
    return values.bad ? err_no_memory(err) : 0; /* damage was found when the record was read */
}

static int replay_check_unit(struct device *device, const struct device_check *check,
                             struct device_check_answer *out_answer, struct err *err)
{
    const struct ask ask = ask_of_check(check);
    struct wire_reader values;
    int rc = find(slot_in(device), &ask, &values, err);
    if (rc)
        return rc;
    answer_get_check(&values, out_answer);
    return values.bad ? err_no_memory(err) : 0; /* damage was found when the record was read */
}

static int replay_run_code(struct device *device, const struct device_code *code,
                           struct device_code_answer *out_answer, struct err *err)
{
    const struct ask ask = ask_of_code(code);
    struct wire_reader values;
    int rc = find(slot_in(device), &ask, &values, err);
    if (rc)
        return rc;
    answer_get_code(&values, out_answer);
    return 0;
}

static int replay_run_straight(struct device *device, const struct device_straight *straight,
                               struct device_straight_answer *out_answer, struct err *err)
{
    const struct ask ask = ask_of_straight(straight);
    struct wire_reader values;
    int rc = find(slot_in(device), &ask, &values, err);
    if (rc)
        return rc;
    answer_get_straight(&values, out_answer);
    return 0;
}

static int replay_run_cluster(struct device *device, const struct device_cluster *cluster,
                              struct device_cluster_answer *out_answer, struct err *err)
{
    const struct ask ask = ask_of_cluster(cluster);
    struct wire_reader values;
    int rc = find(slot_in(device), &ask, &values, err);
    if (rc)
        return rc;
    answer_get_cluster(&values, cluster, device->limits.sm_count, out_answer);
    return values.bad ? err_no_memory(err) : 0; /* damage was found when the record was read */
}

static int replay_copy_bulk(struct device *device, const struct device_bulk *bulk,
                            struct device_bulk_answer *out_answer, struct err *err)
{
    const struct ask ask = ask_of_bulk(bulk);
    struct wire_reader values;
    int rc = find(slot_in(device), &ask, &values, err);
    if (rc)
        return rc;
    answer_get_bulk(&values, out_answer);
    return 0;
}

/* An answer of another length than the SMs of the device have would not be found by its reader. */
static int replay_map_sms(struct device *device, const struct device_sm_map *map,
                          struct device_sm_map_answer *out_answer, struct err *err)
{
    uint32_t sms = device->limits.sm_count;
    const struct ask ask = ask_of_sm_map(map, sms);
    struct wire_reader values;
    int rc = find(slot_in(device), &ask, &values, err);
    if (rc)
        return rc;
    answer_get_sm_map(&values, out_answer);
    if (values.bad)
        return err_no_memory(err); /* damage was found when the record was read */
    size_t each = map->kind == DEVICE_SM_MAP_READ ? 2 : map->regions;
    return out_answer->value_count == sms * each
               ? 0
               : err_set(err, -ENODATA, "the record has a map of another number of SMs");
}

static int replay_load_shared(struct device *device, const struct device_shared_load *load,
                              struct device_shared_load_answer *out_answer, struct err *err)
{
    const struct ask ask = ask_of_shared_load(load);
    struct wire_reader values;
    int rc = find(slot_in(device), &ask, &values, err);
    if (rc)
        return rc;
    out_answer->cycles = wire_get_varint(&values);
    return 0;
}

static int replay_run_load(struct device *device, const struct device_load *load,
                           struct device_load_answer *out_answer, struct err *err)
{
    const struct ask ask = ask_of_load(load);
    struct wire_reader values;
    int rc = find(slot_in(device), &ask, &values, err);
    if (rc)
        return rc;
    answer_get_load(&values, out_answer);
    return values.bad ? err_no_memory(err) : 0; /* damage was found when the record was read */
}

static int replay_list_peers(struct device *device, struct facts *out_gpus, struct err *err)
{
    return slot_find_facts(slot_in(device), ASK_PEERS, &out_gpus, err);
}

static int replay_test_peer(struct device *device, const struct device_peer_test *test,
                            struct device_peer_answer *out_answer, struct err *err)
{
    const struct ask ask = ask_of_peer_test(test);
    struct wire_reader values;
    int rc = find(slot_in(device), &ask, &values, err);
    if (rc)
        return rc;
    answer_get_peer(&values, out_answer);
    return 0;
}

static int replay_share_host(struct device *device, const struct device_host_share *asked,
                             struct device_host_share_answer *out_answer, struct err *err)
{
    const struct ask ask = ask_of_host_share(asked);
    struct wire_reader values;
    int rc = find(slot_in(device), &ask, &values, err);
    if (rc)
        return rc;
    answer_get_share(&values, out_answer);
    return 0;
}

static int replay_read_clocks(struct device *device, struct device_clocks *out_clocks,
                              struct err *err)
{
    const struct ask ask = ask_of_call(ASK_CLOCKS);
    struct wire_reader values;
    int rc = find(slot_in(device), &ask, &values, err);
    if (rc)
        return rc;
    answer_get_clocks(&values, out_clocks);
    return 0;
}

static void replay_mark(struct device *device, const char *what)
{
    /* If this fails, the next request returns -ENOMEM. */
    (void)calls_mark(slot_in(device)->calls, what);
}

/* A record that was cut off does not tell what came later. */
static bool replay_knows(struct device *device, const char *what)
{
    const struct slot *slot = slot_in(device);
    return is_cut(slot) || calls_has_mark(slot->calls, what);
}

static void replay_destroy(struct device *device)
{
    free(device);
}

static const struct device_ops replay_ops = {
    .backend = "replay",
    .identify = replay_identify,
    .run_batch = replay_run_batch,
    .run_stream = replay_run_stream,
    .test_memory = replay_test_memory,
    .check_unit = replay_check_unit,
    .map_sms = replay_map_sms,
    .run_load = replay_run_load,
    .run_code = replay_run_code,
    .load_shared = replay_load_shared,
    .run_straight = replay_run_straight,
    .run_cluster = replay_run_cluster,
    .copy_bulk = replay_copy_bulk,
    .list_peers = replay_list_peers,
    .test_peer = replay_test_peer,
    .share_host = replay_share_host,
    .read_clocks = replay_read_clocks,
    .read_health = replay_read_health,
    .begin_link = replay_begin_link,
    .mark = replay_mark,
    .knows = replay_knows,
    .destroy = replay_destroy,
};

int slot_open(struct slot *slot, struct device **out_device, struct err *err)
{
    const struct ask ask = ask_of_call(ASK_OPEN);
    struct wire_reader values;
    int rc = find(slot, &ask, &values, err);
    struct replayed *self = rc ? NULL : mem_array(1, sizeof *self);
    if (rc)
        return rc;
    if (!self)
        return err_no_memory(err);
    self->base.ops = &replay_ops;
    self->slot = slot;
    answer_get_limits(&values, &self->base.limits);
    *out_device = &self->base;
    return 0;
}
