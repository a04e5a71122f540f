/* Traces from texts: lines of NVBit's mem_trace, CSV, and the sort in bounded memory. */
#include "../check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/rng.h"
#include "predict/trace/convert.h"
#include "predict/trace/convert_nvbit.h"
#include "predict/trace/trace_read.h"

static char folder[] = "/dev/shm/test_convert_XXXXXX";
static char in[64], out[64], other[64];

static int make_folder(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return 1;
    snprintf(in, sizeof in, "%s/in", folder);
    snprintf(out, sizeof out, "%s/out", folder);
    snprintf(other, sizeof other, "%s/other", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(in);
    unlink(out);
    unlink(other);
    return rmdir(folder);
}

static void write_text(const char *text)
{
    FILE *file = fopen(in, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

#define EIGHT(x) x " " x " " x " " x " " x " " x " " x " " x " "
#define ADDRESSES EIGHT("0x7f0010") EIGHT("0x7f0020") EIGHT("0x0000") EIGHT("0x7f0030")

static void opcodes(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum opcode_space space;
        uint32_t store, bytes;
    } cases[] = {
        {"LDG.E", OPCODE_GLOBAL, 0, 4},
        {"LDG.E.128.CONSTANT.SYS", OPCODE_GLOBAL, 0, 16},
        {"LDG.E.LTC128B.64", OPCODE_GLOBAL, 0, 8},
        {"LDG.E.U8", OPCODE_GLOBAL, 0, 1},
        {"STG.E.S16", OPCODE_GLOBAL, 1, 2},
        {"LD.E", OPCODE_GLOBAL, 0, 4},
        {"RED.E.ADD.F64.RN.STRONG.GPU", OPCODE_GLOBAL, 1, 8},
        {"ATOMG.E.CAS.STRONG.GPU", OPCODE_GLOBAL, 1, 4},
        {"LDGSTS.E.BYPASS.128", OPCODE_COPY, 0, 16},
        {"LDS.U.128", OPCODE_SHARED, 0, 16},
        {"STL.64", OPCODE_LOCAL, 1, 8},
        {"LDGX", OPCODE_OTHER, 0, 4},
        {"", OPCODE_OTHER, 0, 4},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct opcode opcode = opcode_read(cases[i].name);
        if (opcode.space != cases[i].space || opcode.store != cases[i].store ||
            opcode.bytes != cases[i].bytes)
            fail_msg("%s: %d %u %u", cases[i].name, opcode.space, opcode.store, opcode.bytes);
    }
}

static void nvbit_lines(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        enum nvbit_kind kind;
        const char *expected; /* NULL: it is read */
    } cases[] = {
        {"", NVBIT_OTHER, NULL},
        {"CTA", NVBIT_OTHER, NULL},
        {"Kernel panic - not syncing", NVBIT_OTHER, NULL},
        {"Max error - 0.5", NVBIT_OTHER, NULL},
        {"CTA 1,2,3 - warp 4 - LDG.E - " ADDRESSES, NVBIT_ACCESS, NULL},
        {"MEMTRACE: CTX 0x55 - grid_launch_id 7 - CTA 1,2,3 - warp 4 - LDG.E - " ADDRESSES,
         NVBIT_ACCESS, NULL},
        {"100 %MEMTRACE: CTX 0x55 - grid_launch_id 7 - CTA 1,2,3 - warp 4 - LDG.E - " ADDRESSES,
         NVBIT_ACCESS, NULL},
        {"MEMTRACE: CTX 0x55 - grid_launch_id 7 - LDG.E 0x7f - block 1,2,3 - warp 4 - " ADDRESSES,
         NVBIT_ACCESS, NULL},
        {"CTX 0x55 - kernel_launch_id 7 - CTA 1,2,3 - warp 4 - PC 127 - LDG.E - " ADDRESSES,
         NVBIT_ACCESS, NULL},
        {"CTA 1,2 - warp 4 - LDG.E - " ADDRESSES, NVBIT_ACCESS, "three numbers"},
        {"CTA 1,2,3 - warp x - LDG.E - " ADDRESSES, NVBIT_ACCESS, "the number of a warp"},
        {"CTA 1,2,3 - warp 99999999999 - LDG.E - " ADDRESSES, NVBIT_ACCESS, "of a warp"},
        {"CTA 1,2,3 - warp 4 - LDG.E - 0x1 0x2", NVBIT_ACCESS, "32 addresses"},
        {"CTA 1,2,3 - warp 4 - LDG.E - " ADDRESSES "0x1", NVBIT_ACCESS, "32 addresses"},
        {"CTA 1,2,3 - warp 4 - LDG.E", NVBIT_ACCESS, "block, warp, opcode"},
        {"CTA 1,2,3 - warp 4 -  - 0x", NVBIT_ACCESS, "an opcode"},
        {"CTA 1,2,3x - warp 4 - LDG.E", NVBIT_ACCESS, "between fields"},
        {"Kernel f(int) - grid size 4,5,6 - block size 7,8,9 - nregs 20 - shmem 99 - cuda stream "
         "id 0",
         NVBIT_LAUNCH, NULL},
        {"MEMTRACE: CTX 0x1 - LAUNCH - Kernel pc 0x2 - Kernel name f(int) - grid launch id 3 - "
         "grid size 4,5,6 - block size 7,8,9 - nregs 20 - shmem 99 - cuda stream id 0",
         NVBIT_LAUNCH, NULL},
        {"Kernel f - grid size 4,5 - block size 7,8,9", NVBIT_LAUNCH, "the size of the grid"},
        {"Kernel f - grid size 4,5,6 - nregs 4", NVBIT_LAUNCH, "the size of a block"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        static struct nvbit_line line;
        const char *at, *expected;
        int rc = nvbit_line_read(cases[i].line, &line, &at, &expected);
        if (line.kind != cases[i].kind || (rc != 0) != (cases[i].expected != NULL) ||
            (rc && !strstr(expected, cases[i].expected)))
            fail_msg("%s: kind %d, %s", cases[i].line, line.kind, expected ? expected : "read");
        assert_in_range(at - cases[i].line, 0, strlen(cases[i].line));
        if (rc || line.kind == NVBIT_OTHER)
            continue;
        if (line.kind == NVBIT_ACCESS) {
            assert_true(line.cta[0] == 1 && line.cta[1] == 2 && line.cta[2] == 3);
            assert_true(line.warp == 4 && line.addresses[31] == 0x7f0030);
            assert_string_equal(line.opcode, "LDG.E");
            assert_true(!line.has_id || line.id == 7);
            assert_true(!line.has_pc || line.pc == 127);
        } else {
            assert_string_equal(line.head.name, "f(int)");
            assert_true(line.head.grid[2] == 6 && line.head.block[0] == 7);
            assert_true(line.head.registers == 20 && line.head.shared_bytes == 99);
            assert_true(!line.has_id || line.id == 3);
        }
    }
}

static int convert(bool csv, const struct convert_request *request, struct convert_result *result,
                   struct err *err)
{
    *err = (struct err){0};
    return csv ? convert_csv(request, result, err) : convert_nvbit(request, result, err);
}

#define LAUNCH(id, name)                                                                           \
    "MEMTRACE: CTX 0x1 - LAUNCH - Kernel pc 0x2 - Kernel name " name " - grid launch id " #id      \
    " - grid size 4,1,1 - block size 64,1,1 - nregs 20 - shmem 0 - cuda stream id 0\n"
#define ACCESS(id, cta, warp, op)                                                                  \
    "MEMTRACE: CTX 0x1 - grid_launch_id " #id " - CTA " #cta ",0,0 - warp " #warp " - " op         \
    " - " ADDRESSES "\n"

/* Launches are told apart, also with the numbers of the old tool. */
static void launches(void **state)
{
    (void)state;
    static const char *const texts[] = {
        LAUNCH(0, "f") ACCESS(0, 1, 9, "LDG.E") LAUNCH(1, "g") ACCESS(0, 1, 9, "LDG.E")
            ACCESS(1, 0, 3, "STG.E") ACCESS(1, 0, 3, "STG.E") ACCESS(1, 0, 3, "LDS"),
        LAUNCH(1, "f") ACCESS(0, 1, 9, "LDG.E") LAUNCH(2, "g") ACCESS(0, 1, 9, "LDG.E")
            ACCESS(1, 0, 3, "STG.E") ACCESS(1, 0, 3, "STG.E") ACCESS(1, 0, 3, "LDS"),
        "Kernel f - grid size 4,1,1 - block size 64,1,1 - nregs 20 - shmem 0\n"
        "CTA 1,0,0 - warp 9 - LDG.E - " ADDRESSES "\n"
        "CTA 1,0,0 - warp 9 - LDG.E - " ADDRESSES "\n"
        "Kernel g - grid size 4,1,1 - block size 64,1,1 - nregs 20 - shmem 0\n"
        "CTA 0,0,0 - warp 3 - STG.E - " ADDRESSES "\n"
        "CTA 0,0,0 - warp 3 - STG.E - " ADDRESSES "\n"
        "CTA 0,0,0 - warp 3 - LDS - " ADDRESSES "\n",
    };
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        struct convert_result result;
        struct err err;
        struct convert_request request = {
            .in = in, .out = out, .sort_bytes = 1 << 20, .has_launch = true};
        write_text(texts[i]);
        for (request.launch = 0; request.launch < 2; request.launch++) {
            if (convert(false, &request, &result, &err))
                fail_msg("%s", err.text);
            assert_string_equal(result.head.name, request.launch ? "g" : "f");
            assert_int_equal(result.totals.accesses, 2);
            assert_int_equal(result.totals.loads, request.launch ? 0 : 2);
            assert_int_equal(result.totals.lanes, 2 * 24);
            assert_int_equal(result.skipped[OPCODE_SHARED], request.launch);
            assert_int_equal(result.other_launches, request.launch ? 2 : 3);
        }
        assert_int_equal(convert(false, &request, &result, &err), -EINVAL);
        assert_non_null(strstr(err.text, "2 launches"));
        request.has_launch = false;
        assert_int_equal(convert(false, &request, &result, &err), -EINVAL);
        assert_non_null(strstr(err.text, "a second launch begins (g)"));
    }
}

static void refused_texts(void **state)
{
    (void)state;
    static const struct {
        bool csv;
        const char *text;
        int line, column;
        const char *expected;
    } cases[] = {
        {false, "hello\n", 0, 0, "expected the lines of NVBit"},
        {false, ACCESS(0, 1, 9, "LDG.E"), 1, 1, "expected the line of a launch"},
        {false, LAUNCH(0, "f") ACCESS(0, 4, 9, "LDG.E"), 2, 1, "expected a block of the grid"},
        {false, LAUNCH(0, "f") "CTA 1,0,0 - warp 9 - LDG - 0x1", 2, 31, "32 addresses"},
        {false, LAUNCH(0, "f") "\n" ACCESS(0, 1, 9, "LDG.E.256"), 3, 1, "LDG.E.256: expected addr"},
        {false, LAUNCH(0, "f") ACCESS(0, 1, 9, "LDS"), 0, 0,
         "load or store of global memory; left out: 1 (shared memory)"},
        {true, "# grid: 4\n# block: 64\nblock,warp,pc,op,bytes,mask,addresses\n", 0, 0,
         "expected at least one load or store of global memory; left out: nothing"},
        {false, LAUNCH(0, "f") ACCESS(0, 1, 9, "LD") ACCESS(0, 1, 1, "LD") ACCESS(0, 1, 2, "LD"), 0,
         0, "block 1: expected at most 2 warps"},
        {true, "", 0, 0, "expected the columns"},
        {true, "# grid: 4\nblock,warp\n", 2, 1, "expected the columns block,warp,pc"},
        {true, "block,warp,pc,op,bytes,mask,addresses\n", 1, 1, "expected a grid"},
        {true, "# grid: 4,x\n", 1, 11, "one to three numbers"},
        {true, "# grid: 4 5\n", 1, 10, "the end of the line"},
        {true, "# registers: many\n", 1, 14, "a number"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct convert_result result;
        struct err err;
        write_text(cases[i].text);
        if (!convert(cases[i].csv,
                     &(struct convert_request){.in = in, .out = out, .sort_bytes = 1 << 20},
                     &result, &err))
            fail_msg("case %zu was converted", i);
        if (err.line != cases[i].line || err.column != cases[i].column ||
            !strstr(err.text, cases[i].expected))
            fail_msg("case %zu: %d:%d: %s", i, err.line, err.column, err.text);
    }
}

static void refused_rows(void **state)
{
    (void)state;
    static const struct {
        const char *row;
        int column;
        const char *expected;
    } cases[] = {
        {"4,0,0,load,4,1,0x10", 1, "the number of a block"},
        {"-1,0,0,load,4,1,0x10", 1, "the number of a block"},
        {"0,2,0,load,4,1,0x10", 3, "the number of a warp"},
        {"0 0,0,load,4,1,0x10", 2, "a comma"},
        {"0,0,x,load,4,1,0x10", 5, "a pc"},
        {"0,0,0,fetch,4,1,0x10", 7, "load or store"},
        {"0,0,0,load,64,1,0x10", 12, "bytes of an element"},
        {"0,0,0,load,3,1,0x10", 16, "a power of two"},
        {"0,0,0,load,4,0,", 16, "a mask with a lane"},
        {"0,0,0,load,4,0x1ffffffff,0x10", 14, "a mask of 32 lanes"},
        {"0,0,0,load,4,3,0x10", 20, "an address below 2^56 for each"},
        {"0,0,0,load,4,1,0x10 0x20", 21, "no more addresses"},
        {"0,0,0,load,4,1,0x100000000000000", 16, "an address below 2^56"},
        {"0,0,0,load,4,1,99999999999999999999999", 16, "an address below 2^56"},
        {"0,0,0,load,4,1,0x11", 1, "multiples of the element's 4 bytes"},
    };
    unlink(out);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct convert_result result;
        struct err err;
        char text[400];
        snprintf(text, sizeof text,
                 "# grid: 4\n# block: 64\n# any: thing\n%s\n\n0,0,0,load,4,1,0x10\n%s\n",
                 "block,warp,pc,op,bytes,mask,addresses", cases[i].row);
        write_text(text);
        if (!convert(true, &(struct convert_request){.in = in, .out = out, .sort_bytes = 1 << 20},
                     &result, &err))
            fail_msg("%s: was converted", cases[i].row);
        if (err.line != 7 || err.column != cases[i].column || !strstr(err.text, cases[i].expected))
            fail_msg("%s: %d:%d: %s", cases[i].row, err.line, err.column, err.text);
        assert_string_equal(err.file, in);
        assert_int_equal(access(out, F_OK), -1);
    }
}

static bool same_files(void)
{
    FILE *a = fopen(out, "rb"), *b = fopen(other, "rb");
    int x, y;
    do {
        x = fgetc(a);
        y = fgetc(b);
    } while (x == y && x != EOF);
    fclose(a);
    fclose(b);
    return x == y;
}

/* Many runs give the same file as one; accesses of a warp keep their order. */
static void sorted_in_little_memory(void **state)
{
    (void)state;
    FILE *file = fopen(in, "w");
    struct rng rng;
    rng_init(&rng, 1, "rows");
    fputs("# grid: 50\n# block: 96\nblock,warp,pc,op,bytes,mask,addresses\n", file);
    for (int i = 0; i < 5000; i++)
        fprintf(file, "%d,%d,%d,load,4,0x%x,%d %d\n", (int)rng_below(&rng, 50),
                (int)rng_below(&rng, 3), i, 5, i * 4, (int)rng_below(&rng, 1 << 20) * 4);
    fclose(file);
    struct convert_request request = {.in = in, .out = out, .sort_bytes = 1 << 20};
    struct convert_result result;
    struct err err = {0};
    assert_int_equal(convert_csv(&request, &result, &err), 0);
    request.out = other;
    request.sort_bytes = 2000;
    assert_int_equal(convert_csv(&request, &result, &err), 0);
    assert_true(same_files());
    struct trace_reader *reader = NULL;
    assert_int_equal(trace_reader_open(other, &reader, &err), 0);
    for (uint64_t block = 0; block < 50; block++) {
        for (uint32_t warp = 0; warp < 3; warp++) {
            struct trace_warp at;
            struct warp_access got;
            uint64_t pc, last = 0;
            assert_int_equal(trace_warp_init(&at, reader, block, warp, &err), 0);
            while (trace_warp_next(&at, reader, &got, &pc, &err) == 1) {
                assert_true(pc >= last && got.mask == 5);
                last = pc + 1;
            }
            trace_warp_fini(&at, reader);
        }
    }
    trace_reader_close(reader);
}

/* Lines of any length, without an end, with NULs. */
static void long_lines(void **state)
{
    (void)state;
    static const size_t lengths[] = {0, 1, 5000, TEXT_LINE_MAX - 1, TEXT_LINE_MAX, 200000, 3};
    FILE *file = fopen(in, "wb");
    for (size_t i = 0; i < COUNT_OF(lengths); i++) {
        for (size_t k = 0; k < lengths[i]; k++)
            fputc(k == 1 ? 0 : 'a' + (int)i, file);
        if (i + 1 < COUNT_OF(lengths))
            fputs(i & 1 ? "\r\n" : "\n", file);
    }
    fclose(file);
    struct text_lines lines;
    struct err err = {0};
    char *line;
    assert_int_equal(text_lines_open(&lines, in, &err), 0);
    for (size_t i = 0; i < COUNT_OF(lengths); i++) {
        assert_int_equal(text_lines_next(&lines, &line, &err), 1);
        assert_int_equal(lines.line, i + 1);
        size_t length = strlen(line);
        if (lengths[i] < TEXT_LINE_MAX - 1 ? length != lengths[i] : length < TEXT_LINE_MAX / 2)
            fail_msg("line %zu: %zu characters instead of %zu", i + 1, length, lengths[i]);
        if (length > 1)
            assert_true(line[0] == 'a' + (char)i && line[1] == '?');
    }
    assert_int_equal(text_lines_next(&lines, &line, &err), 0);
    text_lines_close(&lines);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opcodes),      cmocka_unit_test(nvbit_lines),
        cmocka_unit_test(launches),     cmocka_unit_test(refused_texts),
        cmocka_unit_test(refused_rows), cmocka_unit_test(sorted_in_little_memory),
        cmocka_unit_test(long_lines),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
