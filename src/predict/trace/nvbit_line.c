/* Reads lines of mem_trace. All its versions print fields with " - " between them:
 *   [MEMTRACE: CTX 0x... - grid_launch_id N - ]CTA x,y,z - warp w - LDG.E - 0x... (32 addresses)
 *   [MEMTRACE: CTX 0x... - LAUNCH - ]Kernel [pc 0x... - Kernel name ]NAME[ - grid launch id N] -
 *   grid size x,y,z - block size x,y,z - nregs n - shmem n - cuda stream id n */
#include "predict/trace/nvbit_line.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static const char separator[] = " - ";

/* Where something behind `key` begins; NULL: the text does not begin so. */
static const char *behind(const char *text, const char *key)
{
    size_t length = strlen(key);
    return strncmp(text, key, length) == 0 ? text + length : NULL;
}

static bool read_number(const char **at, int base, uint64_t max, uint64_t *out_value)
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
        if (!read_number(at, 10, UINT32_MAX, &value))
            return false;
        out[i] = (uint32_t)value;
    }
    return true;
}

static bool read_addresses(const char **at, uint64_t addresses[WARP_LANES])
{
    for (int i = 0; i < WARP_LANES; i++) {
        *at += strspn(*at, " ");
        if (!behind(*at, "0x") || !read_number(at, 16, UINT64_MAX, &addresses[i]))
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
        line->has_pc = read_number(&number, 16, UINT64_MAX, &line->pc);
        *at = number;
    }
    return true;
}

/* Fields of an access. */
enum field { CTA = 1, WARP = 2, OPCODE = 4, ADDRESSES = 8, ALL = 15 };

/* One field; *seen: those so far. NULL: it was as expected. */
static const char *read_field(const char **at, struct nvbit_line *line, unsigned *seen)
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
        bool good = read_number(at, 10, UINT32_MAX, &number);
        line->warp = good ? (uint32_t)number : 0;
        return good ? NULL : "the number of a warp";
    }
    if ((value = behind(*at, "grid_launch_id ")) || (value = behind(*at, "kernel_launch_id "))) {
        *at = value;
        line->has_id = read_number(at, 10, UINT64_MAX, &line->id);
        return line->has_id ? NULL : "the number of a launch";
    }
    if ((value = behind(*at, "PC "))) {
        *at = value;
        line->has_pc = read_number(at, behind(*at, "0x") ? 16 : 10, UINT64_MAX, &line->pc);
        return line->has_pc ? NULL : "an address";
    }
    if ((value = behind(*at, "CTX "))) {
        *at = value + strcspn(value, " ");
        return NULL;
    }
    if (behind(*at, "0x")) {
        *seen |= ADDRESSES;
        return read_addresses(at, line->addresses) ? NULL : "32 addresses: 0x...";
    }
    *seen |= OPCODE;
    return read_opcode(at, line) ? NULL : "an opcode";
}

static const char *read_access(const char **at, struct nvbit_line *line)
{
    unsigned seen = 0;
    for (;;) {
        const char *expected = read_field(at, line, &seen);
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
    if (shmem && read_number(&shmem, 10, UINT32_MAX, &number))
        head->shared_bytes = number;
    if (registers && read_number(&registers, 10, UINT32_MAX, &number))
        head->registers = (uint32_t)number;
    line->has_id = id && read_number(&id, 10, UINT64_MAX, &line->id);
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
