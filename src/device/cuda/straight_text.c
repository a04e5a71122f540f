/* One program serves all lengths: it is entered where so many instructions are left. */
#include "device/cuda/straight_text.h"

#include "device/cuda/code_text.h"

enum { CHAINS = 8, WORD_BYTES = 8, NEWEST_TARGET = 90 };

/* Blocks without a job stay so long, so that every SM has one. */
enum { IDLE_CYCLES = 2000 };

/* The longest wait for the block of another job. */
enum { MEETING_CYCLES = 1000000 };

uint32_t straight_text_entry(uint32_t copy, uint32_t length)
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
        strbuf_printf(text, "entry%u:\n", straight_text_entry(copy, length));
        for (uint32_t k = below; k < length; k++, number++)
            strbuf_printf(text, "fma.rn.f32 r%u,r%u,a,b;\n", number % CHAINS, number % CHAINS);
    }
    strbuf_puts(text, "sub.u32 left, left, 1;\nsetp.ne.u32 more, left, 0;\n@more bra again;\n"
                      "bra done;\n");
}

static void write_head(uint32_t capability, struct strbuf *text)
{
    strbuf_printf(text, ".version 7.8\n.target sm_%u\n.address_size 64\n",
                  capability < NEWEST_TARGET ? capability : NEWEST_TARGET);
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
    strbuf_puts(text, "ld.param.u64 out, [results];\nld.param.u64 at, [places];\n"
                      "mov.u32 block, %ctaid.x;\nmul.wide.u32 begin, block, 16;\n"
                      "add.u64 out, out, begin;\n"
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

static void write_operands(struct strbuf *text)
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

void straight_text_write(uint32_t capability, struct strbuf *out_text)
{
    write_head(capability, out_text);
    write_claim(out_text);
    write_operands(out_text);
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
