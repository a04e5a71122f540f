/* gpumemtopo-report show: summary, drawing, comparison. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "report/command.h"
#include "report/compare.h"
#include "report/summary.h"
#include "report/topology.h"

static int read_style(const struct command_options *options, struct report_style *out_style)
{
    struct report_style style = report_style_for(STDOUT_FILENO);
    uint64_t width = style.width;
    const char *colour = options->colour ? options->colour : "auto";
    if (options->width && (str_parse_u64(options->width, &width) || width < REPORT_WIDTH_MIN ||
                           width > REPORT_WIDTH_MAX)) {
        log_error("--width is a number of columns from %d to %d, not \"%.40s\"", REPORT_WIDTH_MIN,
                  REPORT_WIDTH_MAX, options->width);
        return EXIT_BAD_INPUT;
    }
    style.width = (unsigned)width;
    if (strcmp(colour, "always") == 0)
        style.colour = true;
    else if (strcmp(colour, "never") == 0)
        style.colour = false;
    else if (strcmp(colour, "auto") != 0) {
        log_error("--color is auto, always or never, not \"%.40s\"", colour);
        return EXIT_BAD_INPUT;
    }
    *out_style = style;
    return EXIT_DONE;
}

/* Draws the model named by --model, or all. */
static int show_one(const struct command_options *options, const struct report_style *style,
                    struct strbuf *out)
{
    struct inventory inventory;
    int code = command_read_given(options, 0, &inventory);
    if (code)
        return code;
    if (!options->topology && !options->model) {
        report_summary(&inventory, style, out);
    } else if (options->model) {
        const struct inventory_model *model =
            command_model(&inventory, options->model, options->files[0]);
        code = model ? EXIT_DONE : EXIT_BAD_INPUT;
        if (model)
            report_topology(model, style, out);
    } else {
        for (size_t i = 0; i < inventory.model_count; i++) {
            strbuf_puts(out, i ? "\n" : "");
            report_topology(&inventory.models[i], style, out);
        }
        if (!inventory.model_count)
            strbuf_puts(out, "no model to draw: no GPU was measured\n");
    }
    inventory_fini(&inventory);
    return code;
}

/* The models to compare: those named by --model; else the only model of each of two files; else the
 * two models of one file. */
static int choose(const struct command_options *options, const struct inventory *inventories,
                  struct compare_side sides[2])
{
    const char *comma = options->model ? strchr(options->model, ',') : NULL;
    char *first = comma ? str_copy_n(options->model, (size_t)(comma - options->model)) : NULL;
    const char *ids[2] = {comma ? first : options->model, comma ? comma + 1 : options->model};
    int code = comma && !first ? EXIT_NO_REPORT : EXIT_DONE;
    if (code)
        log_error("out of memory");
    if (!options->model && options->file_count == 1 && inventories[0].model_count == 2) {
        ids[0] = inventories[0].models[0].id;
        ids[1] = inventories[0].models[1].id;
    }
    for (int i = 0; i < 2 && !code; i++) {
        int file = options->file_count == 2 ? i : 0;
        sides[i].inventory = &inventories[file];
        sides[i].name = options->anonymous ? (i ? "right" : "left") : options->files[file];
        sides[i].model = command_model(&inventories[file], ids[i], options->files[file]);
        code = sides[i].model ? EXIT_DONE : EXIT_BAD_INPUT;
    }
    free(first);
    return code;
}

static int show_compared(const struct command_options *options, const struct report_style *style,
                         struct strbuf *out)
{
    struct inventory inventories[2] = {0};
    struct compare_side sides[2];
    int code = EXIT_DONE;
    for (int i = 0; i < options->file_count && !code; i++)
        code = command_read_given(options, i, &inventories[i]);
    if (!code)
        code = choose(options, inventories, sides);
    if (!code)
        report_compare(&sides[0], &sides[1], style, out);
    inventory_fini(&inventories[0]);
    inventory_fini(&inventories[1]);
    return code;
}

int command_show(const struct command_options *options)
{
    struct report_style style;
    struct strbuf text = {0};
    int code = read_style(options, &style);
    if (!code)
        code = options->compare ? show_compared(options, &style, &text)
                                : show_one(options, &style, &text);
    if (!code)
        return command_write(&text, NULL);
    strbuf_fini(&text);
    return code;
}
