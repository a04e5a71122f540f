/* Makes a trace from what NVBit's tool mem_trace printed. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "predict/trace/convert.h"
#include "predict/trace/nvbit_line.h"
#include "predict/trace/page.h"

enum { OPCODES_MAX = 1024 };

/* Offsets into shared memory are below this, addresses of global memory are not. */
static const uint64_t shared_end = UINT64_C(1) << 24;

/* Which launch an access belongs to. The tool numbers launches from 0, and old versions (1.5)
 * print the number of the next one in the line of a launch. */
struct launches {
    uint64_t count, first, last; /* printed ids */
    bool has_ids, shift_known;
    uint64_t shift; /* printed id of a launch - id of its accesses */
};

struct nvbit {
    const struct convert_request *request;
    struct convert_result *result;
    struct text_lines lines;
    struct trace_sorter *sorter;
    struct launches launches;
    bool chosen; /* result->head is the launch that is converted */
    bool pcs_known, any;
    char opcodes[OPCODES_MAX][NVBIT_OPCODE_MAX];
    uint32_t opcode_count;
};

static int take_launch(struct nvbit *n, const struct nvbit_line *parsed, const char *line,
                       struct err *err)
{
    struct launches *launches = &n->launches;
    if (launches->count && !n->request->has_launch)
        return text_lines_blame(&n->lines, line, line, err,
                                "a second launch begins (%.80s); choose one with --launch: 0, 1, "
                                "...",
                                parsed->head.name);
    launches->has_ids = parsed->has_id;
    launches->first = launches->count ? launches->first : parsed->id;
    launches->last = parsed->id;
    if (launches->count++ != (n->request->has_launch ? n->request->launch : 0))
        return 0;
    struct err wrong = {0};
    n->result->head = parsed->head;
    n->result->head.page_bytes = TRACE_PAGE_BYTES;
    snprintf(n->result->head.maker, sizeof n->result->head.maker, "nvbit");
    n->chosen = true;
    return trace_head_check(&n->result->head, &wrong)
               ? text_lines_blame(&n->lines, line, line, err, "%s", wrong.text)
               : 0;
}

static bool knows(const struct launches *launches, uint64_t id)
{
    return id >= launches->first && id <= launches->last;
}

/* The launch of an access, counted from 0. */
static uint64_t launch_of(struct launches *launches, const struct nvbit_line *parsed)
{
    if (!parsed->has_id || !launches->has_ids)
        return launches->count - 1;
    if (!launches->shift_known) {
        bool same = knows(launches, parsed->id), next = knows(launches, parsed->id + 1);
        launches->shift = next && (!same || launches->first == 1);
        launches->shift_known = true;
    }
    return parsed->id + launches->shift - launches->first;
}

/* Without a pc, the opcode stands for it. */
static uint64_t opcode_number(struct nvbit *n, const char *opcode)
{
    for (uint32_t i = 0; i < n->opcode_count; i++)
        if (strcmp(n->opcodes[i], opcode) == 0)
            return i;
    if (n->opcode_count == OPCODES_MAX)
        return OPCODES_MAX;
    memcpy(n->opcodes[n->opcode_count], opcode, NVBIT_OPCODE_MAX);
    return n->opcode_count++;
}

/* Lanes with address 0 are not active: so the tool prints them, which prints no mask. */
static uint32_t mask_of(const uint64_t addresses[WARP_LANES], uint64_t *out_highest)
{
    uint32_t mask = 0;
    *out_highest = 0;
    for (uint32_t lane = 0; lane < WARP_LANES; lane++) {
        mask |= (uint32_t)(addresses[lane] != 0) << lane;
        *out_highest = addresses[lane] > *out_highest ? addresses[lane] : *out_highest;
    }
    return mask;
}

static int add_access(struct nvbit *n, const struct nvbit_line *parsed, const char *line,
                      struct err *err)
{
    const struct trace_head *head = &n->result->head;
    struct opcode opcode = opcode_read(parsed->opcode);
    uint64_t highest;
    uint32_t mask = mask_of(parsed->addresses, &highest);
    const uint32_t *cta = parsed->cta, *grid = head->grid;
    if (cta[0] >= grid[0] || cta[1] >= grid[1] || cta[2] >= grid[2])
        return text_lines_blame(&n->lines, line, line, err,
                                "expected a block of the grid %u,%u,%u, not %u,%u,%u", grid[0],
                                grid[1], grid[2], cta[0], cta[1], cta[2]);
    bool copies = opcode.space == OPCODE_COPY && highest >= shared_end;
    if (!mask || (opcode.space != OPCODE_GLOBAL && !copies)) {
        n->result->skipped[mask ? opcode.space : OPCODE_OTHER]++;
        return 0;
    }
    struct warp_access access = {
        .store = opcode.store, .listed = true, .mask = mask, .bytes = opcode.bytes};
    memcpy(access.addresses, parsed->addresses, sizeof access.addresses);
    uint32_t block = (cta[2] * grid[1] + cta[1]) * grid[0] + cta[0];
    uint64_t pc = parsed->has_pc ? parsed->pc : opcode_number(n, parsed->opcode);
    n->pcs_known = (n->pcs_known || !n->any) && parsed->has_pc;
    n->any = true;
    struct err wrong = {0};
    int rc = trace_sorter_add(n->sorter, block, parsed->warp, &access, pc, &wrong);
    if (rc == -EINVAL)
        return text_lines_blame(&n->lines, line, line, err, "%s: %s", parsed->opcode, wrong.text);
    if (rc)
        *err = wrong;
    return rc;
}

static int take_access(struct nvbit *n, const struct nvbit_line *parsed, const char *line,
                       struct err *err)
{
    uint64_t wanted = n->request->has_launch ? n->request->launch : 0;
    if (!n->launches.count)
        return text_lines_blame(&n->lines, line, line, err,
                                "expected the line of a launch (grid size, block size) before the "
                                "first access");
    if (launch_of(&n->launches, parsed) == wanted && n->chosen)
        return add_access(n, parsed, line, err);
    n->result->other_launches++;
    return 0;
}

static int read_lines(struct nvbit *n, struct err *err)
{
    char *line;
    int rc;
    while ((rc = text_lines_next(&n->lines, &line, err)) == 1) {
        struct nvbit_line parsed;
        const char *at, *expected;
        if (nvbit_line_read(line, &parsed, &at, &expected))
            rc = text_lines_blame(&n->lines, line, at, err, "expected %s", expected);
        else if (parsed.kind == NVBIT_LAUNCH)
            rc = take_launch(n, &parsed, line, err);
        else
            rc = parsed.kind == NVBIT_ACCESS ? take_access(n, &parsed, line, err) : 0;
        if (rc)
            return rc;
    }
    if (!rc && !n->chosen)
        rc = err_set_at(err, -EINVAL, n->lines.name, 0, 0,
                        n->launches.count ? "it has %llu launches; --launch counts from 0"
                                          : "expected the lines of NVBit's mem_trace, found %llu",
                        (unsigned long long)n->launches.count);
    return rc;
}

int convert_nvbit(const struct convert_request *request, struct convert_result *out_result,
                  struct err *err)
{
    struct nvbit *n = mem_array(1, sizeof *n);
    if (!n)
        return err_no_memory(err);
    memset(out_result, 0, sizeof *out_result);
    n->request = request;
    n->result = out_result;
    int rc = text_lines_open(&n->lines, request->in, err);
    rc = rc ? rc : trace_sorter_create(request->out, request->sort_bytes, &n->sorter, err);
    rc = rc ? rc : read_lines(n, err);
    out_result->head.has_pc = n->pcs_known;
    /* The tool prints the number of a warp on its SM, not within its block. */
    rc = rc ? rc : convert_write(request, n->sorter, true, out_result, err);
    trace_sorter_destroy(n->sorter);
    text_lines_close(&n->lines);
    free(n);
    return rc;
}
