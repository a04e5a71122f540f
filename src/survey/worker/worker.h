/* The worker process: the only one that opens a GPU. */
#ifndef GPUMEMTOPO_SURVEY_WORKER_WORKER_H
#define GPUMEMTOPO_SURVEY_WORKER_WORKER_H

/* Reads the request on stdin, answers on WORKER_ANSWER_FD; gives the exit code: 0 when the answer
 * is complete (also when it says FAIL), 1 when not even that could be said. */
int worker_main(void);

#endif
