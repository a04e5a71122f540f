/* Messages between ranks as files in a folder that they share.
 *
 * In it: `root`, a symbolic link to the number of the root, or to -1 when nobody shall meet here:
 * one rank only can make it, and it is whole when it is there; and a folder to-R for each rank R,
 * its box. A message is a file FROM-NUMBER in the receiver's box, in the order of their numbers; it
 * is written under another name and renamed, so that it is whole when it is seen. Who has read it
 * removes it. */
#include "survey/comm_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/mem.h"
#include "base/str.h"

/* Files are looked for no more often, by one rank and by all together: the folder may be on a
 * server that many share. */
static const double look_every_s = 0.02;
static const double looks_per_s = 2500;

/* Sent messages that are not known to be taken. */
struct sent {
    int to;
    uint64_t number;
};

struct folder_comm {
    struct comm base;
    char *path;
    uint64_t next_number;
    struct sent *sent;
    size_t sent_count, sent_capacity;
    size_t prune_at;       /* sent messages are looked after when there are so many */
    struct dirent **found; /* in the own box, not yet read */
    int found_count, found_next;
    double look_s; /* by the monotonic clock: not before */
};

static char *box_path(const struct folder_comm *self, int rank)
{
    return str_format("%s/to-%d", self->path, rank);
}

static char *message_path(const struct folder_comm *self, const struct sent *sent)
{
    return str_format("%s/to-%d/%08d-%012" PRIu64, self->path, sent->to, self->base.rank,
                      sent->number);
}

static int make_box(const struct folder_comm *self)
{
    char *box = box_path(self, self->base.rank);
    int rc = !box ? -ENOMEM : mkdir(box, 0777) && errno != EEXIST ? -errno : 0;
    free(box);
    return rc;
}

/* An empty file would be there for ever. */
static int write_new(const char *path, const char *data, size_t length)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd < 0)
        return -errno;
    int rc = io_write_all(fd, data, length);
    if (close(fd) && !rc)
        rc = -errno;
    if (rc)
        unlink(path);
    return rc;
}

/* Regular files of a few megabytes at most. */
static int read_whole(const char *path, struct strbuf *out)
{
    char block[65536];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return -errno;
    ssize_t n = 0;
    do {
        n = read(fd, block, sizeof block);
        if (n > 0)
            strbuf_append(out, block, (size_t)n);
    } while (n > 0 || (n < 0 && errno == EINTR));
    int rc = n < 0 ? -errno : out->failed ? -ENOMEM : 0;
    close(fd);
    return rc;
}

static int put_message(const struct folder_comm *self, const struct sent *sent,
                       const struct strbuf *bytes)
{
    char *path = message_path(self, sent);
    char *half = path ? str_format("%s.tmp", path) : NULL;
    int rc = half ? 0 : -ENOMEM;
    if (!rc)
        rc = write_new(half, bytes->data, bytes->length);
    if (!rc && rename(half, path))
        rc = -errno;
    if (rc && half)
        unlink(half);
    free(half);
    free(path);
    return rc;
}

static bool is_taken(const struct folder_comm *self, const struct sent *sent)
{
    char *path = message_path(self, sent);
    bool taken = path && access(path, F_OK) && errno == ENOENT;
    free(path);
    return taken;
}

static int folder_flush(struct comm *comm)
{
    struct folder_comm *self = (struct folder_comm *)comm;
    size_t left = 0;
    for (size_t i = 0; i < self->sent_count; i++)
        if (!is_taken(self, &self->sent[i]))
            self->sent[left++] = self->sent[i];
    self->sent_count = left;
    return left > INT_MAX ? INT_MAX : (int)left;
}

static int keep_sent(struct folder_comm *self, const struct sent *sent)
{
    enum { FEW = 64 };
    if (self->sent_count >= self->prune_at) {
        folder_flush(&self->base);
        self->prune_at = 2 * self->sent_count + FEW;
    }
    struct sent *grown =
        mem_grow(self->sent, &self->sent_capacity, self->sent_count + 1, sizeof *self->sent);
    if (!grown)
        return -ENOMEM;
    self->sent = grown;
    self->sent[self->sent_count++] = *sent;
    return 0;
}

/* Who has no box never came, or has left: it is not waited for. */
static int folder_send(struct comm *comm, int to, struct strbuf *bytes, struct err *err)
{
    struct folder_comm *self = (struct folder_comm *)comm;
    const struct sent sent = {.to = to, .number = self->next_number++};
    int rc = put_message(self, &sent, bytes);
    if (!rc)
        rc = keep_sent(self, &sent);
    strbuf_fini(bytes);
    return rc && rc != -ENOENT ? err_set(err, rc, "a message in %s: %s", self->path, strerror(-rc))
                               : 0;
}

static int is_message(const struct dirent *entry)
{
    return entry->d_name[0] != '.' && !strchr(entry->d_name, '.');
}

/* By sender, then by number. */
static int message_order(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static void forget_found(struct folder_comm *self)
{
    for (int i = self->found_next; i < self->found_count; i++)
        free(self->found[i]);
    free(self->found);
    self->found = NULL;
    self->found_count = self->found_next = 0;
}

/* The root, whom all speak to, does not wait for its turn. */
static double look_interval_s(const struct folder_comm *self)
{
    return look_every_s + (comm_leads(&self->base) ? 0 : self->base.size / looks_per_s);
}

/* A box that is not there is empty. */
static int look(struct folder_comm *self, struct err *err)
{
    double now_s = clock_monotonic_s();
    if (now_s < self->look_s)
        return 0;
    char *box = box_path(self, self->base.rank);
    if (!box)
        return err_no_memory(err);
    forget_found(self);
    int count = scandir(box, &self->found, is_message, message_order);
    int rc = count < 0 && errno != ENOENT ? -errno : 0;
    self->found_count = count < 0 ? 0 : count;
    self->look_s = now_s + look_interval_s(self);
    if (rc)
        err_set(err, rc, "%s: %s", box, strerror(-rc));
    free(box);
    return rc;
}

/* One that cannot be removed would come again and again: it counts as not received. */
static int read_message(struct folder_comm *self, const char *name, int *out_from,
                        struct strbuf *out_bytes, struct err *err)
{
    struct strbuf bytes = {0};
    char *path = str_format("%s/to-%d/%s", self->path, self->base.rank, name);
    if (!path)
        return err_no_memory(err);
    long from = strtol(name, NULL, 10);
    int rc = read_whole(path, &bytes);
    if (!rc && unlink(path))
        rc = -errno;
    if (rc)
        err_set(err, rc, "%s: %s", path, strerror(-rc));
    else if (from < 0 || from >= self->base.size)
        rc = err_set(err, -EBADMSG, "%s: from no rank of this survey", path);
    free(path);
    if (rc) {
        strbuf_fini(&bytes);
        return rc;
    }
    *out_from = (int)from;
    *out_bytes = bytes;
    return 1;
}

static int folder_receive(struct comm *comm, int *out_from, struct strbuf *out_bytes,
                          struct err *err)
{
    struct folder_comm *self = (struct folder_comm *)comm;
    if (self->found_next == self->found_count) {
        int rc = look(self, err);
        if (rc)
            return rc;
    }
    if (self->found_next == self->found_count)
        return 0;
    struct dirent *entry = self->found[self->found_next++];
    int rc = read_message(self, entry->d_name, out_from, out_bytes, err);
    free(entry);
    return rc;
}

static void empty_folder(const char *path)
{
    DIR *folder = opendir(path);
    for (struct dirent *entry; folder && (entry = readdir(folder));)
        if (entry->d_name[0] != '.')
            unlinkat(dirfd(folder), entry->d_name, 0);
    if (folder)
        closedir(folder);
    rmdir(path);
}

static void remove_box(const struct folder_comm *self, int rank)
{
    char *box = box_path(self, rank);
    if (box)
        empty_folder(box);
    free(box);
}

/* The lowest rank that has a box and is not `but`; -1: none. */
static int lowest_present(const char *path, int but)
{
    int lowest = -1;
    DIR *folder = opendir(path);
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        int rank = -1;
        if (sscanf(entry->d_name, "to-%d", &rank) == 1 && rank >= 0 && rank != but &&
            (lowest < 0 || rank < lowest))
            lowest = rank;
    }
    if (folder)
        closedir(folder);
    return lowest;
}

static char *root_path(const char *path)
{
    return str_format("%s/root", path);
}

/* Nothing shall stay: the root, who leaves last, also removes what those left that did not take its
 * last message, since they died; and the last of the others what a root left that is no more. */
static void folder_destroy(struct comm *comm)
{
    struct folder_comm *self = (struct folder_comm *)comm;
    char *root = root_path(self->path);
    folder_flush(comm);
    for (size_t i = 0; i < self->sent_count && comm_leads(comm); i++)
        remove_box(self, self->sent[i].to);
    remove_box(self, comm->rank);
    bool last = lowest_present(self->path, comm->root) < 0;
    if (comm->rootless && last)
        remove_box(self, comm->root);
    if (root && (comm_leads(comm) || (comm->rootless && last)))
        unlink(root);
    rmdir(self->path);
    forget_found(self);
    free(root);
    free(self->sent);
    free(self->path);
    free(self);
}

/* -ENOENT: there is none. */
static int read_root(const char *path, int *out_rank)
{
    char text[16] = "";
    char *root = root_path(path);
    ssize_t length = root ? readlink(root, text, sizeof text - 1) : -1;
    free(root);
    return length > 0 && sscanf(text, "%d", out_rank) == 1 ? 0 : -ENOENT;
}

bool comm_folder_open(const char *path)
{
    int root = -1;
    return read_root(path, &root) == 0 ? root >= 0 : lowest_present(path, -1) >= 0;
}

/* -EEXIST: somebody else was faster. */
static int write_root(const char *path, int rank)
{
    char text[16];
    char *root = root_path(path);
    snprintf(text, sizeof text, "%d", rank);
    int rc = !root ? -ENOMEM : symlink(text, root) ? -errno : 0;
    free(root);
    return rc;
}

/* Rank 0 leads at once, another one when there was time for those below it to come; and any when
 * one of them came and then did not lead. */
static bool may_lead(const struct folder_comm *self, double waited_s, double settle_s)
{
    return self->base.rank == 0 || waited_s > 2 * settle_s ||
           (waited_s > settle_s && lowest_present(self->path, -1) == self->base.rank);
}

static bool is_present(const struct folder_comm *self, int rank)
{
    char *box = box_path(self, rank);
    bool present = box && access(box, F_OK) == 0;
    free(box);
    return present;
}

/* A root without a box is what an earlier job of this name left, and may come yet. */
static int find_root(struct folder_comm *self, double settle_s, bool (*hurried)(void),
                     struct err *err)
{
    const double begun_s = clock_monotonic_s();
    const double pause_s = look_every_s + self->base.size / looks_per_s;
    for (;; usleep((useconds_t)(1e6 * pause_s))) {
        double waited_s = clock_monotonic_s() - begun_s;
        int root = -1, rc = 0;
        bool known = read_root(self->path, &root) == 0;
        if (known && (root < 0 || root >= self->base.size))
            return err_set(err, -ESTALE, "%s: the others have not come", self->path);
        if (known && is_present(self, root)) {
            self->base.root = root;
            return 0;
        }
        if (!known && ((hurried && hurried()) || may_lead(self, waited_s, settle_s)))
            rc = write_root(self->path, self->base.rank);
        if (rc == -EEXIST)
            rc = 0;
        if (!rc && waited_s > 3 * settle_s + 1)
            rc = -ETIMEDOUT;
        if (rc)
            return err_set(err, rc, "%s: no rank leads the others: %s", self->path, strerror(-rc));
    }
}

/* In a folder where everybody may write it could be another user's. */
static int make_folder(const char *path, struct err *err)
{
    struct stat info;
    if (mkdir(path, 0777) && errno != EEXIST)
        return err_set_at(err, -errno, path, 0, 0, "cannot make the folder: %s", strerror(errno));
    if (lstat(path, &info))
        return err_set_at(err, -errno, path, 0, 0, "cannot be looked at: %s", strerror(errno));
    if (!S_ISDIR(info.st_mode) || info.st_uid != geteuid())
        return err_set_at(err, -EPERM, path, 0, 0, "is not a folder of this user");
    return 0;
}

int comm_folder_close(const char *path, struct err *err)
{
    int rc = make_folder(path, err);
    if (rc)
        return rc;
    rc = write_root(path, -1);
    int root = -1;
    if (rc == -EEXIST && read_root(path, &root) == 0 && root < 0)
        return 0;
    return rc ? err_set_at(err, rc, path, 0, 0, "cannot be closed: %s", strerror(-rc)) : 1;
}

void comm_folder_remove_closed(const char *path)
{
    int root = 0;
    char *file = root_path(path);
    if (file && read_root(path, &root) == 0 && root < 0)
        unlink(file);
    rmdir(path);
    free(file);
}

int comm_folder_create(const char *path, int rank, int size, double settle_s, bool (*hurried)(void),
                       struct comm **out_comm, struct err *err)
{
    static const struct comm_ops ops = {
        .send = folder_send,
        .receive = folder_receive,
        .flush = folder_flush,
        .destroy = folder_destroy,
    };
    int rc = make_folder(path, err);
    if (rc)
        return rc;
    struct folder_comm *self = mem_array(1, sizeof *self);
    if (!self)
        return err_no_memory(err);
    comm_init(&self->base, &ops, rank, size);
    self->path = str_copy(path);
    if (!self->path)
        rc = err_no_memory(err);
    if (!rc && (rc = make_box(self)))
        err_set_at(err, rc, path, 0, 0, "cannot make a folder in it: %s", strerror(-rc));
    if (!rc)
        rc = find_root(self, settle_s, hurried, err);
    if (rc) {
        if (self->path)
            remove_box(self, rank);
        rmdir(path);
        free(self->path);
        free(self);
        return rc;
    }
    *out_comm = &self->base;
    return 0;
}
