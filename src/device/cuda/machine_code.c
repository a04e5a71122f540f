/* Machine code, as the driver's compiler or the build made it: cubins, which are ELF files, and fat
 * binaries, which have one for each architecture. */
#include "device/cuda/machine_code.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>

#include "device/cuda/code_text.h"

/* The lowest 12 bits of an instruction are its operation. */
enum {
    OPERATION_MASK = 0xfff,
    OPERATION_NOP = 0x918,
    OPERATION_COMPARE = 0x80c, /* of a register with a constant */
    OPERATION_BRANCH = 0x947,
    OPERATION_BRANCH_UNIFORM = 0x547,
};

static int is_inside(uint64_t offset, uint64_t length, size_t size)
{
    return offset <= size && length <= size - offset;
}

static uint64_t operation_at(const unsigned char *code, uint64_t at)
{
    uint16_t word;
    memcpy(&word, code + at, sizeof word);
    return word & OPERATION_MASK;
}

/* The 32-bit constant of the comparison at a place; 0 if there is none. */
static uint32_t compared_at(const unsigned char *code, uint64_t at)
{
    uint32_t constant;
    memcpy(&constant, code + at + sizeof constant, sizeof constant);
    return operation_at(code, at) == OPERATION_COMPARE ? constant : 0;
}

/* The branches are at the end of a block. */
static void count_blocks(const unsigned char *code, uint64_t size, struct machine_code *found)
{
    for (uint64_t at = 0; at + CODE_BLOCK_BYTES + INSTRUCTION_BYTES <= size;
         at += INSTRUCTION_BYTES) {
        uint64_t next = at + CODE_BLOCK_BYTES;
        if (!compared_at(code, at) || !compared_at(code, next) ||
            compared_at(code, next) != compared_at(code, at) + 1)
            continue;
        if (found->blocks++)
            continue;
        while (next > at && operation_at(code, next - INSTRUCTION_BYTES) != OPERATION_BRANCH &&
               operation_at(code, next - INSTRUCTION_BYTES) != OPERATION_BRANCH_UNIFORM)
            next -= INSTRUCTION_BYTES;
        found->block_at = next;
    }
}

static struct machine_code count_in(const unsigned char *code, uint64_t size)
{
    struct machine_code found = {0};
    uint64_t counts[OPERATION_MASK + 1] = {0};
    for (uint64_t at = 0; at + INSTRUCTION_BYTES <= size; at += INSTRUCTION_BYTES) {
        uint64_t word = operation_at(code, at);
        if (word == OPERATION_NOP)
            continue;
        found.count++;
        counts[word]++;
        if (counts[word] > found.most)
            found.most = counts[word];
    }
    count_blocks(code, size, &found);
    return found;
}

/* The section after `*next` ones of an ELF file, and its name, which ends within the file. */
static bool next_section(const unsigned char *bytes, size_t size, unsigned *next,
                         Elf64_Shdr *out_section, const char **out_name)
{
    Elf64_Ehdr head;
    Elf64_Shdr names;
    if (size < sizeof head)
        return false;
    memcpy(&head, bytes, sizeof head);
    if (memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_shentsize != sizeof names ||
        head.e_shstrndx >= head.e_shnum ||
        !is_inside(head.e_shoff, (uint64_t)head.e_shnum * sizeof names, size))
        return false;
    memcpy(&names, bytes + head.e_shoff + head.e_shstrndx * sizeof names, sizeof names);
    while (*next < head.e_shnum) {
        memcpy(out_section, bytes + head.e_shoff + (*next)++ * sizeof names, sizeof names);
        uint64_t at = names.sh_offset + out_section->sh_name;
        if (!is_inside(out_section->sh_offset, out_section->sh_size, size) ||
            !is_inside(at, 1, size) || !memchr(bytes + at, 0, size - at))
            continue;
        *out_name = (const char *)bytes + at;
        return true;
    }
    return false;
}

static const char CODE_SECTION[] = ".text.";

struct machine_code machine_code_of(const void *cubin, size_t size, const char *kernel)
{
    static const struct machine_code none = {0};
    const unsigned char *bytes = cubin;
    Elf64_Shdr section;
    const char *name;
    for (unsigned next = 0; next_section(bytes, size, &next, &section, &name);)
        if (strncmp(name, CODE_SECTION, strlen(CODE_SECTION)) == 0 &&
            strcmp(name + strlen(CODE_SECTION), kernel) == 0)
            return count_in(bytes + section.sh_offset, section.sh_size);
    return none;
}

/* The head of an entry of a fat binary; its data follow behind head_bytes. */
struct fatbin_entry {
    uint16_t kind, unknown;
    uint32_t head_bytes;
    uint64_t bytes;
    uint32_t unknown2[2];
    uint16_t minor, major;
    uint32_t arch;
};
enum { FATBIN_MACHINE_CODE = 2 };

static uint64_t hash_of(uint64_t hash, const void *bytes, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        hash = (hash ^ ((const unsigned char *)bytes)[i]) * 0x100000001b3u;
    return hash;
}

/* Of the kernels alone: what else is in a cubin differs from build to build. 0: it has none. */
static uint64_t name_of_kernels(const unsigned char *cubin, uint64_t size)
{
    uint64_t hash = 0xcbf29ce484222325u, found = 0;
    Elf64_Shdr section;
    const char *name;
    for (unsigned next = 0; next_section(cubin, size, &next, &section, &name);) {
        if (strncmp(name, CODE_SECTION, strlen(CODE_SECTION)) != 0)
            continue;
        hash = hash_of(hash, name, strlen(name) + 1);
        found = hash = hash_of(hash, cubin + section.sh_offset, section.sh_size);
    }
    return found;
}

uint64_t machine_code_name(const void *fatbin, int capability)
{
    /* The head has a magic number, a version, its own bytes, and those behind it. */
    const unsigned char *at = fatbin, *end, *cubin = NULL;
    struct fatbin_entry entry;
    uint64_t bytes, size = 0;
    int newest = 0;
    uint16_t head;
    memcpy(&head, at + 6, sizeof head);
    memcpy(&bytes, at + 8, sizeof bytes);
    at += head;
    for (end = at + bytes; (size_t)(end - at) > sizeof entry;
         at += entry.head_bytes + entry.bytes) {
        memcpy(&entry, at, sizeof entry);
        int arch = (int)entry.arch;
        if (!entry.bytes || !is_inside(entry.head_bytes, entry.bytes, (size_t)(end - at)))
            break;
        if (entry.kind != FATBIN_MACHINE_CODE || arch / 10 != capability / 10 ||
            arch > capability || arch <= newest)
            continue;
        newest = arch;
        cubin = at + entry.head_bytes;
        size = entry.bytes;
    }
    return cubin ? name_of_kernels(cubin, size) : 0;
}
