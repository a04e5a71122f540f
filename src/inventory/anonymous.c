/* Replaces all names of an inventory by pseudonyms. */
#include "inventory/anonymous.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "inventory/fabric.h"
#include "inventory/fingerprint.h"
#include "inventory/sm_rates.h"

static const enum pseudonym_kind pseudonym_kinds[] = {[SCHEMA_PRIVATE_NODE] = PSEUDONYM_NODE,
                                                      [SCHEMA_PRIVATE_SLOT] = PSEUDONYM_SLOT,
                                                      [SCHEMA_PRIVATE_GPU] = PSEUDONYM_GPU};

static void learn_text(void *names, enum schema_privacy privacy, char **text)
{
    if (privacy != SCHEMA_PRIVATE_TEXT)
        pseudonyms_add(names, pseudonym_kinds[privacy], *text);
}

static void learn_facts(void *names, struct facts *facts)
{
    pseudonyms_add(names, PSEUDONYM_SERIAL, facts_text(facts, "serial"));
}

void anonymous_learn(struct pseudonyms *names, const struct inventory *inventory)
{
    const struct schema_visitor visitor = {learn_text, learn_facts, names};
    /* GPUs are numbered in this order; the rest names the same ones, or those of a baseline. */
    struct inventory all = *inventory, first = {.gpus = all.gpus,
                                                .gpu_count = all.gpu_count,
                                                .unmeasured = all.unmeasured,
                                                .unmeasured_count = all.unmeasured_count};
    schema_visit(&inventory_schema, &first, &visitor);
    schema_visit(&inventory_schema, &all, &visitor);
}

/* A fingerprint, the maps that it comes from, and the rates of the SMs identify the die; the clique
 * its cluster. */
static void leave_out_identity(struct facts *facts)
{
    for (size_t i = 0; i < FINGERPRINT_KEYS; i++)
        facts_remove(facts, fingerprint_keys[i]);
    for (size_t i = 0; i < SM_RATES_KEYS; i++)
        facts_remove(facts, sm_rates_keys[i]);
    facts_remove(facts, FINGERPRINT_MAP);
    facts_remove(facts, FINGERPRINT_REGIONS);
    facts_remove(facts, FABRIC_CLIQUE);
}

void anonymous_facts(struct pseudonyms *names, struct facts *facts)
{
    leave_out_identity(facts);
    for (size_t i = 0; i < facts->count; i++) {
        struct fact *fact = &facts->items[i];
        bool serial = strcmp(fact->key, "serial") == 0;
        /* A file that was written by hand may have a number there. */
        if (serial && fact->kind != FACT_TEXT && fact->kind != FACT_UNKNOWN)
            fact_clear(fact);
        if (serial && fact->kind == FACT_TEXT)
            pseudonyms_replace(names, PSEUDONYM_SERIAL, &fact->text);
        else
            pseudonyms_clean(names, &fact->text);
        for (size_t k = 0; fact->kind == FACT_TEXTS && k < fact->count; k++)
            pseudonyms_clean(names, &fact->texts[k]);
    }
}

/* Whether the note "map" of the metric has a figure of each SM that depends on its place on the
 * die: the fingerprint by another name. */
static bool maps_the_die(const char *metric)
{
    return strcmp(metric, "l2.latency") == 0 || strcmp(metric, "sm.l2_latency") == 0 ||
           strncmp(metric, "cluster.", 8) == 0 || strncmp(metric, "die.", 4) == 0;
}

static void clean_text(void *names, enum schema_privacy privacy, char **text)
{
    if (privacy == SCHEMA_PRIVATE_TEXT)
        pseudonyms_clean(names, text);
    else
        pseudonyms_replace(names, pseudonym_kinds[privacy], text);
}

static void clean_facts(void *names, struct facts *facts)
{
    anonymous_facts(names, facts);
}

void anonymous_apply_to(struct pseudonyms *names, const struct schema *schema, void *object)
{
    const struct schema_visitor visitor = {clean_text, clean_facts, names};
    schema_visit(schema, object, &visitor);
}

void anonymous_apply(struct pseudonyms *names, struct inventory *inventory)
{
    for (size_t i = 0; i < inventory->model_count; i++) {
        const struct measures *memory = &inventory->models[i].memory;
        for (size_t k = 0; k < memory->count; k++)
            if (maps_the_die(memory->items[k].metric))
                facts_remove(&memory->items[k].notes, "map");
    }
    anonymous_apply_to(names, &inventory_schema, inventory);
    anonymous_command(inventory->command, &inventory->command_count);
    free(inventory->configuration); /* it may name nodes */
    inventory->configuration = NULL;
    inventory->anonymous = true;
}

void anonymous_inventories(struct inventory *const *inventories, size_t count,
                           const struct inventory *baseline)
{
    struct pseudonyms *names = pseudonyms_create();
    for (size_t i = 0; i < count; i++)
        anonymous_learn(names, inventories[i]);
    if (baseline)
        anonymous_learn(names, baseline);
    pseudonyms_seal(names);
    for (size_t i = 0; i < count; i++)
        anonymous_apply(names, inventories[i]);
    pseudonyms_destroy(names);
}

/* The value of this flag is a number or one of a few words. */
static bool has_plain_value(const char *flag, size_t length)
{
    static const char *const flags[] = {"--profile", "--probes", "--time-limit",
                                        "--load",    "--busy",   "--seed"};
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
