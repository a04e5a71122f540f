/* Tells the wrapper that started the survey how it ended. */
#include "survey/start/exit_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static const char no_report[] = "1 lost\n";
_Static_assert(SURVEY_EXIT_NO_REPORT == 1, "no_report has this code");

/* Opens and locks the file, so that only one rank writes at a time. A rank 0 that was considered
 * lost may continue just when another rank claims its loss; then the code of rank 0 must stay. */
static int exit_file_open(void)
{
    const char *path = getenv("GPUMEMTOPO_EXIT_FILE");
    int fd = path ? open(path, O_WRONLY | O_CLOEXEC) : -1;
    if (fd >= 0)
        flock(fd, LOCK_EX);
    return fd;
}

static bool exit_file_put(int fd, const char *text)
{
    size_t length = strlen(text);
    return ftruncate(fd, 0) == 0 && write(fd, text, length) == (ssize_t)length;
}

int exit_file_write(int code, bool lost)
{
    int fd = exit_file_open();
    if (fd < 0)
        return code;
    char text[32];
    snprintf(text, sizeof text, "%d%s\n", code, lost ? " lost" : "");
    bool written = exit_file_put(fd, text);
    return close(fd) == 0 && written ? 0 : code;
}

void exit_file_name_spool(const char *folder, const char *output)
{
    char path[4096];
    const char *file = getenv("GPUMEMTOPO_EXIT_FILE");
    if (!file)
        return;
    snprintf(path, sizeof path, "%s.spool", file);
    FILE *out = fopen(path, "we");
    if (!out)
        return;
    fprintf(out, "%s\n%s\n", folder, output);
    fclose(out);
}

bool exit_file_claim_loss(bool otherwise)
{
    struct stat info;
    int fd = exit_file_open();
    if (fd < 0)
        return otherwise;
    bool first = fstat(fd, &info) == 0 && info.st_size == 0;
    if (first)
        exit_file_put(fd, no_report);
    close(fd);
    return first;
}
