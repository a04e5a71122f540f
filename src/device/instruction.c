/* The table of instructions. */
#include "device/instruction.h"

/* What rows have in common: bits, place, registers, capability, operations, machine. A multiply-add
 * is two operations, as everywhere (GLOSSARY.md). */
#define FP16(capability, each) 32, 0, 1, capability, 64 * (each), 1
#define HALF(each) 16, 0, 1, 75, 32 * (each), 1
#define FP32(each) 32, 0, 1, 75, 32 * (each), 1
#define FP64(each) 64, 0, 1, 75, 32 * (each), 1
#define INT(operations) 32, 0, 1, 75, operations, 1
#define SPECIAL(machine) 32, 0, 1, 75, 32, machine
#define CONVERT 32, 0, 1, 75, 64, 2
#define WARP(machine) 32, 0, 1, 75, 32, machine
#define TENSOR(bits, registers, capability, operations)                                            \
    bits, 0, registers, capability, operations, 1
#define SHARED(lanes, machine) 32, INSTRUCTION_SHARED_##lanes, 1, 75, 32, machine
#define GLOBAL(lanes, machine) 64, INSTRUCTION_GLOBAL_##lanes, 1, 75, 32, machine

#define MMA(shape, types)                                                                          \
    "mma.sync.aligned." shape ".row.col." types                                                    \
    " {$r0,$r1,$r2,$r3},{$a0,$a1,$a2,$a3},{$b0,$b1},{$r0,$r1,$r2,$r3};"
#define MMA_FP64 "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {$r0,$r1},{$a0},{$b0},{$r0,$r1};"
#define BALLOT "setp.ne.u32 $p,$r0,$a0; vote.sync.ballot.b32 $r0,$p,0xffffffff;"

/* Multiply-adds of 16 and 64 bits read two registers, not three: with three, the ports of the
 * register file are the limit (on an H200 351 instead of 489, and 118 instead of 128 operations).
 */

/* One row per line. */
/* clang-format off */
const struct instruction instruction_table[] = {
    {"fp16_add", FP16(75, 1), "add.rn.f16x2 $r0,$r0,$a0;"},
    {"fp16_mul", FP16(75, 1), "mul.rn.f16x2 $r0,$r0,$a0;"},
    {"fp16_fma", FP16(75, 2), "fma.rn.f16x2 $r0,$r0,$a0,$r0;"},
    {"bf16_add", FP16(90, 1), "add.rn.bf16x2 $r0,$r0,$a0;"},
    {"bf16_mul", FP16(90, 1), "mul.rn.bf16x2 $r0,$r0,$a0;"},
    {"bf16_fma", FP16(80, 2), "fma.rn.bf16x2 $r0,$r0,$a0,$r0;"},
    {"fp32_add", FP32(1), "add.rn.f32 $r0,$r0,$a0;"},
    {"fp32_mul", FP32(1), "mul.rn.f32 $r0,$r0,$a0;"},
    {"fp32_fma", FP32(2), "fma.rn.f32 $r0,$r0,$a0,$b0;"},
    {"fp64_add", FP64(1), "add.rn.f64 $r0,$r0,$a0;"},
    {"fp64_mul", FP64(1), "mul.rn.f64 $r0,$r0,$a0;"},
    {"fp64_fma", FP64(2), "fma.rn.f64 $r0,$r0,$a0,$r0;"},
    {"int_add", INT(32), "add.s32 $r0,$r0,$a0;"},
    {"int_mul", INT(32), "mul.lo.s32 $r0,$r0,$a0;"},
    {"int_mad", INT(64), "mad.lo.s32 $r0,$r0,$a0,$b0;"},
    {"int_mul_high", INT(32), "mul.hi.s32 $r0,$r0,$a0;"},
    {"int_shift", INT(32), "shl.b32 $r0,$r0,$a0;"},
    {"int_funnel", INT(32), "shf.l.wrap.b32 $r0,$r0,$a0,$b0;"},
    {"int_popc", INT(32), "popc.b32 $r0,$r0;"},
    {"int_reverse", INT(32), "brev.b32 $r0,$r0;"},
    {"int_dp4a", INT(256), "dp4a.s32.s32 $r0,$r0,$a0,$b0;"},
    {"rsqrt", SPECIAL(1), "rsqrt.approx.ftz.f32 $r0,$r0;"},
    {"sqrt", SPECIAL(1), "sqrt.approx.ftz.f32 $r0,$r0;"},
    {"exp2", SPECIAL(1), "ex2.approx.ftz.f32 $r0,$r0;"},
    {"log2", SPECIAL(1), "lg2.approx.ftz.f32 $r0,$r0;"},
    {"sin", SPECIAL(2), "sin.approx.ftz.f32 $r0,$r0;"},
    {"tanh", SPECIAL(1), "tanh.approx.f32 $r0,$r0;"},
    {"fp32_int_fp32", CONVERT, "cvt.rzi.s32.f32 $i,$r0; cvt.rn.f32.s32 $r0,$i;"},
    {"fp32_fp64_fp32", CONVERT, "cvt.f64.f32 $d,$r0; cvt.rn.f32.f64 $r0,$d;"},
    {"fp32_fp16_fp32", CONVERT, "cvt.rn.f16.f32 $h,$r0; cvt.f32.f16 $r0,$h;"},
    {"shuffle", WARP(1), "shfl.sync.bfly.b32 $r0,$r0,$a0,0x1f,0xffffffff;"},
    {"vote", WARP(2), BALLOT},
    {"match", WARP(1), "match.any.sync.b32 $r0,$r0,0xffffffff;"},
    {"mma_fp16", TENSOR(32, 4, 80, 4096), MMA("m16n8k16", "f32.f16.f16.f32")},
    {"mma_bf16", TENSOR(32, 4, 80, 4096), MMA("m16n8k16", "f32.bf16.bf16.f32")},
    {"mma_tf32", TENSOR(32, 4, 80, 2048), MMA("m16n8k8", "f32.tf32.tf32.f32")},
    {"mma_int8", TENSOR(32, 4, 80, 8192), MMA("m16n8k32", "s32.s8.s8.s32")},
    {"mma_fp8", TENSOR(32, 4, 89, 8192), MMA("m16n8k32", "f32.e4m3.e4m3.f32")},
    {"mma_fp64", TENSOR(64, 2, 80, 512), MMA_FP64},
    {"mma_fp64_wide", TENSOR(64, 4, 90, 2048), MMA("m16n8k8", "f64.f64.f64.f64")},
    {"shared_add", SHARED(OWN, 1), "atom.shared.add.u32 $r0,[$r0],$z;"},
    {"shared_add_same", SHARED(WARP, 1), "atom.shared.add.u32 $r0,[$r0],$z;"},
    {"shared_cas", SHARED(OWN, 1), "atom.shared.cas.b32 $r0,[$r0],$z,$z;"},
    {"global_add", GLOBAL(OWN, 1), "atom.global.add.u64 $r0,[$r0],$z;"},
    {"global_add_same", GLOBAL(WARP, 1), "atom.global.add.u64 $r0,[$r0],$z;"},
    {"global_add_all", GLOBAL(ALL, 1), "atom.global.add.u64 $r0,[$r0],$z;"},
    {"global_cas", GLOBAL(OWN, 3), "atom.global.cas.b64 $r0,[$r0],$z,$z;"},
    {"fp16_scalar_add", HALF(1), "add.rn.f16 $r0,$r0,$a0;"},
    {"fp16_scalar_mul", HALF(1), "mul.rn.f16 $r0,$r0,$a0;"},
    {"fp16_scalar_fma", HALF(2), "fma.rn.f16 $r0,$r0,$a0,$b0;"},
};
/* clang-format on */

const size_t instruction_count = sizeof instruction_table / sizeof *instruction_table;
_Static_assert(sizeof instruction_table / sizeof *instruction_table <= INSTRUCTIONS_MAX, "room");
