/* The table of instructions. */
#include "device/instruction.h"

#define MMA(shape, types, a, b)                                                                    \
    "mma.sync.aligned." shape ".row.col." types " {$r0,$r1,$r2,$r3},{" a "},{" b                   \
    "},{$r0,$r1,$r2,$r3};"
#define FOUR "$a0,$a1,$a2,$a3"
#define TWO "$b0,$b1"

/* One row per line. */
/* clang-format off */
const struct instruction instruction_table[] = {
    {"fp16_add", INSTRUCTION_FP16, 32, 0, 1, 75, 64, 1, "add.rn.f16x2 $r0,$r0,$a0;"},
    {"fp16_mul", INSTRUCTION_FP16, 32, 0, 1, 75, 64, 1, "mul.rn.f16x2 $r0,$r0,$a0;"},
    {"fp16_fma", INSTRUCTION_FP16, 32, 0, 1, 75, 64, 1, "fma.rn.f16x2 $r0,$r0,$a0,$b0;"},
    {"bf16_add", INSTRUCTION_FP16, 32, 0, 1, 90, 64, 1, "add.rn.bf16x2 $r0,$r0,$a0;"},
    {"bf16_mul", INSTRUCTION_FP16, 32, 0, 1, 90, 64, 1, "mul.rn.bf16x2 $r0,$r0,$a0;"},
    {"bf16_fma", INSTRUCTION_FP16, 32, 0, 1, 80, 64, 1, "fma.rn.bf16x2 $r0,$r0,$a0,$b0;"},
    {"fp32_add", INSTRUCTION_FP32, 32, 0, 1, 75, 32, 1, "add.rn.f32 $r0,$r0,$a0;"},
    {"fp32_mul", INSTRUCTION_FP32, 32, 0, 1, 75, 32, 1, "mul.rn.f32 $r0,$r0,$a0;"},
    {"fp32_fma", INSTRUCTION_FP32, 32, 0, 1, 75, 32, 1, "fma.rn.f32 $r0,$r0,$a0,$b0;"},
    {"fp64_add", INSTRUCTION_FP64, 64, 0, 1, 75, 32, 1, "add.rn.f64 $r0,$r0,$a0;"},
    {"fp64_mul", INSTRUCTION_FP64, 64, 0, 1, 75, 32, 1, "mul.rn.f64 $r0,$r0,$a0;"},
    {"fp64_fma", INSTRUCTION_FP64, 64, 0, 1, 75, 32, 1, "fma.rn.f64 $r0,$r0,$a0,$b0;"},
    {"int_add", INSTRUCTION_INT, 32, 0, 1, 75, 32, 1, "add.s32 $r0,$r0,$a0;"},
    {"int_mul", INSTRUCTION_INT, 32, 0, 1, 75, 32, 1, "mul.lo.s32 $r0,$r0,$a0;"},
    {"int_mad", INSTRUCTION_INT, 32, 0, 1, 75, 32, 1, "mad.lo.s32 $r0,$r0,$a0,$b0;"},
    {"int_mul_high", INSTRUCTION_INT, 32, 0, 1, 75, 32, 1, "mul.hi.s32 $r0,$r0,$a0;"},
    {"int_shift", INSTRUCTION_INT, 32, 0, 1, 75, 32, 1, "shl.b32 $r0,$r0,$a0;"},
    {"int_funnel", INSTRUCTION_INT, 32, 0, 1, 75, 32, 1, "shf.l.wrap.b32 $r0,$r0,$a0,$b0;"},
    {"int_popc", INSTRUCTION_INT, 32, 0, 1, 75, 32, 1, "popc.b32 $r0,$r0;"},
    {"int_reverse", INSTRUCTION_INT, 32, 0, 1, 75, 32, 1, "brev.b32 $r0,$r0;"},
    {"int_dp4a", INSTRUCTION_INT, 32, 0, 1, 75, 128, 1, "dp4a.s32.s32 $r0,$r0,$a0,$b0;"},
    {"rsqrt", INSTRUCTION_SPECIAL, 32, 0, 1, 75, 32, 1, "rsqrt.approx.ftz.f32 $r0,$r0;"},
    {"sqrt", INSTRUCTION_SPECIAL, 32, 0, 1, 75, 32, 1, "sqrt.approx.ftz.f32 $r0,$r0;"},
    {"exp2", INSTRUCTION_SPECIAL, 32, 0, 1, 75, 32, 1, "ex2.approx.ftz.f32 $r0,$r0;"},
    {"log2", INSTRUCTION_SPECIAL, 32, 0, 1, 75, 32, 1, "lg2.approx.ftz.f32 $r0,$r0;"},
    {"sin", INSTRUCTION_SPECIAL, 32, 0, 1, 75, 32, 2, "sin.approx.ftz.f32 $r0,$r0;"},
    {"tanh", INSTRUCTION_SPECIAL, 32, 0, 1, 75, 32, 1, "tanh.approx.f32 $r0,$r0;"},
    {"fp32_int_fp32", INSTRUCTION_CONVERT, 32, 0, 1, 75, 64, 2, "cvt.rzi.s32.f32 $i,$r0; cvt.rn.f32.s32 $r0,$i;"},
    {"fp32_fp64_fp32", INSTRUCTION_CONVERT, 32, 0, 1, 75, 64, 2, "cvt.f64.f32 $d,$r0; cvt.rn.f32.f64 $r0,$d;"},
    {"fp32_fp16_fp32", INSTRUCTION_CONVERT, 32, 0, 1, 75, 64, 2, "cvt.rn.f16.f32 $h,$r0; cvt.f32.f16 $r0,$h;"},
    {"shuffle", INSTRUCTION_WARP, 32, 0, 1, 75, 32, 1, "shfl.sync.bfly.b32 $r0,$r0,$a0,0x1f,0xffffffff;"},
    {"vote", INSTRUCTION_WARP, 32, 0, 1, 75, 32, 2, "setp.ne.u32 $p,$r0,$a0; vote.sync.ballot.b32 $r0,$p,0xffffffff;"},
    {"match", INSTRUCTION_WARP, 32, 0, 1, 75, 32, 1, "match.any.sync.b32 $r0,$r0,0xffffffff;"},
    {"mma_fp16", INSTRUCTION_TENSOR, 32, 0, 4, 80, 2048, 1, MMA("m16n8k16", "f32.f16.f16.f32", FOUR, TWO)},
    {"mma_bf16", INSTRUCTION_TENSOR, 32, 0, 4, 80, 2048, 1, MMA("m16n8k16", "f32.bf16.bf16.f32", FOUR, TWO)},
    {"mma_tf32", INSTRUCTION_TENSOR, 32, 0, 4, 80, 1024, 1, MMA("m16n8k8", "f32.tf32.tf32.f32", FOUR, TWO)},
    {"mma_int8", INSTRUCTION_TENSOR, 32, 0, 4, 80, 4096, 1, MMA("m16n8k32", "s32.s8.s8.s32", FOUR, TWO)},
    {"mma_fp8", INSTRUCTION_TENSOR, 32, 0, 4, 89, 4096, 1, MMA("m16n8k32", "f32.e4m3.e4m3.f32", FOUR, TWO)},
    {"mma_fp64", INSTRUCTION_TENSOR, 64, 0, 2, 80, 256, 1, "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {$r0,$r1},{$a0},{$b0},{$r0,$r1};"},
    {"shared_add", INSTRUCTION_ATOMIC, 32, INSTRUCTION_SHARED_OWN, 1, 75, 32, 1, "atom.shared.add.u32 $r0,[$r0],$z;"},
    {"shared_add_same", INSTRUCTION_ATOMIC, 32, INSTRUCTION_SHARED_WARP, 1, 75, 32, 1, "atom.shared.add.u32 $r0,[$r0],$z;"},
    {"shared_cas", INSTRUCTION_ATOMIC, 32, INSTRUCTION_SHARED_OWN, 1, 75, 32, 1, "atom.shared.cas.b32 $r0,[$r0],$z,$z;"},
    {"global_add", INSTRUCTION_ATOMIC, 64, INSTRUCTION_GLOBAL_OWN, 1, 75, 32, 1, "atom.global.add.u64 $r0,[$r0],$z;"},
    {"global_add_same", INSTRUCTION_ATOMIC, 64, INSTRUCTION_GLOBAL_WARP, 1, 75, 32, 1, "atom.global.add.u64 $r0,[$r0],$z;"},
    {"global_add_all", INSTRUCTION_ATOMIC, 64, INSTRUCTION_GLOBAL_ALL, 1, 75, 32, 1, "atom.global.add.u64 $r0,[$r0],$z;"},
    {"global_cas", INSTRUCTION_ATOMIC, 64, INSTRUCTION_GLOBAL_OWN, 1, 75, 32, 3, "atom.global.cas.b64 $r0,[$r0],$z,$z;"},
};
/* clang-format on */

const size_t instruction_count = sizeof instruction_table / sizeof *instruction_table;
_Static_assert(sizeof instruction_table / sizeof *instruction_table <= INSTRUCTIONS_MAX, "room");
