/* The table of device calls, and how a call is executed. The rows of most calls are in calls_*.c
 * and jobs.c; here are those of what the driver tells. */
#include "device/call_row.h"

#include <errno.h>
#include <string.h>

#include "device/source.h"

static const struct field look_rows[] = {
    {FIELD(struct device_look, board, FACTS)},
    {FIELD(struct device_look, config, FACTS)},
    {FIELD(struct device_look, health, FACTS)},
};
static const struct fields look_fields = {FIELDS(struct device_look, look_rows)};

static const struct field limits_rows[] = {
    {FIELD(struct device_limits, sm_count, U32)},
    {FIELD(struct device_limits, warp_count, U32)},
    {FIELD(struct device_limits, global_bytes, U64)},
    {FIELD(struct device_limits, wide_bytes, U64)},
    {FIELD(struct device_limits, constant_bytes, U64)},
    {FIELD(struct device_limits, shared_bytes_max, U64)},
    {FIELD(struct device_limits, shared_array_bytes, U64)},
    {FIELD(struct device_limits, host_bytes, U64)},
    {FIELD(struct device_limits, l2_reported_bytes, U64)},
    {FIELD(struct device_limits, timer_overhead_cycles, F64)},
    {FIELD(struct device_limits, l1_nominal_bytes, U64)},
    {FIELD(struct device_limits, l1_carveout_bytes, U64)},
    {FIELD_ALL(struct device_limits, carveout_steps, U64)},
    {FIELD(struct device_limits, carveout_reserve_bytes, U64)},
    {FIELD(struct device_limits, loads_max, U64)},
    {FIELD(struct device_limits, threads_per_sm, U32)},
    {FIELD(struct device_limits, l2_fetch_limit_bytes, U32)},
};
static const struct fields limits_fields = {FIELDS(struct device_limits, limits_rows)};

static const struct field identity_rows[] = {
    {FIELD(struct device_identity, hardware, FACTS)},
    {FIELD(struct device_identity, board, FACTS)},
    {FIELD(struct device_identity, config, FACTS)},
};
static const struct fields identity_fields = {FIELDS(struct device_identity, identity_rows)};

static const struct field health_rows[] = {
    {FIELD(struct device_health, config, FACTS)},
    {FIELD(struct device_health, health, FACTS)},
};
static const struct fields health_fields = {FIELDS(struct device_health, health_rows)};

static const struct field peers_rows[] = {{FIELD(struct device_peers, gpus, FACTS)}};
static const struct fields peers_fields = {FIELDS(struct device_peers, peers_rows)};

static const struct field clocks_rows[] = {
    {FIELD(struct device_clocks, sm_mhz, F64)},
    {FIELD(struct device_clocks, memory_mhz, F64)},
    {FIELD(struct device_clocks, throttle_reasons, U64)},
    {FIELD(struct device_clocks, throttle_known, BOOL)},
};
static const struct fields clocks_fields = {FIELDS(struct device_clocks, clocks_rows)};

static const struct field link_rows[] = {
    {FIELD(struct device_link, alone, BOOL)},
    {FIELD(struct device_link, near, BOOL)},
};
static const struct fields link_fields = {FIELDS(struct device_link, link_rows)};

static void link_begin(const void *request, void *answer)
{
    (void)request;
    *(struct device_link *)answer = (struct device_link){.alone = true, .near = true};
}

const struct device_call_row device_look_row = {ROW("look", NULL, &look_fields, 0, NULL),
                                                .keeps_facts = true};
CALL_FINI(device_look_fini, struct device_look, look_fields)

const struct device_call_row device_open_row = {ROW("open", NULL, &limits_fields, 0, NULL)};

const struct device_call_row device_identify_row = {
    ROW("identify", NULL, &identity_fields, 0, NULL), .keeps_facts = true};

const struct device_call_row device_read_clocks_row = {
    ROW("clocks", NULL, &clocks_fields, -ENOTSUP, "this device has no clocks")};

const struct device_call_row device_read_health_row = {ROW("health", NULL, &health_fields, 0, NULL),
                                                       .keeps_facts = true};

const struct device_call_row device_begin_link_row = {ROW("link", NULL, &link_fields, 0, NULL),
                                                      .begin = link_begin};

const struct device_call_row device_list_peers_row = {
    ROW("peers", NULL, &peers_fields, -ENOTSUP, "other GPUs of the node are not known"),
    .keeps_facts = true};

#define ROW_OF(name, function) [DEVICE_CALL_##name] = &device_##function##_row,
static const struct device_call_row *const rows[DEVICE_CALL_COUNT] = {
    ROW_OF(LOOK, look) ROW_OF(OPEN, open) DEVICE_CALLS(ROW_OF)};

const struct device_call_row *device_call_row(enum device_call call)
{
    return rows[call];
}

int device_call(struct device *device, enum device_call call, const void *request, void *answer,
                struct err *err)
{
    const struct device_call_row *row = device_call_row(call);
    size_t items = device_call_items(call, request);
    if (!row->keeps_facts)
        memset(answer, 0, items * row->answer->size);
    int rc = row->check ? row->check(device, request, err) : 0;
    if (rc)
        return rc;
    if (row->begin)
        row->begin(request, answer);
    if (device->ops->call)
        rc = device->ops->call(device, call, request, answer, err);
    else if (device->ops->calls[call])
        rc = device->ops->calls[call](device, request, answer, err);
    else if (row->absent)
        rc = err_set(err, row->absent_code, "%s", row->absent);
    if (!rc && row->finish)
        row->finish(request, answer);
    for (size_t i = 0; rc && !row->keeps_facts && i < items; i++)
        fields_fini(row->answer, (char *)answer + i * row->answer->size);
    return rc;
}

size_t device_call_items(enum device_call call, const void *request)
{
    const struct device_call_row *row = device_call_row(call);
    return row->count ? row->count(request) : 1;
}

void device_call_ask(enum device_call call, const struct device *device, const void *request,
                     size_t item, union device_call_room *out_asked)
{
    const struct device_call_row *row = device_call_row(call);
    if (row->ask)
        row->ask(device, request, item, out_asked);
    else if (row->asked)
        memcpy(out_asked, request, row->asked->size);
}

void device_call_describe(enum device_call call, const void *asked, struct strbuf *out_text)
{
    const struct device_call_row *row = device_call_row(call);
    if (row->describe) {
        row->describe(asked, out_text);
        return;
    }
    strbuf_puts(out_text, row->name);
    strbuf_puts(out_text, row->asked ? ": " : "");
    if (row->asked)
        fields_describe(row->asked, asked, out_text);
}

void device_call_document(struct strbuf *out_text)
{
    strbuf_puts(out_text, "| number | call | asked | answer |\n| --- | --- | --- | --- |\n");
    for (int call = 0; call < DEVICE_CALL_COUNT; call++) {
        const struct device_call_row *row = device_call_row((enum device_call)call);
        strbuf_printf(out_text, "| %d | %s | ", call, row->name);
        if (row->asked)
            fields_document(row->asked, out_text);
        strbuf_puts(out_text, " | ");
        fields_document(row->answer, out_text);
        strbuf_puts(out_text, " |\n");
    }
}

int device_run(struct device *device, const struct device_batch *batch,
               struct device_answer *answers, struct err *err)
{
    return device_call(device, DEVICE_CALL_BATCH, batch, answers, err);
}

int device_read_clocks(struct device *device, struct device_clocks *out_clocks, struct err *err)
{
    return device_call(device, DEVICE_CALL_CLOCKS, NULL, out_clocks, err);
}

void device_begin_link(struct device *device, struct device_link *out_link)
{
    struct err ignored = {0};
    (void)device_call(device, DEVICE_CALL_LINK, NULL, out_link, &ignored);
}

int device_identify(struct device *device, struct facts *hardware, struct facts *board,
                    struct facts *config, struct err *err)
{
    struct device_identity answer = {*hardware, *board, *config};
    int rc = device_call(device, DEVICE_CALL_IDENTIFY, NULL, &answer, err);
    *hardware = answer.hardware;
    *board = answer.board;
    *config = answer.config;
    return rc;
}

int device_read_health(struct device *device, struct facts *config, struct facts *health,
                       struct err *err)
{
    struct device_health answer = {*config, *health};
    int rc = device_call(device, DEVICE_CALL_HEALTH, NULL, &answer, err);
    *config = answer.config;
    *health = answer.health;
    return rc;
}

int device_list_peers(struct device *device, struct facts *out_gpus, struct err *err)
{
    struct device_peers answer = {*out_gpus};
    int rc = device_call(device, DEVICE_CALL_PEERS, NULL, &answer, err);
    *out_gpus = answer.gpus;
    return rc;
}
