/* Runs an operation again and again, each time with another allocation failing. */
#ifndef GPUMEMTOPO_TESTS_MEMORY_SWEEP_H
#define GPUMEMTOPO_TESTS_MEMORY_SWEEP_H

#include <stdbool.h>
#include <stddef.h>

#include "allocations.h"

struct memory_sweep {
    const char *name; /* for the log */

    /* Creates what the operation needs, without failures; may be NULL. */
    void (*prepare)(void *context);

    /* The operation. Returns 0 or -ENOMEM. It releases everything that it and `prepare` created,
     * and asserts what must hold after a success (the result is complete) and after a failure
     * (outputs untouched, files intact, a second try succeeds). */
    int (*run)(void *context);
    void *context;

    size_t at_least; /* the operation makes at least so many allocations, or the test is wrong */

    /* How many allocations to fail, at most; 0: SWEEP_POINTS. If there are more, the first one of
     * each call stack is failed, and an even choice of the others. */
    size_t points;

    /* For slow operations: one run that forks at each allocation to fail, instead of one run for
     * each. Leaks are counted in each child; LeakSanitizer checks the parent only. */
    bool forks;

    /* The operation has allocations that it can do without: it may return 0 although one failed. */
    bool may_succeed;
};
enum { SWEEP_POINTS = 3000 };

/* Fails the test if a run returns anything else, leaks memory, mappings or file descriptors, or
 * frees too much. */
void memory_sweep(const struct memory_sweep *sweep);

/* The same without failing the test: NULL, or what is wrong. Messages go to stderr. */
const char *memory_sweep_find(const struct memory_sweep *sweep);

#endif
