/* The exit codes of gpumemtopo-survey, and the file that tells the wrapper (./survey) how a survey
 * under a launcher ended. The exit code of the launcher is not enough: a launcher prints a banner
 * for a non-zero exit code and may return another code. Not for signal handlers. */
#ifndef GPUMEMTOPO_SURVEY_START_EXIT_FILE_H
#define GPUMEMTOPO_SURVEY_START_EXIT_FILE_H

#include <stdbool.h>

/* docs/cluster.md says what each means. */
enum survey_exit {
    SURVEY_EXIT_OK,
    SURVEY_EXIT_NO_REPORT,
    SURVEY_EXIT_BAD_INPUT,
    SURVEY_EXIT_OUTLIERS,
    SURVEY_EXIT_INCOMPLETE,
};

/* Called on the rank that reports, or fails without MPI. Writes its exit code, and the word "lost"
 * if a rank, and with it the launcher, may hang for ever. Returns the exit code for the process: 0
 * if the file has the code. */
int exit_file_write(int code, bool lost);

/* Writes to FILE.spool, beside that file, where the spool is and where the inventory must be
 * written. With both, the wrapper can make the inventory if no rank is left to do so. */
void exit_file_name_spool(const char *folder, const char *output);

/* Called on a rank that lost rank 0. Writes that there is no report, unless another rank of this
 * host has done so. True on the rank that wrote it; only that rank reports to the user.
 * `otherwise`: returned if there is no such file. */
bool exit_file_claim_loss(bool otherwise);

#endif
