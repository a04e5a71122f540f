/* What the program and a plug-in for MPI know of each other.
 *
 * The program is not linked with MPI. It loads an MPI library and then the plug-in that was
 * compiled with the headers of that MPI (mpi_library.h). A plug-in is mpi_plugin.c, compiled once
 * per binary interface: it turns handles and constants, which differ from one MPI to the other,
 * into plain values, and does nothing else. */
#ifndef GPUMEMTOPO_SURVEY_COMM_MPI_PLUGIN_H
#define GPUMEMTOPO_SURVEY_COMM_MPI_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Room for an MPI_Request or an MPI_Message of any MPI. */
struct mpi_handle {
    uint64_t bits;
};

enum { COMM_MPI_ANY_RANK = -1 };

/* A message that has arrived and that nobody else will receive. */
struct mpi_arrived {
    struct mpi_handle message;
    int from;
    int length; /* bytes */
};

/* All ranks, point to point, without blocking. Functions that return int: 0, or an error code of
 * this MPI, for error_text. */
struct mpi_plugin {
    const char *version; /* of gpumemtopo; a plug-in belongs to the program of the same version */
    const char *mpi;     /* whose headers it was compiled with: "Open MPI" or "MPICH" */

    int (*start)(int *argc, char ***argv); /* MPI_Init; blocks until every rank has called it */
    int (*stop)(void);                     /* MPI_Finalize; may wait for ranks that are gone */
    /* Errors are returned from now on. *out_call: the call that failed. */
    int (*world)(int *out_rank, int *out_size, const char **out_call);

    int (*send)(const void *bytes, int length, int to, struct mpi_handle *out_request);
    /* *out_released: MPI does not use the request and its bytes any more; also after an error. */
    int (*test)(struct mpi_handle *request, bool *out_done, bool *out_released);
    /* from: a rank, or COMM_MPI_ANY_RANK. */
    int (*probe)(int from, bool *out_arrived, struct mpi_arrived *out);
    int (*receive)(void *bytes, const struct mpi_arrived *arrived, struct mpi_handle *out_request);

    void (*error_text)(int code, char *text, size_t size);
    void (*library_version)(char *text, size_t size); /* works before start; one line */
};

/* The only symbol that a plug-in exports. */
#define COMM_MPI_PLUGIN_SYMBOL "mpi_plugin_gpumemtopo"
extern const struct mpi_plugin mpi_plugin_gpumemtopo;

#endif
