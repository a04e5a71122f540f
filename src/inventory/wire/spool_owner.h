/* Which survey a spool folder belongs to, and whether that survey still runs.
 *
 * A file in the folder names the survey. Every process that spools there holds a lock on that file,
 * on the byte whose offset is the number of its rank. The kernel drops the lock when the process
 * ends, however it ends. So an owner without any lock is stale, and a process that can lock all
 * bytes is the last one. */
#ifndef GPUMEMTOPO_INVENTORY_WIRE_SPOOL_OWNER_H
#define GPUMEMTOPO_INVENTORY_WIRE_SPOOL_OWNER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* The content of the file. Strings are owned. */
struct spool_identity {
    char *survey;  /* its name in the spool files */
    char *job;     /* the job id of the launcher, the same on all ranks; "": unknown */
    char *output;  /* path of the inventory */
    char *who;     /* host, process and time, for messages */
    size_t merged; /* number of spool files in the inventory that was made; 0: none was made */
    int exit_code; /* of the process that made the last inventory; it may lack lost ranks' files */
};
void spool_identity_fini(struct spool_identity *identity);

struct spool_owner {
    char *path; /* path of the file; NULL: no owner */
    int fd;     /* holds the lock */
    int rank;
    bool mixed;    /* the folder has results of earlier surveys, which stay there */
    bool unlocked; /* the file system has no locks: other surveys are not kept out, no rank is known
                      as last */
    struct spool_identity identity;
};

/* A process that wants to spool. */
struct spool_candidate {
    const char *folder;
    bool exclusive; /* the folder is for one survey: results of an earlier one are set aside */
    int rank;
    const char *job;
    const char *output;
    const char *who;
    const char *survey; /* name for a new survey */
};

/* Creates the folder and becomes its owner, or joins the survey of the same (known) job that owns
 * it. -EBUSY: another survey runs there; the text names it. *out_aside: new name of the folder of
 * an earlier survey (freed by the caller); NULL: nothing was set aside. */
int spool_owner_join(const struct spool_candidate *candidate, struct spool_owner *out_owner,
                     char **out_aside, struct err *err);

/* Opens the owner file at `path` and takes the lock of this rank, without waiting. -ENOENT: there
 * is no such file. */
int spool_owner_open(const char *path, int rank, struct spool_owner *out_owner, struct err *err);

enum spool_others {
    SPOOL_NOBODY, /* this process is the last one */
    SPOOL_RANK_0, /* only rank 0 still runs */
    SPOOL_OTHERS, /* other ranks still run, or that is not known */
    SPOOL_GONE,   /* the file was removed */
};

/* Releases the lock of this rank and finds out, without waiting, which others still run. After
 * SPOOL_NOBODY and SPOOL_RANK_0, new processes are kept out until spool_owner_fini, the next
 * process that asks sees this one as running, and the identity has been read again. */
enum spool_others spool_owner_leave(struct spool_owner *owner);

/* Writes identity.merged and identity.exit_code. */
void spool_owner_set_merged(struct spool_owner *owner, size_t files, int exit_code);

/* What the file at `path` says of its survey, for a process that has no part in it. */
enum spool_life {
    SPOOL_LIVES, /* a process holds a lock, or that is not known */
    SPOOL_FREE,  /* none does; ranks that wait for others hold none, too */
    SPOOL_OVER,  /* none does, and the inventory was made; or the file is gone */
};
enum spool_life spool_owner_life(const char *path);

void spool_owner_remove(const struct spool_owner *owner); /* removes the file */
void spool_owner_fini(struct spool_owner *owner);         /* releases the lock */

#endif
