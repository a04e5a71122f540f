/* Twins of the kernels of Rodinia. Shared memory has the table's size for every shape of block. */
#include "twin.cuh"

extern __shared__ float shared[];

/* Passes a value through shared memory, as a kernel that works on a tile does. */
static __device__ __forceinline__ float through_tile(float value, unsigned elements)
{
    unsigned at = threadIdx.y * blockDim.x + threadIdx.x;
    shared[at % elements] = value;
    __syncthreads();
    return shared[(at + 1) % elements];
}

static __global__ void twin_bp1(struct twin_arrays m, size_t n)
{
    size_t x = grid_x(), y = grid_y();
    bool in = x < 16 && y < n;
    float sum = in && threadIdx.x == 0 ? load(&m.a[y + 1]) : 0;
    if (in)
        sum += load(&m.b[(y + 1) * 17 + x + 1]);
    sum = through_tile(sum, 272);
    if (in)
        store(&m.b[(y + 1) * 17 + x + 1], sum);
    if (in && threadIdx.x == 0)
        store(&m.c[y], sum);
}

static __global__ void twin_bp2(struct twin_arrays m, size_t n)
{
    size_t x = grid_x(), y = grid_y(), at = (y + 1) * 17 + x + 1;
    if (x >= 16 || y >= n)
        return;
    float sum = load(&m.b[at]);
    sum += load(&m.c[x + 1]);
    sum += load(&m.a[y + 1]);
    sum += load(&m.d[at]);
    store(&m.b[at], sum);
    sum += load(&m.c[x + 1]);
    sum += load(&m.a[y + 1]);
    sum += load(&m.d[at]);
    store(&m.d[at], sum);
    if (y)
        return;
    sum += load(&m.b[x + 1]);
    store(&m.b[x + 1], sum);
    store(&m.d[x + 1], sum);
}

static __global__ void twin_cfd(struct twin_arrays m, size_t n)
{
    size_t x = grid_x();
    if (x >= n)
        return;
    float sum = load(&m.a[x]);
#pragma unroll
    for (int i = 0; i < 5; i++)
        sum += load(&m.b[i * n + x]);
    for (size_t k = 0; k < 4; k++) {
        size_t neighbour = (size_t)load(&m.c[k * n + x]);
#pragma unroll
        for (int i = 0; i < 3; i++)
            sum += load(&m.d[(3 * k + i) * n + x]);
        size_t of_b = (x + drawn(4 * x + k, 1) % 2048) % n + neighbour;
        size_t of_f = (x + drawn(4 * x + k, 5) % 2048) % n + neighbour;
#pragma unroll
        for (int i = 0; i < 5; i++)
            sum += load(&m.b[i * n + of_b]);
#pragma unroll
        for (int i = 0; i < 9; i++)
            sum += load(&m.f[i * n + of_f]);
    }
#pragma unroll
    for (int i = 0; i < 5; i++)
        store(&m.e[i * n + x], sum);
}

static __global__ void twin_hotspot(struct twin_arrays m, size_t n)
{
    size_t x = grid_x(), y = grid_y(), threads = (8 * n + 6) / 7;
    size_t at =
        (14 * (size_t)blockIdx.y + threadIdx.y - 1) * n + 14 * (size_t)blockIdx.x + threadIdx.x - 1;
    float sum = 0;
    if (x > 0 && y > 0 && x < threads - 1 && y < threads - 1) {
        sum = load(&m.a[at]);
        sum += load(&m.b[at]);
    }
    sum = through_tile(sum, 768);
    bool inner = threadIdx.x > 0 && threadIdx.y > 0 && threadIdx.x < blockDim.x - 1 &&
                 threadIdx.y < blockDim.y - 1;
    if (inner && x < threads && y < threads)
        store(&m.c[at], sum);
}

/* One tile of 16 x 16 with its borders; corner: the element above and left of it. */
static __device__ __forceinline__ void align_tile(struct twin_arrays m, size_t width, size_t corner)
{
    size_t tx = threadIdx.x;
    float sum = load(&m.b[corner]);
    sum += load(&m.b[corner + (tx + 1) * width]);
    sum += load(&m.b[corner + tx + 1]);
    for (size_t k = 0; k < 16; k++)
        sum += load(&m.a[corner + (k + 1) * width + tx + 1]);
    sum = through_tile(sum, 545);
    for (size_t k = 0; k < 16; k++)
        store(&m.b[corner + (k + 1) * width + tx + 1], sum);
}

static __global__ void twin_nw1(struct twin_arrays m, size_t n)
{
    size_t bx = blockIdx.x;
    for (size_t t = bx; t < n / 16; t++)
        align_tile(m, n + 1, 16 * (t - bx) * (n + 1) + 16 * bx);
}

static __global__ void twin_nw2(struct twin_arrays m, size_t n)
{
    size_t bx = blockIdx.x;
    for (size_t t = 0; bx + t + 1 < n / 16; t++)
        align_tile(m, n + 1, 16 * bx * (n + 1) + 16 * (bx + t + 1));
}

static __global__ void twin_srad1(struct twin_arrays m, size_t n)
{
    size_t x = grid_x(), y = grid_y(), at = y * n + x;
    bool in = x < n && y < n, but_last = x < n - 1 && y < n - 1;
    float sum = 0;
    if (in && y > 0)
        sum += load(&m.a[at - n]);
    if (in && but_last)
        sum += load(&m.a[at + n]);
    if (in && x > 0)
        sum += load(&m.a[at - 1]);
    if (in && but_last)
        sum += load(&m.a[at + 1]);
    if (in)
        sum += load(&m.a[at]);
    sum = through_tile(sum, 1536);
    if (!in)
        return;
    store(&m.b[at], sum);
    store(&m.c[at], sum);
    store(&m.d[at], sum);
    store(&m.e[at], sum);
    store(&m.f[at], sum);
}

static __global__ void twin_srad2(struct twin_arrays m, size_t n)
{
    size_t x = grid_x(), y = grid_y(), at = y * n + x;
    bool in = x < n && y < n, but_last = x < n - 1 && y < n - 1;
    float sum = 0;
    if (in && but_last)
        sum += load(&m.f[at + n]);
    if (in && but_last)
        sum += load(&m.f[at + 1]);
    if (in) {
        sum += load(&m.f[at]);
        sum += load(&m.b[at]);
        sum += load(&m.c[at]);
        sum += load(&m.d[at]);
        sum += load(&m.e[at]);
        sum += load(&m.a[at]);
    }
    sum = through_tile(sum, 1280);
    if (in)
        store(&m.a[at], sum);
}

static struct twin_shape shape_bp1(size_t n)
{
    return {16, n, {n + 1, (n + 1) * 17, n}};
}

static struct twin_shape shape_bp2(size_t n)
{
    return {16, n, {n + 1, (n + 1) * 17, 17, (n + 1) * 17}};
}

static struct twin_shape shape_cfd(size_t n)
{
    return {n, 1, {n, 5 * n, 4 * n, 12 * n, 5 * n, 9 * n}};
}

static struct twin_shape shape_hotspot(size_t n)
{
    size_t threads = (8 * n + 6) / 7;
    return {threads, threads, {n * n, n * n, n * n}};
}

static struct twin_shape shape_nw(size_t n)
{
    return {n, 1, {(n + 1) * (n + 1), (n + 1) * (n + 1)}};
}

static struct twin_shape shape_srad(size_t n)
{
    return {n, n, {n * n, n * n, n * n, n * n, n * n, n * n}};
}

const struct twin twins_rodinia[] = {
    {"bp1", twin_bp1, 262144, 16, 16, 1088, 4, shape_bp1},
    {"bp2", twin_bp2, 262144, 16, 16, 0, 4, shape_bp2},
    {"cfd", twin_cfd, 193536, 192, 1, 0, 4, shape_cfd},
    {"hotspot", twin_hotspot, 1024, 16, 16, 3072, 4, shape_hotspot},
    {"nw1", twin_nw1, 4096, 16, 1, 2180, 4, shape_nw},
    {"nw2", twin_nw2, 4096, 16, 1, 2180, 4, shape_nw},
    {"srad1", twin_srad1, 2048, 16, 16, 6144, 4, shape_srad},
    {"srad2", twin_srad2, 2048, 16, 16, 5120, 4, shape_srad},
    {},
};
