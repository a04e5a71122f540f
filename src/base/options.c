/* Command lines by tables: reading, --help, man page, completion. */
#include "base/options.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static const struct option help_option = {
    .name = "--help", .letter = 'h', .help = "print this and stop"};

/* Option i of a set; --help is the last. */
static const struct option *option_at(const struct option_set *set, size_t i)
{
    return i < set->count ? &set->options[i] : &help_option;
}

static const struct option *option_find(const struct option_set *set, const char *word,
                                        size_t length)
{
    for (size_t i = 0; i <= set->count; i++) {
        const struct option *option = option_at(set, i);
        bool named = strlen(option->name) == length && strncmp(option->name, word, length) == 0;
        if (word[1] == '-' ? named : option->letter && option->letter == word[1])
            return option;
    }
    return NULL;
}

static int option_unknown(const struct option_set *set, const char *word, size_t length,
                          struct err *err)
{
    const char **names = mem_array(set->count + 1, sizeof *names);
    char *name = str_copy_n(word, length < 60 ? length : 60);
    for (size_t i = 0; i <= set->count; i++)
        names[i] = option_at(set, i)->name;
    const char *near = str_nearest(name, names, set->count + 1);
    const char *of = set->command ? set->command : set->program;
    int rc = near
                 ? err_set(err, -EINVAL, "%s has no flag %s; did you mean %s?", of, name, near)
                 : err_set(err, -EINVAL, "%s has no flag %s; %s%s%s --help lists them", of, name,
                           set->program, set->command ? " " : "", set->command ? set->command : "");
    free(name);
    free(names);
    return rc;
}

static int option_set_word(const struct option *option, const char *value, int *field,
                           struct err *err)
{
    struct strbuf list = {0};
    for (int i = 0; i < OPTION_WORDS_MAX && option->words[i]; i++) {
        if (strcmp(value, option->words[i]) == 0) {
            *field = i;
            strbuf_fini(&list);
            return 0;
        }
        bool last = i + 1 == OPTION_WORDS_MAX || !option->words[i + 1];
        strbuf_printf(&list, "%s%s", !i ? "" : last ? " or " : ", ", option->words[i]);
    }
    int rc = err_set(err, -EINVAL, "%s is %s, not \"%.40s\"", option->name, list.data, value);
    strbuf_fini(&list);
    return rc;
}

static int option_set_number(const struct option *option, const char *value, void *field,
                             struct err *err)
{
    double number = 0;
    uint64_t whole = 0;
    bool is_whole = option->kind == OPTION_WHOLE;
    int rc = is_whole ? str_parse_u64(value, &whole) : str_parse_f64(value, &number);
    if (is_whole)
        number = (double)whole;
    if (rc || number < option->min || number > option->max)
        return err_set(err, -EINVAL, "%s is a %snumber%s%s from %.15g to %.15g, not \"%.40s\"",
                       option->name, is_whole ? "whole " : "", option->unit ? " of " : "",
                       option->unit ? option->unit : "", option->min, option->max, value);
    if (is_whole)
        *(uint64_t *)field = whole;
    else
        *(double *)field = number;
    return 0;
}

static int option_add(const struct option *option, const char *value, struct option_list *list,
                      struct err *err)
{
    unsigned most = option->list_max ? option->list_max : OPTION_LIST_MAX;
    if (list->count == most)
        return err_set(err, -EINVAL, "%s is given more than %u times", option->name, most);
    list->items[list->count++] = value;
    return 0;
}

static int option_store(const struct option *option, const char *value, void *target,
                        struct err *err)
{
    void *field = (char *)target + option->offset;
    switch (option->kind) {
    case OPTION_FLAG:
        *(bool *)field = true;
        return 0;
    case OPTION_TEXT:
        *(const char **)field = value;
        return 0;
    case OPTION_LIST:
        return option_add(option, value, field, err);
    case OPTION_WORD:
        return option_set_word(option, value, field, err);
    case OPTION_NUMBER:
    case OPTION_WHOLE:
        return option_set_number(option, value, field, err);
    }
    return -EINVAL;
}

/* The option at arguments[*at], and its value. `seen`: a place for each option of the set. */
static int option_take(const struct option_set *set, int count, char **arguments, int *at,
                       void *target, bool *seen, struct err *err)
{
    const char *word = arguments[*at];
    bool is_letter = word[1] != '-';
    size_t length = is_letter ? strlen(word) : strcspn(word, "=");
    const struct option *option = option_find(set, word, length);
    if (!option)
        return option_unknown(set, word, length, err);
    const char *value =
        is_letter ? (word[2] ? word + 2 : NULL) : (word[length] ? word + length + 1 : NULL);
    if (!option->argument && value)
        return err_set(err, -EINVAL, "%s takes no value", option->name);
    if (option->argument && !value)
        value = ++*at < count ? arguments[*at] : "";
    if (option->argument && !*value)
        return err_set(err, -EINVAL, "%s needs a value: %s", option->name, option->argument);
    bool *before = &seen[option - set->options];
    if (*before && option->argument && option->kind != OPTION_LIST && !set->last_counts)
        return err_set(err, -EINVAL, "%s is given twice; it takes %s", option->name,
                       option->argument);
    *before = true;
    if (option->given)
        *(bool *)((char *)target + option->given) = true;
    return option_store(option, value, target, err);
}

int options_read(const struct option_set *set, int count, char **arguments, void *target,
                 struct option_rest *out_rest, struct err *err)
{
    struct option_rest rest = {.words = mem_array((size_t)count, sizeof *rest.words)};
    bool *seen = mem_array(set->count, sizeof *seen), flags = true;
    int rc = 0;
    for (int i = 0; i < count && !rc && !rest.help; i++) {
        char *word = arguments[i];
        if (!flags || word[0] != '-' || !word[1])
            rest.words[rest.count++] = word;
        else if (strcmp(word, "--") == 0)
            flags = false;
        else if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
            rest.help = "";
        else if (strcmp(word, "--help=man") == 0 || strcmp(word, "--help=words") == 0)
            rest.help = word + strlen("--help=");
        else
            rc = option_take(set, count, arguments, &i, target, seen, err);
    }
    free(seen);
    if (rc)
        free(rest.words);
    else
        *out_rest = rest;
    return rc;
}

static void print_help_lines(const struct option_set *set, struct strbuf *out)
{
    for (size_t i = 0; i <= set->count; i++) {
        const struct option *option = option_at(set, i);
        char name[64], letter[8] = "    ";
        if (option->heading)
            strbuf_printf(out, "%s%s:\n", i ? "\n" : "", option->heading);
        if (option->letter)
            snprintf(letter, sizeof letter, "-%c, ", option->letter);
        snprintf(name, sizeof name, "%s%s%s", option->name, option->argument ? " " : "",
                 option->argument ? option->argument : "");
        strbuf_printf(out, "  %s%-21s %s\n", letter, name, option->help);
    }
}

/* Text of roff: a hyphen is \-, and the quote of a shell is not that of a text. */
static void put_roff(struct strbuf *out, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '-')
            strbuf_puts(out, "\\-");
        else if (text[i] == '\\')
            strbuf_puts(out, "\\e");
        else if (text[i] == '\'')
            strbuf_puts(out, "\\(aq");
        else
            strbuf_append(out, &text[i], 1);
    }
}

static bool begins_word(const char *text, const char *at, const char *word)
{
    size_t length = word ? strlen(word) : 0;
    return length && strncmp(at, word, length) == 0 &&
           (at == text || !strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZ-_", at[-1])) &&
           (!at[length] || !strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZ-_", at[length]));
}

/* Breaks lines at spaces, and behind a sentence. A line must not begin with a dot. */
static void put_lines(struct strbuf *out, const char *text)
{
    enum { LINE_MAX_COLUMNS = 78 };
    size_t column = 0;
    for (const char *at = text; *at;) {
        size_t length = strcspn(at, " ");
        if (column && column + 1 + length > LINE_MAX_COLUMNS)
            column = 0, strbuf_puts(out, "\n");
        if (column)
            column++, strbuf_puts(out, " ");
        else if (*at == '.')
            strbuf_puts(out, "\\&");
        strbuf_append(out, at, length);
        column += length;
        at += length + (at[length] == ' ');
        if (*at && length && strchr(".;:", at[-2]))
            column = 0, strbuf_puts(out, "\n");
    }
    strbuf_puts(out, "\n");
}

/* `text` is set in bold, the argument (NULL: none) in italics. */
static void print_paragraph(const char *text, const char *argument, struct strbuf *out)
{
    struct strbuf roff = {0};
    for (const char *at = text; *at;) {
        const char *end = *at == '`' ? strchr(at + 1, '`') : NULL;
        if (end) {
            strbuf_puts(&roff, "\\fB");
            put_roff(&roff, at + 1, (size_t)(end - at - 1));
            strbuf_puts(&roff, "\\fR");
            at = end + 1;
        } else if (begins_word(text, at, argument)) {
            strbuf_printf(&roff, "\\fI%s\\fR", argument);
            at += strlen(argument);
        } else {
            put_roff(&roff, at++, 1);
        }
    }
    put_lines(out, roff.data ? roff.data : "");
    strbuf_fini(&roff);
}

/* Of a command without --help, which its page describes once for all. */
static void print_man(const struct option_set *set, struct strbuf *out)
{
    for (size_t i = 0; i < set->count + !set->command; i++) {
        const struct option *option = option_at(set, i);
        if (option->heading && !set->command)
            strbuf_printf(out, ".SS %s\n", option->heading);
        strbuf_puts(out, ".TP\n\\fB");
        if (option->letter)
            strbuf_printf(out, "\\-%c\\fR, \\fB", option->letter);
        put_roff(out, option->name, strlen(option->name));
        strbuf_printf(out, "\\fR%s%s%s\n", option->argument ? " \\fI" : "",
                      option->argument ? option->argument : "", option->argument ? "\\fR" : "");
        if (option->more) {
            print_paragraph(option->more, option->argument, out);
        } else {
            char *sentence = str_format("%s.", option->help);
            if (sentence[0] >= 'a' && sentence[0] <= 'z')
                sentence[0] = (char)(sentence[0] - 'a' + 'A');
            print_paragraph(sentence, option->argument, out);
            free(sentence);
        }
    }
}

static void print_words(const struct option_set *set, struct strbuf *out)
{
    for (size_t i = 0; i <= set->count; i++) {
        const struct option *option = option_at(set, i);
        const char *completes = option->completes   ? option->completes
                                : !option->argument ? "flag"
                                : option->words[0]  ? "words"
                                : option->kind == OPTION_NUMBER || option->kind == OPTION_WHOLE
                                    ? "none"
                                    : "file";
        strbuf_printf(out, "%s %s%c %s", option->name, option->letter ? "-" : "",
                      option->letter ? option->letter : '-', completes);
        for (int k = 0; k < OPTION_WORDS_MAX && option->words[k]; k++)
            strbuf_printf(out, " %s", option->words[k]);
        strbuf_puts(out, "\n");
    }
}

void options_print(const struct option_set *set, const char *form, const char *head,
                   const char *tail, struct strbuf *out)
{
    if (strcmp(form, "man") == 0) {
        print_man(set, out);
    } else if (strcmp(form, "words") == 0) {
        print_words(set, out);
    } else {
        strbuf_puts(out, head);
        print_help_lines(set, out);
        strbuf_puts(out, tail);
    }
}
