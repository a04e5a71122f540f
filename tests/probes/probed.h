/* Probes run on a simulated GPU that a test describes in a few lines. */
#ifndef GPUMEMTOPO_TESTS_PROBES_PROBED_H
#define GPUMEMTOPO_TESTS_PROBES_PROBED_H

#include "device/sim/sim.h"
#include "inventory/measure.h"
#include "probes/probes.h"

struct probed {
    const char *model;      /* text of the whole model file */
    struct sim_fault fault; /* where `faulty` */
    bool faulty;
    enum probe_profile profile;
    const char *list;                       /* NULL: all of the profile */
    uint64_t region_bytes;                  /* as in struct probe_options */
    void (*prepare)(struct device *device); /* NULL, or called before the probes run */
    double limit_s;                         /* time limit of the GPU; 0: none */
};

/* Fails the test when the model is refused or the run ends early. Released by measures_fini. */
struct measures probed_run(const struct probed *probed);

/* The value of a metric; fails the test where there is none. */
double probed_value(const struct measures *measures, const char *metric);

/* Fails the test unless the value is the wanted one within 2 %; for a wanted value of 0, unless the
 * metric is there as unsupported, with a reason. `what` names the case. */
void probed_expect(const struct measures *measures, const char *metric, double wanted,
                   const char *what);

/* A quiet GPU of 8 SMs at 1000 MHz; L1 16 KiB, L2 1 MiB; latencies 30, 200, 500, shared 20, host
 * 1000; GB/s: L2 400 and 300, main 200, 180, 160, host 24, 22, 40. */
extern const char probed_plain[];

#endif
