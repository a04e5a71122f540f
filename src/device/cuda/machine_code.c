/* Reads the section .text.KERNEL of an ELF file. */
#include "device/cuda/machine_code.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>

/* Since Volta every instruction has 16 bytes; the lowest 12 bits are its operation. */
enum { INSTRUCTION_BYTES = 16, OPERATION_MASK = 0xfff, OPERATION_NOP = 0x918 };

static int is_inside(uint64_t offset, uint64_t length, size_t size)
{
    return offset <= size && length <= size - offset;
}

static struct machine_code count_in(const unsigned char *code, uint64_t size)
{
    struct machine_code found = {0};
    uint64_t counts[OPERATION_MASK + 1] = {0};
    for (uint64_t at = 0; at + INSTRUCTION_BYTES <= size; at += INSTRUCTION_BYTES) {
        uint16_t word;
        memcpy(&word, code + at, sizeof word);
        word &= OPERATION_MASK;
        if (word == OPERATION_NOP)
            continue;
        found.count++;
        counts[word]++;
        if (counts[word] > found.most)
            found.most = counts[word];
    }
    return found;
}

struct machine_code machine_code_of(const void *cubin, size_t size, const char *kernel)
{
    static const struct machine_code none = {0};
    const unsigned char *bytes = cubin;
    Elf64_Ehdr head;
    Elf64_Shdr names, section;
    char wanted[64];
    int length = snprintf(wanted, sizeof wanted, ".text.%s", kernel) + 1;
    if (size < sizeof head)
        return none;
    memcpy(&head, bytes, sizeof head);
    if (memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_shentsize != sizeof section ||
        head.e_shstrndx >= head.e_shnum ||
        !is_inside(head.e_shoff, (uint64_t)head.e_shnum * sizeof section, size))
        return none;
    memcpy(&names, bytes + head.e_shoff + head.e_shstrndx * sizeof names, sizeof names);
    for (unsigned i = 0; i < head.e_shnum; i++) {
        memcpy(&section, bytes + head.e_shoff + i * sizeof section, sizeof section);
        if (is_inside(names.sh_offset + section.sh_name, (uint64_t)length, size) &&
            memcmp(bytes + names.sh_offset + section.sh_name, wanted, (size_t)length) == 0 &&
            is_inside(section.sh_offset, section.sh_size, size))
            return count_in(bytes + section.sh_offset, section.sh_size);
    }
    return none;
}
