/* Command lines by tables: what is read, what is refused, and the forms of the help. */
#include "../check.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/options.h"

struct values {
    bool quiet;
    const char *output;
    struct option_list files;
    int colour;
    bool colour_given;
    double seconds;
    uint64_t jobs;
};

static const struct option rows[] = {
    {.heading = "Output",
     .name = "--output",
     .letter = 'o',
     .argument = "FILE",
     .kind = OPTION_TEXT,
     .offset = offsetof(struct values, output),
     .help = "where to",
     .more = "The file; `-` is the standard output. FILE is written whole, FILES' names are not."},
    {.name = "--quiet", .offset = offsetof(struct values, quiet), .help = "say less"},
    {.name = "--colour",
     .argument = "WHEN",
     .kind = OPTION_WORD,
     .offset = offsetof(struct values, colour),
     .given = offsetof(struct values, colour_given),
     .words = {"auto", "always", "never"},
     .help = "auto, always or never"},
    {.heading = "Input",
     .name = "--file",
     .argument = "FILE",
     .kind = OPTION_LIST,
     .offset = offsetof(struct values, files),
     .list_max = 2,
     .help = "read it"},
    {.name = "--seconds",
     .argument = "S",
     .kind = OPTION_NUMBER,
     .offset = offsetof(struct values, seconds),
     .unit = "seconds",
     .min = 0.5,
     .max = 10,
     .help = "how long"},
    {.name = "--jobs",
     .letter = 'j',
     .argument = "N",
     .kind = OPTION_WHOLE,
     .offset = offsetof(struct values, jobs),
     .min = 1,
     .max = 8,
     .help = "how many"},
};

enum { WORDS_MAX = 8 };

static int read_words(const char *const *words, bool last_counts, struct values *out,
                      struct option_rest *out_rest, struct err *err)
{
    const struct option_set set = {.program = "program",
                                   .command = "command",
                                   .options = rows,
                                   .count = COUNT_OF(rows),
                                   .last_counts = last_counts};
    char *arguments[WORDS_MAX];
    int count = 0;
    for (; count < WORDS_MAX && words[count]; count++)
        arguments[count] = (char *)words[count];
    return options_read(&set, count, arguments, out, out_rest, err);
}

static void refuses(void **state)
{
    (void)state;
    static const struct {
        const char *words[WORDS_MAX], *text;
    } bad[] = {
        {{"--outptu", "x"}, "command has no flag --outptu; did you mean --output?"},
        {{"--frobnicate"}, "command has no flag --frobnicate; program command --help lists them"},
        {{"-x"}, "command has no flag -x"},
        {{"--output"}, "--output needs a value: FILE"},
        {{"--output="}, "--output needs a value: FILE"},
        {{"-o", ""}, "--output needs a value: FILE"},
        {{"--quiet=yes"}, "--quiet takes no value"},
        {{"-o", "a", "-o", "b"}, "--output is given twice; it takes FILE"},
        {{"--file=a", "--file=b", "--file=c"}, "--file is given more than 2 times"},
        {{"--colour", "red"}, "--colour is auto, always or never, not \"red\""},
        {{"--seconds", "0"}, "--seconds is a number of seconds from 0.5 to 10, not \"0\""},
        {{"--seconds", "nan"}, "--seconds is a number of seconds"},
        {{"--jobs", "9"}, "--jobs is a whole number from 1 to 8, not \"9\""},
        {{"-j1.5"}, "--jobs is a whole number"},
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct values values = {0};
        struct option_rest rest = {0};
        struct err err = {0};
        assert_int_equal(read_words(bad[i].words, false, &values, &rest, &err), -EINVAL);
        if (strncmp(err.text, bad[i].text, strlen(bad[i].text)) != 0)
            fail_msg("said \"%s\", expected \"%s\"", err.text, bad[i].text);
        assert_null(rest.words);
    }
}

static void reads(void **state)
{
    (void)state;
    struct values values = {.jobs = 1};
    struct option_rest rest;
    struct err err = {0};
    assert_int_equal(read_words((const char *const[]){"-oout", "in", "--file=a", "--file", "b",
                                                      "--colour=never", "--", "--quiet"},
                                false, &values, &rest, &err),
                     0);
    assert_string_equal(values.output, "out");
    assert_int_equal(values.files.count, 2);
    assert_string_equal(values.files.items[1], "b");
    assert_int_equal(values.colour, 2);
    assert_true(values.colour_given && !values.quiet && values.jobs == 1);
    assert_int_equal(rest.count, 2);
    assert_string_equal(rest.words[0], "in");
    assert_string_equal(rest.words[1], "--quiet");
    assert_null(rest.help);
    free(rest.words);
    assert_int_equal(read_words((const char *const[]){"-j", "2", "-j8", "--seconds", "2.5",
                                                      "--quiet", "-", NULL},
                                true, &values, &rest, &err),
                     0);
    assert_true(values.jobs == 8 && values.seconds == 2.5 && values.quiet && rest.count == 1);
    free(rest.words);
    assert_int_equal(read_words((const char *const[]){"--help", "--nonsense", NULL}, false, &values,
                                &rest, &err),
                     0);
    assert_string_equal(rest.help, "");
    free(rest.words);
    assert_int_equal(
        read_words((const char *const[]){"--help=man", NULL}, false, &values, &rest, &err), 0);
    assert_string_equal(rest.help, "man");
    free(rest.words);
}

static void prints(void **state)
{
    (void)state;
    static const struct {
        const char *form, *text;
    } forms[] = {
        {"", "head\nOutput:\n"
             "  -o, --output FILE         where to\n"
             "      --quiet               say less\n"
             "      --colour WHEN         auto, always or never\n"
             "\nInput:\n"
             "      --file FILE           read it\n"},
        {"man", ".SS Output\n.TP\n\\fB\\-o\\fR, \\fB\\-\\-output\\fR \\fIFILE\\fR\nThe file;\n"
                "\\fB\\-\\fR is the standard output.\n\\fIFILE\\fR is written whole, FILES\\(aq "
                "names are not.\n.TP\n\\fB\\-\\-quiet\\fR\nSay less.\n"},
        {"words", "--output -o file\n--quiet - flag\n--colour - words auto always never\n"
                  "--file - file\n--seconds - none\n--jobs -j none\n--help -h flag\n"},
    };
    const struct option_set set = {.program = "program", .options = rows, .count = COUNT_OF(rows)};
    for (size_t i = 0; i < COUNT_OF(forms); i++) {
        struct strbuf text = {0};
        options_print(&set, forms[i].form, "head\n", "tail\n", &text);
        if (strncmp(text.data, forms[i].text, strlen(forms[i].text)) != 0)
            fail_msg("form %s: %s", forms[i].form, text.data);
        strbuf_fini(&text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses),
        cmocka_unit_test(reads),
        cmocka_unit_test(prints),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
