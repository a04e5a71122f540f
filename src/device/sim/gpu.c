/* Values derived from the state of a simulated GPU: its clock, and which SMs belong together. */
#include "device/sim/gpu.h"

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

double gpu_clock_mhz(const struct gpu *gpu, double busy_ns)
{
    const struct sim_clock *clock = &gpu->model.clock;
    double ramp_ns = clock->ramp_ms * 1e6;
    if (busy_ns >= ramp_ns)
        return clock->sm_mhz;
    double idle = clock->idle_mhz < clock->sm_mhz ? clock->idle_mhz : clock->sm_mhz;
    return idle + (clock->sm_mhz - idle) * busy_ns / ramp_ns;
}
