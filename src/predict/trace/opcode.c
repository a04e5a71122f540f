/* Tables of instructions and of the words behind them. */
#include "predict/trace/opcode.h"

#include <string.h>

#include "base/mem.h"

static const struct {
    const char *name;
    enum opcode_space space;
    uint32_t store;
} instructions[] = {
    {"LDG", OPCODE_GLOBAL, 0},  {"LD", OPCODE_GLOBAL, 0},   {"STG", OPCODE_GLOBAL, 1},
    {"ST", OPCODE_GLOBAL, 1},   {"ATOM", OPCODE_GLOBAL, 1}, {"ATOMG", OPCODE_GLOBAL, 1},
    {"RED", OPCODE_GLOBAL, 1},  {"REDG", OPCODE_GLOBAL, 1}, {"LDGSTS", OPCODE_COPY, 0},
    {"LDS", OPCODE_SHARED, 0},  {"STS", OPCODE_SHARED, 1},  {"ATOMS", OPCODE_SHARED, 1},
    {"LDSM", OPCODE_SHARED, 0}, {"STSM", OPCODE_SHARED, 1}, {"REDS", OPCODE_SHARED, 1},
    {"LDL", OPCODE_LOCAL, 0},   {"STL", OPCODE_LOCAL, 1},
};

/* Words that tell the size; without one an element has four bytes. */
static const struct {
    const char *word;
    uint32_t bytes;
} sizes[] = {
    {"U8", 1},  {"S8", 1},  {"U16", 2}, {"S16", 2},  {"64", 8},
    {"F64", 8}, {"U64", 8}, {"S64", 8}, {"128", 16}, {"256", 32},
};

static uint32_t size_of(const char *words)
{
    while (*words) {
        size_t length = strcspn(words, ".");
        for (size_t i = 0; i < COUNT_OF(sizes); i++)
            if (strlen(sizes[i].word) == length && strncmp(sizes[i].word, words, length) == 0)
                return sizes[i].bytes;
        words += length + (words[length] == '.');
    }
    return 4;
}

struct opcode opcode_read(const char *name)
{
    size_t length = strcspn(name, ".");
    struct opcode opcode = {.space = OPCODE_OTHER, .bytes = size_of(name)};
    for (size_t i = 0; i < COUNT_OF(instructions); i++) {
        if (strlen(instructions[i].name) != length ||
            strncmp(instructions[i].name, name, length) != 0)
            continue;
        opcode.space = instructions[i].space;
        opcode.store = instructions[i].store;
    }
    return opcode;
}

const char *opcode_space_name(enum opcode_space space)
{
    static const char *const names[OPCODE_SPACES] = {
        [OPCODE_GLOBAL] = "global memory",     [OPCODE_COPY] = "shared side of copies",
        [OPCODE_SHARED] = "shared memory",     [OPCODE_LOCAL] = "local memory",
        [OPCODE_OTHER] = "other instructions",
    };
    return names[space];
}
