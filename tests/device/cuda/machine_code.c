/* How machine code in a fat binary is named: by the instructions that a GPU takes from it, and by
 * nothing else. The fat binary is made here. */
#include "device/cuda/machine_code.h"

#include <elf.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "../../check.h"

/* An ELF file with the instructions of a kernel and a note of the build. */
struct cubin {
    Elf64_Ehdr head;
    Elf64_Shdr sections[4];
    char names[32], code[32], note[16];
};

static struct cubin cubin_of(const char *kernel, const char *code, const char *note)
{
    struct cubin cubin = {.head = {.e_ident = ELFMAG,
                                   .e_shoff = offsetof(struct cubin, sections),
                                   .e_shentsize = sizeof(Elf64_Shdr),
                                   .e_shnum = 4,
                                   .e_shstrndx = 1}};
    cubin.sections[1] = (Elf64_Shdr){.sh_offset = offsetof(struct cubin, names), .sh_size = 32};
    cubin.sections[2] =
        (Elf64_Shdr){.sh_name = 1, .sh_offset = offsetof(struct cubin, code), .sh_size = 32};
    cubin.sections[3] =
        (Elf64_Shdr){.sh_name = 2, .sh_offset = offsetof(struct cubin, note), .sh_size = 16};
    snprintf(cubin.names + 1, sizeof cubin.names - 1, ".text.%s", kernel);
    memcpy(cubin.code, code, strlen(code));
    memcpy(cubin.note, note, strlen(note));
    return cubin;
}

struct entry {
    uint16_t kind, unknown;
    uint32_t head_bytes;
    uint64_t bytes;
    uint32_t unknown2[2];
    uint16_t minor, major;
    uint32_t arch;
    struct cubin cubin;
};

/* A fat binary with machine code for 8.0 and 8.6, PTX, and machine code for 9.0. */
struct fatbin {
    uint32_t magic;
    uint16_t version, head_bytes;
    uint64_t bytes;
    struct entry entries[4];
};

static struct fatbin fatbin_of(struct cubin first, struct cubin newer, struct cubin second)
{
    struct fatbin fatbin = {.magic = 0xba55ed50, .version = 1, .head_bytes = 16};
    fatbin.bytes = sizeof fatbin.entries;
    static const uint32_t archs[] = {80, 86, 86, 90};
    const struct cubin *cubins[] = {&first, &newer, &first, &second};
    for (int i = 0; i < 4; i++) {
        fatbin.entries[i] =
            (struct entry){.kind = i == 2 ? 1 : 2,
                           .head_bytes = offsetof(struct entry, cubin),
                           .bytes = sizeof(struct entry) - offsetof(struct entry, cubin),
                           .arch = archs[i]};
        fatbin.entries[i].cubin = *cubins[i];
    }
    return fatbin;
}

static void named_by_instructions(void **state)
{
    (void)state;
    const struct cubin one = cubin_of("screen", "add mul", "by make");
    const struct cubin built_again = cubin_of("screen", "add mul", "by ninja");
    const struct cubin changed = cubin_of("screen", "add div", "by make");
    const struct cubin renamed = cubin_of("scream", "add mul", "by make");
    const struct fatbin both = fatbin_of(one, renamed, changed),
                        again = fatbin_of(built_again, changed, renamed);
    uint64_t name = machine_code_name(&both, 80);
    assert_true(name != 0);
    assert_true(machine_code_name(&both, 86) == machine_code_name(&again, 90));
    assert_true(machine_code_name(&both, 89) == machine_code_name(&both, 86));
    assert_true(machine_code_name(&again, 80) == name);
    assert_true(machine_code_name(&both, 90) && machine_code_name(&both, 90) != name);
    assert_true(machine_code_name(&again, 90) && machine_code_name(&again, 90) != name);
    assert_true(machine_code_name(&both, 75) == 0 && machine_code_name(&both, 100) == 0);
}

/* What is not of this form has no name. */
static void damaged(void **state)
{
    (void)state;
    const struct cubin one = cubin_of("screen", "add mul", "by make");
    struct fatbin fatbin = fatbin_of(one, one, one);
    fatbin.entries[0].bytes = UINT64_MAX;
    assert_true(machine_code_name(&fatbin, 80) == 0);
    fatbin = fatbin_of(one, one, one);
    fatbin.entries[0].head_bytes = UINT32_MAX;
    assert_true(machine_code_name(&fatbin, 90) == 0);
    fatbin = fatbin_of(one, one, one);
    fatbin.entries[0].bytes = 0;
    assert_true(machine_code_name(&fatbin, 80) == 0);
    fatbin = fatbin_of(one, one, one);
    fatbin.bytes = sizeof(struct entry) - 1;
    assert_true(machine_code_name(&fatbin, 80) == 0);
    fatbin = fatbin_of(one, one, one);
    fatbin.entries[0].cubin.sections[2].sh_offset = UINT64_MAX;
    assert_true(machine_code_name(&fatbin, 80) == 0);
    fatbin = fatbin_of(one, one, one);
    memset(&fatbin.entries[0].cubin, 'z', sizeof(struct cubin));
    assert_true(machine_code_name(&fatbin, 80) == 0 && machine_code_name(&fatbin, 90) != 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(named_by_instructions),
                                       cmocka_unit_test(damaged)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
