/* Pseudonyms in texts for people. */
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "inventory/pseudonyms.h"

/* A name has at most this many parts: "gpu003.cluster.example", "0000:1b:00.0". */
enum { PARTS_MAX = 16 };

static const char ADDRESS[] = "(address)", PATH[] = "(path)";

/* Characters that join the parts of a name. */
static bool joins(char c)
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
    while (isalnum((unsigned char)text[length]) || joins(text[length])) {
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
        if (!joins(text[at]))
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

/* A UUID or PCI address that no field of the file has. *out_name NULL: out of memory. */
static size_t match_new(struct pseudonyms *names, const char *text, const char **out_name)
{
    size_t length = match_uuid(text);
    enum pseudonym_kind kind = length ? PSEUDONYM_GPU : PSEUDONYM_SLOT;
    if (!length)
        length = match_slot(text);
    if (!length)
        return 0;
    char *name = str_copy_n(text, length);
    bool added = name && pseudonyms_add(names, kind, name) == 0;
    *out_name = added ? pseudonyms_find(names, kind, name, length) : NULL;
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

int pseudonyms_clean(struct pseudonyms *names, char **text)
{
    struct strbuf out = {0};
    bool inside = false; /* a word: its parts are looked up, but no path begins in it */
    for (const char *at = *text; at && *at;) {
        const char *name = PATH;
        bool starts = at == *text || !in_part(at[-1]);
        bool whole = starts && (at == *text || !joins(at[-1]));
        size_t length = inside ? 0 : match_path(at);
        if (!length && starts)
            length = match_word(names, at, whole, &name);
        out.failed |= length && !name;
        if (length && name && strncmp(name, "node-", 5) == 0)
            length += domain_length(at + length);
        if (length)
            strbuf_puts(&out, name ? name : "");
        else
            strbuf_append(&out, at, 1);
        inside = !length && (in_part(*at) || *at == '.');
        at += length ? length : 1;
    }
    if (out.failed) {
        strbuf_fini(&out);
        return -ENOMEM;
    }
    if (!out.data)
        return 0;
    free(*text);
    *text = out.data;
    return 0;
}
