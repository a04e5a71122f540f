/* The worker process. No other process opens a GPU. */
#ifndef GPUMEMTOPO_SURVEY_WORKER_WORKER_H
#define GPUMEMTOPO_SURVEY_WORKER_WORKER_H

/* Reads the request on stdin, answers on WORKER_ANSWER_FD. Returns the exit code: 0 if the answer
 * is complete (also if it is FAIL), 1 if not even FAIL could be sent. */
int worker_main(void);

#endif
