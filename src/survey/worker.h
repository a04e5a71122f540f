/* The worker process, its requests, and the types of the frames that it answers. No other process
 * opens a GPU.
 *
 * The request is one frame on the worker's stdin. Answers are frames on the pipe WORKER_ANSWER_FD.
 * list: INFO*, BARE*, DEAD*, DONE. measure: (BEGIN, PARTIAL)*, DONE. FAIL ends both. After list,
 * the worker waits for a request to measure, and exits at the end of stdin. A replay may send
 * REMARK before the end, and may end with ENDED. The record is written to WORKER_RECORD_FD. */
#ifndef GPUMEMTOPO_SURVEY_WORKER_H
#define GPUMEMTOPO_SURVEY_WORKER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "inventory/wire/frame.h"
#include "probes/probes.h"

/* The internal first argument that makes the program a worker. */
#define WORKER_ARGUMENT "--worker"

enum { WORKER_ANSWER_FD = 3, WORKER_RECORD_FD = 4 };

enum worker_message {
    WORKER_REQUEST = 1,
    WORKER_INFO,    /* identity of one GPU */
    WORKER_BARE,    /* text: a node without a GPU */
    WORKER_BEGIN,   /* text: the probe that begins now */
    WORKER_PARTIAL, /* gpu_result: everything known so far */
    WORKER_DONE,    /* list: empty; measure: gpu_result */
    WORKER_FAIL,    /* err */
    WORKER_REMARK,  /* text: for people */
    WORKER_DEAD,    /* list: node, reason, gpus_allocated: a node whose driver does not answer */
    WORKER_ENDED,   /* status, reason, and those of the first try: how the recorded GPU ended */
};

enum worker_task { WORKER_LIST, WORKER_MEASURE };

/* Zero-initialised is empty. Strings are borrowed when written, owned when read. */
struct worker_request {
    enum worker_task task;
    uint64_t parent; /* pid of the rank; the worker ends with it */
    char *fleet;     /* simulated fleet */
    char *replay;    /* record; neither: the driver's GPUs */
    bool record;     /* measure */
    uint64_t seed;
    uint32_t rank, ranks;
    char *uuid; /* measure */
    enum probe_profile profile;
    char *probes;      /* NULL: those of the profile */
    bool measure_busy; /* also a GPU on which other processes compute */
    uint32_t session;  /* of device_source */
    double load_s;     /* measure: how long the load lasts; 0: none; below 0: as the profile says */
    bool load_one;     /* one GPU of the node at a time */
    double stagger_s;  /* loads of different nodes begin within this time */
    double limit_s;    /* measure: the time limit */
    uint64_t region_bytes; /* measure: of the memory test */
    uint32_t attempt;      /* measure: how many workers tried this GPU before */
};

/* Appends the request as one whole frame. */
void worker_request_write(const struct worker_request *request, struct strbuf *buffer);
int worker_request_decode(const struct frame *frame, struct worker_request *out_request,
                          struct err *err);
void worker_request_fini(struct worker_request *request); /* only for a request that was read */

/* Reads the request on stdin, answers on WORKER_ANSWER_FD. Returns the exit code: 0 if the answer
 * is complete (also if it is FAIL), 1 if not even FAIL could be sent. */
int worker_main(void);

#endif
