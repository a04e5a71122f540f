/* Command lines: a table of options is read into a struct. --help, the man page and the completion
 * of the shell come from the same table. */
#ifndef GPUMEMTOPO_BASE_OPTIONS_H
#define GPUMEMTOPO_BASE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/str.h"

/* The type of the struct's member. Texts point into argv. */
enum option_kind {
    OPTION_FLAG,   /* bool: set to true */
    OPTION_TEXT,   /* const char *: not empty */
    OPTION_LIST,   /* struct option_list: may be repeated */
    OPTION_WORD,   /* int or an enum: the place of the word in `words` */
    OPTION_NUMBER, /* double from `min` to `max` */
    OPTION_WHOLE,  /* uint64_t from `min` to `max` */
};

enum { OPTION_LIST_MAX = 64, OPTION_WORDS_MAX = 8 };

struct option_list {
    const char *items[OPTION_LIST_MAX];
    size_t count;
};

struct option {
    const char *heading;  /* of the group of --help that begins with this option; NULL: none does */
    const char *name;     /* "--output" */
    char letter;          /* 'o'; 0: none */
    const char *argument; /* "FILE"; NULL for OPTION_FLAG */
    enum option_kind kind;
    size_t offset;                       /* of the member */
    size_t given;                        /* of a bool that says whether it was given; 0: none */
    const char *words[OPTION_WORDS_MAX]; /* OPTION_WORD: all; otherwise what the shell offers */
    const char *unit;                    /* of a number, for messages: "seconds"; NULL: none */
    double min, max;
    unsigned list_max;     /* OPTION_LIST: how often it may be given; 0: OPTION_LIST_MAX */
    const char *completes; /* what the shell offers for the value: "file", "none", "probes",
                              "kernels" or "words"; NULL: what follows from kind and words */
    const char *help;      /* one line */
    const char *more;      /* the text of the man page; NULL: `help`. `text` is set in bold, the
                              argument in italics */
};

/* All options of a program or of one of its commands. --help and -h are added to each. */
struct option_set {
    const char *program; /* "gpumemtopo-report" */
    const char *command; /* "merge"; NULL: none */
    const struct option *options;
    size_t count;
    bool last_counts; /* an option that is given twice: the last one counts; otherwise refused */
};

/* What remains of a command line. */
struct option_rest {
    char **words; /* what is no option, in its order; freed by the caller */
    int count;
    const char *help; /* the form of the help that --help[=FORM] asks for; NULL: it was not given.
                         Nothing behind it was read */
};

/* Reads arguments (without the name of program and command) into the struct at `target`, which has
 * its defaults. A value follows behind '=', directly behind a letter, or as the next argument; "--"
 * ends the options. -EINVAL with one line that says what is wrong, and which option was meant. */
int options_read(const struct option_set *set, int count, char **arguments, void *target,
                 struct option_rest *out_rest, struct err *err);

/* What --help prints. For people: `head`, one line for each option under its heading, `tail`.
 * Form "man": the options as paragraphs of a man page. Form "words", for the completion of the
 * shell: for each option a line NAME LETTER COMPLETES [WORD...], with - where there is no letter.
 */
void options_print(const struct option_set *set, const char *form, const char *head,
                   const char *tail, struct strbuf *out);

#endif
