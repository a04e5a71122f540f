/* Lists what is to be predicted and refuses what makes no sense. */
#include "predict/plan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/out_file.h"

/* The parallel caches of --mshrs, as docs/PREDICT.md says. */
enum { L1_BANKS = 1, L1_PORTS = 2, L2_PORTS = 1, MERGES_MAX = 8 };

/* Blocks are shuffled one by one, also those without accesses. */
enum { SHUFFLED_BLOCKS_MAX = 1 << 26 };

static const char all_kernels[] = "all";

static int read_inventories(struct plan *plan, struct err *err)
{
    const struct option_list *files = &plan->options->inventories;
    for (; plan->inventory_count < files->count; plan->inventory_count++) {
        for (size_t i = 0; i < plan->inventory_count; i++)
            if (str_equal(files->items[i], files->items[plan->inventory_count]))
                return err_set(err, -EINVAL, "--inventory names %.200s twice", files->items[i]);
        int rc = inventory_read_file(files->items[plan->inventory_count],
                                     &plan->inventories[plan->inventory_count], err);
        if (rc)
            return rc;
    }
    return 0;
}

/* The file's name, or its path if another file has the same name. */
static const char *label_of(const struct option_list *files, size_t at)
{
    for (size_t i = 0; i < files->count; i++)
        if (i != at && str_equal(str_last_part(files->items[i]), str_last_part(files->items[at])))
            return files->items[at];
    return str_last_part(files->items[at]);
}

static bool is_wanted(const struct predict_options *options, const char *model)
{
    for (size_t i = 0; i < options->models.count; i++)
        if (str_equal(options->models.items[i], model))
            return true;
    return !options->models.count;
}

/* Every model that was asked for is in some inventory. */
static int check_model(const struct plan *plan, const char *id, struct err *err)
{
    struct strbuf known = {0};
    for (size_t i = 0; i < plan->inventory_count; i++)
        for (size_t k = 0; k < plan->inventories[i].model_count; k++) {
            if (str_equal(plan->inventories[i].models[k].id, id)) {
                strbuf_fini(&known);
                return 0;
            }
            strbuf_printf(&known, "%s%.40s", known.length ? ", " : "",
                          plan->inventories[i].models[k].id);
        }
    int rc = err_set(err, -EINVAL, "%s%s has no model %.60s; its models: %.200s",
                     plan->options->inventories.items[0],
                     plan->inventory_count > 1 ? " and the other inventories" : "", id,
                     known.data ? known.data : "none");
    strbuf_fini(&known);
    return rc;
}

static int count_models(const struct plan *plan, size_t *out_count, struct err *err)
{
    const struct predict_options *options = plan->options;
    *out_count = 0;
    for (size_t i = 0; i < plan->inventory_count; i++)
        *out_count += plan->inventories[i].model_count;
    if (!*out_count)
        return err_set(err, -EINVAL, "%s has no model: no GPU was measured",
                       options->inventories.items[0]);
    for (size_t i = 0; i < options->models.count; i++) {
        int rc = check_model(plan, options->models.items[i], err);
        if (rc)
            return rc;
    }
    return 0;
}

static void configure(const struct predict_options *options, const struct what_if *what_if,
                      struct model_config *config)
{
    config->mapping = options->mapping;
    config->scheduler = options->scheduler;
    config->writes = config->no_l1 ? MODEL_RWON : options->writes;
    /* The page draws the curves of the GPU as it is; they are exact for stores that change nothing
     * in L1 only. */
    bool drawn = options->format == PREDICTION_HTML && !what_if;
    config->reuse = options->reuse || (drawn && options->writes == MODEL_THROUGH);
    config->stall = options->scheduler == SM_GTO ? options->k1 : 0;
    struct parallel_latency latency = {.k1 = options->k1, .k2 = options->k2, .sharers = 1};
    if (options->mshrs && !config->no_l1)
        config->parallel = (struct parallel_config){.banks = L1_BANKS,
                                                    .ports = L1_PORTS,
                                                    .mshrs = (uint32_t)options->mshrs,
                                                    .merges_max = MERGES_MAX,
                                                    .latency = latency};
    config->l2_partitions = options->l2_partitions;
    if (options->l2_mshrs)
        config->l2_parallel = (struct parallel_config){.banks = options->l2_banks,
                                                       .ports = L2_PORTS,
                                                       .mshrs = (uint32_t)options->l2_mshrs,
                                                       .merges_max = MERGES_MAX,
                                                       .latency = latency};
}

/* What limits the blocks in flight, for a block that does not fit. */
static int check_fit(const struct prediction *p, const struct kernel_launch *launch,
                     struct err *err)
{
    const struct model_config *config = &p->machine.config;
    const struct sm_limits *limits = &config->limits;
    uint32_t threads = launch->block_x * launch->block_y;
    char text[WHAT_IF_TEXT_MAX] = "";
    if (launch->element_bytes_max > config->l1.sector)
        return err_set(err, -EINVAL,
                       "model %s: %s: its elements of %u bytes are longer than a sector of L1",
                       p->model, p->kernel, launch->element_bytes_max);
    if (sm_blocks_in_flight(limits, launch, config->registers))
        return 0;
    if (p->what_if)
        what_if_text(p->what_if, text);
    return err_set(err, -EINVAL,
                   "%s%s%smodel %s: a block of %s (%u threads, %u B of shared memory%s) does not "
                   "fit an SM, which has room for %u threads and %llu B of shared memory",
                   p->what_if ? "--what-if " : "", text, p->what_if ? ": " : "", p->model,
                   p->kernel, threads, launch->kernel->shared_bytes,
                   config->registers ? ", --registers each" : "", limits->warps_max * WARP_LANES,
                   limits->shared_bytes > 1 ? (unsigned long long)limits->shared_bytes : 0);
}

/* Lists one prediction; why not NULL: the kernel cannot be launched so. */
static void plan_add(struct plan *plan, const struct kernel_launch *launch, const char *why_not,
                     const struct inventory_model *model, size_t file,
                     const struct what_if *what_if)
{
    struct prediction *p = &plan->predictions[plan->count++];
    struct err err = {0};
    *p = (struct prediction){.program = plan->program_count - 1,
                             .kernel = launch->kernel->name,
                             .summary = launch->kernel->summary,
                             .model = model->id,
                             .inventory = label_of(&plan->options->inventories, file),
                             .what_if = what_if,
                             .size = launch->size,
                             .footprint_bytes = launch->footprint_bytes,
                             .block_x = launch->block_x,
                             .block_y = launch->block_y};
    int rc = why_not ? err_set(&err, -EINVAL, "%s", why_not)
                     : machine_init(&p->machine, model, plan->options->inventories.items[file],
                                    what_if, &err);
    if (!rc) {
        configure(plan->options, what_if, &p->machine.config);
        p->machine.config.registers =
            plan->options->registers ? (uint32_t)plan->options->registers : launch->registers;
        p->l1_bytes = machine_l1_bytes(&p->machine, launch);
        rc = check_fit(p, launch, &err);
    }
    if (rc)
        snprintf(p->reason, sizeof p->reason, "%s", err.text);
    plan->impossible += rc != 0;
}

static void add_models(struct plan *plan, const struct kernel_launch *launch, const char *why_not)
{
    const struct predict_options *options = plan->options;
    for (size_t file = 0; file < plan->inventory_count; file++) {
        const struct inventory *inventory = &plan->inventories[file];
        for (size_t i = 0; i < inventory->model_count; i++) {
            const struct inventory_model *model = &inventory->models[i];
            if (!is_wanted(options, model->id))
                continue;
            plan_add(plan, launch, why_not, model, file, NULL);
            for (size_t k = 0; k < options->what_ifs.count; k++)
                plan_add(plan, launch, why_not, model, file, &options->what_ifs.items[k]);
        }
    }
}

int plan_launch(const struct plan *plan, const struct plan_program *program,
                struct kernel_launch *out_launch, struct err *err)
{
    const struct predict_options *options = plan->options;
    if (!program->trace)
        return kernel_launch_init(out_launch, program->kernel, options->size, options->block_x,
                                  options->block_y, err);
    trace_source_launch(program->trace, out_launch);
    return 0;
}

static int open_trace(const struct predict_options *options, const char *path,
                      struct plan_program *program, struct err *err)
{
    if (options->size || options->block_text)
        return err_set(err, -EINVAL, "%.100s is a trace: %s is for kernels only", path,
                       options->size ? "--size" : "--block");
    if (options->output && out_file_replaces(options->output, path))
        return err_set(err, -EINVAL, "%.100s is a trace and --output the same file; name another",
                       path);
    int rc = trace_source_open(path, &program->trace, err);
    uint64_t blocks = rc ? 0 : trace_head_blocks(trace_source_head(program->trace));
    if (options->mapping == BLOCK_RANDOM && blocks > SHUFFLED_BLOCKS_MAX) {
        trace_source_close(program->trace);
        program->trace = NULL;
        return err_set_at(err, -EINVAL, path, 0, 0,
                          "byte %d: expected a grid of at most %d blocks for --mapping random, not "
                          "%llu; use another mapping",
                          TRACE_HEAD_GRID_AT, SHUFFLED_BLOCKS_MAX, (unsigned long long)blocks);
    }
    return rc;
}

/* A kernel of the table or, if there is none of that name, a file. */
static int find_program(const struct predict_options *options, const char *name,
                        struct plan_program *program, struct err *err)
{
    const char *near = NULL;
    program->kernel = kernel_find(name, &near);
    if (program->kernel)
        return 0;
    if (strchr(name, '/') || access(name, F_OK) == 0)
        return open_trace(options, name, program, err);
    return err_set(err, -EINVAL, "\"%.60s\" is neither a kernel nor a file%s%s", name,
                   near ? "; did you mean " : "; --list-kernels lists the kernels",
                   near ? near : "");
}

static int add_program(struct plan *plan, const char *name, struct kernel_launch *launch,
                       struct err *err)
{
    struct plan_program *program = &plan->programs[plan->program_count];
    int rc = find_program(plan->options, name, program, err);
    if (rc)
        return rc;
    plan->program_count++;
    struct err why = {0};
    rc = plan_launch(plan, program, launch, &why);
    add_models(plan, launch, rc ? why.text : NULL);
    return 0;
}

static int add_programs(struct plan *plan, struct kernel_launch *launch, struct err *err)
{
    const struct option_list *names = &plan->options->kernels;
    int rc = 0;
    for (size_t i = 0; i < names->count && !rc; i++) {
        bool all = str_equal(names->items[i], all_kernels);
        for (size_t k = 0; k < kernel_table_count && all && !rc; k++)
            rc = add_program(plan, kernel_table[k].name, launch, err);
        rc = rc || all ? rc : add_program(plan, names->items[i], launch, err);
    }
    return rc;
}

static size_t count_programs(const struct predict_options *options)
{
    size_t count = 0;
    for (size_t i = 0; i < options->kernels.count; i++)
        count += str_equal(options->kernels.items[i], all_kernels) ? kernel_table_count : 1;
    return count;
}

/* A change that no prediction can have is a mistake, not a gap. what_if NULL: all of them. */
static int check_possible(const struct plan *plan, const struct what_if *what_if, struct err *err)
{
    const char *reason = NULL;
    for (size_t i = 0; i < plan->count; i++) {
        const struct prediction *p = &plan->predictions[i];
        if (what_if && p->what_if != what_if)
            continue;
        if (!p->reason[0])
            return 0;
        reason = reason ? reason : p->reason;
    }
    return err_set(err, -EINVAL, "%s", reason ? reason : "nothing to predict");
}

static int list_predictions(struct plan *plan, size_t models, struct err *err)
{
    size_t programs = count_programs(plan->options);
    size_t count = programs * models * (1 + plan->options->what_ifs.count);
    struct kernel_launch *launch = mem_array(1, sizeof *launch);
    plan->programs = mem_array(programs, sizeof *plan->programs);
    plan->predictions = mem_array(count, sizeof *plan->predictions);
    int rc = add_programs(plan, launch, err);
    free(launch);
    return rc;
}

int plan_init(struct plan *plan, const struct predict_options *options, struct err *err)
{
    size_t models = 0;
    memset(plan, 0, sizeof *plan);
    plan->options = options;
    int rc = read_inventories(plan, err);
    rc = rc ? rc : count_models(plan, &models, err);
    rc = rc ? rc : list_predictions(plan, models, err);
    rc = rc ? rc : check_possible(plan, NULL, err);
    for (size_t i = 0; i < options->what_ifs.count && !rc; i++)
        rc = check_possible(plan, &options->what_ifs.items[i], err);
    return rc;
}

void plan_fini(struct plan *plan)
{
    for (size_t i = 0; i < plan->inventory_count; i++)
        inventory_fini(&plan->inventories[i]);
    for (size_t i = 0; i < plan->program_count; i++)
        trace_source_close(plan->programs[i].trace);
    free(plan->programs);
    free(plan->predictions);
}
