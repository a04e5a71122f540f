/* The paths of the screen for wrong results, one row each.
 *
 * SCREEN(ID, name, words, host). host: the host knows the answer, by the rules of integers or of
 * IEEE 754; otherwise the answer of most warps of the GPU counts, and the judge compares it with
 * that of other GPUs. */
#ifndef GPUMEMTOPO_CATALOGUE_SCREENS_H
#define GPUMEMTOPO_CATALOGUE_SCREENS_H

#define SCREENS(SCREEN)                                                                            \
    SCREEN(INT, "int", "integer units", true)                                                      \
    SCREEN(FP32, "fp32", "FP32 units", true)                                                       \
    SCREEN(FP64, "fp64", "FP64 units", true)                                                       \
    SCREEN(HALF, "half", "FP16 and BF16 units", false)                                             \
    SCREEN(SPECIAL, "special", "special functions", false)                                         \
    SCREEN(CONVERT, "convert", "conversions", false)                                               \
    SCREEN(LANES, "lanes", "exchanges between lanes", false)                                       \
    SCREEN(MMA_F16, "mma_f16", "tensor units (FP16)", false)                                       \
    SCREEN(MMA_BF16, "mma_bf16", "tensor units (BF16)", false)                                     \
    SCREEN(MMA_TF32, "mma_tf32", "tensor units (TF32)", false)                                     \
    SCREEN(MMA_INT8, "mma_int8", "tensor units (INT8)", false)                                     \
    SCREEN(MMA_FP64, "mma_fp64", "tensor units (FP64)", false)                                     \
    SCREEN(WGMMA_F16, "wgmma_f16", "tensor units (FP16, wgmma)", false)                            \
    SCREEN(WGMMA_BF16, "wgmma_bf16", "tensor units (BF16, wgmma)", false)                          \
    SCREEN(WGMMA_FP8, "wgmma_fp8", "tensor units (FP8, wgmma)", false)

#endif
