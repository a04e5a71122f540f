/* The life of a rank as rank 0 sees it, and its contact with rank 0: the code's tables are those in
 * docs/ARCHITECTURE.md. */
#include "../check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "survey/rank/rank.h"
#include "survey/root/rank_state.h"

enum { CELLS_MAX = RANK_EVENTS + 2, LINE = 512 }; /* state, events, lost */

static const char *const state_names[RANK_STATES] = {
    [RANK_NO_STATE] = "-",          [RANK_UNHEARD] = "unheard", [RANK_ABSENT] = "absent",
    [RANK_STARTING] = "starting",   [RANK_SILENT] = "silent",   [RANK_ANNOUNCED] = "announced",
    [RANK_MISSED] = "missed",       [RANK_IDLE] = "idle",       [RANK_IDLE_LOST] = "idle_lost",
    [RANK_MEASURING] = "measuring", [RANK_LOST] = "lost",       [RANK_FINISHED] = "finished",
    [RANK_REPEATING] = "repeating",
};

static const char *const event_names[RANK_EVENTS] = {
    [RANK_EVENT_HEARD] = "heard",
    [RANK_EVENT_ANNOUNCED] = "announced",
    [RANK_EVENT_GIVEN_GPUS] = "given_gpus",
    [RANK_EVENT_GIVEN_NONE] = "given_none",
    [RANK_EVENT_FELL_SILENT] = "fell_silent",
    [RANK_EVENT_OVERDUE] = "overdue",
    [RANK_EVENT_GOT_ALL] = "got_all",
    [RANK_EVENT_ASKED_AGAIN] = "asked_again",
};

static size_t index_of(const char *name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(name, names[i]) == 0)
            return i;
    fail_msg("no such name: '%s'", name);
    return count;
}

static const char *const contact_names[ROOT_CONTACTS] = {
    [ROOT_CONTACT_NONE] = "-",
    [ROOT_CONTACT_UNHEARD] = "unheard",
    [ROOT_CONTACT_HEARD] = "heard",
    [ROOT_CONTACT_SILENT] = "silent",
    [ROOT_CONTACT_GIVEN_UP] = "given_up",
    [ROOT_CONTACT_QUIT] = "quit",
};

static const char *const contact_event_names[ROOT_CONTACT_EVENTS] = {
    [ROOT_CONTACT_EVENT_HEARD] = "heard",
    [ROOT_CONTACT_EVENT_SAID_QUIT] = "said_quit",
    [ROOT_CONTACT_EVENT_FELL_SILENT] = "fell_silent",
    [ROOT_CONTACT_EVENT_GAVE_UP] = "gave_up",
};

static bool apply_to_rank(size_t *state, size_t event)
{
    enum rank_state moved = (enum rank_state) * state;
    bool taken = rank_state_apply(&moved, (enum rank_event)event);
    assert_int_equal(taken, rank_state_takes((enum rank_state) * state, (enum rank_event)event));
    *state = moved;
    return taken;
}

static bool apply_to_contact(size_t *state, size_t event)
{
    enum root_contact moved = (enum root_contact) * state;
    bool taken = root_contact_apply(&moved, (enum root_contact_event)event);
    *state = moved;
    return taken;
}

static const char *lost(size_t state)
{
    return rank_state_is_lost((enum rank_state)state) ? "yes" : "no";
}

/* State 0 stands for a refused event. */
static const struct machine {
    const char *head; /* the first cell of its table */
    const char *const *states;
    size_t state_count;
    const char *const *events;
    size_t event_count;
    bool (*apply)(size_t *state, size_t event);
    const char *(*last)(size_t state); /* what the last column says; NULL: there is none */
} machines[] = {
    {"| state |", state_names, RANK_STATES, event_names, RANK_EVENTS, apply_to_rank, lost},
    {"| contact |", contact_names, ROOT_CONTACTS, contact_event_names, ROOT_CONTACT_EVENTS,
     apply_to_contact, NULL},
};

/* "| a | b |" in place; as many cells as the machine's table has columns. */
static void split_row(const struct machine *machine, char *line, char *cells[CELLS_MAX])
{
    size_t count = 0;
    for (char *cell = strtok(line, "| \n"); cell; cell = strtok(NULL, "| \n")) {
        assert_in_range(count, 0, CELLS_MAX - 1);
        cells[count++] = cell;
    }
    assert_int_equal(count, 1 + machine->event_count + (machine->last != NULL));
}

/* Returns the state of the row. */
static size_t check_row(const struct machine *machine, char *const cells[CELLS_MAX])
{
    size_t from = index_of(cells[0], machine->states, machine->state_count);
    for (size_t event = 0; event < machine->event_count; event++) {
        size_t state = from;
        bool taken = machine->apply(&state, event);
        const char *is = taken ? machine->states[state] : "-";
        if (strcmp(is, cells[1 + event]) != 0)
            fail_msg("%s, %s: %s in the code, %s in the document", cells[0], machine->events[event],
                     is, cells[1 + event]);
        assert_true(taken || state == from);
    }
    if (machine->last)
        assert_string_equal(machine->last(from), cells[1 + machine->event_count]);
    return from;
}

static void check_table(const struct machine *machine, FILE *file)
{
    char line[LINE] = "", *cells[CELLS_MAX];
    bool seen[RANK_STATES] = {0};
    while (fgets(line, sizeof line, file) &&
           strncmp(line, machine->head, strlen(machine->head)) != 0)
        continue;
    split_row(machine, line, cells);
    for (size_t event = 0; event < machine->event_count; event++)
        assert_string_equal(cells[1 + event], machine->events[event]);
    assert_non_null(fgets(line, sizeof line, file)); /* | --- | */
    while (fgets(line, sizeof line, file) && line[0] == '|') {
        split_row(machine, line, cells);
        size_t state = check_row(machine, cells);
        assert_false(seen[state]);
        seen[state] = true;
    }
    for (size_t state = 1; state < machine->state_count; state++)
        if (!seen[state])
            fail_msg("%s is not in the document", machine->states[state]);
}

static void document_shows_the_tables(void **unused)
{
    (void)unused;
    FILE *file = fopen(ARCHITECTURE, "re");
    assert_non_null(file);
    for (size_t i = 0; i < COUNT_OF(machines); i++)
        check_table(&machines[i], file);
    fclose(file);
}

/* Whole lives, from the first state on; the last event of a refused one changes nothing. */
static const struct life {
    const struct machine *machine;
    const char *events, *end;
    bool refused;
} lives[] = {
    {&machines[0], "heard announced given_gpus heard got_all heard", "finished", false},
    {&machines[0], "heard announced given_none heard", "idle", false},
    {&machines[0], "heard announced given_none fell_silent", "idle_lost", false},
    {&machines[0], "heard announced given_none fell_silent heard", "idle", false},
    {&machines[0], "given_none heard", "missed", false},
    {&machines[0], "fell_silent given_none", "missed", false},
    {&machines[0], "fell_silent heard announced", "announced", false},
    {&machines[0], "heard fell_silent heard announced", "announced", false},
    {&machines[0], "heard fell_silent given_none", "missed", false},
    {&machines[0], "heard announced given_gpus fell_silent", "lost", false},
    {&machines[0], "heard announced given_gpus overdue heard", "measuring", false},
    {&machines[0], "heard announced given_gpus overdue got_all", "finished", false},
    {&machines[0], "heard given_gpus", "starting", true},
    {&machines[0], "heard announced announced", "announced", true},
    {&machines[0], "heard announced fell_silent", "announced", true},
    {&machines[0], "heard given_none announced", "missed", true},
    {&machines[0], "heard announced given_none overdue", "idle", true},
    {&machines[0], "heard announced given_gpus announced", "measuring", true},
    {&machines[0], "heard announced given_gpus got_all fell_silent", "finished", true},
    {&machines[0], "heard announced given_gpus got_all got_all", "finished", true},
    {&machines[1], "heard fell_silent heard said_quit heard", "quit", false},
    {&machines[1], "heard fell_silent gave_up", "given_up", false},
    {&machines[1], "heard fell_silent gave_up heard", "heard", false},
    {&machines[1], "gave_up", "given_up", false},
    {&machines[1], "heard gave_up", "heard", true},
    {&machines[1], "heard said_quit fell_silent", "quit", true},
};

static void lives_end_as_they_should(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < COUNT_OF(lives); i++) {
        const struct machine *machine = lives[i].machine;
        char events[LINE];
        size_t state = 1;
        bool taken = true;
        snprintf(events, sizeof events, "%s", lives[i].events);
        for (char *name = strtok(events, " "); name; name = strtok(NULL, " ")) {
            assert_true(taken);
            taken = machine->apply(&state, index_of(name, machine->events, machine->event_count));
        }
        if (strcmp(machine->states[state], lives[i].end) != 0 || taken == lives[i].refused)
            fail_msg("%s: ends as %s%s", lives[i].events, machine->states[state],
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
            bool has_results = from == RANK_REPEATING; /* nothing of it can be lost */
            assert_true(!loses || rank_state_is_lost(to) != has_results);
            assert_true(!loses || !rank_state_is_lost((enum rank_state)from));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(document_shows_the_tables),
        cmocka_unit_test(lives_end_as_they_should),
        cmocka_unit_test(facts_follow_the_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
