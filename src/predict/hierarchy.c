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
    h->reuse = config->reuse ? mem_array(count, sizeof *h->reuse) : NULL;
    if (!h->l1 || !h->l2 || !h->l2_bypassed || (config->reuse && !h->reuse))
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++) {
        h->l1[i] = cache_create(&l1);
        if (h->reuse)
            h->reuse[i] = reuse_create();
        if (!h->l1[i] || (h->reuse && !h->reuse[i]))
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
    for (uint32_t i = 0; i < h->config->sms * h->config->l1_per_sm; i++) {
        if (h->l1)
            cache_destroy(h->l1[i]);
        if (h->reuse)
            reuse_destroy(h->reuse[i]);
    }
    free(h->l1);
    free(h->reuse);
    cache_destroy(h->l2);
    cache_destroy(h->l2_bypassed);
}

static void finish_curve(struct hierarchy *h)
{
    struct model_counts *counts = &h->counts;
    uint32_t caches = h->config->sms * h->config->l1_per_sm;
    uint64_t lines_max = 1;
    for (uint32_t i = 0; i < caches; i++) {
        uint64_t lines = reuse_lines(h->reuse[i]);
        lines_max = lines > lines_max ? lines : lines_max;
        counts->curve_loads += reuse_accesses(h->reuse[i]);
    }
    for (uint64_t lines = 16; counts->curve_count < MODEL_CURVE_MAX; lines *= 2) {
        size_t at = counts->curve_count++;
        counts->curve_lines[at] = lines;
        for (uint32_t i = 0; i < caches; i++)
            counts->curve_hits[at] += reuse_hits(h->reuse[i], lines);
        if (lines >= lines_max)
            break;
    }
}

void hierarchy_finish(struct hierarchy *h)
{
    h->counts.l2.main_reads = h->l2->brought;
    h->counts.l2.main_writes = h->l2->written_back;
    h->counts.l2_bypassed.main_reads = h->l2_bypassed->brought;
    h->counts.l2_bypassed.main_writes = h->l2_bypassed->written_back;
    if (h->reuse)
        finish_curve(h);
}
