/* Writing the file: whole or not at all. */
#include "../check.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inventory/inventory.h"
#include "rich.h"

struct fixture {
    char folder[64];
    struct inventory inventory;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    if (!f)
        return -1;
    snprintf(f->folder, sizeof f->folder, "/tmp/gpumemtopo-write-XXXXXX");
    if (!mkdtemp(f->folder) || chdir(f->folder))
        return -1;
    rich_inventory(&f->inventory);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    DIR *folder = opendir(f->folder);
    for (struct dirent *entry; folder && (entry = readdir(folder));)
        if (entry->d_name[0] != '.' && unlink(entry->d_name))
            rmdir(entry->d_name);
    if (folder)
        closedir(folder);
    if (chdir("/"))
        return -1;
    rmdir(f->folder);
    inventory_fini(&f->inventory);
    free(f);
    return 0;
}

static unsigned files_here(void)
{
    unsigned count = 0;
    DIR *folder = opendir(".");
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder));)
        count += entry->d_name[0] != '.';
    closedir(folder);
    return count;
}

static void put_file(const char *name, const char *content)
{
    FILE *file = fopen(name, "w");
    assert_non_null(file);
    fputs(content, file);
    fclose(file);
}

static void assert_content(const char *name, const char *content)
{
    char buffer[64] = "";
    FILE *file = fopen(name, "r");
    assert_non_null(file);
    size_t length = fread(buffer, 1, sizeof buffer - 1, file);
    fclose(file);
    buffer[length] = '\0';
    assert_string_equal(buffer, content);
}

static void written_file_reads_back(void **state)
{
    struct fixture *f = *state;
    struct inventory again;
    struct stat info;
    put_file("out.yaml", "old");
    mode_t mask = umask(027);
    assert_int_equal(inventory_write_file(&f->inventory, "out.yaml", NULL), 0);
    umask(mask);
    assert_int_equal(files_here(), 1);
    assert_int_equal(stat("out.yaml", &info), 0);
    assert_int_equal(info.st_mode & 0777, 0640);
    assert_int_equal(inventory_read_file("out.yaml", &again, NULL), 0);
    inventory_fini(&again);
}

static void link_stays_a_link(void **state)
{
    struct fixture *f = *state;
    struct stat info;
    put_file("real.yaml", "old");
    assert_int_equal(symlink("real.yaml", "link.yaml"), 0);
    assert_int_equal(inventory_write_file(&f->inventory, "link.yaml", NULL), 0);
    assert_int_equal(lstat("link.yaml", &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    assert_int_equal(stat("real.yaml", &info), 0);
    assert_true(info.st_size > 1000);
    assert_int_equal(files_here(), 2);
}

static void bad_paths_are_explained(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *path;
        int code;
        const char *message;
    } rows[] = {
        {"", -EINVAL, "empty"},
        {"folder", -EISDIR, "folder: is a folder"},
        {"folder/", -EISDIR, "is a folder"},
        {"missing/out.yaml", -ENOENT, "missing/out.yaml: cannot create a file in its folder"},
        {"old.yaml/out.yaml", -ENOTDIR, "cannot create"},
        {"/dev/full", -ENOSPC, "/dev/full: cannot write: No space left"},
    };
    assert_int_equal(mkdir("folder", 0777), 0);
    put_file("old.yaml", "old");
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct err err = {0};
        char message[1024];
        int rc = inventory_write_file(&f->inventory, rows[i].path, &err);
        err_format(&err, message, sizeof message);
        if (rc != rows[i].code || !strstr(message, rows[i].message))
            fail_msg("row %zu: %d %s", i, rc, message);
    }
    assert_int_equal(files_here(), 2);
    assert_content("old.yaml", "old");
}

/* A file size limit stands for a full disk: the write fails half-way. */
static void failed_write_leaves_the_old_file(void **state)
{
    struct fixture *f = *state;
    struct rlimit old_limit, limit;
    struct err err = {0};
    put_file("out.yaml", "old");
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old_limit), 0);
    limit = old_limit;
    limit.rlim_cur = 4096;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    int rc = inventory_write_file(&f->inventory, "out.yaml", &err);
    setrlimit(RLIMIT_FSIZE, &old_limit);
    assert_int_equal(rc, -EFBIG);
    assert_non_null(strstr(err.text, "cannot write"));
    assert_content("out.yaml", "old");
    assert_int_equal(files_here(), 1);
}

static void dash_is_stdout(void **state)
{
    struct fixture *f = *state;
    struct inventory again;
    int saved = dup(STDOUT_FILENO);
    int file = open("captured", O_WRONLY | O_CREAT, 0600);
    assert_true(saved >= 0 && file >= 0);
    fflush(stdout);
    dup2(file, STDOUT_FILENO);
    int rc = inventory_write_file(&f->inventory, "-", NULL);
    dup2(saved, STDOUT_FILENO);
    close(saved);
    close(file);
    assert_int_equal(rc, 0);
    assert_int_equal(inventory_read_file("captured", &again, NULL), 0);
    inventory_fini(&again);
    assert_int_equal(files_here(), 1);
}

static void foreign_temporaries_are_left_alone(void **state)
{
    struct fixture *f = *state;
    char name[64];
    snprintf(name, sizeof name, "out.yaml.tmp.%ld.0", (long)getpid());
    put_file(name, "foreign");
    assert_int_equal(inventory_write_file(&f->inventory, "out.yaml", NULL), 0);
    assert_content(name, "foreign");
    assert_int_equal(files_here(), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(written_file_reads_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(link_stays_a_link, set_up, tear_down),
        cmocka_unit_test_setup_teardown(bad_paths_are_explained, set_up, tear_down),
        cmocka_unit_test_setup_teardown(failed_write_leaves_the_old_file, set_up, tear_down),
        cmocka_unit_test_setup_teardown(dash_is_stdout, set_up, tear_down),
        cmocka_unit_test_setup_teardown(foreign_temporaries_are_left_alone, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
