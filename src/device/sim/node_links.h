/* The links between the GPUs of a simulated node: how they are wired, and which of them are bad. */
#ifndef GPUMEMTOPO_DEVICE_SIM_NODE_LINKS_H
#define GPUMEMTOPO_DEVICE_SIM_NODE_LINKS_H

#include "base/yaml.h"
#include "device/sim/sim.h"

enum sim_shape {
    SIM_SWITCHES,  /* each GPU has a link to switches that connect all */
    SIM_HYPERCUBE, /* GPUs whose numbers differ in one bit have a link */
    SIM_PCIE_TREE, /* GPUs under PCIe switches, the switches under the host */
};

/* `links` of a node in a fleet file. Rates are one way. */
struct sim_wiring {
    bool present;
    int shape;
    double gb_per_s;        /* of the link of a GPU */
    double uplink_gb_per_s; /* of a PCIe switch to the host; 0: as gb_per_s */
    double host_gb_per_s;   /* of copies that go through the memory of the host */
    double latency_ns;      /* of a load over one link */
    uint32_t per_switch;    /* GPUs under one PCIe switch */
};

enum { SIM_LINK_FAULTS_MAX = 64 };

/* The links as one GPU sees them. */
struct sim_links {
    struct sim_wiring wiring;
    uint64_t seed;  /* of the node: links differ by a little */
    uint32_t own;   /* this GPU, in the list; `count`: it is not among the first ones */
    uint32_t count; /* GPUs of the node that the process sees */
    struct sim_link_end {
        char uuid[SIM_UUID_MAX];
        uint32_t index; /* on the node */
    } gpus[DEVICE_PEERS_MAX];
    struct sim_link_fault {
        int kind;     /* SIM_DEAD_LINK, SIM_SLOW_LINK, SIM_FABRIC_DOWN */
        uint32_t gpu; /* index on the node */
        int32_t peer; /* the same; SIM_ANY_PEER: all links of the GPU */
        double share, ns;
    } faults[SIM_LINK_FAULTS_MAX];
    size_t fault_count;
};

/* Reads `links` of a node with so many GPUs; NULL: it has none. */
int sim_wiring_read(const struct yaml_node *node, uint32_t gpus, struct sim_wiring *out_wiring,
                    struct err *err);

/* -EINVAL with the position of the node for a fault of links that a GPU of a node wired like this
 * cannot have; 0 for every other fault. gpu < 0: all GPUs. */
int sim_link_fault_fits(const struct yaml_node *node, const struct sim_wiring *wiring,
                        uint32_t gpus, int32_t gpu, const struct sim_fault *fault, struct err *err);

/* Adds the fault if it is one of links. */
void sim_links_add_fault(struct sim_links *links, uint32_t gpu, const struct sim_fault *fault);

/* The way from one GPU to another: its rate in GB/s is the smallest of its links'. */
struct sim_way {
    bool dead;
    bool mapped; /* SMs can load and store over it */
    double gb_per_s, latency_ns;
};
struct sim_way sim_links_way(const struct sim_links *links, uint32_t from, uint32_t to);

/* What this GPU gets of the way to the host in GB/s, one way, that could carry gb_per_s for it: the
 * uplink of a PCIe switch is shared by the GPUs under it that copy. all: of those that the process
 * sees, all copy; otherwise this one alone. */
double sim_links_host_share(const struct sim_links *links, double gb_per_s, bool all);

#endif
