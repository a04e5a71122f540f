/* Makes traces from what the tool mem_trace of NVBit prints. */
#include "predict/trace/convert_nvbit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "predict/trace/convert.h"
#include "predict/trace/page.h"

static const char separator[] = " - ";

/* Where something behind `key` begins; NULL: the text does not begin so. */
static const char *behind(const char *text, const char *key)
{
    size_t length = strlen(key);
    return strncmp(text, key, length) == 0 ? text + length : NULL;
}

static bool nvbit_read_number(const char **at, int base, uint64_t max, uint64_t *out_value)
{
    char *end;
    if (**at < '0' || **at > '9')
        return false;
    errno = 0;
    unsigned long long value = strtoull(*at, &end, base);
    if (errno || value > max)
        return false;
    *at = end;
    *out_value = value;
    return true;
}

static bool read_three(const char **at, uint32_t out[3])
{
    for (int i = 0; i < 3; i++) {
        uint64_t value;
        if (i && **at != ',')
            return false;
        *at += i > 0;
        if (!nvbit_read_number(at, 10, UINT32_MAX, &value))
            return false;
        out[i] = (uint32_t)value;
    }
    return true;
}

static bool nvbit_read_addresses(const char **at, uint64_t addresses[WARP_LANES])
{
    for (int i = 0; i < WARP_LANES; i++) {
        *at += strspn(*at, " ");
        if (!behind(*at, "0x") || !nvbit_read_number(at, 16, UINT64_MAX, &addresses[i]))
            return false;
    }
    *at += strspn(*at, " ");
    return !**at;
}

/* The opcode, and its address if there is one behind it. */
static bool read_opcode(const char **at, struct nvbit_line *line)
{
    size_t length = strcspn(*at, " :");
    if (!length || length >= sizeof line->opcode)
        return false;
    memcpy(line->opcode, *at, length);
    line->opcode[length] = '\0';
    *at += length;
    const char *number = behind(*at, " 0x") ? *at + 1 : NULL;
    if (number) {
        line->has_pc = nvbit_read_number(&number, 16, UINT64_MAX, &line->pc);
        *at = number;
    }
    return true;
}

/* Fields of an access. */
enum field { CTA = 1, WARP = 2, OPCODE = 4, ADDRESSES = 8, ALL = 15 };

/* One field; *seen: those so far. NULL: it was as expected. */
static const char *nvbit_read_field(const char **at, struct nvbit_line *line, unsigned *seen)
{
    const char *value;
    uint64_t number;
    if ((value = behind(*at, "CTA ")) || (value = behind(*at, "block "))) {
        *seen |= CTA;
        *at = value;
        return read_three(at, line->cta) ? NULL : "three numbers: x,y,z";
    }
    if ((value = behind(*at, "warp "))) {
        *seen |= WARP;
        *at = value;
        bool good = nvbit_read_number(at, 10, UINT32_MAX, &number);
        line->warp = good ? (uint32_t)number : 0;
        return good ? NULL : "the number of a warp";
    }
    if ((value = behind(*at, "grid_launch_id ")) || (value = behind(*at, "kernel_launch_id "))) {
        *at = value;
        line->has_id = nvbit_read_number(at, 10, UINT64_MAX, &line->id);
        return line->has_id ? NULL : "the number of a launch";
    }
    if ((value = behind(*at, "PC "))) {
        *at = value;
        line->has_pc = nvbit_read_number(at, behind(*at, "0x") ? 16 : 10, UINT64_MAX, &line->pc);
        return line->has_pc ? NULL : "an address";
    }
    if ((value = behind(*at, "CTX "))) {
        *at = value + strcspn(value, " ");
        return NULL;
    }
    if (behind(*at, "0x")) {
        *seen |= ADDRESSES;
        return nvbit_read_addresses(at, line->addresses) ? NULL : "32 addresses: 0x...";
    }
    *seen |= OPCODE;
    return read_opcode(at, line) ? NULL : "an opcode";
}

static const char *read_access(const char **at, struct nvbit_line *line)
{
    unsigned seen = 0;
    for (;;) {
        const char *expected = nvbit_read_field(at, line, &seen);
        if (expected)
            return expected;
        if (!**at)
            return seen == ALL ? NULL : "block, warp, opcode and 32 addresses";
        if (!behind(*at, separator))
            return "\" - \" between fields";
        *at += sizeof separator - 1;
    }
}

/* Goes behind the next field that begins with `key`; NULL: there is none. */
static const char *find_field(const char *text, const char *key)
{
    for (const char *at = text; (at = strstr(at, separator)); at++) {
        const char *value = behind(at + sizeof separator - 1, key);
        if (value)
            return value;
    }
    return NULL;
}

static void read_name(const char *text, struct trace_head *head)
{
    static const char *const ends[] = {"grid launch id ", "PC ", "grid size "};
    const char *stop = text + strlen(text);
    for (size_t i = 0; i < COUNT_OF(ends); i++) {
        const char *found = find_field(text, ends[i]);
        if (found && found - strlen(ends[i]) < stop)
            stop = found - strlen(ends[i]);
    }
    size_t length = (size_t)(stop - text);
    length = length >= sizeof separator - 1 ? length - (sizeof separator - 1) : length;
    length = length < sizeof head->name ? length : sizeof head->name - 1;
    memcpy(head->name, text, length);
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)head->name[i] < ' ' || head->name[i] == 0x7f)
            head->name[i] = '?';
}

static const char *read_launch(const char **at, const char *name, struct nvbit_line *line)
{
    struct trace_head *head = &line->head;
    const char *start = *at, *shmem = find_field(start, "shmem ");
    const char *registers = find_field(start, "nregs "), *id = find_field(start, "grid launch id ");
    uint64_t number;
    if (!(*at = find_field(start, "grid size ")) || !read_three(at, head->grid))
        return *at = *at ? *at : start, "the size of the grid: x,y,z";
    if (!(*at = find_field(start, "block size ")) || !read_three(at, head->block))
        return *at = *at ? *at : start, "the size of a block: x,y,z";
    if (shmem && nvbit_read_number(&shmem, 10, UINT32_MAX, &number))
        head->shared_bytes = number;
    if (registers && nvbit_read_number(&registers, 10, UINT32_MAX, &number))
        head->registers = (uint32_t)number;
    line->has_id = id && nvbit_read_number(&id, 10, UINT64_MAX, &line->id);
    read_name(name, head);
    return NULL;
}

/* Where the name of the kernel begins, if this tells a launch. */
static const char *name_of_launch(const char *text, bool marked)
{
    const char *name = find_field(text, "Kernel name ");
    if (name && find_field(text, "LAUNCH"))
        return name;
    name = behind(text, "Kernel ");
    if (!name || behind(name, "name ") || !(marked || find_field(name, "grid size ")))
        return NULL;
    return name;
}

int nvbit_line_read(const char *line, struct nvbit_line *out_line, const char **out_at,
                    const char **out_expected)
{
    static const char mark[] = "MEMTRACE: ";
    const char *marked = strstr(line, mark), *text = marked ? marked + sizeof mark - 1 : line;
    memset(out_line, 0, sizeof *out_line);
    *out_at = text;
    *out_expected = NULL;
    const char *name = name_of_launch(text, marked);
    bool access =
        behind(text, "CTA ") || find_field(text, "CTA ") || (marked && find_field(text, "block "));
    if (name) {
        out_line->kind = NVBIT_LAUNCH;
        *out_expected = read_launch(out_at, name, out_line);
    } else if (access && (find_field(text, "warp ") || marked)) {
        out_line->kind = NVBIT_ACCESS;
        *out_expected = read_access(out_at, out_line);
    }
    return *out_expected ? -EINVAL : 0;
}

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
static uint32_t nvbit_mask(const uint64_t addresses[WARP_LANES], uint64_t *out_highest)
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
    uint32_t mask = nvbit_mask(parsed->addresses, &highest);
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

static int nvbit_read_lines(struct nvbit *n, struct err *err)
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
    memset(out_result, 0, sizeof *out_result);
    n->request = request;
    n->result = out_result;
    int rc = text_lines_open(&n->lines, request->in, err);
    if (!rc)
        n->sorter = trace_sorter_create(request->out, request->sort_bytes);
    rc = rc ? rc : nvbit_read_lines(n, err);
    out_result->head.has_pc = n->pcs_known;
    /* The tool prints the number of a warp on its SM, not within its block. */
    rc = rc ? rc : convert_write(request, n->sorter, true, out_result, err);
    trace_sorter_destroy(n->sorter);
    text_lines_close(&n->lines);
    free(n);
    return rc;
}
