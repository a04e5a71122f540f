/* Libraries of MPI before they are loaded: where they are, and whether they may be. */
#include "../check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "survey/comm/mpi_library.h"

/* An ld.so.cache with these pairs of name and path. `before`: as where an older format precedes. */
static void put_cache(struct strbuf *cache, const char *before, const char *const (*pairs)[2],
                      uint32_t count)
{
    struct strbuf texts = {0};
    const uint32_t head[7] = {count};
    const uint32_t behind = 48 + 24 * count;
    strbuf_puts(cache, before);
    strbuf_puts(cache, "glibc-ld.so.cache1.1");
    strbuf_append(cache, (const char *)head, sizeof head);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t entry[6] = {0x303};
        for (size_t k = 0; k < 2; k++) {
            entry[1 + k] = behind + (uint32_t)texts.length;
            strbuf_append(&texts, pairs[i][k], strlen(pairs[i][k]) + 1);
        }
        strbuf_append(cache, (const char *)entry, sizeof entry);
    }
    strbuf_append(cache, texts.data, texts.length);
    strbuf_fini(&texts);
}

static const char *const libraries[][2] = {
    {"libmpi.so.40", "/opt/openmpi/lib/libmpi.so.40"},
    {"libmpi.so.12", "/opt/impi/lib/libmpi.so.12"},
    {"libmpi.so.40", "/usr/lib/libmpi.so.40"},
};

static void reads_the_cache(void **state)
{
    (void)state;
    static const char *const before[] = {"", "ld.so-1.7.0 and its table, glibc-"};
    static const struct {
        const char *name;
        size_t position;
        const char *path;
    } cases[] = {
        {"libmpi.so.40", 0, "/opt/openmpi/lib/libmpi.so.40"},
        {"libmpi.so.40", 1, "/usr/lib/libmpi.so.40"},
        {"libmpi.so.40", 2, NULL},
        {"libmpi.so.12", 0, "/opt/impi/lib/libmpi.so.12"},
        {"libmpi.so", 0, NULL},
        {"", 0, NULL},
    };
    for (size_t i = 0; i < COUNT_OF(before); i++) {
        struct strbuf cache = {0};
        put_cache(&cache, before[i], libraries, COUNT_OF(libraries));
        for (size_t k = 0; k < COUNT_OF(cases); k++) {
            const char *path =
                mpi_library_in_cache(cache.data, cache.length, cases[k].name, cases[k].position);
            assert_true(str_equal(path, cases[k].path));
        }
        strbuf_fini(&cache);
    }
}

/* Cut anywhere, and with any byte changed, nothing outside of the bytes is read (by ASan). */
static void survives_damaged_caches(void **state)
{
    (void)state;
    struct strbuf cache = {0};
    put_cache(&cache, "", libraries, COUNT_OF(libraries));
    for (size_t length = 0; length < cache.length; length++) {
        char *cut = malloc(length ? length : 1);
        assert_non_null(cut);
        memcpy(cut, cache.data, length);
        for (size_t position = 0; position < 3; position++)
            mpi_library_in_cache(cut, length, "libmpi.so.40", position);
        free(cut);
    }
    char *changed = malloc(cache.length);
    assert_non_null(changed);
    for (size_t at = 0; at < cache.length; at++) {
        memcpy(changed, cache.data, cache.length);
        changed[at] = (char)0xff;
        const char *path = mpi_library_in_cache(changed, cache.length, "libmpi.so.12", 0);
        assert_true(!path || (path >= changed && path < changed + cache.length));
    }
    free(changed);
    assert_null(mpi_library_in_cache(NULL, 0, "libmpi.so.40", 0));
    strbuf_fini(&cache);
}

static char *own_bytes(size_t *out_length)
{
    struct stat info;
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0 && fstat(fd, &info) == 0);
    char *bytes = malloc((size_t)info.st_size);
    assert_true(bytes && read(fd, bytes, (size_t)info.st_size) == (ssize_t)info.st_size);
    close(fd);
    *out_length = (size_t)info.st_size;
    return bytes;
}

static int open_with(const char *path, const char *bytes, size_t length, mode_t mode,
                     struct err *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0 && write(fd, bytes, length) == (ssize_t)length && fchmod(fd, mode) == 0);
    close(fd);
    int opened = mpi_library_open(path, err);
    if (opened >= 0)
        close(opened);
    return opened;
}

/* This program has the form of a library. */
static void refuses_what_is_cut(void **state)
{
    (void)state;
    char folder[] = "/tmp/mpi-library-XXXXXX", path[64];
    size_t length = 0;
    struct err err = {0};
    char *bytes = own_bytes(&length);
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/library.so", folder);
    assert_true(open_with(path, bytes, length, 0755, &err) >= 0);
    for (size_t i = 0; i < 40; i++) {
        size_t cut = i < 20 ? i * 16 : length / 20 * (i - 20);
        assert_int_equal(open_with(path, bytes, cut, 0755, &err), -ENOEXEC);
        assert_non_null(strstr(err.text, "is damaged or no shared library"));
    }
    assert_int_equal(open_with(path, bytes, length - 1, 0755, &err), -ENOEXEC);
    assert_int_equal(open_with(path, bytes, length, 0757, &err), -EPERM);
    assert_non_null(strstr(err.text, "may be written by other users (mode 0757)"));
    assert_true(open_with(path, bytes, length, 0775, &err) >= 0); /* the user's own group */
    assert_int_equal(mpi_library_open(folder, &err), -EINVAL);
    unlink(path);
    assert_int_equal(mpi_library_open(path, &err), -ENOENT);
    assert_int_equal(symlink("library.so", path), 0);
    assert_int_equal(mpi_library_open(path, &err), -ELOOP);
    unlink(path);
    rmdir(folder);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_the_cache),
        cmocka_unit_test(survives_damaged_caches),
        cmocka_unit_test(refuses_what_is_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
