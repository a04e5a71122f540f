/* Finds, checks and loads an MPI library and the plug-in for it.
 *
 * The launcher decides which MPI (launcher.h): PMIx means Open MPI, PMI means MPICH. A library is
 * looked for by the names in the table of mpi_library.c, where the dynamic linker would look: in
 * the folders of LD_LIBRARY_PATH and of the program's run path, in /etc/ld.so.cache, in the default
 * folders. What is loaded must belong to root or to the user, and nobody else may write it. */
#ifndef GPUMEMTOPO_SURVEY_COMM_MPI_LIBRARY_H
#define GPUMEMTOPO_SURVEY_COMM_MPI_LIBRARY_H

#include "base/err.h"
#include "base/str.h"
#include "survey/comm/mpi_plugin.h"
#include "survey/start/launcher.h"

/* Once in a process: the symbols of an MPI library are global. */
struct mpi_library {
    const struct mpi_plugin *plugin;
    enum launcher_pmi pmi; /* what this MPI needs from the launcher */
    char *path;            /* freed with free() */
};

/* pmi: LAUNCHER_PMIX or LAUNCHER_PMI. file: the library that the user names, a path or a name to
 * look for; its kind is recognised by its symbols. NULL: the library that fits `pmi`.
 *
 * -ENOENT: there is no such library or no plug-in for it. Other errors: it is there and cannot be
 * used. The text is one line and says what to do. */
int mpi_library_load(enum launcher_pmi pmi, const char *file, struct mpi_library *out_library,
                     struct err *err);

/* Appends a line for each MPI: where its library is, and whether there is a plug-in. Loads
 * nothing. */
void mpi_library_describe(struct strbuf *out_text);

/* Whether somebody else than root and the user could have written the file, or it is damaged. Opens
 * it, and checks what it has opened. Returns the descriptor. */
int mpi_library_open(const char *path, struct err *err);

/* The library `name` in the bytes of an ld.so.cache: the position-th one, NULL if there are no more
 * or the bytes are damaged. Points into the bytes. */
const char *mpi_library_in_cache(const char *bytes, size_t length, const char *name,
                                 size_t position);

#endif
