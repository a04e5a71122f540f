/* Turns the collected results into the inventory file, the summary and the exit code. */
#include "survey/root/emit.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/host.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/out_file.h"
#include "inventory/anonymous.h"
#include "inventory/build.h"
#include "report/html/html.h"
#include "report/summary.h"
#include "survey/root/recording.h"

enum survey_exit emit_exit_code(size_t unmeasured, size_t lost_ranks, bool drain)
{
    if (unmeasured || lost_ranks)
        return SURVEY_EXIT_INCOMPLETE;
    return drain ? SURVEY_EXIT_OUTLIERS : SURVEY_EXIT_OK;
}

/* A flag and the file that it names; NULL: not given. */
struct named_file {
    const char *flag, *path;
};

/* Refuses an output that would replace this input. */
static int check_input_file(const struct named_file *outputs, size_t count,
                            const struct named_file *input, struct err *err)
{
    for (size_t i = 0; i < count; i++)
        if (outputs[i].path && input->path && out_file_replaces(outputs[i].path, input->path))
            return err_set(err, -EINVAL, "%s and %s name the same file", input->flag,
                           outputs[i].flag);
    return 0;
}

int emit_check_inputs(const struct survey_options *options, const char *output, struct err *err)
{
    const struct named_file outputs[] = {{"--output", output},
                                         {"--html", options->html},
                                         {"--record", options->record}},
                            inputs[] = {{"--simulate", options->simulate},
                                        {"--replay", options->replay},
                                        {"--config", options->config}};
    int rc = 0;
    for (size_t i = 0; i < COUNT_OF(inputs) && !rc; i++)
        rc = check_input_file(outputs, COUNT_OF(outputs), &inputs[i], err);
    for (size_t i = 0; i < options->world.count && !rc; i++) {
        const struct named_file world = {"--world", options->world.items[i]};
        rc = check_input_file(outputs, COUNT_OF(outputs), &world, err);
    }
    return rc;
}

/* A replay reports backend, nodes and ranks of its record. */
static void emit_fill_head(const struct emit_input *input, struct inventory *inventory)
{
    const struct root_view *view = &input->view;
    const struct record *replayed = input->replayed;
    const char *backend = input->target.options->simulate ? "sim" : "cuda";
    inventory->seed = input->target.options->seed;
    inventory->wall_s = round(input->wall_s * 100) / 100;
    inventory->total_nodes = (uint32_t)view->node_count;
    inventory->total_ranks = (uint32_t)input->ranks;
    inventory->total_lost_ranks = (uint32_t)view->lost_ranks;
    if (replayed) {
        backend = record_provenance(replayed)->backend;
        inventory->total_nodes = record_survey(replayed)->nodes;
        inventory->total_ranks = record_provenance(replayed)->ranks;
        inventory->total_lost_ranks += record_survey(replayed)->lost_ranks;
    }
    inventory_set_head(inventory, GPUMEMTOPO_VERSION, backend, input->argv, (size_t)input->argc);
    inventory_add_bare(inventory, view->bare_nodes, view->bare_count);
}

/* Lists ranks whose GPUs are not known. They are not judged, since they are not GPUs. */
static void emit_add_unknown(const struct gpu_result *results, size_t count,
                             struct inventory *inventory)
{
    for (size_t i = 0; i < count; i++) {
        const struct inventory_unmeasured entry = {
            .node = results[i].node,
            .rank = results[i].rank,
            .status = results[i].status,
            .reason = results[i].reason,
            .gpus_allocated = results[i].run.gpus_allocated,
        };
        if (!results[i].uuid)
            inventory_add_unknown(inventory, &entry);
    }
}

static int emit_judge(const struct emit_input *input, struct inventory *inventory, struct err *err)
{
    static const struct record_survey none;
    const struct record_survey *was = input->replayed ? record_survey(input->replayed) : &none;
    const struct root_view *view = &input->view;
    int rc = judging_compare(input->judging, view->unmeasured, view->unmeasured_count, err);
    if (rc)
        return rc;
    judging_finish(input->judging, inventory);
    size_t known = inventory->unmeasured_count;
    emit_add_unknown(view->unmeasured, view->unmeasured_count, inventory);
    emit_add_unknown(was->unknown, was->unknown_count, inventory);
    inventory_settle_unknown(inventory, known);
    judge_missing_gpus(input->judging->basis, inventory);
    return 0;
}

/* Writes the inventory to TMPDIR, when it would otherwise be lost. */
static void emit_rescue(const struct inventory *inventory)
{
    struct strbuf text = {0};
    inventory_print(inventory, &text);
    char *path = out_file_rescue(text.data, text.length, ".yaml");
    char host[HOST_NAME_MAX_BYTES];
    host_name(host);
    if (path)
        log_error("the inventory is in %s on %s, because neither the output nor a spool has it",
                  path, host);
    strbuf_fini(&text);
    free(path);
}

/* Where the page goes: where --html says, or with --page beside an inventory in a file. NULL: there
 * is none. Freed with free(). */
static char *page_path(const struct emit_target *target)
{
    const char *output = target->output, *end = strrchr(output, '.');
    size_t length = strlen(output);
    if (target->options->html)
        return str_copy(target->options->html);
    bool in_file = strcmp(output, "-") != 0 && strncmp(output, "/dev/", 5) != 0;
    if (!target->options->page || !in_file)
        return NULL;
    if (end && (strcmp(end, ".yaml") == 0 || strcmp(end, ".yml") == 0))
        length = (size_t)(end - output);
    return str_format("%.*s.html", (int)length, output);
}

/* If the page cannot be written, everything else is still written. */
static bool emit_page(const struct emit_target *target, const char *path,
                      const struct inventory *inventory)
{
    struct strbuf page = {0};
    struct err err = {0};
    report_html(inventory, target->references, NULL, &page);
    int rc = out_file_write(path, page.data, page.length, &err);
    strbuf_fini(&page);
    if (rc)
        log_failure(&err);
    return rc == 0;
}

static void emit_summary(const struct emit_target *target, const struct inventory *inventory,
                         const char *page)
{
    const struct report_style style = report_style_for(STDERR_FILENO);
    struct strbuf summary = {0};
    if (target->options->quiet)
        return;
    bool in_file = strcmp(target->output, "-") != 0;
    report_summary(inventory, in_file && !target->options->anonymous ? target->output : NULL,
                   &style, &summary);
    if (target->slowest && target->options->verbose)
        report_timing(target->slowest, &summary);
    if (in_file)
        log_info("inventory written to %s", target->output);
    if (page)
        log_info("page written to %s", page);
    if (summary.data)
        fputs(summary.data, stderr);
    strbuf_fini(&summary);
}

int emit_write(const struct emit_target *target, const struct inventory *inventory,
               enum survey_exit *out_code, struct err *err)
{
    char *path = page_path(target);
    bool page = path && emit_page(target, path, inventory);
    bool missing = target->unrecorded || (path && !page);
    int rc = inventory_write_checked(inventory, target->output, err);
    if (rc) {
        if (target->unspooled)
            emit_rescue(inventory);
        free(path);
        return rc;
    }
    /* The exit code in the inventory says what the survey found; failed writes of page and record
     * do not change it. */
    enum survey_exit code = (enum survey_exit)inventory->exit_code;
    *out_code = missing && code == SURVEY_EXIT_OK ? SURVEY_EXIT_NO_REPORT : code;
    emit_summary(target, inventory, page ? path : NULL);
    free(path);
    return 0;
}

/* Verdicts are made with the real names, so that --anonymous does not change them. A record that
 * cannot be written does not prevent the report. */
static void emit_anonymise(const struct emit_input *input, struct inventory *inventory,
                           struct emit_target *target)
{
    struct pseudonyms *names = NULL;
    struct err failure = {0};
    names = pseudonyms_create();
    anonymous_learn(names, inventory);
    if (input->judging->basis->baseline)
        anonymous_learn(names, input->judging->basis->baseline);
    pseudonyms_seal(names);
    anonymous_apply(names, inventory);
    if (input->recording && recording_anonymise(input->recording, names, &failure)) {
        log_failure(&failure);
        target->unrecorded = true;
    }
    target->slowest = NULL; /* it has a name */
    pseudonyms_destroy(names);
}

int emit_inventory(const struct emit_input *input, enum survey_exit *out_code, struct err *err)
{
    struct inventory inventory = {0};
    struct emit_target target = input->target;
    emit_fill_head(input, &inventory);
    int rc = emit_judge(input, &inventory, err);
    if (!rc) {
        inventory.exit_code =
            (int)emit_exit_code(inventory.total_unmeasured, inventory.total_lost_ranks,
                                inventory_action(&inventory) == ACTION_DRAIN);
        if (target.options->anonymous)
            emit_anonymise(input, &inventory, &target);
        rc = emit_write(&target, &inventory, out_code, err);
    }
    inventory_fini(&inventory);
    return rc;
}
