/* gpumemtopo-report rma FILE UUID: one archive about one GPU, for its vendor. */
#include "report/commands/commands.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/out_file.h"
#include "base/yaml.h"
#include "catalogue/metrics.h"
#include "judge/fact_text.h"
#include "judge/robust.h"
#include "markup/text.h"
#include "report/command.h"
#include "report/entries.h"
#include "report/record_bytes.h"
#include "schema/schema.h"

enum { TAR_BLOCK = 512, TAR_NAME_MAX = 100 };

/* IEEE Std 1003.1, pax, "ustar Interchange Format". Numbers are octal, NUL-terminated. */
struct tar_header {
    char name[TAR_NAME_MAX];
    char mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8];
    char type;
    char linkname[100], magic[6], version[2], uname[32], gname[32], devmajor[8], devminor[8];
    char prefix[155];
    char padding[12];
};
_Static_assert(sizeof(struct tar_header) == TAR_BLOCK, "a header is one block");

static const uint64_t tar_size_max = 077777777777; /* eleven octal digits */

static void tar_put_zeros(struct strbuf *archive, size_t count)
{
    static const char zeros[TAR_BLOCK];
    strbuf_append(archive, zeros, count);
}

/* The sum of all bytes, with the checksum itself taken as blanks. */
static void tar_set_checksum(struct tar_header *header)
{
    const unsigned char *bytes = (const unsigned char *)header;
    unsigned sum = 0;
    memset(header->checksum, ' ', sizeof header->checksum);
    for (size_t i = 0; i < sizeof *header; i++)
        sum += bytes[i];
    snprintf(header->checksum, sizeof header->checksum, "%06o", sum & 0777777);
}

/* Appends a file that everybody may read and root owns. name: at most 100 bytes; time_s: since
 * 1970. -ENAMETOOLONG or -EFBIG (8 GiB or more). */
static int tar_add(struct strbuf *archive, const char *name, int64_t time_s, const char *data,
                   size_t length, struct err *err)
{
    struct tar_header header = {.type = '0', .mode = "0000644", .uid = "0000000", .gid = "0000000"};
    const size_t name_length = strlen(name);
    const uint64_t time = time_s > 0 ? (uint64_t)time_s : 0;
    if (name_length > sizeof header.name)
        return err_set(err, -ENAMETOOLONG, "%.60s...: the name is too long for an archive", name);
    if (length > tar_size_max || time > tar_size_max)
        return err_set(err, -EFBIG, "%s: too large for an archive", name);
    memcpy(header.name, name, name_length);
    snprintf(header.size, sizeof header.size, "%011llo", (unsigned long long)length);
    snprintf(header.mtime, sizeof header.mtime, "%011llo", (unsigned long long)time);
    memcpy(header.magic, "ustar", 6);
    memcpy(header.version, "00", 2);
    memcpy(header.uname, "root", 4);
    memcpy(header.gname, "root", 4);
    snprintf(header.devmajor, sizeof header.devmajor, "%07o", 0);
    snprintf(header.devminor, sizeof header.devminor, "%07o", 0);
    tar_set_checksum(&header);
    strbuf_append(archive, (const char *)&header, sizeof header);
    strbuf_append(archive, data, length);
    tar_put_zeros(archive, (TAR_BLOCK - length % TAR_BLOCK) % TAR_BLOCK);
    return 0;
}

/* Fewer GPUs of the same board part are no population: see docs/JUDGE.md. */
enum { POPULATION_MIN = 5, CANDIDATES_MAX = 5 };

static void rma_put_candidate(struct strbuf *list, size_t number, const char *uuid,
                              const char *node)
{
    strbuf_puts(list, number ? ", " : "");
    text_put_clean(list, uuid, 50);
    strbuf_puts(list, " on ");
    text_put_clean(list, node, 40);
}

static int rma_not_unique(const struct inventory *inventory, const char *uuid, size_t found,
                          struct err *err)
{
    struct strbuf list = {0};
    size_t shown = 0;
    for (size_t i = 0; i < inventory->gpu_count && shown < CANDIDATES_MAX; i++)
        if (inventory_uuid_matches(inventory->gpus[i].uuid, uuid))
            rma_put_candidate(&list, shown++, inventory->gpus[i].uuid, inventory->gpus[i].node);
    int rc = err_set(err, -ENOTUNIQ, "%zu GPUs begin with \"%.60s\": %s%s", found, uuid,
                     list.data ? list.data : "", found > shown ? ", ..." : "");
    strbuf_fini(&list);
    return rc;
}

/* The candidates are the outliers: one of them is sent back. */
static int rma_not_found(const struct inventory *inventory, const char *uuid, struct err *err)
{
    struct strbuf list = {0};
    size_t shown = 0;
    for (; shown < inventory->outlier_count && shown < CANDIDATES_MAX; shown++)
        rma_put_candidate(&list, shown, inventory->outliers[shown].uuid,
                          inventory->outliers[shown].node);
    int rc = err_set(err, -ENOENT, "no GPU begins with \"%.60s\"; %s%s%s", uuid,
                     shown ? "outliers are " : "there is no outlier", list.data ? list.data : "",
                     inventory->outlier_count > shown ? ", ..." : "");
    strbuf_fini(&list);
    return rc;
}

int rma_find_gpu(const struct inventory *inventory, const char *uuid,
                 const struct inventory_gpu **out_gpu, struct err *err)
{
    const struct inventory_gpu *found = NULL;
    size_t count = 0;
    for (size_t i = 0; i < inventory->gpu_count; i++) {
        const struct inventory_gpu *gpu = &inventory->gpus[i];
        if (!inventory_uuid_matches(gpu->uuid, uuid))
            continue;
        found = gpu;
        count++;
        if (strcasecmp(gpu->uuid, uuid) == 0) { /* not only the beginning */
            count = 1;
            break;
        }
    }
    if (count > 1)
        return rma_not_unique(inventory, uuid, count, err);
    if (!count)
        return rma_not_found(inventory, uuid, err);
    *out_gpu = found;
    return 0;
}

static bool rma_is_peer(const struct rma *rma, const struct inventory_lookup *lookup,
                        const struct inventory_gpu *other)
{
    if (other == rma->gpu || other->status != GPU_OK || !str_equal(other->model, rma->gpu->model))
        return false;
    if (!rma->same_board)
        return true;
    const struct fact *part = inventory_fact_of(lookup, rma->gpu, INVENTORY_BOARD, "part");
    const struct fact *others = inventory_fact_of(lookup, other, INVENTORY_BOARD, "part");
    return part && others && fact_equal(part, others);
}

/* Fills `peers`; returns their number. */
static size_t rma_find_peers(const struct rma *rma, const struct inventory_lookup *lookup,
                             const struct inventory_gpu **peers)
{
    size_t count = 0;
    for (size_t i = 0; rma->gpu->model && i < rma->inventory->gpu_count; i++)
        if (rma_is_peer(rma, lookup, &rma->inventory->gpus[i]))
            peers[count++] = &rma->inventory->gpus[i];
    return count;
}

/* If more than half of the values are equal, the one in the middle is one of these. */
static void rma_find_usual(struct rma_figure *figure, double *values)
{
    double middle = robust_upper_median(values, figure->peers);
    size_t count = 0;
    for (size_t i = 0; i < figure->peers; i++)
        count += values[i] == middle;
    figure->usual = 2 * count > figure->peers ? middle : NAN;
    figure->usual_on = 2 * count > figure->peers ? count : 0;
}

/* scratch: room for twice the number of peers. */
static struct rma_figure rma_compare(const struct rma *rma, const struct inventory_value *value,
                                     const struct inventory_gpu *const *peers, double *scratch)
{
    struct rma_figure figure = {
        .value = value, .median = NAN, .scatter = NAN, .deviation = NAN, .usual = NAN};
    const struct measure *measure =
        rma->model ? measures_get(&rma->model->memory, value->metric) : NULL;
    figure.unit = measure ? measure->unit : NULL;
    figure.is_name = metric_is_name(value->metric, figure.unit);
    for (size_t i = 0; i < rma->peers; i++) {
        const struct inventory_value *other = inventory_value_of(peers[i], value->metric);
        if (other && inventory_value_is_good(other))
            scratch[figure.peers++] = other->value;
    }
    if (figure.is_name)
        rma_find_usual(&figure, scratch);
    if (figure.is_name || figure.peers < 2)
        return figure;
    struct robust_fit fit = robust_fit(scratch, figure.peers, scratch + rma->peers);
    figure.median = fit.center;
    figure.scatter = fit.sigma;
    if (measure_status_valued(value->status) && fit.center != 0)
        figure.deviation = (value->value - fit.center) / fabs(fit.center);
    return figure;
}

static void rma_compare_all(struct rma *rma, const struct inventory_lookup *lookup)
{
    const struct inventory_gpu **peers = mem_array(rma->inventory->gpu_count, sizeof *peers);
    rma->same_board = true;
    rma->peers = rma_find_peers(rma, lookup, peers);
    if (rma->peers < POPULATION_MIN) {
        rma->same_board = false;
        rma->peers = rma_find_peers(rma, lookup, peers);
    }
    double *scratch = mem_array(2 * rma->peers, sizeof *scratch);
    rma->figures = mem_array(rma->gpu->value_count, sizeof *rma->figures);
    for (size_t i = 0; i < rma->gpu->value_count; i++)
        rma->figures[rma->figure_count++] = rma_compare(rma, &rma->gpu->values[i], peers, scratch);
    free(scratch);
    free(peers);
}

void rma_init(struct rma *rma, const struct inventory *inventory, const struct inventory_gpu *gpu)
{
    struct inventory_lookup *lookup = inventory_lookup_create(inventory);
    *rma = (struct rma){.inventory = inventory,
                        .gpu = gpu,
                        .model = inventory_model_of(lookup, gpu),
                        .outlier = inventory_find_outlier(lookup, gpu->uuid),
                        .watched = inventory_find_watch(lookup, gpu->uuid),
                        .failure = inventory_find_unmeasured(lookup, gpu->uuid)};
    rma_compare_all(rma, lookup);
    for (int set = 0; set < INVENTORY_FACTS_COUNT; set++)
        inventory_facts_of(lookup, gpu, (enum inventory_facts)set, &rma->facts[set]);
    inventory_lookup_destroy(lookup);
}

void rma_fini(struct rma *rma)
{
    for (int set = 0; set < INVENTORY_FACTS_COUNT; set++)
        facts_fini(&rma->facts[set]);
    free(rma->figures);
    *rma = (struct rma){0};
}

enum { LABEL_COLUMNS = 18, METRIC_COLUMNS_MAX = 40, CELL_COLUMNS = 16 };

static void readme_put_row(struct strbuf *out, const char *label, const char *text)
{
    struct strbuf line = {0};
    text_put_clean(&line, text ? text : "unknown", REPORT_SENTENCE_MAX);
    text_put_column(out, label, LABEL_COLUMNS);
    report_end_line(out, NULL, &line, LABEL_COLUMNS, LABEL_COLUMNS);
}

static void readme_put_identity(struct strbuf *out, const struct rma *rma)
{
    const struct facts *board = &rma->facts[INVENTORY_BOARD];
    const struct inventory_gpu *gpu = rma->gpu;
    strbuf_puts(out, "Report about one GPU, made by gpumemtopo from measurements\n\n");
    readme_put_row(out, "GPU", gpu->uuid);
    readme_put_row(out, "model", rma->model ? rma->model->name : NULL);
    readme_put_row(out, "serial number", facts_text(board, "serial"));
    readme_put_row(out, "board part", facts_text(board, "part"));
    readme_put_row(out, "VBIOS", facts_text(board, "vbios"));
    readme_put_row(out, "driver", facts_text(board, "driver"));
    readme_put_row(out, "node", gpu->node);
    readme_put_row(out, "PCI address", gpu->pci);
    readme_put_row(out, "surveyed", rma->inventory->generated);
    struct strbuf text = {0};
    inventory_put_measured_by(rma->inventory, &text);
    readme_put_row(out, "with gpumemtopo", text.data);
    strbuf_fini(&text);
    readme_put_row(out, "backend", rma->inventory->backend);
    readme_put_row(out, "status",
                   rma->outlier ? verdict_name(rma->outlier->verdict)
                                : gpu_status_name(gpu->status));
    if (rma->failure)
        readme_put_row(out, "not measured", rma->failure->reason);
}

static void readme_put_finding(struct strbuf *out, const struct inventory_evidence *finding)
{
    struct strbuf line = {0};
    text_put_clean(&line, finding->metric, REPORT_SENTENCE_MAX);
    strbuf_puts(&line, " ");
    text_put_quantity(&line, finding->value, finding->unit);
    if (isfinite(finding->expected)) {
        strbuf_puts(&line, ", expected ");
        text_put_quantity(&line, finding->expected, finding->unit);
    }
    if (isfinite(finding->deviation))
        strbuf_printf(&line, " (%+.1f %%)", text_percent(finding->deviation));
    if (isfinite(finding->score))
        strbuf_printf(&line, ", %.0f times the scatter", fabs(finding->score));
    if (finding->confirmed) {
        strbuf_puts(&line, ", confirmed ");
        text_put_clean(&line, finding->confirmed, REPORT_SENTENCE_MAX);
    }
    strbuf_puts(&line, ", basis ");
    text_put_clean(&line, finding->basis, REPORT_SENTENCE_MAX);
    strbuf_puts(&line, ": ");
    text_put_parts(&line, finding->cause ? finding->cause : "no cause known", REPORT_SENTENCE_MAX);
    strbuf_puts(out, "  ");
    report_end_line(out, NULL, &line, 2, 4);
}

static void readme_put_findings(struct strbuf *out, const char *title,
                                const struct inventory_outlier *entry)
{
    if (!entry || !entry->evidence_count)
        return;
    strbuf_printf(out, "\n%s:\n", title);
    for (size_t i = 0; i < entry->evidence_count; i++)
        readme_put_finding(out, &entry->evidence[i]);
}

/* Findings of a place that lists this GPU. */
static void readme_put_places(struct strbuf *out, const struct rma *rma)
{
    size_t count = 0;
    for (size_t i = 0; i < rma->inventory->node_finding_count; i++) {
        const struct inventory_node *place = &rma->inventory->node_findings[i];
        for (size_t g = 0; g < place->gpu_count; g++) {
            if (!str_equal(place->gpus[g], rma->gpu->uuid))
                continue;
            strbuf_puts(out, count++ ? "" : "\nFindings of its node, slot or model:\n");
            report_put_node(out, NULL, place);
            break;
        }
    }
}

/* A cell never touches the next one. */
static void readme_put_text(struct strbuf *out, const char *text, unsigned columns)
{
    text_put_column(out, text, columns - 1);
    strbuf_puts(out, " ");
}

static void readme_put_cell(struct strbuf *out, double value, const char *unit)
{
    struct strbuf cell = {0};
    text_put_quantity(&cell, value, unit);
    readme_put_text(out, cell.data ? cell.data : "-", CELL_COLUMNS);
    strbuf_fini(&cell);
}

static void readme_put_deviation(struct strbuf *out, const struct rma_figure *figure)
{
    if (isfinite(figure->deviation))
        strbuf_printf(out, "%+.1f %%", 100 * figure->deviation);
    else
        strbuf_puts(out, "-");
    if (isfinite(figure->deviation) && figure->scatter > 0)
        strbuf_printf(out, " (%+.1f)", figure->deviation * fabs(figure->median) / figure->scatter);
}

static void readme_put_figure(struct strbuf *out, const struct rma_figure *figure, unsigned columns)
{
    const struct inventory_value *value = figure->value;
    const bool valued = measure_status_valued(value->status);
    strbuf_puts(out, "  ");
    readme_put_text(out, value->metric, columns);
    readme_put_cell(out, valued ? value->value : NAN, figure->unit);
    if (figure->is_name) {
        readme_put_cell(out, figure->usual, figure->unit);
        if (isfinite(figure->usual))
            strbuf_printf(out, "%zu of %zu%s", figure->usual_on, figure->peers,
                          valued && value->value != figure->usual ? ", it differs" : "");
        else
            strbuf_puts(out, "-");
    } else {
        readme_put_cell(out, figure->median, figure->unit);
        readme_put_cell(out, figure->scatter, figure->unit);
        readme_put_deviation(out, figure);
    }
    if (value->status != MEASURE_OK)
        strbuf_printf(out, " %s", measure_status_name(value->status));
    strbuf_puts(out, "\n");
}

/* The longest name of a metric, and a blank. */
static unsigned rma_metric_columns(const struct rma *rma)
{
    unsigned widest = 0;
    for (size_t i = 0; i < rma->figure_count; i++) {
        unsigned columns = text_columns(rma->figures[i].value->metric, METRIC_COLUMNS_MAX - 1);
        widest = columns > widest ? columns : widest;
    }
    return (widest < METRIC_COLUMNS_MAX ? widest : METRIC_COLUMNS_MAX - 1) + 1;
}

enum { HEADS_MAX = 5 };

static const struct readme_table {
    bool names;
    const char *title, *heads[HEADS_MAX], *last_head, *note;
} readme_tables[] = {
    {false,
     "Figures",
     {"metric", "this GPU", "median", "scatter"},
     "deviation (in scatters)",
     "  Scatter: robust standard deviation of the healthy GPUs. The figures are as measured; "
     "findings\n  compare figures at equal SM clock.\n"},
    {true,
     "SMs, places in the memory and digests",
     {"identifier", "this GPU", "most others"},
     "how many",
     "  Digests (compute.digest.*) must be equal on GPUs with the same compute.code.\n"},
};

static void readme_begin_table(struct strbuf *out, const struct rma *rma,
                               const struct readme_table *table, unsigned columns)
{
    strbuf_printf(out, "\n%s beside %zu healthy GPUs of %s:\n  ", table->title, rma->peers,
                  rma->same_board ? "the same model and board part" : "the same model");
    for (size_t i = 0; table->heads[i]; i++)
        readme_put_text(out, table->heads[i], i ? CELL_COLUMNS : columns);
    strbuf_printf(out, "%s\n", table->last_head);
}

/* Nothing if the GPU has no such figure. */
static void readme_put_table(struct strbuf *out, const struct rma *rma,
                             const struct readme_table *table)
{
    const unsigned columns = rma_metric_columns(rma);
    size_t count = 0;
    for (size_t i = 0; i < rma->figure_count; i++) {
        if (rma->figures[i].is_name != table->names)
            continue;
        if (!count++)
            readme_begin_table(out, rma, table, columns);
        readme_put_figure(out, &rma->figures[i], columns);
    }
    strbuf_puts(out, count ? table->note : "");
}

static void readme_put_figures(struct strbuf *out, const struct rma *rma)
{
    for (size_t i = 0; i < COUNT_OF(readme_tables); i++)
        readme_put_table(out, rma, &readme_tables[i]);
    strbuf_puts(out, rma->figure_count ? "" : "\nNo figure was measured.\n");
}

static void readme_put_value(struct strbuf *line, const struct fact *fact)
{
    struct strbuf value = {0};
    fact_text_put_value(&value, fact);
    text_put_clean(line, value.data, REPORT_SENTENCE_MAX);
    strbuf_fini(&value);
}

/* usual: the facts of most GPUs of the model; NULL: unknown. */
static void readme_put_facts(struct strbuf *out, const char *title, const struct facts *facts,
                             const struct facts *usual)
{
    strbuf_puts(out, facts->count ? title : "");
    for (size_t i = 0; i < facts->count; i++) {
        const struct fact *fact = &facts->items[i];
        const struct fact *other = usual ? facts_get(usual, fact->key) : NULL;
        struct strbuf line = {0};
        text_put_clean(&line, fact->key, REPORT_SENTENCE_MAX);
        strbuf_puts(&line, ": ");
        readme_put_value(&line, fact);
        if (other && !fact_equal(fact, other)) {
            strbuf_puts(&line, " (most GPUs of its model: ");
            readme_put_value(&line, other);
            strbuf_puts(&line, ")");
        }
        strbuf_puts(out, "  ");
        report_end_line(out, NULL, &line, 2, 4);
    }
}

static void readme_put_files(struct strbuf *out, const struct rma *rma)
{
    strbuf_puts(out, "\nFiles:\n"
                     "  README.txt   this text\n"
                     "  gpu.json     the same for programs\n");
    if (!rma->has_record) {
        strbuf_puts(out, "There is no record: the raw samples of this survey were not given "
                         "(gpumemtopo-survey --record).\n");
        return;
    }
    strbuf_puts(out, "  record.gmr   every request to the GPUs of the survey and every answer\n");
    if (!rma->record_is_complete) {
        strbuf_puts(out, "The record is cut off: it was not copied as a whole, or the survey was "
                         "ended. It cannot be\nreplayed.\n");
        return;
    }
    strbuf_puts(out, "\nTo repeat the whole analysis from the raw samples, without a GPU:\n"
                     "  gpumemtopo-survey --replay record.gmr -o replayed.yaml\n"
                     "  gpumemtopo-report show replayed.yaml\n");
}

void rma_put_readme(const struct rma *rma, struct strbuf *out_text)
{
    readme_put_identity(out_text, rma);
    readme_put_findings(out_text, "Findings", rma->outlier);
    readme_put_findings(out_text, "Deviations too small to act on", rma->watched);
    readme_put_places(out_text, rma);
    readme_put_figures(out_text, rma);
    readme_put_facts(out_text, "\nHealth:\n", &rma->facts[INVENTORY_HEALTH],
                     rma->model ? &rma->model->health : NULL);
    readme_put_facts(out_text, "\nSettings:\n", &rma->facts[INVENTORY_CONFIG],
                     rma->model ? &rma->model->config : NULL);
    readme_put_files(out_text, rma);
    strbuf_puts(out_text, "\nTo measure again on a machine with the GPU:\n"
                          "  gpumemtopo-survey --profile full -o again.yaml\n");
}

static void rma_json_put_findings(struct writer *json, const char *key,
                                  const struct inventory_outlier *entry)
{
    writer_list(json, key, WRITER_BLOCK);
    for (size_t i = 0; entry && i < entry->evidence_count; i++) {
        const struct inventory_evidence *finding = &entry->evidence[i];
        writer_map(json, NULL, WRITER_BLOCK);
        writer_text(json, "metric", finding->metric);
        writer_number(json, "value", finding->value);
        writer_number(json, "expected", finding->expected);
        writer_text(json, "unit", finding->unit);
        writer_number(json, "deviation", finding->deviation);
        writer_number(json, "score", finding->score);
        writer_text(json, "basis", finding->basis);
        writer_text(json, "confirmed", finding->confirmed);
        writer_text(json, "cause", finding->cause);
        writer_end(json);
    }
    writer_end(json);
}

static void rma_json_put_noted(struct writer *json, const struct inventory_gpu *gpu)
{
    writer_list(json, "noted", WRITER_BLOCK);
    for (size_t i = 0; i < gpu->noted_count; i++) {
        writer_map(json, NULL, WRITER_BLOCK);
        writer_text(json, "metric", gpu->noted[i].metric);
        schema_print_facts(json, "notes", &gpu->noted[i].notes);
        writer_end(json);
    }
    writer_end(json);
}

static void rma_json_put_figures(struct writer *json, const struct rma *rma)
{
    writer_list(json, "figures", WRITER_BLOCK);
    for (size_t i = 0; i < rma->figure_count; i++) {
        const struct rma_figure *figure = &rma->figures[i];
        writer_map(json, NULL, WRITER_BLOCK);
        writer_text(json, "metric", figure->value->metric);
        writer_text(json, "unit", figure->unit);
        writer_text(json, "status", measure_status_name(figure->value->status));
        writer_number(json, "value",
                      measure_status_valued(figure->value->status) ? figure->value->value : NAN);
        writer_number(json, "spread", figure->value->spread);
        writer_number(json, "peers", (double)figure->peers);
        writer_number(json, "median", measure_digits(figure->median, 6));
        writer_number(json, "scatter", measure_digits(figure->scatter, 3));
        writer_number(json, "deviation", measure_digits(figure->deviation, 3));
        writer_number(json, "usual", figure->usual);
        writer_number(json, "usual_on", figure->is_name ? (double)figure->usual_on : NAN);
        writer_end(json);
    }
    writer_end(json);
}

void rma_put_json(const struct rma *rma, struct strbuf *out_text)
{
    const struct inventory_gpu *gpu = rma->gpu;
    struct writer json = {.out = out_text};
    struct strbuf version = {0};
    inventory_put_measured_by(rma->inventory, &version);
    writer_map(&json, NULL, WRITER_BLOCK);
    writer_text(&json, "uuid", gpu->uuid);
    writer_text(&json, "node", gpu->node);
    writer_text(&json, "pci", gpu->pci);
    writer_text(&json, "model", rma->model ? rma->model->name : NULL);
    writer_text(&json, "status", gpu_status_name(gpu->status));
    writer_text(&json, "verdict", rma->outlier ? verdict_name(rma->outlier->verdict) : NULL);
    writer_number(&json, "loss", rma->outlier ? rma->outlier->loss : NAN);
    writer_text(&json, "action", rma->outlier ? action_name(rma->outlier->action) : NULL);
    writer_text(&json, "reason", rma->failure ? rma->failure->reason : NULL);
    writer_text(&json, "generated", rma->inventory->generated);
    writer_text(&json, "version", version.data);
    writer_text(&json, "backend", rma->inventory->backend);
    writer_number(&json, "peers", (double)rma->peers);
    writer_bool(&json, "peers_have_same_board", rma->same_board);
    rma_json_put_findings(&json, "evidence", rma->outlier);
    rma_json_put_findings(&json, "watch", rma->watched);
    rma_json_put_figures(&json, rma);
    rma_json_put_noted(&json, gpu);
    schema_print_facts(&json, "board", &rma->facts[INVENTORY_BOARD]);
    schema_print_facts(&json, "hardware", &rma->facts[INVENTORY_HARDWARE]);
    schema_print_facts(&json, "config", &rma->facts[INVENTORY_CONFIG]);
    schema_print_facts(&json, "health", &rma->facts[INVENTORY_HEALTH]);
    writer_end(&json);
    strbuf_puts(out_text, "\n");
    strbuf_fini(&version);
}

/* Reads a record and checks that the GPU is in it: its UUID is stored as text. */
static int rma_load_record(const char *path, const char *uuid, struct strbuf *out, struct err *err)
{
    int rc = yaml_load_text(path, &yaml_limits_plain, out, err);
    if (rc)
        return rc;
    if (!report_record_begins(out))
        return err_set_at(err, -EINVAL, path, 0, 0,
                          "is not a record of gpumemtopo-survey --record");
    if (!memmem(out->data, out->length, uuid, strlen(uuid)))
        return err_set_at(
            err, -EINVAL, path, 0, 0,
            "has no record of %s: give the record of the survey that made this inventory", uuid);
    return 0;
}

/* "gpumemtopo-rma-GPU-...", of characters that are harmless in a file name. */
static char *rma_stem_of(const char *uuid)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-";
    enum { UUID_CHARS = 60 };
    char *stem = str_format("gpumemtopo-rma-%.*s", UUID_CHARS, uuid);
    for (char *at = stem; *at; at++)
        *at = strchr(allowed, *at) ? *at : '_';
    return stem;
}

static int rma_add_member(struct strbuf *archive, const char *stem, const char *name,
                          int64_t time_s, const struct strbuf *content, struct err *err)
{
    char *path = str_format("%s/%s", stem, name);
    int rc =
        tar_add(archive, path, time_s, content->data ? content->data : "", content->length, err);
    free(path);
    return rc;
}

/* record NULL: none. */
static int rma_make_archive(struct rma *rma, const char *stem, const struct strbuf *record,
                            struct strbuf *archive, struct err *err)
{
    struct strbuf readme = {0}, json = {0};
    int64_t time_s = 0; /* of the survey, so that the archive is the same each time */
    clock_parse_stamp(rma->inventory->generated, &time_s);
    rma->has_record = record != NULL;
    rma->record_is_complete = record && report_record_is_complete(record);
    rma_put_readme(rma, &readme);
    rma_put_json(rma, &json);
    int rc = rma_add_member(archive, stem, "README.txt", time_s, &readme, err);
    if (!rc)
        rc = rma_add_member(archive, stem, "gpu.json", time_s, &json, err);
    if (!rc && record)
        rc = rma_add_member(archive, stem, "record.gmr", time_s, record, err);
    for (int i = 0; i < 2; i++) /* the end mark */
        tar_put_zeros(archive, TAR_BLOCK);
    strbuf_fini(&readme);
    strbuf_fini(&json);
    return rc;
}

static int rma_write(const struct command_options *options, const struct inventory *inventory,
                     const struct inventory_gpu *gpu, struct err *err)
{
    struct strbuf archive = {0}, record = {0};
    struct rma rma = {0};
    char *stem = rma_stem_of(gpu->uuid);
    char *path = options->output ? str_copy(options->output) : str_format("%s.tar", stem);
    int rc = options->record ? rma_load_record(options->record, gpu->uuid, &record, err) : 0;
    if (!rc) {
        rma_init(&rma, inventory, gpu);
        rc = rma_make_archive(&rma, stem, options->record ? &record : NULL, &archive, err);
    }
    if (!rc && rma.has_record && !rma.record_is_complete)
        log_warning("%s is cut off, so the vendor cannot replay it; README.txt says so",
                    options->record);
    int code = rc ? command_exit_code(rc) : command_write(&archive, path);
    if (rc)
        log_failure(err);
    else if (code == EXIT_DONE && strcmp(path, "-") != 0)
        log_info("written to %s", path);
    strbuf_fini(&archive);
    strbuf_fini(&record);
    rma_fini(&rma);
    free(path);
    free(stem);
    return code;
}

int command_rma(const struct command_options *options)
{
    struct inventory inventory;
    const struct inventory_gpu *gpu = NULL;
    struct err err = {0};
    if (options->record && options->output && out_file_replaces(options->output, options->record)) {
        log_error("--record and --output name the same file");
        return EXIT_BAD_INPUT;
    }
    int code = command_read(options->files[0], &inventory);
    if (code)
        return code;
    /* A record has names, unless it was made without them, like the inventory. */
    int rc = options->anonymous && options->record && !inventory.anonymous
                 ? err_set(&err, -EINVAL,
                           "the record has names: make both without them with gpumemtopo-survey "
                           "--anonymous --record, or leave out --record")
                 : rma_find_gpu(&inventory, options->files[1], &gpu, &err);
    /* The GPU is found by its name; its entry stays where it is. */
    if (!rc && !inventory.anonymous)
        command_anonymise(options, (struct inventory *const[]){&inventory}, 1, NULL);
    if (rc) {
        err_prefix(&err, "%s", options->files[0]);
        log_failure(&err);
        code = command_exit_code(rc);
    } else
        code = rma_write(options, &inventory, gpu, &err);
    inventory_fini(&inventory);
    return code;
}
