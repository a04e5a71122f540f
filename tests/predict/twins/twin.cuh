/* CUDA twins of the kernels of src/predict/kernel_table.c: the same loads and stores, by a GPU. */
#ifndef GPUMEMTOPO_TWIN_CUH
#define GPUMEMTOPO_TWIN_CUH

#include <cstdint>

enum { TWIN_ARRAYS_MAX = 8 };

/* The arrays A, B, ... of the table's row, all zero; 4 bytes per element, in attention 16. */
struct twin_arrays {
    float *a, *b, *c, *d, *e, *f;
};

using twin_kernel = void(struct twin_arrays m, size_t n);

/* Threads of the grid and elements of each array (0: none), for size n. */
struct twin_shape {
    size_t threads_x, threads_y;
    size_t elements[TWIN_ARRAYS_MAX];
};

struct twin {
    const char *name;
    twin_kernel *kernel;
    size_t size;
    unsigned block_x, block_y, shared_bytes, element_bytes;
    struct twin_shape (*shape)(size_t n);
};

extern const struct twin twins_polybench[], twins_rodinia[], twins_others[]; /* name NULL: end */

/* Plain loads and stores that the compiler neither drops, nor merges, nor reorders. Whether L1
 * holds loads is up to ptxas (-dlcm). */
static __device__ __forceinline__ float load(const float *at)
{
    float value;
    asm volatile("ld.global.f32 %0, [%1];" : "=f"(value) : "l"(at) : "memory");
    return value;
}

static __device__ __forceinline__ void store(float *at, float value)
{
    asm volatile("st.global.f32 [%0], %1;" ::"l"(at), "f"(value) : "memory");
}

static __device__ __forceinline__ float4 load16(const float4 *at)
{
    float4 v;
    asm volatile("ld.global.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                 : "l"(at)
                 : "memory");
    return v;
}

static __device__ __forceinline__ void store16(float4 *at, float4 v)
{
    asm volatile("st.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(at), "f"(v.x), "f"(v.y), "f"(v.z),
                 "f"(v.w)
                 : "memory");
}

static __device__ __forceinline__ size_t grid_x()
{
    return (size_t)blockIdx.x * blockDim.x + threadIdx.x;
}

static __device__ __forceinline__ size_t grid_y()
{
    return (size_t)blockIdx.y * blockDim.y + threadIdx.y;
}

/* The pseudo-random index of kernel_next.c; array: 0 for A. */
static __device__ __forceinline__ uint64_t drawn(uint64_t key, uint64_t array)
{
    uint64_t x = key + (array << 56);
    x = (x ^ (x >> 31)) * 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9u;
    return x ^ (x >> 32);
}

#endif
