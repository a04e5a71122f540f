/* Finds, checks and loads an MPI library and the plug-in for it. */
#include "survey/comm/mpi_library.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/shipped.h"

/* One row per binary interface. */
struct mpi_kind {
    enum launcher_pmi pmi;
    const char *name, *plugin;
    const char *libraries[2]; /* tried in this order */
    const char *packages;     /* of Debian */
};

/* MPICH's interface is also that of Intel MPI, Cray MPICH and MVAPICH. */
static const struct mpi_kind kinds[] = {
    {LAUNCHER_PMIX, "Open MPI", "gpumemtopo-mpi-openmpi.so", {"libmpi.so.40"}, "openmpi-bin"},
    {LAUNCHER_PMI, "MPICH", "gpumemtopo-mpi-mpich.so", {"libmpich.so.12", "libmpi.so.12"}, "mpich"},
};

static const struct mpi_kind *mpi_kind_for(enum launcher_pmi pmi)
{
    return pmi == LAUNCHER_PMIX ? &kinds[0] : &kinds[1];
}

/* A group counts as nobody else if it is root's or the user's own: many systems give each user one,
 * with files that the group may write. */
static bool library_others_may_write(const struct stat *info)
{
    bool own_group = !info->st_gid || info->st_gid == getegid();
    return info->st_mode & S_IWOTH || (info->st_mode & S_IWGRP && !own_group);
}

static bool library_is_foreign(const struct stat *info)
{
    return info->st_uid && info->st_uid != geteuid();
}

static bool library_read(int fd, uint64_t offset, void *data, size_t length)
{
    return offset <= INT64_MAX && pread(fd, data, length, (off_t)offset) == (ssize_t)length;
}

/* True if `count` items of `size` bytes from `offset` on lie within a file of `length` bytes. */
static bool library_has_room(uint64_t offset, uint64_t count, uint64_t size, uint64_t length)
{
    return offset <= length && (!count || size <= (length - offset) / count);
}

/* The dynamic linker maps what the headers promise, and dies of a file that is shorter. */
static bool library_is_whole(int fd, uint64_t length)
{
    ElfW(Ehdr) head;
    ElfW(Phdr) part;
    if (!library_read(fd, 0, &head, sizeof head) || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0)
        return false;
    if (head.e_type != ET_DYN || head.e_phentsize != sizeof part || !head.e_phnum ||
        !library_has_room(head.e_shoff, head.e_shnum, head.e_shentsize, length))
        return false;
    for (unsigned i = 0; i < head.e_phnum; i++)
        if (!library_read(fd, head.e_phoff + i * sizeof part, &part, sizeof part) ||
            !library_has_room(part.p_offset, 1, part.p_filesz, length))
            return false;
    return true;
}

static int library_check(int fd, const char *path, struct err *err)
{
    struct stat info;
    if (fstat(fd, &info))
        return err_set(err, -errno, "%s: cannot be looked at: %s", path, strerror(errno));
    if (!S_ISREG(info.st_mode))
        return err_set(err, -EINVAL, "%s: is no file", path);
    if (library_is_foreign(&info))
        return err_set(err, -EPERM,
                       "%s: belongs to user %lu, neither to root nor to you, and is not loaded",
                       path, (unsigned long)info.st_uid);
    if (library_others_may_write(&info))
        return err_set(err, -EPERM,
                       "%s: may be written by other users (mode %04o) and is not loaded", path,
                       (unsigned)(info.st_mode & 07777));
    if (!library_is_whole(fd, (uint64_t)info.st_size))
        return err_set(err, -ENOEXEC, "%s: is damaged or no shared library", path);
    return 0;
}

int mpi_library_open(const char *path, struct err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return err_set(err, -errno, "%s: cannot open: %s", path, strerror(errno));
    int rc = library_check(fd, path, err);
    if (rc)
        close(fd);
    return rc ? rc : fd;
}

/* True if nobody else can put another file under this name: every folder above it belongs to root
 * or the user, who alone can rename what is in it. */
static bool library_name_is_safe(const char *real_path)
{
    struct stat info;
    char *folder = str_copy(real_path);
    bool safe = *folder == '/';
    for (char *slash; safe && (slash = strrchr(folder, '/'));) {
        *slash = '\0';
        safe = stat(*folder ? folder : "/", &info) == 0 && !library_is_foreign(&info) &&
               (!library_others_may_write(&info) || info.st_mode & S_ISVTX);
    }
    free(folder);
    return safe;
}

/* Loads the file that was checked, not another one that took its name meanwhile: where that could
 * happen, by its descriptor. That is not the rule, because a library may look for others in its own
 * folder ($ORIGIN). */
static int library_load_checked(const char *path, int flags, void **out_handle, struct err *err)
{
    char *real = realpath(path, NULL);
    int fd = mpi_library_open(real ? real : path, err);
    if (fd < 0) {
        free(real);
        return fd;
    }
    char by_descriptor[32];
    snprintf(by_descriptor, sizeof by_descriptor, "/proc/self/fd/%d", fd);
    bool safe = real && library_name_is_safe(real);
    /* UCX, which MPICH uses, takes over SIGHUP, which nohup has ignored. */
    struct sigaction on_hangup;
    bool known = sigaction(SIGHUP, NULL, &on_hangup) == 0;
    *out_handle = dlopen(safe ? real : by_descriptor, flags);
    if (known)
        sigaction(SIGHUP, &on_hangup, NULL);
    int rc = *out_handle ? 0 : err_set(err, -ELIBBAD, "%s: cannot be loaded: %s", path, dlerror());
    /* Else the descriptor stays open: the linker would take another file with its number for this
     * one. */
    if (safe || rc)
        close(fd);
    free(real);
    return rc;
}

const char *mpi_library_in_cache(const char *bytes, size_t length, const char *name,
                                 size_t position)
{
    static const char magic[] = "glibc-ld.so.cache1.1";
    enum { MAGIC = sizeof magic - 1, HEAD = 48 };
    struct {
        int32_t flags;
        uint32_t key, value, os;
        uint64_t hardware;
    } entry;
    uint32_t count = 0;
    /* Older systems have the table of an older format before it. */
    const char *head = length ? memmem(bytes, length, magic, MAGIC) : NULL;
    if (!head)
        return NULL;
    size_t room = length - (size_t)(head - bytes);
    if (room < HEAD)
        return NULL;
    memcpy(&count, head + MAGIC, sizeof count);
    for (uint32_t i = 0; i < count && room - HEAD >= (i + (size_t)1) * sizeof entry; i++) {
        memcpy(&entry, head + HEAD + i * sizeof entry, sizeof entry);
        if (entry.key >= room || entry.value >= room ||
            !memchr(head + entry.key, '\0', room - entry.key) ||
            !memchr(head + entry.value, '\0', room - entry.value))
            return NULL;
        if (strcmp(head + entry.key, name) == 0 && !position--)
            return head + entry.value;
    }
    return NULL;
}

/* Reads a file of up to 64 MiB; NULL if that fails. Freed with free(). */
static char *library_read_cache(size_t *out_length)
{
    enum { CACHE_BYTES_MAX = 1 << 26 };
    struct stat info;
    int fd = open("/etc/ld.so.cache", O_RDONLY | O_CLOEXEC);
    char *bytes = NULL;
    if (fd >= 0 && fstat(fd, &info) == 0 && info.st_size > 0 && info.st_size < CACHE_BYTES_MAX) {
        bytes = mem_array((size_t)info.st_size, 1);
        if (!library_read(fd, 0, bytes, (size_t)info.st_size)) {
            free(bytes);
            bytes = NULL;
        }
        *out_length = (size_t)info.st_size;
    }
    if (fd >= 0)
        close(fd);
    return bytes;
}

static bool library_read_head(const char *path, ElfW(Ehdr) * out_head)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool known = fd >= 0 && library_read(fd, 0, out_head, sizeof *out_head);
    if (fd >= 0)
        close(fd);
    return known;
}

/* False if it does not exist, or is for another kind of machine: the linker goes on looking then. A
 * file that is no library at all counts: it is refused later, by name. */
static bool library_is_candidate(const char *path)
{
    ElfW(Ehdr) own, head;
    if (access(path, F_OK))
        return false;
    if (!library_read_head("/proc/self/exe", &own) || !library_read_head(path, &head) ||
        memcmp(head.e_ident, ELFMAG, SELFMAG) != 0)
        return true;
    return head.e_machine == own.e_machine && head.e_ident[EI_CLASS] == own.e_ident[EI_CLASS] &&
           head.e_ident[EI_DATA] == own.e_ident[EI_DATA];
}

/* Of the folders in which the linker looks for what the program needs: those that are set by
 * LD_LIBRARY_PATH and by the program's run path, or the default ones. */
static char *library_find_in_folders(const char *name, bool defaults)
{
    Dl_serinfo size, *info = NULL;
    char *found = NULL;
    void *self = dlopen(NULL, RTLD_LAZY);
    if (self && dlinfo(self, RTLD_DI_SERINFOSIZE, &size) == 0) {
        info = mem_array(1, size.dls_size);
        info->dls_size = size.dls_size;
        info->dls_cnt = size.dls_cnt;
        if (dlinfo(self, RTLD_DI_SERINFO, info))
            info->dls_cnt = 0;
        for (unsigned i = 0; i < info->dls_cnt && !found; i++) {
            const Dl_serpath *path = &info->dls_serpath[i];
            if (((path->dls_flags & LA_SER_DEFAULT) != 0) != defaults)
                continue;
            found = str_format("%s/%s", *path->dls_name ? path->dls_name : ".", name);
            if (!library_is_candidate(found)) {
                free(found);
                found = NULL;
            }
        }
    }
    free(info);
    if (self)
        dlclose(self);
    return found;
}

static char *library_find_in_cache(const char *name)
{
    size_t length = 0;
    char *bytes = library_read_cache(&length), *found = NULL;
    const char *path = NULL;
    for (size_t i = 0; bytes && !found && (path = mpi_library_in_cache(bytes, length, name, i));
         i++)
        if (library_is_candidate(path))
            found = str_copy(path);
    free(bytes);
    return found;
}

/* The path of a library, or NULL. Freed with free(). */
static char *library_find(const char *name)
{
    if (strchr(name, '/'))
        return access(name, F_OK) == 0 ? str_copy(name) : NULL;
    char *found = library_find_in_folders(name, false);
    if (!found)
        found = library_find_in_cache(name);
    return found ? found : library_find_in_folders(name, true);
}

static char *library_find_kind(const struct mpi_kind *kind)
{
    char *found = NULL;
    for (size_t i = 0; i < COUNT_OF(kind->libraries) && kind->libraries[i] && !found; i++)
        found = library_find(kind->libraries[i]);
    return found;
}

/* Open MPI 1.10, too, had a libmpi.so.12. NULL: it is no MPI. */
static const struct mpi_kind *library_recognise(void *handle)
{
    if (!dlsym(handle, "MPI_Init_thread"))
        return NULL;
    return mpi_kind_for(dlsym(handle, "ompi_mpi_comm_world") ? LAUNCHER_PMIX : LAUNCHER_PMI);
}

static bool library_has_plugin(const struct mpi_kind *kind)
{
    char *path = shipped_plugin(kind->plugin);
    bool there = path != NULL;
    free(path);
    return there;
}

static int library_no_plugin(const struct mpi_kind *kind, struct err *err)
{
    return err_set(err, -ENOENT,
                   "the plug-in for %s, %s, is not installed: install gpumemtopo again", kind->name,
                   kind->plugin);
}

static int library_load_plugin(const struct mpi_kind *kind, const char *library,
                               const struct mpi_plugin **out_plugin, struct err *err)
{
    void *handle = NULL;
    char *path = shipped_plugin(kind->plugin);
    if (!path)
        return library_no_plugin(kind, err);
    int rc = library_load_checked(path, RTLD_NOW | RTLD_LOCAL, &handle, err);
    const struct mpi_plugin *plugin = rc ? NULL : dlsym(handle, COMM_MPI_PLUGIN_SYMBOL);
    if (rc == -ELIBBAD)
        err_prefix(err, "with %s", library);
    else if (!rc && (!plugin || strcmp(plugin->version, GPUMEMTOPO_VERSION) != 0 ||
                     strcmp(plugin->mpi, kind->name) != 0))
        rc = err_set(err, -ELIBBAD, "%s: is no plug-in of gpumemtopo %s for %s", path,
                     GPUMEMTOPO_VERSION, kind->name);
    if (!rc)
        *out_plugin = plugin;
    free(path);
    return rc;
}

/* What helps when a library was found that cannot be used. */
static int library_advise(int rc, struct err *err)
{
    char text[ERR_TEXT_MAX];
    snprintf(text, sizeof text, "%s", err->text);
    return err_set(err, rc,
                   "%s; name another MPI library by --mpi-library, or survey without MPI "
                   "(--no-mpi)",
                   text);
}

int mpi_library_load(enum launcher_pmi pmi, const char *file, struct mpi_library *out_library,
                     struct err *err)
{
    const struct mpi_kind *kind = mpi_kind_for(pmi);
    if (!file && !library_has_plugin(kind))
        return library_no_plugin(kind, err);
    char *path = file ? library_find(file) : library_find_kind(kind);
    if (!path && file)
        return library_advise(err_set(err, -ENOENT, "--mpi-library %s: not found", file), err);
    if (!path)
        return err_set(err, -ENOENT,
                       "the library of %s, %s%s%s, was not found: install it (Debian: %s), add its "
                       "folder to LD_LIBRARY_PATH, or name it by --mpi-library",
                       kind->name, kind->libraries[0], kind->libraries[1] ? " or " : "",
                       kind->libraries[1] ? kind->libraries[1] : "", kind->packages);
    void *handle = NULL;
    const struct mpi_kind *found = NULL;
    /* Global, because Open MPI's components use its symbols without naming the library. */
    int rc = library_load_checked(path, RTLD_LAZY | RTLD_GLOBAL, &handle, err);
    if (!rc && !(found = library_recognise(handle)))
        rc = err_set(err, -ELIBBAD, "%s: is no MPI library", path);
    if (!rc && !file && found != kind)
        rc = err_set(err, -ELIBBAD, "%s: is %s, but the launcher needs %s", path, found->name,
                     kind->name);
    const struct mpi_plugin *plugin = NULL;
    if (!rc)
        rc = library_load_plugin(found, path, &plugin, err);
    if (rc) {
        free(path);
        return rc == -ENOENT && !file ? rc : library_advise(rc, err);
    }
    *out_library = (struct mpi_library){.plugin = plugin, .pmi = found->pmi, .path = path};
    return 0;
}

void mpi_library_describe(struct strbuf *out_text)
{
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        char *library = library_find_kind(&kinds[i]);
        strbuf_printf(out_text, "MPI: %s: %s%s\n", kinds[i].name, library ? library : "not found",
                      library_has_plugin(&kinds[i]) ? "" : "; its plug-in is not installed");
        free(library);
    }
}
