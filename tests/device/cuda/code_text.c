/* The text of every instruction's program is accepted by the assembler, and its loop becomes so
 * many machine instructions that the compiler has not taken the chain apart.
 *
 * usage: code_text PTXAS */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <cuda.h>

#include "device/cuda/code_text.h"
#include "device/cuda/machine_code.h"

enum { BLOCKS = 132 };
static const struct code_target hopper = {90, CUDA_VERSION};

static const char *assembler;
static char folder[] = "/tmp/gpumemtopo-code-XXXXXX";

/* Of a text, which is freed. */
static struct machine_code assembled_text(struct strbuf *text, const char *kernel,
                                          const char *level, uint32_t capability)
{
    static unsigned char cubin[1 << 20];
    char source[64], object[64], command[512];
    snprintf(source, sizeof source, "%s/code.ptx", folder);
    snprintf(object, sizeof object, "%s/code.cubin", folder);
    snprintf(command, sizeof command, "'%s' %s -arch=sm_%u -o %s %s", assembler, level, capability,
             object, source);
    FILE *file = fopen(source, "w");
    assert_non_null(file);
    fwrite(text->data, 1, text->length, file);
    fclose(file);
    strbuf_fini(text);
    if (system(command) != 0)
        fail_msg("%s on sm_%u: the assembler refuses it", kernel, capability);
    file = fopen(object, "rb");
    assert_non_null(file);
    size_t size = fread(cubin, 1, sizeof cubin, file);
    fclose(file);
    remove(source);
    remove(object);
    return machine_code_of(cubin, size, kernel);
}

static struct machine_code assembled(const struct device_code *code,
                                     const struct instruction *instruction, uint32_t capability)
{
    struct strbuf text = {0};
    const struct code_target target = {capability, CUDA_VERSION};
    printf("%s\n", instruction->name);
    code_text_write(code, instruction, &target, BLOCKS, &text);
    return assembled_text(&text, "code", "", capability);
}

/* The assembler of this build knows it: FP8 needs that of CUDA 12.4. */
static bool is_known(const struct instruction *instruction)
{
    return instruction->capability != 89 || CUDA_VERSION >= 12040;
}

/* Chains of atomics on global memory visit many words, all within what the caller provides; those
 * of the whole GPU stay on one. */
static void atomics_visit_many_words(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        size_t words;
    } cases[] = {{"global_add", 64}, {"global_add_same", 64}, {"global_add_all", 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t row = 0, words = 0;
        while (strcmp(instruction_table[row].name, cases[i].name) != 0)
            row++;
        const struct device_code code = {
            .instruction = (uint32_t)row, .chains = 1, .warps = 1, .length = 64, .repeats = 1};
        struct strbuf text = {0};
        code_text_write(&code, &instruction_table[row], &hopper, BLOCKS, &text);
        for (const char *at = text.data; (at = strstr(at, "st.global.b64 [r0+")); at++)
            words++;
        assert_int_equal(words, cases[i].words);
        assert_int_equal(code_text_words(&code, &instruction_table[row], BLOCKS),
                         words * BLOCKS * 32 * 8);
        strbuf_fini(&text);
    }
}

/* Straight code stays as long as it is written. */
static void straight_stays(void **state)
{
    (void)state;
    struct strbuf text = {0};
    code_text_write_straight(&hopper, &text);
    struct machine_code machine = assembled_text(&text, "straight", "-O1", 90);
    assert_int_equal(machine.most, DEVICE_STRAIGHT_MAX + DEVICE_STRAIGHT_SECOND_MAX);
    assert_true(machine.count < machine.most + 200);
}

/* Blocks of jumping code stay where they are written, and begin where padding lets them begin. */
static void blocks_stay(void **state)
{
    (void)state;
    static const uint32_t strides[] = {5, 13, 29};
    for (size_t i = 0; i < sizeof strides / sizeof *strides; i++) {
        struct walk_text walk = {.stride = strides[i], .blocks = 100};
        for (int trial = 0; trial < 2; trial++) {
            struct strbuf text = {0};
            code_text_write_walk(&hopper, &walk, &text);
            struct machine_code machine = assembled_text(&text, "walk", "-O1", 90);
            printf("%llu blocks from %llu on\n", (unsigned long long)machine.blocks,
                   (unsigned long long)machine.block_at);
            assert_int_equal(machine.blocks, walk.blocks - walk.stride - 1);
            if (trial)
                assert_int_equal(machine.block_at % CODE_BLOCK_BYTES, 0);
            walk.padding = (uint32_t)(-machine.block_at % CODE_BLOCK_BYTES / 16);
            walk.blocks = 400;
        }
    }
}

static void chains_stay(void **state)
{
    (void)state;
    for (size_t i = 0; i < instruction_count; i++) {
        struct device_code code = {
            .instruction = (uint32_t)i, .chains = 1, .warps = 1, .length = 192, .repeats = 1};
        const struct instruction *instruction = &instruction_table[i];
        if (!is_known(instruction))
            continue;
        struct machine_code longer = assembled(&code, instruction, 90);
        code.length = 64;
        struct machine_code shorter = assembled(&code, instruction, 90);
        double each = ((double)longer.count - (double)shorter.count) / 128;
        double most = ((double)longer.most - (double)shorter.most) / 128;
        printf("%s: %.2f machine instructions, %.2f the same\n", instruction->name, each, most);
        assert_true(each >= 0.5 && each <= 8);
    }
}

/* The oldest GPU that has the instruction, with several chains. */
static void oldest(void **state)
{
    (void)state;
    for (size_t i = 0; i < instruction_count; i++) {
        const struct device_code code = {
            .instruction = (uint32_t)i, .chains = 4, .warps = 32, .length = 8, .repeats = 1};
        if (!is_known(&instruction_table[i]))
            continue;
        assert_true(assembled(&code, &instruction_table[i], instruction_table[i].capability).count >
                    8);
    }
}

/* The version of PTX is the newest one that the driver compiles, but at most 7.8. */
static void versions(void **state)
{
    (void)state;
    static const struct {
        struct code_target target;
        const char *text;
    } cases[] = {{{61, 11000}, ".version 7.0\n.target sm_61\n"},
                 {{86, 11040}, ".version 7.4\n.target sm_86\n"},
                 {{90, 11080}, ".version 7.8\n.target sm_90\n"},
                 {{70, 12040}, ".version 7.8\n.target sm_70\n"},
                 {{100, 13000}, ".version 7.8\n.target sm_90\n"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct strbuf text = {0};
        code_text_write_straight(&cases[i].target, &text);
        assert_memory_equal(text.data, cases[i].text, strlen(cases[i].text));
        strbuf_fini(&text);
    }
}

static void not_a_cubin(void **state)
{
    (void)state;
    unsigned char bytes[64] = {0x7f, 'E', 'L', 'F'};
    assert_int_equal(machine_code_of(bytes, sizeof bytes, "code").count, 0);
    assert_int_equal(machine_code_of(bytes, 3, "code").count, 0);
    bytes[40] = 0xff;
    bytes[58] = 64;
    bytes[60] = 0xff;
    assert_int_equal(machine_code_of(bytes, sizeof bytes, "code").count, 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(chains_stay),
                                       cmocka_unit_test(oldest),
                                       cmocka_unit_test(straight_stays),
                                       cmocka_unit_test(blocks_stay),
                                       cmocka_unit_test(atomics_visit_many_words),
                                       cmocka_unit_test(versions),
                                       cmocka_unit_test(not_a_cubin)};
    assembler = argc > 1 ? argv[1] : "ptxas";
    if (!mkdtemp(folder))
        return 1;
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    rmdir(folder);
    return rc;
}
