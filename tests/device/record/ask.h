/* Questions to a GPU that is recorded or replayed: one job, its answer, and whether it is the same
 * again. */
#ifndef GPUMEMTOPO_TESTS_DEVICE_RECORD_ASK_H
#define GPUMEMTOPO_TESTS_DEVICE_RECORD_ASK_H

#include "device/device.h"

/* Warms an array of this size, then chases through it, on any SM. */
struct device_job ask_chase(uint64_t size_bytes);

/* Fails the test where there is no answer. Released by device_answers_fini. */
struct device_answer ask_device(struct device *device, const struct device_job *job,
                                uint32_t at_once);

/* For a job that has no answer: what device_run says. */
int ask_in_vain(struct device *device, const struct device_job *job, struct err *err);

bool ask_same_answer(const struct device_answer *a, const struct device_answer *b);

/* Asks again and compares; releases what comes. */
void ask_check_same(struct device *device, const struct device_job *job, uint32_t at_once,
                    const struct device_answer *expected);

#endif
