/* The part of the stand-in for libcuda.so.1 that compiles and runs code: it counts the instructions
 * between the label `again` and the end of the loop; of straight code those behind each label. Each
 * takes FAKE_CODE_CYCLES cycles, and is one machine instruction. */
#include "fake_code.h"

#include <elf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "device/cuda/code_text.h"

#define EXPORT __attribute__((visibility("default")))

enum { INSTRUCTION_BYTES = 16, FAKE_INSTRUCTION = 0x221, FAKE_NOP = 0x918, PADDING = 8 };

enum { ENTRIES_MAX = 1024, CODE_MAX = 2 * DEVICE_STRAIGHT_MAX };

static uint32_t loop_length; /* of the program compiled last; of straight code all of it */
static bool is_straight;
static uint32_t entry_lengths[ENTRIES_MAX]; /* of straight code, by label */

struct fake_cubin {
    Elf64_Ehdr head;
    Elf64_Shdr sections[3];
    char names[32];
    unsigned char code[(CODE_MAX + PADDING) * INSTRUCTION_BYTES];
};
static struct fake_cubin cubin;

static uint32_t count_loop(const char *text)
{
    const char *at = strstr(text, "again:\n"), *end = at ? strstr(at, "sub.u32 left") : NULL;
    uint32_t count = 0;
    for (; at && end && at < end; at++)
        count += *at == '\n';
    return count ? count - 1 : 0;
}

/* From each label to the next end of a loop. */
static uint32_t count_entries(const char *text)
{
    uint32_t total = 0, first = 0, end = 0;
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, "entry", 5) == 0 && line[5] != 's') {
            uint32_t label = (uint32_t)strtoul(line + 5, NULL, 10) % ENTRIES_MAX;
            entry_lengths[label] = total;
            end = label >= end ? label + 1 : end;
        }
        total += strncmp(line, "fma", 3) == 0;
        for (; strncmp(line, "sub.u32 left", 12) == 0 && first < end; first++)
            entry_lengths[first] = total - entry_lengths[first];
    }
    return total;
}

static void write_cubin(void)
{
    static const char code_names[] = "\0.shstrtab\0.text.code";
    static const char straight_names[] = "\0.shstrtab\0.text.straight";
    size_t size = (loop_length + PADDING) * INSTRUCTION_BYTES;
    memset(&cubin, 0, sizeof cubin);
    memcpy(cubin.head.e_ident, ELFMAG, SELFMAG);
    cubin.head.e_shoff = offsetof(struct fake_cubin, sections);
    cubin.head.e_shentsize = sizeof cubin.sections[0];
    cubin.head.e_shnum = 3;
    cubin.head.e_shstrndx = 1;
    cubin.sections[1] =
        (Elf64_Shdr){.sh_name = 1, .sh_offset = offsetof(struct fake_cubin, names), .sh_size = 32};
    cubin.sections[2] = (Elf64_Shdr){
        .sh_name = 11, .sh_offset = offsetof(struct fake_cubin, code), .sh_size = size};
    if (is_straight)
        memcpy(cubin.names, straight_names, sizeof straight_names);
    else
        memcpy(cubin.names, code_names, sizeof code_names);
    for (uint32_t i = 0; i < loop_length + PADDING; i++) {
        uint16_t word = i < loop_length ? FAKE_INSTRUCTION : FAKE_NOP;
        memcpy(cubin.code + (size_t)i * INSTRUCTION_BYTES, &word, sizeof word);
    }
}

void fake_code_run(unsigned grid, unsigned block, void **parameters)
{
    struct code_result *results = (struct code_result *)*(uintptr_t *)parameters[0];
    uint32_t repeats = *(uint32_t *)parameters[3];
    bool together = getenv("FAKE_CUDA_TOGETHER") != NULL; /* all blocks on one SM */
    for (unsigned i = 0; i < grid; i++) {
        results[i].sm_id = together ? 0 : i;
        for (unsigned w = 0; w < block / 32; w++) {
            results[i].begin[w] = 1000 + w;
            results[i].end[w] = 1000 + w + (uint64_t)FAKE_CODE_CYCLES * loop_length * repeats;
        }
    }
}

/* FAKE_CUDA_TOGETHER: all blocks come to the first SM, whose job the first of them takes. */
void fake_straight_run(unsigned grid, const uint32_t *sm_ids, void **parameters)
{
    struct straight_result *results = (struct straight_result *)*(uintptr_t *)parameters[0];
    struct straight_place *places = (struct straight_place *)*(uintptr_t *)parameters[1];
    bool together = getenv("FAKE_CUDA_TOGETHER") != NULL;
    for (unsigned i = 0; i < grid; i++) {
        struct straight_place *place = &places[sm_ids[together ? 0 : i]];
        results[i] =
            (struct straight_result){.sm_id = sm_ids[together ? 0 : i], .repeats = place->repeats};
        results[i].cycles =
            (uint64_t)FAKE_CODE_CYCLES * entry_lengths[place->entry] * place->repeats;
        place->repeats = 0;
    }
}

#pragma GCC diagnostic ignored "-Wunused-parameter"

EXPORT CUresult cuLinkCreate(unsigned count, CUjit_option *options, void **values,
                             CUlinkState *link)
{
    *link = (CUlinkState)(uintptr_t)8;
    return CUDA_SUCCESS;
}

/* FAKE_CUDA_REFUSES="tanh": programs with this word are refused. FAKE_CUDA_SHORTENS: the compiler
 * joins two instructions into one. */
EXPORT CUresult cuLinkAddData(CUlinkState link, CUjitInputType type, void *data, size_t size,
                              const char *name, unsigned count, CUjit_option *options,
                              void **values)
{
    const char *refused = getenv("FAKE_CUDA_REFUSES");
    if (refused && strstr(data, refused))
        return CUDA_ERROR_INVALID_PTX;
    is_straight = strstr(data, ".entry straight(") != NULL;
    loop_length = is_straight ? count_entries(data) : count_loop(data);
    if (getenv("FAKE_CUDA_SHORTENS"))
        loop_length /= 2;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuLinkComplete(CUlinkState link, void **out_cubin, size_t *size)
{
    write_cubin();
    *out_cubin = &cubin;
    *size = sizeof cubin;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuLinkDestroy(CUlinkState link)
{
    return CUDA_SUCCESS;
}
