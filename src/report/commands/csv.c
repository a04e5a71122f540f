/* gpumemtopo-report csv FILE...: the figures of all GPUs as a table in long form, one figure in a
 * line, for spreadsheets and data frames. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "inventory/results.h"
#include "report/command.h"
#include "report/commands/commands.h"

static const char HEAD[] = "generated,node,gpu,uuid,model,metric,value,unit,spread,status,bound\n";

/* As RFC 4180 has it: what has a separator in it stands between quotation marks, and these twice.
 */
static void csv_put_text(struct strbuf *out, const char *text)
{
    bool quoted = text && strpbrk(text, ",\"\r\n");
    if (quoted)
        strbuf_puts(out, "\"");
    for (; text && *text; text++)
        strbuf_append(out, *text == '"' ? "\"\"" : text, *text == '"' ? 2 : 1);
    strbuf_puts(out, quoted ? "\"," : ",");
}

static void csv_put_number(struct strbuf *out, double number)
{
    if (isfinite(number))
        strbuf_printf(out, "%.9g", number);
    strbuf_puts(out, ",");
}

static void csv_put_value(const struct inventory *inventory, const struct inventory_gpu *gpu,
                          const struct inventory_value *value, const char *unit, struct strbuf *out)
{
    csv_put_text(out, inventory->generated);
    csv_put_text(out, gpu->node);
    csv_put_number(out, gpu->index);
    csv_put_text(out, gpu->uuid);
    csv_put_text(out, gpu->model);
    csv_put_text(out, value->metric);
    csv_put_number(out, value->value);
    csv_put_text(out, unit);
    csv_put_number(out, value->spread);
    csv_put_text(out, measure_status_name(value->status));
    strbuf_puts(out, value->bound == MEASURE_AT_LEAST ? "at least\n" : "\n");
}

void report_csv(const struct inventory *inventory, struct strbuf *out)
{
    struct inventory_lookup *lookup = inventory_lookup_create(inventory);
    for (size_t i = 0; i < inventory->gpu_count; i++) {
        const struct inventory_gpu *gpu = &inventory->gpus[i];
        const struct inventory_model *model = inventory_model_of(lookup, gpu);
        for (size_t v = 0; v < gpu->value_count; v++) {
            const struct inventory_value *value = &gpu->values[v];
            const struct measure *measure =
                model ? measures_get(&model->memory, value->metric) : NULL;
            csv_put_value(inventory, gpu, value, measure ? measure->unit : NULL, out);
        }
    }
    inventory_lookup_destroy(lookup);
}

static int csv_read_all(const struct command_options *options, struct inventory *inventories,
                        struct inventory **given, int *out_count)
{
    int code = EXIT_DONE;
    for (*out_count = 0; *out_count < options->file_count && !code; *out_count += !code) {
        given[*out_count] = &inventories[*out_count];
        code = command_read(options->files[*out_count], given[*out_count]);
    }
    return code;
}

int command_csv(const struct command_options *options)
{
    struct inventory *inventories = mem_array((size_t)options->file_count, sizeof *inventories);
    struct inventory **given = mem_array((size_t)options->file_count, sizeof *given);
    struct strbuf text = {0};
    int count, code = csv_read_all(options, inventories, given, &count);
    if (!code) {
        command_anonymise(options, given, (size_t)count, NULL);
        strbuf_puts(&text, HEAD);
        for (int i = 0; i < count; i++)
            report_csv(given[i], &text);
        code = command_write(&text, options->output);
    }
    for (int i = 0; i < count; i++)
        inventory_fini(given[i]);
    free(given);
    free(inventories);
    return code;
}
