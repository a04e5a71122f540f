/* plot_sweeps: draws the sweeps that an inventory of the profile `full` keeps, one picture for each
 * memory of each model. */
#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "inventory/inventory.h"
#include "plot.h"

static const char *const memories[] = {"l1_data",      "texture",     "read_only",
                                       "constant_l15", "constant_l1", "l2"};

/* FOLDER/nvidia-h200-l1_data.svg, with the suffix -sim for a simulated GPU. */
static int write_file(const struct inventory_model *model, const char *suffix, const char *folder,
                      const char *memory, const struct plot *plot, struct err *err)
{
    struct strbuf path = {0};
    strbuf_printf(&path, "%s/%s%s-%s.svg", folder, model->id, suffix, memory);
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

static int draw_model(const struct inventory_model *model, bool simulated, const char *folder,
                      struct err *err)
{
    int rc = 0;
    for (size_t i = 0; i < COUNT_OF(memories) && !rc; i++) {
        struct plot plot;
        if (!plot_memory(&model->memory, memories[i], &plot))
            continue;
        snprintf(plot.title, sizeof plot.title, "%.60s%s: %s", model->name,
                 simulated ? " (simulated)" : "", memories[i]);
        rc = write_file(model, simulated ? "-sim" : "", folder, memories[i], &plot, err);
    }
    return rc;
}

int main(int argc, char **argv)
{
    struct inventory inventory = {0};
    struct err err = {0};
    char line[ERR_LINE_MAX];
    if (argc != 3) {
        fprintf(stderr, "usage: plot_sweeps INVENTORY.yaml FOLDER\n");
        return 2;
    }
    int rc = inventory_read_file(argv[1], &inventory, &err);
    for (size_t i = 0; i < inventory.model_count && !rc; i++)
        rc = draw_model(&inventory.models[i], strcmp(inventory.backend, "sim") == 0, argv[2], &err);
    if (rc)
        fprintf(stderr, "plot_sweeps: %s\n", err_format(&err, line, sizeof line));
    inventory_fini(&inventory);
    return rc ? 1 : 0;
}
