/* How fast each SM of a GPU reads L2, alone and with its group, as a short text of its board; which
 * SMs became slower since an earlier survey, and which are slower than the others. */
#ifndef GPUMEMTOPO_INVENTORY_SM_RATES_H
#define GPUMEMTOPO_INVENTORY_SM_RATES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "inventory/sm_text.h"

#define SM_RATES_FACT "sm_bandwidth" /* of the board, and the note that it is taken from */

enum {
    SM_RATES_SMS_MAX = SM_TEXT_SMS_MAX,
    SM_RATES_GROUPS_MAX = 64,
    SM_RATES_TEXT_MAX = 3 * SM_RATES_SMS_MAX + 12 * SM_RATES_GROUPS_MAX + 64
};

struct sm_rates {
    size_t sms, groups;                    /* groups: 0 if they are not known */
    double noise;                          /* standard error of a rate, as a share */
    double gbs[SM_RATES_SMS_MAX];          /* of each SM alone */
    uint8_t group_of[SM_RATES_SMS_MAX];    /* below `groups` */
    double group_gbs[SM_RATES_GROUPS_MAX]; /* of all SMs of a group at once */
};

/* "1 91.2 0.0012 gAgB... AABB... 1301.2 1299.8": version, rate of the median SM, noise; the rate of
 * each SM over it, two letters in steps of 1/2048; the group of each SM; the rates of the groups.
 * Without groups it ends before them. */
void sm_rates_print(const struct sm_rates *rates, char out_text[SM_RATES_TEXT_MAX]);

/* 0, or -EINVAL for a text that sm_rates_print did not write. */
int sm_rates_read(const char *text, struct sm_rates *out_rates);

/* SMs that are slower, and by which share. */
struct sm_loss {
    size_t count; /* 0: none */
    uint16_t sms[SM_RATES_SMS_MAX];
    int group;   /* they are the SMs of this group; -1: they are not those of one group */
    bool shared; /* only if the whole group reads at once */
    double share;
};

/* SMs, or a group, that became slower while the others did not. None if the texts have other SMs.
 */
struct sm_loss sm_rates_slower(const struct sm_rates *was, const struct sm_rates *is);

/* SMs that are slower than the median one. */
struct sm_loss sm_rates_weak(const struct sm_rates *rates);

/* The group that these SMs are: at least three quarters of it, and no others. -1: they are not one.
 */
int sm_rates_group(const struct sm_rates *rates, const uint16_t *sms, size_t count);

/* "the 16 SMs of group 3 read L2 12 % slower". */
void sm_loss_put(struct strbuf *out, const struct sm_loss *loss);

#endif
