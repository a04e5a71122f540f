/* Checks the links of a GPU: lists of the same length, of known words. */
#include "report/validate_links.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/str.h"
#include "inventory/link_row.h"

static const char *name_of(const struct inventory_gpu *gpu)
{
    return gpu->uuid ? gpu->uuid : "a GPU without uuid";
}

static bool is_state(const char *word, size_t length)
{
    static const char *const states[] = {"ok", "host", "failed", "wrong", "unknown"};
    for (size_t i = 0; i < sizeof states / sizeof *states; i++)
        if (strlen(states[i]) == length && strncmp(states[i], word, length) == 0)
            return true;
    return false;
}

/* The number of words; SIZE_MAX: there is one that this list cannot have. */
static size_t count_words(const char *key, const char *text)
{
    size_t count = 0, length;
    for (; link_row_word(&text, &length); text += length, count++) {
        bool dash = length == 1 && *text == '-';
        if (strcmp(key, "state") == 0
                ? !is_state(text, length)
                : strcmp(key, "gpus") != 0 && !dash && isnan(link_row_number(text, length)))
            return SIZE_MAX;
    }
    return count;
}

static bool is_list(const char *key)
{
    for (size_t i = 0; i < LINK_ROW_LISTS; i++)
        if (strcmp(link_row_keys[i], key) == 0)
            return true;
    return false;
}

int report_validate_links(const struct inventory_gpu *gpu, struct err *err)
{
    const char *gpus = facts_text(&gpu->links, "gpus");
    bool only_why = gpu->links.count == 1 && facts_text(&gpu->links, "why");
    if (gpu->links.count && !only_why && (!gpus || !facts_text(&gpu->links, "state")))
        return err_set(err, -EINVAL, "%.80s: links: expected the lists gpus and state",
                       name_of(gpu));
    size_t count = gpus ? count_words("gpus", gpus) : 0;
    for (size_t i = 0; i < gpu->links.count; i++) {
        const struct fact *fact = &gpu->links.items[i];
        if (strcmp(fact->key, "why") == 0)
            continue;
        /* A list of one number is read as a number. */
        bool single = count == 1 && isfinite(fact_number(fact)) && fact_number(fact) >= 0;
        if (!is_list(fact->key) ||
            !(single || (fact->kind == FACT_TEXT && count_words(fact->key, fact->text) == count)))
            return err_set(err, -EINVAL, "%.80s: links: %.80s is not a list of %zu words",
                           name_of(gpu), fact->key, count);
    }
    return 0;
}
