/* Which survey a spool folder belongs to, and whether that survey still runs.
 *
 * A file in the folder names the survey. Every process that spools there holds a lock on that file,
 * on the byte that has the number of its rank; the kernel drops the lock when the process ends,
 * however it ends. So an owner without any lock is stale, and a process that can lock all bytes is
 * the last one. */
#ifndef GPUMEMTOPO_INVENTORY_WIRE_SPOOL_OWNER_H
#define GPUMEMTOPO_INVENTORY_WIRE_SPOOL_OWNER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* What the file says. Strings are owned. */
struct spool_identity {
    char *survey;  /* its name in the spool's files */
    char *job;     /* the launcher's name for it, the same on all ranks; "": unknown */
    char *output;  /* where the inventory goes */
    char *who;     /* host, process and time, for people */
    size_t merged; /* spool files that are in the inventory already; 0: none was made of them */
    int exit_code; /* of the process that made that inventory */
};
void spool_identity_fini(struct spool_identity *identity);

struct spool_owner {
    char *path; /* of the file; NULL: no owner */
    int fd;     /* holds the lock */
    int rank;
    bool mixed;    /* it came to a folder with results of earlier surveys, which stay there */
    bool unlocked; /* the file system has no locks: nobody is kept out, nobody is known as last */
    struct spool_identity identity;
};

/* What a process brings along that wants to spool. */
struct spool_candidate {
    const char *folder;
    bool exclusive; /* the folder is for one survey: what an earlier one left there is set aside */
    int rank;
    const char *job;
    const char *output;
    const char *who;
    const char *survey; /* its name, if it is a new one */
};

/* Makes the folder and becomes its owner, or joins the survey of the same (known) job that owns it.
 * -EBUSY: another survey runs there; the text names it. *out_aside: new name of what an earlier
 * survey left (freed by the caller), NULL: nothing was set aside. */
int spool_owner_join(const struct spool_candidate *candidate, struct spool_owner *out_owner,
                     char **out_aside, struct err *err);

/* Opens the owner's file at `path` and takes this rank's lock, without waiting. -ENOENT: there is
 * none. */
int spool_owner_open(const char *path, int rank, struct spool_owner *out_owner, struct err *err);

enum spool_others {
    SPOOL_NOBODY, /* this process is the last one */
    SPOOL_RANK_0, /* only rank 0 is there */
    SPOOL_OTHERS, /* other ranks are there, or nobody can say */
    SPOOL_GONE,   /* the file was removed */
};

/* Gives this rank's lock back and sees who else is there, without waiting. With SPOOL_NOBODY and
 * SPOOL_RANK_0 newcomers are kept out until spool_owner_fini, the next process to ask finds this
 * one there, and the identity was read anew. */
enum spool_others spool_owner_leave(struct spool_owner *owner);

/* Writes identity.merged and identity.exit_code. */
void spool_owner_set_merged(struct spool_owner *owner, size_t files, int exit_code);

void spool_owner_remove(const struct spool_owner *owner); /* the file */
void spool_owner_fini(struct spool_owner *owner);         /* the lock */

#endif
