/* Which TPC, CPC and GPC each SM belongs to, and which SMs share a cache. */
#include <errno.h>

#include "device/sim/gpu.h"

/* Sizes of the GPCs, in SMs: one number for all (the last GPC may be smaller), or a list. */
static int read_gpc_sizes(const struct yaml_node *node, const struct sim_model *model,
                          uint32_t sizes[SIM_SMS_MAX], uint32_t *out_count, struct err *err)
{
    uint64_t size = model->sms, left = model->sms;
    bool listed = node && yaml_kind(node) == YAML_SEQUENCE;
    uint32_t count = 0;
    int rc = 0;
    if (node && !listed)
        rc = yaml_as_u64(node, 1, SIM_SMS_MAX, &size, err);
    if (rc)
        return rc;
    while (left && (!listed || count < yaml_count(node))) {
        if (listed)
            rc = yaml_as_u64(yaml_at(node, count), 1, left, &size, err);
        if (rc)
            return rc;
        sizes[count] = (uint32_t)(size < left ? size : left);
        left -= sizes[count++];
        if (left && size % model->sms_per_tpc)
            return yaml_error(node, err, "a GPC is a whole number of TPCs");
    }
    if (listed && (left || count != yaml_count(node)))
        return yaml_error(node, err, "the sizes do not add up to %u SMs", model->sms);
    *out_count = count;
    return 0;
}

/* Numbers the SMs GPC by GPC, or TPC by TPC across all GPCs that have room. NVIDIA's GPUs do the
 * latter. */
void sim_place_sms(struct sim_model *model, const uint32_t *sizes, uint32_t gpc_count)
{
    uint32_t used[SIM_SMS_MAX] = {0}, gpc = 0;
    model->gpc_count = gpc_count;
    for (uint32_t i = 0; i < gpc_count; i++)
        model->gpc_rank[i] = (uint16_t)i;
    for (uint32_t sm = 0; sm < model->sms; sm++) {
        bool next = model->across ? sm && sm % model->sms_per_tpc == 0 : used[gpc] == sizes[gpc];
        while (next || used[gpc] == sizes[gpc]) {
            gpc = (gpc + 1) % gpc_count;
            next = false;
        }
        used[gpc]++;
        model->gpc_of[sm] = (uint16_t)gpc;
        model->tpc_of[sm] = (uint16_t)(sm / model->sms_per_tpc);
    }
}

int sim_read_places(const struct yaml_node *node, bool across, struct sim_model *model,
                    struct err *err)
{
    uint32_t sizes[SIM_SMS_MAX], count = 0;
    int rc = read_gpc_sizes(node, model, sizes, &count, err);
    if (rc)
        return rc;
    model->across = across;
    sim_place_sms(model, sizes, count);
    return 0;
}

/* A CPC: so many SMs of a GPC, or the whole GPC. */
static uint32_t cpcs_per_gpc(const struct sim_model *model)
{
    return model->sms_per_cpc ? (model->sms - 1) / model->sms_per_cpc + 1 : 1;
}

static uint32_t cpc_of(const struct sim_model *model, uint32_t sm)
{
    uint32_t rank = 0, gpc = model->gpc_of[sm];
    for (uint32_t i = 0; i < sm; i++)
        rank += model->gpc_of[i] == gpc;
    return gpc * cpcs_per_gpc(model) + (model->sms_per_cpc ? rank / model->sms_per_cpc : 0);
}

uint32_t gpu_group_count(const struct sim_model *model, int scope)
{
    switch (scope) {
    case SIM_SCOPE_SM:
        return model->sms;
    case SIM_SCOPE_TPC:
        return (model->sms - 1) / model->sms_per_tpc + 1;
    case SIM_SCOPE_CPC:
        return model->gpc_count * cpcs_per_gpc(model);
    case SIM_SCOPE_GPC:
        return model->gpc_count;
    default:
        return 1;
    }
}

uint32_t gpu_group_of(const struct sim_model *model, int scope, uint32_t sm)
{
    switch (scope) {
    case SIM_SCOPE_SM:
        return sm;
    case SIM_SCOPE_TPC:
        return model->tpc_of[sm];
    case SIM_SCOPE_CPC:
        return cpc_of(model, sm);
    case SIM_SCOPE_GPC:
        return model->gpc_of[sm];
    default:
        return 0;
    }
}
