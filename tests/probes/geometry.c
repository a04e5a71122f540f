/* Random cache geometries as simulated GPUs. */
#include "../check.h"

#include "geometry.h"

#include <stdlib.h>

#include "base/rng.h"
#include "device/sim/sim.h"
#include "probes/probes.h"

struct geometry geometry_default(void)
{
    return (struct geometry){
        .l1_size_bytes = 128 * 1024,
        .l1_line_bytes = 128,
        .l1_sector_bytes = 32,
        .l1_ways = 4,
        .l1_for_global = true,
        .instances = 1,
        .l1_cycles = 32,
        .l2_cycles = 200,
        .main_cycles = 500,
        .overhead_cycles = 2,
        .sms = 16,
    };
}

struct geometry geometry_random(uint64_t seed, uint64_t i)
{
    static const uint64_t sectors[] = {32, 64, 128, 96};
    static const uint32_t ways[] = {1, 2, 4, 6, 8, 16, 0};
    struct geometry g = geometry_default();
    struct rng rng;
    rng_init(&rng, rng_derive(seed, "geometry", i), "geometry");
    g.l1_sector_bytes = sectors[rng_below(&rng, COUNT_OF(sectors))];
    g.l1_line_bytes = g.l1_sector_bytes << rng_below(&rng, 4);
    if (g.l1_line_bytes > 512)
        g.l1_line_bytes = g.l1_sector_bytes;
    /* Sizes spread evenly over the octaves from 1 to 512 KiB, whole lines, any number of them. */
    uint64_t octave = 1024ull << rng_below(&rng, 9);
    uint64_t lines = (octave + rng_below(&rng, octave)) / g.l1_line_bytes;
    g.l1_size_bytes = (lines < 4 ? 4 : lines) * g.l1_line_bytes;
    g.l1_ways = ways[rng_below(&rng, COUNT_OF(ways))];
    if (g.l1_ways > g.l1_size_bytes / g.l1_line_bytes)
        g.l1_ways = 0;
    g.hashed = rng_below(&rng, 2);
    g.policy = (enum geometry_policy)rng_below(&rng, 4);
    g.l1_cycles = 20 + (double)rng_below(&rng, 100);
    g.l2_cycles = g.l1_cycles * 1.5 + 50 + (double)rng_below(&rng, 150);
    g.main_cycles = g.l2_cycles + 100 + (double)rng_below(&rng, 400);
    g.jitter_cycles = 0.2 * rng_uniform(&rng) * (g.l2_cycles - g.l1_cycles);
    g.spike_rate = 0.01 * rng_uniform(&rng);
    g.spike_cycles = 200 + (double)rng_below(&rng, 1000);
    g.overhead_cycles = (double)rng_below(&rng, 12);
    g.sms = 2 + (uint32_t)rng_below(&rng, 40);
    g.instances = 1u << rng_below(&rng, 3);
    g.blocked = rng_below(&rng, 2);
    g.texture_apart = rng_below(&rng, 2);
    return g;
}

void geometry_print(const struct geometry *g, struct strbuf *out)
{
    static const char *const policies[] = {"lru", "random", "fermi", "early", "fifo", "tree"};
    strbuf_printf(out,
                  "name: Test GPU\nsms: %u\nsms_per_tpc: 2\n"
                  "clock: {sm_mhz: 1500, idle_mhz: 300, ramp_ms: 2, memory_mhz: 2000}\n"
                  "timer: {overhead_cycles: %g, granularity_cycles: 1}\n"
                  "noise: {jitter_cycles: %.17g, spike_rate: %.17g, spike_cycles: %g}\n",
                  g->sms, g->overhead_cycles, g->jitter_cycles, g->spike_rate, g->spike_cycles);
    strbuf_printf(
        out,
        "caches:\n  l1: {size: %llu, line: %llu, sector: %llu, ways: %u, set_bytes: %llu, "
        "tags: %llu, index: %s, policy: %s, scope: %s, instances: %u, warp_map: %s}\n",
        (unsigned long long)g->l1_size_bytes, (unsigned long long)g->l1_line_bytes,
        (unsigned long long)g->l1_sector_bytes, g->l1_ways,
        (unsigned long long)(g->run * g->l1_line_bytes), (unsigned long long)g->tags_bytes,
        g->hashed ? "hashed" : "modulo", policies[g->policy], g->per_tpc ? "tpc" : "sm",
        g->instances, g->blocked ? "blocked" : "interleaved");
    strbuf_puts(out, "  tex: {size: 6 KiB, line: 64, sector: 32, ways: 4}\n");
    strbuf_printf(out,
                  "l2: {size: 2 MiB, line: 128, sector: 32, fetch: 64, ways: 16, index: %s, "
                  "policy: %s}\nmemory: {size: 1 GiB}\npaths:\n  global_ca:\n",
                  g->l2_hashed ? "hashed" : "modulo", policies[g->l2_policy]);
    if (g->l1_for_global)
        strbuf_printf(out, "    - l1: %g\n", g->l1_cycles);
    strbuf_printf(out, "    - l2: %g\n    - main: %g\n", g->l2_cycles, g->main_cycles);
    strbuf_printf(out, "  texture:\n    - %s: %g\n    - l2: %g\n    - main: %g\n",
                  g->texture_apart ? "tex" : "l1", g->l1_cycles, g->l2_cycles, g->main_cycles);
    strbuf_printf(out, "  global_cg:\n    - l2: %g\n    - main: %g\n", g->l2_cycles,
                  g->main_cycles);
}

void geometry_measure(const struct geometry *geometry, const char *list, uint64_t seed,
                      struct measures *out_measures)
{
    struct strbuf yaml = {0};
    struct sim_model *model = NULL;
    struct device *device = NULL;
    struct probe_selection selection;
    struct err err = {0};
    const struct probe_options options = {.profile = PROFILE_STANDARD, .seed = seed};
    char shown[1024];
    geometry_print(geometry, &yaml);
    if (sim_model_read_text(yaml.data, yaml.length, "geometry", &model, &err) ||
        sim_open(model, NULL, 0, seed, &device, &err) ||
        probes_select(PROFILE_STANDARD, list, &selection, &err) ||
        probes_run(device, &selection, &options, NULL, out_measures, &err))
        fail_msg("%s\n%s", err_format(&err, shown, sizeof shown), yaml.data);
    free(selection.indices);
    device_destroy(device);
    sim_model_destroy(model);
    strbuf_fini(&yaml);
}
