/* The end of the survey, for the wrapper that started it. */
#include "survey/exit_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "survey/survey.h"

/* For one rank at a time, until it is closed: a rank 0 that was taken for lost may wake up just
 * when others claim its loss, and its word counts. */
static int open_alone(void)
{
    const char *path = getenv("GPUMEMTOPO_EXIT_FILE");
    int fd = path ? open(path, O_WRONLY | O_CLOEXEC) : -1;
    if (fd >= 0)
        flock(fd, LOCK_EX);
    return fd;
}

static bool put(int fd, int code, bool lost)
{
    return ftruncate(fd, 0) == 0 && dprintf(fd, "%d%s\n", code, lost ? " lost" : "") > 0;
}

int exit_file_write(int code, bool lost)
{
    int fd = open_alone();
    if (fd < 0)
        return code;
    bool written = put(fd, code, lost);
    return close(fd) == 0 && written ? 0 : code;
}

bool exit_file_claim_loss(int rank)
{
    struct stat info;
    int fd = open_alone();
    if (fd < 0)
        return rank == 1;
    bool first = fstat(fd, &info) == 0 && info.st_size == 0;
    if (first)
        put(fd, SURVEY_EXIT_NO_REPORT, true);
    close(fd);
    return first;
}
