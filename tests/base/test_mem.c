/* Allocation that does not fail: sizes, growth, and what happens where memory ends. */
#include "../check.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/mem.h"

static void grows_zeroed(void **state)
{
    (void)state;
    int *array = NULL;
    size_t capacity = 0;
    for (int i = 0; i < 100; i++) {
        array = mem_grow(array, &capacity, (size_t)i + 1, sizeof *array);
        assert_int_equal(array[i], 0);
        array[i] = i;
    }
    for (int i = 0; i < 100; i++)
        assert_int_equal(array[i], i);
    array = mem_resize(array, 100, 101, sizeof *array);
    assert_int_equal(array[99], 99);
    assert_int_equal(array[100], 0);
    free(array);
    free(mem_array(0, 0));
}

static void handler_writes(size_t bytes)
{
    char line[32] = "";
    snprintf(line, sizeof line, "handler: %zu", bytes);
    ssize_t written = write(STDERR_FILENO, line, strlen(line));
    (void)written;
}

static void take_too_much(void)
{
    free(mem_array(SIZE_MAX / 4, 2));
}

static void take_overflow(void)
{
    free(mem_array(SIZE_MAX / 2, 16));
}

static void grow_overflow(void)
{
    size_t capacity = 0;
    free(mem_grow(NULL, &capacity, SIZE_MAX, 8));
}

static void take_of_arena(void)
{
    struct arena arena = {0};
    arena_alloc(&arena, SIZE_MAX);
}

struct exhaustion {
    const char *name;
    void (*take)(void);
    void (*handler)(size_t bytes); /* NULL: the default */
    const char *line;              /* on stderr */
};

/* In a child: what it writes to stderr, and its exit code. */
static int exhaust(const struct exhaustion *row, char *out_line, size_t room)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        dup2(ends[1], STDERR_FILENO);
        if (row->handler)
            mem_on_exhausted(row->handler);
        row->take();
        _exit(0);
    }
    close(ends[1]);
    size_t length = 0;
    for (ssize_t n; (n = read(ends[0], out_line + length, room - 1 - length)) > 0;)
        length += (size_t)n;
    out_line[length] = '\0';
    close(ends[0]);
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void says_where_memory_ends(void **state)
{
    (void)state;
    static const struct exhaustion rows[] = {
        {"more than there is", take_too_much, NULL, "test_base_mem: error: out of memory: "},
        {"a product that overflows", take_overflow, NULL, "test_base_mem: error: out of memory"},
        {"growth that overflows", grow_overflow, NULL, "test_base_mem: error: out of memory"},
        {"an arena", take_of_arena, NULL, "test_base_mem: error: out of memory"},
        {"a handler", take_too_much, handler_writes, "handler: "},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char line[8192];
        print_message("%s\n", rows[i].name);
        assert_int_equal(exhaust(&rows[i], line, sizeof line), 1);
#ifdef GPUMEMTOPO_SANITIZED /* AddressSanitizer has a word before */
        assert_non_null(strstr(line, rows[i].line));
#else
        assert_memory_equal(line, rows[i].line, strlen(rows[i].line));
#endif
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grows_zeroed),
        cmocka_unit_test(says_where_memory_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
