/* Twins of the kernels of PolyBench/GPU. */
#include "twin.cuh"

static __global__ void twin_2dconv(struct twin_arrays m, size_t n)
{
    size_t x = grid_x(), y = grid_y();
    if (x < 1 || y < 1 || x >= n - 1 || y >= n - 1)
        return;
    float sum = 0;
#pragma unroll
    for (int i = -1; i <= 1; i++)
#pragma unroll
        for (int j = -1; j <= 1; j++)
            sum += load(&m.a[(y + i) * n + x + j]);
    store(&m.b[y * n + x], sum);
}

static __global__ void twin_2mm(struct twin_arrays m, size_t n)
{
    size_t x = grid_x(), y = grid_y();
    if (x >= n || y >= n)
        return;
    float sum = 0;
    for (size_t k = 0; k < n; k++) {
        float left = load(&m.a[y * n + k]);
        sum += left * load(&m.b[k * n + x]);
        store(&m.c[y * n + x], sum);
    }
}

static __global__ void twin_3dconv(struct twin_arrays m, size_t n)
{
    size_t x = grid_x(), y = grid_y(), plane = n * n;
    if (x < 1 || y < 1 || x >= n - 1 || y >= n - 1)
        return;
    for (size_t k = 0; k < n; k++) {
        const float *at = &m.a[k * plane + y * n + x];
        float sum = load(at - n - 1);
        sum += load(at + 2 * plane - n - 1);
        sum += load(at - 1);
        sum += load(at + 2 * plane - 1);
        sum += load(at + n - 1);
        sum += load(at + 2 * plane + n - 1);
        sum += load(at + plane - n);
        sum += load(at + plane);
        sum += load(at + plane + n);
        sum += load(at - n + 1);
        sum += load(at + 2 * plane + n + 1);
        store(&m.b[(k + 1) * plane + y * n + x], sum);
    }
}

/* A row of A per thread: atax1, mvt1. */
static __global__ void twin_rows(struct twin_arrays m, size_t n)
{
    size_t x = grid_x();
    if (x >= n)
        return;
    float sum = load(&m.c[x]);
    for (size_t k = 0; k < n; k++) {
        float left = load(&m.a[x * n + k]);
        sum += left * load(&m.b[k]);
        store(&m.c[x], sum);
    }
}

/* A column of A per thread: atax2, mvt2. */
static __global__ void twin_columns(struct twin_arrays m, size_t n)
{
    size_t x = grid_x();
    if (x >= n)
        return;
    float sum = load(&m.c[x]);
    for (size_t k = 0; k < n; k++) {
        float left = load(&m.a[k * n + x]);
        sum += left * load(&m.b[k]);
        store(&m.c[x], sum);
    }
}

static __global__ void twin_bicg1(struct twin_arrays m, size_t n)
{
    size_t x = grid_x();
    if (x >= n)
        return;
    float sum = 0;
    store(&m.c[x], sum);
    for (size_t k = 0; k < n; k++) {
        float left = load(&m.a[k * n + x]);
        sum += left * load(&m.b[k]);
        store(&m.c[x], sum);
    }
}

static __global__ void twin_bicg2(struct twin_arrays m, size_t n)
{
    size_t x = grid_x();
    if (x >= n)
        return;
    float sum = 0;
    store(&m.c[x], sum);
    for (size_t k = 0; k < n; k++) {
        float left = load(&m.a[x * n + k]);
        sum += left * load(&m.b[k]);
        store(&m.c[x], sum);
    }
}

static __global__ void twin_corr(struct twin_arrays m, size_t n)
{
    size_t x = grid_x();
    if (x >= n)
        return;
    store(&m.b[x * n + x], 1);
    for (size_t t = 0; t < n; t++) {
        size_t other = x + t + 1;
        if (other >= n)
            continue;
        float sum = 0;
        store(&m.b[x * n + other], sum);
        for (size_t k = 0; k < n; k++) {
            float left = load(&m.a[k * n + x]);
            sum += left * load(&m.a[k * n + other]);
            store(&m.b[x * n + other], sum);
        }
        store(&m.b[other * n + x], sum);
    }
}

static __global__ void twin_covar(struct twin_arrays m, size_t n)
{
    size_t x = grid_x();
    if (x >= n)
        return;
    for (size_t t = 0; t < n; t++) {
        size_t other = x + t;
        if (other >= n)
            continue;
        float sum = 0;
        store(&m.b[x * n + other], sum);
        for (size_t k = 0; k < n; k++) {
            float left = load(&m.a[k * n + x]);
            sum += left * load(&m.a[k * n + other]);
            store(&m.b[x * n + other], sum);
        }
        store(&m.b[other * n + x], sum);
    }
}

static __global__ void twin_fdtd1(struct twin_arrays m, size_t n)
{
    size_t x = grid_x(), y = grid_y(), at = y * n + x;
    if (x >= n || y >= n)
        return;
    if (y == 0) {
        store(&m.a[at], load(m.c));
        return;
    }
    float sum = load(&m.a[at]);
    sum -= load(&m.b[at]);
    sum += load(&m.b[at - n]);
    store(&m.a[at], sum);
}

static __global__ void twin_fdtd2(struct twin_arrays m, size_t n)
{
    size_t x = grid_x(), y = grid_y(), at = y * n + x;
    if (x < 1 || x >= n || y >= n)
        return;
    float sum = load(&m.a[at]);
    sum -= load(&m.b[at]);
    sum += load(&m.b[at - 1]);
    store(&m.a[at], sum);
}

static __global__ void twin_fdtd3(struct twin_arrays m, size_t n)
{
    size_t x = grid_x(), y = grid_y(), at = y * n + x;
    if (x >= n - 1 || y >= n - 1)
        return;
    float sum = load(&m.a[at]);
    sum -= load(&m.b[at + 1]);
    sum += load(&m.b[at]);
    sum -= load(&m.c[at + n]);
    sum += load(&m.c[at]);
    store(&m.a[at], sum);
}

static __global__ void twin_gesummv(struct twin_arrays m, size_t n)
{
    size_t x = grid_x();
    if (x >= n)
        return;
    for (size_t k = 0; k < n; k++) {
        float sum = load(&m.a[x * n + k]);
        sum *= load(&m.c[k]);
        sum += load(&m.d[x]);
        store(&m.d[x], sum);
        sum = load(&m.b[x * n + k]);
        sum *= load(&m.c[k]);
        sum += load(&m.e[x]);
        store(&m.e[x], sum);
    }
    store(&m.e[x], load(&m.d[x]));
}

static __global__ void twin_gramschm(struct twin_arrays m, size_t n)
{
    size_t x = grid_x();
    if (x >= n)
        return;
    for (size_t t = 0; t < x; t++) {
        float sum = 0;
        for (size_t k = 0; k < n; k++) {
            float left = load(&m.b[k * n + t]);
            sum += left * load(&m.a[k * n + x]);
            store(&m.c[t * n + x], sum);
        }
        for (size_t k = 0; k < n; k++) {
            float value = load(&m.a[k * n + x]);
            float left = load(&m.b[k * n + t]);
            value -= left * load(&m.c[t * n + x]);
            store(&m.a[k * n + x], value);
        }
    }
}

static __global__ void twin_syr2k(struct twin_arrays m, size_t n)
{
    size_t x = grid_x(), y = grid_y();
    if (x >= n || y >= n)
        return;
    float sum = load(&m.c[y * n + x]);
    for (size_t k = 0; k < n; k++) {
        float left = load(&m.a[y * n + k]);
        sum += left * load(&m.b[x * n + k]);
        left = load(&m.b[y * n + k]);
        sum += left * load(&m.a[x * n + k]);
        store(&m.c[y * n + x], sum);
    }
}

static __global__ void twin_syrk(struct twin_arrays m, size_t n)
{
    size_t x = grid_x(), y = grid_y();
    if (x >= n || y >= n)
        return;
    float sum = load(&m.b[y * n + x]);
    store(&m.b[y * n + x], sum);
    for (size_t k = 0; k < n; k++) {
        float left = load(&m.a[y * n + k]);
        sum += left * load(&m.a[x * n + k]);
        store(&m.b[y * n + x], sum);
    }
}

static struct twin_shape shape_square2(size_t n)
{
    return {n, n, {n * n, n * n}};
}

static struct twin_shape shape_square3(size_t n)
{
    return {n, n, {n * n, n * n, n * n}};
}

static struct twin_shape shape_cube(size_t n)
{
    return {n, n, {(n + 2) * n * n, (n + 2) * n * n}};
}

static struct twin_shape shape_vector(size_t n)
{
    return {n, 1, {n * n, n, n}};
}

static struct twin_shape shape_triangle(size_t n)
{
    return {n, 1, {n * n, n * n}};
}

static struct twin_shape shape_fdtd1(size_t n)
{
    return {n, n, {n * n, n * n, n}};
}

static struct twin_shape shape_gesummv(size_t n)
{
    return {n, 1, {n * n, n * n, n, n, n}};
}

static struct twin_shape shape_gramschm(size_t n)
{
    return {n, 1, {n * n, n * n, n * n}};
}

const struct twin twins_polybench[] = {
    {"2dconv", twin_2dconv, 4096, 32, 8, 0, 4, shape_square2},
    {"2mm", twin_2mm, 384, 32, 8, 0, 4, shape_square3},
    {"3dconv", twin_3dconv, 256, 32, 8, 0, 4, shape_cube},
    {"atax1", twin_rows, 4096, 256, 1, 0, 4, shape_vector},
    {"atax2", twin_columns, 4096, 256, 1, 0, 4, shape_vector},
    {"bicg1", twin_bicg1, 4096, 256, 1, 0, 4, shape_vector},
    {"bicg2", twin_bicg2, 4096, 256, 1, 0, 4, shape_vector},
    {"corr", twin_corr, 256, 32, 1, 0, 4, shape_triangle},
    {"covar", twin_covar, 256, 32, 1, 0, 4, shape_triangle},
    {"fdtd1", twin_fdtd1, 2048, 32, 8, 0, 4, shape_fdtd1},
    {"fdtd2", twin_fdtd2, 2048, 32, 8, 0, 4, shape_square2},
    {"fdtd3", twin_fdtd3, 2048, 32, 8, 0, 4, shape_square3},
    {"gesummv", twin_gesummv, 4096, 256, 1, 0, 4, shape_gesummv},
    {"gramschm", twin_gramschm, 128, 256, 1, 0, 4, shape_gramschm},
    {"mvt1", twin_rows, 4096, 256, 1, 0, 4, shape_vector},
    {"mvt2", twin_columns, 4096, 256, 1, 0, 4, shape_vector},
    {"syr2k", twin_syr2k, 256, 32, 8, 0, 4, shape_square3},
    {"syrk", twin_syrk, 256, 32, 8, 0, 4, shape_square2},
    {},
};
