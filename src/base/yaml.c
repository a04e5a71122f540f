/* YAML documents with positions, on libyaml's event parser. */
#include "base/yaml.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <yaml.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/yaml_build.h"

const struct yaml_limits yaml_limits_config = {
    .bytes_max = 1024 * 1024, .nodes_max = 100000, .depth_max = 32};
const struct yaml_limits yaml_limits_inventory = {
    .bytes_max = 1024 * 1024 * 1024, .nodes_max = 100000000, .depth_max = 32};
const struct yaml_limits yaml_limits_plain = {
    .bytes_max = (size_t)4 << 30, .nodes_max = (size_t)1 << 30, .depth_max = 32};

struct builder {
    struct yaml_build build;
    const struct yaml_limits *limits;
    yaml_parser_t parser;
    size_t nodes;
};

static int parser_error(struct builder *b, struct err *err)
{
    const yaml_parser_t *p = &b->parser;
    const char *problem = p->problem ? p->problem : "not YAML";
    if (p->error == YAML_MEMORY_ERROR)
        mem_exhausted(0);
    if (p->error == YAML_READER_ERROR)
        return err_set_at(err, -EINVAL, b->build.doc->name, 1, 1,
                          "not a YAML text file: %s at byte %zu", problem, p->problem_offset);
    return err_set_at(err, -EINVAL, b->build.doc->name, (int)p->problem_mark.line + 1,
                      (int)p->problem_mark.column + 1, "not valid YAML: %s", problem);
}

static int mark_error(struct builder *b, const yaml_mark_t *mark, int code, struct err *err,
                      const char *text)
{
    return err_set_at(err, code, b->build.doc->name, (int)mark->line + 1, (int)mark->column + 1,
                      "%s", text);
}

static struct yaml_node *builder_node(struct builder *b, enum yaml_kind kind,
                                      const yaml_mark_t *mark)
{
    struct yaml_node *node = yaml_build_node(&b->build, kind);
    node->line = (int)mark->line + 1;
    node->column = (int)mark->column + 1;
    return node;
}

static int builder_scalar(struct builder *b, const yaml_event_t *event, struct err *err)
{
    struct yaml_node *node = builder_node(b, YAML_SCALAR, &event->start_mark);
    const char *text = (const char *)event->data.scalar.value;
    if (strlen(text) != event->data.scalar.length)
        return mark_error(b, &event->start_mark, -EINVAL, err, "a NUL byte inside a value");
    node->text = arena_copy(&b->build.doc->texts, text, event->data.scalar.length);
    node->plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    yaml_build_push(&b->build, node);
    return 0;
}

/* Open collections are kept on a stack of fixed size; a higher depth_max has no effect. */
enum { DEPTH_CAP = 64 };

struct open_node {
    struct yaml_node *node;
    size_t base;
};

static int handle_event(struct builder *b, const yaml_event_t *event, struct open_node *open,
                        int *depth, struct err *err)
{
    if (event->type == YAML_ALIAS_EVENT)
        return mark_error(b, &event->start_mark, -EINVAL, err, "aliases (*name) are not accepted");
    if (event->type == YAML_SCALAR_EVENT || event->type == YAML_SEQUENCE_START_EVENT ||
        event->type == YAML_MAPPING_START_EVENT) {
        if (++b->nodes > b->limits->nodes_max)
            return mark_error(b, &event->start_mark, -EFBIG, err,
                              "more values than a file may have");
    }
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        return builder_scalar(b, event, err);
    case YAML_SEQUENCE_START_EVENT:
    case YAML_MAPPING_START_EVENT:
        if (*depth >= b->limits->depth_max || *depth >= DEPTH_CAP)
            return mark_error(b, &event->start_mark, -EFBIG, err, "nested too deeply");
        open[*depth].base = b->build.stack_count;
        open[*depth].node =
            builder_node(b, event->type == YAML_MAPPING_START_EVENT ? YAML_MAPPING : YAML_SEQUENCE,
                         &event->start_mark);
        (*depth)++;
        return 0;
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT: {
        struct open_node *top = &open[--*depth];
        int rc = yaml_build_adopt(&b->build, top->node, top->base, err);
        if (!rc)
            yaml_build_push(&b->build, top->node);
        return rc;
    }
    default:
        return 0;
    }
}

static int builder_run(struct builder *b, struct err *err)
{
    struct open_node open[DEPTH_CAP];
    int depth = 0, documents = 0;
    for (bool more = true; more;) {
        yaml_event_t event;
        if (!yaml_parser_parse(&b->parser, &event))
            return parser_error(b, err);
        int rc = 0;
        if (event.type == YAML_DOCUMENT_START_EVENT && ++documents > 1)
            rc = mark_error(b, &event.start_mark, -EINVAL, err, "a second document begins here");
        if (!rc)
            rc = handle_event(b, &event, open, &depth, err);
        more = event.type != YAML_STREAM_END_EVENT;
        yaml_event_delete(&event);
        if (rc)
            return rc;
    }
    if (!b->build.stack_count)
        return err_set_at(err, -EINVAL, b->build.doc->name, 1, 1, "the file is empty");
    b->build.doc->root = b->build.stack[0];
    return 0;
}

static int too_large(const char *name, const struct yaml_limits *limits, struct err *err)
{
    return err_set_at(err, -EFBIG, name, 0, 0, "larger than the %zu KiB such a file may have",
                      limits->bytes_max / 1024);
}

int yaml_read_text(const char *text, size_t length, const char *name,
                   const struct yaml_limits *limits, struct yaml_doc **out_doc, struct err *err)
{
    struct builder b = {.limits = limits};
    if (length > limits->bytes_max)
        return too_large(name, limits, err);
    b.build.doc = yaml_doc_create(name);
    if (!yaml_parser_initialize(&b.parser))
        mem_exhausted(0);
    yaml_parser_set_encoding(&b.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&b.parser, (const unsigned char *)text, length);
    int rc = builder_run(&b, err);
    yaml_parser_delete(&b.parser);
    free(b.build.stack);
    if (rc)
        yaml_destroy(b.build.doc);
    else
        *out_doc = b.build.doc;
    return rc;
}

/* True for a device other than a terminal: reading it might never end. */
static bool is_endless(int fd, const struct stat *info)
{
    return S_ISBLK(info->st_mode) || (S_ISCHR(info->st_mode) && !isatty(fd));
}

static int yaml_read_all(int fd, const char *path, const struct yaml_limits *limits,
                         struct strbuf *out, struct err *err)
{
    char block[65536];
    for (;;) {
        ssize_t n = read(fd, block, sizeof block);
        if (n == 0)
            return 0;
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_set_at(err, -errno, path, 0, 0, "cannot read: %s", strerror(errno));
        strbuf_append(out, block, (size_t)n);
        if (out->length > limits->bytes_max)
            return too_large(path, limits, err);
    }
}

int yaml_load_text_of(const char *path, const struct yaml_limits *limits, struct strbuf *out_text,
                      struct stat *out_info, struct err *err)
{
    struct stat info;
    /* O_NONBLOCK: a pipe without a writer counts as empty instead of blocking the caller. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return err_set_at(err, -errno, path, 0, 0, "cannot open: %s", strerror(errno));
    int rc = 0;
    fcntl(fd, F_SETFL, 0);
    if (fstat(fd, &info))
        rc = err_set_at(err, -errno, path, 0, 0, "cannot read: %s", strerror(errno));
    else if (is_endless(fd, &info))
        rc = err_set_at(err, -EINVAL, path, 0, 0, "is a device, expected a file");
    else if (S_ISREG(info.st_mode) && (uint64_t)info.st_size > limits->bytes_max)
        rc = too_large(path, limits, err);
    if (!rc)
        rc = yaml_read_all(fd, path, limits, out_text, err);
    close(fd);
    if (!rc)
        *out_info = info;
    return rc;
}

int yaml_load_text(const char *path, const struct yaml_limits *limits, struct strbuf *out_text,
                   struct err *err)
{
    struct stat ignored;
    return yaml_load_text_of(path, limits, out_text, &ignored, err);
}

int yaml_read_file(const char *path, const struct yaml_limits *limits, struct yaml_doc **out_doc,
                   struct err *err)
{
    struct strbuf text = {0};
    int rc = yaml_load_text(path, limits, &text, err);
    if (!rc)
        rc = yaml_read_text(text.data ? text.data : "", text.length, path, limits, out_doc, err);
    strbuf_fini(&text);
    return rc;
}
