/* Reads policies and indices of caches. */
#include "predict/machine_words.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

enum { SHIFT_MAX = 16 };

/* The words of policies and indices: those of an inventory and of the seed. */
struct word {
    const char *name;
    int value;
    bool of_survey; /* a word of inventories, not for users */
};
static const struct word policies[] = {
    {"lru", CACHE_LRU},   {"fifo", CACHE_FIFO},    {"random", CACHE_RANDOM}, {"lfu", CACHE_LFU},
    {"tree", CACHE_TREE}, {"biased", CACHE_FERMI}, {"early", CACHE_EARLY},   {NULL, 0},
};
static const struct word indices[] = {
    {"modulo", CACHE_MODULO},     {"hashed", CACHE_HASHED},        {"xor", CACHE_XOR},
    {"prime", CACHE_PRIME},       {"smod", CACHE_SHIFTED},         {"bit", CACHE_MODULO, true},
    {"bits", CACHE_MODULO, true}, {"one_set", CACHE_MODULO, true}, {NULL, 0},
};

/* Text fields: which word a cache's policy or index is. */
static const struct {
    const char *key;
    const struct word *words;
    const char *assumed;
    bool of_l1;
} word_rows[MACHINE_WORDS] = {
    {"l1_data.policy", policies, "lru", true},
    {"l1_data.index", indices, "hashed", true},
    {"l2.policy", policies, "lru", false},
    {"l2.index", indices, "hashed", false},
};

const char *machine_word_key(size_t row)
{
    return word_rows[row].key;
}

/* The survey may add numbers: modulo_65536, bits_7_to_12. */
static const struct word *find_word(const struct word *words, const char *name)
{
    for (const struct word *word = words; name && word->name; word++) {
        size_t length = strlen(word->name);
        if (strncmp(name, word->name, length) == 0 && (!name[length] || name[length] == '_'))
            return word;
    }
    return NULL;
}

/* The seed's SMODn: "smod" (n = 1), "smod2", "smod3". False: another word. */
static bool read_shift(const struct word *words, const char *name, uint64_t *out_shift)
{
    *out_shift = 1;
    if (words != indices || !name || strncmp(name, "smod", 4) != 0)
        return false;
    return !name[4] ||
           (str_parse_u64(name + 4, out_shift) == 0 && *out_shift >= 1 && *out_shift <= SHIFT_MAX);
}

static int unknown_word(const char *key, const char *name, const struct word *words,
                        struct err *err)
{
    char list[120] = "";
    for (const struct word *word = words; word->name; word++) {
        size_t length = strlen(list);
        if (!word->of_survey)
            snprintf(list + length, sizeof list - length, "%s%s", length ? ", " : "", word->name);
    }
    return err_set(err, -EINVAL, "%s is one of %s%s, not \"%.40s\"", key, list,
                   words == indices ? " (or smod2 to smod16: shifted by more bits)" : "", name);
}

int machine_word_read(size_t row, const struct measure *measure, const char *changed,
                      struct model_config *config, char out_assumed[MACHINE_WORD_TEXT_MAX],
                      struct err *err)
{
    const char *key = word_rows[row].key;
    const char *measured =
        measure && measure->kind == MEASURE_WORDS && measure->word_count ? measure->words[0] : NULL;
    const char *name = changed ? changed : measured;
    const struct word *words = word_rows[row].words;
    uint64_t shift;
    bool shifted = read_shift(words, name, &shift);
    const struct word *word = find_word(words, shifted ? "smod" : name);
    struct cache_geometry *cache = word_rows[row].of_l1 ? &config->l1 : &config->l2;
    out_assumed[0] = 0;
    if (!word && changed)
        return unknown_word(key, name, words, err);
    if (!word) {
        snprintf(out_assumed, MACHINE_WORD_TEXT_MAX, name ? "%s (%.40s is not modelled)" : "%s",
                 word_rows[row].assumed, name);
        word = find_word(words, word_rows[row].assumed);
    }
    if (words == policies)
        cache->policy = (enum cache_policy)word->value;
    else
        cache->index = (enum cache_index)word->value;
    if (words == indices)
        cache->index_shift = (uint32_t)shift;
    return 0;
}
