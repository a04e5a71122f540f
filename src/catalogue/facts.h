/* The catalogue of facts: what drivers report of a GPU, one row for each fact. Reading it from
 * NVML, the simulator, the rules, the metrics for Prometheus and the page follow from the row. */
#ifndef GPUMEMTOPO_CATALOGUE_FACTS_H
#define GPUMEMTOPO_CATALOGUE_FACTS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "catalogue/nvml.h"
#include "inventory/inventory.h"
#include "inventory/results.h"

/* Facts of `health`. Rules are applied in this order. */
enum health_fact {
    HEALTH_TEMPERATURE,
    HEALTH_TEMPERATURE_MEMORY,
    HEALTH_TEMPERATURE_MARGIN,
    HEALTH_VIOLATION_POWER,
    HEALTH_VIOLATION_THERMAL,
    HEALTH_ECC_CORRECTED_DRAM,
    HEALTH_ECC_CORRECTED_SRAM,
    HEALTH_ECC_CORRECTED_VOLATILE,
    HEALTH_ECC_CORRECTED_NEW,
    HEALTH_ECC_CORRECTED_PER_S,
    HEALTH_PCIE_REPLAYS,
    HEALTH_PCIE_REPLAYS_NEW,
    HEALTH_PCIE_REPLAYS_PER_S,
    HEALTH_ECC_UNCORRECTED_VOLATILE,
    HEALTH_ECC_UNCORRECTED_NEW,
    HEALTH_REMAP_PENDING,
    HEALTH_REMAP_FAILED,
    HEALTH_RETIRED_PAGES_PENDING,
    HEALTH_REMAP_BANKS_NONE,
    HEALTH_REMAP_BANKS_LOW,
    HEALTH_REMAP_BANKS_PARTIAL,
    HEALTH_REMAP_BANKS_HIGH,
    HEALTH_REMAP_BANKS_MAX,
    HEALTH_ECC_UNCORRECTED_DRAM,
    HEALTH_ECC_UNCORRECTED_SRAM,
    HEALTH_NVLINK_ERRORS,
    HEALTH_NVLINK_ERRORS_NEW,
    HEALTH_NVLINK_ERRORS_PER_S,
    HEALTH_NVLINKS_ACTIVE,
    HEALTH_NVLINKS_DOWN,
    HEALTH_REMAPPED_ROWS_CORRECTED,
    HEALTH_REMAPPED_ROWS_UNCORRECTED,
    HEALTH_RETIRED_PAGES_CORRECTED,
    HEALTH_RETIRED_PAGES_UNCORRECTED,
    HEALTH_INFOROM_VALID,
    HEALTH_PROCESSES,
    HEALTH_NUMBERS, /* how many facts are numbers or flags; the others are texts, or follow from
                       settings */
    HEALTH_POWER_DRAW = HEALTH_NUMBERS,
    HEALTH_THROTTLE,
    HEALTH_XID,
    HEALTH_FABRIC_STATE,
    HEALTH_FABRIC_CLIQUE,
    HEALTH_FACTS
};

/* What a value above 0, or true, means. */
enum health_rule {
    RULE_NONE,  /* nothing by itself */
    RULE_FAULT, /* the GPU is an outlier */
    RULE_HINT,  /* the GPU is watched */
};

/* What it means that a counter grew since the baseline. */
enum growth_rule {
    GROWTH_NONE,
    GROWTH_COMPARED, /* healthy GPUs have some: only if it grew far more than on the others of the
                        model */
    GROWTH_EVERY,    /* each growth is reported */
    GROWTH_BY_RULE,  /* `rule` reports it, whether it grew or not; so only `diff` does here */
};

/* How a fact of hardware, board or settings is compared with most GPUs of its model. */
enum fact_compared {
    COMPARED_AS_SET,    /* as its set says: hardware and settings must not differ, and what is of
                           the single board, or of its health, may */
    COMPARED_NOT,       /* a rule checks it */
    COMPARED_DIFFERENT, /* must not differ */
    COMPARED_LOWER,     /* must not be lower */
    COMPARED_KIND,      /* may differ: GPUs with the same are a population of the model */
};

struct health_row {
    const char *key;
    const char *words; /* for people; a finding is `words: VALUE` */
    bool is_flag;
    struct nvml_question nvml;
    struct {
        double healthy, min, max; /* of a simulated GPU; max 0: 2^53 */
    } sim;
    enum health_rule rule;
    enum verdict verdict;
    const char *finding; /* the text of the finding, if it is another one; without the value */
    struct {
        enum growth_rule rule;
        double least;     /* a smaller growth is not reported */
        double very_many; /* GROWTH_COMPARED: an outlier from this growth on */
        bool degrades;    /* the growth alone is `degraded`, whatever `kind` is */
    } growth;
    enum fact_compared compared; /* with most GPUs of the model, beside `rule` */
    bool is_counter;             /* a value other than 0 tells of an error or a repair: exported */
    const char *moment_unit; /* differs between healthy GPUs from one moment to the next: shown as a
                                distribution, in this unit; NULL: it does not */
};

extern const struct health_row catalogue_health[HEALTH_FACTS];

struct setting_row {
    enum inventory_facts set;
    const char *key;
    const char *words; /* for people; NULL: the key without its unit */
    struct nvml_question nvml;
    enum fact_compared compared;
    enum verdict verdict;
    bool by_board;       /* the board part determines it: compared among GPUs with the same one */
    const char *figures; /* COMPARED_KIND: the figures whose names begin like this are not compared
                            between kinds; NULL: all are, as between boards */
    const char *moment_unit; /* as in struct health_row */
};

/* Facts of hardware, board and settings that have something to say beyond their key. Others need no
 * row. */
extern const struct setting_row catalogue_settings[];
extern const size_t catalogue_setting_count;

/* How facts of this set with this key are compared. */
struct fact_manner {
    enum fact_compared compared; /* not COMPARED_AS_SET */
    enum verdict verdict;
    bool by_board;
};
struct fact_manner catalogue_manner(enum inventory_facts set, const char *key);

/* Whether the figure depends on the kind that the row tells: `figures` has it. */
bool catalogue_kind_changes(const struct setting_row *row, const char *figure);

/* Whether the fact (NULL: not known) tells the usual kind: its first word, or nothing. */
bool catalogue_kind_is_usual(const struct setting_row *row, const struct fact *fact);

/* The kind of one GPU, by the settings that its inventory or fleet has. */
struct kind_view {
    struct fact (*read)(const struct kind_view *view, const struct setting_row *row);
    const void *from;                /* the lookup of an inventory, or a fleet */
    const struct inventory_gpu *gpu; /* in an inventory */
    uint32_t number;                 /* in a fleet */
};
struct kind_view catalogue_kind_view(const struct inventory_lookup *lookup,
                                     const struct inventory_gpu *gpu);

/* Whether the kinds differ in a setting on which the figure depends. other NULL: the usual kind. */
bool catalogue_kinds_differ(const struct kind_view *is, const struct kind_view *other,
                            const char *figure);

/* Kinds for which something is done differently: what they cannot measure, what they are not
 * compared with, how they are named. */
enum gpu_kind {
    GPU_KIND_INSTANCE,           /* MIG: a part of SMs and memory; it shares the link to the host */
    GPU_KIND_VIRTUAL,            /* vGPU: a share in memory and time */
    GPU_KIND_CONFIDENTIAL,       /* what leaves the GPU is encrypted */
    GPU_KIND_CONFIDENTIAL_ALONE, /* so, and each GPU is for itself */
    GPU_KINDS
};

/* The fact of `config` that tells the kind; whether it does with this word (NULL, "": no). */
const char *gpu_kind_key(enum gpu_kind kind);
bool gpu_kind_is(enum gpu_kind kind, const char *word);

/* The words that a setting may have, with a NULL at the end; NULL: it has no list of words. */
const char *const *catalogue_setting_words(const char *key);

/* Appends the unusual kinds that the settings of a model tell, for people: ", confidential
 * computing on". */
void catalogue_put_kinds(const struct facts *config, struct strbuf *out);

/* The words for people of a fact that is compared; NULL: the key without its unit. */
const char *catalogue_words(const char *key);

/* The unit of a fact that varies by the moment; NULL: it does not. */
const char *catalogue_moment_unit(const char *key);

/* The key of a fact. */
static inline const char *health_key(enum health_fact fact)
{
    return catalogue_health[fact].key;
}

#endif
