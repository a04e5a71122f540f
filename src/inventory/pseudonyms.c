/* Pseudonyms for names that identify a site. */
#include "inventory/pseudonyms.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "base/str.h"

struct pseudonym {
    char *name, *pseudonym; /* pseudonym NULL: not sealed yet */
    enum pseudonym_kind kind;
};

struct pseudonyms {
    struct pseudonym *items;
    size_t count, capacity;
    uint32_t *table; /* open addressing, a power of two, at most half full: entry + 1; 0: free */
    size_t table_size;
    uint32_t used[PSEUDONYM_KINDS]; /* numbers given */
    int width;                      /* digits of a node's number */
    unsigned tag;
    bool sealed;
};

enum { TABLE_MIN = 64, WIDTH_MIN = 4, TAG_MASK = 0xffff };

struct pseudonyms *pseudonyms_create(void)
{
    return mem_array(1, sizeof(struct pseudonyms));
}

void pseudonyms_destroy(struct pseudonyms *names)
{
    if (!names)
        return;
    for (size_t i = 0; i < names->count; i++) {
        free(names->items[i].name);
        free(names->items[i].pseudonym);
    }
    free(names->items);
    free(names->table);
    free(names);
}

/* The place of a name in the table: its own, or the free one where it would be. */
static uint32_t *pseudonym_place(const struct pseudonyms *names, enum pseudonym_kind kind,
                                 const char *name, size_t length)
{
    size_t at = (size_t)(str_hash_bytes(name, length) + (uint64_t)kind) & (names->table_size - 1);
    for (;; at = (at + 1) & (names->table_size - 1)) {
        uint32_t number = names->table[at];
        const struct pseudonym *entry = number ? &names->items[number - 1] : NULL;
        if (!entry || (entry->kind == kind && strlen(entry->name) == length &&
                       memcmp(entry->name, name, length) == 0))
            return &names->table[at];
    }
}

static void pseudonyms_grow_table(struct pseudonyms *names)
{
    names->table_size = names->table_size ? 2 * names->table_size : TABLE_MIN;
    free(names->table);
    names->table = mem_array(names->table_size, sizeof *names->table);
    for (size_t i = 0; i < names->count; i++) {
        const struct pseudonym *entry = &names->items[i];
        *pseudonym_place(names, entry->kind, entry->name, strlen(entry->name)) = (uint32_t)i + 1;
    }
}

static char *pseudonym_make(struct pseudonyms *names, const struct pseudonym *entry)
{
    uint32_t number = ++names->used[entry->kind];
    switch (entry->kind) {
    case PSEUDONYM_NODE:
        return str_format("node-%04x-%0*u", names->tag, names->width, number);
    case PSEUDONYM_SLOT:
        return str_format("%04x:%02x:00.0", number >> 8, number & 0xff);
    case PSEUDONYM_GPU:
        return str_format("%s-00000000-0000-0000-%04x-%012u",
                          strncmp(entry->name, "MIG-", 4) == 0 ? "MIG" : "GPU", names->tag, number);
    default:
        return str_format("serial-%04x-%0*u", names->tag, names->width, number);
    }
}

/* pseudonym NULL: a new one, now or when the names are sealed. */
static void pseudonyms_add_name(struct pseudonyms *names, enum pseudonym_kind kind,
                                const char *name, size_t length, const char *pseudonym)
{
    if (names->count * 2 >= names->table_size)
        pseudonyms_grow_table(names);
    uint32_t *place = pseudonym_place(names, kind, name, length);
    if (*place)
        return;
    struct pseudonym entry = {
        .kind = kind, .name = str_copy_n(name, length), .pseudonym = str_copy(pseudonym)};
    if (names->sealed && !pseudonym)
        entry.pseudonym = pseudonym_make(names, &entry);
    names->items = mem_grow(names->items, &names->capacity, names->count + 1, sizeof *names->items);
    names->items[names->count++] = entry;
    *place = (uint32_t)names->count;
}

void pseudonyms_add(struct pseudonyms *names, enum pseudonym_kind kind, const char *name)
{
    if (name && *name)
        pseudonyms_add_name(names, kind, name, strlen(name), NULL);
}

static int pseudonym_order(const void *left, const void *right)
{
    const struct pseudonym *const *a = left, *const *b = right;
    return (*a)->kind != (*b)->kind ? ((*a)->kind < (*b)->kind ? -1 : 1)
                                    : strcmp((*a)->name, (*b)->name);
}

/* Nobody can guess UUIDs, so the tag does not tell a name. Without one it could be tried with host
 * names; then there is none. */
static unsigned pseudonyms_find_tag(const struct pseudonyms *names, struct pseudonym *const *sorted)
{
    uint64_t value = 0;
    bool any = false;
    for (size_t i = 0; i < names->count; i++) {
        value = value * UINT64_C(1099511628211) ^ str_hash(sorted[i]->name);
        any |= sorted[i]->kind == PSEUDONYM_GPU;
    }
    return any ? (unsigned)(value ^ value >> 16 ^ value >> 32 ^ value >> 48) & TAG_MASK : 0;
}

void pseudonyms_seal(struct pseudonyms *names)
{
    struct pseudonym **sorted = mem_array(names->count, sizeof *sorted);
    size_t count = names->count;
    for (size_t i = 0; i < count; i++)
        sorted[i] = &names->items[i];
    sort_stable(sorted, count, sizeof *sorted, pseudonym_order);
    names->tag = pseudonyms_find_tag(names, sorted);
    names->width = WIDTH_MIN;
    for (size_t limit = 10000; count >= limit; limit *= 10)
        names->width++;
    /* Nodes and slots get numbers in the order of their names, so that lists that are sorted by
     * them stay sorted. */
    for (size_t i = 0; i < count; i++)
        if (sorted[i]->kind <= PSEUDONYM_SLOT)
            sorted[i]->pseudonym = pseudonym_make(names, sorted[i]);
    for (size_t i = 0; i < count; i++)
        if (!names->items[i].pseudonym)
            names->items[i].pseudonym = pseudonym_make(names, &names->items[i]);
    free(sorted);
    names->sealed = true;
    /* A host name and the same one without its domain are one node. */
    for (size_t i = 0; i < count; i++) {
        const struct pseudonym entry = names->items[i];
        const char *dot = entry.kind == PSEUDONYM_NODE ? strchr(entry.name, '.') : NULL;
        if (dot && dot != entry.name)
            pseudonyms_add_name(names, PSEUDONYM_NODE, entry.name, (size_t)(dot - entry.name),
                                entry.pseudonym);
    }
}

const char *pseudonyms_find(const struct pseudonyms *names, enum pseudonym_kind kind,
                            const char *name, size_t length)
{
    uint32_t number = names->table_size ? *pseudonym_place(names, kind, name, length) : 0;
    return number ? names->items[number - 1].pseudonym : NULL;
}

void pseudonyms_replace(struct pseudonyms *names, enum pseudonym_kind kind, char **name)
{
    if (!*name || !**name)
        return;
    pseudonyms_add(names, kind, *name);
    char *copy = str_copy(pseudonyms_find(names, kind, *name, strlen(*name)));
    free(*name);
    *name = copy;
}

/* Pseudonyms in texts for people. */

/* A name has at most this many parts: "gpu003.cluster.example", "0000:1b:00.0". */
enum { PARTS_MAX = 16 };

static const char ADDRESS[] = "(address)", PATH[] = "(path)";

/* Characters that join the parts of a name. */
static bool match_joins(char c)
{
    return c && strchr("._:-@", c);
}

static bool in_part(char c)
{
    return isalnum((unsigned char)c) || (unsigned char)c >= 0x80;
}

static size_t part_length(const char *text)
{
    size_t length = 0;
    while (in_part(text[length]))
        length++;
    return length;
}

/* Checks parts against a pattern of lengths of hexadecimal numbers and joining characters:
 * "4:2:2.1" is a PCI address. Returns the length of the match; 0: none. */
static size_t match_hex(const char *text, const int *lengths, const char *joints, size_t count)
{
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        size_t length = part_length(text + at);
        for (size_t k = 0; k < length; k++)
            if (!isxdigit((unsigned char)text[at + k]))
                return 0;
        if (length != (size_t)lengths[i] || (i + 1 < count && text[at + length] != joints[i]))
            return 0;
        at += length + (i + 1 < count);
    }
    return at;
}

static size_t match_uuid(const char *text)
{
    static const int lengths[] = {8, 4, 4, 4, 12};
    size_t prefix = strncmp(text, "GPU-", 4) == 0 || strncmp(text, "MIG-", 4) == 0 ? 4 : 0;
    size_t length = match_hex(text + prefix, lengths, "----", COUNT_OF(lengths));
    return length ? prefix + length : 0;
}

static size_t match_slot(const char *text)
{
    static const int usual[] = {4, 2, 2, 1}, wide[] = {8, 2, 2, 1};
    size_t length = match_hex(text, usual, "::.", COUNT_OF(usual));
    return length ? length : match_hex(text, wide, "::.", COUNT_OF(wide));
}

/* Four numbers up to 255, neither more nor fewer: a version of a VBIOS has five. */
static size_t match_ipv4(const char *text)
{
    size_t at = 0;
    for (int i = 0; i < 4; i++) {
        size_t length = strspn(text + at, "0123456789");
        if (!length || length > 3 || strtoul(text + at, NULL, 10) > 255 ||
            (i < 3 && text[at + length] != '.'))
            return 0;
        at += length + (i < 3);
    }
    bool more = isalnum((unsigned char)text[at]) ||
                (text[at] == '.' && isalnum((unsigned char)text[at + 1]));
    return more ? 0 : at;
}

/* MAC and IPv6 addresses: hexadecimal numbers with at least five colons, or with "::". */
static size_t match_colons(const char *text)
{
    size_t length = strspn(text, "0123456789abcdefABCDEF:"), colons = 0;
    bool twice = false;
    for (size_t i = 0; i < length; i++) {
        colons += text[i] == ':';
        twice |= i && text[i] == ':' && text[i - 1] == ':';
    }
    return (colons >= 5 || (twice && length > 2)) && !isalnum((unsigned char)text[length]) ? length
                                                                                           : 0;
}

/* "name@host": the whole word. */
static size_t match_mail(const char *text)
{
    size_t length = 0, at = 0;
    while (isalnum((unsigned char)text[length]) || match_joins(text[length])) {
        at = text[length] == '@' ? length : at;
        length++;
    }
    return at && at + 1 < length ? length : 0;
}

/* A path from the root or from the home, but not one of the kernel's: they have no names. */
static size_t match_path(const char *text)
{
    static const char *const harmless[] = {"/dev/", "/proc/", "/sys/"};
    size_t start = text[0] == '~' ? 1 : 0;
    if (text[start] != '/' || !(isalnum((unsigned char)text[start + 1]) ||
                                (text[start + 1] && strchr("._-", text[start + 1]))))
        return 0;
    for (size_t i = 0; i < COUNT_OF(harmless); i++)
        if (strncmp(text, harmless[i], strlen(harmless[i])) == 0)
            return 0;
    return strcspn(text, " \t\n,;:\"'()<>");
}

/* The longest known name that begins here and ends with a part. Returns its length; 0: none. */
static size_t match_known(const struct pseudonyms *names, const char *text, const char **out_name)
{
    size_t ends[PARTS_MAX], count = 0, at = 0;
    while (count < PARTS_MAX) {
        size_t length = part_length(text + at);
        if (!length)
            break;
        at += length;
        ends[count++] = at;
        if (!match_joins(text[at]))
            break;
        at++;
    }
    while (count--)
        for (int kind = 0; kind < PSEUDONYM_KINDS; kind++) {
            *out_name = pseudonyms_find(names, (enum pseudonym_kind)kind, text, ends[count]);
            if (*out_name)
                return ends[count];
        }
    return 0;
}

/* A UUID or PCI address that no field of the file has. */
static size_t match_new(struct pseudonyms *names, const char *text, const char **out_name)
{
    size_t length = match_uuid(text);
    enum pseudonym_kind kind = length ? PSEUDONYM_GPU : PSEUDONYM_SLOT;
    if (!length)
        length = match_slot(text);
    if (!length)
        return 0;
    char *name = str_copy_n(text, length);
    pseudonyms_add(names, kind, name);
    *out_name = pseudonyms_find(names, kind, name, length);
    free(name);
    return length;
}

/* What begins at a part and is replaced: returns its length, 0 if it stays. whole: no other part is
 * joined to it on the left, as in a version of a VBIOS. */
static size_t match_word(struct pseudonyms *names, const char *text, bool whole,
                         const char **out_name)
{
    size_t length = match_known(names, text, out_name);
    if (!length)
        length = match_new(names, text, out_name);
    if (length || !whole)
        return length;
    *out_name = ADDRESS;
    length = match_ipv4(text);
    if (!length)
        length = match_colons(text);
    return length ? length : match_mail(text);
}

/* The domain of a host name goes with it. */
static size_t domain_length(const char *text)
{
    size_t length = 0;
    while (text[length] == '.' && isalpha((unsigned char)text[length + 1]))
        length += 1 + strcspn(text + length + 1, " .,;:()[]{}\"'/@\t\n");
    return length;
}

void pseudonyms_clean(struct pseudonyms *names, char **text)
{
    struct strbuf out = {0};
    bool inside = false; /* a word: its parts are looked up, but no path begins in it */
    for (const char *at = *text; at && *at;) {
        const char *name = PATH;
        bool starts = at == *text || !in_part(at[-1]);
        bool whole = starts && (at == *text || !match_joins(at[-1]));
        size_t length = inside ? 0 : match_path(at);
        if (!length && starts)
            length = match_word(names, at, whole, &name);
        if (length && strncmp(name, "node-", 5) == 0)
            length += domain_length(at + length);
        if (length)
            strbuf_puts(&out, name);
        else
            strbuf_append(&out, at, 1);
        inside = !length && (in_part(*at) || *at == '.');
        at += length ? length : 1;
    }
    if (!out.data)
        return;
    free(*text);
    *text = out.data;
}
