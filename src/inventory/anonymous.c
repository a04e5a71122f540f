/* Replaces all names of an inventory by pseudonyms. */
#include "inventory/anonymous.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "inventory/fingerprint.h"
#include "inventory/sm_rates.h"

static int learn_gpu(struct pseudonyms *names, const struct inventory_gpu *gpu)
{
    return pseudonyms_add(names, PSEUDONYM_NODE, gpu->node) ||
                   pseudonyms_add(names, PSEUDONYM_SLOT, gpu->pci) ||
                   pseudonyms_add(names, PSEUDONYM_GPU, gpu->uuid) ||
                   pseudonyms_add(names, PSEUDONYM_SERIAL, facts_text(&gpu->board, "serial"))
               ? -ENOMEM
               : 0;
}

static int learn_outliers(struct pseudonyms *names, const struct inventory_outlier *list,
                          size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (pseudonyms_add(names, PSEUDONYM_NODE, list[i].node) ||
            pseudonyms_add(names, PSEUDONYM_SLOT, list[i].pci) ||
            pseudonyms_add(names, PSEUDONYM_GPU, list[i].uuid))
            return -ENOMEM;
    return 0;
}

static int learn_node(struct pseudonyms *names, const struct inventory_node *node)
{
    for (size_t i = 0; i < node->gpu_count; i++)
        if (pseudonyms_add(names, PSEUDONYM_GPU, node->gpus[i]))
            return -ENOMEM;
    return pseudonyms_add(names, PSEUDONYM_NODE, node->node);
}

int anonymous_learn(struct pseudonyms *names, const struct inventory *inventory)
{
    for (size_t i = 0; i < inventory->gpu_count; i++)
        if (learn_gpu(names, &inventory->gpus[i]))
            return -ENOMEM;
    for (size_t i = 0; i < inventory->unmeasured_count; i++)
        if (pseudonyms_add(names, PSEUDONYM_NODE, inventory->unmeasured[i].node) ||
            pseudonyms_add(names, PSEUDONYM_GPU, inventory->unmeasured[i].uuid))
            return -ENOMEM;
    for (size_t i = 0; i < inventory->node_finding_count; i++)
        if (learn_node(names, &inventory->node_findings[i]))
            return -ENOMEM;
    return learn_outliers(names, inventory->outliers, inventory->outlier_count) ||
                   learn_outliers(names, inventory->watch, inventory->watch_count)
               ? -ENOMEM
               : 0;
}

/* A fingerprint, the maps that it comes from, and the rates of the SMs identify the die. */
static void leave_out_fingerprint(struct facts *facts)
{
    facts_remove(facts, FINGERPRINT_FACT);
    facts_remove(facts, FINGERPRINT_MAP);
    facts_remove(facts, FINGERPRINT_REGIONS);
    facts_remove(facts, SM_RATES_FACT);
}

int anonymous_facts(struct pseudonyms *names, struct facts *facts)
{
    leave_out_fingerprint(facts);
    for (size_t i = 0; i < facts->count; i++) {
        struct fact *fact = &facts->items[i];
        bool serial = strcmp(fact->key, "serial") == 0;
        if (serial && fact->kind != FACT_TEXT && fact->kind != FACT_UNKNOWN) {
            /* A file that was written by hand may have a number there. */
            free(fact->text);
            fact->text = NULL;
            fact->kind = FACT_UNKNOWN;
        }
        if (serial && fact->kind == FACT_TEXT
                ? pseudonyms_replace(names, PSEUDONYM_SERIAL, &fact->text)
                : pseudonyms_clean(names, &fact->text))
            return -ENOMEM;
    }
    return 0;
}

static int apply_gpu(struct pseudonyms *names, struct inventory_gpu *gpu)
{
    return pseudonyms_replace(names, PSEUDONYM_NODE, &gpu->node) ||
                   pseudonyms_replace(names, PSEUDONYM_SLOT, &gpu->pci) ||
                   pseudonyms_replace(names, PSEUDONYM_GPU, &gpu->uuid) ||
                   pseudonyms_clean(names, &gpu->first_reason) ||
                   anonymous_facts(names, &gpu->board) || anonymous_facts(names, &gpu->hardware) ||
                   anonymous_facts(names, &gpu->config) || anonymous_facts(names, &gpu->health) ||
                   anonymous_facts(names, &gpu->links)
               ? -ENOMEM
               : 0;
}

static int apply_outliers(struct pseudonyms *names, struct inventory_outlier *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (pseudonyms_replace(names, PSEUDONYM_NODE, &list[i].node) ||
            pseudonyms_replace(names, PSEUDONYM_SLOT, &list[i].pci) ||
            pseudonyms_replace(names, PSEUDONYM_GPU, &list[i].uuid))
            return -ENOMEM;
        for (size_t k = 0; k < list[i].finding_count; k++)
            if (pseudonyms_clean(names, &list[i].findings[k].cause))
                return -ENOMEM;
    }
    return 0;
}

static int apply_node(struct pseudonyms *names, struct inventory_node *node)
{
    for (size_t i = 0; i < node->gpu_count; i++)
        if (pseudonyms_replace(names, PSEUDONYM_GPU, &node->gpus[i]))
            return -ENOMEM;
    return pseudonyms_replace(names, PSEUDONYM_NODE, &node->node) ||
                   pseudonyms_clean(names, &node->finding)
               ? -ENOMEM
               : 0;
}

/* Whether the note "map" of the metric has a figure of each SM that depends on its place on the
 * die: the fingerprint by another name. */
static bool maps_the_die(const char *metric)
{
    return strcmp(metric, "l2.latency") == 0 || strcmp(metric, "sm.l2_latency") == 0 ||
           strncmp(metric, "cluster.", 8) == 0 || strncmp(metric, "die.", 4) == 0;
}

static int apply_model(struct pseudonyms *names, struct inventory_model *model)
{
    if (anonymous_facts(names, &model->identity) || anonymous_facts(names, &model->config) ||
        anonymous_facts(names, &model->health))
        return -ENOMEM;
    for (size_t i = 0; i < model->memory.count; i++) {
        struct measure *m = &model->memory.items[i];
        if (maps_the_die(m->metric))
            facts_remove(&m->notes, "map");
        if (pseudonyms_clean(names, &m->reason) || anonymous_facts(names, &m->notes))
            return -ENOMEM;
    }
    return 0;
}

static int apply_unmeasured(struct pseudonyms *names, struct inventory_unmeasured *entry)
{
    return pseudonyms_replace(names, PSEUDONYM_NODE, &entry->node) ||
                   pseudonyms_replace(names, PSEUDONYM_GPU, &entry->uuid) ||
                   pseudonyms_clean(names, &entry->reason)
               ? -ENOMEM
               : 0;
}

int anonymous_apply(struct pseudonyms *names, struct inventory *inventory)
{
    for (size_t i = 0; i < inventory->model_count; i++)
        if (apply_model(names, &inventory->models[i]))
            return -ENOMEM;
    for (size_t i = 0; i < inventory->gpu_count; i++)
        if (apply_gpu(names, &inventory->gpus[i]))
            return -ENOMEM;
    for (size_t i = 0; i < inventory->node_finding_count; i++)
        if (apply_node(names, &inventory->node_findings[i]))
            return -ENOMEM;
    for (size_t i = 0; i < inventory->unmeasured_count; i++)
        if (apply_unmeasured(names, &inventory->unmeasured[i]))
            return -ENOMEM;
    if (apply_outliers(names, inventory->outliers, inventory->outlier_count) ||
        apply_outliers(names, inventory->watch, inventory->watch_count))
        return -ENOMEM;
    anonymous_command(inventory->command, &inventory->command_count);
    inventory->anonymous = true;
    return 0;
}

int anonymous_inventories(struct inventory *const *inventories, size_t count,
                          const struct inventory *baseline)
{
    struct pseudonyms *names = NULL;
    int rc = pseudonyms_create(&names);
    for (size_t i = 0; i < count && !rc; i++)
        rc = anonymous_learn(names, inventories[i]);
    if (!rc && baseline)
        rc = anonymous_learn(names, baseline);
    if (!rc)
        rc = pseudonyms_seal(names);
    for (size_t i = 0; i < count && !rc; i++)
        rc = anonymous_apply(names, inventories[i]);
    pseudonyms_destroy(names);
    return rc;
}

/* The value of this flag is a number or one of a few words. */
static bool has_plain_value(const char *flag, size_t length)
{
    static const char *const flags[] = {"--profile", "--probes", "--time-limit", "--busy",
                                        "--seed"};
    for (size_t i = 0; i < COUNT_OF(flags); i++)
        if (strlen(flags[i]) == length && strncmp(flags[i], flag, length) == 0)
            return true;
    return false;
}

void anonymous_command(char **command, size_t *count)
{
    size_t kept = 0;
    bool value = false; /* the last flag has a value that stays */
    for (size_t i = 0; i < *count; i++) {
        char *word = command[i];
        bool named = value;
        bool flag = word[0] == '-' && word[1] && i > 0;
        size_t length = strcspn(word, "=");
        bool plain = flag && has_plain_value(word, length);
        /* "merge" and other commands of gpumemtopo-report have no dash. */
        bool name =
            i == 0 || (i == 1 && strspn(word, "abcdefghijklmnopqrstuvwxyz") == strlen(word));
        value = plain && !word[length];
        if (flag && !plain) /* "-oFILE", "--output=FILE" */
            word[word[1] == '-' ? length : 2] = '\0';
        if (flag || name || named)
            command[kept++] = word;
        else
            free(word);
    }
    *count = kept;
}
