/* The file in which a wrapper that starts the survey under a launcher (./survey) learns its end: a
 * launcher greets a non-zero exit with a banner and may return a code of its own. */
#ifndef GPUMEMTOPO_SURVEY_START_EXIT_FILE_H
#define GPUMEMTOPO_SURVEY_START_EXIT_FILE_H

#include <stdbool.h>

/* The rank that reports, or fails without MPI, leaves its exit code, and the word "lost" where a
 * rank may stand still for ever, and the launcher with it. Returns what the process is to return: 0
 * when the file has the code. */
int exit_file_write(int code, bool lost);

/* Beside that file, in FILE.spool: where results are spooled, and where the inventory shall be.
 * With both the wrapper makes the inventory when no rank is left to do so. */
void exit_file_tell_spool(const char *folder, const char *output);

/* A rank that lost rank 0: leaves that there is no report, unless another rank of this host did.
 * True on the rank that did; only that one tells the user. `otherwise`: what it returns where there
 * is no such file. */
bool exit_file_claim_loss(bool otherwise);

#endif
