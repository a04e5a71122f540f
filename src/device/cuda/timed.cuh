/* A load that is timed by itself. */
#ifndef GPUMEMTOPO_DEVICE_CUDA_TIMED_CUH
#define GPUMEMTOPO_DEVICE_CUDA_TIMED_CUH

#include "kernels.h"

/* The second clock read depends on a comparison with the loaded value, which is true for every
 * value that is ever stored. The assembler turns this into: clock, load, comparison, clock, select.
 * Instructions issue in order, so the comparison, which waits for the load, delays the second read.
 * A test checks that the machine code has exactly this sequence. */
#define TIMED(load, low)                                                                           \
    "{\n.reg .pred q;\n.reg .u32 lo, a, b, c;\n" READ_CLOCK("%0") load                             \
        "\n" low "\n" WHEN_ARRIVED("lo") READ_CLOCK("%1") "}"

/* All 64 bits are used. If only the low half were, the assembler would read the first clock through
 * the uniform data path (S2UR), which takes a different time than the second (CS2R). Before Volta
 * one read gives 32 bits, and 64 would take three reads, one after the other; and the assembler
 * would read the clock without waiting and select afterwards. There, a store to shared memory waits
 * for the value. */
#if __CUDA_ARCH__ >= 700
typedef uint64_t clock_value;
#define CLOCK_LETTER "l"
#define READ_CLOCK(to) "mov.u64 " to ", %%clock64;\n"
#define WHEN_ARRIVED(value) "setp.ne.u32 q, " value ", 0xffffffff;\n@q "
#else
typedef uint32_t clock_value;
#define CLOCK_LETTER "r"
#define READ_CLOCK(to) "mov.u32 " to ", %%clock;\n"
#define WHEN_ARRIVED(value) ".shared .u32 arrived;\nst.volatile.shared.u32 [arrived], " value ";\n"
#endif

static __device__ __forceinline__ uint32_t cycles_between(clock_value start, clock_value end)
{
    const clock_value cycles = end - start;
    return cycles < UINT32_MAX ? (uint32_t)cycles : UINT32_MAX;
}

/* An output that shares no register with an input. CUDA 11 has no word for that: each operand has a
 * register of PTX of its own anyway. */
#if __CUDACC_VER_MAJOR__ >= 12
#define WRITTEN_EARLY "=&"
#else
#define WRITTEN_EARLY "="
#endif

#define DEFINE_PATH(name, type, letter, instruction, low)                                          \
    struct name {                                                                                  \
        typedef type address;                                                                      \
        static __device__ __forceinline__ type load(type at, uint64_t texture)                     \
        {                                                                                          \
            type value;                                                                            \
            uint32_t none0 = 0, none1 = 0; /* operands are numbered as in timed() */               \
            asm volatile("{\n.reg .u32 a, b, c;\n" instruction "\n}"                               \
                         : "+r"(none0), "+r"(none1), WRITTEN_EARLY letter(value)                   \
                         : letter(at), "l"(texture)                                                \
                         : "memory");                                                              \
            return value;                                                                          \
        }                                                                                          \
        static __device__ __forceinline__ uint32_t timed(type at, uint64_t texture, type *value)   \
        {                                                                                          \
            clock_value start, end = 0;                                                            \
            asm volatile(TIMED(instruction, low)                                                   \
                         : WRITTEN_EARLY CLOCK_LETTER(start), "+" CLOCK_LETTER(end),               \
                           WRITTEN_EARLY letter(*value)                                            \
                         : letter(at), "l"(texture)                                                \
                         : "memory");                                                              \
            return cycles_between(start, end);                                                     \
        }                                                                                          \
    };

#define LOW_OF_64 "cvt.u32.u64 lo, %2;"
#define LOW_OF_32 "mov.u32 lo, %2;"
DEFINE_PATH(path_global_cg, uint64_t, "l", "ld.global.cg.u64 %2, [%3];", LOW_OF_64)

#endif
