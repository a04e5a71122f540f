/* How fast each SM of a GPU reads L2, alone and with its group, as facts of its board; which SMs
 * became slower since an earlier survey, and which are slower than the others. */
#ifndef GPUMEMTOPO_INVENTORY_SM_RATES_H
#define GPUMEMTOPO_INVENTORY_SM_RATES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "schema/facts.h"

/* The facts of a board, and the notes that they are taken from: GB/s of each SM (SM_RATES_FACT),
 * noise, the group of each SM, GB/s of each group. */
#define SM_RATES_FACT "sm_bandwidth"

enum { SM_RATES_SMS_MAX = 512, SM_RATES_GROUPS_MAX = 64, SM_RATES_KEYS = 4 };
extern const char *const sm_rates_keys[SM_RATES_KEYS];

struct sm_rates {
    size_t sms, groups;                    /* groups: 0 if they are not known */
    double noise;                          /* standard error of a rate, as a share */
    double gbs[SM_RATES_SMS_MAX];          /* of each SM alone */
    uint8_t group_of[SM_RATES_SMS_MAX];    /* below `groups` */
    double group_gbs[SM_RATES_GROUPS_MAX]; /* of all SMs of a group at once */
};

/* Sets the facts; without groups, those of the groups are left out. */
void sm_rates_put(const struct sm_rates *rates, struct facts *out_facts);

/* 0, or -EINVAL if the facts have no rates, or some that sm_rates_put does not write. */
int sm_rates_read(const struct facts *facts, struct sm_rates *out_rates);

/* Of 1 to SM_RATES_SMS_MAX values. */
double sm_median(const double *values, size_t count);

/* SMs that are slower, and by which share. */
struct sm_loss {
    size_t count; /* 0: none */
    uint16_t sms[SM_RATES_SMS_MAX];
    int group;   /* they are the SMs of this group; -1: they are not those of one group */
    bool shared; /* only if the whole group reads at once */
    double share;
};

/* SMs, or a group, that became slower while the others did not. None if they have other SMs.
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
