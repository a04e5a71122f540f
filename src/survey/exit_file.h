/* The file in which a wrapper that starts the survey under a launcher (./survey) learns its end: a
 * launcher greets a non-zero exit with a banner and may return a code of its own. */
#ifndef GPUMEMTOPO_SURVEY_EXIT_FILE_H
#define GPUMEMTOPO_SURVEY_EXIT_FILE_H

#include <stdbool.h>

/* Rank 0 leaves its exit code, and the word "lost" where a rank may stand still for ever, and the
 * launcher with it. Returns what the process is to return: 0 when the file has the code. */
int exit_file_write(int code, bool lost);

/* Another rank, when rank 0 is lost: leaves that there is no report, unless somebody did. Whether
 * it is this rank's to tell the user: of those on a host with the file the first; `otherwise` where
 * there is none. */
bool exit_file_claim_loss(bool otherwise);

/* When MPI does not start: the same, for a signal handler; somebody else tells. */
void exit_file_leave_loss(void);

#endif
