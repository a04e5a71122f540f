/* The links of a simulated node. The way between two GPUs is a list of links, and its rate is that
 * of the slowest. */
#include "device/sim/node_links.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>

#include "base/mem.h"
#include "base/rng.h"
#include "device/sim/gpu.h"
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
static bool link_fault_concerns(const struct sim_link_fault *fault, uint32_t a, uint32_t b)
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
        if (!link_fault_concerns(fault, a, b))
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

/* What SMs reach of the rate of a copy engine, and a link both ways at once of the rate one way. */
static const double SM_SHARE = 0.97, BOTH_SHARE = 0.95;

int gpu_list_peers(struct device *device, const void *request, void *answer, struct err *err)
{
    const struct gpu *gpu = (const struct gpu *)device;
    struct facts *out_gpus = &((struct device_peers *)answer)->gpus;
    (void)request;
    facts_set_text(out_gpus, "own", gpu->uuid);
    if (gpu->links.count > 1 && !gpu->links.wiring.present)
        return err_set(err, -ENOTSUP, "the simulated node has no links between its GPUs");
    for (uint32_t i = 0; i < gpu->links.count; i++) {
        char key[16];
        snprintf(key, sizeof key, "%u", i);
        facts_set_text(out_gpus, key, gpu->links.gpus[i].uuid);
    }
    return 0;
}

/* Disturbances can only cost time. */
static uint64_t peer_ns(const struct gpu *gpu, double bytes, double rate, struct rng *rng)
{
    const struct sim_model *model = &gpu->model;
    double ns = bytes / rate * (1 + fabs(model->noise.bandwidth * rng_normal(rng)));
    return ns < 1 ? 1 : (uint64_t)(ns + 0.5);
}

static void use_sms(const struct gpu *gpu, const struct device_peer_test *test,
                    const struct sim_way *in, const struct sim_way *out, struct rng *rng,
                    struct device_peer_answer *answer)
{
    double bytes = (double)test->bytes, mhz = gpu_clock_mhz(gpu, gpu->busy_ns);
    double cycles = gpu->model.paths[DEVICE_GLOBAL_CG].l2_cycles + in->latency_ns * mhz / 1e3;
    double jitter = gpu->model.noise.jitter_cycles * sqrt((double)test->loads) * rng_normal(rng);
    double both = BOTH_SHARE * SM_SHARE * fmin(in->gb_per_s, out->gb_per_s);
    answer->read_ns = peer_ns(gpu, bytes, SM_SHARE * in->gb_per_s, rng);
    answer->write_ns = peer_ns(gpu, bytes, SM_SHARE * out->gb_per_s, rng);
    answer->both_ns = peer_ns(gpu, bytes / 2, both, rng);
    answer->cycles = (uint64_t)fmax(cycles * test->loads + jitter, 1);
    answer->chase_ns = (uint64_t)((double)answer->cycles * 1e3 / mhz + 0.5);
}

int gpu_test_peer(struct device *device, const void *request, void *answer, struct err *err)
{
    const struct device_peer_test *test = request;
    struct gpu *gpu = (struct gpu *)device;
    const struct sim_links *links = &gpu->links;
    if (test->peer >= links->count || test->peer == links->own || links->own >= links->count)
        return err_set(err, -EINVAL, "no such peer");
    const struct sim_way in = sim_links_way(links, test->peer, links->own);
    const struct sim_way out = sim_links_way(links, links->own, test->peer);
    struct device_peer_answer got = {.mapped = in.mapped && out.mapped};
    double bytes = (double)test->bytes;
    struct rng rng;
    gpu_update(gpu);
    rng_init(&rng, rng_derive(gpu->noise_seed, "peer", gpu->stream_number++), "noise");
    if (in.dead || out.dead)
        return err_set(err, -EIO, "copy between GPUs: the link does not answer");
    got.copy_read_ns = peer_ns(gpu, bytes, in.gb_per_s, &rng);
    got.copy_write_ns = peer_ns(gpu, bytes, out.gb_per_s, &rng);
    got.copy_both_ns = peer_ns(gpu, bytes, BOTH_SHARE * fmin(in.gb_per_s, out.gb_per_s), &rng);
    if (got.mapped)
        use_sms(gpu, test, &in, &out, &rng, &got);
    gpu->busy_ns += (double)(got.copy_read_ns + got.copy_write_ns + got.copy_both_ns);
    *(struct device_peer_answer *)answer = got;
    return 0;
}
