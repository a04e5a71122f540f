/* plot_sweeps: draws the sweeps that an inventory of the profile `full` keeps, one picture for each
 * memory of each model. */
#include <stdio.h>
#include <string.h>

#include "base/out_file.h"
#include "inventory/inventory.h"
#include "report/html/sweep_chart.h"

/* FOLDER/nvidia-h200-l1_data.svg, with the suffix -sim for a simulated GPU. */
static int write_file(const struct inventory_model *model, const char *suffix, const char *folder,
                      const char *memory, const struct sweep_chart *plot, struct err *err)
{
    struct strbuf path = {0};
    strbuf_printf(&path, "%s/%s%s-%s.svg", folder, model->id, suffix, memory);
    struct strbuf picture = {0};
    sweep_chart_put_svg(&picture, plot, true);
    int rc = out_file_write(path.data, picture.data, picture.length, err);
    strbuf_fini(&picture);
    strbuf_fini(&path);
    return rc;
}

static int draw_model(const struct inventory_model *model, bool simulated, const char *folder,
                      struct err *err)
{
    int rc = 0;
    for (size_t i = 0; sweep_chart_memories[i] && !rc; i++) {
        struct sweep_chart plot;
        if (!sweep_chart_memory(&model->memory, sweep_chart_memories[i], &plot))
            continue;
        snprintf(plot.title, sizeof plot.title, "%.60s%s: %s", model->name,
                 simulated ? " (simulated)" : "", sweep_chart_memories[i]);
        rc =
            write_file(model, simulated ? "-sim" : "", folder, sweep_chart_memories[i], &plot, err);
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
