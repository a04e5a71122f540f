/* How fast each SM reads L2: text and comparison. */
#include "inventory/sm_rates.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/quadrature.h"

enum { VERSION = 1, ONE = SM_TEXT_CODES / 2, NAMED_MAX = 8 };

/* An SM or a group is slower if it lost more than LOSS, and more than LOSS_NOISE standard errors of
 * the difference. Chance does that to one of 132 SMs in less than one of a million comparisons. */
static const double LOSS = 0.05, LOSS_NOISE = 6;

/* If more SMs than this share are slower, it is the whole GPU that is. */
static const double FEW = 1.0 / 3;

/* Slower SMs are those of a group if they are at least this share of it, and all in it. */
static const double OF_GROUP = 0.75;

void sm_rates_print(const struct sm_rates *rates, char out_text[SM_RATES_TEXT_MAX])
{
    double usual = fmin(sm_text_median(rates->gbs, rates->sms), 1e6);
    int at = snprintf(out_text, SM_RATES_TEXT_MAX, "%d %.2f %.4f ", VERSION, usual,
                      fmin(rates->noise, 1));
    for (size_t i = 0; i < rates->sms; i++) {
        sm_text_put(usual > 0 ? rates->gbs[i] / usual * ONE : 0, out_text + at);
        at += 2;
    }
    if (rates->groups)
        out_text[at++] = ' ';
    for (size_t i = 0; i < rates->sms && rates->groups; i++)
        out_text[at++] = sm_text_letter(rates->group_of[i]);
    out_text[at] = '\0';
    for (size_t g = 0; g < rates->groups; g++)
        at += snprintf(out_text + at, (size_t)(SM_RATES_TEXT_MAX - at), " %.1f",
                       fmin(rates->group_gbs[g], 1e7));
}

/* The part of the text about groups: a letter per SM, then the rates of all of them. */
static int sm_rates_read_groups(const char *text, struct sm_rates *rates)
{
    for (size_t i = 0; i < rates->sms; i++) {
        int group = sm_text_number(text[i]);
        if (group < 0)
            return -EINVAL;
        rates->group_of[i] = (uint8_t)group;
        rates->groups = (size_t)group >= rates->groups ? (size_t)group + 1 : rates->groups;
    }
    text += rates->sms;
    for (size_t g = 0; g < rates->groups; g++) {
        char *end;
        rates->group_gbs[g] = strtod(text, &end);
        if (*text != ' ' || end == text || !(rates->group_gbs[g] > 0) ||
            !isfinite(rates->group_gbs[g]))
            return -EINVAL;
        text = end;
    }
    return *text ? -EINVAL : 0;
}

int sm_rates_read(const char *text, struct sm_rates *out_rates)
{
    struct sm_rates read = {0};
    char *end;
    if (strtol(text, &end, 10) != VERSION || *end != ' ')
        return -EINVAL;
    double usual = strtod(end, &end);
    read.noise = strtod(end, &end);
    if (*end++ != ' ' || !(usual > 0) || !isfinite(usual) || !(read.noise >= 0))
        return -EINVAL;
    size_t length = strcspn(end, " ");
    if (!length || length % 2 || length / 2 > SM_RATES_SMS_MAX)
        return -EINVAL;
    read.sms = length / 2;
    for (size_t i = 0; i < read.sms; i++) {
        int code = sm_text_get(end + 2 * i);
        if (code < 0)
            return -EINVAL;
        read.gbs[i] = usual * code / ONE;
    }
    if (end[length] && sm_rates_read_groups(end + length + 1, &read))
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
    double middle = sm_text_median(ratios, rates->sms), losses[SM_RATES_SMS_MAX];
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
    loss.share = sm_text_median(losses, loss.count);
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
    double share = 1 - ratios[worst] / sm_text_median(ratios, is->groups);
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
    double limit = fmax(LOSS, LOSS_NOISE * quadrature(was->noise, is->noise));
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
