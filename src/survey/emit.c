/* From what was collected to the inventory file, the summary and the exit code. */
#include "survey/emit.h"

#include <errno.h>
#include <libgen.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/new_file.h"
#include "base/out_file.h"
#include "inventory/inventory.h"
#include "report/html/html.h"
#include "report/summary.h"
#include "survey/timing.h"

enum survey_exit emit_exit_code(size_t unmeasured, size_t lost_ranks, size_t outliers)
{
    if (unmeasured || lost_ranks)
        return SURVEY_EXIT_INCOMPLETE;
    return outliers ? SURVEY_EXIT_OUTLIERS : SURVEY_EXIT_OK;
}

int emit_check_inputs(const struct survey_options *options, const char *output, struct err *err)
{
    const struct named {
        const char *flag, *path;
    } outputs[] = {{"--output", output}, {"--html", options->html}, {"--record", options->record}},
      inputs[] = {{"--simulate", options->simulate},
                  {"--replay", options->replay},
                  {"--config", options->config}};
    for (size_t o = 0; o < COUNT_OF(outputs); o++)
        for (size_t i = 0; i < COUNT_OF(inputs); i++)
            if (outputs[o].path && inputs[i].path &&
                out_file_replaces(outputs[o].path, inputs[i].path))
                return err_set(err, -EINVAL, "%s and %s name the same file", inputs[i].flag,
                               outputs[o].flag);
    return 0;
}

/* There are more reasons than permissions: a name too long, one that ends in '/', a share that root
 * may not write. To be known before hours of measuring, not after. */
static int try_create(const char *path, struct err *err)
{
    struct new_file file = {0};
    int rc = new_file_create(path, &file, err);
    new_file_fini(&file);
    return rc;
}

/* What exists is written in place when it is a pipe or a device, and replaced otherwise. */
int emit_check_output(const char *flag, const char *path, struct err *err)
{
    struct stat info;
    if (str_equal(path, "-"))
        return 0;
    bool exists = stat(path, &info) == 0;
    if (exists && S_ISDIR(info.st_mode))
        return err_set_at(err, -EISDIR, path, 0, 0, "is a folder; %s names a file", flag);
    if (exists && access(path, W_OK))
        return err_set_at(err, -errno, path, 0, 0, "cannot be written: %s", strerror(errno));
    if (out_file_in_place(path))
        return 0;
    char *copy = str_copy(path);
    if (!copy)
        return err_no_memory(err);
    const char *folder = dirname(copy);
    int rc = 0;
    if (access(folder, W_OK | X_OK))
        rc = err_set_at(err, -errno, path, 0, 0, "cannot be written: folder %s: %s", folder,
                        strerror(errno));
    free(copy);
    return rc ? rc : try_create(path, err);
}

/* The program by its name only: the same survey from another place gives the same file. */
static int copy_command(const struct emit_input *input, struct inventory *inventory)
{
    inventory->command = mem_array((size_t)input->argc, sizeof *inventory->command);
    if (!inventory->command)
        return -ENOMEM;
    for (int i = 0; i < input->argc; i++) {
        char *word = str_copy(i ? input->argv[i] : str_last_part(input->argv[i]));
        if (!word)
            return -ENOMEM;
        inventory->command[inventory->command_count++] = word;
    }
    return 0;
}

/* Where and by what the figures were measured is the record's to tell. */
static const char *backend_of(const struct emit_input *input)
{
    if (input->replayed)
        return record_provenance(input->replayed)->backend;
    return input->options->simulate ? "sim" : "cuda";
}

static void fill_counts(const struct emit_input *input, struct inventory *inventory)
{
    inventory->nodes = (uint32_t)input->view.node_count;
    inventory->ranks = (uint32_t)input->ranks;
    inventory->lost_ranks = (uint32_t)input->view.lost_ranks;
    if (!input->replayed)
        return;
    inventory->nodes = record_survey(input->replayed)->nodes;
    inventory->ranks = record_provenance(input->replayed)->ranks;
    inventory->lost_ranks += record_survey(input->replayed)->lost_ranks;
}

static int fill_header(const struct emit_input *input, struct inventory *inventory)
{
    char stamp[CLOCK_STAMP_MAX];
    clock_utc_stamp(0, stamp);
    inventory->version = str_copy(GPUMEMTOPO_VERSION);
    inventory->generated = str_copy(stamp);
    inventory->backend = str_copy(backend_of(input));
    inventory->seed = input->options->seed;
    fill_counts(input, inventory);
    inventory->wall_s = round(input->wall_s * 100) / 100;
    if (!inventory->version || !inventory->generated || !inventory->backend)
        return -ENOMEM;
    return copy_command(input, inventory);
}

static int fill_nodes(const struct root_view *view, struct inventory *inventory)
{
    inventory->node_findings = mem_array(view->bare_count, sizeof *inventory->node_findings);
    if (!inventory->node_findings)
        return -ENOMEM;
    for (size_t i = 0; i < view->bare_count; i++) {
        struct inventory_node *node = &inventory->node_findings[inventory->node_count++];
        node->node = str_copy(view->bare_nodes[i]);
        node->finding = str_copy(inventory_bare_node);
        if (!node->node || !node->finding)
            return -ENOMEM;
    }
    return 0;
}

static int unknown_order(const void *a, const void *b)
{
    const struct gpu_result *const *left = a, *const *right = b;
    return ((*left)->rank > (*right)->rank) - ((*left)->rank < (*right)->rank);
}

/* Ranks of whose GPUs nothing is known are listed, but they are no GPUs to be judged. */
static int add_unknown(const struct gpu_result **unknown, size_t count, struct inventory *inventory)
{
    size_t total = inventory->unmeasured_length + count;
    struct inventory_unmeasured *grown =
        realloc(inventory->unmeasured, (total ? total : 1) * sizeof *grown);
    if (!grown)
        return -ENOMEM;
    inventory->unmeasured = grown;
    qsort(unknown, count, sizeof *unknown, unknown_order);
    for (size_t i = 0; i < count; i++) {
        struct inventory_unmeasured *out = &grown[inventory->unmeasured_length++];
        *out = (struct inventory_unmeasured){
            .rank = unknown[i]->rank,
            .status = unknown[i]->status,
        };
        if (str_copy_to(&out->node, unknown[i]->node) ||
            str_copy_to(&out->reason, unknown[i]->reason))
            return -ENOMEM;
    }
    inventory->unmeasured_count = (uint32_t)inventory->unmeasured_length;
    return 0;
}

static int judge(const struct emit_input *input, struct inventory *inventory, struct err *err)
{
    static const struct record_survey none;
    const struct record_survey *was = input->replayed ? record_survey(input->replayed) : &none;
    const struct root_view *view = &input->view;
    size_t count = view->result_count, unknown_count = 0;
    const struct gpu_result **unknown = mem_array(count + was->unknown_count, sizeof *unknown);
    int rc = unknown ? 0 : err_no_memory(err);
    for (size_t i = 0; i < count && !rc; i++) {
        struct gpu_result lost = {0};
        if (!view->results[i].uuid)
            unknown[unknown_count++] = &view->results[i];
        else if (!view->taken[i])
            rc = gpu_result_copy(&lost, &view->results[i])
                     ? err_no_memory(err)
                     : judging_take(input->judging, count, &lost, err);
        gpu_result_fini(&lost);
    }
    for (size_t i = 0; i < was->unknown_count && !rc; i++)
        unknown[unknown_count++] = &was->unknown[i];
    if (!rc)
        rc = judging_finish(input->judging, inventory, err);
    if (!rc && add_unknown(unknown, unknown_count, inventory))
        rc = err_no_memory(err);
    free(unknown);
    return rc;
}

/* What was written must be readable, or no report was made. stdout, pipes and devices cannot be
 * read back, so the text is checked before it goes anywhere. */
static int write_checked(const struct inventory *inventory, const char *path, struct err *err)
{
    struct inventory before = {0}, back = {0};
    struct strbuf text = {0};
    inventory_print(inventory, &text);
    int rc = text.failed ? err_no_memory(err)
                         : inventory_read_text(text.data, text.length, "inventory", &before, err);
    if (!rc)
        rc = inventory_write_file(inventory, path, err);
    if (!rc && !out_file_in_place(path))
        rc = inventory_read_file(path, &back, err);
    inventory_fini(&back);
    inventory_fini(&before);
    strbuf_fini(&text);
    return rc;
}

/* What would be nowhere else. The folder may be everybody's: a name that nobody can foresee. */
static void rescue(const struct inventory *inventory)
{
    static const char suffix[] = ".yaml";
    const char *folder = getenv("TMPDIR");
    char *path = str_format("%s/gpumemtopo-XXXXXX%s", folder && *folder ? folder : "/tmp", suffix);
    struct strbuf text = {0};
    inventory_print(inventory, &text);
    int fd = path && !text.failed ? mkstemps(path, sizeof suffix - 1) : -1;
    bool saved = fd >= 0 && io_write_all(fd, text.data, text.length) == 0;
    if (fd >= 0)
        saved &= close(fd) == 0;
    if (saved)
        log_error("the inventory is in %s: neither its own place nor a spool has it", path);
    else if (fd >= 0)
        unlink(path);
    strbuf_fini(&text);
    free(path);
}

/* A page that cannot be written costs nothing else. */
static bool write_page(const struct emit_input *input, const struct inventory *inventory)
{
    struct strbuf page = {0};
    struct err err = {0};
    report_html(inventory, input->judging->basis->references, &page);
    int rc = page.failed ? err_no_memory(&err)
                         : out_file_write(input->options->html, page.data, page.length, &err);
    strbuf_fini(&page);
    if (rc)
        log_failure(&err);
    return rc == 0;
}

/* The inventory's own code tells what the survey found, whatever else could be written. */
static struct emit_result write_others(const struct emit_input *input,
                                       const struct inventory *inventory)
{
    struct emit_result result = {.code = (enum survey_exit)inventory->exit_code};
    result.page = input->options->html && write_page(input, inventory);
    bool missing = input->unrecorded || (input->options->html && !result.page);
    if (missing && result.code == SURVEY_EXIT_OK)
        result.code = SURVEY_EXIT_NO_REPORT;
    return result;
}

int emit_inventory(const struct emit_input *input, struct strbuf *out_summary,
                   struct emit_result *out_result, struct err *err)
{
    struct inventory inventory = {0};
    struct emit_result result = {0};
    int rc = 0;
    if (fill_header(input, &inventory) || fill_nodes(&input->view, &inventory))
        rc = err_no_memory(err);
    if (!rc)
        rc = judge(input, &inventory, err);
    if (!rc) {
        inventory.exit_code = (int)emit_exit_code(inventory.unmeasured_count, inventory.lost_ranks,
                                                  inventory.outlier_count);
        result = write_others(input, &inventory);
        rc = write_checked(&inventory, input->output, err);
        if (rc && input->unspooled)
            rescue(&inventory);
    }
    if (!rc) {
        *out_result = result;
        report_summary(&inventory, &input->style, out_summary);
        timing_print(&input->judging->slowest, out_summary);
    }
    inventory_fini(&inventory);
    return rc;
}
