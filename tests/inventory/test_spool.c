/* Spool files: what is written comes back, what is damaged is refused, names are fit for files. */
#include "../check.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "inventory/wire/spool.h"
#include "rich.h"

static char folder[] = "/tmp/gpumemtopo-spool-XXXXXX";

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder); /* every test takes away what it wrote */
}

static const struct spool_origin origin = {.survey = (char *)"s1",
                                           .version = (char *)"0.1.0",
                                           .backend = (char *)"sim",
                                           .seed = 7,
                                           .time_ms = 1234567890123};

static void read_path(const char *path, struct strbuf *out)
{
    char block[4096];
    size_t n = 0;
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    while ((n = fread(block, 1, sizeof block, file)))
        strbuf_append(out, block, n);
    fclose(file);
}

static void written_gpu(const char *uuid, struct strbuf *out_bytes)
{
    struct gpu_result gpu = {0};
    struct err err = {0};
    rich_result(&gpu);
    free(gpu.uuid);
    gpu.uuid = str_copy(uuid);
    assert_int_equal(spool_write_gpu(folder, &origin, &gpu, &err), 0);
    gpu_result_fini(&gpu);
    char *path = spool_gpu_path(folder, uuid);
    read_path(path, out_bytes);
    free(path);
}

static void a_gpu_comes_back(void **state)
{
    (void)state;
    struct strbuf bytes = {0}, before = {0}, after = {0};
    struct spool_file file = {0};
    struct gpu_result gpu = {0};
    struct err err = {0};
    written_gpu("GPU-1", &bytes);
    assert_true(spool_begins(bytes.data, bytes.length));
    assert_int_equal(spool_read(bytes.data, bytes.length, "x", &file, &err), 0);
    assert_int_equal(file.kind, SPOOL_GPU);
    assert_string_equal(file.origin.survey, "s1");
    assert_int_equal(file.origin.time_ms, origin.time_ms);
    assert_int_equal(file.origin.seed, 7);
    rich_result(&gpu);
    free(gpu.uuid);
    gpu.uuid = str_copy("GPU-1");
    gpu_result_encode(&gpu, &before);
    gpu_result_encode(&file.gpu, &after);
    assert_int_equal(before.length, after.length);
    assert_memory_equal(before.data, after.data, before.length);
    spool_file_fini(&file);
    gpu_result_fini(&gpu);
    strbuf_fini(&before);
    strbuf_fini(&after);
    strbuf_fini(&bytes);
    spool_remove_files(folder);
}

static void a_survey_comes_back(void **state)
{
    (void)state;
    char *command[] = {(char *)"gpumemtopo-survey", (char *)"--seed", (char *)"7"};
    char *bare[] = {(char *)"login1"};
    struct gpu_result expected[] = {{.uuid = (char *)"GPU-a", .node = (char *)"n1", .rank = 3},
                                    {.uuid = (char *)"GPU-b", .index = -1}};
    struct gpu_result unknown = {.rank = 5, .status = GPU_LOST, .reason = (char *)"silent"};
    const struct spool_survey survey = {
        .command = command,
        .command_count = 3,
        .config_name = (char *)"survey.yaml",
        .config_text = (char *)"judge: {}\n",
        .ranks = 8,
        .nodes = 2,
        .lost_ranks = 1,
        .bare_nodes = bare,
        .bare_count = 1,
        .expected = expected,
        .expected_count = 2,
        .unknown = &unknown,
        .unknown_count = 1,
    };
    struct err err = {0};
    struct strbuf bytes = {0};
    struct spool_file file = {0};
    char *path = str_format("%s/survey-s1.spool", folder);
    assert_int_equal(spool_write_survey(folder, &origin, &survey, &err), 0);
    read_path(path, &bytes);
    assert_int_equal(spool_read(bytes.data, bytes.length, "x", &file, &err), 0);
    assert_int_equal(file.kind, SPOOL_SURVEY);
    assert_int_equal(file.survey.ranks, 8);
    assert_int_equal(file.survey.command_count, 3);
    assert_string_equal(file.survey.command[1], "--seed");
    assert_string_equal(file.survey.config_text, "judge: {}\n");
    assert_string_equal(file.survey.bare_nodes[0], "login1");
    assert_string_equal(file.survey.expected[0].uuid, "GPU-a");
    assert_int_equal(file.survey.expected[0].rank, 3);
    assert_int_equal(file.survey.expected[1].index, -1);
    assert_int_equal(file.survey.unknown[0].status, GPU_LOST);
    assert_string_equal(file.survey.unknown[0].reason, "silent");
    spool_file_fini(&file);
    strbuf_fini(&bytes);
    free(path);
    spool_remove_files(folder);
}

/* Every prefix and every damaged byte is refused: a sum covers all but the first line. */
static void damage_is_noticed(void **state)
{
    (void)state;
    struct strbuf bytes = {0};
    struct spool_file file = {0};
    written_gpu("GPU-1", &bytes);
    for (size_t i = 0; i < bytes.length; i++) {
        struct err err = {0};
        assert_int_not_equal(spool_read(bytes.data, i, "x", &file, &err), 0);
        bytes.data[i] ^= 0x15;
        if (spool_read(bytes.data, bytes.length, "x", &file, &err) == 0)
            fail_msg("byte %zu may be anything", i);
        assert_true(strncmp(err.text, "x: ", 3) == 0);
        bytes.data[i] ^= 0x15;
    }
    strbuf_append(&bytes, "", 1);
    struct err err = {0};
    assert_int_equal(spool_read(bytes.data, bytes.length, "x", &file, &err), -EBADMSG);
    strbuf_fini(&bytes);
    spool_remove_files(folder);
}

static void newer_schemas_are_named(void **state)
{
    (void)state;
    static const char newer[] = "gpumemtopo spool 2\nwhatever";
    struct spool_file file = {0};
    struct err err = {0};
    assert_int_equal(spool_read(newer, sizeof newer - 1, "f", &file, &err), -ENOTSUP);
    assert_non_null(strstr(err.text, "f: a spool file of schema 2"));
}

/* Hostile UUIDs stay inside the folder, and no two of them meet. */
static void names_are_fit_for_files(void **state)
{
    (void)state;
    char *longest = malloc(65537), *other = malloc(65537);
    memset(longest, 'x', 65536);
    memset(other, 'x', 65536);
    longest[65536] = other[65536] = '\0';
    other[65535] = 'y';
    const char *const uuids[] = {"GPU-1",   "../../etc/passwd",
                                 "a/b",     "a_b",
                                 "a\nb",    "",
                                 "survey",  ".",
                                 "..",      "\xff",
                                 longest,   other,
                                 "GPU-1-0", "$(reboot)",
                                 "-rf",     "<script>"};
    char *paths[COUNT_OF(uuids)];
    for (size_t i = 0; i < COUNT_OF(uuids); i++) {
        struct strbuf bytes = {0};
        struct spool_file file = {0};
        struct err err = {0};
        paths[i] = spool_gpu_path(folder, uuids[i]);
        const char *name = paths[i] + strlen(folder) + 1;
        assert_null(strchr(name, '/'));
        assert_true(strlen(name) < 200);
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(paths[i], paths[k]);
        written_gpu(uuids[i], &bytes);
        assert_int_equal(spool_read(bytes.data, bytes.length, "x", &file, &err), 0);
        assert_string_equal(file.gpu.uuid, uuids[i]);
        spool_file_fini(&file);
        strbuf_fini(&bytes);
    }
    for (size_t i = 0; i < COUNT_OF(uuids); i++)
        free(paths[i]);
    spool_remove_files(folder);
    free(longest);
    free(other);
}

static void a_folder_that_is_not_there(void **state)
{
    (void)state;
    struct gpu_result gpu = {.uuid = (char *)"GPU-1"};
    struct err err = {0};
    assert_int_equal(spool_write_gpu("/nonexistent/spool", &origin, &gpu, &err), -ENOENT);
    assert_int_not_equal(err.text[0], 0);
}

enum { WRITERS = 300, GPUS = 100, TIMES = 3 };

/* Three writers for each GPU, as when a rank that was taken for lost comes back. */
static void write_often(int number, int start_fd)
{
    struct gpu_result gpu = {0};
    struct err err = {0};
    char uuid[16], byte;
    int rc = read(start_fd, &byte, 1) < 0; /* returns when all are there */
    rich_result(&gpu);
    snprintf(uuid, sizeof uuid, "GPU-%d", number % GPUS);
    free(gpu.uuid);
    gpu.uuid = uuid;
    for (int i = 0; i < TIMES && !rc; i++)
        rc = spool_write_gpu(folder, &origin, &gpu, &err);
    _exit(rc ? 1 : 0);
}

/* How many files of the folder there are; each is whole. */
static int count_whole(void)
{
    DIR *listing = opendir(folder);
    int count = 0;
    assert_non_null(listing);
    for (struct dirent *entry; (entry = readdir(listing));) {
        if (entry->d_name[0] == '.' || strstr(entry->d_name, ".tmp."))
            continue;
        char *path = str_format("%s/%s", folder, entry->d_name);
        struct strbuf bytes = {0};
        struct spool_file file = {0};
        struct err err = {0};
        read_path(path, &bytes);
        assert_int_equal(spool_read(bytes.data, bytes.length, path, &file, &err), 0);
        spool_file_fini(&file);
        strbuf_fini(&bytes);
        free(path);
        count++;
    }
    closedir(listing);
    return count;
}

static void hundreds_of_writers(void **state)
{
    (void)state;
    int start[2], status = 0, failed = 0;
    assert_int_equal(pipe(start), 0);
    for (int i = 0; i < WRITERS; i++) {
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            close(start[1]);
            write_often(i, start[0]);
        }
    }
    close(start[0]);
    close(start[1]);
    for (int left = WRITERS; left; left--) {
        if (left % 10 == 0)
            count_whole();
        assert_true(wait(&status) > 0);
        failed += status != 0;
    }
    assert_int_equal(failed, 0);
    assert_int_equal(count_whole(), GPUS);
    spool_remove_files(folder);
}

/* The path of a GPU's file that was just written. */
static char *fresh_file(const char *uuid)
{
    struct strbuf bytes = {0};
    written_gpu(uuid, &bytes);
    strbuf_fini(&bytes);
    return spool_gpu_path(folder, uuid);
}

/* As a reader does: opens the file, then asks. */
static int trust(const char *path, struct err *err)
{
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    return spool_trust_file(path, &info, err);
}

static void only_the_user_writes(void **state)
{
    (void)state;
    struct err err = {0};
    struct stat info;
    mode_t mask = umask(0);
    char *path = fresh_file("GPU-open");
    umask(mask);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0644);
    assert_int_equal(trust(path, &err), 0);
    assert_int_equal(chmod(path, 0664), 0);
    assert_int_equal(trust(path, &err), -EPERM);
    assert_non_null(strstr(err.text, "0664"));
    unlink(path);
    free(path);
}

static void links_are_refused(void **state)
{
    (void)state;
    struct err err = {0};
    char *path = fresh_file("GPU-real"), *link = str_format("%s/gpu-link.spool", folder);
    struct gpu_result gpu;
    assert_int_equal(symlink(path, link), 0);
    assert_int_equal(trust(link, &err), -EPERM);
    assert_int_equal(spool_read_gpu(folder, "s1", "link", &gpu), -EPERM);
    unlink(link);
    unlink(path);
    free(link);
    free(path);
}

/* The file that was read counts, not the one that has its name now. */
static void replaced_files_are_refused(void **state)
{
    (void)state;
    struct err err = {0};
    struct stat read_info;
    char *path = fresh_file("GPU-first"), *other = fresh_file("GPU-second");
    assert_int_equal(stat(path, &read_info), 0);
    assert_int_equal(rename(other, path), 0);
    assert_int_equal(spool_trust_file(path, &read_info, &err), -EPERM);
    assert_non_null(strstr(err.text, "replaced"));
    assert_int_equal(trust(path, &err), 0);
    /* Its mode when it was opened, not that of now. */
    assert_int_equal(stat(path, &read_info), 0);
    read_info.st_mode |= S_IWOTH;
    assert_int_equal(spool_trust_file(path, &read_info, &err), -EPERM);
    unlink(path);
    free(other);
    free(path);
}

/* Root can make a file of another user; the owner of the folder is trusted, a third user is not. */
static void other_users_are_refused(void **state)
{
    (void)state;
    enum { SOMEBODY = 54321, ANOTHER = 54322 };
    struct err err = {0};
    if (geteuid())
        skip();
    char *path = fresh_file("GPU-theirs");
    assert_int_equal(chown(path, SOMEBODY, 0), 0);
    assert_int_equal(trust(path, &err), -EPERM);
    assert_non_null(strstr(err.text, "54321"));
    assert_int_equal(chown(folder, SOMEBODY, 0), 0);
    assert_int_equal(trust(path, &err), 0);
    assert_int_equal(spool_trust_folder(folder, &err), -EPERM);
    assert_int_equal(chown(folder, ANOTHER, 0), 0);
    assert_int_equal(trust(path, &err), -EPERM);
    assert_int_equal(chown(folder, 0, 0), 0);
    unlink(path);
    free(path);
}

static void folders_of_others_are_told(void **state)
{
    (void)state;
    struct err err = {0};
    assert_int_equal(spool_trust_folder(folder, &err), 0);
    assert_int_equal(chmod(folder, 0777), 0);
    assert_int_equal(spool_trust_folder(folder, &err), -EPERM);
    assert_int_equal(chmod(folder, 01777), 0); /* as /tmp: nobody removes files of others */
    assert_int_equal(spool_trust_folder(folder, &err), 0);
    assert_int_equal(chmod(folder, 0700), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gpu_comes_back),           cmocka_unit_test(a_survey_comes_back),
        cmocka_unit_test(damage_is_noticed),          cmocka_unit_test(newer_schemas_are_named),
        cmocka_unit_test(names_are_fit_for_files),    cmocka_unit_test(a_folder_that_is_not_there),
        cmocka_unit_test(hundreds_of_writers),        cmocka_unit_test(only_the_user_writes),
        cmocka_unit_test(links_are_refused),          cmocka_unit_test(other_users_are_refused),
        cmocka_unit_test(replaced_files_are_refused), cmocka_unit_test(other_users_are_refused),
        cmocka_unit_test(folders_of_others_are_told),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
