/* gpumemtopo-predict: what a kernel does to the caches of every GPU model of an inventory. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/out_file.h"
#include "predict/options.h"
#include "predict/trace/trace_command.h"
#include "predict/trace/trace_source.h"

enum exit_code { EXIT_DONE = 0, EXIT_NO_REPORT = 1, EXIT_BAD_INPUT = 2 };

/* The parallel L1 of --mshrs, as docs/PREDICT.md says. */
enum { L1_BANKS = 1, L1_PORTS = 2, L1_MERGES_MAX = 8 };

static int exit_code(int rc)
{
    return rc == -ENOMEM || rc == -EIO ? EXIT_NO_REPORT : EXIT_BAD_INPUT;
}

static int failed(int rc, const struct err *err)
{
    log_failure(err);
    return exit_code(rc);
}

static int write_out(struct strbuf *text, const char *path)
{
    struct err err = {0};
    int rc = text->failed ? err_no_memory(&err)
                          : out_file_write(path ? path : "-", text->data ? text->data : "",
                                           text->length, &err);
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

/* Everything that is run. */
struct plan {
    const struct options *options;
    struct inventory inventory;
    struct prediction *predictions;
    size_t count;
    struct trace_source *traces[OPTIONS_LIST_MAX]; /* their names are in the predictions */
    size_t trace_count;
};

/* What is run: a kernel of the table, or a trace. */
struct program {
    const struct kernel *kernel;
    struct trace_source *trace;
};

static const struct inventory_model *find_model(const struct plan *plan, const char *id,
                                                struct err *err)
{
    const char *ids[OPTIONS_LIST_MAX];
    size_t count = 0;
    for (size_t i = 0; i < plan->inventory.model_count; i++) {
        if (str_equal(plan->inventory.models[i].id, id))
            return &plan->inventory.models[i];
        if (count < COUNT_OF(ids))
            ids[count++] = plan->inventory.models[i].id;
    }
    const char *near = str_nearest(id, ids, count);
    err_set(err, -EINVAL, "%s has no model %.60s%s%s", plan->options->inventory, id,
            near ? "; did you mean " : "", near ? near : "");
    return NULL;
}

static void configure(const struct options *options, struct machine *machine)
{
    struct model_config *config = &machine->config;
    config->mapping = options->mapping;
    config->scheduler = options->scheduler;
    config->writes = options->writes;
    config->reuse = options->reuse;
    config->stall = options->scheduler == SM_GTO ? options->k1 : 0;
    if (options->mshrs)
        config->parallel = (struct parallel_config){
            .banks = L1_BANKS,
            .ports = L1_PORTS,
            .mshrs = (uint32_t)options->mshrs,
            .merges_max = L1_MERGES_MAX,
            .latency = {.k1 = options->k1, .k2 = options->k2, .sharers = 1}};
}

static int start_launch(const struct options *options, const struct program *program,
                        struct kernel_launch *launch, struct err *err)
{
    if (!program->trace)
        return kernel_launch_init(launch, program->kernel, options->size, options->block_x,
                                  options->block_y, err);
    trace_source_launch(program->trace, launch);
    return 0;
}

/* One kernel on one model, with or without a change. */
static int predict(struct plan *plan, const struct program *program,
                   const struct inventory_model *model, const struct machine_change *change,
                   struct err *err)
{
    const struct options *options = plan->options;
    struct prediction *p = &plan->predictions[plan->count];
    struct kernel_launch *launch = mem_array(1, sizeof *launch);
    if (!launch)
        return err_no_memory(err);
    int rc = start_launch(options, program, launch, err);
    rc = rc ? rc : machine_init(&p->machine, model, options->inventory, change, err);
    if (!rc) {
        configure(options, &p->machine);
        p->machine.config.registers =
            options->registers ? (uint32_t)options->registers : launch->registers;
        p->l1_bytes = machine_l1_bytes(&p->machine, launch);
        struct model_config config = p->machine.config;
        config.l1.size = p->l1_bytes;
        rc = model_run(&config, launch, &p->counts, err);
    }
    if (!rc) {
        p->kernel = launch->kernel->name;
        p->model = model->id;
        p->change = change;
        p->size = launch->size;
        p->footprint_bytes = launch->footprint_bytes;
        p->block_x = launch->block_x;
        p->block_y = launch->block_y;
        p->bound = bound_of(&p->counts, &p->machine);
        plan->count++;
    }
    free(launch);
    return rc;
}

static int predict_model(struct plan *plan, const struct program *program,
                         const struct inventory_model *model, struct err *err)
{
    int rc = predict(plan, program, model, NULL, err);
    for (size_t i = 0; i < plan->options->change_count && !rc; i++)
        rc = predict(plan, program, model, &plan->options->changes[i], err);
    return rc;
}

static int open_trace(struct plan *plan, const char *path, struct program *program, struct err *err)
{
    const struct options *options = plan->options;
    if (options->size || options->block_text)
        return err_set(err, -EINVAL, "%.100s is a trace: %s is for kernels only", path,
                       options->size ? "--size" : "--block");
    int rc = trace_source_open(path, &program->trace, err);
    if (!rc)
        plan->traces[plan->trace_count++] = program->trace;
    return rc;
}

/* A kernel of the table or, if there is none of that name, a file. */
static int find_program(struct plan *plan, const char *name, struct program *program,
                        struct err *err)
{
    const char *near = NULL;
    program->kernel = kernel_find(name, &near);
    if (program->kernel)
        return 0;
    if (strchr(name, '/') || access(name, F_OK) == 0)
        return open_trace(plan, name, program, err);
    return err_set(err, -EINVAL, "\"%.60s\" is neither a kernel nor a file%s%s", name,
                   near ? "; did you mean " : "; --list-kernels lists the kernels",
                   near ? near : "");
}

static int predict_kernel(struct plan *plan, const char *name, struct err *err)
{
    const struct options *options = plan->options;
    struct program program = {0};
    int rc = find_program(plan, name, &program, err);
    for (size_t i = 0; i < plan->inventory.model_count && !options->models.count && !rc; i++)
        rc = predict_model(plan, &program, &plan->inventory.models[i], err);
    for (size_t i = 0; i < options->models.count && !rc; i++) {
        const struct inventory_model *model = find_model(plan, options->models.items[i], err);
        rc = model ? predict_model(plan, &program, model, err) : -EINVAL;
    }
    return rc;
}

static int predict_all(struct plan *plan, struct err *err)
{
    const struct options *options = plan->options;
    size_t models = options->models.count ? options->models.count : plan->inventory.model_count;
    if (!models)
        return err_set(err, -EINVAL, "%s has no model: no GPU was measured", options->inventory);
    plan->predictions = mem_array(options->kernels.count * models * (1 + options->change_count),
                                  sizeof *plan->predictions);
    if (!plan->predictions)
        return err_no_memory(err);
    int rc = 0;
    for (size_t i = 0; i < options->kernels.count && !rc; i++)
        rc = predict_kernel(plan, options->kernels.items[i], err);
    return rc;
}

static int run(const struct options *options)
{
    struct plan plan = {.options = options};
    struct strbuf text = {0};
    struct err err = {0};
    int rc = inventory_read_file(options->inventory, &plan.inventory, &err);
    if (rc)
        return failed(rc, &err);
    rc = predict_all(&plan, &err);
    if (!rc)
        prediction_print(plan.predictions, plan.count, options->format,
                         str_last_part(options->inventory), &text);
    int code = rc ? failed(rc, &err) : write_out(&text, options->output);
    for (size_t i = 0; i < plan.trace_count; i++)
        trace_source_close(plan.traces[i]);
    free(plan.predictions);
    inventory_fini(&plan.inventory);
    return code;
}

int main(int argc, char **argv)
{
    struct options options;
    struct strbuf text = {0};
    struct err err = {0};
    int rc;
    io_fill_standard();
    log_set_prefix("gpumemtopo-predict");
    if (argc > 1 && strcmp(argv[1], "trace") == 0) {
        rc = trace_command(argc - 2, argv + 2, &text, &err);
        return rc ? failed(rc, &err) : write_out(&text, NULL);
    }
    rc = options_read(&options, argc - 1, argv + 1, &err);
    if (rc)
        return failed(rc, &err);
    if (options.list_kernels)
        return list_kernels();
    if (!options.help && !options.version)
        return run(&options);
    if (options.version)
        strbuf_printf(&text, "gpumemtopo-predict %s\ninventory: schema %d\n", GPUMEMTOPO_VERSION,
                      INVENTORY_SCHEMA);
    else
        options_help(&text);
    return write_out(&text, NULL);
}
