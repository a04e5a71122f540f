/* An inventory as metrics for Prometheus: the text formats that Prometheus, node_exporter and
 * OpenMetrics read. */
#include "report/commands/commands.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/sort.h"
#include "catalogue/facts.h"
#include "inventory/xid.h"
#include "report/command.h"
#include "report/drain.h"
#include "schema/scalar.h"

/* Where metrics are written to. */
struct exposition {
    struct strbuf *out;
    bool openmetrics; /* false: the text format 0.0.4 of Prometheus */
    bool old_labels;  /* Hostname, as dcgm-exporter named it until 4.8; and pci */
};

static void exposition_put_help(const struct exposition *to, const char *name, size_t length,
                                const char *help)
{
    strbuf_printf(to->out, "# HELP %.*s ", (int)length, name);
    for (; *help; help++) {
        if (*help == '\n')
            strbuf_puts(to->out, "\\n");
        else if (*help == '\\' || (*help == '"' && to->openmetrics))
            strbuf_printf(to->out, "\\%c", *help);
        else
            strbuf_append(to->out, help, 1);
    }
    strbuf_puts(to->out, "\n");
}

/* Begins a family of gauges. name ends with "_UNIT"; unit NULL or "": none. */
static void exposition_gauge(const struct exposition *to, const char *name, const char *unit,
                             const char *help)
{
    exposition_put_help(to, name, strlen(name), help);
    strbuf_printf(to->out, "# TYPE %s gauge\n", name);
    if (to->openmetrics && unit && *unit)
        strbuf_printf(to->out, "# UNIT %s %s\n", name, unit);
}

/* Begins a family of samples that are always 1 and carry text in their labels. name ends with
 * "_info". OpenMetrics has a type for it, and names the family without the ending of its samples.
 */
static void exposition_info(const struct exposition *to, const char *name, const char *help)
{
    size_t length = strlen(name) - (to->openmetrics ? strlen("_info") : 0);
    exposition_put_help(to, name, length, help);
    strbuf_printf(to->out, "# TYPE %.*s %s\n", (int)length, name,
                  to->openmetrics ? "info" : "gauge");
}

/* One label; lead is what precedes its value, such as ",node=\"". text NULL is empty. */
static void exposition_label(const struct exposition *to, const char *lead, const char *text)
{
    strbuf_puts(to->out, lead);
    for (text = text ? text : ""; *text;) {
        size_t plain = strcspn(text, "\n\"\\");
        strbuf_append(to->out, text, plain);
        text += plain;
        if (*text)
            strbuf_puts(to->out, *text == '\n' ? "\\n" : *text == '"' ? "\\\"" : "\\\\");
        text += *text != '\0';
    }
    strbuf_puts(to->out, "\"");
}

/* The value of a sample and the end of its line. lead: "} " after labels, " " without. */
static void exposition_value(const struct exposition *to, const char *lead, double value)
{
    strbuf_puts(to->out, lead);
    scalar_put_number(to->out, value);
    strbuf_puts(to->out, "\n");
}

/* One reason why a GPU is an outlier: a finding of its own, or the text of a finding about its
 * node. */
struct flagged {
    const char *uuid;
    enum verdict verdict;
    enum action action;
    const struct inventory_evidence *finding; /* the worst of its own; NULL: there is none */
    const char *place;
};

struct flagged_list {
    struct flagged *items; /* by UUID, the strongest action of each first */
    size_t count;
};

/* Whether the figures of a GPU were judged. Those of GPUs that were not completely measured, or
 * that were busy, were not; they are left out, because a sample cannot say so. */
static bool prometheus_was_judged(const struct inventory_gpu *gpu)
{
    return gpu->uuid && (gpu->status == GPU_OK || gpu->status == GPU_OUTLIER);
}

/* lead: "{" or ",". */
static void exposition_host(const struct exposition *to, const char *lead, const char *node)
{
    strbuf_puts(to->out, lead);
    exposition_label(to, to->old_labels ? "Hostname=\"" : "hostname=\"", node);
}

/* As dcgm-exporter writes it: "00000000:1B:00.0". */
static void exposition_pci(const struct exposition *to, const char *pci)
{
    char bus_id[40] = "";
    if (to->old_labels) {
        exposition_label(to, ",pci=\"", pci);
        return;
    }
    if (pci && strlen(pci) < 20)
        snprintf(bus_id, sizeof bus_id, "%s%s", strcspn(pci, ":") == 4 ? "0000" : "", pci);
    for (char *at = bus_id; *at; at++)
        *at = *at >= 'a' && *at <= 'f' ? (char)(*at - 'a' + 'A') : *at;
    exposition_label(to, ",pci_bus_id=\"", *bus_id ? bus_id : pci);
}

/* The begin of a sample of a GPU: the name of the family and the labels UUID, hostname and gpu, as
 * dcgm-exporter names them, and model. No closing brace. */
static void prometheus_put_gpu(const struct exposition *to, const char *family,
                               const struct inventory_gpu *gpu)
{
    char index[16] = "";
    if (gpu->index >= 0)
        snprintf(index, sizeof index, "%d", (int)gpu->index);
    strbuf_puts(to->out, family);
    exposition_label(to, "{UUID=\"", gpu->uuid);
    exposition_host(to, ",", gpu->node);
    exposition_label(to, ",gpu=\"", index);
    exposition_label(to, ",model=\"", gpu->model);
}

/* A finding of its own comes before one about its node. */
static int flagged_order(const void *left, const void *right)
{
    const struct flagged *a = left, *b = right;
    int order = str_order(a->uuid, b->uuid);
    if (!order)
        order = (a->action < b->action) - (a->action > b->action);
    if (!order)
        order = (a->verdict > b->verdict) - (a->verdict < b->verdict);
    return order ? order : (a->place != NULL) - (b->place != NULL);
}

/* items: freed with free(). */
static void flagged_collect(const struct inventory *inventory, struct flagged_list *out)
{
    size_t room = inventory->outlier_count;
    for (size_t i = 0; i < inventory->node_finding_count; i++)
        room += inventory->node_findings[i].gpu_count;
    out->items = mem_array(room, sizeof *out->items);
    for (size_t i = 0; i < inventory->outlier_count; i++) {
        const struct inventory_outlier *outlier = &inventory->outliers[i];
        out->items[out->count++] =
            (struct flagged){outlier->uuid, outlier->verdict, outlier->action,
                             outlier->evidence_count ? &outlier->evidence[0] : NULL, NULL};
    }
    for (size_t i = 0; i < inventory->node_finding_count; i++) {
        const struct inventory_node *place = &inventory->node_findings[i];
        for (size_t g = 0; place->action >= ACTION_ALERT && g < place->gpu_count; g++)
            out->items[out->count++] = (struct flagged){place->gpus[g], place->verdict,
                                                        place->action, NULL, place->finding};
    }
    if (out->count)
        sort_stable(out->items, out->count, sizeof *out->items, flagged_order);
}

/* The strongest of a GPU; NULL: it is no outlier. */
static const struct flagged *flagged_find(const struct flagged_list *all, const char *uuid)
{
    size_t low = 0, high = all->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (str_order(all->items[middle].uuid, uuid) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return uuid && low < all->count && str_equal(all->items[low].uuid, uuid) ? &all->items[low]
                                                                             : NULL;
}

static void prometheus_put_infos(const struct exposition *to, const struct inventory *inventory)
{
    static const char name[] = "gpumemtopo_gpu_info";
    static const struct {
        const char *fact, *lead;
    } boards[] = {{"serial", ",serial=\""}, {"vbios", ",vbios=\""}, {"driver", ",driver=\""}};
    exposition_info(to, name, "Where a GPU is, what it carries and how its survey ended.");
    for (size_t i = 0; i < inventory->gpu_count; i++) {
        const struct inventory_gpu *gpu = &inventory->gpus[i];
        if (!gpu->uuid)
            continue;
        prometheus_put_gpu(to, name, gpu);
        exposition_pci(to, gpu->pci);
        exposition_label(to, ",status=\"", gpu_status_name(gpu->status));
        for (size_t b = 0; b < COUNT_OF(boards); b++)
            exposition_label(to, boards[b].lead, facts_text(&gpu->board, boards[b].fact));
        exposition_value(to, "} ", 1);
    }
}

/* A GPU whose worker crashed or hung twice was not measured, but it is an outlier. */
static void prometheus_put_flags(const struct exposition *to, const struct inventory *inventory,
                                 const struct flagged_list *flagged)
{
    static const char name[] = "gpumemtopo_gpu_outlier";
    exposition_gauge(to, name, NULL,
                     "1 for a GPU that is alerted or drained, 0 for one that is not.");
    for (size_t i = 0; i < inventory->gpu_count; i++) {
        const struct inventory_gpu *gpu = &inventory->gpus[i];
        bool outlier = flagged_find(flagged, gpu->uuid);
        if (!prometheus_was_judged(gpu) && !outlier)
            continue;
        prometheus_put_gpu(to, name, gpu);
        exposition_value(to, "} ", outlier || gpu->status == GPU_OUTLIER);
    }
}

static void prometheus_put_kinds(const struct exposition *to, const struct inventory *inventory,
                                 const struct flagged_list *flagged)
{
    static const char name[] = "gpumemtopo_outlier_info";
    exposition_info(to, name,
                    "Each outlier: its verdict, what is to be done, metric and cause of the "
                    "worst finding.");
    for (size_t i = 0; i < inventory->gpu_count; i++) {
        const struct inventory_gpu *gpu = &inventory->gpus[i];
        const struct flagged *own = flagged_find(flagged, gpu->uuid);
        char metric[DRAIN_METRIC_CHARS + 1] = "";
        struct drain_reason reason = {.deviation = NAN};
        if (!own)
            continue;
        if (own->finding) {
            reason.metric = own->finding->metric;
            reason.cause = own->finding->cause;
        } else if (own->place)
            drain_reason_split(own->place, &reason, metric);
        prometheus_put_gpu(to, name, gpu);
        exposition_label(to, ",verdict=\"", verdict_name(own->verdict));
        exposition_label(to, ",action=\"", action_name(own->action));
        exposition_label(to, ",metric=\"", reason.metric);
        exposition_label(to, ",cause=\"", reason.cause);
        exposition_value(to, "} ", 1);
    }
}

/* Where each GPU is, how its survey ended, which are outliers, and why. */
static void prometheus_put_states(const struct exposition *to, const struct inventory *inventory)
{
    struct flagged_list flagged = {0};
    if (!inventory->gpu_count)
        return;
    flagged_collect(inventory, &flagged);
    prometheus_put_infos(to, inventory);
    prometheus_put_flags(to, inventory, &flagged);
    if (flagged.count)
        prometheus_put_kinds(to, inventory, &flagged);
    free(flagged.items);
}

/* GPUs have only the facts that differ from those of most of their model. */
struct usual_health {
    const struct fact **facts; /* one per model; NULL: most do not have it */
    const uint32_t *models;    /* of each GPU; the number of models: none */
};

/* NULL: not known. Of a GPU that was not measured completely only its own facts are known. */
static const struct fact *health_fact_of(const struct inventory *inventory,
                                         const struct usual_health *usual, size_t gpu,
                                         const char *key)
{
    const struct fact *own = facts_get(&inventory->gpus[gpu].health, key);
    if (own || !prometheus_was_judged(&inventory->gpus[gpu]))
        return own;
    uint32_t model = usual->models[gpu];
    return model < inventory->model_count ? usual->facts[model] : NULL;
}

static void health_find_usual(const struct inventory *inventory, const char *key,
                              struct usual_health *usual)
{
    for (size_t m = 0; m < inventory->model_count; m++)
        usual->facts[m] = facts_get(&inventory->models[m].health, key);
}

static void health_put_sample(const struct exposition *to, const struct inventory_gpu *gpu,
                              const char *fact, double value)
{
    prometheus_put_gpu(to, "gpumemtopo_gpu_health", gpu);
    exposition_label(to, ",fact=\"", fact);
    exposition_value(to, "} ", value);
}

/* NaN: not known, or no counter. */
static double health_counted(const struct fact *fact)
{
    return fact && fact->kind == FACT_BOOL ? fact->flag : fact_number(fact);
}

/* Returns of how many GPUs the counter is known. */
static size_t health_put_counter(const struct exposition *to, const struct inventory *inventory,
                                 struct usual_health *usual, const char *key)
{
    size_t known = 0;
    health_find_usual(inventory, key, usual);
    for (size_t i = 0; i < inventory->gpu_count; i++) {
        double value = health_counted(health_fact_of(inventory, usual, i, key));
        if (!inventory->gpus[i].uuid || !isfinite(value))
            continue;
        known++;
        if (value != 0)
            health_put_sample(to, &inventory->gpus[i], key, value);
    }
    return known;
}

/* Xid events are a list of numbers. A list names no number twice: each is a sample. */
static size_t health_put_xids(const struct exposition *to, const struct inventory *inventory,
                              struct usual_health *usual)
{
    size_t known = 0;
    health_find_usual(inventory, "xid", usual);
    for (size_t i = 0; i < inventory->gpu_count; i++) {
        const struct fact *fact = health_fact_of(inventory, usual, i, "xid");
        unsigned numbers[XID_LIST_MAX];
        if (!inventory->gpus[i].uuid || !fact || fact->kind != FACT_TEXT)
            continue;
        known++;
        size_t count = xid_parse_list(fact->text, numbers);
        for (size_t k = 0; k < count; k++) {
            char name[24];
            size_t first = 0;
            while (numbers[first] != numbers[k])
                first++;
            snprintf(name, sizeof name, "xid_%u", numbers[k]);
            if (first == k)
                health_put_sample(to, &inventory->gpus[i], name, 1);
        }
    }
    return known;
}

static uint32_t health_model_index(const struct inventory *inventory, const char *id)
{
    uint32_t m = 0;
    while (m < inventory->model_count && !(id && str_equal(inventory->models[m].id, id)))
        m++;
    return m;
}

/* Counters of errors and repairs that are not 0, and of how many GPUs each is known. */
static void prometheus_put_health(const struct exposition *to, const struct inventory *inventory)
{
    uint32_t *models = mem_array(inventory->gpu_count, sizeof *models);
    struct usual_health usual = {mem_array(inventory->model_count, sizeof *usual.facts), models};
    for (size_t i = 0; i < inventory->gpu_count; i++)
        models[i] = health_model_index(inventory, inventory->gpus[i].model);
    /* Counters of the catalogue. Temperatures, power and whatever else every GPU has are left to
     * exporters that read them every few seconds. */
    static const char name[] = "gpumemtopo_health_known_gpus";
    size_t known[HEALTH_FACTS] = {0};
    exposition_gauge(to, "gpumemtopo_gpu_health", NULL,
                     "What the driver counted of a GPU; only counters that are not 0.");
    for (size_t i = 0; i < HEALTH_FACTS; i++)
        if (catalogue_health[i].is_counter)
            known[i] = health_put_counter(to, inventory, &usual, catalogue_health[i].key);
    known[HEALTH_XID] = health_put_xids(to, inventory, &usual);
    exposition_gauge(to, name, NULL,
                     "GPUs of which the driver reports this counter. Without a sample of "
                     "gpumemtopo_gpu_health it is 0 for them.");
    for (size_t i = 0; i < HEALTH_FACTS; i++) {
        if (!catalogue_health[i].is_counter && i != HEALTH_XID)
            continue;
        strbuf_puts(to->out, name);
        exposition_label(to, "{fact=\"", catalogue_health[i].key);
        exposition_value(to, "} ", (double)known[i]);
    }
    free(usual.facts);
    free(models);
}

/* What a finding is about. */
static const char *node_finding_subject(const struct inventory_node *place)
{
    if (str_equal(place->finding, inventory_bare_node))
        return "no_gpus";
    if (place->node && !place->gpu_count)
        return "fewer_gpus";
    return place->gpu_count ? "gpus" : "fleet";
}

static int node_finding_order(const void *left, const void *right)
{
    const struct inventory_node *a = *(struct inventory_node *const *)left;
    const struct inventory_node *b = *(struct inventory_node *const *)right;
    int order = str_order(a->node, b->node);
    if (!order)
        order = str_order(a->finding, b->finding);
    if (!order)
        order = strcmp(node_finding_subject(a), node_finding_subject(b));
    if (!order)
        order = (a->verdict > b->verdict) - (a->verdict < b->verdict);
    return order ? order : (a->action > b->action) - (a->action < b->action);
}

/* Several slots may have the same finding: duplicate samples would make Prometheus reject all. */
static void prometheus_put_node_findings(const struct exposition *to,
                                         const struct inventory *inventory)
{
    static const char name[] = "gpumemtopo_node_finding_info";
    size_t count = inventory->node_finding_count;
    const struct inventory_node **places = mem_array(count, sizeof *places);
    for (size_t i = 0; i < count; i++)
        places[i] = &inventory->node_findings[i];
    sort_stable(places, count, sizeof *places, node_finding_order);
    exposition_info(to, name,
                    "Findings about nodes (no_gpus, fewer_gpus, gpus) and about the fleet.");
    for (size_t i = 0; i < count; i++) {
        if (i && !node_finding_order(&places[i - 1], &places[i]))
            continue;
        strbuf_puts(to->out, name);
        exposition_host(to, "{", places[i]->node);
        exposition_label(to, ",about=\"", node_finding_subject(places[i]));
        exposition_label(to, ",verdict=\"", verdict_name(places[i]->verdict));
        exposition_label(to, ",action=\"", action_name(places[i]->action));
        exposition_label(to, ",finding=\"", places[i]->finding);
        exposition_value(to, "} ", 1);
    }
    free(places);
}

static int unmeasured_order(const void *left, const void *right)
{
    const struct inventory_unmeasured *a = *(struct inventory_unmeasured *const *)left;
    const struct inventory_unmeasured *b = *(struct inventory_unmeasured *const *)right;
    int order = str_order(a->node, b->node);
    return order ? order : (a->status > b->status) - (a->status < b->status);
}

static void prometheus_put_unmeasured(const struct exposition *to,
                                      const struct inventory *inventory)
{
    static const char name[] = "gpumemtopo_node_unmeasured";
    size_t count = inventory->unmeasured_count;
    const struct inventory_unmeasured **all = mem_array(count, sizeof *all);
    for (size_t i = 0; i < count; i++)
        all[i] = &inventory->unmeasured[i];
    sort_stable(all, count, sizeof *all, unmeasured_order);
    exposition_gauge(to, name, NULL,
                     "GPUs of a node that could not be measured, and ranks that sent nothing.");
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && !unmeasured_order(&all[i], &all[end]);)
            end++;
        strbuf_puts(to->out, name);
        exposition_host(to, "{", all[i]->node);
        exposition_label(to, ",status=\"", gpu_status_name(all[i]->status));
        exposition_value(to, "} ", (double)(end - i));
    }
    free(all);
}

/* A family: a metric of the inventory under a name that Prometheus allows. */
struct family {
    const char *metric;
    char *name;
    const char *unit; /* in the inventory; NULL: unknown */
    double factor;    /* to the base unit */
    bool reported;    /* by the driver, not measured */
};

struct families {
    struct family *items;
    size_t count, capacity;
};

/* Base units, as the naming rules of Prometheus require. */
static const struct {
    const char *unit, *suffix, *what;
    double factor;
} units[] = {
    {"B", "_bytes", "bytes", 1},
    {"GB/s", "_bytes_per_second", "bytes per second", 1e9},
    {"MHz", "_hertz", "hertz", 1e6},
    {"cycles", "_cycles", "SM clock cycles", 1},
    {"s", "_seconds", "seconds", 1},
    {"ns", "_seconds", "seconds", 1e-9},
    {MEASURE_OPERATIONS, "_operations_per_cycle",
     "operations per SM and cycle, a multiply-add is two", 1},
};

static size_t prometheus_unit_row(const char *unit)
{
    size_t i = 0;
    while (i < COUNT_OF(units) && !str_equal(units[i].unit, unit))
        i++;
    return i;
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

/* Endings with a special meaning in Prometheus. */
static bool family_ends_reserved(const char *name)
{
    static const char *const ends[] = {"_count", "_sum", "_bucket", "_total", "_info"};
    for (size_t i = 0; i < COUNT_OF(ends); i++)
        if (ends_with(name, ends[i]))
            return true;
    return false;
}

static char *family_name(const char *metric, const char *suffix)
{
    struct strbuf name = {0};
    strbuf_puts(&name, "gpumemtopo_");
    for (const char *at = metric; *at; at++) {
        bool keep = (*at >= 'a' && *at <= 'z') || (*at >= '0' && *at <= '9');
        char c = *at >= 'A' && *at <= 'Z' ? (char)(*at - 'A' + 'a') : keep ? *at : '_';
        strbuf_append(&name, &c, 1);
    }
    strbuf_puts(&name, suffix);
    if (family_ends_reserved(name.data))
        strbuf_puts(&name, "_value");
    return name.data;
}

/* The measure of the first model that has this metric; NULL: none. */
static const struct measure *family_measure(const struct inventory *inventory, const char *metric)
{
    for (size_t i = 0; i < inventory->model_count; i++) {
        const struct measure *m = measures_get(&inventory->models[i].memory, metric);
        if (m && m->unit)
            return m;
    }
    return NULL;
}

/* Two metrics with the same name ("a.b", "a_b") would give one family with duplicate samples. */
static void family_make_distinct(const struct families *families, struct family *family)
{
    for (size_t i = 0; i < families->count; i++) {
        if (strcmp(families->items[i].name, family->name) != 0)
            continue;
        char *longer = str_format("%s_x", family->name);
        free(family->name);
        family->name = longer;
        i = (size_t)-1;
    }
}

static void families_add(struct families *families, const struct inventory *inventory,
                         const char *metric)
{
    for (size_t i = 0; i < families->count; i++)
        if (strcmp(families->items[i].metric, metric) == 0)
            return;
    families->items = mem_grow(families->items, &families->capacity, families->count + 1,
                               sizeof *families->items);
    const struct measure *measure = family_measure(inventory, metric);
    struct family family = {.metric = metric,
                            .unit = measure ? measure->unit : NULL,
                            .factor = 1,
                            .reported = measure && measure_is_reported(measure)};
    size_t row = prometheus_unit_row(family.unit);
    if (row < COUNT_OF(units))
        family.factor = units[row].factor;
    family.name = family_name(metric, row < COUNT_OF(units) ? units[row].suffix : "");
    family_make_distinct(families, &family);
    families->items[families->count++] = family;
}

static void families_collect(struct families *families, const struct inventory *inventory)
{
    for (size_t i = 0; i < inventory->gpu_count; i++) {
        const struct inventory_gpu *gpu = &inventory->gpus[i];
        for (size_t k = 0; k < gpu->value_count && prometheus_was_judged(gpu); k++)
            /* A sample cannot say that it is noisy or a bound. */
            if (inventory_value_is_good(&gpu->values[k]))
                families_add(families, inventory, gpu->values[k].metric);
    }
}

/* NaN: no value to export. */
static double family_value_of(const struct inventory_gpu *gpu, const char *metric, size_t hint)
{
    size_t at = hint;
    if (hint >= gpu->value_count || strcmp(gpu->values[hint].metric, metric) != 0)
        for (at = 0; at < gpu->value_count && strcmp(gpu->values[at].metric, metric) != 0;)
            at++;
    return at < gpu->value_count && inventory_value_is_good(&gpu->values[at])
               ? gpu->values[at].value
               : NAN;
}

static void family_put(const struct exposition *to, const struct inventory *inventory,
                       const struct family *family, size_t hint)
{
    size_t row = prometheus_unit_row(family->unit);
    bool known = row < COUNT_OF(units);
    /* The unit at the end of the name, unless another word follows it. */
    const char *unit =
        known && ends_with(family->name, units[row].suffix) ? units[row].suffix + 1 : NULL;
    char *help =
        str_format("%s %s%s%s.", family->reported ? "As the driver reports it:" : "Measured",
                   family->metric, known ? " in " : "", known ? units[row].what : "");
    exposition_gauge(to, family->name, unit, help);
    free(help);
    for (size_t i = 0; i < inventory->gpu_count; i++) {
        const struct inventory_gpu *gpu = &inventory->gpus[i];
        double value = family_value_of(gpu, family->metric, hint);
        if (!prometheus_was_judged(gpu) || !isfinite(value))
            continue;
        prometheus_put_gpu(to, family->name, gpu);
        exposition_value(to, "} ", value * family->factor);
    }
}

/* NaN if the stamp is invalid. */
static double prometheus_stamp_seconds(const char *stamp)
{
    int64_t seconds;
    return clock_parse_stamp(stamp, &seconds) ? NAN : (double)seconds;
}

static void prometheus_put_survey(const struct exposition *to, const struct inventory *v)
{
    const struct {
        const char *name, *unit, *help;
        double value;
    } rows[] = {
        {"gpumemtopo_survey_gpus", NULL, "GPUs of the survey.", v->total_gpus},
        {"gpumemtopo_survey_nodes", NULL, "Nodes of the survey.", v->total_nodes},
        {"gpumemtopo_survey_measured_gpus", NULL, "GPUs that were measured.", v->total_measured},
        {"gpumemtopo_survey_unmeasured_gpus", NULL, "GPUs that could not be measured.",
         v->total_unmeasured},
        {"gpumemtopo_survey_outlier_gpus", NULL, "GPUs that are alerted or drained.",
         v->total_outliers},
        {"gpumemtopo_survey_watched_gpus", NULL, "GPUs with a deviation that is only told.",
         (double)v->watch_count},
        {"gpumemtopo_survey_lost_ranks", NULL, "Ranks that were lost.", v->total_lost_ranks},
        {"gpumemtopo_survey_duration_seconds", "seconds", "Wall time of the survey.", v->wall_s},
        {"gpumemtopo_survey_time_seconds", "seconds", "When the survey was written, since 1970.",
         prometheus_stamp_seconds(v->generated)},
        {"gpumemtopo_survey_exit_code", NULL, "Exit code of the survey.", v->exit_code},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        if (!isfinite(rows[i].value))
            continue;
        exposition_gauge(to, rows[i].name, rows[i].unit, rows[i].help);
        strbuf_puts(to->out, rows[i].name);
        exposition_value(to, " ", rows[i].value);
    }
}

void report_prometheus(const struct inventory *inventory, bool openmetrics, bool old_labels,
                       struct strbuf *out_text)
{
    const struct exposition to = {out_text, openmetrics, old_labels};
    struct families families = {0};
    prometheus_put_survey(&to, inventory);
    prometheus_put_states(&to, inventory);
    prometheus_put_health(&to, inventory);
    if (inventory->node_finding_count)
        prometheus_put_node_findings(&to, inventory);
    if (inventory->unmeasured_count)
        prometheus_put_unmeasured(&to, inventory);
    families_collect(&families, inventory);
    for (size_t i = 0; i < families.count; i++)
        family_put(&to, inventory, &families.items[i], i);
    for (size_t i = 0; i < families.count; i++)
        free(families.items[i].name);
    free(families.items);
    if (to.openmetrics)
        strbuf_puts(to.out, "# EOF\n");
}

/* Duplicate samples would make the collector reject the whole file. */
int command_prometheus(const struct command_options *options)
{
    struct inventory inventory, *const given[] = {&inventory};
    struct strbuf text = {0};
    struct err err = {0};
    int code = command_read(options->files[0], &inventory);
    if (code)
        return code;
    int rc = report_validate(&inventory, &err);
    if (rc) {
        err_prefix(&err, "%s", options->files[0]);
        log_failure(&err);
        code = command_exit_code(rc);
    }
    if (!code) {
        command_anonymise(options, given, 1, NULL);
        report_prometheus(&inventory, options->openmetrics, options->old_labels, &text);
    }
    inventory_fini(&inventory);
    return code ? code : command_write(&text, options->output);
}
