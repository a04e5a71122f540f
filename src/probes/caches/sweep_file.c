/* Reads a sweep that others measured. */
#include "probes/caches/sweep_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "base/str.h"

enum { BYTES_MAX = 256 }; /* MiB of a file */

/* Beyond any size, stride and latency. */
static const double NUMBER_MAX = 1e15;

static const struct {
    const char *name;
    size_t columns; /* before the latencies */
} figures[FIGURE_COUNT] = {
    [FIGURE_FETCH] = {"Fetch Granularity", 1},
    [FIGURE_LINE] = {"Line Size", 2},
    [FIGURE_SIZE] = {"Size", 1},
    [FIGURE_LATENCY] = {"Latency", 0},
};

void sweep_file_fini(struct sweep_file *file)
{
    free(file->folder);
    free(file->gpu);
    free(file->memory);
    free(file->rows);
    free(file->numbers);
}

/* Rows of a file in the order in which they are searched. Of Line Size: by array, long strides
 * first, so that the first rows hit and the last ones miss. */
static int file_row_order(const void *a, const void *b)
{
    const struct file_row *p = a, *q = b;
    if (p->y != q->y)
        return p->y < q->y ? -1 : 1;
    if (p->y > 0)
        return (p->x < q->x) - (p->x > q->x);
    return (p->x > q->x) - (p->x < q->x);
}

/* Splits "<GPU> - <memory> <figure>.txt". False if the name has another form. */
static bool parse_name(const char *path, struct sweep_file *file)
{
    const char *name = str_last_part(path), *dash = strstr(name, " - ");
    for (const char *next = dash; next; next = strstr(next + 1, " - "))
        dash = next;
    size_t length = strlen(name), tail = strlen(".txt");
    if (!dash || length < tail || strcmp(name + length - tail, ".txt") != 0)
        return false;
    length -= tail;
    for (file->figure = 0; file->figure < FIGURE_COUNT; file->figure++) {
        const char *word = figures[file->figure].name;
        const char *at = name + length - strlen(word);
        if (at <= dash + strlen(" - ") || strncmp(at, word, strlen(word)) != 0 || at[-1] != ' ')
            continue;
        file->folder = str_copy_n(path, (size_t)(name - path));
        file->gpu = str_copy_n(name, (size_t)(dash - name));
        file->memory = str_copy_n(dash + 3, (size_t)(at - 1 - dash - 3));
        return true;
    }
    return false;
}

/* Appends the numbers of a line; false if it is no list of numbers that are not negative. */
static bool parse_line(char *line, struct sweep_file *file, size_t *used, size_t *capacity)
{
    size_t before = *used;
    char *rest = line;
    for (char *word; (word = strsep(&rest, ","));) {
        double value;
        if (!rest && !*word && *used > before)
            break; /* a comma at the end */
        if (str_parse_f64(word, &value) || value < 0 || value > NUMBER_MAX) {
            *used = before;
            return false;
        }
        file->numbers = mem_grow(file->numbers, capacity, *used + 1, sizeof *file->numbers);
        file->numbers[(*used)++] = value;
    }
    return *used > before + figures[file->figure].columns;
}

/* Reads the rows. Lines that are no numbers are left out, and a last line without an end: it may
 * have been cut inside a number. */
static int read_rows(FILE *stream, const char *path, struct sweep_file *file, struct err *err)
{
    char *line = NULL;
    size_t size = 0, used = 0, numbers = 0, rows = 0, bytes = 0, *starts = NULL, places = 0;
    size_t columns = figures[file->figure].columns;
    for (ssize_t length; (length = getline(&line, &size, stream)) > 0;) {
        bool whole = line[length - 1] == '\n';
        size_t before = used;
        bytes += (size_t)length;
        if (bytes >> 20 >= BYTES_MAX) {
            free(line);
            free(starts);
            return err_set_at(err, -EFBIG, path, 0, 0, "more than %d MiB", BYTES_MAX);
        }
        while (length > 0 && (line[length - 1] == '\n' || line[length - 1] == '\r'))
            line[--length] = 0;
        if (!length)
            continue;
        if (!whole || !parse_line(line, file, &used, &numbers)) {
            file->left_out++;
            used = before;
            continue;
        }
        starts = mem_grow(starts, &places, rows + 2, sizeof *starts);
        starts[rows++] = before;
        starts[rows] = used;
    }
    free(line);
    file->rows = mem_array(rows, sizeof *file->rows);
    for (file->count = 0; file->count < rows; file->count++) {
        const double *at = file->numbers + starts[file->count];
        file->rows[file->count] =
            (struct file_row){.x = columns ? at[0] : 0,
                              .y = columns > 1 ? at[1] : 0,
                              .loads = at + columns,
                              .count = starts[file->count + 1] - starts[file->count] - columns};
    }
    free(starts);
    sort_stable(file->rows, file->count, sizeof *file->rows, file_row_order);
    return 0;
}

int sweep_file_read(const char *path, struct sweep_file *out_file, struct err *err)
{
    struct sweep_file file = {0};
    if (!parse_name(path, &file))
        return err_set_at(err, -ENOMSG, path, 0, 0,
                          "not named \"<GPU> - <memory> <figure>.txt\" with the figure Size, Line "
                          "Size, Fetch Granularity or Latency");
    FILE *stream = fopen(path, "re");
    int rc = stream ? read_rows(stream, path, &file, err) : -errno;
    if (!stream)
        err_set_at(err, rc, path, 0, 0, "cannot be opened: %s", strerror(-rc));
    else
        fclose(stream);
    if (rc) {
        sweep_file_fini(&file);
        return rc;
    }
    *out_file = file;
    return 0;
}

bool sweep_file_sibling(const struct sweep_file *file, enum file_figure figure,
                        struct sweep_file *out_sibling)
{
    struct err ignored = {0};
    char *path =
        str_format("%s%s - %s %s.txt", file->folder, file->gpu, file->memory, figures[figure].name);
    bool is = !sweep_file_read(path, out_sibling, &ignored);
    free(path);
    return is;
}
