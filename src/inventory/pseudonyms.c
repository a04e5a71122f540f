/* Pseudonyms for names that identify a site. */
#include "inventory/pseudonyms.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

struct entry {
    char *name, *pseudonym; /* pseudonym NULL: not sealed yet */
    enum pseudonym_kind kind;
};

struct pseudonyms {
    struct entry *items;
    size_t count, capacity;
    uint32_t *table; /* open addressing, a power of two, at most half full: entry + 1; 0: free */
    size_t table_size;
    uint32_t used[PSEUDONYM_KINDS]; /* numbers given */
    int width;                      /* digits of a node's number */
    unsigned tag;
    bool sealed;
};

enum { TABLE_MIN = 64, WIDTH_MIN = 4, TAG_MASK = 0xffff };

int pseudonyms_create(struct pseudonyms **out_names)
{
    struct pseudonyms *names = mem_array(1, sizeof *names);
    if (!names)
        return -ENOMEM;
    *out_names = names;
    return 0;
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
static uint32_t *place_of(const struct pseudonyms *names, enum pseudonym_kind kind,
                          const char *name, size_t length)
{
    size_t at = (size_t)(str_hash_bytes(name, length) + (uint64_t)kind) & (names->table_size - 1);
    for (;; at = (at + 1) & (names->table_size - 1)) {
        uint32_t number = names->table[at];
        const struct entry *entry = number ? &names->items[number - 1] : NULL;
        if (!entry || (entry->kind == kind && strlen(entry->name) == length &&
                       memcmp(entry->name, name, length) == 0))
            return &names->table[at];
    }
}

static int grow_table(struct pseudonyms *names)
{
    size_t size = names->table_size ? 2 * names->table_size : TABLE_MIN;
    uint32_t *grown = mem_array(size, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    free(names->table);
    names->table = grown;
    names->table_size = size;
    for (size_t i = 0; i < names->count; i++) {
        const struct entry *entry = &names->items[i];
        *place_of(names, entry->kind, entry->name, strlen(entry->name)) = (uint32_t)i + 1;
    }
    return 0;
}

static char *make_pseudonym(struct pseudonyms *names, const struct entry *entry)
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
static int add(struct pseudonyms *names, enum pseudonym_kind kind, const char *name, size_t length,
               const char *pseudonym)
{
    if (names->count * 2 >= names->table_size && grow_table(names))
        return -ENOMEM;
    uint32_t *place = place_of(names, kind, name, length);
    if (*place)
        return 0;
    struct entry *grown = mem_grow(names->items, &names->capacity, names->count + 1, sizeof *grown);
    if (grown)
        names->items = grown;
    struct entry entry = {.kind = kind, .name = str_copy_n(name, length)};
    int rc = grown && entry.name ? str_copy_to(&entry.pseudonym, pseudonym) : -ENOMEM;
    if (!rc && names->sealed && !pseudonym) {
        entry.pseudonym = make_pseudonym(names, &entry);
        rc = entry.pseudonym ? 0 : -ENOMEM;
    }
    if (rc) {
        free(entry.name);
        free(entry.pseudonym);
        return rc;
    }
    grown[names->count++] = entry;
    *place = (uint32_t)names->count;
    return 0;
}

int pseudonyms_add(struct pseudonyms *names, enum pseudonym_kind kind, const char *name)
{
    return name && *name ? add(names, kind, name, strlen(name), NULL) : 0;
}

static int by_kind_and_name(const void *left, const void *right)
{
    const struct entry *const *a = left, *const *b = right;
    return (*a)->kind != (*b)->kind ? ((*a)->kind < (*b)->kind ? -1 : 1)
                                    : strcmp((*a)->name, (*b)->name);
}

/* Nobody can guess UUIDs, so the tag does not tell a name. Without one it could be tried with host
 * names; then there is none. */
static unsigned find_tag(const struct pseudonyms *names, struct entry *const *sorted)
{
    uint64_t value = 0;
    bool any = false;
    for (size_t i = 0; i < names->count; i++) {
        value = value * UINT64_C(1099511628211) ^ str_hash(sorted[i]->name);
        any |= sorted[i]->kind == PSEUDONYM_GPU;
    }
    return any ? (unsigned)(value ^ value >> 16 ^ value >> 32 ^ value >> 48) & TAG_MASK : 0;
}

/* Nodes and slots get numbers in the order of their names, so that lists that are sorted by them
 * stay sorted. */
static int number_all(struct pseudonyms *names, struct entry **sorted)
{
    for (size_t i = 0; i < names->count; i++) {
        struct entry *entry = sorted[i]->kind <= PSEUDONYM_SLOT ? sorted[i] : NULL;
        if (entry && !(entry->pseudonym = make_pseudonym(names, entry)))
            return -ENOMEM;
    }
    for (size_t i = 0; i < names->count; i++) {
        struct entry *entry = &names->items[i];
        if (!entry->pseudonym && !(entry->pseudonym = make_pseudonym(names, entry)))
            return -ENOMEM;
    }
    return 0;
}

/* A host name and the same one without its domain are one node. */
static int add_aliases(struct pseudonyms *names)
{
    size_t count = names->count;
    for (size_t i = 0; i < count; i++) {
        const struct entry entry = names->items[i];
        const char *dot = entry.kind == PSEUDONYM_NODE ? strchr(entry.name, '.') : NULL;
        if (dot && dot != entry.name &&
            add(names, PSEUDONYM_NODE, entry.name, (size_t)(dot - entry.name), entry.pseudonym))
            return -ENOMEM;
    }
    return 0;
}

int pseudonyms_seal(struct pseudonyms *names)
{
    struct entry **sorted = mem_array(names->count, sizeof *sorted);
    if (!sorted)
        return -ENOMEM;
    for (size_t i = 0; i < names->count; i++)
        sorted[i] = &names->items[i];
    qsort(sorted, names->count, sizeof *sorted, by_kind_and_name);
    names->tag = find_tag(names, sorted);
    names->width = WIDTH_MIN;
    for (size_t limit = 10000; names->count >= limit; limit *= 10)
        names->width++;
    int rc = number_all(names, sorted);
    free(sorted);
    if (rc)
        return rc;
    names->sealed = true;
    return add_aliases(names);
}

const char *pseudonyms_find(const struct pseudonyms *names, enum pseudonym_kind kind,
                            const char *name, size_t length)
{
    uint32_t number = names->table_size ? *place_of(names, kind, name, length) : 0;
    return number ? names->items[number - 1].pseudonym : NULL;
}

int pseudonyms_replace(struct pseudonyms *names, enum pseudonym_kind kind, char **name)
{
    char *copy = NULL;
    if (!*name || !**name)
        return 0;
    if (pseudonyms_add(names, kind, *name) ||
        str_copy_to(&copy, pseudonyms_find(names, kind, *name, strlen(*name))))
        return -ENOMEM;
    free(*name);
    *name = copy;
    return 0;
}
