/* The sweep itself: it finds each kind of mistake, and accepts code without one. */
#include "../check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sweep.h"

/* Through a volatile variable, or the compiler would remove the allocation. */
static void *get(size_t size)
{
    static void *volatile block;
    block = malloc(size);
    return block;
}

/* Two blocks, as most code needs them: -ENOMEM and no leak whichever one fails. */
static int correct(void *context)
{
    (void)context;
    char *first = get(10), *second = get(10);
    int rc = first && second ? 0 : -ENOMEM;
    free(first);
    free(second);
    return rc;
}

static int leaks(void *context)
{
    (void)context;
    char *first = get(10), *second = get(10);
    if (!first || !second)
        return -ENOMEM;
    free(first);
    free(second);
    return 0;
}

static int ignores(void *context)
{
    (void)context;
    free(get(10));
    return 0;
}

static int blames_input(void *context)
{
    (void)context;
    char *block = get(10);
    int rc = block ? 0 : -EINVAL;
    free(block);
    return rc;
}

static int fails_always(void *context)
{
    (void)context;
    free(get(10));
    return -ENOMEM;
}

static int leaves_open(void *context)
{
    (void)context;
    int fd = open("/dev/null", O_RDONLY);
    char *block = get(10);
    if (!block)
        return -ENOMEM;
    free(block);
    close(fd);
    return 0;
}

/* The block is the caller's. */
static int frees_foreign(void *context)
{
    char **foreign = context, *block = get(10);
    int rc = block ? 0 : -ENOMEM;
    free(block);
    if (rc) {
        free(*foreign);
        *foreign = NULL;
    }
    return rc;
}

/* realloc always moves the block. */
static int is_moved(void *context)
{
    (void)context;
    char *block = get(10);
    char *grown = block ? realloc(block, 11) : NULL;
    bool moved = grown && grown != block;
    free(grown ? grown : block);
    return !grown ? -ENOMEM : moved ? 0 : -EINVAL;
}

static int crashes(void *context)
{
    (void)context;
    char *block = get(10);
    if (!block)
        abort();
    free(block);
    return 0;
}

static void check_one(int (*run)(void *context), void *context, bool forks, const char *expected)
{
    const char *wrong = memory_sweep_find(&(struct memory_sweep){
        .name = "planted", .run = run, .context = context, .forks = forks, .points = 100});
    if (!expected)
        assert_null(wrong);
    else if (!wrong || (!strstr(wrong, expected) && !strstr(wrong, "child process")))
        fail_msg("found \"%s\", expected \"%s\"", wrong ? wrong : "nothing", expected);
}

/* Both ways, plain and forking. */
static void check(int (*run)(void *context), const char *expected)
{
    check_one(run, NULL, false, expected);
    check_one(run, NULL, true, expected);
}

static void mistakes(void **state)
{
    (void)state;
    check(correct, NULL);
    check(is_moved, NULL);
    check(leaks, "leaks memory");
    check(ignores, "succeeded although");
    check(blames_input, "neither 0 nor -ENOMEM");
    check(fails_always, "although no allocation failed");
    check(leaves_open, "leaves a file open");
    for (int forks = 0; forks < 2; forks++) {
        char *foreign = get(10);
        check_one(frees_foreign, &foreign, forks, "frees more");
        free(foreign);
    }
}

/* A crash is found only where each failure has a process of its own. */
static void crash(void **state)
{
    (void)state;
    const char *wrong = memory_sweep_find(
        &(struct memory_sweep){.name = "planted", .run = crashes, .forks = true, .points = 100});
    assert_non_null(wrong);
}

/* Allocations that an operation can do without, and tests that test nothing. */
static void options(void **state)
{
    (void)state;
    assert_null(memory_sweep_find(
        &(struct memory_sweep){.name = "planted", .run = ignores, .may_succeed = true}));
    assert_non_null(memory_sweep_find(
        &(struct memory_sweep){.name = "planted", .run = correct, .at_least = 3}));
}

static void many(void *context)
{
    for (size_t i = 0; i < *(size_t *)context; i++)
        free(get(10));
}

/* A mistake in one allocation of ten thousand. */
static int rare(void *context)
{
    many(context);
    char *block = get(10);
    bool first = memory_failed_at() == *(size_t *)context;
    int rc = block ? 0 : first ? -EINVAL : -ENOMEM;
    free(block);
    many(context);
    return rc;
}

/* The first allocation of each call stack fails, however few points there are. */
static void call_stacks(void **state)
{
    (void)state;
    size_t count = 5000;
    const char *wrong = memory_sweep_find(&(struct memory_sweep){
        .name = "planted", .run = rare, .context = &count, .points = 10, .may_succeed = true});
    assert_string_equal(wrong, "the operation returned neither 0 nor -ENOMEM");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(mistakes), cmocka_unit_test(crash),
                                       cmocka_unit_test(options), cmocka_unit_test(call_stacks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
