/* Makes a trace from a plain CSV. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "predict/trace/convert.h"
#include "predict/trace/page.h"

static const char columns[] = "block,warp,pc,op,bytes,mask,addresses";

struct csv {
    struct convert_result *result;
    struct text_lines lines;
    struct trace_sorter *sorter;
    bool begun; /* the line with the columns was there */
};

/* A place in a line, and what was expected there. */
struct place {
    const char *at, *expected;
};

/* Decimal or 0x; a leading zero does not make a number octal. */
static bool read_number(struct place *place, uint64_t max, const char *what, uint64_t *out_value)
{
    char *end = NULL;
    errno = 0;
    bool hexadecimal = place->at[0] == '0' && (place->at[1] == 'x' || place->at[1] == 'X');
    unsigned long long value = *place->at >= '0' && *place->at <= '9'
                                   ? strtoull(place->at, &end, hexadecimal ? 16 : 10)
                                   : 0;
    if (!end || errno || value > max) {
        place->expected = what;
        return false;
    }
    place->at = end;
    *out_value = value;
    return true;
}

static bool read_comma(struct place *place)
{
    if (*place->at != ',') {
        place->expected = "a comma";
        return false;
    }
    place->at++;
    return true;
}

static bool read_shape(struct place *place, uint32_t out_shape[3])
{
    for (int i = 0; i < 3; i++) {
        uint64_t value = 1;
        bool there = i == 0 || *place->at == ',';
        place->at += i > 0 && there;
        if (there && !read_number(place, UINT32_MAX, "one to three numbers: x,y,z", &value))
            return false;
        out_shape[i] = (uint32_t)value;
    }
    return true;
}

/* "# key: value"; other keys are comments. */
static void read_note(struct place *place, struct trace_head *head)
{
    static const char *const keys[] = {"name:", "grid:", "block:", "shared_bytes:", "registers:"};
    uint64_t value = 0;
    size_t key = 0;
    place->at += 1 + strspn(place->at + 1, " ");
    while (key < COUNT_OF(keys) && strncmp(place->at, keys[key], strlen(keys[key])) != 0)
        key++;
    if (key == COUNT_OF(keys))
        return;
    place->at += strlen(keys[key]);
    place->at += strspn(place->at, " ");
    if (key == 0)
        snprintf(head->name, sizeof head->name, "%s", place->at);
    else if (key < 3)
        read_shape(place, key == 1 ? head->grid : head->block);
    else if (read_number(place, UINT32_MAX, "a number", &value) && key == 3)
        head->shared_bytes = value;
    else
        head->registers = (uint32_t)value;
    if (key && !place->expected && place->at[strspn(place->at, " ")])
        place->expected = "the end of the line";
}

static void read_addresses(struct place *place, struct warp_access *access)
{
    for (uint32_t rest = access->mask; rest; rest &= rest - 1) {
        place->at += strspn(place->at, " ");
        if (!read_number(place, TRACE_ADDRESS_END - 1, "an address below 2^56 for each active lane",
                         &access->addresses[__builtin_ctz(rest)]))
            return;
    }
    place->at += strspn(place->at, " ");
    if (*place->at)
        place->expected = "no more addresses than active lanes";
}

static void read_operation(struct place *place, struct warp_access *access)
{
    size_t length = strcspn(place->at, ",");
    access->store = length == 5 && strncmp(place->at, "store", 5) == 0;
    if (!access->store && (length != 4 || strncmp(place->at, "load", 4) != 0))
        place->expected = "load or store";
    else
        place->at += length;
}

static void read_row(struct place *place, const struct trace_head *head, uint64_t *block,
                     uint64_t *warp, uint64_t *pc, struct warp_access *access)
{
    uint64_t bytes, mask;
    if (!read_number(place, trace_head_blocks(head) - 1, "the number of a block in the grid",
                     block) ||
        !read_comma(place) ||
        !read_number(place, trace_head_warps(head) - 1, "the number of a warp in the block",
                     warp) ||
        !read_comma(place) || !read_number(place, UINT64_MAX, "a pc", pc) || !read_comma(place))
        return;
    read_operation(place, access);
    if (place->expected || !read_comma(place) ||
        !read_number(place, 32, "bytes of an element: 1, 2, 4, 8, 16 or 32", &bytes) ||
        !read_comma(place) || !read_number(place, UINT32_MAX, "a mask of 32 lanes", &mask) ||
        !read_comma(place))
        return;
    access->bytes = (uint32_t)bytes;
    access->mask = (uint32_t)mask;
    access->listed = true;
    if (!mask || !bytes || bytes & (bytes - 1))
        place->expected = mask ? "bytes that are a power of two" : "a mask with a lane";
    else
        read_addresses(place, access);
}

static int begin_rows(struct csv *csv, const char *line, struct err *err)
{
    struct err wrong = {0};
    csv->begun = true;
    if (strcmp(line, columns) != 0)
        return text_lines_blame(&csv->lines, line, line, err, "expected the columns %s", columns);
    if (trace_head_check(&csv->result->head, &wrong))
        return text_lines_blame(&csv->lines, line, line, err,
                                "%s; lines such as \"# grid: 64,1,1\" and \"# block: 256,1,1\" "
                                "stand before the columns",
                                wrong.text);
    return 0;
}

static int take_row(struct csv *csv, const char *line, struct err *err)
{
    struct place place = {line, NULL};
    struct warp_access access = {0};
    uint64_t block = 0, warp = 0, pc = 0;
    struct err wrong = {0};
    read_row(&place, &csv->result->head, &block, &warp, &pc, &access);
    if (place.expected)
        return text_lines_blame(&csv->lines, line, place.at, err, "expected %s", place.expected);
    int rc = trace_sorter_add(csv->sorter, (uint32_t)block, (uint32_t)warp, &access, pc, &wrong);
    if (rc == -EINVAL)
        return text_lines_blame(&csv->lines, line, line, err, "%s", wrong.text);
    if (rc)
        *err = wrong;
    return rc;
}

static int read_lines(struct csv *csv, struct err *err)
{
    char *line;
    int rc;
    while ((rc = text_lines_next(&csv->lines, &line, err)) == 1) {
        struct place place = {line, NULL};
        if (!*line)
            continue;
        if (*line == '#' && !csv->begun)
            read_note(&place, &csv->result->head);
        if (place.expected)
            rc = text_lines_blame(&csv->lines, line, place.at, err, "expected %s", place.expected);
        else if (*line == '#')
            rc = 0;
        else
            rc = csv->begun ? take_row(csv, line, err) : begin_rows(csv, line, err);
        if (rc)
            return rc;
    }
    if (!rc && !csv->begun)
        rc = err_set_at(err, -EINVAL, csv->lines.name, 0, 0, "expected the columns %s", columns);
    return rc;
}

int convert_csv(const struct convert_request *request, struct convert_result *out_result,
                struct err *err)
{
    struct csv csv = {.result = out_result};
    memset(out_result, 0, sizeof *out_result);
    struct trace_head *head = &out_result->head;
    snprintf(head->name, sizeof head->name, "%s", str_last_part(request->in));
    snprintf(head->maker, sizeof head->maker, "csv");
    head->has_pc = true;
    head->page_bytes = TRACE_PAGE_BYTES;
    if (request->has_launch)
        return err_set(err, -EINVAL, "--launch is for nvbit: a CSV has one launch");
    int rc = text_lines_open(&csv.lines, request->in, err);
    rc = rc ? rc : trace_sorter_create(request->out, request->sort_bytes, &csv.sorter, err);
    rc = rc ? rc : read_lines(&csv, err);
    rc = rc ? rc : convert_write(request, csv.sorter, false, out_result, err);
    trace_sorter_destroy(csv.sorter);
    text_lines_close(&csv.lines);
    return rc;
}
