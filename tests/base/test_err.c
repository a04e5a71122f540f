/* Errors: texts, positions, prefixes, hostile characters. */
#include "../check.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"

static void formats(void **state)
{
    (void)state;
    char buffer[1024];
    struct err err = {0};
    assert_int_equal(err_set(&err, -EINVAL, "bad %d", 3), -EINVAL);
    assert_string_equal(err_format(&err, buffer, sizeof buffer), "bad 3");
    assert_int_equal(err_set_at(&err, -EIO, "a.yaml", 4, 7, "no"), -EIO);
    assert_string_equal(err_format(&err, buffer, sizeof buffer), "a.yaml:4:7: no");
    err_prefix(&err, "key %s", "x");
    assert_string_equal(err_format(&err, buffer, sizeof buffer), "a.yaml:4:7: key x: no");
    err_set_at(&err, -EIO, "a.yaml", 0, 0, "no");
    assert_string_equal(err_format(&err, buffer, sizeof buffer), "a.yaml: no");
    err_set(&err, -EIO, "without a place");
    assert_string_equal(err_format(&err, buffer, sizeof buffer), "without a place");
    err_clear(&err);
    assert_int_equal(err.code, 0);
}

static void survives(void **state)
{
    (void)state;
    char longer[2 * ERR_TEXT_MAX];
    struct err err = {0};
    assert_int_equal(err_set(NULL, -EINVAL, "x"), -EINVAL);
    err_prefix(NULL, "x");
    memset(longer, 'a', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    err_set(&err, -EINVAL, "%s", longer);
    err_prefix(&err, "%s", longer);
    assert_int_equal(strlen(err.text), ERR_TEXT_MAX - 1);
    err_set(&err, -EINVAL, "a\033[31m\nb");
    assert_string_equal(err.text, "a?[31m?b");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(formats), cmocka_unit_test(survives)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
