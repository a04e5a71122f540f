/* Twins of the kernels beside those of the seed. */
#include "twin.cuh"

extern __shared__ float shared[];

static __global__ void twin_transpose(struct twin_arrays m, size_t n)
{
    size_t x = grid_x(), y = grid_y();
    if (x < n && y < n)
        store(&m.b[x * n + y], load(&m.a[y * n + x]));
}

static __global__ void twin_gemm(struct twin_arrays m, size_t n)
{
    size_t x = grid_x(), y = grid_y();
    if (x >= n || y >= n)
        return;
    float sum = 0;
    for (size_t k = 0; k < n; k++) {
        float left = load(&m.a[y * n + k]);
        sum += left * load(&m.b[k * n + x]);
    }
    store(&m.c[y * n + x], sum);
}

static __global__ void twin_gemm_tiled(struct twin_arrays m, size_t n)
{
    size_t x = grid_x(), y = grid_y(), tx = threadIdx.x, ty = threadIdx.y;
    float *left = shared, *right = shared + 1024, sum = 0;
    for (size_t t = 0; t < n / 32; t++) {
        left[ty * 32 + tx] = load(&m.a[y * n + 32 * t + tx]);
        right[ty * 32 + tx] = load(&m.b[(32 * t + ty) * n + x]);
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 32; k++)
            sum += left[ty * 32 + k] * right[k * 32 + tx];
        __syncthreads();
    }
    store(&m.c[y * n + x], sum);
}

static __global__ void twin_spmv(struct twin_arrays m, size_t n)
{
    size_t x = grid_x();
    if (x >= n)
        return;
    float sum = load(&m.a[x]);
    sum += load(&m.a[x + 1]);
    for (size_t k = 0; k < 32; k++) {
        size_t column = (size_t)load(&m.b[x * 32 + k]);
        float value = load(&m.c[x * 32 + k]);
        column += drawn(32 * x + k, 3) % n;
        sum += value * load(&m.d[column]);
    }
    store(&m.e[x], sum);
}

static __global__ void twin_histogram(struct twin_arrays m, size_t n)
{
    size_t x = grid_x();
    if (x >= n)
        return;
    float value = load(&m.a[x]);
    store(&m.b[drawn(x, 1) % 256 + (size_t)value], value);
}

static __global__ void twin_stencil3d(struct twin_arrays m, size_t n)
{
    size_t x = grid_x(), y = grid_y(), plane = n * n;
    if (x < 1 || y < 1 || x >= n - 1 || y >= n - 1)
        return;
    for (size_t k = 0; k < n; k++) {
        size_t at = (k + 1) * plane + y * n + x;
        float sum = load(&m.a[at]);
        sum += load(&m.a[at - 1]);
        sum += load(&m.a[at + 1]);
        sum += load(&m.a[at - n]);
        sum += load(&m.a[at + n]);
        sum += load(&m.a[at - plane]);
        sum += load(&m.a[at + plane]);
        store(&m.b[at], sum);
    }
}

static __global__ void twin_embedding(struct twin_arrays m, size_t n)
{
    size_t x = grid_x(), y = grid_y();
    if (x >= 32 || y >= 65536)
        return;
    size_t row = (size_t)load(&m.b[y]) + drawn(y, 0) % n;
    for (size_t k = 0; k < 4; k++)
        store(&m.c[y * 128 + x + 32 * k], load(&m.a[row * 128 + x + 32 * k]));
}

/* Queries, keys and values of 256 bytes a row, 16 bytes per thread; tiles of 64 rows. */
static __global__ void twin_attention(struct twin_arrays m, size_t n)
{
    size_t tx = threadIdx.x, ty = threadIdx.y, by = blockIdx.y;
    const float4 *queries = (const float4 *)m.a, *keys = (const float4 *)m.b;
    const float4 *values = (const float4 *)m.c;
    float4 *tiles = (float4 *)shared, sum = {0, 0, 0, 0};
    for (size_t i = 0; i < 8; i++)
        tiles[(8 * i + ty) * 16 + tx] = load16(&queries[(64 * by + ty + 8 * i) * 16 + tx]);
    for (size_t t = 0; t < n / 64; t++) {
        for (size_t k = 0; k < 8; k++)
            tiles[1024 + (8 * k + ty) * 16 + tx] = load16(&keys[(64 * t + 8 * k + ty) * 16 + tx]);
        for (size_t k = 0; k < 8; k++)
            tiles[2048 + (8 * k + ty) * 16 + tx] = load16(&values[(64 * t + 8 * k + ty) * 16 + tx]);
        __syncthreads();
        for (size_t k = 0; k < 64; k++)
            sum.x += tiles[(8 * (k % 8) + ty) * 16 + tx].x * tiles[1024 + k * 16 + tx].y +
                     tiles[2048 + k * 16 + tx].z;
        __syncthreads();
    }
    for (size_t i = 0; i < 8; i++)
        store16((float4 *)m.d + (64 * by + ty + 8 * i) * 16 + tx, sum);
}

static struct twin_shape shape_transpose(size_t n)
{
    return {n, n, {n * n, n * n}};
}

static struct twin_shape shape_gemm(size_t n)
{
    return {n, n, {n * n, n * n, n * n}};
}

static struct twin_shape shape_spmv(size_t n)
{
    return {n, 1, {n + 1, n * 32, n * 32, n, n}};
}

static struct twin_shape shape_histogram(size_t n)
{
    return {n, 1, {n, 256}};
}

static struct twin_shape shape_stencil3d(size_t n)
{
    return {n, n, {(n + 2) * n * n, (n + 2) * n * n}};
}

static struct twin_shape shape_embedding(size_t n)
{
    return {32, 65536, {n * 128, 65536, (size_t)65536 * 128}};
}

static struct twin_shape shape_attention(size_t n)
{
    return {16, n / 8, {n * 16, n * 16, n * 16, n * 16}};
}

const struct twin twins_others[] = {
    {"transpose", twin_transpose, 4096, 32, 8, 0, 4, shape_transpose},
    {"gemm", twin_gemm, 1024, 32, 8, 0, 4, shape_gemm},
    {"gemm_tiled", twin_gemm_tiled, 1024, 32, 32, 8192, 4, shape_gemm},
    {"spmv", twin_spmv, 262144, 256, 1, 0, 4, shape_spmv},
    {"histogram", twin_histogram, 4194304, 256, 1, 0, 4, shape_histogram},
    {"stencil3d", twin_stencil3d, 256, 32, 8, 0, 4, shape_stencil3d},
    {"embedding", twin_embedding, 1000000, 32, 8, 0, 4, shape_embedding},
    {"attention", twin_attention, 4096, 16, 8, 49152, 16, shape_attention},
    {},
};
