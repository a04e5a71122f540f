/* One SM executes code that fits into the level alone, while another executes a copy of it. If both
 * share the cache, the copies drive each other out. The control is the same copy on both SMs, which
 * needs no further room: if that is slow too, something else is shared. */
#include "probes/method/code_sharing.h"

#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "cpd/cpd.h"
#include "device/straight.h"
#include "probes/method/sm_group_map.h"

enum { REPEATS = 8, TRIES = 3 };

/* Of what it costs if the level has nothing: below the first an SM is not disturbed, above the
 * second it is. */
static const double QUIET_SHARE = 0.1, DISTURBED_SHARE = 0.3;

/* Cycles of a pass on the SM; `other` is the SM itself: alone. */
static int measure_pass(struct probe_context *context, const struct code_sharing_question *question,
                        uint32_t other, uint32_t copy, double *out_cycles, struct err *err)
{
    struct device_straight straight = {
        .jobs = {{.sm = question->sm, .length = question->length, .repeats = REPEATS},
                 {.sm = other, .copy = copy, .length = question->length, .repeats = REPEATS}},
        .job_count = other == question->sm ? 1 : 2};
    struct device_straight_answer answer;
    if (straight.job_count == 1)
        straight.jobs[1] = (struct device_straight_job){0};
    int rc = device_run_straight(context->device, &straight, &answer, err);
    if (rc)
        return rc;
    *out_cycles = (double)answer.cycles[0] / REPEATS;
    return 0;
}

static int measure_median(struct probe_context *context,
                          const struct code_sharing_question *question, uint32_t other,
                          uint32_t copy, double *out_cycles, struct err *err)
{
    double cycles[TRIES];
    for (size_t i = 0; i < TRIES; i++) {
        int rc = measure_pass(context, question, other, copy, &cycles[i], err);
        if (rc)
            return rc;
    }
    *out_cycles = cpd_quantile(cycles, TRIES, 0.5);
    return 0;
}

/* Twice, since one that shares must not be missed. */
static int is_quiet(struct probe_context *context, const struct code_sharing_question *question,
                    double limit, uint32_t other, bool *out_quiet, struct err *err)
{
    *out_quiet = true;
    for (int i = 0; i < 2 && *out_quiet; i++) {
        double cycles = 0;
        int rc = measure_pass(context, question, other, 1, &cycles, err);
        if (rc)
            return rc;
        *out_quiet = cycles < limit;
    }
    return 0;
}

/* An SM that disturbs is asked again, and with the same copy. */
static int ask_other(struct probe_context *context, const struct code_sharing_question *question,
                     double alone, uint32_t other, struct code_sharing *sharing, struct err *err)
{
    double whole = question->gain * question->length, copied = 0, same = 0;
    bool quiet = false;
    int rc = is_quiet(context, question, alone + QUIET_SHARE * whole, other, &quiet, err);
    if (rc || quiet)
        return rc;
    rc = measure_median(context, question, other, 1, &copied, err);
    if (rc || copied - alone < QUIET_SHARE * whole)
        return rc;
    rc = measure_median(context, question, other, 0, &same, err);
    if (rc)
        return rc;
    if (same - alone > QUIET_SHARE * whole) {
        sharing->slowed++;
        return 0;
    }
    if (copied - alone < DISTURBED_SHARE * whole) {
        sharing->unclear++;
        return 0;
    }
    sharing->shares[other] = true;
    sharing->count++;
    return 0;
}

int code_sharing_find(struct probe_context *context, const struct code_sharing_question *question,
                      struct code_sharing *out_sharing, struct err *err)
{
    uint32_t sms = device_limits(context->device)->sm_count;
    double alone = 0;
    *out_sharing = (struct code_sharing){.shares = mem_array(sms, sizeof(bool)), .count = 1};
    if (!out_sharing->shares)
        return err_no_memory(err);
    out_sharing->shares[question->sm] = true;
    int rc = measure_median(context, question, question->sm, 0, &alone, err);
    for (uint32_t other = 0; other < sms && !rc; other++)
        if (other != question->sm)
            rc = ask_other(context, question, alone, other, out_sharing, err);
    return rc;
}

/* Whether those that share are just the group of the first SM, as sm.groups found it. */
static bool is_group(const struct probe_context *context, const struct code_sharing *sharing,
                     size_t sms, uint16_t *groups)
{
    bool same = sm_group_map_read(context, sms, groups);
    for (size_t i = 0; i < sms && same; i++)
        same = (groups[i] == groups[0]) == sharing->shares[i];
    return same;
}

int code_sharing_note(const struct probe_context *context, const struct code_sharing *sharing,
                      struct measure *m)
{
    uint32_t sms = device_limits(context->device)->sm_count;
    uint16_t *groups = mem_array(sms, sizeof *groups);
    struct strbuf list = {0};
    if (!groups)
        return -ENOMEM;
    for (uint32_t i = 0; i < sms; i++)
        if (sharing->shares[i])
            strbuf_printf(&list, "%s%u", list.length ? " " : "", i);
    const char *scope = sharing->count == 1                         ? "sm"
                        : sharing->count == sms                     ? "gpu"
                        : is_group(context, sharing, sms, groups)   ? "gpc"
                        : sharing->count == 2 && sharing->shares[1] ? "tpc"
                                                                    : NULL;
    int rc = list.failed || facts_set_text(&m->notes, "sms", list.data) ||
                     (scope && facts_set_text(&m->notes, "scope", scope))
                 ? -ENOMEM
                 : 0;
    strbuf_fini(&list);
    free(groups);
    return rc;
}

void code_sharing_fini(struct code_sharing *sharing)
{
    free(sharing->shares);
    sharing->shares = NULL;
}
