/* The fingerprint of a die: facts and back, the same die, another one, SMs that became slower. */
#include "../check.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
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

static void facts_and_back(void **state)
{
    (void)state;
    struct facts facts = {0};
    struct strbuf bytes = {0};
    struct fingerprint made = measured(1, 1, 0.2), read, unpacked;
    fingerprint_put(&made, &facts);
    assert_int_equal(fingerprint_read(&facts, &read), 0);
    assert_int_equal(read.sms, SMS);
    assert_true(fabs(read.usual_cycles - made.usual_cycles) <= 0.0501 && read.noise_cycles == 0.2);
    for (size_t i = 0; i < SMS; i++)
        assert_true(fabs(read.cycles[i] - made.cycles[i]) <= 0.0501);
    fingerprint_pack(&read, &bytes);
    assert_true(bytes.length < 3 * SMS);
    fingerprint_unpack(bytes.data, &unpacked);
    assert_memory_equal(&unpacked, &read, sizeof read);
    strbuf_fini(&bytes);
    facts_fini(&facts);
}

static void bad_facts(void **state)
{
    (void)state;
    static const double cycles[FINGERPRINT_SMS_MAX + 1] = {0}, unknown[] = {1, NAN, 0};
    static const struct {
        const double *cycles;
        size_t sms;
        double usual, noise;
        bool good;
    } rows[] = {
        {cycles, 3, 280, 0.2, true},   {cycles, FINGERPRINT_SMS_MAX, 280, 0, true},
        {cycles, 0, 280, 0.2, false},  {cycles, FINGERPRINT_SMS_MAX + 1, 280, 0.2, false},
        {unknown, 3, 280, 0.2, false}, {cycles, 3, 0, 0.2, false},
        {cycles, 3, -1, 0.2, false},   {cycles, 3, NAN, 0.2, false},
        {cycles, 3, 280, -1, false},   {cycles, 3, 280, NAN, false},
    };
    struct fingerprint read;
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        for (size_t without = 0; without <= FINGERPRINT_KEYS; without++) {
            struct facts facts = {0};
            facts_set_numbers(&facts, fingerprint_keys[0], rows[i].cycles, rows[i].sms);
            facts_set_real(&facts, fingerprint_keys[1], rows[i].usual);
            facts_set_real(&facts, fingerprint_keys[2], rows[i].noise);
            if (without < FINGERPRINT_KEYS)
                facts_remove(&facts, fingerprint_keys[without]);
            bool good = rows[i].good && without == FINGERPRINT_KEYS;
            if (fingerprint_read(&facts, &read) != (good ? 0 : -EINVAL))
                fail_msg("row %zu, without %zu", i, without);
            facts_fini(&facts);
        }
    struct facts texts = {0}; /* as in schema 1 */
    facts_set_text(&texts, FINGERPRINT_FACT, "1 280.0 0.20 gA");
    assert_int_equal(fingerprint_read(&texts, &read), -EINVAL);
    facts_fini(&texts);
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

/* Real H200 cards, two processes each: a letter for the card, latency of the median SM, noise, the
 * distance of each SM. */
static const char *cards_path;

static void real_cards(void **state)
{
    (void)state;
    enum { ROWS_MAX = 64, ROW_BYTES = 16 * FINGERPRINT_SMS_MAX };
    static struct fingerprint fingerprints[ROWS_MAX];
    char row[ROW_BYTES], names[ROWS_MAX];
    size_t count = 0;
    FILE *file = fopen(cards_path, "r");
    assert_non_null(file);
    for (; count < ROWS_MAX && fgets(row, sizeof row, file); count++) {
        double numbers[FINGERPRINT_SMS_MAX + 2];
        size_t found = 0;
        char *at = row + 1, *end;
        for (; found < COUNT_OF(numbers); at = end) {
            numbers[found] = strtod(at, &end);
            if (end == at)
                break;
            found++;
        }
        names[count] = row[0];
        assert_true(found > 2);
        fingerprints[count] = (struct fingerprint){
            .sms = found - 2, .usual_cycles = numbers[0], .noise_cycles = numbers[1]};
        memcpy(fingerprints[count].cycles, numbers + 2, (found - 2) * sizeof *numbers);
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
        cmocka_unit_test(facts_and_back), cmocka_unit_test(bad_facts), cmocka_unit_test(dies),
        cmocka_unit_test(changes),        cmocka_unit_test(uncertain), cmocka_unit_test(real_cards),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
