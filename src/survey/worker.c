/* The worker process: lists the GPUs of a source or measures one of them, and answers in frames. */
#include "survey/worker.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/host.h"
#include "base/io.h"
#include "base/str.h"
#include "device/record/record.h"
#include "device/record/replay.h"
#include "device/source.h"
#include "inventory/gpu_result.h"
#include "inventory/wire/frame.h"
#include "probes/probes.h"
#include "schema/schema.h"
#include "survey/comm/message.h"

static bool request_is_sound(const void *object)
{
    const struct worker_request *request = object;
    return request->rank < request->ranks && (request->task != WORKER_MEASURE || request->uuid);
}

static const struct schema_field request_fields[] = {
    {"task", SCHEMA_ENUM, .offset = offsetof(struct worker_request, task),
     .name_count = WORKER_MEASURE + 1},
    {"parent", FIELD_U64(struct worker_request, parent)},
    {"fleet", FIELD_TEXT(struct worker_request, fleet), .flags = SCHEMA_NULL},
    {"replay", FIELD_TEXT(struct worker_request, replay), .flags = SCHEMA_NULL},
    {"record", FIELD_BOOL(struct worker_request, record)},
    {"seed", FIELD_U64(struct worker_request, seed)},
    {"rank", FIELD_U32(struct worker_request, rank)},
    {"ranks", FIELD_U32(struct worker_request, ranks)},
    {"uuid", FIELD_TEXT(struct worker_request, uuid), .flags = SCHEMA_NULL},
    {"profile", SCHEMA_ENUM, .offset = offsetof(struct worker_request, profile),
     .name_count = PROFILE_FULL + 1},
    {"probes", FIELD_TEXT(struct worker_request, probes), .flags = SCHEMA_NULL},
    {"measure_busy", FIELD_BOOL(struct worker_request, measure_busy)},
    {"session", FIELD_U32(struct worker_request, session)},
    {"attempt", FIELD_U32(struct worker_request, attempt)},
    {"load_s", FIELD_F64(struct worker_request, load_s)},
    {"load_one", FIELD_BOOL(struct worker_request, load_one)},
    {"stagger_s", FIELD_F64(struct worker_request, stagger_s)},
    {"limit_s", FIELD_F64(struct worker_request, limit_s)},
    {"region_bytes", FIELD_U64(struct worker_request, region_bytes)},
};
static const struct schema request_schema = {"request", sizeof(struct worker_request),
                                             SCHEMA_FIELDS(request_fields),
                                             .sound = request_is_sound};

void worker_request_write(const struct worker_request *request, struct strbuf *buffer)
{
    struct strbuf payload = {0};
    schema_encode(&request_schema, request, &payload);
    frame_write(buffer, WORKER_REQUEST, payload.data, payload.length);
    strbuf_fini(&payload);
}

int worker_request_decode(const struct frame *frame, struct worker_request *out_request,
                          struct err *err)
{
    struct worker_request request = {0};
    if (frame->type != WORKER_REQUEST)
        return err_set(err, -EBADMSG, "not a request");
    int rc = message_decode(&request_schema, frame, &request, err);
    if (!rc)
        *out_request = request;
    return rc;
}

void worker_request_fini(struct worker_request *request)
{
    schema_fini(&request_schema, request);
}

/* MPI and the launcher leave descriptors without CLOEXEC open. A worker that kept one would hold a
 * socket of its rank open. */
static void worker_close_inherited(int first)
{
    enum { OLD_KERNEL_FD_MAX = 4096 };
    if (close_range((unsigned)first, ~0u, 0) == 0)
        return;
    for (int fd = first; fd < OLD_KERNEL_FD_MAX; fd++)
        close(fd);
}

/* Sends one frame and releases the payload. */
static int worker_answer(enum worker_message type, struct strbuf *payload, struct err *err)
{
    struct strbuf bytes = {0};
    frame_write(&bytes, type, payload->data, payload->length);
    int rc = io_write_all(WORKER_ANSWER_FD, bytes.data, bytes.length);
    if (rc)
        err_set(err, rc, "cannot write to the rank: %s", strerror(-rc));
    strbuf_fini(&bytes);
    strbuf_fini(payload);
    return rc;
}

static int worker_answer_text(enum worker_message type, const char *text, struct err *err)
{
    struct strbuf payload = {0};
    wire_put_text(&payload, text);
    return worker_answer(type, &payload, err);
}

static int worker_answer_result(enum worker_message type, const struct gpu_result *result,
                                struct err *err)
{
    struct strbuf payload = {0};
    gpu_result_encode(result, &payload);
    return worker_answer(type, &payload, err);
}

/* -ENODATA: stdin ended before a request. */
static int worker_read_request(struct worker_request *out_request, struct err *err)
{
    struct frame_reader reader = {0};
    struct frame frame;
    char block[4096];
    int rc = 0;
    while ((rc = frame_reader_next(&reader, &frame, err)) == 0) {
        ssize_t n = read(STDIN_FILENO, block, sizeof block);
        if (n < 0 && errno == EINTR)
            continue;
        if (n == 0 && !frame_reader_pending(&reader))
            rc = err_set(err, -ENODATA, "there is no request");
        else if (n <= 0)
            rc = err_set(err, -EBADMSG, "the request is not complete");
        if (rc)
            break;
        frame_reader_add(&reader, block, (size_t)n);
    }
    if (rc > 0)
        rc = worker_request_decode(&frame, out_request, err);
    frame_reader_fini(&reader);
    return rc;
}

static int worker_open_source(const struct worker_request *request,
                              struct device_source **out_source, struct err *err)
{
    struct device_source *source = NULL;
    int rc;
    if (request->replay)
        rc = device_source_replay(request->replay, request->rank, request->ranks, &source, err);
    else if (request->fleet)
        rc = device_source_sim(request->fleet, request->seed, request->rank, request->ranks,
                               &source, err);
    else
        rc = device_source_cuda(&source, err);
    if (rc)
        return rc;
    source->attempt = request->attempt;
    *out_source = request->record ? device_source_record(source, WORKER_RECORD_FD) : source;
    return 0;
}

/* Borrows the source's strings; must not be released. */
static struct gpu_result worker_identity(const struct device_info *info)
{
    return (struct gpu_result){
        .uuid = (char *)info->uuid,
        .node = (char *)info->node,
        .pci = (char *)info->pci,
        .index = info->index,
        .name = (char *)info->name,
        .model_key = (char *)info->model_key,
        .run.gpus_allocated = info->gpus_allocated,
    };
}

static int worker_list(struct device_source *source, const struct worker_request *request,
                       struct err *err)
{
    struct strbuf payload = {0};
    int rc = request->replay ? replay_check(source, err) : 0;
    for (size_t i = 0; i < device_source_count(source) && !rc; i++) {
        const struct gpu_result gpu = worker_identity(device_source_info(source, i));
        schema_encode(&message_identity, &gpu, &payload);
        rc = worker_answer(WORKER_INFO, &payload, err);
    }
    for (size_t i = 0; i < device_source_bare_count(source) && !rc; i++)
        rc = worker_answer_text(WORKER_BARE, device_source_bare_node(source, i), err);
    for (size_t i = 0; i < source->dead_count && !rc; i++) {
        const struct gpu_result node = {.node = (char *)source->dead_nodes[i].node,
                                        .reason = (char *)source->dead_nodes[i].reason,
                                        .run.gpus_allocated = source->dead_nodes[i].gpus_allocated};
        schema_encode(&message_dead_node, &node, &payload);
        rc = worker_answer(WORKER_DEAD, &payload, err);
    }
    return rc ? rc : worker_answer(WORKER_DONE, &payload, err);
}

/* The identity and, in a replay, what the record says of the GPU's first try. Borrows all
 * strings. */
static struct gpu_result worker_recorded_result(const struct device_source *source, size_t at)
{
    struct gpu_result result = worker_identity(device_source_info(source, at));
    const struct gpu_result *was = replay_recorded(source, at);
    if (was)
        result.run = was->run;
    return result;
}

/* What the worker is doing, and since when. */
struct lap {
    const char *name;
    double since_s;
};

/* Adds the time since the last call to the timing of what was begun then. */
static void worker_next_lap(struct gpu_result *result, struct lap *lap, const char *name)
{
    double now_s = clock_monotonic_s();
    const char *done = lap->name;
    double elapsed_s = now_s - lap->since_s;
    *lap = (struct lap){name, now_s};
    const struct fact *before = done ? facts_get(&result->timings, done) : NULL;
    if (done)
        facts_set_real(&result->timings, done, elapsed_s + (before ? before->real : 0));
}

/* The GPU that is measured. */
struct target {
    struct device_source *source;
    size_t at;      /* its index in the source */
    double begun_s; /* by clock_monotonic_s: when its time limit began */
    struct device *device;
};

/* How a recorded GPU ended, if the replay has reached that point; NULL: go on. */
static const struct gpu_result *worker_recorded_end(const struct target *target)
{
    return replay_ended(target->source, target->at);
}

/* Data of the observer; while probes run, `result` owns everything except the measures. */
struct measuring {
    const struct target *target;
    struct gpu_result *result;
    struct lap *lap;
    double started_s;
    struct err *err;
};

static int worker_on_begin(void *user, const char *probe)
{
    struct measuring *measuring = user;
    worker_next_lap(measuring->result, measuring->lap, probe);
    return worker_answer_text(WORKER_BEGIN, probe, measuring->err);
}

static int worker_on_end(void *user, const char *probe, const struct measures *measures,
                         double elapsed_s)
{
    (void)probe, (void)elapsed_s;
    struct measuring *measuring = user;
    if (worker_recorded_end(measuring->target))
        return -ECANCELED; /* in the record, this probe did not finish */
    struct gpu_result partial = *measuring->result;
    partial.measures = *measures;
    partial.elapsed_s = clock_monotonic_s() - measuring->started_s;
    return worker_answer_result(WORKER_PARTIAL, &partial, measuring->err);
}

static struct probe_options worker_probe_options(const struct target *target,
                                                 const struct worker_request *request)
{
    bool real = !request->fleet && !request->replay;
    const char *node = device_source_info(target->source, target->at)->node;
    char host[HOST_NAME_MAX_BYTES];
    host_name(host);
    /* The place of the node's start within the time over which the starts of all nodes are
     * spread. */
    double place = (double)(str_hash(node ? node : host) % 1000) / 1000;
    return (struct probe_options){.profile = request->profile,
                                  .seed = request->seed,
                                  .region_bytes = request->region_bytes,
                                  .load_s = request->load_s > 0 ? request->load_s : 0,
                                  .load_one = request->load_one,
                                  .load_wait_s = request->stagger_s * place,
                                  .ends_s = real ? target->begun_s + request->limit_s : 0};
}

static int worker_run_probes(const struct target *target, const struct worker_request *request,
                             struct gpu_result *result, struct lap *lap, struct err *err)
{
    struct probe_selection selection = {0};
    struct measures measures = {0};
    struct measuring measuring = {.target = target,
                                  .result = result,
                                  .lap = lap,
                                  .started_s = clock_monotonic_s(),
                                  .err = err};
    struct probe_options options = worker_probe_options(target, request);
    options.config = &result->config;
    const struct probe_observer observer = {worker_on_begin, worker_on_end, &measuring};
    int rc = probes_select(request->profile, request->probes, &selection, err);
    if (!rc && !request->session) {
        /* A replay has the load that was recorded, whatever the flags were then. */
        if (request->load_s > 0 || request->replay)
            probes_add(&selection, "load");
        else if (request->load_s >= 0)
            probes_remove(&selection, "load");
    }
    if (!rc)
        rc = probes_run(target->device, &selection, &options, &observer, &measures, err);
    result->measures = measures;
    gpu_result_take_fingerprint(result);
    result->elapsed_s = clock_monotonic_s() - measuring.started_s;
    free(selection.indices);
    return rc;
}

/* Marks a GPU on which other processes compute: they change what is measured there. */
static void worker_mark_busy(struct gpu_result *result)
{
    int64_t others = facts_int(&result->health, "processes", 0);
    if (others <= 0)
        return;
    result->status = GPU_BUSY;
    free(result->reason);
    result->reason = str_format("%lld other process%s on the GPU", (long long)others,
                                others == 1 ? " computes" : "es compute");
}

/* Sends what is known about a GPU before it is opened. If opening fails, or kills the worker, the
 * rank still knows which GPU it was. */
static int worker_look(struct device_source *source, size_t at, bool thorough,
                       struct gpu_result *result, struct err *err)
{
    struct device_look look = {result->board, result->config, result->health};
    int rc = device_source_look(source, at, thorough, &look, err);
    result->board = look.board;
    result->config = look.config;
    result->health = look.health;
    if (rc)
        return rc;
    worker_mark_busy(result);
    return worker_answer_result(WORKER_PARTIAL, result, err);
}

/* Reads the health, also after a failure, because it may show the cause; what is known is still
 * sent to the rank. The first failure is returned, not one of reading the health. */
static int worker_add_health(struct device *device, struct gpu_result *result, int rc,
                             struct err *err)
{
    struct err own = {0}, *to = rc ? &own : err;
    device_mark(device, "health");
    int read = device_read_health(device, &result->config, &result->health, to);
    if (!read)
        worker_mark_busy(result);
    if (!rc)
        return read;
    worker_answer_result(WORKER_PARTIAL, result, &own);
    return rc;
}

static int worker_measure_opened(const struct target *target, const struct worker_request *request,
                                 struct gpu_result *result, struct lap *lap, struct err *err)
{
    worker_next_lap(result, lap, "identifying");
    int rc =
        device_identify(target->device, &result->hardware, &result->board, &result->config, err);
    if (!rc)
        rc = worker_answer_result(WORKER_PARTIAL, result, err);
    if (!rc)
        rc = worker_run_probes(target, request, result, lap, err);
    if (!rc)
        worker_next_lap(result, lap, "health");
    return worker_recorded_end(target) ? rc : worker_add_health(target->device, result, rc, err);
}

static int worker_measure_target(struct target *target, const struct worker_request *request,
                                 struct gpu_result *result, struct err *err)
{
    struct lap lap = {"looking", clock_monotonic_s()};
    int rc = worker_answer_text(WORKER_BEGIN, "opening", err);
    if (rc)
        return rc;
    rc = worker_look(target->source, target->at, false, result, err);
    if (rc || (result->status == GPU_BUSY && !request->measure_busy))
        return rc;
    worker_next_lap(result, &lap, "opening");
    rc = device_source_open(target->source, target->at, &target->device, err);
    if (rc) {
        struct err ignored = {0};
        worker_look(target->source, target->at, true, result, &ignored);
        return rc;
    }
    rc = worker_measure_opened(target, request, result, &lap, err);
    if (!rc)
        worker_next_lap(result, &lap, NULL);
    return rc;
}

/* What was measured before the recorded GPU ended was already sent. */
static int worker_answer_ended(const struct gpu_result *ending, struct err *err)
{
    struct strbuf payload = {0};
    wire_put_u32(&payload, (uint32_t)ending->status);
    wire_put_text(&payload, ending->reason);
    wire_put_u32(&payload, (uint32_t)ending->run.first_status);
    wire_put_text(&payload, ending->run.first_reason);
    return worker_answer(WORKER_ENDED, &payload, err);
}

/* With a real GPU, exits at once: the kernel frees everything that the process held. Giving each
 * allocation, module and stream back to the driver first would do the same work twice, and wait for
 * a driver that may hang. Sanitized builds exit regularly, so that leaks are found. */
static void worker_exit_at_once(const struct device_source *source)
{
#ifndef GPUMEMTOPO_SANITIZED
    if (str_equal(source->ops->backend, "cuda"))
        _exit(0);
#else
    (void)source;
#endif
}

static int worker_measure(struct device_source *source, const struct worker_request *request,
                          struct err *err)
{
    struct target target = {.source = source, .begun_s = clock_monotonic_s()};
    struct gpu_result result = {0};
    source->session = request->session;
    size_t count = device_source_count(source);
    while (target.at < count &&
           !str_equal(device_source_info(source, target.at)->uuid, request->uuid))
        target.at++;
    if (target.at == count)
        return err_set(err, -ENODEV, "GPU %s is no longer visible", request->uuid);
    const struct gpu_result identity = worker_recorded_result(source, target.at);
    gpu_result_copy(&result, &identity);
    int rc = worker_measure_target(&target, request, &result, err);
    const char *missed = replay_missed(source, target.at);
    struct err ignored = {0}; /* a rank that does not read is noticed by the next answer */
    if (missed)
        worker_answer_text(WORKER_REMARK, missed, &ignored);
    if (worker_recorded_end(&target))
        rc = worker_answer_ended(worker_recorded_end(&target), err);
    else if (!rc)
        rc = worker_answer_result(WORKER_DONE, &result, err);
    if (!rc)
        worker_exit_at_once(source);
    device_destroy(target.device);
    gpu_result_fini(&result);
    return rc;
}

/* The worker that listed may be asked to measure one of the GPUs. Its driver is initialised
 * already, which takes as long as some probes. */
static int worker_list_and_stay(struct device_source *source, const struct worker_request *request,
                                struct err *err)
{
    struct worker_request next = {0};
    struct err dismissed = {0};
    int rc = worker_list(source, request, err);
    if (rc)
        return rc;
    rc = worker_read_request(&next, &dismissed);
    if (rc == -ENODATA)
        return 0;
    if (rc)
        *err = dismissed;
    else
        rc = worker_measure(source, &next, err);
    worker_request_fini(&next);
    return rc;
}

int worker_main(void)
{
    struct worker_request request = {0};
    struct device_source *source = NULL;
    struct err err = {0};
    struct strbuf payload = {0};
    if (prctl(PR_SET_PDEATHSIG, SIGKILL))
        return 1;
    signal(SIGTERM, SIG_IGN); /* the rank handles signals, and kills its workers */
    signal(SIGINT, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a record over the file size limit is cut off; measuring goes on */
    int rc = worker_read_request(&request, &err);
    worker_close_inherited((request.record ? WORKER_RECORD_FD : WORKER_ANSWER_FD) + 1);
    if (rc)
        goto out;
    /* The rank may have died before the prctl above. */
    if (getppid() != (pid_t)request.parent) {
        worker_request_fini(&request);
        return 1;
    }
    rc = worker_open_source(&request, &source, &err);
    if (!rc) {
        rc = request.task == WORKER_LIST ? worker_list_and_stay(source, &request, &err)
                                         : worker_measure(source, &request, &err);
        device_source_destroy(source);
    }
out:
    worker_request_fini(&request);
    if (!rc)
        return 0;
    if (!err.code)
        err_set(&err, rc, "%s", strerror(-rc));
    message_put_err(&payload, &err);
    return worker_answer(WORKER_FAIL, &payload, &err) ? 1 : 0;
}
