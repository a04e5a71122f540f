/* What collecting costs rank 0: so many senders in this process, each with one GPU whose result is
 * a real one, judged as it comes.
 * usage: bench_gather SPOOL_FILE SENDERS */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/yaml.h"
#include "inventory/wire/spool.h"
#include "report/basis.h"
#include "survey/comm/message.h"
#include "survey/root/judging.h"
#include "survey/root/root.h"

static void fail(const char *what, const struct err *err)
{
    fprintf(stderr, "%s: %s\n", what, err->text);
    exit(1);
}

/* Counts what rank 0 sends. */
struct counter {
    struct comm base;
    size_t sent_bytes;
};

static int count_send(struct comm *comm, int to, struct strbuf *bytes, struct err *err)
{
    (void)to, (void)err;
    ((struct counter *)comm)->sent_bytes += bytes->length;
    strbuf_fini(bytes);
    return 0;
}

static int no_receive(struct comm *comm, int *out_from, struct strbuf *out_bytes, struct err *err)
{
    (void)comm, (void)out_from, (void)out_bytes, (void)err;
    return 0;
}

static int no_flush(struct comm *comm)
{
    (void)comm;
    return 0;
}

static void no_destroy(struct comm *comm)
{
    (void)comm;
}

static double cpu_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static double peak_mib(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss / 1024;
}

struct bench {
    struct counter comm;
    struct root *root;
    struct gpu_result gpu; /* the same for all but UUID, node and rank */
    size_t received_bytes;
    double encoding_s; /* the senders' part, not rank 0's */
};

/* Through frames, as from MPI. */
static void deliver(struct bench *bench, int from, uint32_t type, struct strbuf *payload)
{
    struct strbuf bytes = {0};
    struct comm_message message = {.from = from};
    struct err err = {0};
    double begin_s = cpu_s();
    frame_write(&bytes, type, payload->data, payload->length);
    strbuf_fini(payload);
    bench->encoding_s += cpu_s() - begin_s;
    bench->received_bytes += bytes.length;
    message.reader.buffer = bytes;
    if (bytes.failed || frame_reader_next(&message.reader, &message.frame, &err) != 1 ||
        root_take(bench->root, &message, &err))
        fail("message", &err);
    comm_message_fini(&message);
}

static void name_gpu(struct bench *bench, int rank, char *uuid, char *node, size_t size)
{
    snprintf(uuid, size, "GPU-%08x-0000-4000-8000-%012x", rank, rank);
    snprintf(node, size, "gpu%05d", rank / 8);
    bench->gpu.uuid = uuid;
    bench->gpu.node = node;
    bench->gpu.rank = rank;
}

static void announce(struct bench *bench, int rank)
{
    char uuid[64], node[64];
    struct strbuf payload = {0};
    double begin_s = cpu_s();
    name_gpu(bench, rank, uuid, node, sizeof uuid);
    struct announce announce = {
        .host = node, .boot_id = (char *)"x", .gpus = &bench->gpu, .gpu_count = 1};
    announce_encode(&announce, &payload);
    bench->encoding_s += cpu_s() - begin_s;
    deliver(bench, rank, MESSAGE_ANNOUNCE, &payload);
}

static void send_result(struct bench *bench, int rank)
{
    char uuid[64], node[64];
    struct strbuf payload = {0};
    double begin_s = cpu_s();
    name_gpu(bench, rank, uuid, node, sizeof uuid);
    const struct result_message message = {.result = bench->gpu};
    message_result_encode(&message, &payload);
    bench->encoding_s += cpu_s() - begin_s;
    deliver(bench, rank, MESSAGE_RESULT, &payload);
}

static void load(struct bench *bench, const char *path)
{
    struct strbuf bytes = {0};
    struct spool_file file = {0};
    struct err err = {0};
    if (yaml_load_text(path, &yaml_limits_inventory, &bytes, &err) ||
        spool_read(bytes.data, bytes.length, path, &file, &err) || file.kind != SPOOL_GPU)
        fail("spool file", &err);
    strbuf_fini(&bytes);
    bench->gpu = file.gpu; /* the rest stays: this program ends soon */
}

int main(int argc, char **argv)
{
    static const struct comm_ops ops = {count_send, no_receive, no_flush, no_destroy};
    struct bench bench = {0};
    struct report_basis basis = {0};
    struct err err = {0};
    int senders = argc == 3 ? atoi(argv[2]) : 0;
    if (senders < 1)
        return 2;
    load(&bench, argv[1]);
    if (report_basis_load_config(NULL, &basis, &err))
        fail("configuration", &err);
    const struct judge_basis view = report_basis_view(&basis, NULL);
    struct judging judging = {.basis = &view};
    const struct comm_place place = {.tasks = senders, .job = ""};
    comm_init(&bench.comm.base, &ops, -1, senders, &place);
    const struct root_settings settings = {
        .time_limit_s = 10, .take_result = judging_take, .user = &judging};
    bench.root = root_create(&bench.comm.base, &settings, 0);
    double begin_s = cpu_s();
    for (int rank = 0; rank < senders; rank++)
        announce(&bench, rank);
    if (root_step(bench.root, 1, &err))
        fail("assignment", &err);
    for (int rank = 0; rank < senders; rank++)
        send_result(&bench, rank);
    double gather_s = cpu_s() - begin_s - bench.encoding_s;
    double gather_mib = peak_mib();
    if (!root_complete(bench.root))
        return 1;
    struct inventory inventory = {0};
    begin_s = cpu_s();
    judging_finish(&judging, &inventory);
    double judge_s = cpu_s() - begin_s;
    struct strbuf text = {0};
    begin_s = cpu_s();
    inventory_print(&inventory, &text);
    double print_s = cpu_s() - begin_s;
    printf("%d %.3f %.0f %.1f %.1f %.3f %.3f %.1f %.0f\n", senders, gather_s, gather_mib,
           (double)bench.received_bytes / 1e6, (double)bench.comm.sent_bytes / 1e6, judge_s,
           print_s, (double)text.length / 1e6, peak_mib());
    return 0;
}
