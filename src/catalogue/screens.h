/* The paths of the screen for wrong results, one row each.
 *
 * SCREEN(ID, name, words, host, warps, oldest, newest). host: the host knows the answer, by the
 * rules of integers or of IEEE 754; otherwise the answer of most warps of the GPU counts, and the
 * judge compares it with that of other GPUs. warps: of the block that fills an SM. oldest, newest:
 * the compute capabilities that have it, times 10; newest 0: all newer ones. */
#ifndef GPUMEMTOPO_CATALOGUE_SCREENS_H
#define GPUMEMTOPO_CATALOGUE_SCREENS_H

#define SCREENS(SCREEN)                                                                            \
    SCREEN(INT, "int", "integer units", true, 32, 0, 0)                                            \
    SCREEN(FP32, "fp32", "FP32 units", true, 32, 0, 0)                                             \
    SCREEN(FP64, "fp64", "FP64 units", true, 32, 0, 0)                                             \
    SCREEN(HALF, "half", "FP16 and BF16 units", false, 32, 60, 0)                                  \
    SCREEN(SPECIAL, "special", "special functions", false, 32, 0, 0)                               \
    SCREEN(CONVERT, "convert", "conversions", false, 32, 0, 0)                                     \
    SCREEN(LANES, "lanes", "exchanges between lanes", false, 32, 0, 0)                             \
    SCREEN(MMA_F16, "mma_f16", "tensor units (FP16)", false, 16, 80, 0)                            \
    SCREEN(MMA_BF16, "mma_bf16", "tensor units (BF16)", false, 16, 80, 0)                          \
    SCREEN(MMA_TF32, "mma_tf32", "tensor units (TF32)", false, 16, 80, 0)                          \
    SCREEN(MMA_INT8, "mma_int8", "tensor units (INT8)", false, 16, 80, 0)                          \
    SCREEN(MMA_FP64, "mma_fp64", "tensor units (FP64)", false, 16, 80, 0)                          \
    SCREEN(WGMMA_F16, "wgmma_f16", "tensor units (FP16, wgmma)", false, 8, 90, 90)                 \
    SCREEN(WGMMA_BF16, "wgmma_bf16", "tensor units (BF16, wgmma)", false, 8, 90, 90)               \
    SCREEN(WGMMA_FP8, "wgmma_fp8", "tensor units (FP8, wgmma)", false, 8, 90, 90)

#endif
