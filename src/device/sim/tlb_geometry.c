/* Reads the TLBs of a model. */
#include "base/mem.h"
#include "device/sim/model.h"
#include <errno.h>
#include <stddef.h>

enum { PAGE_MAX = 1 << 30 };

struct tlb_text {
    uint64_t entries, page;
    const struct yaml_node *ways;
    int policy, scope, index;
    double miss_cycles;
};

static const struct yaml_field tlb_fields[] = {
    {"entries", YAML_U64, offsetof(struct tlb_text, entries), .min = 1, .max = 1 << 20},
    {"ways", YAML_NODE, offsetof(struct tlb_text, ways)},
    {"index", YAML_WORD, offsetof(struct tlb_text, index), .words = sim_index_words},
    {"policy", YAML_WORD, offsetof(struct tlb_text, policy), .words = sim_policy_words},
    {"scope", YAML_WORD, offsetof(struct tlb_text, scope), .words = sim_scope_words},
    {"page", YAML_BYTES, offsetof(struct tlb_text, page), true, 4096, PAGE_MAX},
    {"miss_cycles", YAML_F64, offsetof(struct tlb_text, miss_cycles), true, 0, 1e6},
};

/* A list of the ways of each set. */
static int read_set_ways(const struct yaml_node *node, struct cache_geometry *geometry,
                         uint64_t *out_entries, struct err *err)
{
    uint64_t entries = 0;
    if (yaml_count(node) < 1 || yaml_count(node) > CACHE_SLOTS_MAX)
        return yaml_error(node, err, "expected 1 to %d sets", CACHE_SLOTS_MAX);
    for (size_t i = 0; i < yaml_count(node); i++) {
        uint64_t ways;
        int rc = yaml_as_u64(yaml_at(node, i), 1, UINT16_MAX, &ways, err);
        if (rc)
            return rc;
        geometry->set_ways[i] = (uint16_t)ways;
        entries += ways;
    }
    if (cache_slot_count(geometry) > CACHE_SLOTS_MAX)
        return yaml_error(node, err, "the sets differ too much");
    *out_entries = entries;
    return 0;
}

static int read_tlb_ways(const struct yaml_node *node, struct tlb_text *text,
                         struct cache_geometry *geometry, struct err *err)
{
    uint64_t entries = 0;
    if (!text->ways || yaml_kind(text->ways) != YAML_SEQUENCE) {
        if (!text->entries)
            return yaml_error(node, err, "key \"entries\" is missing");
        return text->ways ? sim_read_ways(text->ways, text->entries, &geometry->ways, err) : 0;
    }
    int rc = read_set_ways(text->ways, geometry, &entries, err);
    if (rc)
        return rc;
    if (text->entries && text->entries != entries)
        return yaml_error(text->ways, err, "the sets have %llu entries together",
                          (unsigned long long)entries);
    text->entries = entries;
    return 0;
}

static int read_tlb(const struct yaml_node *node, int scope, struct sim_tlb *tlb, struct err *err)
{
    struct tlb_text text = {.scope = scope};
    int rc = yaml_read_fields(node, tlb_fields, COUNT_OF(tlb_fields), &text, err);
    if (rc)
        return rc;
    if (text.page & (text.page - 1))
        return yaml_error(sim_at(node, "page"), err, "a page is a power of two");
    struct cache_geometry geometry = {.line = text.page,
                                      .sector = text.page,
                                      .fetch = text.page,
                                      .index = (enum cache_index)text.index,
                                      .policy = (enum cache_policy)text.policy};
    rc = read_tlb_ways(node, &text, &geometry, err);
    if (rc)
        return rc;
    if (text.policy == CACHE_TREE && (!geometry.ways || geometry.ways > CACHE_TREE_WAYS_MAX))
        return yaml_error(sim_at(node, "policy"), err, "a tree has 1 to %d ways",
                          CACHE_TREE_WAYS_MAX);
    geometry.size = text.entries * text.page;
    tlb->geometry = geometry;
    tlb->scope = text.scope;
    tlb->miss_cycles = text.miss_cycles;
    tlb->present = true;
    return 0;
}

int sim_read_tlbs(const struct yaml_node *node, struct sim_model *model, struct err *err)
{
    if (yaml_expect(node, YAML_SEQUENCE, err))
        return -EINVAL;
    if (yaml_count(node) > SIM_TLBS)
        return yaml_error(node, err, "at most %d TLB levels", SIM_TLBS);
    for (size_t i = 0; i < yaml_count(node); i++) {
        int rc = read_tlb(yaml_at(node, i), i ? SIM_SCOPE_GPU : SIM_SCOPE_SM, &model->tlbs[i], err);
        if (rc) {
            err_prefix(err, "TLB level %zu", i + 1);
            return rc;
        }
        if (i && model->tlbs[i].geometry.line < model->tlbs[i - 1].geometry.line)
            return yaml_error(sim_at(yaml_at(node, i), "page"), err,
                              "the page is smaller than that of the level before");
    }
    return 0;
}
