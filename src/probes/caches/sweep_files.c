/* Sweeps that others measured: a line for each finding. */
#include "probes/caches/sweep_files.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "probes/caches/sweep_findings.h"

static void file_report(struct sweep_file *file, struct strbuf *out)
{
    static const struct {
        const char *key;
        void (*find)(const struct sweep_file *, struct file_finding *);
    } figures[] = {
        [FIGURE_FETCH] = {"fetch", sweep_find_fetch},
        [FIGURE_LINE] = {"line", sweep_find_line},
        [FIGURE_SIZE] = {"onset", sweep_find_onset},
        [FIGURE_LATENCY] = {"latency", sweep_find_latency},
    };
    struct file_finding f = {0};
    if (file->count)
        figures[file->figure].find(file, &f);
    else
        snprintf(f.why, sizeof f.why, "the file has no numbers");
    if (file->figure != FIGURE_LATENCY)
        sweep_check_level(file, &f);
    strbuf_printf(out, "- {gpu: \"%s\", memory: \"%s\", figure: %s, ", file->gpu, file->memory,
                  figures[file->figure].key);
    if (f.known)
        strbuf_printf(out, "value: %.10g, unit: %s, sure: %s, step: %.10g", f.value,
                      file->figure == FIGURE_LATENCY ? "cycles" : "B", f.sure ? "true" : "false",
                      f.step);
    else
        strbuf_puts(out, "value: null, sure: false");
    if (f.hit > 0 && f.miss > 0)
        strbuf_printf(out, ", hit: %.1f, miss: %.1f", f.hit, f.miss);
    if (*f.why)
        strbuf_printf(out, ", reason: \"%s\"", f.why);
    if (file->left_out)
        strbuf_printf(out, ", lines_left_out: %zu", file->left_out);
    strbuf_puts(out, "}\n");
}

static int report_file(const char *path, struct strbuf *out, struct err *err)
{
    struct sweep_file file;
    int rc = sweep_file_read(path, &file, err);
    if (rc)
        return rc;
    file_report(&file, out);
    sweep_file_fini(&file);
    return 0;
}

static int report_folder(const char *path, struct strbuf *out, struct err *err)
{
    struct dirent **entries;
    int count = scandir(path, &entries, NULL, alphasort), rc = 0;
    if (count < 0)
        return err_set_at(err, -errno, path, 0, 0, "cannot be read: %s", strerror(errno));
    for (int i = 0; i < count; i++) {
        char *inner = str_format("%s/%s", path, entries[i]->d_name);
        struct stat st;
        struct err own = {0};
        bool hidden = entries[i]->d_name[0] == '.';
        if (!rc && !hidden && !stat(inner, &st)) {
            int failed = S_ISDIR(st.st_mode) ? report_folder(inner, out, &own)
                                             : report_file(inner, out, &own);
            if (failed && failed != -ENOMSG) {
                rc = failed;
                *err = own;
            }
        }
        free(inner);
        free(entries[i]);
    }
    free(entries);
    return rc;
}

int sweep_files_report(const char *path, struct strbuf *out_text, struct err *err)
{
    struct stat st;
    size_t before = out_text->length;
    if (stat(path, &st))
        return err_set_at(err, -errno, path, 0, 0, "cannot be opened: %s", strerror(errno));
    int rc =
        S_ISDIR(st.st_mode) ? report_folder(path, out_text, err) : report_file(path, out_text, err);
    if (!rc && out_text->length == before)
        rc = err_set_at(err, -ENODATA, path, 0, 0, "no file of a sweep");
    return rc;
}
