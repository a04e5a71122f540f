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
    struct cache_geometry l1 = config->l1, l2 = config->l2;
    l1.in_bulk = l2.in_bulk = true;
    h->l2 = cache_create(&l2);
    h->l2_bypassed = cache_create(&l2);
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
    cache_destroy(h->l2);
    cache_destroy(h->l2_bypassed);
}

void hierarchy_finish(struct hierarchy *h)
{
    h->counts.l2.main_reads = h->l2->brought;
    h->counts.l2.main_writes = h->l2->written_back;
    h->counts.l2_bypassed.main_reads = h->l2_bypassed->brought;
    h->counts.l2_bypassed.main_writes = h->l2_bypassed->written_back;
    if (h->curves)
        curves_finish(h->curves, &h->counts);
}
