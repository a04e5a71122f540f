/* What is drawn of a model, from its measures. */
#include "report/hierarchy.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "markup/text.h"

enum { METRIC_MAX = 64 };

static const struct measure *hierarchy_find(const struct inventory_model *model, const char *memory,
                                            const char *attribute)
{
    char metric[METRIC_MAX];
    snprintf(metric, sizeof metric, "%s.%s", memory, attribute);
    return measures_get(&model->memory, metric);
}

static bool hierarchy_valued(const struct measure *m)
{
    return m && m->kind == MEASURE_NUMBER && measure_status_valued(m->status) && isfinite(m->value);
}

/* "216.8 KiB", "at least 64 KiB", "36 cycles (18 ns)", "unsupported". */
static void hierarchy_put_measure(struct strbuf *line, const struct measure *m)
{
    if (!hierarchy_valued(m)) {
        strbuf_puts(line,
                    measure_status_valued(m->status) ? "failed" : measure_status_name(m->status));
        return;
    }
    strbuf_puts(line, m->bound == MEASURE_AT_LEAST ? "at least " : "");
    text_put_quantity(line, m->value, m->unit);
    const struct fact *ns = facts_get(&m->notes, "ns");
    if (ns && (ns->kind == FACT_REAL || ns->kind == FACT_INT)) {
        strbuf_puts(line, " (");
        text_put_quantity(line, ns->kind == FACT_REAL ? ns->real : (double)ns->integer, "ns");
        strbuf_puts(line, ")");
    }
    if (m->status == MEASURE_NOISY)
        strbuf_puts(line, ", noisy");
}

/* Attributes on one line, each after its word; absent ones are left out. */
struct part {
    const char *word, *attribute;
};

/* Takes ownership of the text. */
static void hierarchy_add_text(struct hierarchy_memory *memory, struct strbuf *line)
{
    if (line->data)
        memory->lines[memory->line_count++] = line->data;
}

static void hierarchy_add_line(const struct inventory_model *model, struct hierarchy_memory *memory,
                               const struct part *parts, size_t count)
{
    struct strbuf line = {0};
    for (size_t i = 0; i < count; i++) {
        const struct measure *m = hierarchy_find(model, memory->key, parts[i].attribute);
        if (!m)
            continue;
        strbuf_printf(&line, "%s%s", line.length ? ", " : "", parts[i].word);
        hierarchy_put_measure(&line, m);
    }
    hierarchy_add_text(memory, &line);
}

static void hierarchy_add_size(const struct inventory_model *model, struct hierarchy_memory *memory)
{
    const struct measure *m = hierarchy_find(model, memory->key, "size");
    const struct measure *per_sm = hierarchy_find(model, memory->key, "per_sm");
    struct strbuf line = {0};
    if (m) {
        strbuf_puts(&line, hierarchy_valued(m) ? "" : "size ");
        hierarchy_put_measure(&line, m);
    }
    if (hierarchy_valued(m) && measure_is_reported(m))
        strbuf_puts(&line, ", as reported");
    if (m && hierarchy_valued(per_sm) && per_sm->value > 1)
        strbuf_printf(&line, ", %.0f per SM", per_sm->value);
    int64_t reported = m ? facts_int(&m->notes, "reported", -1) : -1;
    if (hierarchy_valued(m) && reported > 0 && (double)reported != m->value) {
        strbuf_puts(&line, ", driver: ");
        text_put_quantity(&line, (double)reported, "B");
    }
    hierarchy_add_text(memory, &line);
}

static void hierarchy_describe(const struct inventory_model *model, struct hierarchy_memory *memory)
{
    static const struct part lines[] = {{"line ", "line"}, {"fetch ", "fetch"}};
    static const struct part latency[] = {{"", "latency"}}, far[] = {{"far ", "latency_far"}};
    static const struct part bandwidth[] = {{"read ", "bandwidth.read"},
                                            {"write ", "bandwidth.write"}};
    static const struct part copy[] = {{"copy ", "bandwidth.copy"}};
    static const struct part link[] = {{"to GPU ", "bandwidth.h2d"},
                                       {"from GPU ", "bandwidth.d2h"}};
    static const struct part both[] = {{"both ways ", "bandwidth.both"}};
    hierarchy_add_size(model, memory);
    hierarchy_add_line(model, memory, lines, COUNT_OF(lines));
    hierarchy_add_line(model, memory, latency, 1);
    const struct measure *m = hierarchy_find(model, memory->key, "latency_far");
    if (hierarchy_valued(m))
        hierarchy_add_line(model, memory, far, 1);
    hierarchy_add_line(model, memory, bandwidth, COUNT_OF(bandwidth));
    hierarchy_add_line(model, memory, copy, 1);
    hierarchy_add_line(model, memory, link, COUNT_OF(link));
    hierarchy_add_line(model, memory, both, 1);
}

static bool hierarchy_shares(const struct inventory_model *model, const char *a, const char *b)
{
    const struct measure *m = hierarchy_find(model, a, "shared_with");
    if (!m || m->kind != MEASURE_WORDS || !measure_status_valued(m->status))
        return false;
    for (size_t i = 0; i < m->word_count; i++)
        if (strcmp(m->words[i], b) == 0)
            return true;
    return false;
}

static const char *const sm_memories[HIERARCHY_BLOCKS_MAX][2] = {{"l1_data", "L1 data"},
                                                                 {"texture", "texture"},
                                                                 {"read_only", "read-only"},
                                                                 {"shared", "shared memory"},
                                                                 {"constant_l1", "constant L1"}};

/* Which memories share one array: the index of the first of them. */
static void hierarchy_group(const struct inventory_model *model,
                            size_t groups[HIERARCHY_BLOCKS_MAX])
{
    for (size_t i = 0; i < HIERARCHY_BLOCKS_MAX; i++)
        groups[i] = i;
    for (size_t i = 0; i < HIERARCHY_BLOCKS_MAX; i++)
        for (size_t k = 0; k < HIERARCHY_BLOCKS_MAX; k++) {
            if (!hierarchy_shares(model, sm_memories[i][0], sm_memories[k][0]))
                continue;
            size_t low = groups[i] < groups[k] ? groups[i] : groups[k];
            size_t high = groups[i] < groups[k] ? groups[k] : groups[i];
            for (size_t n = 0; n < HIERARCHY_BLOCKS_MAX; n++)
                groups[n] = groups[n] == high ? low : groups[n];
        }
}

static void hierarchy_fill_blocks(struct hierarchy *h, const struct inventory_model *model)
{
    size_t groups[HIERARCHY_BLOCKS_MAX];
    hierarchy_group(model, groups);
    for (size_t first = 0; first < HIERARCHY_BLOCKS_MAX; first++) {
        struct hierarchy_block *block = &h->blocks[h->block_count];
        for (size_t i = first; i < HIERARCHY_BLOCKS_MAX; i++) {
            if (groups[i] != first)
                continue;
            struct hierarchy_memory *memory = &block->memories[block->count];
            memory->key = sm_memories[i][0];
            memory->name = sm_memories[i][1];
            hierarchy_describe(model, memory);
            block->count += memory->line_count > 0;
        }
        h->block_count += block->count > 0;
    }
}

static void hierarchy_fill_title(struct hierarchy *h, const struct inventory_model *model)
{
    struct strbuf title = {0};
    int64_t sms = facts_int(&model->identity, "sms", 0);
    const struct measure *clock = measures_get(&model->memory, "clock.sm");
    strbuf_puts(&title, "SM");
    if (sms > 0)
        strbuf_printf(&title, ", one of %lld", (long long)sms);
    if (hierarchy_valued(clock)) {
        strbuf_puts(&title, ", ");
        text_put_quantity(&title, clock->value, clock->unit);
    }
    h->sm_title = title.data;
}

void report_hierarchy_init(struct hierarchy *hierarchy, const struct inventory_model *model)
{
    struct hierarchy *h = hierarchy;
    memset(h, 0, sizeof *h);
    h->constant_l15 = (struct hierarchy_memory){.key = "constant_l15", .name = "constant L1.5"};
    h->l2 = (struct hierarchy_memory){.key = "l2", .name = "L2"};
    h->main = (struct hierarchy_memory){.key = "main", .name = "main memory"};
    h->host = (struct hierarchy_memory){.key = "host", .name = "host link"};
    hierarchy_fill_title(h, model);
    hierarchy_fill_blocks(h, model);
    hierarchy_describe(model, &h->constant_l15);
    hierarchy_describe(model, &h->l2);
    hierarchy_describe(model, &h->main);
    hierarchy_describe(model, &h->host);
    const struct measure *sms = hierarchy_find(model, "constant_l15", "sms");
    const struct measure *parts = hierarchy_find(model, "l2", "parts");
    h->l15_sms = hierarchy_valued(sms) ? sms->value : NAN;
    h->l2_parts = hierarchy_valued(parts) && parts->value >= 1 && parts->value <= 8
                      ? (unsigned)parts->value
                      : 1;
}

static void hierarchy_memory_fini(struct hierarchy_memory *memory)
{
    for (size_t i = 0; i < memory->line_count; i++)
        free(memory->lines[i]);
}

void report_hierarchy_fini(struct hierarchy *hierarchy)
{
    for (size_t i = 0; i < HIERARCHY_BLOCKS_MAX; i++)
        for (size_t k = 0; k < HIERARCHY_BLOCKS_MAX; k++)
            hierarchy_memory_fini(&hierarchy->blocks[i].memories[k]);
    hierarchy_memory_fini(&hierarchy->constant_l15);
    hierarchy_memory_fini(&hierarchy->l2);
    hierarchy_memory_fini(&hierarchy->main);
    hierarchy_memory_fini(&hierarchy->host);
    free(hierarchy->sm_title);
    memset(hierarchy, 0, sizeof *hierarchy);
}
