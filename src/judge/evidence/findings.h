/* Findings: what the stages of the judge found out. They are appended; nobody changes one. What a
 * stage finds out later about the same deviation is another finding of the same issue. verdict.h
 * says what the findings of an issue mean. */
#ifndef GPUMEMTOPO_JUDGE_EVIDENCE_FINDINGS_H
#define GPUMEMTOPO_JUDGE_EVIDENCE_FINDINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "inventory/inventory.h"

struct judge;

/* What a GPU is compared with. */
enum basis { BASIS_FLEET, BASIS_REFERENCE, BASIS_BASELINE, BASIS_WORLD, BASIS_RULE, BASIS_EARLIER };
const char *basis_name(enum basis basis);

/* What kind of evidence a finding is. evidence_kinds has the words. */
enum evidence {
    /* These begin an issue. */
    EVIDENCE_FAULT,
    EVIDENCE_HINT,
    EVIDENCE_MINORITY,
    EVIDENCE_NO_MAJORITY,
    EVIDENCE_CHANGE,
    EVIDENCE_NO_ANSWER,
    EVIDENCE_WORKER,
    EVIDENCE_BEYOND,
    EVIDENCE_WITHIN,
    EVIDENCE_JOINING,
    EVIDENCE_FEW_PEERS,
    EVIDENCE_UNSTEADY,
    EVIDENCE_CONSEQUENCE,
    /* These begin an issue, or are about one. */
    EVIDENCE_GROUP,
    EVIDENCE_WEAK_NODE,
    /* These are about an issue. */
    EVIDENCE_HELD,
    EVIDENCE_HELD_A_LITTLE,
    EVIDENCE_THROTTLED,
    EVIDENCE_THROTTLED_A_LITTLE,
    EVIDENCE_CAUSE,
    EVIDENCE_PERHAPS_BUILT,
    EVIDENCE_SEEN_AGAIN,
    EVIDENCE_NOT_SEEN_AGAIN,
    EVIDENCE_NOT_REPEATED,
    EVIDENCE_DUPLICATE,
    EVIDENCE_SHARED,
    EVIDENCE_CONFIRMED,
    EVIDENCE_NOT_CONFIRMED,
    EVIDENCE_ALONE,
    EVIDENCE_NODE_IS_FINE,
    /* These are about a node or a model. */
    EVIDENCE_GPUS_MISSING,
    EVIDENCE_FEWER_GPUS,
    EVIDENCE_BUILT,
    EVIDENCE_REMARK,
    EVIDENCE_COUNT
};

/* The name of each kind, and what it says. */
struct evidence_kind {
    const char *name, *meaning;
};
extern const struct evidence_kind evidence_kinds[EVIDENCE_COUNT];

/* A set of kinds of evidence: EVIDENCE_SET(HELD) | EVIDENCE_SET(THROTTLED). */
typedef uint64_t evidence_set;
#define EVIDENCE_SET(kind) ((evidence_set)1 << EVIDENCE_##kind)

/* What else shows a deviation. */
enum confirmation {
    CONFIRMATION_NONE,        /* none is needed */
    CONFIRMED_AGAIN,          /* it was measured again, and seen again */
    SEEN_ONCE,                /* it was measured again, and not seen again */
    CONFIRMED_BY_CAUSE,       /* a setting or the reported hardware explains it */
    CONFIRMED_BY_FIGURES,     /* other figures that the same cause would change show it too */
    CONFIRMED_BY_REPETITIONS, /* its own repetitions agree */
    NOT_CONFIRMED,
};

/* One statement about one deviation of one GPU. The newest finding of an issue has all that is
 * known of it. */
struct finding {
    uint32_t issue; /* number of the issue; ISSUE_NEW before it is appended */
    uint32_t gpu;
    uint32_t metric; /* symbol, e.g. of "main.bandwidth.read", "config.ecc" */
    uint32_t unit;   /* symbol; 0: none */
    int32_t rule;    /* index of the judged metric; -1: none */
    uint8_t stage;   /* that appended it: index into judge_stages */
    enum basis basis;
    enum evidence evidence;
    enum verdict verdict; /* if the GPU is accused */
    enum confirmation confirmed;
    uint32_t confirming; /* CONFIRMED_BY_FIGURES: how many figures, with this one */
    double value, expected, deviation, score; /* NaN: none */
    const char *cause;                        /* NULL until it is known */
    uint32_t explained_by;                    /* figures: a bit per condition, see causes.c */
};
enum { ISSUE_NEW = UINT32_MAX };

/* All findings about one deviation of one GPU: one metric on one basis. */
struct issue {
    uint32_t gpu, metric;
    enum basis basis;
    evidence_set evidence; /* of all its findings */
    uint32_t newest;       /* number of its newest finding */
    uint32_t previous;     /* the GPU's previous issue, number + 1; 0: none */
};

struct findings {
    const struct finding *items; /* only findings_add writes here */
    size_t count, capacity;
    struct issue *issues; /* an index of the findings */
    size_t issue_count, issue_capacity;
    uint32_t *last;      /* per GPU: its last issue, number + 1; 0: none */
    struct arena causes; /* their texts */
};

void findings_init(struct findings *findings, size_t gpus);
void findings_fini(struct findings *findings);

/* The symbol of a text; 0 for NULL. */
uint32_t judge_symbol(struct judge *judge, const char *text);

/* A finding that begins an issue, for the caller to fill and to append: kind `degraded`, no
 * numbers. */
struct finding finding_new(struct judge *judge, uint32_t gpu, const char *metric, enum basis basis,
                           enum evidence evidence);

/* A further finding of an issue: a copy of the newest one, for the caller to change and to append.
 */
struct finding finding_about(const struct judge *judge, const struct issue *issue,
                             enum evidence evidence);

/* Appends a finding. Takes over `cause`; NULL: that of the finding. */
void findings_add(struct judge *judge, struct finding finding, char *cause);

/* Appends a finding of basis `rule`. Takes over the cause. */
void findings_add_rule(struct judge *judge, uint32_t gpu, const char *metric,
                       enum evidence evidence, enum verdict verdict, double value, char *cause);

/* Sets value, expected and deviation = value / expected - 1. */
void finding_compare(struct finding *finding, double value, double expected);

/* The GPU's last issue of that metric on that basis; NULL if there is none. */
const struct issue *issue_find(const struct judge *judge, uint32_t gpu, const char *metric,
                               enum basis basis);

/* The GPU's last issue, and the one before an issue; NULL if there is none. */
const struct issue *issue_last(const struct judge *judge, uint32_t gpu);
const struct issue *issue_previous(const struct judge *judge, const struct issue *issue);

/* The newest finding of an issue. */
const struct finding *issue_finding(const struct judge *judge, const struct issue *issue);

/* Whether the issue has evidence of one of these kinds. */
bool issue_has(const struct issue *issue, evidence_set kinds);

#endif
