/* The stages and the table of verdicts are those of docs/JUDGE.md; and what the table says of the
 * evidence that findings can have. test_verdict print: prints the tables of the document. */
#include "../check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "judge/state.h"
#include "judge/verdict.h"

static void put_evidence(struct strbuf *out, evidence_set set)
{
    const char *before = "";
    for (int kind = 0; kind < EVIDENCE_COUNT; kind++) {
        if (!(set >> kind & 1))
            continue;
        strbuf_printf(out, "%s`%s`", before, evidence_kinds[kind].name);
        before = ", ";
    }
}

static void put_context(struct strbuf *out, unsigned with, unsigned without)
{
    static const char *const names[] = {"other_basis", "unmeasured", "tried_twice", "busy",
                                        "sliced"};
    const char *before = "";
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (!((with | without) >> i & 1))
            continue;
        strbuf_printf(out, "%s%s`%s`", before, without >> i & 1 ? "not " : "", names[i]);
        before = ", ";
    }
}

static char *stages_text(void)
{
    struct strbuf text = {0};
    for (size_t i = 0; i < judge_stage_count; i++) {
        const struct judge_stage *stage = &judge_stages[i];
        assert_true(!stage->compare != !stage->conclude);
        const char *before = ", ";
        if (i == 0)
            before = "| results | ";
        else if (stage->conclude && !judge_stages[i - 1].conclude)
            before = " |\n| second measurements | ";
        strbuf_printf(&text, "%s`%s`", before, stage->name);
    }
    strbuf_puts(&text, " |\n");
    return text.data;
}

static char *rows_text(void)
{
    struct strbuf text = {0};
    for (size_t i = 0; i < certainty_row_count; i++) {
        const struct certainty_row *row = &certainty_rows[i];
        strbuf_puts(&text, "| ");
        if (row->any)
            put_evidence(&text, row->any);
        else
            strbuf_puts(&text, "any");
        strbuf_puts(&text, " | ");
        put_evidence(&text, row->none);
        strbuf_puts(&text, row->none ? " | " : "| ");
        put_context(&text, row->context, row->but_not);
        strbuf_printf(&text, "%s| %s |\n", row->context ? " " : "", certainty_name(row->certainty));
    }
    return text.data;
}

static char *kinds_text(void)
{
    struct strbuf text = {0};
    for (int kind = 0; kind < EVIDENCE_COUNT; kind++)
        strbuf_printf(&text, "| `%s` | %s |\n", evidence_kinds[kind].name,
                      evidence_kinds[kind].meaning);
    return text.data;
}

static char *(*const tables[])(void) = {stages_text, rows_text, kinds_text};

/* Each table stands in the document as a whole, in this order. */
static void document(void **state)
{
    (void)state;
    FILE *file = fopen(DOCUMENT, "r");
    struct strbuf text = {0};
    char part[4096];
    assert_non_null(file);
    for (size_t n; (n = fread(part, 1, sizeof part, file));)
        strbuf_append(&text, part, n);
    fclose(file);
    const char *at = text.data;
    for (size_t i = 0; i < COUNT_OF(tables); i++) {
        char *table = tables[i](), *wanted = str_format("| --- |\n%s\n", table);
        at = strstr(at, wanted);
        if (!at)
            fail_msg("docs/JUDGE.md does not have this table:\n%s", table);
        free(wanted);
        free(table);
    }
    strbuf_fini(&text);
}

#define EVIDENCE(kind) EVIDENCE_SET(kind)

/* The evidence of an issue as its stages add it, and what it means by itself. */
static void by_evidence(void **state)
{
    (void)state;
    static const struct {
        evidence_set evidence;
        enum certainty certainty;
    } cases[] = {
        {EVIDENCE(FAULT), CERTAINTY_SURE},
        {EVIDENCE(HINT), CERTAINTY_UNSURE},
        {EVIDENCE(MINORITY), CERTAINTY_SURE},
        {EVIDENCE(NO_MAJORITY), CERTAINTY_UNSURE},
        {EVIDENCE(CHANGE), CERTAINTY_UNSURE},
        {EVIDENCE(NO_ANSWER), CERTAINTY_SURE},
        {EVIDENCE(WORKER), CERTAINTY_UNSURE},
        {EVIDENCE(BEYOND), CERTAINTY_SURE},
        {EVIDENCE(WITHIN), CERTAINTY_UNSURE},
        {EVIDENCE(JOINING), CERTAINTY_SURE},
        {EVIDENCE(FEW_PEERS), CERTAINTY_UNSURE},
        {EVIDENCE(UNSTEADY), CERTAINTY_SURE},
        {EVIDENCE(CONSEQUENCE), CERTAINTY_SURE},
        {EVIDENCE(GROUP), CERTAINTY_UNSURE},
        {EVIDENCE(WEAK_NODE), CERTAINTY_SURE},
        {EVIDENCE(GPUS_MISSING), CERTAINTY_SURE},
        {EVIDENCE(FEWER_GPUS), CERTAINTY_UNSURE},
        {EVIDENCE(BUILT), CERTAINTY_SURE},
        {EVIDENCE(REMARK), CERTAINTY_UNSURE},
        /* A divided model accuses nobody, unless a condition lowers the clock. */
        {EVIDENCE(BEYOND) | EVIDENCE(GROUP), CERTAINTY_UNSURE},
        {EVIDENCE(BEYOND) | EVIDENCE(GROUP) | EVIDENCE(HELD), CERTAINTY_SURE},
        {EVIDENCE(WITHIN) | EVIDENCE(THROTTLED), CERTAINTY_SURE},
        {EVIDENCE(WITHIN) | EVIDENCE(THROTTLED_A_LITTLE), CERTAINTY_UNSURE},
        /* A node is accused together. */
        {EVIDENCE(WITHIN) | EVIDENCE(WEAK_NODE) | EVIDENCE(SHARED), CERTAINTY_SURE},
        {EVIDENCE(WITHIN) | EVIDENCE(WEAK_NODE) | EVIDENCE(NODE_IS_FINE), CERTAINTY_UNSURE},
        /* A second opinion. */
        {EVIDENCE(BEYOND) | EVIDENCE(CAUSE) | EVIDENCE(SEEN_AGAIN), CERTAINTY_SURE},
        {EVIDENCE(BEYOND) | EVIDENCE(CAUSE) | EVIDENCE(NOT_SEEN_AGAIN), CERTAINTY_UNSURE},
        {EVIDENCE(BEYOND) | EVIDENCE(CAUSE) | EVIDENCE(NOT_REPEATED), CERTAINTY_UNSURE},
        {EVIDENCE(BEYOND) | EVIDENCE(CAUSE) | EVIDENCE(CONFIRMED), CERTAINTY_SURE},
        {EVIDENCE(BEYOND) | EVIDENCE(CAUSE) | EVIDENCE(NOT_CONFIRMED), CERTAINTY_UNSURE},
        {EVIDENCE(JOINING) | EVIDENCE(CONFIRMED), CERTAINTY_SURE},
        {EVIDENCE(JOINING) | EVIDENCE(CONFIRMED) | EVIDENCE(ALONE), CERTAINTY_UNSURE},
        {EVIDENCE(FAULT) | EVIDENCE(DUPLICATE), CERTAINTY_IGNORED},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct issue issue = {.evidence = cases[i].evidence};
        if (certainty_by_evidence(&issue) != cases[i].certainty)
            fail_msg("case %zu: %s, expected %s", i, certainty_name(certainty_by_evidence(&issue)),
                     certainty_name(cases[i].certainty));
    }
}

/* The state of a GPU changes what the evidence means. */
static void in_context(void **state)
{
    (void)state;
    static const struct {
        evidence_set evidence;
        enum basis basis;
        enum verdict verdict;
        enum gpu_status status, first_status;
        bool busy, drift_only;
        enum certainty certainty;
        bool sliced;
    } cases[] = {
        {EVIDENCE(FAULT), BASIS_RULE, VERDICT_FAILING, GPU_OK, GPU_OK, false, false,
         CERTAINTY_SURE},
        {EVIDENCE(FAULT), BASIS_RULE, VERDICT_FAILING, GPU_OK, GPU_OK, true, false,
         CERTAINTY_UNSURE},
        {EVIDENCE(FAULT), BASIS_RULE, VERDICT_FAILING, GPU_OK, GPU_OK, false, true,
         CERTAINTY_IGNORED},
        {EVIDENCE(FAULT), BASIS_BASELINE, VERDICT_FAILING, GPU_OK, GPU_OK, false, true,
         CERTAINTY_SURE},
        {EVIDENCE(FAULT), BASIS_RULE, VERDICT_FAILING, GPU_CRASHED, GPU_OK, false, false,
         CERTAINTY_IGNORED},
        {EVIDENCE(FAULT), BASIS_RULE, VERDICT_FAILING, GPU_CRASHED, GPU_FAILED, false, false,
         CERTAINTY_SURE},
        {EVIDENCE(FAULT), BASIS_RULE, VERDICT_DEGRADED, GPU_CRASHED, GPU_FAILED, false, false,
         CERTAINTY_IGNORED},
        {EVIDENCE(HINT), BASIS_RULE, VERDICT_FAILING, GPU_CRASHED, GPU_FAILED, false, false,
         CERTAINTY_IGNORED},
        {EVIDENCE(MINORITY), BASIS_FLEET, VERDICT_FAILING, GPU_CRASHED, GPU_FAILED, false, false,
         CERTAINTY_IGNORED},
        {EVIDENCE(NO_ANSWER), BASIS_RULE, VERDICT_FAILING, GPU_CRASHED, GPU_CRASHED, false, false,
         CERTAINTY_SURE},
        {EVIDENCE(WORKER), BASIS_RULE, VERDICT_FAILING, GPU_FAILED, GPU_FAILED, false, false,
         CERTAINTY_UNSURE},
        {EVIDENCE(WORKER), BASIS_RULE, VERDICT_FAILING, GPU_OK, GPU_FAILED, false, false,
         CERTAINTY_UNSURE},
        /* A virtual GPU: figures depend on its neighbours, errors do not. */
        {EVIDENCE(BEYOND), BASIS_FLEET, VERDICT_DEGRADED, GPU_OK, GPU_OK, false, false,
         CERTAINTY_UNSURE, .sliced = true},
        {EVIDENCE(UNSTEADY), BASIS_FLEET, VERDICT_DEGRADED, GPU_OK, GPU_OK, false, false,
         CERTAINTY_UNSURE, .sliced = true},
        {EVIDENCE(FAULT), BASIS_RULE, VERDICT_FAILING, GPU_OK, GPU_OK, false, false, CERTAINTY_SURE,
         .sliced = true},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct fleet_gpu gpu = {.status = cases[i].status,
                                .run.first_status = cases[i].first_status,
                                .measured = cases[i].status == GPU_OK,
                                .busy = cases[i].busy,
                                .sliced = cases[i].sliced};
        const struct finding finding = {.verdict = cases[i].verdict};
        const struct issue issue = {.evidence = cases[i].evidence, .basis = cases[i].basis};
        const struct judge judge = {.basis.drift_only = cases[i].drift_only,
                                    .fleet.gpus = &gpu,
                                    .findings.items = &finding};
        if (certainty_of(&judge, &issue) != cases[i].certainty)
            fail_msg("case %zu: %s, expected %s", i, certainty_name(certainty_of(&judge, &issue)),
                     certainty_name(cases[i].certainty));
    }
}

int main(int argc, char **argv)
{
    for (size_t i = 0; i < COUNT_OF(tables) && argc > 1 && strcmp(argv[1], "print") == 0; i++) {
        char *table = tables[i]();
        puts(table);
        free(table);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(document),
        cmocka_unit_test(by_evidence),
        cmocka_unit_test(in_context),
    };
    return argc > 1 ? 0 : cmocka_run_group_tests(tests, NULL, NULL);
}
