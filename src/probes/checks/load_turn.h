/* When a GPU may draw much power: the nodes begin one after the other, and so do the GPUs of a node
 * if the survey wants that. */
#ifndef GPUMEMTOPO_PROBES_CHECKS_LOAD_TURN_H
#define GPUMEMTOPO_PROBES_CHECKS_LOAD_TURN_H

#include "device/turn.h"
#include "probes/probe.h"

struct load_turn {
    struct turn turn;
    bool alone; /* no other GPU of the node is under load meanwhile */
    uint32_t waited_ms;
};

/* Seconds of the GPU's time limit that a load may take; INFINITY: there is none. */
double load_turn_left_s(const struct probe_options *options);

/* Waits for the nodes that begin earlier, then for the turn of this GPU. Simulated GPUs do not wait
 * in real time; their start is the one that was planned. wanted_s: how long the load takes. */
struct load_turn load_turn_take(const struct probe_options *options, double wanted_s);
void load_turn_give(struct load_turn *turn);

#endif
