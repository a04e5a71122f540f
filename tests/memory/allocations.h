/* Allocations that fail when a test wants them to. The linker redirects every allocation in the
 * project's objects to this file (--wrap, see meson.build), and every call of a library function
 * that allocates. */
#ifndef GPUMEMTOPO_TESTS_MEMORY_ALLOCATIONS_H
#define GPUMEMTOPO_TESTS_MEMORY_ALLOCATIONS_H

#include <stdbool.h>
#include <stddef.h>

/* What happens after the allocation that fails. */
enum memory_outage {
    MEMORY_LACKS_ONE, /* all later ones succeed: finds code that ignores the failure */
    MEMORY_ENDS,      /* all later ones fail too: finds cleanup code that needs memory */
};
enum { MEMORY_OUTAGES = MEMORY_ENDS + 1 };

/* From now on `allowed` allocations succeed and the next one fails; SIZE_MAX: none fails. */
void memory_limit(size_t allowed, enum memory_outage outage);

/* Ends the limit: all allocations succeed and are no longer counted. memory_failed and memory_count
 * keep their values. */
void memory_restore(void);

/* Between memory_limit and memory_restore: whether an allocation failed, the number of the first
 * one that did, and how many were made. */
bool memory_failed(void);
size_t memory_failed_at(void);
enum memory_outage memory_outage(void);
size_t memory_count(void);

/* Blocks and mappings that the project's objects hold now. */
long memory_live(void);

/* Prints the call stack of the first allocation that failed, as addresses for addr2line. */
void memory_print_failure(void);

/* At these allocations (numbers from memory_limit on, ascending) the process forks once for each
 * outage: the allocation fails in the child and succeeds in this process. One run of a slow
 * operation then tries them all. NULL, 0: stop. A child must end with _exit(0) if all was well. */
void memory_fork_at(const size_t *numbers, size_t count);
bool memory_in_child(void);
size_t memory_failed_children(void); /* since memory_fork_at */

/* From memory_limit on, notes the number of the first allocation of each distinct call stack. Into
 * `numbers`, at most `room`; NULL, 0: stop. */
void memory_note_paths(size_t *numbers, size_t room);
size_t memory_noted(void);

#endif
