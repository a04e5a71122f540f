/* What is drawn of a model, from its measures. */
#include "report/hierarchy.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "markup/text.h"

enum { METRIC_MAX = 64 };

static const struct measure *find(const struct inventory_model *model, const char *memory,
                                  const char *attribute)
{
    char metric[METRIC_MAX];
    snprintf(metric, sizeof metric, "%s.%s", memory, attribute);
    return measures_get(&model->memory, metric);
}

static bool valued(const struct measure *m)
{
    return m && m->kind == MEASURE_NUMBER && measure_status_valued(m->status) && isfinite(m->value);
}

/* "216.8 KiB", "at least 64 KiB", "36 cycles (18 ns)", "unsupported". */
static void put_measure(struct strbuf *line, const struct measure *m)
{
    if (!valued(m)) {
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

static void add_text(struct hierarchy_memory *memory, struct strbuf *line, bool *failed)
{
    if (line->failed || (line->data && memory->line_count == HIERARCHY_LINES_MAX))
        *failed = true;
    if (line->data && memory->line_count < HIERARCHY_LINES_MAX)
        memory->lines[memory->line_count++] = line->data;
    else
        strbuf_fini(line);
}

static void add_line(const struct inventory_model *model, struct hierarchy_memory *memory,
                     const struct part *parts, size_t count, bool *failed)
{
    struct strbuf line = {0};
    for (size_t i = 0; i < count; i++) {
        const struct measure *m = find(model, memory->key, parts[i].attribute);
        if (!m)
            continue;
        strbuf_printf(&line, "%s%s", line.length ? ", " : "", parts[i].word);
        put_measure(&line, m);
    }
    add_text(memory, &line, failed);
}

static void add_size(const struct inventory_model *model, struct hierarchy_memory *memory,
                     bool *failed)
{
    const struct measure *m = find(model, memory->key, "size");
    const struct measure *per_sm = find(model, memory->key, "per_sm");
    struct strbuf line = {0};
    if (m) {
        strbuf_puts(&line, valued(m) ? "" : "size ");
        put_measure(&line, m);
    }
    if (valued(m) && str_equal(m->method, "reported"))
        strbuf_puts(&line, ", as reported");
    if (m && valued(per_sm) && per_sm->value > 1)
        strbuf_printf(&line, ", %.0f per SM", per_sm->value);
    int64_t reported = m ? facts_int(&m->notes, "reported", -1) : -1;
    if (valued(m) && reported > 0 && (double)reported != m->value) {
        strbuf_puts(&line, ", driver: ");
        text_put_quantity(&line, (double)reported, "B");
    }
    add_text(memory, &line, failed);
}

static void describe(const struct inventory_model *model, struct hierarchy_memory *memory,
                     bool *failed)
{
    static const struct part lines[] = {{"line ", "line"}, {"fetch ", "fetch"}};
    static const struct part latency[] = {{"", "latency"}}, far[] = {{"far ", "latency_far"}};
    static const struct part bandwidth[] = {{"read ", "bandwidth.read"},
                                            {"write ", "bandwidth.write"}};
    static const struct part copy[] = {{"copy ", "bandwidth.copy"}};
    static const struct part link[] = {{"to GPU ", "bandwidth.h2d"},
                                       {"from GPU ", "bandwidth.d2h"}};
    static const struct part both[] = {{"both ways ", "bandwidth.both"}};
    add_size(model, memory, failed);
    add_line(model, memory, lines, COUNT_OF(lines), failed);
    add_line(model, memory, latency, 1, failed);
    const struct measure *m = find(model, memory->key, "latency_far");
    if (valued(m))
        add_line(model, memory, far, 1, failed);
    add_line(model, memory, bandwidth, COUNT_OF(bandwidth), failed);
    add_line(model, memory, copy, 1, failed);
    add_line(model, memory, link, COUNT_OF(link), failed);
    add_line(model, memory, both, 1, failed);
}

static bool shares(const struct inventory_model *model, const char *a, const char *b)
{
    const struct measure *m = find(model, a, "shared_with");
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
static void group(const struct inventory_model *model, size_t groups[HIERARCHY_BLOCKS_MAX])
{
    for (size_t i = 0; i < HIERARCHY_BLOCKS_MAX; i++)
        groups[i] = i;
    for (size_t i = 0; i < HIERARCHY_BLOCKS_MAX; i++)
        for (size_t k = 0; k < HIERARCHY_BLOCKS_MAX; k++) {
            if (!shares(model, sm_memories[i][0], sm_memories[k][0]))
                continue;
            size_t low = groups[i] < groups[k] ? groups[i] : groups[k];
            size_t high = groups[i] < groups[k] ? groups[k] : groups[i];
            for (size_t n = 0; n < HIERARCHY_BLOCKS_MAX; n++)
                groups[n] = groups[n] == high ? low : groups[n];
        }
}

static void fill_blocks(struct hierarchy *h, const struct inventory_model *model, bool *failed)
{
    size_t groups[HIERARCHY_BLOCKS_MAX];
    group(model, groups);
    for (size_t first = 0; first < HIERARCHY_BLOCKS_MAX; first++) {
        struct hierarchy_block *block = &h->blocks[h->block_count];
        for (size_t i = first; i < HIERARCHY_BLOCKS_MAX; i++) {
            if (groups[i] != first)
                continue;
            struct hierarchy_memory *memory = &block->memories[block->count];
            memory->key = sm_memories[i][0];
            memory->name = sm_memories[i][1];
            describe(model, memory, failed);
            block->count += memory->line_count > 0;
        }
        h->block_count += block->count > 0;
    }
}

static void fill_title(struct hierarchy *h, const struct inventory_model *model, bool *failed)
{
    struct strbuf title = {0};
    int64_t sms = facts_int(&model->identity, "sms", 0);
    const struct measure *clock = measures_get(&model->memory, "clock.sm");
    strbuf_puts(&title, "SM");
    if (sms > 0)
        strbuf_printf(&title, ", one of %lld", (long long)sms);
    if (valued(clock)) {
        strbuf_puts(&title, ", ");
        text_put_quantity(&title, clock->value, clock->unit);
    }
    *failed |= title.failed;
    h->sm_title = title.data;
}

int hierarchy_init(struct hierarchy *hierarchy, const struct inventory_model *model)
{
    struct hierarchy *h = hierarchy;
    bool failed = false;
    memset(h, 0, sizeof *h);
    h->constant_l15 = (struct hierarchy_memory){.key = "constant_l15", .name = "constant L1.5"};
    h->l2 = (struct hierarchy_memory){.key = "l2", .name = "L2"};
    h->main = (struct hierarchy_memory){.key = "main", .name = "main memory"};
    h->host = (struct hierarchy_memory){.key = "host", .name = "host link"};
    fill_title(h, model, &failed);
    fill_blocks(h, model, &failed);
    describe(model, &h->constant_l15, &failed);
    describe(model, &h->l2, &failed);
    describe(model, &h->main, &failed);
    describe(model, &h->host, &failed);
    const struct measure *sms = find(model, "constant_l15", "sms");
    const struct measure *parts = find(model, "l2", "parts");
    h->l15_sms = valued(sms) ? sms->value : NAN;
    h->l2_parts =
        valued(parts) && parts->value >= 1 && parts->value <= 8 ? (unsigned)parts->value : 1;
    return failed || !h->sm_title ? -ENOMEM : 0;
}

static void memory_fini(struct hierarchy_memory *memory)
{
    for (size_t i = 0; i < memory->line_count; i++)
        free(memory->lines[i]);
}

void hierarchy_fini(struct hierarchy *hierarchy)
{
    for (size_t i = 0; i < HIERARCHY_BLOCKS_MAX; i++)
        for (size_t k = 0; k < HIERARCHY_BLOCKS_MAX; k++)
            memory_fini(&hierarchy->blocks[i].memories[k]);
    memory_fini(&hierarchy->constant_l15);
    memory_fini(&hierarchy->l2);
    memory_fini(&hierarchy->main);
    memory_fini(&hierarchy->host);
    free(hierarchy->sm_title);
    memset(hierarchy, 0, sizeof *hierarchy);
}
