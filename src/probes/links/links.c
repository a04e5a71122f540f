/* The probe of the links between GPUs: this GPU's row of the matrix of its node.
 *
 * Each worker measures from its own GPU to every other one that it sees, along the rounds of a
 * tournament: in a round each GPU has one partner. So the workers of a node, which come here at
 * about the same time, seldom wait for each other. A peer that is still in use is visited again
 * later, as often as needed: only the time limit of the GPU ends that. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/str.h"
#include "probes/method/repeats.h"

enum { LOADS = 1024, FIGURE_DIGITS = 4 };

static const uint64_t BYTES = UINT64_C(256) << 20;

/* How long a worker waits for one peer before it looks at the next one. Nothing is given up then:
 * it comes back. */
enum { LOOK_MS = 2000 };

/* Waiting ends when this share of the time is used that the GPU has left at the beginning. The rest
 * is for what follows. */
static const double WAIT_SHARE = 0.75;

/* Only a replay has no time limit. It ends with its record. */
enum { TOURNAMENTS_MAX = 100000, LIMIT_MS = 60000 };

static const char one_gpu[] =
    "this process sees one GPU; one task per node that sees all of its GPUs (srun "
    "--ntasks-per-node=1 --gpus-per-node=N) measures the links between them";

enum figure { READ, WRITE, BOTH, SM_READ, SM_WRITE, SM_BOTH, LATENCY, LATENCY_NS, FIGURES };

static const char *const figure_notes[FIGURES] = {"read",     "write",   "both",    "sm_read",
                                                  "sm_write", "sm_both", "latency", "latency_ns"};

/* What is known of the link to a peer. Figures in GB/s, latency in cycles and in ns; NaN: none. */
struct link {
    const char *uuid;  /* belongs to the list of GPUs */
    const char *state; /* see METHOD.md */
    bool settled;      /* measured, or known to be impossible */
    double figures[FIGURES];
};

struct row {
    struct facts gpus;
    size_t own, count, reached;
    size_t pending, tournaments; /* links that are not settled; how often they were visited */
    double stop_s;               /* by clock_monotonic_s; INFINITY: no limit */
    double least_s;              /* for a link that is measured when that is near */
    struct link links[DEVICE_PEERS_MAX];
    char *reason; /* of the first link that failed; NULL: none did */
};

static int links_list_peers(struct probe_context *context, struct row *row, struct err *err)
{
    int rc = device_list_peers(context->device, &row->gpus, err);
    if (rc)
        return rc;
    const char *own = facts_text(&row->gpus, "own");
    row->own = SIZE_MAX;
    for (char key[16]; row->count < DEVICE_PEERS_MAX; row->count++) {
        snprintf(key, sizeof key, "%zu", row->count);
        const char *uuid = facts_text(&row->gpus, key);
        if (!uuid)
            break;
        if (str_equal(uuid, own))
            row->own = row->count;
        row->links[row->count] = (struct link){.uuid = uuid, .state = "unknown"};
        for (int f = 0; f < FIGURES; f++)
            row->links[row->count].figures[f] = NAN;
    }
    if (row->count > 1 && row->own == SIZE_MAX)
        return err_set(err, -ENOTSUP, "the process sees more than %d GPUs of the node",
                       DEVICE_PEERS_MAX);
    row->pending = row->count ? row->count - 1 : 0;
    double left_s = probe_left_s(context);
    row->stop_s = clock_monotonic_s() + WAIT_SHARE * left_s;
    row->least_s = (1 - WAIT_SHARE) / 2 * left_s / (double)(row->count + 1);
    return row->count > 1 ? 0 : err_set(err, -ENOTSUP, "%s", one_gpu);
}

/* The partner of player `own` in this round of a tournament of `count` players, by the circle
 * method; `count` or more: none. The last player stays in its place; an odd number of players has
 * a dummy as the last one. */
static size_t partner_of(size_t own, size_t count, size_t round)
{
    size_t ring = count - 1 + count % 2;
    if (own == ring) /* plays against i with 2 i = round (mod ring); ring is odd */
        return round % 2 ? (round + ring) / 2 : round / 2;
    size_t other = (round + ring - own) % ring;
    return other == own ? ring : other;
}

/* Errors that say nothing about the link: somebody else has the peer, nothing was tried, or no
 * answer came in time, which may be a slow machine's. */
static bool says_nothing(int rc)
{
    return rc == -EAGAIN || rc == -EBUSY || rc == -EACCES || rc == -ENOSPC || rc == -ENOTSUP ||
           rc == -ECANCELED || rc == -ENOENT || rc == -ETIMEDOUT;
}

static void set_figures(struct link *link, const struct device_peer_answer *answer)
{
    double bytes = (double)BYTES;
    link->state = answer->wrong_words ? "wrong" : answer->mapped ? "ok" : "host";
    link->figures[READ] = bytes / (double)answer->copy_read_ns;
    link->figures[WRITE] = bytes / (double)answer->copy_write_ns;
    link->figures[BOTH] = 2 * bytes / (double)answer->copy_both_ns;
    if (!answer->mapped)
        return;
    link->figures[SM_READ] = bytes / (double)answer->read_ns;
    link->figures[SM_WRITE] = bytes / (double)answer->write_ns;
    link->figures[LATENCY] = (double)answer->cycles / LOADS;
    if (answer->both_ns)
        link->figures[SM_BOTH] = bytes / (double)answer->both_ns;
    if (answer->chase_ns)
        link->figures[LATENCY_NS] = (double)answer->chase_ns / LOADS;
}

/* Each link that is not settled has an equal part of the time. */
static struct device_peer_test test_of(const struct row *row, size_t peer)
{
    struct device_peer_test test = {.peer = (uint32_t)peer,
                                    .bytes = BYTES,
                                    .loads = LOADS,
                                    .wait_ms = LOOK_MS,
                                    .limit_ms = LIMIT_MS};
    double left_s = row->stop_s - clock_monotonic_s();
    if (isfinite(left_s))
        test.limit_ms =
            (uint32_t)(1000 *
                       fmin(fmax(fmax(left_s / (double)row->pending, row->least_s), 0.001), 86400));
    return test;
}

/* A link that fails costs its own figures only. One whose GPUs are in use is left for later. */
static void measure_link(struct probe_context *context, struct row *row, size_t peer)
{
    const struct device_peer_test test = test_of(row, peer);
    struct link *link = &row->links[peer];
    struct device_peer_answer answer = {0};
    struct err own = {0};
    int rc = device_test_peer(context->device, &test, &answer, &own);
    link->settled =
        rc != -EAGAIN || clock_monotonic_s() >= row->stop_s || row->tournaments == TOURNAMENTS_MAX;
    if (!link->settled)
        return;
    row->pending--;
    if (!rc && answer.copy_read_ns && answer.copy_write_ns && answer.copy_both_ns) {
        set_figures(link, &answer);
        row->reached += !answer.wrong_words;
        return;
    }
    link->state = says_nothing(rc) ? "unknown" : "failed";
    if (!row->reason)
        row->reason = str_format("%s: %s", link->uuid, rc ? own.text : "a transfer took no time");
}

/* Adds the lists of all peers, in the same order: names, states, and one list per figure. */
static void note_row(const struct row *row, struct measure *m)
{
    const char *peers[DEVICE_PEERS_MAX], *states[DEVICE_PEERS_MAX];
    double figures[FIGURES][DEVICE_PEERS_MAX];
    size_t n = 0;
    for (size_t i = 0; i < row->count; i++) {
        if (i == row->own)
            continue;
        peers[n] = row->links[i].uuid;
        states[n] = row->links[i].state;
        for (int f = 0; f < FIGURES; f++)
            figures[f][n] = facts_rounded(row->links[i].figures[f], FIGURE_DIGITS);
        n++;
    }
    facts_set_texts(&m->notes, "gpus", peers, n);
    facts_set_texts(&m->notes, "state", states, n);
    for (int f = 0; f < FIGURES; f++)
        facts_set_numbers(&m->notes, figure_notes[f], figures[f], n);
    if (row->reason)
        facts_set_text(&m->notes, "why", row->reason);
}

/* The median over all peers that have the figure; none is added if no peer has it. */
static void report_median(struct probe_context *context, const struct row *row, enum figure figure,
                          const char *metric, const char *unit, const char *method)
{
    double values[DEVICE_PEERS_MAX];
    size_t n = 0;
    for (size_t i = 0; i < row->count; i++)
        if (isfinite(row->links[i].figures[figure]))
            values[n++] = row->links[i].figures[figure];
    if (!n)
        return;
    struct measure *m = repeats_add(context, metric, values, n, unit, method);
    m->confidence = NAN;
}

static void links_report(struct probe_context *context, const struct row *row)
{
    static const char copies[] = "copies by a copy engine, median over the peers";
    double least = INFINITY;
    struct measure *m = measures_add(context->measures, "links.peers", (double)row->reached, "",
                                     "GPUs of the node that copies reach, both ways");
    note_row(row, m);
    m->n = (uint32_t)row->count - 1;
    for (size_t i = 0; i < row->count; i++)
        for (int f = READ; f <= WRITE; f++)
            if (isfinite(row->links[i].figures[f]))
                least = fmin(least, row->links[i].figures[f]);
    report_median(context, row, READ, "links.read", "GB/s", copies);
    report_median(context, row, WRITE, "links.write", "GB/s", copies);
    report_median(context, row, BOTH, "links.both", "GB/s", copies);
    report_median(context, row, SM_BOTH, "links.sm_both", "GB/s",
                  "loads and stores of all SMs at once, median over the peers");
    report_median(context, row, LATENCY, "links.latency", "cycles",
                  "dependent loads of the peer's memory, median over the peers");
    if (!isfinite(least))
        return;
    m = measures_add(context->measures, "links.least", least, "GB/s",
                     "the slowest one-way copy to or from any peer");
}

static int links_run(struct probe_context *context, struct err *err)
{
    struct row row = {0};
    struct err own = {0};
    int rc = links_list_peers(context, &row, &own);
    if (!rc) {
        for (; row.pending; row.tournaments++) {
            /* One tournament among the links that are not settled. */
            for (size_t round = 0; round + 1 < row.count + row.count % 2; round++) {
                size_t peer = partner_of(row.own, row.count, round);
                if (peer < row.count && !row.links[peer].settled)
                    measure_link(context, &row, peer);
            }
        }
        links_report(context, &row);
    } else {
        rc = repeats_end(context, "links.peers", rc, &own, err);
        if (!rc) { /* without peers, the row has only the reason */
            struct measure *m = &context->measures->items[context->measures->count - 1];
            facts_set_text(&m->notes, "why", own.text);
        }
    }
    free(row.reason);
    facts_fini(&row.gpus);
    return rc;
}

const struct probe probe_links = {
    .description = {"links", "links to the other GPUs of the node, a row of their matrix",
                    PROFILE_FULL},
    .metrics = {"links.peers", "links.read", "links.write", "links.both", "links.sm_both",
                "links.latency", "links.least"},
    .last = true,
    .run = links_run,
};
