/* predict_twins KERNEL [--size N | --footprint BYTES] [--block WxH] ...: runs each named twin once,
 * with an L2 that has nothing of its arrays. Prints a line per launch: name, size, block, registers
 * of a thread, bytes of local memory, blocks that an SM has room for. */
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "twin.cuh"

enum { EXIT_USAGE = 2, EXIT_SKIP = 77 };

static const size_t array_align = 256;

/* So many times the size of L2 are read to leave nothing else in it. */
enum { FLUSH_TIMES = 4 };

static void check(cudaError_t error, const char *what)
{
    if (error == cudaSuccess)
        return;
    fprintf(stderr, "predict_twins: %s: %s\n", what, cudaGetErrorString(error));
    exit(error == cudaErrorNoDevice || error == cudaErrorInsufficientDriver ? EXIT_SKIP
                                                                            : EXIT_FAILURE);
}

/* Reads only, so that the kernel that follows evicts no written lines but its own. */
static __global__ void read_all(const float4 *from, size_t count, float *out)
{
    float sum = 0;
    for (size_t i = grid_x(); i < count; i += (size_t)gridDim.x * blockDim.x)
        sum += __ldcg(&from[i]).x;
    if (sum != 0)
        *out = sum;
}

struct flush {
    float4 *memory;
    size_t bytes;
};

static struct flush prepare_flush()
{
    struct flush flush = {};
    int l2_bytes = 0;
    check(cudaDeviceGetAttribute(&l2_bytes, cudaDevAttrL2CacheSize, 0), "the size of L2");
    flush.bytes = (size_t)l2_bytes * FLUSH_TIMES;
    check(cudaMalloc(&flush.memory, flush.bytes), "memory");
    check(cudaMemset(flush.memory, 0, flush.bytes), "memory");
    return flush;
}

struct request {
    const struct twin *twin;
    size_t size;
    unsigned block_x, block_y;
};

static void *allocate(const struct request *request, const struct twin_shape *shape,
                      struct twin_arrays *out_arrays)
{
    size_t offsets[TWIN_ARRAYS_MAX], total = 0;
    for (size_t i = 0; i < TWIN_ARRAYS_MAX; i++) {
        offsets[i] = total;
        total += shape->elements[i] * request->twin->element_bytes;
        total = (total + array_align - 1) / array_align * array_align;
    }
    char *memory;
    check(cudaMalloc(&memory, total), "memory for the arrays");
    check(cudaMemset(memory, 0, total), "zeroing the arrays");
    *out_arrays = {(float *)(memory + offsets[0]), (float *)(memory + offsets[1]),
                   (float *)(memory + offsets[2]), (float *)(memory + offsets[3]),
                   (float *)(memory + offsets[4]), (float *)(memory + offsets[5])};
    return memory;
}

static void report(const struct request *request)
{
    const struct twin *twin = request->twin;
    cudaFuncAttributes attributes;
    int blocks = 0;
    check(cudaFuncGetAttributes(&attributes, twin->kernel), twin->name);
    check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
              &blocks, twin->kernel, request->block_x * request->block_y, twin->shared_bytes),
          twin->name);
    printf("%s %zu %ux%u %d %zu %d\n", twin->name, request->size, request->block_x,
           request->block_y, attributes.numRegs, attributes.localSizeBytes, blocks);
}

static void run(const struct request *request, const struct flush *flush)
{
    const struct twin *twin = request->twin;
    struct twin_shape shape = twin->shape(request->size);
    struct twin_arrays arrays;
    void *memory = allocate(request, &shape, &arrays);
    dim3 block(request->block_x, request->block_y);
    dim3 grid((unsigned)((shape.threads_x + block.x - 1) / block.x),
              (unsigned)((shape.threads_y + block.y - 1) / block.y));
    read_all<<<1024, 256>>>(flush->memory, flush->bytes / sizeof *flush->memory,
                            (float *)flush->memory);
    twin->kernel<<<grid, block, twin->shared_bytes>>>(arrays, request->size);
    check(cudaGetLastError(), twin->name);
    check(cudaDeviceSynchronize(), twin->name);
    report(request);
    check(cudaFree(memory), "freeing the arrays");
}

static const struct twin *find(const char *name)
{
    const struct twin *tables[] = {twins_polybench, twins_rodinia, twins_others};
    for (const struct twin *table : tables)
        for (; table->name; table++)
            if (strcmp(table->name, name) == 0)
                return table;
    fprintf(stderr, "predict_twins: there is no twin %s\n", name);
    exit(EXIT_USAGE);
}

static size_t footprint(const struct twin *twin, size_t size)
{
    struct twin_shape shape = twin->shape(size);
    size_t total = 0;
    for (size_t elements : shape.elements)
        total += elements * twin->element_bytes;
    return total;
}

/* The largest size whose arrays have at most so many bytes. Multiples of 8, 32 or 64,
 * since tiles are whole. */
static size_t size_of_footprint(const struct twin *twin, size_t bytes)
{
    size_t low = 1, high = 1 << 24;
    while (low + 1 < high) {
        size_t middle = (low + high) / 2;
        if (footprint(twin, middle) <= bytes)
            low = middle;
        else
            high = middle;
    }
    bool large = low >= 512 || twin->element_bytes > 4;
    size_t step = large ? 64 : low >= 64 ? 32 : 8;
    return low < step ? 0 : low / step * step;
}

/* A flag of the kernel named before it. */
static void take_flag(struct request *request, const char *flag, const char *value)
{
    char rest;
    bool good = request->twin && value;
    size_t bytes = 0;
    if (good && strcmp(flag, "--footprint") == 0) {
        good = sscanf(value, "%zu%c", &bytes, &rest) == 1;
        request->size = size_of_footprint(request->twin, bytes);
        flag = good && request->size > 1 ? NULL : "";
    }
    if (!flag)
        return;
    if (good && strcmp(flag, "--size") == 0)
        good = sscanf(value, "%zu%c", &request->size, &rest) == 1 && request->size > 1;
    else if (good && strcmp(flag, "--block") == 0)
        good = sscanf(value, "%ux%u%c", &request->block_x, &request->block_y, &rest) == 2;
    else
        good = false;
    if (good)
        return;
    fprintf(stderr,
            "usage: predict_twins KERNEL [--size N | --footprint BYTES] [--block WxH] ...\n");
    exit(EXIT_USAGE);
}

int main(int argc, char **argv)
{
    struct request request = {};
    struct flush flush = prepare_flush();
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] == '-') {
            take_flag(&request, argv[i], i + 1 < argc ? argv[i + 1] : NULL);
            i++;
            continue;
        }
        if (request.twin)
            run(&request, &flush);
        const struct twin *twin = find(argv[i]);
        request = {twin, twin->size, twin->block_x, twin->block_y};
    }
    if (!request.twin)
        take_flag(&request, "", NULL);
    run(&request, &flush);
    return EXIT_SUCCESS;
}
