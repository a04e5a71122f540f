/* The fingerprint of a die: text and back, the same die, another one, SMs that became slower. */
#include "../check.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "inventory/fingerprint.h"

enum { SMS = 132 };

/* Distances of a die in steps of 5 cycles, by TPC, and one measurement of them. */
static struct fingerprint measured(uint64_t die, uint64_t run, double noise)
{
    struct rng places, chance;
    double latencies[SMS], place = 0;
    struct fingerprint fingerprint;
    rng_init(&places, die, "die");
    rng_init(&chance, run, "run");
    for (size_t i = 0; i < SMS; i++) {
        place = i % 2 ? place : 280 + 5 * round(1.2 * rng_normal(&places));
        latencies[i] = place + noise * rng_normal(&chance);
    }
    fingerprint_make(latencies, SMS, noise, &fingerprint);
    return fingerprint;
}

static void text_and_back(void **state)
{
    (void)state;
    char text[FINGERPRINT_TEXT_MAX];
    struct fingerprint made = measured(1, 1, 0.2), read;
    fingerprint_print(&made, text);
    assert_int_equal(fingerprint_read(text, &read), 0);
    assert_int_equal(read.sms, SMS);
    for (size_t i = 0; i < SMS; i++)
        assert_true(fabs(read.cycles[i] - made.cycles[i]) <= 0.0501);
    static const char *const bad[] = {"",
                                      "1",
                                      "2 280.0 0.20 gA",
                                      "1 280.0 0.20 ",
                                      "1 280.0",
                                      "1 0 0 gAg",
                                      "1 280.0 0.20 g?",
                                      "1 -1 0 gA",
                                      "1 280.0 nan gA"};
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        assert_int_equal(fingerprint_read(bad[i], &read), -EINVAL);
}

/* 2,000 dies: each is known again, none is taken for the next. */
static void dies(void **state)
{
    (void)state;
    for (uint64_t die = 0; die < 2000; die++) {
        struct fingerprint was = measured(die, 2 * die, 0.2), is = measured(die, 2 * die + 1, 0.2);
        struct fingerprint other = measured(die + 1, 2 * die + 1, 0.2);
        struct fingerprint_score same = fingerprint_compare(&was, &is);
        assert_int_equal(same.match, FINGERPRINT_SAME);
        assert_true(same.distance_cycles < 0.5);
        struct fingerprint_score different = fingerprint_compare(&was, &other);
        assert_int_equal(different.match, FINGERPRINT_OTHER);
        assert_true(different.distance_cycles > 2);
    }
}

static void changes(void **state)
{
    (void)state;
    struct fingerprint was = measured(1, 1, 0.2), is = measured(1, 2, 0.2);
    is.cycles[40] += 8;
    struct fingerprint_score score = fingerprint_compare(&was, &is);
    assert_int_equal(score.match, FINGERPRINT_CHANGED);
    assert_int_equal(score.worst_sm, 40);
    is.cycles[10] += 8;
    is.cycles[11] += 8;
    assert_int_equal(fingerprint_compare(&was, &is).match, FINGERPRINT_OTHER);
}

static void uncertain(void **state)
{
    (void)state;
    struct fingerprint was = measured(1, 1, 0.2), fewer = was, slower = was, noisy = was;
    fewer.sms = SMS - 2;
    slower.usual_cycles *= 1.1;
    noisy.noise_cycles = 1;
    assert_int_equal(fingerprint_compare(&was, &fewer).match, FINGERPRINT_UNCERTAIN);
    assert_int_equal(fingerprint_compare(&was, &slower).match, FINGERPRINT_UNCERTAIN);
    assert_int_equal(fingerprint_compare(&was, &noisy).match, FINGERPRINT_UNCERTAIN);
}

/* Real H200 cards, two processes each: a letter for the card, and the text. */
static const char *cards_path;

static void real_cards(void **state)
{
    (void)state;
    enum { ROWS_MAX = 64, ROW_BYTES = FINGERPRINT_TEXT_MAX + 4 };
    static struct fingerprint fingerprints[ROWS_MAX];
    char row[ROW_BYTES], names[ROWS_MAX];
    size_t count = 0;
    FILE *file = fopen(cards_path, "r");
    assert_non_null(file);
    for (; count < ROWS_MAX && fgets(row, sizeof row, file); count++) {
        row[strcspn(row, "\n")] = '\0';
        names[count] = row[0];
        assert_int_equal(fingerprint_read(row + 2, &fingerprints[count]), 0);
    }
    fclose(file);
    assert_true(count >= 6);
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < count; k++) {
            struct fingerprint_score score =
                fingerprint_compare(&fingerprints[i], &fingerprints[k]);
            bool same = names[i] == names[k];
            assert_int_equal(score.match, same ? FINGERPRINT_SAME : FINGERPRINT_OTHER);
            assert_true(same ? score.distance_cycles < 0.5 : score.distance_cycles > 1);
        }
}

int main(int argc, char **argv)
{
    cards_path = argc > 1 ? argv[1] : "tests/inventory/h200_fingerprints.txt";
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_and_back), cmocka_unit_test(dies),       cmocka_unit_test(changes),
        cmocka_unit_test(uncertain),     cmocka_unit_test(real_cards),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
