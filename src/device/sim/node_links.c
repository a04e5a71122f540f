/* The wiring of a simulated node: the way between two GPUs is a list of links, and its rate is that
 * of the slowest. */
#include "device/sim/node_links.h"

#include <math.h>
#include <stddef.h>

#include "base/mem.h"
#include "base/rng.h"
#include "device/sim/model.h"

enum { WAY_MAX = 4, NODE_GPUS_MAX = 256 };

/* Links of one kind differ by this share, as a standard deviation. */
static const double LINKS_VARY = 0.002;

static const char *const shape_words[] = {
    [SIM_SWITCHES] = "switches",
    [SIM_HYPERCUBE] = "hypercube",
    [SIM_PCIE_TREE] = "pcie",
    NULL,
};

static const struct yaml_field wiring_fields[] = {
    {"shape", YAML_WORD, offsetof(struct sim_wiring, shape), true, .words = shape_words},
    {"gb_per_s", YAML_F64, offsetof(struct sim_wiring, gb_per_s), true, 0.1, 1e5},
    {"uplink_gb_per_s", YAML_F64, offsetof(struct sim_wiring, uplink_gb_per_s), false, 0.1, 1e5},
    {"host_gb_per_s", YAML_F64, offsetof(struct sim_wiring, host_gb_per_s), false, 0.1, 1e5},
    {"latency_ns", YAML_F64, offsetof(struct sim_wiring, latency_ns), false, 1, 1e6},
    {"per_switch", YAML_U32, offsetof(struct sim_wiring, per_switch), .min = 1,
     .max = NODE_GPUS_MAX},
};

int sim_wiring_read(const struct yaml_node *node, uint32_t gpus, struct sim_wiring *out_wiring,
                    struct err *err)
{
    struct sim_wiring wiring = {
        .present = true, .host_gb_per_s = 20, .latency_ns = 600, .per_switch = 2};
    *out_wiring = (struct sim_wiring){0};
    if (!node)
        return 0;
    int rc = yaml_read_fields(node, wiring_fields, COUNT_OF(wiring_fields), &wiring, err);
    if (rc)
        return rc;
    if (wiring.shape == SIM_HYPERCUBE && (gpus & (gpus - 1)))
        return yaml_error(node, err, "a hypercube has 2, 4, 8, ... GPUs, not %u", gpus);
    if (wiring.uplink_gb_per_s <= 0)
        wiring.uplink_gb_per_s = wiring.gb_per_s;
    *out_wiring = wiring;
    return 0;
}

static bool is_of_links(int kind)
{
    return kind == SIM_DEAD_LINK || kind == SIM_SLOW_LINK || kind == SIM_FABRIC_DOWN;
}

int sim_link_fault_fits(const struct yaml_node *node, const struct sim_wiring *wiring,
                        uint32_t gpus, int32_t gpu, const struct sim_fault *fault, struct err *err)
{
    bool has_peer = fault->peer != SIM_ANY_PEER;
    if (!is_of_links(fault->kind))
        return 0;
    if (!wiring->present)
        return yaml_error(node, err, "the node has no links between its GPUs: key \"links\"");
    if (fault->kind == SIM_FABRIC_DOWN && wiring->shape == SIM_PCIE_TREE)
        return yaml_error(node, err, "a PCIe tree has no fabric");
    if (has_peer && (gpu < 0 || (uint32_t)fault->peer >= gpus || fault->peer == gpu))
        return yaml_error(node, err, "the peer is another one of the node's %u GPUs", gpus);
    return 0;
}

void sim_links_add_fault(struct sim_links *links, uint32_t gpu, const struct sim_fault *fault)
{
    if (is_of_links(fault->kind) && links->fault_count < SIM_LINK_FAULTS_MAX)
        links->faults[links->fault_count++] =
            (struct sim_link_fault){fault->kind, gpu, fault->peer, fault->share, fault->ns};
}

/* One link, in one direction. */
struct wire {
    const char *name;
    uint32_t number;
    double gb_per_s;
};

/* Lists the links from GPU a to GPU b; returns how many. *out_mapped: SMs can use them. */
static size_t list_wires(const struct sim_wiring *w, uint32_t a, uint32_t b, bool by_host,
                         struct wire wires[WAY_MAX], bool *out_mapped)
{
    size_t count = 0;
    bool neighbours = ((a ^ b) & ((a ^ b) - 1)) == 0;
    *out_mapped = !by_host && (w->shape != SIM_HYPERCUBE || neighbours);
    if (!*out_mapped) {
        wires[count++] = (struct wire){"to host", a, w->host_gb_per_s};
        wires[count++] = (struct wire){"from host", b, w->host_gb_per_s};
        return count;
    }
    if (w->shape == SIM_HYPERCUBE) {
        wires[count++] = (struct wire){"edge", a * NODE_GPUS_MAX + b, w->gb_per_s};
        return count;
    }
    uint32_t from = a / w->per_switch, to = b / w->per_switch;
    wires[count++] = (struct wire){"up", a, w->gb_per_s};
    if (w->shape == SIM_PCIE_TREE && from != to) {
        wires[count++] = (struct wire){"switch up", from, w->uplink_gb_per_s};
        wires[count++] = (struct wire){"switch down", to, w->uplink_gb_per_s};
    }
    wires[count++] = (struct wire){"down", b, w->gb_per_s};
    return count;
}

/* Whether the fault concerns this way: the pair that it names, or any way of its GPU. */
static bool concerns(const struct sim_link_fault *fault, uint32_t a, uint32_t b)
{
    if (fault->peer == SIM_ANY_PEER)
        return fault->gpu == a || fault->gpu == b;
    uint32_t peer = (uint32_t)fault->peer;
    return (fault->gpu == a && peer == b) || (fault->gpu == b && peer == a);
}

struct sim_way sim_links_way(const struct sim_links *links, uint32_t from, uint32_t to)
{
    struct sim_way way = {.gb_per_s = INFINITY};
    struct wire wires[WAY_MAX];
    uint32_t a = links->gpus[from].index, b = links->gpus[to].index;
    bool by_host = false;
    double slow = 1, added_ns = 0;
    for (size_t i = 0; i < links->fault_count; i++) {
        const struct sim_link_fault *fault = &links->faults[i];
        if (!concerns(fault, a, b))
            continue;
        way.dead |= fault->kind == SIM_DEAD_LINK;
        by_host |= fault->kind == SIM_FABRIC_DOWN;
        if (fault->kind != SIM_SLOW_LINK)
            continue;
        slow *= 1 + fault->share;
        added_ns += fault->ns;
    }
    size_t count = list_wires(&links->wiring, a, b, by_host, wires, &way.mapped);
    for (size_t i = 0; i < count; i++) {
        struct rng rng;
        rng_init(&rng, rng_derive(links->seed, wires[i].name, wires[i].number), "link");
        way.gb_per_s = fmin(way.gb_per_s, wires[i].gb_per_s * (1 + LINKS_VARY * rng_normal(&rng)));
    }
    way.gb_per_s /= slow;
    way.latency_ns = links->wiring.latency_ns * (double)(count + 1) / 2 + added_ns;
    return way;
}

double sim_links_host_share(const struct sim_links *links, double gb_per_s, bool all)
{
    const struct sim_wiring *w = &links->wiring;
    uint32_t sharing = 0;
    if (!w->present || w->shape != SIM_PCIE_TREE || links->own >= links->count)
        return gb_per_s;
    uint32_t own = links->gpus[links->own].index / w->per_switch;
    for (uint32_t i = 0; i < links->count; i++)
        sharing += links->gpus[i].index / w->per_switch == own;
    return fmin(gb_per_s, w->uplink_gb_per_s / (all ? sharing : 1));
}
