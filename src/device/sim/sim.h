/* The simulated GPU: its model (from YAML), its faults, and how to open one. */
#ifndef GPUMEMTOPO_DEVICE_SIM_SIM_H
#define GPUMEMTOPO_DEVICE_SIM_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "catalogue/facts.h"
#include "device/device.h"

struct sim_model;

/* Reads a model as docs/simulation.md describes it. -EINVAL with file, line and column for anything
 * unknown, of a wrong type or without sense; the system's error code if the file cannot be read.
 * Freed with sim_model_destroy, which accepts NULL. */
int sim_model_read_file(const char *path, struct sim_model **out_model, struct err *err);
int sim_model_read_text(const char *text, size_t length, const char *name,
                        struct sim_model **out_model, struct err *err);
void sim_model_destroy(struct sim_model *model);

const char *sim_model_name(const struct sim_model *model);

/* Whether its GPUs are MIG instances. */
bool sim_model_is_instance(const struct sim_model *model);

/* PCI ids and name, which identify a model. */
const char *sim_model_key(const struct sim_model *model);

enum sim_fault_kind {
    SIM_SLOW_DRAM,    /* share: everything in DRAM takes 1 + share times as long */
    SIM_HBM_STACK,    /* count missing, hidden: the driver does not know */
    SIM_MEMORY_CLOCK, /* mhz */
    SIM_SM_CLOCK,     /* mhz, reason */
    SIM_L2_SLICE,     /* share missing, reported: the driver knows */
    SIM_MISSING_SMS,  /* count, hidden */
    SIM_SLOW_SM,      /* sm, share */
    SIM_L1_WAYS,      /* share missing */
    SIM_PCIE,         /* gen, width */
    SIM_SLOW_HOST,    /* share: copies and loads of host memory take 1 + share times as long */
    SIM_NVLINK_DOWN,  /* count */
    SIM_ECC_OFF,
    SIM_MIG_ON,
    SIM_VIRTUALIZATION, /* text: as NVML's word */
    SIM_CONFIDENTIAL,   /* text; factor: copies and loads of host memory take as much longer */
    SIM_PERSISTENCE_OFF,
    SIM_COMPUTE_MODE, /* text */
    SIM_POWER_LIMIT,  /* w */
    SIM_REMAP,        /* pending, failed */
    SIM_ECC_ERRORS,   /* count */
    SIM_ECC_GROWTH,   /* per_s: corrected errors that come while the GPU is open */
    SIM_REPLAYS,      /* per_s: of the PCIe link, likewise */
    SIM_LINK_ERRORS,  /* per_s: of NVLinks, likewise */
    SIM_XID,          /* number */
    SIM_FABRIC,       /* state */
    SIM_HOT,          /* degrees above the usual, without throttling */
    SIM_VBIOS,        /* text */
    SIM_DRIVER,       /* text */
    SIM_NOISY,        /* factor */
    SIM_BUSY,         /* another process computes */
    SIM_HEALTH,       /* health: changes facts that the driver reports, and nothing else */
    SIM_MEMORY_HELD,  /* bytes in use, although no process is listed */
    SIM_WAIT,         /* the first job takes this much longer, without computing */
    SIM_HANG,         /* after so many jobs run_batch never returns */
    SIM_CRASH,        /* after so many jobs the process dies by SIGSEGV */
    SIM_MISSING,      /* the driver does not list the GPU */
    SIM_DEAD_DRIVER,  /* the driver of the node lists no GPU */
    SIM_WEAK_REGION,  /* share: the 64 MiB of memory that hold byte `bytes` take so much longer */
    SIM_BIT_ERROR,    /* from byte `bytes` on, bit 5 of `count` words of 8 bytes is always 1 */
    SIM_WRONG_SM,     /* sub-core 2 of this SM has a wrong bit in `share` of its checks of `path` */
    SIM_WRONG_CARD,   /* all SMs compute `path` wrong, and alike */
    SIM_FALLS_UNDER_LOAD, /* after `seconds` of load the SM clock falls by share, reason */
    SIM_DEAD_LINK,        /* peer: copies over the links of the GPU, or to this peer, fail */
    SIM_SLOW_LINK,        /* share, ns, peer: they take 1 + share times as long, loads ns more */
    SIM_FABRIC_DOWN,      /* they go through the host, although the driver reports active links */
    SIM_SWAPPED_DIE,      /* another die under the same UUID: other distances from L2 */
    SIM_FAULT_COUNT
};
enum { SIM_ANY_PEER = -1 };

/* What limits a clock, as the driver reports it; SIM_BY_NOTHING: it reports nothing. */
enum sim_reason {
    SIM_BY_POWER,
    SIM_BY_HEAT,
    SIM_BY_SETTING,
    SIM_BY_SLOWDOWN,
    SIM_BY_BRAKE,
    SIM_BY_NOTHING
};

/* The state of the fabric behind NVLinks, as the driver reports it. */
enum sim_fabric {
    SIM_FABRIC_NONE, /* there is none */
    SIM_FABRIC_NOT_STARTED,
    SIM_FABRIC_IN_PROGRESS,
    SIM_FABRIC_COMPLETED,
    SIM_FABRIC_FAILED,
    SIM_FABRIC_FAULTS /* what comes from here on is in fabric_faults */
};

enum { SIM_TEXT_MAX = 64 };

/* When a fault is present; all zero: always. Times are of the GPU's own work in this session. */
struct sim_when {
    bool timed;
    double chance;          /* share of the launches and copies (sessions) that have it */
    bool each_session;      /* `chance` is drawn once for each session */
    double from_ms, for_ms; /* for_ms 0: until the end */
    double grow_ms;         /* from nothing to its full size, linearly */
    uint32_t sessions;      /* only in this many first sessions; 0: in all */
};

/* What is wrong with one GPU. Only the fields that the kind names are read. */
struct sim_fault {
    int kind; /* enum sim_fault_kind */
    struct sim_when when;
    double share, ns, mhz, w, factor, per_s, degrees;
    uint32_t count, corrected, sm, gen, width, number;
    int32_t peer; /* index on the node, or SIM_ANY_PEER */
    uint64_t after, bytes, stride;
    uint32_t bit;
    uint32_t tries; /* only so many workers meet the fault; 0: all */
    double seconds;
    int reason; /* of SIM_SM_CLOCK: enum sim_reason */
    int state;  /* of SIM_FABRIC: enum sim_fabric */
    int path;   /* enum device_screen_path */
    bool reported, hidden, pending, failed;
    char text[SIM_TEXT_MAX];
    struct sim_health_value {
        bool set;
        double value;
    } health[HEALTH_NUMBERS];
};

/* How units of a model differ: shares, standard deviations except for the SM clock. */
struct sim_vary {
    double sm_clock; /* drawn uniformly from 1 - share to 1 + share */
    double l1_latency, l2_latency, main_latency;
    double sm_bandwidth, l2_bandwidth, main_bandwidth, host_bandwidth;
    double l2_distance_cycles; /* of a TPC from L2 */
    double timer;              /* how wrong the unit's clock in nanoseconds goes */
};

struct sim_batch;  /* a population of a model (draws.h) */
struct sim_layout; /* sizes of the GPCs (draws.h) */
struct sim_links;  /* to the other GPUs of the node (node_links.h) */

/* The unit of a model. Identity and variation follow from `identity_seed`, noise and replacement
 * from `noise_seed`, the UUID and the session. */
struct sim_unit {
    uint64_t identity_seed;
    uint64_t noise_seed;
    uint32_t session; /* device_source.session: noise and disturbances differ */
    struct sim_vary vary;
    const struct sim_batch *batch;   /* NULL: as the model says */
    const struct sim_layout *layout; /* the same */
    const struct sim_links *links;   /* NULL: the GPU is alone; copied when the GPU is opened */
    uint64_t node;    /* GPUs of one node take turns at the host link; 0: alone on its node */
    uint32_t index;   /* on its node */
    bool is_instance; /* a MIG instance: its UUID says so */
};

/* Opens one GPU. The model may be destroyed before the device. -EINVAL for a fault that does not
 * fit the model. Freed with device_destroy. */
int sim_open_unit(const struct sim_model *model, const struct sim_unit *unit,
                  const struct sim_fault *faults, size_t count, struct device **out_device,
                  struct err *err);

/* The same for tests: one seed for identity and noise, no variation. */
int sim_open(const struct sim_model *model, const struct sim_fault *faults, size_t count,
             uint64_t seed, struct device **out_device, struct err *err);

/* "GPU-xxxxxxxx-...", 40 characters and a NUL. */
enum { SIM_UUID_MAX = 41 };
void sim_unit_uuid(const struct sim_unit *unit, char out_uuid[SIM_UUID_MAX]);

/* Nodes of a fleet have their names from a pattern such as "gpu%03d". -EINVAL unless the pattern is
 * a name with at most one %d or %0Nd (N 1 to 9; %% is a per cent sign), and exactly one if count is
 * above 1. */
int sim_node_name_check(const char *pattern, uint32_t count, struct err *err);

/* The name with the number inserted. The pattern must have been checked. */
char *sim_node_name(struct arena *arena, const char *pattern, uint64_t number);

#endif
