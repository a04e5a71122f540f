/* How fast each SM reads L2: facts and comparison. */
#include "inventory/sm_rates.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/portable_math.h"
#include "base/sort.h"

enum { NAMED_MAX = 8 };

enum { ALONE, NOISE, GROUP_OF, GROUPS };
const char *const sm_rates_keys[SM_RATES_KEYS] = {
    [ALONE] = SM_RATES_FACT,
    [NOISE] = "sm_bandwidth_noise",
    [GROUP_OF] = "sm_group",
    [GROUPS] = "sm_group_bandwidth",
};

/* An SM or a group is slower if it lost more than LOSS, and more than LOSS_NOISE standard errors of
 * the difference. Chance does that to one of 132 SMs in less than one of a million comparisons. */
static const double LOSS = 0.05, LOSS_NOISE = 6;

/* If more SMs than this share are slower, it is the whole GPU that is. */
static const double FEW = 1.0 / 3;

/* Slower SMs are those of a group if they are at least this share of it, and all in it. */
static const double OF_GROUP = 0.75;

static int sm_median_order(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double sm_median(const double *values, size_t count)
{
    double sorted[SM_RATES_SMS_MAX];
    memcpy(sorted, values, count * sizeof *sorted);
    sort_stable(sorted, count, sizeof *sorted, sm_median_order);
    return (sorted[(count - 1) / 2] + sorted[count / 2]) / 2;
}

void sm_rates_put(const struct sm_rates *rates, struct facts *out_facts)
{
    double numbers[SM_RATES_SMS_MAX];
    for (size_t i = 0; i < rates->sms; i++)
        numbers[i] = facts_decimals(rates->gbs[i], 2);
    facts_set_numbers(out_facts, sm_rates_keys[ALONE], numbers, rates->sms);
    facts_set_real(out_facts, sm_rates_keys[NOISE], facts_decimals(fmin(rates->noise, 1), 4));
    if (!rates->groups)
        return;
    for (size_t i = 0; i < rates->sms; i++)
        numbers[i] = rates->group_of[i];
    facts_set_numbers(out_facts, sm_rates_keys[GROUP_OF], numbers, rates->sms);
    for (size_t g = 0; g < rates->groups; g++)
        numbers[g] = facts_decimals(rates->group_gbs[g], 1);
    facts_set_numbers(out_facts, sm_rates_keys[GROUPS], numbers, rates->groups);
}

static int sm_rates_read_groups(const struct facts *facts, struct sm_rates *rates)
{
    size_t sms = 0, groups = 0;
    const double *group_of = facts_numbers(facts, sm_rates_keys[GROUP_OF], &sms);
    const double *gbs = facts_numbers(facts, sm_rates_keys[GROUPS], &groups);
    if (!group_of && !gbs)
        return 0;
    if (!group_of || !gbs || sms != rates->sms || groups > SM_RATES_GROUPS_MAX)
        return -EINVAL;
    for (size_t i = 0; i < sms; i++) {
        if (!(group_of[i] >= 0 && group_of[i] < (double)groups) ||
            group_of[i] != floor(group_of[i]))
            return -EINVAL;
        rates->group_of[i] = (uint8_t)group_of[i];
    }
    for (size_t g = 0; g < groups; g++) {
        if (!(gbs[g] > 0) || !isfinite(gbs[g]))
            return -EINVAL;
        rates->group_gbs[g] = gbs[g];
    }
    rates->groups = groups;
    return 0;
}

int sm_rates_read(const struct facts *facts, struct sm_rates *out_rates)
{
    struct sm_rates read = {0};
    const double *gbs = facts_numbers(facts, sm_rates_keys[ALONE], &read.sms);
    read.noise = fact_number(facts_get(facts, sm_rates_keys[NOISE]));
    if (!gbs || !read.sms || read.sms > SM_RATES_SMS_MAX || !isfinite(read.noise) ||
        !(read.noise >= 0))
        return -EINVAL;
    for (size_t i = 0; i < read.sms; i++) {
        if (!isfinite(gbs[i]) || !(gbs[i] >= 0))
            return -EINVAL;
        read.gbs[i] = gbs[i];
    }
    if (!(sm_median(read.gbs, read.sms) > 0) || sm_rates_read_groups(facts, &read))
        return -EINVAL;
    *out_rates = read;
    return 0;
}

static size_t sm_rates_group_size(const struct sm_rates *rates, size_t group)
{
    size_t size = 0;
    for (size_t i = 0; i < rates->sms; i++)
        size += rates->group_of[i] == group;
    return size;
}

int sm_rates_group(const struct sm_rates *rates, const uint16_t *sms, size_t count)
{
    if (!rates->groups || count < 2)
        return -1;
    uint8_t group = rates->group_of[sms[0]];
    for (size_t i = 1; i < count; i++)
        if (rates->group_of[sms[i]] != group)
            return -1;
    return (double)count >= OF_GROUP * (double)sm_rates_group_size(rates, group) ? group : -1;
}

/* ratios: of each SM. Those that are below the median one by more than the limit. */
static struct sm_loss sm_rates_find_slower(const struct sm_rates *rates, const double *ratios,
                                           double limit)
{
    struct sm_loss loss = {.group = -1};
    double middle = sm_median(ratios, rates->sms), losses[SM_RATES_SMS_MAX];
    for (size_t i = 0; i < rates->sms; i++) {
        if (!(1 - ratios[i] / middle > limit))
            continue;
        losses[loss.count] = 1 - ratios[i] / middle;
        loss.sms[loss.count++] = (uint16_t)i;
    }
    if ((double)loss.count > FEW * (double)rates->sms)
        loss.count = 0;
    if (!loss.count)
        return loss;
    loss.share = sm_median(losses, loss.count);
    loss.group = sm_rates_group(rates, loss.sms, loss.count);
    return loss;
}

static bool sm_rates_same_groups(const struct sm_rates *was, const struct sm_rates *is)
{
    return is->groups > 2 && was->groups == is->groups &&
           memcmp(was->group_of, is->group_of, is->sms) == 0;
}

/* A group whose SMs are as fast as they were alone, and slower together. */
static struct sm_loss sm_rates_find_slower_group(const struct sm_rates *was,
                                                 const struct sm_rates *is, double limit)
{
    struct sm_loss loss = {.group = -1};
    double ratios[SM_RATES_GROUPS_MAX];
    size_t worst = 0;
    for (size_t g = 0; g < is->groups; g++) {
        ratios[g] = is->group_gbs[g] / was->group_gbs[g];
        worst = ratios[g] < ratios[worst] ? g : worst;
    }
    double share = 1 - ratios[worst] / sm_median(ratios, is->groups);
    if (!(share > limit))
        return loss;
    loss.group = (int)worst;
    loss.shared = true;
    loss.share = share;
    for (size_t i = 0; i < is->sms; i++)
        if (is->group_of[i] == worst)
            loss.sms[loss.count++] = (uint16_t)i;
    return loss;
}

struct sm_loss sm_rates_slower(const struct sm_rates *was, const struct sm_rates *is)
{
    struct sm_loss loss = {.group = -1};
    double limit = fmax(LOSS, LOSS_NOISE * portable_hypot(was->noise, is->noise));
    double ratios[SM_RATES_SMS_MAX];
    if (was->sms != is->sms)
        return loss;
    for (size_t i = 0; i < is->sms; i++)
        ratios[i] = was->gbs[i] > 0 ? is->gbs[i] / was->gbs[i] : 1;
    loss = sm_rates_find_slower(is, ratios, limit);
    return loss.count || !sm_rates_same_groups(was, is)
               ? loss
               : sm_rates_find_slower_group(was, is, limit);
}

struct sm_loss sm_rates_weak(const struct sm_rates *rates)
{
    return sm_rates_find_slower(rates, rates->gbs, fmax(LOSS, LOSS_NOISE * rates->noise));
}

void sm_loss_put(struct strbuf *out, const struct sm_loss *loss)
{
    if (loss->group >= 0)
        strbuf_printf(out, "the %zu SMs of group %d", loss->count, loss->group);
    else
        strbuf_puts(out, loss->count == 1 ? "SM" : "SMs");
    for (size_t i = 0; i < loss->count && i < NAMED_MAX && loss->group < 0; i++)
        strbuf_printf(out, "%s%u", i ? ", " : " ", loss->sms[i]);
    if (loss->group < 0 && loss->count > NAMED_MAX)
        strbuf_printf(out, " and %zu more", loss->count - NAMED_MAX);
    strbuf_printf(out, " read%s L2 %.0f %% slower", loss->count == 1 ? "s" : "", 100 * loss->share);
    if (loss->shared)
        strbuf_puts(out, " when they read at once");
}
