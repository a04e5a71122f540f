/* The program that measured, as a word: figures of different programs are not compared. */
#ifndef GPUMEMTOPO_JUDGE_PROGRAM_WORD_H
#define GPUMEMTOPO_JUDGE_PROGRAM_WORD_H

#include <stdbool.h>

enum { PROGRAM_WORD_MAX = 64 };

/* "0.1.0"; of simulated GPUs "0.1.0 sim". NULL counts as "". */
void program_word(const char *version, const char *backend, char out_word[PROGRAM_WORD_MAX]);

/* True if both measure alike: versions that differ only behind the second dot, both simulated or
 * both not. */
bool program_word_alike(const char *a, const char *b);

#endif
