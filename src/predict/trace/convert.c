/* Makes traces from text: lines of CSV, and what is common to all texts. */
#include "predict/trace/convert.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "predict/trace/page.h"
#include "predict/trace/trace_write.h"

static const struct {
    const char *name;
    enum opcode_space space;
    uint32_t store;
} instructions[] = {
    {"LDG", OPCODE_GLOBAL, 0},  {"LD", OPCODE_GLOBAL, 0},   {"STG", OPCODE_GLOBAL, 1},
    {"ST", OPCODE_GLOBAL, 1},   {"ATOM", OPCODE_GLOBAL, 1}, {"ATOMG", OPCODE_GLOBAL, 1},
    {"RED", OPCODE_GLOBAL, 1},  {"REDG", OPCODE_GLOBAL, 1}, {"LDGSTS", OPCODE_COPY, 0},
    {"LDS", OPCODE_SHARED, 0},  {"STS", OPCODE_SHARED, 1},  {"ATOMS", OPCODE_SHARED, 1},
    {"LDSM", OPCODE_SHARED, 0}, {"STSM", OPCODE_SHARED, 1}, {"REDS", OPCODE_SHARED, 1},
    {"LDL", OPCODE_LOCAL, 0},   {"STL", OPCODE_LOCAL, 1},
};

/* Words that tell the size; without one an element has four bytes. */
static const struct {
    const char *word;
    uint32_t bytes;
} sizes[] = {
    {"U8", 1},  {"S8", 1},  {"U16", 2}, {"S16", 2},  {"64", 8},
    {"F64", 8}, {"U64", 8}, {"S64", 8}, {"128", 16}, {"256", 32},
};

static uint32_t size_of(const char *words)
{
    while (*words) {
        size_t length = strcspn(words, ".");
        for (size_t i = 0; i < COUNT_OF(sizes); i++)
            if (strlen(sizes[i].word) == length && strncmp(sizes[i].word, words, length) == 0)
                return sizes[i].bytes;
        words += length + (words[length] == '.');
    }
    return 4;
}

struct opcode opcode_read(const char *name)
{
    size_t length = strcspn(name, ".");
    struct opcode opcode = {.space = OPCODE_OTHER, .bytes = size_of(name)};
    for (size_t i = 0; i < COUNT_OF(instructions); i++) {
        if (strlen(instructions[i].name) != length ||
            strncmp(instructions[i].name, name, length) != 0)
            continue;
        opcode.space = instructions[i].space;
        opcode.store = instructions[i].store;
    }
    return opcode;
}

const char *opcode_space_name(enum opcode_space space)
{
    static const char *const names[OPCODE_SPACES] = {
        [OPCODE_GLOBAL] = "global memory",     [OPCODE_COPY] = "shared side of copies",
        [OPCODE_SHARED] = "shared memory",     [OPCODE_LOCAL] = "local memory",
        [OPCODE_OTHER] = "other instructions",
    };
    return names[space];
}

int text_lines_open(struct text_lines *lines, const char *path, struct err *err)
{
    bool standard = strcmp(path, "-") == 0;
    *lines = (struct text_lines){.name = standard ? "(standard input)" : path};
    lines->fd = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (lines->fd < 0)
        return err_set_at(err, -errno, path, 0, 0, "cannot open: %s", strerror(errno));
    lines->buffer = mem_array(1, TEXT_LINE_MAX + 1);
    return 0;
}

void text_lines_close(struct text_lines *lines)
{
    if (lines->fd > STDERR_FILENO)
        close(lines->fd);
    free(lines->buffer);
    *lines = (struct text_lines){.fd = -1};
}

static int text_lines_refill(struct text_lines *lines, struct err *err)
{
    memmove(lines->buffer, lines->buffer + lines->used, lines->length - lines->used);
    lines->length -= lines->used;
    lines->used = 0;
    for (;;) {
        ssize_t got = read(lines->fd, lines->buffer + lines->length, TEXT_LINE_MAX - lines->length);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return err_set_at(err, -EIO, lines->name, 0, 0, "cannot read: %s", strerror(errno));
        lines->ended = got == 0;
        lines->length += (size_t)got;
        return 0;
    }
}

/* Leaves out the rest of a line of which the beginning fills the buffer. */
static int skip_rest(struct text_lines *lines, struct err *err)
{
    static const size_t kept = TEXT_LINE_MAX / 2;
    for (;;) {
        char *end = memchr(lines->buffer + kept, '\n', lines->length - kept);
        if (end || lines->ended) {
            size_t next = end ? (size_t)(end - lines->buffer) : lines->length;
            size_t left = lines->length - next;
            memmove(lines->buffer + kept, lines->buffer + next, left);
            lines->length = kept + left;
            lines->used = 0;
            return 0;
        }
        lines->length = kept;
        ssize_t got = read(lines->fd, lines->buffer + kept, TEXT_LINE_MAX - kept);
        if (got < 0 && errno != EINTR)
            return err_set_at(err, -EIO, lines->name, 0, 0, "cannot read: %s", strerror(errno));
        lines->ended = got == 0;
        lines->length += got > 0 ? (size_t)got : 0;
    }
}

static char *find_end(const struct text_lines *lines)
{
    return lines->length > lines->used
               ? memchr(lines->buffer + lines->used, '\n', lines->length - lines->used)
               : NULL;
}

int text_lines_next(struct text_lines *lines, char **out_line, struct err *err)
{
    char *end;
    while (!(end = find_end(lines)) && !lines->ended) {
        bool full = lines->length - lines->used == TEXT_LINE_MAX;
        int rc = full ? skip_rest(lines, err) : text_lines_refill(lines, err);
        if (rc)
            return rc;
    }
    if (!end && lines->used == lines->length)
        return 0;
    char *line = lines->buffer + lines->used;
    if (!lines->line && lines->length >= 3 && memcmp(line, "\xef\xbb\xbf", 3) == 0)
        line += 3; /* the mark that editors of Windows put before UTF-8 */
    char *stop = end ? end : lines->buffer + lines->length;
    lines->used = (size_t)(stop - lines->buffer) + (end != NULL);
    for (char *at = line; (at = memchr(at, '\0', (size_t)(stop - at))); at++)
        *at = '?';
    *stop = '\0';
    if (stop > line && stop[-1] == '\r')
        stop[-1] = '\0';
    lines->line += lines->line < INT_MAX;
    *out_line = line;
    return 1;
}

int text_lines_blame(const struct text_lines *lines, const char *line, const char *at,
                     struct err *err, const char *format, ...)
{
    char text[ERR_TEXT_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return err_set_at(err, -EINVAL, lines->name, lines->line, (int)(at - line) + 1, "%s", text);
}

struct writing {
    struct trace_writer *writer;
    bool ranked, begun;
    uint32_t block, warp, rank, warps;
};

static int write_access(void *context, uint32_t block, uint32_t warp,
                        const struct warp_access *access, uint64_t pc, struct err *err)
{
    struct writing *w = context;
    if (!w->begun || block != w->block)
        w->rank = 0;
    else
        w->rank += warp != w->warp;
    w->begun = true;
    w->block = block;
    w->warp = warp;
    if (w->ranked && w->rank >= w->warps)
        return err_set(err, -EINVAL, "block %u: expected at most %u warps, as its size says", block,
                       w->warps);
    return trace_writer_add(w->writer, block, w->ranked ? w->rank : warp, access, pc, err);
}

static int nothing_to_write(const struct convert_request *request,
                            const struct convert_result *result, struct err *err)
{
    char text[160] = "";
    for (int i = 0; i < OPCODE_SPACES; i++) {
        size_t length = strlen(text);
        if (result->skipped[i])
            snprintf(text + length, sizeof text - length, "%s%llu (%s)", length ? ", " : "",
                     (unsigned long long)result->skipped[i],
                     opcode_space_name((enum opcode_space)i));
    }
    size_t length = strlen(text);
    if (result->other_launches)
        snprintf(text + length, sizeof text - length, "%s%llu (other launches)", length ? ", " : "",
                 (unsigned long long)result->other_launches);
    return err_set_at(err, -EINVAL, request->in, 0, 0,
                      "expected at least one load or store of global memory; left out: %s",
                      text[0] ? text : "nothing");
}

int convert_write(const struct convert_request *request, struct trace_sorter *sorter, bool ranked,
                  struct convert_result *result, struct err *err)
{
    struct writing w = {.ranked = ranked, .warps = trace_head_warps(&result->head)};
    result->head.page_bytes = request->page_bytes ? request->page_bytes : TRACE_PAGE_BYTES;
    if (trace_sorter_is_empty(sorter))
        return nothing_to_write(request, result, err);
    int rc = trace_writer_create(request->out, &result->head, &w.writer, err);
    rc = rc ? rc : trace_sorter_drain(sorter, write_access, &w, err);
    rc = rc ? rc : trace_writer_finish(w.writer, &result->totals, err);
    trace_writer_destroy(w.writer);
    return rc;
}

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
static bool csv_read_number(struct place *place, uint64_t max, const char *what,
                            uint64_t *out_value)
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

static bool csv_read_shape(struct place *place, uint32_t out_shape[3])
{
    for (int i = 0; i < 3; i++) {
        uint64_t value = 1;
        bool there = i == 0 || *place->at == ',';
        place->at += i > 0 && there;
        if (there && !csv_read_number(place, UINT32_MAX, "one to three numbers: x,y,z", &value))
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
        csv_read_shape(place, key == 1 ? head->grid : head->block);
    else if (csv_read_number(place, UINT32_MAX, "a number", &value) && key == 3)
        head->shared_bytes = value;
    else
        head->registers = (uint32_t)value;
    if (key && !place->expected && place->at[strspn(place->at, " ")])
        place->expected = "the end of the line";
}

static void csv_read_addresses(struct place *place, struct warp_access *access)
{
    for (uint32_t rest = access->mask; rest; rest &= rest - 1) {
        place->at += strspn(place->at, " ");
        if (!csv_read_number(place, TRACE_ADDRESS_END - 1,
                             "an address below 2^56 for each active lane",
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
    if (!csv_read_number(place, trace_head_blocks(head) - 1, "the number of a block in the grid",
                         block) ||
        !read_comma(place) ||
        !csv_read_number(place, trace_head_warps(head) - 1, "the number of a warp in the block",
                         warp) ||
        !read_comma(place) || !csv_read_number(place, UINT64_MAX, "a pc", pc) || !read_comma(place))
        return;
    read_operation(place, access);
    if (place->expected || !read_comma(place) ||
        !csv_read_number(place, 32, "bytes of an element: 1, 2, 4, 8, 16 or 32", &bytes) ||
        !read_comma(place) || !csv_read_number(place, UINT32_MAX, "a mask of 32 lanes", &mask) ||
        !read_comma(place))
        return;
    access->bytes = (uint32_t)bytes;
    access->mask = (uint32_t)mask;
    access->listed = true;
    if (!mask || !bytes || bytes & (bytes - 1))
        place->expected = mask ? "bytes that are a power of two" : "a mask with a lane";
    else
        csv_read_addresses(place, access);
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

static int csv_read_lines(struct csv *csv, struct err *err)
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
    if (!rc)
        csv.sorter = trace_sorter_create(request->out, request->sort_bytes);
    rc = rc ? rc : csv_read_lines(&csv, err);
    rc = rc ? rc : convert_write(request, csv.sorter, false, out_result, err);
    trace_sorter_destroy(csv.sorter);
    text_lines_close(&csv.lines);
    return rc;
}
