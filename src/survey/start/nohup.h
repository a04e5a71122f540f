/* nohup: a process that was started with SIGHUP ignored goes on ignoring it. */
#ifndef GPUMEMTOPO_SURVEY_START_NOHUP_H
#define GPUMEMTOPO_SURVEY_START_NOHUP_H

/* Ignores SIGHUP if this process was started so. UCX, a library that MPICH loads, sets a handler of
 * its own before main is called. */
void nohup_restore(void);

#endif
