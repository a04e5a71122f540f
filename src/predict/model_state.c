/* How blocks follow each other, and how far a run of the model has come. */
#include "predict/model_state.h"

/* The share of its program that a warp has behind it, by its loops; 0 for a trace. */
static double share_of(const struct kernel_launch *l, const struct kernel_cursor *cursor)
{
    double inner = (double)(l->loop_first + l->loop_second);
    double done = cursor->phase == KERNEL_FIRST    ? (double)cursor->k
                  : cursor->phase == KERNEL_SECOND ? (double)(l->loop_first + cursor->k)
                  : cursor->phase > KERNEL_SECOND  ? inner
                                                   : 0;
    if (l->source || cursor->phase == KERNEL_BEFORE)
        return 0;
    return ((double)cursor->t + (inner > 0 ? done / inner : 0)) / (double)l->loop_t;
}

/* Blocks that have ended, and parts of those in flight. */
static double blocks_behind(const struct model *m, const struct sm *sm)
{
    double blocks = (double)sm->begun;
    for (uint32_t w = 0; w < sm->warp_count; w++)
        if (sm->warps[w].live)
            blocks -= (1 - share_of(m->launch, &sm->warps[w].cursor)) / m->launch->warps_per_block;
    return blocks;
}

void model_refill(struct model *m, struct sm *sm, uint32_t place)
{
    if (m->map.mapping == BLOCK_FIRST_FREE && m->map.next < m->map.blocks)
        sm->vacant++;
    else
        sm_refill(sm, m->launch, &m->map, place);
}

void model_tell(const struct model *m)
{
    double blocks = 0;
    if (!m->config->tell)
        return;
    for (uint32_t i = 0; i < m->config->sms; i++)
        blocks += blocks_behind(m, &m->sms[i]);
    struct model_state state = {.share = blocks / (double)m->launch->busy_blocks,
                                .lines = m->hierarchy.counts.lines};
    m->config->tell(m->config->tell_context, state);
}
