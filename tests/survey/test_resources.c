/* Limits of rank 0: found before a survey begins, with what to do. */
#include "../check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "survey/root/resources.h"

static const uint64_t mib = 1 << 20;

static void put(const char *folder, const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void make_folder(const char *folder, const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(mkdir(path, 0700), 0);
}

static void check_found(const char *folder, uint64_t bytes, const char *by)
{
    const struct resources_memory memory = resources_find_memory(folder, folder);
    assert_int_equal(memory.bytes, bytes);
    assert_string_equal(memory.by, by);
}

static void finds_the_least(void **state)
{
    (void)state;
    char folder[] = "/tmp/resources-XXXXXX", remove[64];
    assert_non_null(mkdtemp(folder));
    const struct resources_memory nothing = resources_find_memory(folder, folder);
    make_folder(folder, "self");
    make_folder(folder, "job");
    make_folder(folder, "job/step");
    put(folder, "meminfo", "MemTotal: 8388608 kB\nMemAvailable: 4194304 kB\n");
    uint64_t least = nothing.bytes < 4096 * mib ? nothing.bytes : 4096 * mib;
    if (least == 4096 * mib)
        check_found(folder, 4096 * mib, "what is free on its node");
    put(folder, "self/cgroup", "0::/job/step\n");
    put(folder, "job/step/memory.max", "max\n");
    put(folder, "job/memory.max", "1073741824\n"); /* of the job, not of the step */
    check_found(folder, 1024 * mib, "the limit of its cgroup");
    put(folder, "self/cgroup", "5:cpu:/x\n7:memory:/slurm\n"); /* version 1 */
    make_folder(folder, "memory");
    make_folder(folder, "memory/slurm");
    put(folder, "memory/slurm/memory.limit_in_bytes", "536870912\n");
    check_found(folder, 512 * mib, "the limit of its cgroup");
    snprintf(remove, sizeof remove, "rm -r %s", folder);
    assert_int_equal(system(remove), 0);
}

static void judges_memory(void **state)
{
    (void)state;
    static const struct {
        uint64_t mebibytes;
        size_t gpus;
        enum resources_verdict verdict;
    } cases[] = {
        {1, 8, RESOURCES_ENOUGH},         {4096, 100000, RESOURCES_ENOUGH},
        {1200, 100000, RESOURCES_SCARCE}, {512, 100000, RESOURCES_TOO_SMALL},
        {100, 1000, RESOURCES_ENOUGH},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct resources_memory memory = {cases[i].mebibytes * mib,
                                                "the limit of its cgroup"};
        struct err err = {0};
        assert_int_equal(resources_for_gpus(&memory, cases[i].gpus, &err), cases[i].verdict);
        assert_int_equal(err.code, cases[i].verdict == RESOURCES_ENOUGH ? 0 : -ENOBUFS);
        if (err.code) {
            assert_non_null(strstr(err.text, "100000 GPUs, and the limit of its cgroup is"));
            assert_non_null(strstr(err.text, "--mem=0"));
        }
    }
}

/* In a process of its own: a limit that was lowered stays low. */
static int raises_files_here(void)
{
    struct rlimit limit = {64, 1000};
    struct err err = {0};
    if (setrlimit(RLIMIT_NOFILE, &limit) || resources_for_ranks(600, &err) ||
        getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur < 600)
        return 1;
    if (resources_for_ranks(5000, &err) != -EMFILE || !strstr(err.text, "5000 ranks") ||
        !strstr(err.text, "LimitNOFILE"))
        return 2;
    return getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur != 1000 ? 3 : 0;
}

static void raises_files(void **state)
{
    (void)state;
    int status = 0;
    pid_t child = fork();
    if (!child)
        _exit(raises_files_here());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_the_least),
        cmocka_unit_test(judges_memory),
        cmocka_unit_test(raises_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
