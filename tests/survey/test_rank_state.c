/* The life of a rank as rank 0 sees it: the code's table is the one in docs/ARCHITECTURE.md. */
#include "../check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "survey/root/rank_state.h"

enum { CELLS = RANK_EVENTS + 2, LINE = 512 }; /* state, events, lost */

static const char *const state_names[RANK_STATES] = {
    [RANK_NO_STATE] = "-",          [RANK_UNHEARD] = "unheard", [RANK_ABSENT] = "absent",
    [RANK_STARTING] = "starting",   [RANK_SILENT] = "silent",   [RANK_ANNOUNCED] = "announced",
    [RANK_MISSED] = "missed",       [RANK_IDLE] = "idle",       [RANK_IDLE_LOST] = "idle_lost",
    [RANK_MEASURING] = "measuring", [RANK_LOST] = "lost",       [RANK_FINISHED] = "finished",
};

static const char *const event_names[RANK_EVENTS] = {
    [RANK_EVENT_HEARD] = "heard",
    [RANK_EVENT_ANNOUNCED] = "announced",
    [RANK_EVENT_GIVEN_GPUS] = "given_gpus",
    [RANK_EVENT_GIVEN_NONE] = "given_none",
    [RANK_EVENT_FELL_SILENT] = "fell_silent",
    [RANK_EVENT_OVERDUE] = "overdue",
    [RANK_EVENT_TOLD_ALL] = "told_all",
};

static size_t index_of(const char *name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(name, names[i]) == 0)
            return i;
    fail_msg("no such name: '%s'", name);
    return count;
}

/* "| a | b |" in place; returns how many cells. */
static size_t split_row(char *line, char *cells[CELLS])
{
    size_t count = 0;
    for (char *cell = strtok(line, "| \n"); cell; cell = strtok(NULL, "| \n")) {
        assert_in_range(count, 0, CELLS - 1);
        cells[count++] = cell;
    }
    return count;
}

static void check_row(char *const cells[CELLS])
{
    enum rank_state from = (enum rank_state)index_of(cells[0], state_names, RANK_STATES);
    for (int event = 0; event < RANK_EVENTS; event++) {
        enum rank_state state = from;
        bool taken = rank_state_apply(&state, (enum rank_event)event);
        const char *is = taken ? state_names[state] : "-";
        if (strcmp(is, cells[1 + event]))
            fail_msg("%s, %s: %s in the code, %s in the document", cells[0], event_names[event], is,
                     cells[1 + event]);
        assert_int_equal(taken, rank_state_takes(from, (enum rank_event)event));
        assert_true(taken || state == from);
    }
    assert_string_equal(rank_state_is_lost(from) ? "yes" : "no", cells[CELLS - 1]);
}

static void document_shows_the_table(void **unused)
{
    (void)unused;
    char line[LINE], *cells[CELLS];
    bool seen[RANK_STATES] = {0};
    size_t rows = 0;
    FILE *file = fopen(ARCHITECTURE, "re");
    assert_non_null(file);
    while (fgets(line, sizeof line, file) && strncmp(line, "| state |", 9))
        continue;
    assert_int_equal(split_row(line, cells), CELLS);
    for (int event = 0; event < RANK_EVENTS; event++)
        assert_string_equal(cells[1 + event], event_names[event]);
    assert_non_null(fgets(line, sizeof line, file)); /* | --- | */
    while (fgets(line, sizeof line, file) && line[0] == '|') {
        assert_int_equal(split_row(line, cells), CELLS);
        check_row(cells);
        seen[index_of(cells[0], state_names, RANK_STATES)] = true;
        rows++;
    }
    fclose(file);
    assert_int_equal(rows, RANK_STATES - 1);
    for (int state = RANK_UNHEARD; state < RANK_STATES; state++)
        assert_true(seen[state]);
}

/* Whole lives, from unheard on; the last event of a refused one changes nothing. */
static const struct life {
    const char *events, *end;
    bool refused;
} lives[] = {
    {"heard announced given_gpus heard told_all heard", "finished", false},
    {"heard announced given_none heard", "idle", false},
    {"heard announced given_none fell_silent", "idle_lost", false},
    {"heard announced given_none fell_silent heard", "idle", false},
    {"given_none heard", "missed", false},
    {"fell_silent given_none", "missed", false},
    {"fell_silent heard announced", "announced", false},
    {"heard fell_silent heard announced", "announced", false},
    {"heard fell_silent given_none", "missed", false},
    {"heard announced given_gpus fell_silent", "lost", false},
    {"heard announced given_gpus overdue heard", "measuring", false},
    {"heard announced given_gpus overdue told_all", "finished", false},
    {"heard given_gpus", "starting", true},
    {"heard announced announced", "announced", true},
    {"heard announced fell_silent", "announced", true},
    {"heard given_none announced", "missed", true},
    {"heard announced given_none overdue", "idle", true},
    {"heard announced given_gpus announced", "measuring", true},
    {"heard announced given_gpus told_all fell_silent", "finished", true},
    {"heard announced given_gpus told_all told_all", "finished", true},
};

static void lives_end_as_they_should(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < COUNT_OF(lives); i++) {
        char events[LINE];
        enum rank_state state = RANK_UNHEARD;
        bool taken = true;
        snprintf(events, sizeof events, "%s", lives[i].events);
        for (char *name = strtok(events, " "); name; name = strtok(NULL, " ")) {
            assert_true(taken);
            taken =
                rank_state_apply(&state, (enum rank_event)index_of(name, event_names, RANK_EVENTS));
        }
        if (strcmp(state_names[state], lives[i].end) || taken == lives[i].refused)
            fail_msg("%s: ends as %s%s", lives[i].events, state_names[state],
                     taken ? "" : ", refused");
    }
}

/* The counts of ranks.c rest on these. */
static void facts_follow_the_table(void **unused)
{
    (void)unused;
    for (int from = RANK_UNHEARD; from < RANK_STATES; from++)
        for (int event = 0; event < RANK_EVENTS; event++) {
            enum rank_state to = (enum rank_state)from;
            if (!rank_state_apply(&to, (enum rank_event)event))
                continue;
            bool assigns = event == RANK_EVENT_GIVEN_GPUS || event == RANK_EVENT_GIVEN_NONE;
            bool loses = event == RANK_EVENT_FELL_SILENT || event == RANK_EVENT_OVERDUE;
            bool announces = event == RANK_EVENT_ANNOUNCED;
            assert_int_equal(rank_state_is_assigned(to),
                             rank_state_is_assigned((enum rank_state)from) || assigns);
            assert_int_equal(rank_state_is_announced(to),
                             rank_state_is_announced((enum rank_state)from) || announces);
            assert_true(!loses || rank_state_is_lost(to));
            assert_true(!loses || !rank_state_is_lost((enum rank_state)from));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(document_shows_the_table),
        cmocka_unit_test(lives_end_as_they_should),
        cmocka_unit_test(facts_follow_the_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
