/* The kernels: a row each, written anew after what the originals load and store. */
#include "base/mem.h"
#include "predict/kernel.h"

/* Name, summary, size, block, shared memory, threads, loops, arrays, program (see kernel.h). */
const struct kernel kernel_table[] = {
    /* The kernels of PolyBench/GPU in the seed's table 4, with its sizes. */
    {"2dconv", "3x3 convolution of an N x N image", 4096, 32, 8, 0, "NxN", NULL, "NxN NxN",
     "before load A[y-1][x-1] inner; before load A[y-1][x] inner; "
     "before load A[y-1][x+1] inner; before load A[y][x-1] inner; "
     "before load A[y][x] inner; before load A[y][x+1] inner; "
     "before load A[y+1][x-1] inner; before load A[y+1][x] inner; "
     "before load A[y+1][x+1] inner; before store B[y][x] inner"},
    {"2mm", "matrix product, one thread per element", 384, 32, 8, 0, "NxN", "first=N",
     "NxN NxN NxN", "first load A[y][k]; first load B[k][x]; first store C[y][x]"},
    {"3dconv", "3x3x3 convolution of N planes", 256, 32, 8, 0, "NxN", "first=N", "N+2xNxN N+2xNxN",
     "first load A[k][y-1][x-1] inner; first load A[k+2][y-1][x-1] inner; "
     "first load A[k][y][x-1] inner; first load A[k+2][y][x-1] inner; "
     "first load A[k][y+1][x-1] inner; first load A[k+2][y+1][x-1] inner; "
     "first load A[k+1][y-1][x] inner; first load A[k+1][y][x] inner; "
     "first load A[k+1][y+1][x] inner; first load A[k][y-1][x+1] inner; "
     "first load A[k+2][y+1][x+1] inner; first store B[k+1][y][x] inner"},
    {"atax1", "A x, a row of A per thread", 4096, 256, 1, 0, "N", "first=N", "NxN N N",
     "before load C[x]; first load A[x][k]; first load B[k]; first store C[x]"},
    {"atax2", "A^T y, a column of A per thread", 4096, 256, 1, 0, "N", "first=N", "NxN N N",
     "before load C[x]; first load A[k][x]; first load B[k]; first store C[x]"},
    {"bicg1", "r^T A, a column of A per thread", 4096, 256, 1, 0, "N", "first=N", "NxN N N",
     "before store C[x]; first load A[k][x]; first load B[k]; first store C[x]"},
    {"bicg2", "A p, a row of A per thread", 4096, 256, 1, 0, "N", "first=N", "NxN N N",
     "before store C[x]; first load A[x][k]; first load B[k]; first store C[x]"},
    {"corr", "correlation matrix, a triangle", 256, 32, 1, 0, "N", "t=N first=N", "NxN NxN",
     "before store B[x][x]; head store B[x][x+t+1] upper; first load A[k][x] upper; "
     "first load A[k][x+t+1] upper; first store B[x][x+t+1] upper; "
     "tail store B[x+t+1][x] upper"},
    {"covar", "covariance matrix, a triangle with its diagonal", 256, 32, 1, 0, "N", "t=N first=N",
     "NxN NxN",
     "head store B[x][x+t] upper_same; first load A[k][x] upper_same; "
     "first load A[k][x+t] upper_same; first store B[x][x+t] upper_same; "
     "tail store B[x+t][x] upper_same"},
    {"fdtd1", "electric field, y", 2048, 32, 8, 0, "NxN", NULL, "NxN NxN N",
     "before load C[0] first_row; before store A[y][x] first_row; "
     "before load A[y][x] later_rows; before load B[y][x] later_rows; "
     "before load B[y-1][x] later_rows; before store A[y][x] later_rows"},
    {"fdtd2", "electric field, x", 2048, 32, 8, 0, "NxN", NULL, "NxN NxN",
     "before load A[y][x] later_cols; before load B[y][x] later_cols; "
     "before load B[y][x-1] later_cols; before store A[y][x] later_cols"},
    {"fdtd3", "magnetic field", 2048, 32, 8, 0, "NxN", NULL, "NxN NxN NxN",
     "before load A[y][x] but_last; before load B[y][x+1] but_last; "
     "before load B[y][x] but_last; before load C[y+1][x] but_last; "
     "before load C[y][x] but_last; before store A[y][x] but_last"},
    {"gesummv", "A x + B x, a row of both per thread", 4096, 256, 1, 0, "N", "first=N",
     "NxN NxN N N N",
     "first load A[x][k]; first load C[k]; first load D[x]; first store D[x]; "
     "first load B[x][k]; first load C[k]; first load E[x]; first store E[x]; "
     "after load D[x]; after store E[x]"},
    {"gramschm", "Gram-Schmidt, third kernel of each step", 128, 256, 1, 0, "N",
     "t=N first=N second=N", "NxN NxN NxN",
     "first load B[k][t] after_t; first load A[k][x] after_t; "
     "first store C[t][x] after_t; second load A[k][x] after_t; "
     "second load B[k][t] after_t; second load C[t][x] after_t; "
     "second store A[k][x] after_t"},
    {"mvt1", "x += A y, a row of A per thread", 4096, 256, 1, 0, "N", "first=N", "NxN N N",
     "before load C[x]; first load A[x][k]; first load B[k]; first store C[x]"},
    {"mvt2", "x += A^T y, a column of A per thread", 4096, 256, 1, 0, "N", "first=N", "NxN N N",
     "before load C[x]; first load A[k][x]; first load B[k]; first store C[x]"},
    {"syr2k", "A B^T + B A^T", 256, 32, 8, 0, "NxN", "first=N", "NxN NxN NxN",
     "before load C[y][x]; first load A[y][k]; first load B[x][k]; first load B[y][k]; "
     "first load A[x][k]; first store C[y][x]"},
    {"syrk", "A A^T", 256, 32, 8, 0, "NxN", "first=N", "NxN NxN",
     "before load B[y][x]; before store B[y][x]; first load A[y][k]; first load A[x][k]; "
     "first store B[y][x]"},
    /* The kernels of Rodinia in the seed's table 4, with its sizes. */
    {"bp1", "back propagation, forward through a layer of N inputs", 262144, 16, 16, 1088, "16xN",
     NULL, "N+1 N+1x17 N",
     "before load A[y+1] one_column; before load B[y+1][x+1]; before store B[y+1][x+1]; "
     "before store C[y] one_column"},
    {"bp2", "back propagation, adjusting N x 16 weights", 262144, 16, 16, 0, "16xN", NULL,
     "N+1 N+1x17 17 N+1x17",
     "before load B[y+1][x+1]; before load C[x+1]; before load A[y+1]; "
     "before load D[y+1][x+1]; before store B[y+1][x+1]; before load C[x+1]; "
     "before load A[y+1]; before load D[y+1][x+1]; before store D[y+1][x+1]; "
     "before load B[0][x+1] first_row; before store B[0][x+1] first_row; "
     "before store D[0][x+1] first_row"},
    {"cfd", "Euler fluxes of N cells, four neighbours each", 193536, 192, 1, 0, "N", "first=4",
     "N 5xN 4xN 12xN 5xN 9xN",
     "before load A[x]; before load B[0][x]; before load B[1][x]; before load B[2][x]; "
     "before load B[3][x]; before load B[4][x]; first load C[k][x]; "
     "first load D[3k+0][x]; first load D[3k+1][x]; first load D[3k+2][x]; "
     "first load B[0][4x+k] near_col; first load B[1][4x+k] near_col; "
     "first load B[2][4x+k] near_col; first load B[3][4x+k] near_col; "
     "first load B[4][4x+k] near_col; first load F[0][4x+k] near_col; "
     "first load F[1][4x+k] near_col; first load F[2][4x+k] near_col; "
     "first load F[3][4x+k] near_col; first load F[4][4x+k] near_col; "
     "first load F[5][4x+k] near_col; first load F[6][4x+k] near_col; "
     "first load F[7][4x+k] near_col; first load F[8][4x+k] near_col; "
     "after store E[0][x]; after store E[1][x]; after store E[2][x]; after store E[3][x]; "
     "after store E[4][x]"},
    {"hotspot", "temperature of an N x N chip, tiles of 14 x 14", 1024, 16, 16, 3072, "8N/7x8N/7",
     NULL, "NxN NxN NxN",
     "before load A[14by+ty-1][14bx+tx-1] inner; "
     "before load B[14by+ty-1][14bx+tx-1] inner; "
     "before store C[14by+ty-1][14bx+tx-1] block_inner"},
    {"nw1", "Needleman-Wunsch, upper left triangle of tiles", 4096, 16, 1, 2180, "N",
     "t=N/16 first=16 second=16", "N+1xN+1 N+1xN+1",
     "head load B[16t-16bx][16bx] up_to_t; head load B[16t-16bx+tx+1][16bx] up_to_t; "
     "head load B[16t-16bx][16bx+tx+1] up_to_t; "
     "first load A[16t-16bx+k+1][16bx+tx+1] up_to_t; "
     "second store B[16t-16bx+k+1][16bx+tx+1] up_to_t"},
    {"nw2", "Needleman-Wunsch, the other triangle, upside down", 4096, 16, 1, 2180, "N",
     "t=N/16 first=16 second=16", "N+1xN+1 N+1xN+1",
     "head load B[16bx][16bx+16t+16] blocks_left; "
     "head load B[16bx+tx+1][16bx+16t+16] blocks_left; "
     "head load B[16bx][16bx+16t+tx+17] blocks_left; "
     "first load A[16bx+k+1][16bx+16t+tx+17] blocks_left; "
     "second store B[16bx+k+1][16bx+16t+tx+17] blocks_left"},
    {"srad1", "speckle reduction, derivatives of an N x N image", 2048, 16, 16, 6144, "NxN", NULL,
     "NxN NxN NxN NxN NxN NxN",
     "before load A[y-1][x] later_rows; before load A[y+1][x] but_last; "
     "before load A[y][x-1] later_cols; before load A[y][x+1] but_last; "
     "before load A[y][x]; before store B[y][x]; before store C[y][x]; "
     "before store D[y][x]; before store E[y][x]; before store F[y][x]"},
    {"srad2", "speckle reduction, update of an N x N image", 2048, 16, 16, 5120, "NxN", NULL,
     "NxN NxN NxN NxN NxN NxN",
     "before load F[y+1][x] but_last; before load F[y][x+1] but_last; "
     "before load F[y][x]; before load B[y][x]; before load C[y][x]; before load D[y][x]; "
     "before load E[y][x]; before load A[y][x]; before store A[y][x]"},
    /* Kernels beside those of the seed: dense, sparse, gathered, tiled. */
    {"transpose", "B = A^T, stores across rows", 4096, 32, 8, 0, "NxN", NULL, "NxN NxN",
     "before load A[y][x]; before store B[x][y]"},
    {"gemm", "matrix product without tiles", 1024, 32, 8, 0, "NxN", "first=N", "NxN NxN NxN",
     "first load A[y][k]; first load B[k][x]; after store C[y][x]"},
    {"gemm_tiled", "matrix product, 32 x 32 tiles in shared memory", 1024, 32, 32, 8192, "NxN",
     "t=N/32", "NxN NxN NxN",
     "head load A[y][32t+tx]; head load B[32t+ty][x]; after store C[y][x]"},
    {"spmv", "sparse matrix (CSR, N rows of 32) times a vector, a row per thread", 262144, 256, 1,
     0, "N", "first=32", "N+1 Nx32 Nx32 N N",
     "before load A[x]; before load A[x+1]; first load B[x][k]; first load C[x][k]; "
     "first load D[32x+k] any_col; after store E[x]"},
    {"histogram", "N values into 256 bins of main memory", 4194304, 256, 1, 0, "N", NULL, "N 256",
     "before load A[x]; before store B[x] any_col"},
    {"stencil3d", "seven points of N x N x N", 256, 32, 8, 0, "NxN", "first=N", "N+2xNxN N+2xNxN",
     "first load A[k+1][y][x] inner; first load A[k+1][y][x-1] inner; "
     "first load A[k+1][y][x+1] inner; first load A[k+1][y-1][x] inner; "
     "first load A[k+1][y+1][x] inner; first load A[k][y][x] inner; "
     "first load A[k+2][y][x] inner; first store B[k+1][y][x] inner"},
    {"embedding", "65536 rows of 512 B, gathered from a table of N", 1000000, 32, 8, 0, "32x65536",
     "first=4", "Nx128 65536 65536x128",
     "before load B[y]; first load A[y][x+32k] any_row; first store C[y][x+32k]"},
    {"attention", "tiles of 64 queries against N keys, heads of 128 x 16 bit", 4096, 16, 8, 49152,
     "16xN/8", "t=N/64 first=8 second=8", "Nx16:16 Nx16:16 Nx16:16 Nx16:16",
     "before load A[64by+ty+0][tx]; before load A[64by+ty+8][tx]; "
     "before load A[64by+ty+16][tx]; before load A[64by+ty+24][tx]; "
     "before load A[64by+ty+32][tx]; before load A[64by+ty+40][tx]; "
     "before load A[64by+ty+48][tx]; before load A[64by+ty+56][tx]; "
     "first load B[64t+8k+ty][tx]; second load C[64t+8k+ty][tx]; "
     "after store D[64by+ty+0][tx]; after store D[64by+ty+8][tx]; "
     "after store D[64by+ty+16][tx]; after store D[64by+ty+24][tx]; "
     "after store D[64by+ty+32][tx]; after store D[64by+ty+40][tx]; "
     "after store D[64by+ty+48][tx]; after store D[64by+ty+56][tx]"},
};
const size_t kernel_table_count = COUNT_OF(kernel_table);
