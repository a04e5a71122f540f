/* Whether the files and the memory that rank 0 may have are enough for what it will collect. */
#include "survey/root/resources.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/str.h"

/* Beside a connection for each rank: files, pipes of workers, MPI's own. */
enum { OTHER_FILES = 256 };

/* Bytes of memory for each GPU while results are collected, and until the inventory is written: the
 * benchmark `gather` measures 8.9 KB and 15.6 KB after the profile standard. */
enum { COLLECT_BYTES = 9000, WRITE_BYTES = 20000 };

/* The process itself with MPI. */
static const uint64_t process_bytes = 64 << 20;

int resources_for_ranks(int ranks, struct err *err)
{
    struct rlimit limit;
    rlim_t needed = (rlim_t)ranks + OTHER_FILES;
    if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur == RLIM_INFINITY ||
        limit.rlim_cur >= needed)
        return 0;
    bool enough = limit.rlim_max == RLIM_INFINITY || limit.rlim_max >= needed;
    limit.rlim_cur = enough ? needed : limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) == 0 && enough)
        return 0;
    return err_set(err, -EMFILE,
                   "rank 0 may have %llu files open, and %d ranks that talk over TCP need %llu: "
                   "raise the limit (ulimit -Hn; LimitNOFILE of slurmd), or start one task per "
                   "node",
                   (unsigned long long)limit.rlim_max, ranks, (unsigned long long)needed);
}

static void memory_limit_to(struct resources_memory *memory, uint64_t bytes, const char *by)
{
    if (bytes < memory->bytes)
        *memory = (struct resources_memory){bytes, by};
}

/* The file has the limit in its first line; what is no number is no limit. */
static void memory_limit_by_file(struct resources_memory *memory, const char *folder,
                                 const char *cgroup, const char *name)
{
    char line[512];
    uint64_t bytes;
    char *path = str_format("%s%s/%s", folder, cgroup, name);
    FILE *file = fopen(path, "re");
    if (file && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        if (str_parse_u64(line, &bytes) == 0)
            memory_limit_to(memory, bytes, "the limit of its cgroup");
    }
    if (file)
        fclose(file);
    free(path);
}

/* A limit of any cgroup above this one counts too. `path` is shortened. */
static void memory_limit_by_cgroups(struct resources_memory *memory, const char *folder, char *path,
                                    const char *name)
{
    for (;;) {
        memory_limit_by_file(memory, folder, strcmp(path, "/") == 0 ? "" : path, name);
        char *slash = strrchr(path, '/');
        if (!slash || !path[1])
            return;
        slash[slash == path] = '\0';
    }
}

/* Version 2 has one line "0::/path", version 1 one with the controller "N:memory:/path". */
static void memory_read_cgroups(struct resources_memory *memory, const char *proc,
                                const char *cgroups)
{
    char line[512];
    char *path = str_format("%s/self/cgroup", proc);
    char *first = str_format("%s/memory", cgroups);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        char *controller = strstr(line, ":memory:/");
        if (strncmp(line, "0::/", 4) == 0)
            memory_limit_by_cgroups(memory, cgroups, line + 3, "memory.max");
        else if (controller)
            memory_limit_by_cgroups(memory, first, controller + 8, "memory.limit_in_bytes");
    }
    if (file)
        fclose(file);
    free(path);
    free(first);
}

static void memory_read_free(struct resources_memory *memory, const char *proc)
{
    char line[256];
    unsigned long long kibibytes;
    char *path = str_format("%s/meminfo", proc);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "MemAvailable: %llu kB", &kibibytes) == 1)
            memory_limit_to(memory, (uint64_t)kibibytes * 1024, "what is free on its node");
    if (file)
        fclose(file);
    free(path);
}

struct resources_memory resources_find_memory(const char *proc, const char *cgroups)
{
    struct resources_memory memory = {UINT64_MAX, "nothing"};
    struct rlimit limit;
    memory_read_free(&memory, proc);
    memory_read_cgroups(&memory, proc, cgroups);
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        memory_limit_to(&memory, limit.rlim_cur, "the limit of its address space (ulimit -v)");
    return memory;
}

enum resources_verdict resources_for_gpus(const struct resources_memory *memory, size_t gpus,
                                          struct err *err)
{
    uint64_t collect = process_bytes + (uint64_t)gpus * COLLECT_BYTES;
    uint64_t write = process_bytes + (uint64_t)gpus * WRITE_BYTES;
    if (gpus < RESOURCES_FEW_GPUS || memory->bytes >= write)
        return RESOURCES_ENOUGH;
    err_set(err, -ENOBUFS,
            "rank 0 needs about %llu MiB for %zu GPUs, and %s is %llu MiB: give its node more "
            "memory (--mem=0 takes all of it), or survey parts of the cluster and put them "
            "together with gpumemtopo-report merge",
            (unsigned long long)(write >> 20), gpus, memory->by,
            (unsigned long long)(memory->bytes >> 20));
    return memory->bytes >= collect ? RESOURCES_SCARCE : RESOURCES_TOO_SMALL;
}
