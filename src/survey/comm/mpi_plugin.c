/* A plug-in for MPI, compiled once with the headers of each MPI. It is the only file that uses MPI,
 * and it is not linked with it: the program has loaded the library before. No collectives: one
 * missing rank would block them for all. */
#include "survey/comm/mpi_plugin.h"

#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { MESSAGE_TAG = 1 };

_Static_assert(sizeof(MPI_Request) <= sizeof(struct mpi_handle), "a request fits into a handle");
_Static_assert(sizeof(MPI_Message) <= sizeof(struct mpi_handle), "a message fits into a handle");

static MPI_Request plugin_request(const struct mpi_handle *handle)
{
    MPI_Request request;
    memcpy(&request, handle, sizeof request);
    return request;
}

static struct mpi_handle plugin_handle(MPI_Request request)
{
    struct mpi_handle handle = {0};
    memcpy(&handle, &request, sizeof request);
    return handle;
}

static int plugin_start(int *argc, char ***argv)
{
    int provided = MPI_THREAD_SINGLE;
    return MPI_Init_thread(argc, argv, MPI_THREAD_SINGLE, &provided);
}

static int plugin_stop(void)
{
    return MPI_Finalize();
}

static int plugin_world(int *out_rank, int *out_size, const char **out_call)
{
    *out_call = "MPI_Comm_set_errhandler";
    int code = MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (code != MPI_SUCCESS)
        return code;
    *out_call = "MPI_Comm_rank";
    code = MPI_Comm_rank(MPI_COMM_WORLD, out_rank);
    if (code != MPI_SUCCESS)
        return code;
    *out_call = "MPI_Comm_size";
    return MPI_Comm_size(MPI_COMM_WORLD, out_size);
}

static int plugin_send(const void *bytes, int length, int to, struct mpi_handle *out_request)
{
    MPI_Request request = MPI_REQUEST_NULL;
    int code = MPI_Isend(bytes, length, MPI_BYTE, to, MESSAGE_TAG, MPI_COMM_WORLD, &request);
    *out_request = plugin_handle(request);
    return code;
}

static int plugin_test(struct mpi_handle *handle, bool *out_done, bool *out_released)
{
    int done = 0;
    MPI_Request request = plugin_request(handle);
    int code = MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    *out_done = done;
    *out_released = request == MPI_REQUEST_NULL;
    *handle = plugin_handle(request);
    return code;
}

static int plugin_probe(int from, bool *out_arrived, struct mpi_arrived *out)
{
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status;
    int arrived = 0, length = 0;
    int code = MPI_Improbe(from == COMM_MPI_ANY_RANK ? MPI_ANY_SOURCE : from, MESSAGE_TAG,
                           MPI_COMM_WORLD, &arrived, &message, &status);
    if (code == MPI_SUCCESS && arrived)
        code = MPI_Get_count(&status, MPI_BYTE, &length);
    *out_arrived = code == MPI_SUCCESS && arrived;
    if (!*out_arrived)
        return code;
    *out = (struct mpi_arrived){.from = status.MPI_SOURCE, .length = length};
    memcpy(&out->message, &message, sizeof message);
    return MPI_SUCCESS;
}

static int plugin_receive(void *bytes, const struct mpi_arrived *arrived,
                          struct mpi_handle *out_request)
{
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Message message;
    memcpy(&message, &arrived->message, sizeof message);
    int code = MPI_Imrecv(bytes, arrived->length, MPI_BYTE, &message, &request);
    *out_request = plugin_handle(request);
    return code;
}

static void plugin_error_text(int code, char *out_text, size_t size)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    if (MPI_Error_string(code, text, &length) != MPI_SUCCESS)
        snprintf(text, sizeof text, "error %d", code);
    snprintf(out_text, size, "%s", text);
}

static void plugin_library_version(char *out_text, size_t size)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    if (MPI_Get_library_version(text, &length) != MPI_SUCCESS)
        text[0] = '\0';
    text[strcspn(text, ",\n")] = '\0';
    for (char *tab; (tab = strchr(text, '\t'));) /* MPICH has columns */
        *tab = ' ';
    snprintf(out_text, size, "%s", text);
}

__attribute__((visibility("default"))) const struct mpi_plugin mpi_plugin_gpumemtopo = {
    .version = GPUMEMTOPO_VERSION,
#ifdef OPEN_MPI
    .mpi = "Open MPI",
#else
    .mpi = "MPICH",
#endif
    .start = plugin_start,
    .stop = plugin_stop,
    .world = plugin_world,
    .send = plugin_send,
    .test = plugin_test,
    .probe = plugin_probe,
    .receive = plugin_receive,
    .error_text = plugin_error_text,
    .library_version = plugin_library_version,
};
