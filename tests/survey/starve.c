/* Loaded before the libraries of a rank: once the file GPUMEMTOPO_TEST_STARVES exists, allocations
 * of the program itself (not of its libraries) fail on rank GPUMEMTOPO_TEST_RANK. */
#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

static const char *first_set(const char *const *names)
{
    for (; *names; names++)
        if (getenv(*names))
            return getenv(*names);
    return "";
}

/* Whether the call comes from the program, on that rank, when it is time. */
static bool starves(void *caller)
{
    static const char *const ranks[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID", NULL};
    const char *file = getenv("GPUMEMTOPO_TEST_STARVES"), *rank = getenv("GPUMEMTOPO_TEST_RANK");
    Dl_info program, library;
    return file && rank && strcmp(first_set(ranks), rank) == 0 && access(file, F_OK) == 0 &&
           strcmp(program_invocation_short_name, "gpumemtopo-survey") == 0 &&
           dladdr(caller, &library) && dladdr((void *)getauxval(AT_ENTRY), &program) &&
           library.dli_fbase == program.dli_fbase;
}

void *calloc(size_t count, size_t size)
{
    extern void *__libc_calloc(size_t, size_t);
    return starves(__builtin_return_address(0)) ? NULL : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
    extern void *__libc_realloc(void *, size_t);
    return starves(__builtin_return_address(0)) ? NULL : __libc_realloc(old, size);
}
