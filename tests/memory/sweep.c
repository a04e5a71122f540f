/* Runs an operation again and again, each time with another allocation failing. */
#include "sweep.h"

#include "../check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

enum { NUMBERS_MAX = 1 << 16 };

/* Which allocations to fail. */
struct plan {
    size_t numbers[NUMBERS_MAX]; /* ascending */
    size_t count;
    size_t paths; /* distinct call stacks */
    size_t of;    /* allocations of one run */
};

/* The lowest free number: it changes when a descriptor is left open. */
static int next_descriptor(void)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    close(fd);
    return fd;
}

/* One run; NULL, or what is wrong. */
static const char *try_run(const struct memory_sweep *sweep, size_t allowed,
                           enum memory_outage outage)
{
    long live = memory_live();
    int fd = next_descriptor();
    if (sweep->prepare)
        sweep->prepare(sweep->context);
    memory_limit(allowed, outage);
    int rc = sweep->run(sweep->context);
    memory_restore();
    if (rc && rc != -ENOMEM)
        return "the operation returned neither 0 nor -ENOMEM";
    if (rc && !memory_failed())
        return "the operation failed although no allocation failed";
    if (!rc && memory_failed() && !sweep->may_succeed)
        return "the operation succeeded although an allocation failed";
    if (memory_live() > live)
        return "the operation leaks memory";
    if (memory_live() < live)
        return "the operation frees more than it allocated";
    return next_descriptor() != fd ? "the operation leaves a file open" : NULL;
}

static const char *say(const struct memory_sweep *sweep, const char *wrong)
{
    memory_print_failure();
    if (!memory_failed())
        print_error("%s, no allocation failing: %s\n", sweep->name, wrong);
    else
        print_error("%s, allocation %zu%s failing: %s\n", sweep->name, memory_failed_at(),
                    memory_outage() == MEMORY_ENDS ? " and all later ones" : "", wrong);
    return wrong;
}

static const char *check_run(const struct memory_sweep *sweep, size_t allowed,
                             enum memory_outage outage)
{
    const char *wrong = try_run(sweep, allowed, outage);
    return wrong ? say(sweep, wrong) : NULL;
}

static int by_number(const void *a, const void *b)
{
    size_t x = *(const size_t *)a, y = *(const size_t *)b;
    return (x > y) - (x < y);
}

/* Brings the noted allocations to `points`: drops some evenly, or adds an even choice of others. */
static void adjust(struct plan *plan, size_t points)
{
    size_t more = points > plan->count ? points - plan->count : 0, kept = 0;
    for (size_t i = 0; i < points && !more; i++)
        plan->numbers[i] = plan->numbers[i * plan->count / points];
    for (size_t i = 0; i < more; i++)
        plan->numbers[plan->count + i] = i * plan->of / more;
    qsort(plan->numbers, points, sizeof *plan->numbers, by_number);
    for (size_t i = 0; i < points; i++)
        if (!kept || plan->numbers[kept - 1] != plan->numbers[i])
            plan->numbers[kept++] = plan->numbers[i];
    plan->count = kept;
}

/* Forking takes ten times as long under AddressSanitizer. One point of 25 is enough there, because
 * the plain build tries all of them. */
static size_t points_of(const struct memory_sweep *sweep)
{
    size_t points = sweep->points ? sweep->points : SWEEP_POINTS;
    return sweep->forks && SWEEP_SANITIZED ? points / 25 : points;
}

static const char *make_plan(const struct memory_sweep *sweep, struct plan *plan)
{
    size_t points = points_of(sweep);
    assert_true(points <= NUMBERS_MAX);
    memory_note_paths(plan->numbers, NUMBERS_MAX);
    const char *wrong = check_run(sweep, SIZE_MAX, MEMORY_LACKS_ONE);
    plan->of = memory_count();
    plan->count = plan->paths = memory_noted();
    memory_note_paths(NULL, 0);
    if (plan->of <= points)
        plan->count = 0; /* few enough: adjust() adds them all */
    adjust(plan, plan->of < points ? plan->of : points);
    if (!wrong && plan->of < sweep->at_least)
        wrong = say(sweep, "the operation makes fewer allocations than the test expects");
    return wrong;
}

static const char *run_forking(const struct memory_sweep *sweep, const struct plan *plan)
{
    memory_fork_at(plan->numbers, plan->count);
    const char *wrong = check_run(sweep, SIZE_MAX, MEMORY_LACKS_ONE);
    if (memory_in_child())
        _exit(wrong ? 1 : 0);
    if (!wrong && memory_failed_children())
        wrong = "the operation failed in a child process";
    memory_fork_at(NULL, 0);
    return wrong;
}

static const char *run_each(const struct memory_sweep *sweep, const struct plan *plan)
{
    const char *wrong = NULL;
    for (size_t i = 0; i < plan->count && !wrong; i++)
        for (int outage = 0; outage < MEMORY_OUTAGES && !wrong; outage++)
            wrong = check_run(sweep, plan->numbers[i], (enum memory_outage)outage);
    return wrong ? wrong : check_run(sweep, SIZE_MAX, MEMORY_LACKS_ONE);
}

const char *memory_sweep_find(const struct memory_sweep *sweep)
{
    static struct plan plan;
    if (memory_in_child())
        _exit(1); /* an assertion failed in a child, and cmocka went on to the next test */
    const char *wrong = make_plan(sweep, &plan);
    if (!wrong)
        wrong = sweep->forks ? run_forking(sweep, &plan) : run_each(sweep, &plan);
    if (!wrong)
        print_message("%s: failed %zu of %zu allocations, %zu call stacks\n", sweep->name,
                      plan.count, plan.of, plan.paths);
    return wrong;
}

void memory_sweep(const struct memory_sweep *sweep)
{
    const char *wrong = memory_sweep_find(sweep);
    if (wrong)
        fail_msg("%s: %s", sweep->name, wrong);
}
