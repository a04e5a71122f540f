/* Reads the changes of --what-if. */
#include "predict/what_if.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* "KEY=VALUE[,VALUE...]" of one figure; the texts are not terminated. */
struct figure {
    const char *key, *values;
    size_t key_length, values_length, value_count;
};

static int what_if_check_values(const struct figure *figure, struct err *err)
{
    const char *end = figure->values + figure->values_length;
    for (const char *at = figure->values; at <= end;) {
        size_t length = 0;
        while (at + length < end && at[length] != ',')
            length++;
        if (!length)
            return err_set(err, -EINVAL,
                           "--what-if %.*s: a value is missing before or after a comma",
                           (int)figure->key_length, figure->key);
        if (length >= WHAT_IF_WORD_MAX)
            return err_set(err, -EINVAL, "--what-if %.*s: \"%.*s...\" is too long for a value",
                           (int)figure->key_length, figure->key, WHAT_IF_WORD_MAX, at);
        at += length + 1;
    }
    return 0;
}

/* The figure at *at, up to the next '+' or the end, which *at then is. */
static int take_figure(const char *text, const char **at, struct figure *out, struct err *err)
{
    size_t length = strcspn(*at, "+"), key = strcspn(*at, "=+");
    if (!key || key >= WHAT_IF_WORD_MAX || (*at)[key] != '=')
        return err_set(err, -EINVAL,
                       "--what-if takes KEY=VALUE[,VALUE...] such as l1_data.size=64K,128K, and + "
                       "between figures that change together, not \"%.60s\"",
                       text);
    *out = (struct figure){.key = *at,
                           .key_length = key,
                           .values = *at + key + 1,
                           .values_length = length - key - 1,
                           .value_count = 1};
    for (size_t i = 0; i < out->values_length; i++)
        out->value_count += out->values[i] == ',';
    *at += length;
    return what_if_check_values(out, err);
}

static int check_twice(const struct figure *figures, size_t count, struct err *err)
{
    const struct figure *last = &figures[count - 1];
    for (size_t i = 0; i + 1 < count; i++)
        if (figures[i].key_length == last->key_length &&
            memcmp(figures[i].key, last->key, last->key_length) == 0)
            return err_set(err, -EINVAL,
                           "--what-if: %.*s is there twice in one change; values to compare are "
                           "separated by commas",
                           (int)last->key_length, last->key);
    return 0;
}

static int take_figures(const char *text, struct figure figures[WHAT_IF_PARTS_MAX],
                        size_t *out_count, struct err *err)
{
    const char *at = text;
    for (size_t count = 0; count < WHAT_IF_PARTS_MAX; at++) {
        int rc = take_figure(text, &at, &figures[count], err);
        rc = rc ? rc : check_twice(figures, count + 1, err);
        if (rc)
            return rc;
        count++;
        if (!*at) {
            *out_count = count;
            return 0;
        }
    }
    return err_set(err, -EINVAL, "--what-if changes at most %d figures at once", WHAT_IF_PARTS_MAX);
}

static void copy_value(const struct figure *figure, size_t number, char out[WHAT_IF_WORD_MAX])
{
    const char *at = figure->values;
    for (; number; number--)
        at = strchr(at, ',') + 1;
    size_t length = 0, room = figure->values_length - (size_t)(at - figure->values);
    while (length < room && at[length] != ',')
        length++;
    memcpy(out, at, length);
}

/* The combination of this number; the values of the last figure change fastest. */
static struct what_if what_if_combine(const struct figure *figures, size_t count, size_t number)
{
    struct what_if item = {.count = count};
    for (size_t i = count; i-- > 0; number /= figures[i].value_count) {
        memcpy(item.parts[i].key, figures[i].key, figures[i].key_length);
        copy_value(&figures[i], number % figures[i].value_count, item.parts[i].value);
    }
    return item;
}

int what_if_read(const char *text, struct what_if_list *list, struct err *err)
{
    struct figure figures[WHAT_IF_PARTS_MAX];
    size_t count = 0, combinations = 1;
    int rc = take_figures(text, figures, &count, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < count && combinations <= WHAT_IF_LIST_MAX; i++)
        combinations *= figures[i].value_count;
    if (combinations > WHAT_IF_LIST_MAX - list->count)
        return err_set(err, -EINVAL, "--what-if: more than %d combinations of values",
                       WHAT_IF_LIST_MAX);
    for (size_t i = 0; i < combinations; i++)
        list->items[list->count++] = what_if_combine(figures, count, i);
    return 0;
}

const char *what_if_value(const struct what_if *what_if, const char *key)
{
    for (size_t i = 0; what_if && i < what_if->count; i++)
        if (strcmp(what_if->parts[i].key, key) == 0)
            return what_if->parts[i].value;
    return NULL;
}

void what_if_text(const struct what_if *what_if, char out_text[WHAT_IF_TEXT_MAX])
{
    size_t length = 0;
    out_text[0] = 0;
    for (size_t i = 0; i < what_if->count; i++)
        length += (size_t)snprintf(out_text + length, WHAT_IF_TEXT_MAX - length, "%s%s=%s",
                                   i ? "+" : "", what_if->parts[i].key, what_if->parts[i].value);
}
