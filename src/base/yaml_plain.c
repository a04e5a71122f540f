/* Reads YAML in the form that the inventory's writer gives it. Whatever looks different is left to
 * libyaml, so each function here returns -ENOTSUP at the first byte that it does not expect. */
#include "base/yaml_plain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/yaml_build.h"

enum {
    INDENT = 2,
    KEY_MAX = 512, /* YAML allows keys without a mark up to 1024 characters */
    NO_LINE = -1,
};

struct plain {
    const char *at, *end;
    int indent; /* of the line that begins at `at`; NO_LINE after the last one */
    int depth;
    size_t nodes;
    const struct yaml_limits *limits;
    const struct yaml_plain_list *list;
    struct yaml_build build;
};

static int other_form(void)
{
    return -ENOTSUP;
}

/* What may be in a text without quotes. The first character is not '(', '=', '+', '.' or a space;
 * '-' only before a digit. None of these begins or ends anything else in YAML. */
static bool plain_is_word(unsigned char c)
{
    static const bool plain[256] = {
        ['0' ... '9'] = true, ['a' ... 'z'] = true, ['A' ... 'Z'] = true, ['_'] = true,
        ['-'] = true,         ['.'] = true,         ['/'] = true,         ['+'] = true,
        ['('] = true,         [')'] = true,         ['='] = true,         [' '] = true,
    };
    return plain[c];
}

static bool begins_plain(const char *at, const char *end)
{
    if (at == end)
        return false;
    if (*at == '-')
        return at + 1 < end && at[1] >= '0' && at[1] <= '9';
    return plain_is_word((unsigned char)*at) && !strchr(".+()= ", *at);
}

static bool plain_skip(struct plain *p, char c)
{
    if (p->at == p->end || *p->at != c)
        return false;
    p->at++;
    return true;
}

/* Ends a line and looks how far the next one is indented. */
static int next_line(struct plain *p)
{
    if (!plain_skip(p, '\n'))
        return other_form();
    const char *begin = p->at;
    while (plain_skip(p, ' '))
        ;
    p->indent = p->at == p->end ? NO_LINE : (int)(p->at - begin);
    return p->at == p->end && p->at != begin ? other_form() : 0;
}

static struct yaml_node *plain_node(struct plain *p, enum yaml_kind kind)
{
    p->nodes++;
    return yaml_build_node(&p->build, kind);
}

static void push_text(struct plain *p, const char *text, bool plain)
{
    struct yaml_node *node = plain_node(p, YAML_SCALAR);
    node->text = text;
    node->plain = plain;
    yaml_build_push(&p->build, node);
}

static int read_bare(struct plain *p)
{
    const char *begin = p->at;
    if (!begins_plain(p->at, p->end))
        return other_form();
    while (p->at < p->end && plain_is_word((unsigned char)*p->at))
        p->at++;
    if (p->at[-1] == ' ')
        return other_form();
    push_text(p, arena_copy(&p->build.doc->texts, begin, (size_t)(p->at - begin)), true);
    return 0;
}

/* The character behind a backslash; 0 for those that are left to libyaml. */
static char escaped(char c)
{
    switch (c) {
    case '"':
    case '\\':
        return c;
    case 'n':
        return '\n';
    case 't':
        return '\t';
    case 'r':
        return '\r';
    default:
        return 0;
    }
}

static int read_quoted(struct plain *p)
{
    const char *begin = ++p->at, *end = begin;
    while (end < p->end && *end != '"')
        end += *end == '\\' && end + 1 < p->end ? 2 : 1;
    if (end >= p->end)
        return other_form();
    char *text = arena_copy(&p->build.doc->texts, begin, (size_t)(end - begin));
    char *to = text;
    for (const char *from = begin; from < end; from++) {
        char c = *from == '\\' ? escaped(*++from) : *from >= ' ' && *from < 0x7f ? *from : 0;
        if (!c)
            return other_form();
        *to++ = c;
    }
    *to = '\0';
    p->at = end + 1;
    push_text(p, text, false);
    return 0;
}

static int plain_scalar(struct plain *p)
{
    return p->at < p->end && *p->at == '"' ? read_quoted(p) : read_bare(p);
}

/* A key and its colon. */
static int read_key(struct plain *p)
{
    const char *begin = p->at;
    int rc = plain_scalar(p);
    if (!rc && (p->at - begin > KEY_MAX || !plain_skip(p, ':')))
        rc = other_form();
    return rc;
}

static int end_node(struct plain *p, struct yaml_node *node, size_t base)
{
    p->depth--;
    if (p->nodes > p->limits->nodes_max)
        return other_form();
    if (yaml_build_adopt(&p->build, node, base, NULL))
        return other_form();
    yaml_build_push(&p->build, node);
    return 0;
}

static int begin_node(struct plain *p, enum yaml_kind kind, struct yaml_node **out_node)
{
    if (p->depth++ >= p->limits->depth_max)
        return other_form();
    *out_node = plain_node(p, kind);
    return 0;
}

static int read_flow(struct plain *p);

/* Behind the comma of a list or mapping in flow style: a space, or the next line and its indent. */
static bool skip_gap(struct plain *p)
{
    if (plain_skip(p, '\n') && (p->at == p->end || *p->at != ' '))
        return false;
    if (!plain_skip(p, ' '))
        return false;
    while (plain_skip(p, ' '))
        ;
    return true;
}

static int read_flow_items(struct plain *p, bool mapping)
{
    char last = mapping ? '}' : ']';
    if (plain_skip(p, last))
        return 0;
    for (;;) {
        int rc = mapping ? read_key(p) : 0;
        if (!rc && mapping && !plain_skip(p, ' '))
            rc = other_form();
        if (!rc)
            rc = read_flow(p);
        if (rc || plain_skip(p, last))
            return rc;
        if (!plain_skip(p, ',') || !skip_gap(p))
            return other_form();
    }
}

/* A value in flow style. */
static int read_flow(struct plain *p)
{
    bool mapping = plain_skip(p, '{');
    if (!mapping && !plain_skip(p, '['))
        return plain_scalar(p);
    size_t base = p->build.stack_count;
    struct yaml_node *node;
    int rc = begin_node(p, mapping ? YAML_MAPPING : YAML_SEQUENCE, &node);
    if (!rc)
        rc = read_flow_items(p, mapping);
    return rc ? rc : end_node(p, node, base);
}

static int plain_block(struct plain *p, int indent);

/* The value behind a key's colon: on the same line, or a block below it. */
static int plain_value(struct plain *p, int indent)
{
    if (plain_skip(p, ' ')) {
        int rc = read_flow(p);
        return rc ? rc : next_line(p);
    }
    int rc = next_line(p);
    if (rc || p->indent != indent + INDENT)
        return rc ? rc : other_form();
    return plain_block(p, indent + INDENT);
}

/* Also the mapping that begins behind the dash of a list: its first key is not at a line's begin.
 */
static int read_mapping(struct plain *p, int indent)
{
    size_t base = p->build.stack_count;
    struct yaml_node *node;
    int rc = begin_node(p, YAML_MAPPING, &node);
    do {
        if (!rc)
            rc = read_key(p);
        if (!rc)
            rc = plain_value(p, indent);
    } while (!rc && p->indent == indent);
    if (!rc && p->indent > indent)
        rc = other_form();
    return rc ? rc : end_node(p, node, base);
}

static int plain_item(struct plain *p, int indent)
{
    if (!plain_skip(p, '-') || !plain_skip(p, ' ') || p->at == p->end)
        return other_form();
    if (*p->at != '{' && *p->at != '[')
        return read_mapping(p, indent + INDENT);
    int rc = read_flow(p);
    return rc ? rc : next_line(p);
}

static int plain_block(struct plain *p, int indent)
{
    if (*p->at != '-' || begins_plain(p->at, p->end))
        return read_mapping(p, indent);
    size_t base = p->build.stack_count;
    struct yaml_node *node;
    int rc = begin_node(p, YAML_SEQUENCE, &node);
    while (!rc && p->indent == indent)
        rc = plain_item(p, indent);
    if (!rc && p->indent > indent)
        rc = other_form();
    return rc ? rc : end_node(p, node, base);
}

/* Reads one item of the list into memory that is used again for the next one. */
static int give_item(struct plain *p, struct yaml_doc *scratch, int indent)
{
    size_t base = p->build.stack_count;
    struct yaml_doc *doc = p->build.doc;
    p->build.doc = scratch;
    int rc = plain_item(p, indent);
    p->build.doc = doc;
    if (rc)
        return rc;
    rc = p->list->take(p->list->user, p->build.stack[base], NULL);
    p->build.stack_count = base;
    arena_reset(&scratch->arena);
    arena_reset(&scratch->texts);
    return rc ? other_form() : 0;
}

/* The list that is given away; an empty one takes its place. */
static int give_list(struct plain *p)
{
    struct yaml_doc scratch = {.name = p->build.doc->name};
    size_t base = p->build.stack_count;
    struct yaml_node *node;
    int rc = begin_node(p, YAML_SEQUENCE, &node);
    while (!rc && p->indent == INDENT)
        rc = give_item(p, &scratch, INDENT);
    if (!rc && p->indent > INDENT)
        rc = other_form();
    arena_fini(&scratch.arena);
    arena_fini(&scratch.texts);
    return rc ? rc : end_node(p, node, base);
}

/* True at the end of the line of the key of `list`, if its items follow. */
static bool at_list(const struct plain *p)
{
    static const char begin[] = "\n  - ";
    const struct yaml_node *key = p->build.stack[p->build.stack_count - 1];
    return p->list && strcmp(key->text, p->list->key) == 0 &&
           (size_t)(p->end - p->at) >= sizeof begin - 1 &&
           memcmp(p->at, begin, sizeof begin - 1) == 0;
}

static int read_outermost(struct plain *p)
{
    struct yaml_node *node;
    int rc = begin_node(p, YAML_MAPPING, &node);
    do {
        if (!rc)
            rc = read_key(p);
        if (!rc && at_list(p)) {
            rc = next_line(p);
            if (!rc)
                rc = give_list(p);
        } else if (!rc) {
            rc = plain_value(p, 0);
        }
    } while (!rc && p->indent == 0);
    if (!rc && p->indent != NO_LINE)
        rc = other_form();
    return rc ? rc : end_node(p, node, 0);
}

int yaml_plain_read(const char *text, size_t length, const char *name,
                    const struct yaml_limits *limits, const struct yaml_plain_list *list,
                    struct yaml_doc **out_doc)
{
    struct plain p = {.at = text, .end = text + length, .limits = limits, .list = list};
    if (length > limits->bytes_max)
        return other_form();
    p.build.doc = yaml_doc_create(name);
    int rc = read_outermost(&p);
    if (rc) {
        yaml_destroy(p.build.doc);
    } else {
        p.build.doc->root = p.build.stack[0];
        *out_doc = p.build.doc;
    }
    free(p.build.stack);
    return rc;
}
