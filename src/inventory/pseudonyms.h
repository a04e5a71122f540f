/* Pseudonyms for names that identify a site: the same name gets the same pseudonym wherever it
 * occurs. docs/share.md describes them. */
#ifndef GPUMEMTOPO_INVENTORY_PSEUDONYMS_H
#define GPUMEMTOPO_INVENTORY_PSEUDONYMS_H

#include <stddef.h>

enum pseudonym_kind {
    PSEUDONYM_NODE,   /* node-5f3a-0001, in the order of the names */
    PSEUDONYM_SLOT,   /* 0000:01:00.0, in the order of the PCI addresses */
    PSEUDONYM_GPU,    /* GPU-00000000-0000-0000-5f3a-000000000001, in the order of adding */
    PSEUDONYM_SERIAL, /* serial-5f3a-0001, likewise */
    PSEUDONYM_KINDS
};

struct pseudonyms;

/* Freed with pseudonyms_destroy, which accepts NULL. */
struct pseudonyms *pseudonyms_create(void);
void pseudonyms_destroy(struct pseudonyms *names);

/* Adds a name; NULL and names that are known already change nothing. */
void pseudonyms_add(struct pseudonyms *names, enum pseudonym_kind kind, const char *name);

/* Gives every name its pseudonym. Four hexadecimal digits in them follow from the names, so that
 * two files have the same pseudonyms only if they have the same nodes and GPUs. To be called once;
 * a name that is added later gets the next free number. */
void pseudonyms_seal(struct pseudonyms *names);

/* The pseudonym of name[0 .. length - 1]; NULL if the name is not known. After pseudonyms_seal. */
const char *pseudonyms_find(const struct pseudonyms *names, enum pseudonym_kind kind,
                            const char *name, size_t length);

/* Replaces *name, which may be NULL, by its pseudonym. */
void pseudonyms_replace(struct pseudonyms *names, enum pseudonym_kind kind, char **name);

/* Replaces in a text for people, which may be NULL: known names, UUIDs, PCI addresses, network
 * addresses, and paths. */
void pseudonyms_clean(struct pseudonyms *names, char **text);

#endif
