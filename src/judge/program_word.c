/* The program that measured, as a word. */
#include "judge/program_word.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

void program_word(const char *version, const char *backend, char out_word[PROGRAM_WORD_MAX])
{
    bool simulated = backend && strcmp(backend, "cuda") != 0;
    snprintf(out_word, PROGRAM_WORD_MAX, "%.40s%s%.16s", version ? version : "",
             simulated ? " " : "", simulated ? backend : "");
}

/* The length up to the second dot. */
static size_t release_length(const char *word)
{
    size_t length = strcspn(word, ". ");
    return word[length] == '.' ? length + 1 + strcspn(word + length + 1, ". ") : length;
}

bool program_word_alike(const char *a, const char *b)
{
    size_t length = release_length(a);
    const char *backend_a = strchr(a, ' '), *backend_b = strchr(b, ' ');
    return length == release_length(b) && strncmp(a, b, length) == 0 &&
           strcmp(backend_a ? backend_a : "", backend_b ? backend_b : "") == 0;
}
