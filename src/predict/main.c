/* gpumemtopo-predict: what a kernel does to the caches of every GPU model of an inventory. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/new_file.h"
#include "base/out_file.h"
#include "predict/jobs.h"
#include "predict/trace/trace_command.h"

enum exit_code { EXIT_DONE = 0, EXIT_NO_REPORT = 1, EXIT_BAD_INPUT = 2, EXIT_INCOMPLETE = 4 };

static int predict_failed(int rc, const struct err *err)
{
    log_failure(err);
    return rc == -EIO ? EXIT_NO_REPORT : EXIT_BAD_INPUT;
}

static int write_out(struct strbuf *text, const char *path)
{
    struct err err = {0};
    int rc = out_file_write(path ? path : "-", text->data ? text->data : "", text->length, &err);
    strbuf_fini(text);
    if (!rc)
        return EXIT_DONE;
    log_failure(&err);
    return EXIT_NO_REPORT;
}

static int list_kernels(void)
{
    struct strbuf text = {0};
    for (size_t i = 0; i < kernel_table_count; i++)
        strbuf_printf(&text, "%-11s N = %-8u %s\n", kernel_table[i].name, kernel_table[i].size,
                      kernel_table[i].summary);
    return write_out(&text, NULL);
}

static int predict_report(const struct plan *plan)
{
    struct strbuf text = {0};
    prediction_print(plan->predictions, plan->count, plan->options->format, &text);
    int code = write_out(&text, plan->options->output);
    if (code || !plan->impossible)
        return code;
    log_warning("%zu of %zu predictions could not be made; the report says why", plan->impossible,
                plan->count);
    return EXIT_INCOMPLETE;
}

static int predict_run(const struct predict_options *options)
{
    static struct plan plan;
    struct err err = {0};
    int rc = plan_init(&plan, options, &err);
    rc = rc ? rc : jobs_run(&plan, &err);
    int code = rc ? predict_failed(rc, &err) : predict_report(&plan);
    plan_fini(&plan);
    return code;
}

int main(int argc, char **argv)
{
    static struct predict_options options;
    struct strbuf text = {0};
    struct err err = {0};
    int rc;
    io_fill_standard();
    log_set_prefix("gpumemtopo-predict");
    new_file_remove_on_signals();
    if (argc > 1 && strcmp(argv[1], "trace") == 0) {
        rc = trace_command(argc - 2, argv + 2, &text, &err);
        return rc ? predict_failed(rc, &err) : write_out(&text, NULL);
    }
    rc = predict_options_read(&options, argc - 1, argv + 1, &err);
    if (rc)
        return predict_failed(rc, &err);
    if (options.quiet)
        log_set_level(LOG_ERROR);
    if (options.list_kernels)
        return list_kernels();
    if (!options.help && !options.version)
        return predict_run(&options);
    if (options.version)
        strbuf_printf(&text, "gpumemtopo-predict %s\ninventory: schema %d\nlicence: %s\n",
                      GPUMEMTOPO_VERSION, INVENTORY_SCHEMA, GPUMEMTOPO_LICENCE);
    else
        predict_options_help(options.help, &text);
    return write_out(&text, NULL);
}
