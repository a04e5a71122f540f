/* Reads the text of a kernel's table row: extents, arrays and program. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "predict/kernel.h"

/* A text being read. `bad` points to where it could not go on. */
struct reader {
    const char *at, *bad;
};

static void skip_spaces(struct reader *r)
{
    while (*r->at == ' ')
        r->at++;
}

static void fail(struct reader *r)
{
    if (!r->bad)
        r->bad = r->at;
}

static bool take(struct reader *r, char c)
{
    if (*r->at != c)
        return false;
    r->at++;
    return true;
}

/* A number, or `otherwise` if there is none. */
static uint32_t take_number(struct reader *r, uint32_t otherwise)
{
    char *end;
    if (*r->at < '0' || *r->at > '9')
        return otherwise;
    uint32_t value = (uint32_t)strtoul(r->at, &end, 10);
    r->at = end;
    return value;
}

static size_t word_length(const char *text)
{
    size_t n = 0;
    while ((text[n] >= 'a' && text[n] <= 'z') || text[n] == '_')
        n++;
    return n;
}

/* The number of the word among `words`, -1 if it is none of them. */
static int take_word(struct reader *r, const char *const *words, size_t count)
{
    size_t length = word_length(r->at);
    for (size_t i = 0; i < count; i++) {
        if (words[i] && strlen(words[i]) == length && strncmp(r->at, words[i], length) == 0) {
            r->at += length;
            return (int)i;
        }
    }
    return -1;
}

/* "N", "8N/7", "N+1", "256" */
static struct kernel_extent take_extent(struct reader *r)
{
    struct kernel_extent extent = {0};
    const char *begin = r->at;
    uint32_t number = take_number(r, 1);
    if (take(r, 'N')) {
        extent.n = number;
        if (take(r, '/'))
            extent.divisor = take_number(r, 1);
        if (take(r, '+'))
            extent.fixed = take_number(r, 1);
    } else {
        extent.fixed = number;
    }
    if (r->at == begin)
        fail(r);
    return extent;
}

/* "NxNx4": the last one is the column; ":16" after it is the size of an element. */
static void take_array(struct reader *r, struct kernel_array *array)
{
    array->columns = take_extent(r);
    while (take(r, 'x')) {
        array->planes = array->rows;
        array->rows = array->columns;
        array->columns = take_extent(r);
    }
    if (take(r, ':'))
        array->element_bytes = take_number(r, 0);
}

/* "16bx+tx-1" */
static void take_index(struct reader *r, struct kernel_index *index)
{
    static const char *const names[] = {"x", "y", "tx", "ty", "bx", "by", "t", "k"};
    int16_t *const fields[] = {&index->x,  &index->y,  &index->tx, &index->ty,
                               &index->bx, &index->by, &index->t,  &index->k};
    while (*r->at && *r->at != ']') {
        const char *begin = r->at;
        int sign = take(r, '-') ? -1 : 1;
        if (sign > 0)
            take(r, '+');
        int value = sign * (int)take_number(r, 1);
        int name = take_word(r, names, COUNT_OF(names));
        int16_t *field = name < 0 ? &index->one : fields[name];
        *field = (int16_t)(*field + value);
        if (r->at == begin || (name < 0 && word_length(r->at))) {
            fail(r);
            return;
        }
    }
    if (!take(r, ']'))
        fail(r);
}

static void take_modifiers(struct reader *r, struct kernel_ref *ref)
{
    static const char *const guards[] = {
        [KERNEL_FIRST_ROW] = "first_row",      [KERNEL_LATER_ROWS] = "later_rows",
        [KERNEL_LATER_COLUMNS] = "later_cols", [KERNEL_INNER] = "inner",
        [KERNEL_BUT_LAST] = "but_last",        [KERNEL_UPPER] = "upper",
        [KERNEL_UPPER_OR_SAME] = "upper_same", [KERNEL_AFTER_T] = "after_t",
        [KERNEL_UP_TO_T] = "up_to_t",          [KERNEL_BLOCKS_LEFT] = "blocks_left",
        [KERNEL_ONE_COLUMN] = "one_column",    [KERNEL_BLOCK_INNER] = "block_inner",
    };
    static const char *const scatters[] = {[KERNEL_ANY_ROW] = "any_row",
                                           [KERNEL_ANY_COLUMN] = "any_col",
                                           [KERNEL_NEAR_COLUMN] = "near_col"};
    for (skip_spaces(r); *r->at && *r->at != ';'; skip_spaces(r)) {
        int guard = take_word(r, guards, COUNT_OF(guards));
        int scatter = guard < 0 ? take_word(r, scatters, COUNT_OF(scatters)) : -1;
        if (guard >= 0)
            ref->guard = (enum kernel_guard)guard;
        else if (scatter >= 0)
            ref->scatter = (enum kernel_scatter)scatter;
        else {
            fail(r);
            return;
        }
    }
}

/* "first load A[x][k] inner" */
static void take_ref(struct reader *r, struct kernel_ref *ref)
{
    static const char *const phases[] = {"before", "head", "first", "second", "tail", "after"};
    static const char *const kinds[] = {"load", "store"};
    int phase = take_word(r, phases, COUNT_OF(phases));
    skip_spaces(r);
    int kind = take_word(r, kinds, COUNT_OF(kinds));
    skip_spaces(r);
    if (phase < 0 || kind < 0 || *r->at < 'A' || *r->at >= 'A' + KERNEL_ARRAYS_MAX) {
        fail(r);
        return;
    }
    ref->phase = (enum kernel_phase)phase;
    ref->store = kind == 1;
    ref->array = (uint32_t)(*r->at++ - 'A');
    while (take(r, '[')) {
        ref->plane = ref->row;
        ref->row = ref->column;
        ref->column = (struct kernel_index){0};
        take_index(r, &ref->column);
    }
    take_modifiers(r, ref);
}

static void take_loops(struct reader *r, struct kernel_program *program)
{
    static const char *const names[] = {"t", "first", "second"};
    struct kernel_extent *const loops[] = {&program->loop_t, &program->loop_first,
                                           &program->loop_second};
    for (skip_spaces(r); *r->at && !r->bad; skip_spaces(r)) {
        int name = take_word(r, names, COUNT_OF(names));
        if (name < 0 || !take(r, '='))
            fail(r);
        else
            *loops[name] = take_extent(r);
    }
}

static void take_refs(struct reader *r, struct kernel_program *program)
{
    for (skip_spaces(r); *r->at && !r->bad; skip_spaces(r)) {
        if (program->ref_count == KERNEL_REFS_MAX)
            fail(r);
        else
            take_ref(r, &program->refs[program->ref_count++]);
        if (*r->at && !take(r, ';'))
            fail(r);
    }
}

static int end(const struct reader *r, const struct kernel *kernel, const char *what,
               struct err *err)
{
    const char *bad = r->bad ? r->bad : *r->at ? r->at : NULL;
    return bad ? err_set(err, -EINVAL, "kernel %s: bad %s at \"%.30s\"", kernel->name, what, bad)
               : 0;
}

int kernel_parse(const struct kernel *kernel, struct kernel_program *program, struct err *err)
{
    struct reader r = {.at = kernel->threads};
    memset(program, 0, sizeof *program);
    program->threads_x = take_extent(&r);
    if (take(&r, 'x'))
        program->threads_y = take_extent(&r);
    int rc = end(&r, kernel, "threads", err);
    if (rc)
        return rc;
    r = (struct reader){.at = kernel->loops ? kernel->loops : ""};
    take_loops(&r, program);
    rc = end(&r, kernel, "loops", err);
    if (rc)
        return rc;
    r = (struct reader){.at = kernel->arrays};
    for (size_t a = 0; *r.at && !r.bad && a < KERNEL_ARRAYS_MAX; a++, skip_spaces(&r))
        take_array(&r, &program->arrays[a]);
    rc = end(&r, kernel, "arrays", err);
    if (rc)
        return rc;
    r = (struct reader){.at = kernel->program};
    take_refs(&r, program);
    return end(&r, kernel, "program", err);
}
