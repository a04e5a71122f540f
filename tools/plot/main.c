/* plot_sweeps: draws one sweep per memory of a GPU, the figures of docs/METHOD.md. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "device/sim/sim.h"
#include "device/source.h"
#include "plot.h"

enum { SEED = 1, MEMORY_L2 = STUDY_COUNT, MEMORIES };

static const char *memory_name(int memory)
{
    return memory == MEMORY_L2 ? "l2" : study_name((enum study_id)memory);
}

/* What the GPU to be drawn comes from: a model file, or the first GPU of this machine. */
struct origin {
    struct sim_model *model;
    struct device_source *source;
    const char *name;
};

static int open_device(const struct origin *origin, struct device **out_device, struct err *err)
{
    if (origin->model)
        return sim_open(origin->model, NULL, 0, SEED, out_device, err);
    return device_source_open(origin->source, 0, out_device, err);
}

static int find_origin(const char *text, struct origin *out_origin, struct err *err)
{
    int rc;
    if (strcmp(text, "cuda") == 0)
        rc = device_source_cuda(&out_origin->source, err);
    else
        rc = sim_model_read_file(text, &out_origin->model, err);
    if (rc)
        return rc;
    out_origin->name = out_origin->model ? sim_model_name(out_origin->model)
                                         : device_source_info(out_origin->source, 0)->name;
    return 0;
}

static void origin_fini(struct origin *origin)
{
    sim_model_destroy(origin->model);
    device_source_destroy(origin->source);
}

/* On a GPU of its own, so that a figure does not depend on which others are drawn. */
static int measure(const struct origin *origin, int memory, struct plot *out_plot, struct err *err)
{
    static const struct probe_options options = {.profile = PROFILE_STANDARD, .seed = SEED};
    struct measures measures = {0};
    struct probe_context context = {.options = &options, .measures = &measures};
    double mhz;
    int rc = open_device(origin, &context.device, err);
    if (!rc)
        rc = device_warm_up(context.device, &mhz, err);
    if (!rc)
        rc = memory == MEMORY_L2 ? plot_l2(&context, out_plot, err)
                                 : plot_cache(&context, (enum study_id)memory, out_plot, err);
    if (!rc)
        snprintf(out_plot->title, sizeof out_plot->title, "%.60s%s: %s", origin->name,
                 origin->model ? " (simulated)" : "", memory_name(memory));
    measures_fini(&measures);
    device_destroy(context.device);
    return rc;
}

/* FOLDER/h200-l1_data.svg for the model h200.yaml */
static int write_file(const char *model_path, const char *folder, int memory,
                      const struct plot *plot, struct err *err)
{
    const char *slash = strrchr(model_path, '/'), *base = slash ? slash + 1 : model_path;
    struct strbuf path = {0};
    strbuf_printf(&path, "%s/%.*s-%s.svg", folder, (int)strcspn(base, "."), base,
                  memory_name(memory));
    if (path.failed)
        return err_no_memory(err);
    FILE *file = fopen(path.data, "w");
    int rc = file ? 0 : err_set(err, -errno, "%s: %s", path.data, strerror(errno));
    if (file) {
        plot_write_svg(file, plot);
        bool failed = ferror(file);
        if (fclose(file) || failed)
            rc = err_set(err, -EIO, "%s: not written", path.data);
    }
    strbuf_fini(&path);
    return rc;
}

static int check_names(char *const *names, int count, struct err *err)
{
    for (int i = 0; i < count; i++) {
        int memory = 0;
        while (memory < MEMORIES && strcmp(names[i], memory_name(memory)) != 0)
            memory++;
        if (memory == MEMORIES)
            return err_set(err, -EINVAL, "no memory is called \"%.60s\"", names[i]);
    }
    return 0;
}

static bool is_wanted(const char *name, char *const *names, int count)
{
    for (int i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return count == 0;
}

static int draw(const struct origin *origin, const char *name, const char *folder, int memory,
                struct err *err)
{
    struct plot plot;
    int rc = measure(origin, memory, &plot, err);
    if (rc == -ENODATA) {
        fprintf(stderr, "%s: %s\n", memory_name(memory), err->text);
        err_clear(err);
        return 0;
    }
    if (!rc && strcmp(folder, "-") == 0)
        plot_write_table(stdout, &plot);
    else if (!rc)
        rc = write_file(name, folder, memory, &plot, err);
    return rc;
}

int main(int argc, char **argv)
{
    struct origin origin = {0};
    struct err err = {0};
    char line[ERR_LINE_MAX];
    if (argc < 3) {
        fprintf(stderr, "usage: plot_sweeps MODEL.yaml|cuda FOLDER|- [MEMORY]...\n"
                        "Figures into FOLDER; -: tables on stdout.\n");
        return 2;
    }
    int rc = check_names(argv + 3, argc - 3, &err);
    if (!rc)
        rc = find_origin(argv[1], &origin, &err);
    for (int memory = 0; memory < MEMORIES && !rc; memory++)
        if (is_wanted(memory_name(memory), argv + 3, argc - 3))
            rc = draw(&origin, argv[1], argv[2], memory, &err);
    if (rc)
        fprintf(stderr, "plot_sweeps: %s\n", err_format(&err, line, sizeof line));
    origin_fini(&origin);
    return rc ? 1 : 0;
}
