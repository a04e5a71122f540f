/* Programs as PTX: loops of one instruction, and straight code. The driver compiles them, so a new
 * instruction needs no new kernel in the build. */
#include "device/cuda/code_text.h"

#include <string.h>

enum { WARP_LANES = 32, WORD_BYTES = 8, A_WORD = 0, B_WORD = 4, R_WORD = 8, NEWEST_TARGET = 90 };
enum { RING_MAX = 64, RING_BYTES_MAX = 16 << 20 };

/* PTX 7.8, of CUDA 11.8, knows all targets. A driver of CUDA 11.0 to 11.7 compiles up to PTX 7.0 to
 * 7.7, which know the targets that it knows itself. */
static void write_target(const struct code_target *target, bool fp8, struct strbuf *text)
{
    if (fp8)
        strbuf_puts(text, ".version 8.4\n");
    else
        strbuf_printf(text, ".version 7.%d\n",
                      target->driver < 11080 ? target->driver % 1000 / 10 : 8);
    strbuf_printf(text, ".target sm_%u\n.address_size 64\n",
                  target->capability < NEWEST_TARGET ? target->capability : NEWEST_TARGET);
}

static void write_code_head(const struct device_code *code, const struct instruction *instruction,
                            const struct code_target *target, struct strbuf *text)
{
    uint32_t bits = instruction->bits;
    write_target(target, instruction->capability == 89, text);
    strbuf_puts(text, ".visible .entry code(.param .u64 results, .param .u64 data,\n"
                      "    .param .u64 words, .param .u32 repeats)\n");
    strbuf_printf(text, ".maxntid %u\n{\n.reg .b%u r<%u>, a<4>, b<4>, z;\n",
                  code->warps * WARP_LANES, bits, code->chains * instruction->registers);
    strbuf_puts(text, ".reg .b64 d, out, in, at, begin, end;\n"
                      ".reg .b32 i, id, block, warp, lane, threads, left, asked;\n"
                      ".reg .b16 h;\n.reg .pred p, more, never;\n");
    if (instruction->place == INSTRUCTION_SHARED_OWN ||
        instruction->place == INSTRUCTION_SHARED_WARP)
        strbuf_printf(text, ".shared .align 16 .b8 own[%u];\n",
                      code->chains * code->warps * WARP_LANES * 4);
    strbuf_puts(text, "ld.param.u64 out, [results];\nld.param.u64 in, [data];\n"
                      "ld.param.u32 asked, [repeats];\n"
                      "mov.u32 id, %tid.x;\nmov.u32 threads, %ntid.x;\nmov.u32 block, %ctaid.x;\n"
                      "shr.u32 warp, id, 5;\nand.b32 lane, id, 31;\n");
}

/* Every lane reads its own, so that no register is known to be the same in all of them. */
static void write_code_operands(const struct device_code *code,
                                const struct instruction *instruction, struct strbuf *text)
{
    uint32_t bits = instruction->bits, count = code->chains * instruction->registers;
    strbuf_printf(text, "mul.wide.u32 at, lane, %d;\nadd.u64 in, in, at;\n",
                  CODE_LANE_WORDS * WORD_BYTES);
    for (uint32_t i = 0; i < 4; i++) {
        strbuf_printf(text, "ld.global.b%u a%u, [in+%u];\n", bits, i, (A_WORD + i) * WORD_BYTES);
        strbuf_printf(text, "ld.global.b%u b%u, [in+%u];\n", bits, i, (B_WORD + i) * WORD_BYTES);
    }
    strbuf_printf(text, "ld.global.b%u z, [in+%u];\n", bits, (CODE_LANE_WORDS - 1) * WORD_BYTES);
    for (uint32_t i = 0; i < count; i++)
        strbuf_printf(text, "ld.global.b%u r%u, [in+%u];\n", bits, i,
                      (R_WORD + i % 4) * WORD_BYTES);
}

/* Words of all blocks, one for each lane and chain. */
static size_t row_bytes(const struct device_code *code, uint32_t blocks)
{
    return (size_t)blocks * code->chains * code->warps * WARP_LANES * WORD_BYTES;
}

/* How many words a chain in global memory visits in turn: an SM is not equally far from all of L2,
 * so one word is no measure of all. */
static uint32_t ring_length(const struct device_code *code, const struct instruction *instruction,
                            uint32_t blocks)
{
    if (instruction->place != INSTRUCTION_GLOBAL_OWN &&
        instruction->place != INSTRUCTION_GLOBAL_WARP)
        return 1;
    size_t rows = RING_BYTES_MAX / row_bytes(code, blocks);
    return rows < 1 ? 1 : rows > RING_MAX ? RING_MAX : (uint32_t)rows;
}

/* Row by row: the word of a row holds the address of the same word of the next row. */
static void write_ring(uint32_t chain, size_t row, uint32_t length, struct strbuf *text)
{
    strbuf_printf(text, "ld.param.u64 r%u, [words];\nmad.wide.u32 r%u, i, 8, r%u;\n", chain, chain,
                  chain);
    for (uint32_t k = 0; k < length; k++)
        strbuf_printf(text, "add.u64 at, r%u, %zu;\nst.global.b64 [r%u+%zu], at;\n", chain,
                      (k + 1) % length * row, chain, k * row);
}

/* Each chain begins at a word that holds its own address, or that of the next word. */
static void write_places(const struct device_code *code, const struct instruction *instruction,
                         uint32_t blocks, struct strbuf *text)
{
    uint32_t length = ring_length(code, instruction, blocks);
    bool own = instruction->place == INSTRUCTION_SHARED_OWN ||
               instruction->place == INSTRUCTION_GLOBAL_OWN;
    bool shared = instruction->bits == 32;
    for (uint32_t c = 0; c < code->chains; c++) {
        if (instruction->place == INSTRUCTION_GLOBAL_ALL)
            strbuf_printf(text, "mov.u32 i, %u;\n", c * WARP_LANES);
        else {
            strbuf_printf(text, "mad.lo.u32 i, block, %u, %u;\n", shared ? 0 : code->chains, c);
            strbuf_printf(text, "mad.lo.u32 i, i, threads, id;\n");
            if (!own)
                strbuf_puts(text, "sub.u32 i, i, lane;\n");
        }
        if (shared)
            strbuf_printf(
                text, "mov.u32 r%u, own;\nmad.lo.u32 r%u, i, 4, r%u;\nst.shared.b32 [r%u], r%u;\n",
                c, c, c, c, c);
        else
            write_ring(c, row_bytes(code, blocks), length, text);
    }
    strbuf_puts(text, "membar.gl;\n");
}

/* $r0 becomes the first register of the chain; other names lose their $. */
static void write_instruction(const struct instruction *instruction, uint32_t chain,
                              struct strbuf *text)
{
    for (const char *at = instruction->text; *at;) {
        size_t plain = strcspn(at, "$");
        strbuf_printf(text, "%.*s", (int)plain, at);
        at += plain;
        if (at[0] == '$' && at[1] == 'r') {
            strbuf_printf(text, "r%u", chain * instruction->registers + (uint32_t)(at[2] - '0'));
            at += 3;
        } else if (at[0] == '$')
            at++;
    }
    strbuf_puts(text, "\n");
}

static void write_tail(const struct device_code *code, const struct instruction *instruction,
                       struct strbuf *text)
{
    strbuf_puts(text, "sub.u32 left, left, 1;\nsetp.ne.u32 more, left, 0;\n@more bra again;\n"
                      "mov.u64 end, %clock64;\n");
    /* The results are stored in a case that never is, so that the compiler keeps all of it. */
    strbuf_puts(text, "setp.eq.u32 never, asked, 0xffffffff;\n");
    for (uint32_t i = 0; i < code->chains * instruction->registers; i++)
        strbuf_printf(text, "@never st.global.b%u [in+%u], r%u;\n", instruction->bits,
                      i * WORD_BYTES, i);
    strbuf_printf(text, "mul.wide.u32 at, block, %zu;\nadd.u64 out, out, at;\n",
                  sizeof(struct code_result));
    strbuf_puts(text,
                "setp.ne.u32 p, lane, 0;\n@p ret;\nmov.u32 i, %smid;\n"
                "st.global.b32 [out], i;\nmul.wide.u32 at, warp, 8;\nadd.u64 out, out, at;\n");
    strbuf_printf(text, "st.global.b64 [out+%zu], begin;\nst.global.b64 [out+%zu], end;\nret;\n}\n",
                  offsetof(struct code_result, begin), offsetof(struct code_result, end));
}

void code_text_write(const struct device_code *code, const struct instruction *instruction,
                     const struct code_target *target, uint32_t blocks, struct strbuf *out_text)
{
    write_code_head(code, instruction, target, out_text);
    write_code_operands(code, instruction, out_text);
    if (instruction->place != INSTRUCTION_NOWHERE)
        write_places(code, instruction, blocks, out_text);
    strbuf_puts(out_text, "mov.u32 left, asked;\nbar.sync 0;\nmov.u64 begin, %clock64;\nagain:\n");
    for (uint32_t i = 0; i < code->length; i++)
        write_instruction(instruction, i % code->chains, out_text);
    write_tail(code, instruction, out_text);
}

size_t code_text_words(const struct device_code *code, const struct instruction *instruction,
                       uint32_t blocks)
{
    if (instruction->place < INSTRUCTION_GLOBAL_OWN)
        return WORD_BYTES;
    return ring_length(code, instruction, blocks) * row_bytes(code, blocks);
}

/* Straight code: one program serves all lengths. It is entered where so many instructions are left.
 */
enum { CHAINS = 8 };

/* Blocks without a job stay so long, so that every SM has one. */
enum { IDLE_CYCLES = 2000 };

/* The longest wait for the block of another job. */
enum { MEETING_CYCLES = 1000000 };

uint32_t code_text_straight_entry(uint32_t copy, uint32_t length)
{
    uint32_t i = 0, count = (uint32_t)device_straight_length_count(copy);
    while (i + 1 < count && device_straight_length(i) != length)
        i++;
    return copy ? (uint32_t)device_straight_length_count(0) + i : i;
}

/* The instructions before the label of a length are executed by longer ones only. */
static void write_copy(uint32_t copy, struct strbuf *text)
{
    uint32_t number = 0;
    for (size_t i = device_straight_length_count(copy); i-- > 0;) {
        uint32_t below = i ? device_straight_length(i - 1) : 0, length = device_straight_length(i);
        strbuf_printf(text, "entry%u:\n", code_text_straight_entry(copy, length));
        for (uint32_t k = below; k < length; k++, number++)
            strbuf_printf(text, "fma.rn.f32 r%u,r%u,a,b;\n", number % CHAINS, number % CHAINS);
    }
    strbuf_puts(text, "sub.u32 left, left, 1;\nsetp.ne.u32 more, left, 0;\n@more bra again;\n"
                      "bra done;\n");
}

static void write_straight_head(const struct code_target *target, struct strbuf *text)
{
    write_target(target, false, text);
    strbuf_puts(text, ".visible .entry straight(.param .u64 results, .param .u64 places,\n"
                      "    .param .u64 meeting, .param .u64 data)\n{\n");
    strbuf_printf(text,
                  ".reg .b32 r<%d>, a, b, id, lane, block, left, asked, entry, came, all;\n"
                  ".reg .b64 out, in, at, begin, end;\n"
                  ".reg .pred first, more, never, none, waits;\n",
                  CHAINS);
}

/* Leaves `entry` and `asked`; blocks without a job end here. */
static void write_claim(struct strbuf *text)
{
    strbuf_printf(text,
                  "ld.param.u64 out, [results];\nld.param.u64 at, [places];\n"
                  "mov.u32 block, %%ctaid.x;\nmul.wide.u32 begin, block, %zu;\n",
                  sizeof(struct straight_result));
    strbuf_puts(text, "add.u64 out, out, begin;\n"
                      "mov.u32 id, %smid;\nmul.wide.u32 begin, id, 8;\nadd.u64 at, at, begin;\n"
                      "mov.u32 lane, %laneid;\nsetp.eq.u32 first, lane, 0;\n"
                      "ld.global.b32 entry, [at];\nmov.u32 asked, 0;\n"
                      "@first atom.global.exch.b32 asked, [at+4], 0;\n"
                      "shfl.sync.idx.b32 asked, asked, 0, 31, 0xffffffff;\n"
                      "st.global.b32 [out+8], id;\nst.global.b32 [out+12], asked;\n"
                      "setp.ne.u32 none, asked, 0;\n@none bra work;\nmov.u64 begin, %clock64;\n");
    strbuf_printf(text,
                  "idle:\nmov.u64 end, %%clock64;\nsub.u64 end, end, begin;\n"
                  "setp.lt.u64 waits, end, %d;\n@waits bra idle;\nret;\nwork:\n",
                  IDLE_CYCLES);
}

static void write_meeting(struct strbuf *text)
{
    strbuf_puts(text, "ld.param.u64 at, [meeting];\nld.global.b32 all, [at+4];\n"
                      "@first red.global.add.u32 [at], 1;\nmov.u64 begin, %clock64;\n"
                      "wait:\nld.volatile.global.u32 came, [at];\n"
                      "setp.ge.u32 more, came, all;\n@more bra met;\n");
    strbuf_printf(text,
                  "mov.u64 end, %%clock64;\nsub.u64 end, end, begin;\n"
                  "setp.lt.u64 waits, end, %d;\n@waits bra wait;\n"
                  "st.global.b32 [out+12], 0;\nret;\nmet:\n",
                  MEETING_CYCLES);
}

static void write_straight_operands(struct strbuf *text)
{
    strbuf_printf(text,
                  "ld.param.u64 in, [data];\nmul.wide.u32 begin, lane, %d;\n"
                  "add.u64 in, in, begin;\n",
                  CODE_LANE_WORDS * WORD_BYTES);
    strbuf_printf(text, "ld.global.b32 a, [in];\nld.global.b32 b, [in+%d];\n", WORD_BYTES);
    for (uint32_t i = 0; i < CHAINS; i++)
        strbuf_printf(text, "ld.global.b32 r%u, [in+%u];\n", i, (2 + i) * WORD_BYTES);
}

/* The first pass is not timed: it brings the program into the caches. */
static void write_loop(struct strbuf *text)
{
    size_t entries = device_straight_length_count(0) + device_straight_length_count(1);
    strbuf_puts(text, "entries: .branchtargets ");
    for (size_t i = 0; i < entries; i++)
        strbuf_printf(text, "%sentry%zu", i ? "," : "", i);
    strbuf_puts(text, ";\nadd.u32 left, asked, 1;\nmov.u64 begin, %clock64;\nagain:\n"
                      "setp.ne.u32 first, left, asked;\n@first bra go;\n"
                      "mov.u64 begin, %clock64;\ngo:\nbrx.idx entry, entries;\n");
}

void code_text_write_straight(const struct code_target *target, struct strbuf *out_text)
{
    write_straight_head(target, out_text);
    write_claim(out_text);
    write_straight_operands(out_text);
    write_meeting(out_text);
    write_loop(out_text);
    for (uint32_t copy = 0; copy < DEVICE_STRAIGHT_COPIES; copy++)
        write_copy(copy, out_text);
    /* The results are stored in a case that never is, so that the compiler keeps all of it. */
    strbuf_puts(out_text, "done:\nmov.u64 end, %clock64;\nsetp.eq.u32 never, asked, 0xffffffff;\n");
    for (uint32_t i = 0; i < CHAINS; i++)
        strbuf_printf(out_text, "@never st.global.b32 [in+%u], r%u;\n", i * WORD_BYTES, i);
    strbuf_puts(out_text, "sub.u64 end, end, begin;\nst.global.b64 [out], end;\nret;\n}\n");
}

/* Jumping code. Block i goes on to block i + stride, as long as that is one of the first `n`; then
 * to the first block of the next residue class, from high to low. What follows a block in memory is
 * reached only if `away` is false, which the compiler cannot know: so it leaves the blocks where
 * they are. A block is CODE_BLOCK_BYTES long: 5 multiply-adds, a comparison, two branches. */
enum { BLOCK_FILL = 5, LAST_BLOCK_FILL = 7 };

static void write_block(const struct walk_text *walk, uint32_t i, struct strbuf *text)
{
    uint32_t next = i + walk->stride, class = i % walk->stride;
    strbuf_printf(text, "block%u:\n", i);
    for (uint32_t k = 0; k < (next < walk->blocks ? BLOCK_FILL : LAST_BLOCK_FILL); k++)
        strbuf_printf(text, "fma.rn.f32 r%u,r%u,a,b;\n", k, k);
    if (next < walk->blocks)
        strbuf_printf(text, "setp.gt.u32 on, entry, %u;\n@on bra.uni block%u;\n", next, next);
    if (class)
        strbuf_printf(text, "@away bra.uni block%u;\n", class - 1);
    else
        strbuf_puts(text, "@away bra.uni walked;\n");
}

/* Constants are loaded by an offset that every lane has by itself: the compiler must not make it a
 * uniform load. */
static void write_walk_constants(struct strbuf *text)
{
    strbuf_puts(text, "walked:\nmov.u64 end, %clock64;\nsub.u64 end, end, begin;\n"
                      "@timed add.u64 code, code, end;\nmov.u32 k, loads;\n"
                      "setp.eq.u32 more, k, 0;\n@more bra.uni over;\nmov.u64 begin, %clock64;\n"
                      "chase:\nld.const.u32 offset, [offset];\nsub.u32 k, k, 1;\n"
                      "setp.ne.u32 more, k, 0;\n@more bra.uni chase;\n"
                      "add.u32 a, a, offset;\nmov.u64 end, %clock64;\nsub.u64 end, end, begin;\n"
                      "@timed add.u64 constants, constants, end;\n"
                      "over:\nsub.u32 left, left, 1;\nsetp.ne.u32 more, left, 0;\n"
                      "@more bra.uni again;\n");
}

void code_text_write_walk(const struct code_target *target, const struct walk_text *walk,
                          struct strbuf *out_text)
{
    write_target(target, false, out_text);
    strbuf_puts(out_text, ".const .align 256 .b32 chain[16384];\n"
                          ".visible .entry walk(.param .u64 results, .param .u64 places,\n"
                          "    .param .u64 meeting, .param .u64 data, .param .u32 constant_loads)\n"
                          "{\n");
    strbuf_printf(out_text,
                  ".reg .b32 r<%d>, a, b, id, lane, block, left, asked, entry, offset, loads, k;\n"
                  ".reg .b64 out, in, at, begin, end, code, constants;\n"
                  ".reg .pred first, more, never, none, waits, on, away, timed;\n",
                  CHAINS);
    write_claim(out_text);
    write_straight_operands(out_text);
    strbuf_printf(out_text,
                  "ld.global.b32 offset, [in+%d];\nld.param.u32 loads, [constant_loads];\n",
                  (CODE_LANE_WORDS - 1) * WORD_BYTES);
    for (uint32_t i = 0; i < walk->padding; i++)
        strbuf_printf(out_text, "fma.rn.f32 r%u,r%u,a,b;\n", i % CHAINS, i % CHAINS);
    strbuf_printf(out_text,
                  "setp.ne.u32 away, asked, 0xffffffff;\nmov.u64 code, 0;\n"
                  "mov.u64 constants, 0;\nadd.u32 left, asked, 1;\nagain:\n"
                  "setp.le.u32 timed, left, asked;\nmov.u64 begin, %%clock64;\n"
                  "@away bra.uni block%u;\n",
                  walk->stride - 1);
    for (uint32_t i = 0; i < walk->blocks; i++)
        write_block(walk, i, out_text);
    write_walk_constants(out_text);
    strbuf_puts(out_text, "setp.eq.u32 never, asked, 0xffffffff;\n@never st.global.b32 [in], a;\n");
    for (uint32_t i = 0; i < CHAINS; i++)
        strbuf_printf(out_text, "@never st.global.b32 [in+%u], r%u;\n", i * WORD_BYTES, i);
    strbuf_printf(out_text,
                  "st.global.b64 [out], code;\nst.global.b64 [out+%zu], constants;\nret;\n}\n",
                  offsetof(struct straight_result, constant_cycles));
}
