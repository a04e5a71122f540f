/* Messages between ranks as files in a folder that they share: for when MPI does not start, since
 * it takes all ranks for that, and one that died before would cost all others. */
#ifndef GPUMEMTOPO_SURVEY_COMM_FOLDER_H
#define GPUMEMTOPO_SURVEY_COMM_FOLDER_H

#include <stdbool.h>

#include "base/err.h"
#include "survey/comm.h"

/* Makes the folder if it is not there and waits until one of the ranks is the root: rank 0 at once,
 * another one when nobody lower has come for settle_s seconds, any when hurried() says that there
 * is no time for that (NULL: there is). -ESTALE: nobody shall come here; -EPERM: the folder is
 * somebody else's. Freed with comm_destroy; the last rank to leave removes the folder. */
int comm_folder_create(const char *path, int rank, int size, double settle_s, bool (*hurried)(void),
                       struct comm **out_comm, struct err *err);

/* Whether ranks are there, with a root or about to have one. */
bool comm_folder_open(const char *path);

/* The ranks speak otherwise: who comes here shall not find another one and believe to lead. 1: this
 * call closed it, and the caller removes it in the end; 0: it was closed; -EEXIST: ranks are there
 * already. */
int comm_folder_close(const char *path, struct err *err);
void comm_folder_remove_closed(const char *path);

#endif
