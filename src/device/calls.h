/* The table of device calls: what a call takes and gives, how a request is checked, and what a
 * record keeps of both. */
#ifndef GPUMEMTOPO_DEVICE_CALLS_H
#define GPUMEMTOPO_DEVICE_CALLS_H

#include "device/device.h"
#include "device/fields.h"

/* One row. All functions may be NULL.
 *
 * Asked is what counts of a request: requests for the same work have the same fields, and find the
 * same answers in a record. It is the request itself, of which only the described members count,
 * unless `ask` makes something else of it. */
struct device_call_row {
    const char *name;
    const struct fields *asked, *answer;
    const char *absent; /* what a device without this call says; NULL: it has nothing to add */
    int absent_code;
    bool keeps_facts; /* the answer is facts, which are added to those present, also on failure */

    int (*check)(const struct device *device, const void *request, struct err *err);
    void (*begin)(const void *request, void *answer);  /* before the call; the answer is zeroed */
    void (*finish)(const void *request, void *answer); /* after a successful one */

    /* How many items a request has, each asked and answered by itself: the answer is an array.
     * NULL: one. */
    size_t (*count)(const void *request);
    void (*ask)(const struct device *device, const void *request, size_t item, void *out_asked);
    void (*describe)(const void *asked, struct strbuf *out_text); /* NULL: by its fields */

    /* What of an answer follows from what was asked: a record keeps only what differs. */
    void (*expect)(const void *asked, void *answer);
    /* Whether an answer from a record can be one to this request, on a GPU of so many SMs. */
    bool (*fits)(const void *asked, const void *answer, uint32_t sm_count);
};
const struct device_call_row *device_call_row(enum device_call call);

/* Room for what is asked, or for an answer, of any call. */
union device_call_room {
    uint64_t align;
    char bytes[1024];
};

/* How many items a request has. */
size_t device_call_items(enum device_call call, const void *request);

/* What counts of an item of a request. */
void device_call_ask(enum device_call call, const struct device *device, const void *request,
                     size_t item, union device_call_room *out_asked);

/* "stream: kind read, path global_cg, ..."; a call without fields: its name. */
void device_call_describe(enum device_call call, const void *asked, struct strbuf *out_text);

/* A row of a table for each call, as docs/records.md has it. */
void device_call_document(struct strbuf *out_text);

/* The rows, by the functions of the calls (calls*.c, jobs.c). */
#define DEVICE_ROW_DECLARED(name, function)                                                        \
    extern const struct device_call_row device_##function##_row;
DEVICE_ROW_DECLARED(LOOK, look)
DEVICE_ROW_DECLARED(OPEN, open)
DEVICE_CALLS(DEVICE_ROW_DECLARED)

/* What a job asks for, and how many of its batch run at once:
 * - the random order of an array does not count, nor where it begins: the seed is replaced by the
 *   number of the first step with the same order, and the start is counted from that step's start;
 * - the place of a job's arrays in global memory counts only for arrays that begin at 0: any other
 *   place only keeps jobs apart, and becomes 1;
 * - of split_cycles only whether it is set: where it is depends on what was measured before. */
struct device_asked_job {
    uint32_t at_once;
    struct device_job job;
};

extern const char *const device_path_names[DEVICE_PATH_COUNT];

/* The bytes of a path's memory; 0: not known. */
uint64_t device_path_bytes(const struct device_limits *limits, enum device_path path);

#endif
