/* A simulated fleet from YAML as a source of GPUs: nodes, models, faults. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/sort.h"
#include "base/str.h"
#include "device/sim/draws.h"
#include "device/sim/fleet_models.h"
#include "device/sim/model.h"
#include "device/sim/node_links.h"
#include "device/sim/sim.h"
#include "device/source.h"

enum { GPUS_MAX = 200000, NODES_MAX = 200000, NODE_GPUS_MAX = 256, FAULTS_MAX = 1024 };

/* gpu < 0: every GPU of the node. */
struct node_fault {
    int32_t gpu;
    struct sim_fault fault;
};

/* One item of `nodes`: a node, or a range of them. */
struct fleet_entry {
    const char *name; /* pattern; belongs to the document */
    const struct yaml_node *at;
    uint32_t count, first, gpus, given; /* given: 0: not in the file */
    const struct sim_model **models;    /* of the GPUs, in turn */
    size_t model_count;
    struct node_fault *faults;
    size_t fault_count;
    struct sim_wiring wiring;
};

struct gpu_slot {
    const struct fleet_entry *entry;
    uint32_t index; /* on its node */
    struct sim_numbers numbers;
    struct sim_unit unit;
};

struct fleet {
    struct device_source source; /* infos are parallel to slots */
    struct arena arena;
    struct fleet_models models;
    struct sim_draws draws;
    struct fleet_entry *entries;
    size_t entry_count;
    struct gpu_slot *slots;
    size_t slot_capacity, info_capacity, bare_capacity, dead_capacity;
    uint64_t identity_seed, noise_seed;
    uint64_t place; /* tells the nodes of this fleet from others on this machine */
    uint32_t rank, ranks;
    struct sim_vary vary;
};

enum visibility { SEES_OWN, SEES_ALL };
static const char *const visibility_words[] = {"own", "all", NULL};

struct fleet_text {
    uint64_t seed;
    int visibility;
    const struct yaml_node *vary, *nodes;
    struct sim_draws_text draws;
};

static const struct yaml_field fleet_fields[] = {
    {"seed", YAML_U64, offsetof(struct fleet_text, seed)},
    {"visibility", YAML_WORD, offsetof(struct fleet_text, visibility), .words = visibility_words},
    {"vary", YAML_NODE, offsetof(struct fleet_text, vary)},
    {"racks", YAML_NODE, offsetof(struct fleet_text, draws.racks)},
    {"batches", YAML_NODE, offsetof(struct fleet_text, draws.batches)},
    {"layouts", YAML_NODE, offsetof(struct fleet_text, draws.layouts)},
    {"faults", YAML_NODE, offsetof(struct fleet_text, draws.faults)},
    {"nodes", YAML_NODE, offsetof(struct fleet_text, nodes), true},
};

struct entry_text {
    const char *name;
    uint32_t count, first, gpus, given;
    const struct yaml_node *model, *links, *faults;
};

static const struct yaml_field entry_fields[] = {
    {"name", YAML_STRING, offsetof(struct entry_text, name), true},
    {"count", YAML_U32, offsetof(struct entry_text, count), .min = 1, .max = NODES_MAX},
    {"first", YAML_U32, offsetof(struct entry_text, first)},
    {"model", YAML_NODE, offsetof(struct entry_text, model)},
    {"gpus", YAML_U32, offsetof(struct entry_text, gpus), true, 0, NODE_GPUS_MAX},
    {"given", YAML_U32, offsetof(struct entry_text, given), .min = 1, .max = NODE_GPUS_MAX},
    {"links", YAML_NODE, offsetof(struct entry_text, links)},
    {"faults", YAML_NODE, offsetof(struct entry_text, faults)},
};

/* Patterns of node names. They are parsed here, since text from a file must never reach printf as a
 * format. */
enum { NAME_MAX_BYTES = 255 };

enum name_piece { PIECE_END, PIECE_BYTE, PIECE_NUMBER, PIECE_BAD };

/* Reads the next piece of the pattern. */
static enum name_piece name_next_piece(const char **pattern, char *out_byte, int *out_width)
{
    const char *at = *pattern;
    if (!*at)
        return PIECE_END;
    *out_byte = *at;
    if (*at++ != '%' || *at == '%') {
        *pattern = *out_byte == '%' ? at + 1 : at;
        return PIECE_BYTE;
    }
    *out_width = 0;
    if (at[0] == '0' && at[1] >= '1' && at[1] <= '9') {
        *out_width = at[1] - '0';
        at += 2;
    }
    *pattern = at + 1;
    return *at == 'd' ? PIECE_NUMBER : PIECE_BAD;
}

int sim_node_name_check(const char *pattern, uint32_t count, struct err *err)
{
    if (!*pattern || strlen(pattern) > NAME_MAX_BYTES)
        return err_set(err, -EINVAL, "a node's name has 1 to %d bytes", NAME_MAX_BYTES);
    const char *rest = pattern;
    int numbers = 0, width;
    char byte;
    for (;;) {
        enum name_piece piece = name_next_piece(&rest, &byte, &width);
        if (piece == PIECE_END)
            break;
        if (piece == PIECE_BAD || (piece == PIECE_NUMBER && numbers++))
            return err_set(err, -EINVAL,
                           "a node's name may have at most one %%d or %%03d, and %%%%");
    }
    if (count > 1 && !numbers)
        return err_set(err, -EINVAL, "%u nodes need a %%d in their name", count);
    return 0;
}

char *sim_node_name(struct arena *arena, const char *pattern, uint64_t number)
{
    struct strbuf name = {0};
    int width;
    char byte;
    for (enum name_piece piece; (piece = name_next_piece(&pattern, &byte, &width)) != PIECE_END;) {
        if (piece == PIECE_BYTE)
            strbuf_append(&name, &byte, 1);
        else
            strbuf_printf(&name, "%0*llu", width, (unsigned long long)number);
    }
    char *copy = arena_copy(arena, name.data, name.length);
    strbuf_fini(&name);
    return copy;
}

static void fleet_destroy(struct device_source *source)
{
    struct fleet *fleet = (struct fleet *)source;
    for (size_t i = 0; i < fleet->entry_count; i++) {
        free(fleet->entries[i].faults);
        free(fleet->entries[i].models);
    }
    fleet_models_fini(&fleet->models);
    sim_draws_fini(&fleet->draws);
    arena_fini(&fleet->arena);
    free(fleet->entries);
    free(fleet->slots);
    free(fleet->source.infos);
    free(fleet->source.bare_nodes);
    free(fleet->source.dead_nodes);
    free(fleet);
}

static const struct sim_model *model_of(const struct fleet_entry *entry, uint32_t index)
{
    return entry->models[index % entry->model_count];
}

static bool node_fault_concerns(const struct node_fault *fault, uint32_t index)
{
    return fault->gpu < 0 || (uint32_t)fault->gpu == index;
}

/* Whether the GPU, or its node if index is UINT32_MAX, has a fault of this kind. */
static bool fleet_has_fault(const struct fleet *fleet, const struct fleet_entry *entry, int kind,
                            uint32_t index, const struct sim_numbers *numbers)
{
    for (size_t i = 0; i < entry->fault_count; i++)
        if (entry->faults[i].fault.kind == kind && node_fault_concerns(&entry->faults[i], index))
            return true;
    return sim_draw_has_fault(&fleet->draws, fleet->identity_seed, numbers, kind);
}

/* All faults of a GPU that this worker meets, in `faults`, which has room for all; returns how
 * many. */
static size_t fleet_list_faults(const struct fleet *fleet, const struct gpu_slot *slot,
                                struct sim_fault *faults)
{
    const struct fleet_entry *entry = slot->entry;
    size_t count = sim_draw_faults(&fleet->draws, fleet->identity_seed, &slot->numbers, faults);
    for (size_t k = 0; k < entry->fault_count; k++)
        if (node_fault_concerns(&entry->faults[k], slot->index))
            faults[count++] = entry->faults[k].fault;
    size_t met = 0;
    for (size_t i = 0; i < count; i++)
        if (!faults[i].tries || fleet->source.attempt < faults[i].tries)
            faults[met++] = faults[i];
    return met;
}

/* The GPUs of the node that this process sees, with the faults of their links. GPUs of one node
 * follow each other. faults: has room for those of one GPU. */
static void fleet_find_links(const struct fleet *fleet, size_t i, struct sim_fault *faults,
                             struct sim_links *links)
{
    const struct device_info *infos = fleet->source.infos;
    size_t first = i;
    while (first && infos[first - 1].node == infos[i].node)
        first--;
    *links = (struct sim_links){.wiring = fleet->slots[i].entry->wiring,
                                .seed = rng_derive(fleet->identity_seed, infos[i].node, 0),
                                .own = (uint32_t)(i - first)};
    for (size_t k = first; k < fleet->source.info_count && infos[k].node == infos[i].node &&
                           links->count < DEVICE_PEERS_MAX;
         k++) {
        struct sim_link_end *end = &links->gpus[links->count++];
        end->index = fleet->slots[k].index;
        sim_unit_uuid(&fleet->slots[k].unit, end->uuid);
        size_t count = fleet_list_faults(fleet, &fleet->slots[k], faults);
        for (size_t f = 0; f < count; f++)
            sim_links_add_fault(links, end->index, &faults[f]);
    }
}

static int fleet_open(struct device_source *source, size_t i, struct device **out_device,
                      struct err *err)
{
    const struct fleet *fleet = (const struct fleet *)source;
    const struct gpu_slot *slot = &fleet->slots[i];
    const struct fleet_entry *entry = slot->entry;
    struct sim_fault *faults =
        mem_array(fleet->draws.fault_count + entry->fault_count, sizeof *faults);
    struct sim_links links;
    struct sim_unit unit = slot->unit;
    fleet_find_links(fleet, i, faults, &links);
    size_t count = fleet_list_faults(fleet, slot, faults);
    unit.session = source->session;
    unit.links = &links;
    int rc = sim_open_unit(model_of(entry, slot->index), &unit, faults, count, out_device, err);
    free(faults);
    return rc;
}

/* Nothing is simulated here, so this is cheap. */
static int fleet_look(struct device_source *source, size_t i, bool thorough,
                      struct device_look *look, struct err *err)
{
    (void)thorough;
    struct device *device = NULL;
    struct facts hardware = {0};
    int rc = fleet_open(source, i, &device, err);
    if (rc)
        return rc;
    rc = device_identify(device, &hardware, &look->board, &look->config, err);
    if (!rc)
        rc = device_read_health(device, &look->config, &look->health, err);
    facts_fini(&hardware);
    device_destroy(device);
    return rc;
}

static const struct device_source_ops fleet_ops = {
    .backend = "sim",
    .open = fleet_open,
    .look = fleet_look,
    .destroy = fleet_destroy,
};

static int read_node_fault(const struct yaml_node *node, const struct fleet_entry *entry,
                           struct node_fault *out_fault, struct err *err)
{
    struct node_fault fault = {.gpu = -1};
    struct sim_fault_place place;
    int rc = sim_fault_read(node, false, &fault.fault, &place, err);
    if (rc)
        return rc;
    if (!str_equal(yaml_text(place.gpu), "all")) {
        uint64_t index;
        rc = yaml_as_u64(place.gpu, 0, entry->gpus - 1, &index, err);
        if (rc) {
            err_prefix(err, "gpu (an index on the node, or all)");
            return rc;
        }
        fault.gpu = (int32_t)index;
    }
    if (fault.fault.kind == SIM_DEAD_DRIVER && fault.gpu >= 0)
        return yaml_error(place.gpu, err, "a dead driver concerns all GPUs of the node: gpu: all");
    rc = sim_link_fault_fits(node, &entry->wiring, entry->gpus, fault.gpu, &fault.fault, err);
    for (uint32_t i = 0; !rc && i < entry->model_count; i++)
        if (fault.gpu < 0 || (uint32_t)fault.gpu % entry->model_count == i)
            rc = sim_fault_fits(node, &fault.fault, entry->models[i], err);
    if (rc)
        return rc;
    *out_fault = fault;
    return 0;
}

static int read_node_faults(const struct yaml_node *node, struct fleet_entry *entry,
                            struct err *err)
{
    if (!node)
        return 0;
    if (yaml_expect(node, YAML_SEQUENCE, err))
        return -EINVAL;
    if (!entry->gpus || yaml_count(node) > FAULTS_MAX)
        return yaml_error(node, err, "a node without GPUs has no faults, another at most %d",
                          FAULTS_MAX);
    entry->faults = mem_array(yaml_count(node), sizeof *entry->faults);
    for (size_t i = 0; i < yaml_count(node); i++) {
        int rc = read_node_fault(yaml_at(node, i), entry, &entry->faults[i], err);
        if (rc)
            return rc;
        entry->fault_count++;
    }
    return 0;
}

/* One model for all GPUs, or a list with one for each. */
static int fleet_read_models(struct fleet *fleet, const struct yaml_node *node,
                             struct fleet_entry *entry, struct err *err)
{
    bool listed = yaml_kind(node) == YAML_SEQUENCE;
    size_t count = listed ? yaml_count(node) : 1;
    if (listed && count != entry->gpus)
        return yaml_error(node, err, "expected one model, or a list with one for each of %u GPUs",
                          entry->gpus);
    entry->models = mem_array(count, sizeof *entry->models);
    for (; entry->model_count < count; entry->model_count++) {
        const struct yaml_node *at = listed ? yaml_at(node, entry->model_count) : node;
        int rc = fleet_models_load(&fleet->models, at, &entry->models[entry->model_count], err);
        if (rc)
            return rc;
    }
    return 0;
}

static int read_fleet_entry(struct fleet *fleet, const struct yaml_node *node,
                            struct fleet_entry *entry, struct err *err)
{
    struct entry_text text = {.count = 1, .first = 1};
    int rc = yaml_read_fields(node, entry_fields, COUNT_OF(entry_fields), &text, err);
    if (rc)
        return rc;
    *entry = (struct fleet_entry){.name = text.name,
                                  .at = node,
                                  .count = text.count,
                                  .first = text.first,
                                  .gpus = text.gpus,
                                  .given = text.given};
    if (text.given > text.gpus)
        return yaml_error(sim_at(node, "given"), err, "more than the %u GPUs of the node",
                          text.gpus);
    struct err reason = {0};
    if (sim_node_name_check(text.name, text.count, &reason))
        return yaml_error(sim_at(node, "name"), err, "%s", reason.text);
    if (text.gpus && !text.model)
        return yaml_error(node, err, "key \"model\" is missing");
    if (text.model)
        rc = fleet_read_models(fleet, text.model, entry, err);
    if (rc)
        return rc;
    rc = sim_wiring_read(text.links, text.gpus, &entry->wiring, err);
    return rc ? rc : read_node_faults(text.faults, entry, err);
}

static int fleet_read_entries(struct fleet *fleet, const struct yaml_node *nodes, struct err *err)
{
    if (yaml_expect(nodes, YAML_SEQUENCE, err))
        return -EINVAL;
    if (!yaml_count(nodes))
        return yaml_error(nodes, err, "a fleet has at least one node");
    fleet->entries = mem_array(yaml_count(nodes), sizeof *fleet->entries);
    uint64_t node_total = 0, gpu_total = 0;
    for (size_t i = 0; i < yaml_count(nodes); i++) {
        struct fleet_entry *entry = &fleet->entries[fleet->entry_count++];
        int rc = read_fleet_entry(fleet, yaml_at(nodes, i), entry, err);
        if (rc)
            return rc;
        node_total += entry->count;
        gpu_total += (uint64_t)entry->count * entry->gpus;
        if (node_total > NODES_MAX || gpu_total > GPUS_MAX)
            return yaml_error(entry->at, err, "more than %d nodes or %d GPUs in all", NODES_MAX,
                              GPUS_MAX);
    }
    return 0;
}

static void fleet_add_gpu(struct fleet *fleet, const struct fleet_entry *entry, const char *node,
                          uint32_t index, const struct sim_numbers *numbers)
{
    const struct sim_model *model = model_of(entry, index);
    struct device_source *source = &fleet->source;
    size_t count = source->info_count;
    struct device_info *infos = source->infos =
        mem_grow(source->infos, &fleet->info_capacity, count + 1, sizeof *infos);
    struct gpu_slot *slots = fleet->slots =
        mem_grow(fleet->slots, &fleet->slot_capacity, count + 1, sizeof *slots);
    char *uuid = arena_alloc(&fleet->arena, SIM_UUID_MAX);
    char pci[32];
    int length = snprintf(pci, sizeof pci, "%04x:%02x:00.0", index / 16, index % 16 * 16 + 0xb);
    uint64_t seed = fleet->identity_seed;
    slots[count] = (struct gpu_slot){
        .entry = entry,
        .index = index,
        .numbers = *numbers,
        .unit = {.identity_seed = rng_derive(seed, "gpu", numbers->of[SIM_PER_GPU]),
                 .noise_seed = fleet->noise_seed,
                 .vary = fleet->vary,
                 .batch = sim_draw_batch(&fleet->draws, seed, model, numbers),
                 .layout = sim_draw_layout(&fleet->draws, seed, model, numbers),
                 .node = rng_derive(fleet->place, node, 0),
                 .index = index,
                 .is_instance = sim_model_is_instance(model)},
    };
    sim_unit_uuid(&slots[count].unit, uuid);
    infos[count] = (struct device_info){.uuid = uuid,
                                        .node = node,
                                        .pci = arena_copy(&fleet->arena, pci, (size_t)length),
                                        .index = (int32_t)index,
                                        .name = sim_model_name(model),
                                        .model_key = sim_model_key(model),
                                        .gpus_allocated = entry->given};
    source->info_count++;
}

struct named {
    const char *name;
    const struct yaml_node *at;
};

static int node_name_order(const void *a, const void *b)
{
    return strcmp(((const struct named *)a)->name, ((const struct named *)b)->name);
}

/* numbers: of the node's first GPU; moves on to those of the next node. */
static void fleet_add_node(struct fleet *fleet, const struct fleet_entry *entry, const char *name,
                           bool all_visible, struct sim_numbers *numbers)
{
    struct device_source *source = &fleet->source;
    uint64_t *gpu = &numbers->of[SIM_PER_GPU], *node = &numbers->of[SIM_PER_NODE];
    bool dead = entry->gpus && fleet_has_fault(fleet, entry, SIM_DEAD_DRIVER, UINT32_MAX, numbers);
    uint32_t given = entry->given ? entry->given : entry->gpus;
    /* Only rank 0 reports nodes without GPUs or with a dead driver, so that each is reported once.
     */
    if (fleet->rank == 0 && !entry->gpus) {
        source->bare_nodes = mem_grow(source->bare_nodes, &fleet->bare_capacity,
                                      source->bare_count + 1, sizeof *source->bare_nodes);
        source->bare_nodes[source->bare_count++] = name;
    }
    if (fleet->rank == 0 && dead) {
        source->dead_nodes = mem_grow(source->dead_nodes, &fleet->dead_capacity,
                                      source->dead_count + 1, sizeof *source->dead_nodes);
        source->dead_nodes[source->dead_count++] = (struct device_dead_node){
            .node = name, .reason = "the driver does not answer", .gpus_allocated = given};
    }
    for (uint32_t i = 0; i < entry->gpus; i++, ++*gpu) {
        bool listed = !dead && i < given && !fleet_has_fault(fleet, entry, SIM_MISSING, i, numbers);
        if (listed && (all_visible || *gpu % fleet->ranks == fleet->rank))
            fleet_add_gpu(fleet, entry, name, i, numbers);
    }
    ++*node;
    if (fleet->draws.rack_nodes)
        numbers->of[SIM_PER_RACK] = *node / fleet->draws.rack_nodes;
}

static int fleet_add_nodes(struct fleet *fleet, bool all_visible, struct err *err)
{
    size_t total = 0, count = 0;
    for (size_t i = 0; i < fleet->entry_count; i++)
        total += fleet->entries[i].count;
    struct named *names = mem_array(total, sizeof *names);
    struct sim_numbers numbers = {{0}};
    for (size_t i = 0; i < fleet->entry_count; i++) {
        const struct fleet_entry *entry = &fleet->entries[i];
        for (uint32_t k = 0; k < entry->count; k++) {
            char *name = sim_node_name(&fleet->arena, entry->name, (uint64_t)entry->first + k);
            fleet_add_node(fleet, entry, name, all_visible, &numbers);
            names[count++] = (struct named){.name = name, .at = entry->at};
        }
    }
    int rc = 0;
    sort_stable(names, count, sizeof *names, node_name_order);
    for (size_t i = 1; i < count && !rc; i++)
        if (str_equal(names[i - 1].name, names[i].name))
            rc = yaml_error(sim_at(names[i].at, "name"), err, "a second node named \"%.100s\"",
                            names[i].name);
    free(names);
    return rc;
}

static int read_fleet(struct fleet *fleet, const char *path, const struct yaml_node *root,
                      struct err *err)
{
    struct fleet_text text = {.seed = 1};
    int rc = yaml_read_fields(root, fleet_fields, COUNT_OF(fleet_fields), &text, err);
    if (rc)
        return rc;
    rc = sim_vary_read(text.vary, &fleet->vary, err);
    if (rc)
        return rc;
    fleet->identity_seed = text.seed;
    fleet->models.fleet_path = path;
    rc = fleet_read_entries(fleet, text.nodes, err);
    if (rc)
        return rc;
    rc = sim_draws_read(&text.draws, &fleet->models, &fleet->draws, err);
    if (rc)
        return rc;
    return fleet_add_nodes(fleet, text.visibility == SEES_ALL, err);
}

int device_source_sim(const char *fleet_path, uint64_t seed, uint32_t rank, uint32_t ranks,
                      struct device_source **out_source, struct err *err)
{
    if (!ranks || rank >= ranks)
        return err_set(err, -EINVAL, "rank %u of %u", rank, ranks);
    struct yaml_doc *doc = NULL;
    struct fleet *fleet = mem_array(1, sizeof *fleet);
    int rc = yaml_read_file(fleet_path, &yaml_limits_config, &doc, err);
    if (rc)
        goto out;
    fleet->source.ops = &fleet_ops;
    fleet->noise_seed = seed;
    fleet->rank = rank;
    fleet->ranks = ranks;
    char *whole_path = realpath(fleet_path, NULL);
    if (!whole_path && errno == ENOMEM)
        mem_exhausted(0);
    fleet->place = rng_derive(0, whole_path ? whole_path : fleet_path, 0);
    free(whole_path);
    rc = read_fleet(fleet, fleet_path, yaml_root(doc), err);
    for (size_t i = 0; i < fleet->entry_count; i++) {
        fleet->entries[i].name = NULL; /* the document is destroyed below */
        fleet->entries[i].at = NULL;
    }
    fleet->models.fleet_path = NULL; /* the caller's */
out:
    yaml_destroy(doc);
    if (rc) {
        fleet_destroy(&fleet->source);
        return rc;
    }
    *out_source = &fleet->source;
    return 0;
}
