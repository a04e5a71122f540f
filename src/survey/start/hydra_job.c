/* Finds Hydra's proxy among the ancestors of this process. */
#include "survey/start/hydra_job.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "inventory/wire/spool.h"

enum { ANCESTORS_MAX = 16, WORDS_BYTES = 4096 };

void hydra_job_name_of(const char *words, size_t length, char *out_name, size_t size)
{
    *out_name = '\0';
    if (!memchr(words, '\0', length) || !strstr(words, "hydra_pmi_proxy"))
        return;
    for (const char *at = words, *end = words + length; at < end;) {
        const char *zero = memchr(at, '\0', (size_t)(end - at));
        const char *value = zero ? zero + 1 : end;
        if (zero && value < end && memchr(value, '\0', (size_t)(end - value)) &&
            strcmp(at, "--control-port") == 0) {
            snprintf(out_name, size, "hydra-%s", value);
            spool_plain_name(out_name);
            return;
        }
        at = value;
    }
}

static size_t read_file(const char *path, char *text, size_t size)
{
    FILE *file = fopen(path, "re");
    size_t length = file ? fread(text, 1, size - 1, file) : 0;
    text[length] = '\0';
    if (file)
        fclose(file);
    return length;
}

/* 0 if it cannot be read. The name of a program, in parentheses, may have any characters. */
static long parent_of(long pid)
{
    char path[64], text[512];
    long parent = 0;
    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    read_file(path, text, sizeof text);
    const char *behind = strrchr(text, ')');
    return behind && sscanf(behind, ") %*c %ld", &parent) == 1 ? parent : 0;
}

void hydra_job_name(char *out_name, size_t size)
{
    char path[64], words[WORDS_BYTES];
    long pid = (long)getppid();
    *out_name = '\0';
    for (int i = 0; i < ANCESTORS_MAX && pid > 1 && !*out_name; i++) {
        snprintf(path, sizeof path, "/proc/%ld/cmdline", pid);
        size_t length = read_file(path, words, sizeof words);
        hydra_job_name_of(words, length, out_name, size);
        pid = parent_of(pid);
    }
}
