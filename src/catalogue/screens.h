/* The paths of the screen for wrong results, one row each.
 *
 * SCREEN(ID, name, words, host, warps, steps, taken, operands, oldest, newest). host: the host
 * knows the answer, by the rules of integers or of IEEE 754; otherwise the answer of most warps of
 * the GPU counts, and the judge compares it with that of other GPUs. warps: of the block that fills
 * an SM. steps: of a period; taken: words that a lane takes in a step, at most; operands: words of
 * a step that it uses, 0 if it reads them from memory. oldest, newest: the compute capabilities
 * that have it, times 10; newest 0: all newer ones. */
#ifndef GPUMEMTOPO_CATALOGUE_SCREENS_H
#define GPUMEMTOPO_CATALOGUE_SCREENS_H

#define SCREENS(SCREEN)                                                                            \
    SCREEN(INT, "int", "integer units", true, 32, 64, 10, 3, 0, 0)                                 \
    SCREEN(FP32, "fp32", "FP32 units", true, 32, 64, 7, 3, 0, 0)                                   \
    SCREEN(FP64, "fp64", "FP64 units", true, 32, 64, 6, 5, 0, 0)                                   \
    SCREEN(HALF, "half", "FP16 and BF16 units", false, 32, 64, 7, 3, 60, 0)                        \
    SCREEN(SPECIAL, "special", "special functions", false, 32, 64, 9, 2, 0, 0)                     \
    SCREEN(CONVERT, "convert", "conversions", false, 32, 64, 11, 2, 0, 0)                          \
    SCREEN(LANES, "lanes", "exchanges between lanes", false, 32, 64, 10, 2, 0, 0)                  \
    SCREEN(PREDICATES, "predicates", "predicates", true, 32, 64, 8, 2, 0, 0)                       \
    SCREEN(MMA_F16, "mma_f16", "tensor units (FP16)", false, 16, 8, 20, 12, 80, 0)                 \
    SCREEN(MMA_BF16, "mma_bf16", "tensor units (BF16)", false, 16, 8, 20, 12, 80, 0)               \
    SCREEN(MMA_TF32, "mma_tf32", "tensor units (TF32)", false, 16, 8, 20, 12, 80, 0)               \
    SCREEN(MMA_INT8, "mma_int8", "tensor units (INT8)", false, 16, 8, 20, 12, 80, 0)               \
    SCREEN(MMA_FP8, "mma_fp8", "tensor units (FP8)", false, 16, 8, 20, 12, 89, 0)                  \
    SCREEN(MMA_FP64, "mma_fp64", "tensor units (FP64)", false, 16, 8, 12, 10, 80, 0)               \
    SCREEN(WGMMA_F16, "wgmma_f16", "tensor units (FP16, wgmma)", false, 8, 1, 64, 0, 90, 90)       \
    SCREEN(WGMMA_BF16, "wgmma_bf16", "tensor units (BF16, wgmma)", false, 8, 1, 64, 0, 90, 90)     \
    SCREEN(WGMMA_TF32, "wgmma_tf32", "tensor units (TF32, wgmma)", false, 8, 1, 64, 0, 90, 90)     \
    SCREEN(WGMMA_INT8, "wgmma_int8", "tensor units (INT8, wgmma)", false, 8, 1, 64, 0, 90, 90)     \
    SCREEN(WGMMA_FP8, "wgmma_fp8", "tensor units (FP8, wgmma)", false, 8, 1, 64, 0, 90, 90)        \
    SCREEN(L1, "l1", "reads through L1", true, 32, 32, 32, 0, 0, 0)                                \
    SCREEN(L2, "l2", "reads through L2", true, 32, 12, 32, 0, 0, 0)                                \
    SCREEN(CONSTANT, "constant", "reads of constants", true, 32, 16, 32, 0, 0, 0)                  \
    SCREEN(TEXTURE, "texture", "filters of textures", false, 32, 64, 12, 2, 0, 0)                  \
    SCREEN(BULK, "bulk", "bulk copies", true, 16, 8, 32, 0, 90, 0)                                 \
    SCREEN(CLUSTER, "cluster", "reads within a cluster", true, 32, 4, 32, 0, 90, 0)

#endif
