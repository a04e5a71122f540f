/* The caches of a GPU: made, removed, and what they show at the end. */
#include "predict/hierarchy.h"

#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"

static int create_caches(struct hierarchy *h)
{
    const struct model_config *config = h->config;
    uint32_t count = config->sms * config->l1_per_sm;
    h->l1 = mem_array(count, sizeof *h->l1);
    struct cache_geometry l1 = config->l1;
    l1.in_bulk = true;
    h->l2 = l2_create(config);
    h->l2_bypassed = l2_create(config);
    for (int i = 0; i < 2 && config->merged_loads > 1; i++) {
        h->merges[i] = merge_create(config);
        if (!h->merges[i])
            return -ENOMEM;
    }
    h->curves = config->reuse ? curves_create(config) : NULL;
    if (!h->l1 || !h->l2 || !h->l2_bypassed || (config->reuse && !h->curves))
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++) {
        h->l1[i] = cache_create(&l1);
        if (!h->l1[i])
            return -ENOMEM;
    }
    return 0;
}

int hierarchy_init(struct hierarchy *h, const struct model_config *config, struct err *err)
{
    *h = (struct hierarchy){.config = config};
    h->unit = (struct warp_unit){.line_shift = (uint32_t)__builtin_ctzll(config->l1.line),
                                 .sector_shift = (uint32_t)__builtin_ctzll(config->l1.sector)};
    rng_init(&h->rng, config->seed, "predict");
    h->l1_draws = cache_draws(&config->l1);
    h->l2_draws = cache_draws(&config->l2);
    return create_caches(h) ? err_no_memory(err) : 0;
}

void hierarchy_fini(struct hierarchy *h)
{
    for (uint32_t i = 0; h->l1 && i < h->config->sms * h->config->l1_per_sm; i++)
        cache_destroy(h->l1[i]);
    free(h->l1);
    curves_destroy(h->curves);
    l2_destroy(h->l2);
    l2_destroy(h->l2_bypassed);
    merge_destroy(h->merges[0]);
    merge_destroy(h->merges[1]);
}

void hierarchy_set_round(struct hierarchy *h, uint32_t ticks)
{
    for (int i = 0; i < 2 && h->merges[i]; i++)
        merge_set_round(h->merges[i], ticks);
}

void hierarchy_end_tick(struct hierarchy *h)
{
    for (int i = 0; i < 2 && h->merges[i]; i++)
        merge_end_tick(h->merges[i]);
}

void hierarchy_finish(struct hierarchy *h)
{
    h->counts.l2.main_reads = l2_main_reads(h->l2);
    h->counts.l2.main_writes = l2_main_writes(h->l2);
    h->counts.l2_bypassed.main_reads = l2_main_reads(h->l2_bypassed);
    h->counts.l2_bypassed.main_writes = l2_main_writes(h->l2_bypassed);
    if (h->curves)
        curves_finish(h->curves, &h->counts);
}
