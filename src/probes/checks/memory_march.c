/* The March test of the whole memory: which words read back wrong, and what they have in common. */
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/sort.h"
#include "probes/checks/ecc_counts.h"
#include "probes/method/repeats.h"

enum {
    BACKGROUNDS = 2, /* drawn words, and all bits alike */
    PAGE_BYTES = 2 << 20,
    PERIOD_WORDS = 3, /* from so many places on, what they have in common is no chance */
};

/* What the wrong words that were kept have in common. */
struct pattern {
    uint64_t bits;        /* set where a bit was wrong in any word */
    uint64_t places;      /* words that were wrong in any read */
    uint64_t again;       /* of these: wrong in more than one read */
    uint64_t pages;       /* that hold them */
    uint64_t period;      /* divides all distances between them; 0: too few */
    uint64_t ones, wrong; /* wrong bits that were read as 1; all */
};

static int by_place(const void *a, const void *b)
{
    const struct device_wrong_word *x = a, *y = b;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return (x->read > y->read) - (x->read < y->read);
}

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* words: sorted by place, then by read; at least one. */
static struct pattern find_pattern(const struct device_wrong_word *words, size_t count)
{
    struct pattern pattern = {0};
    for (size_t i = 0, reads = 0; i < count; i++) {
        uint64_t wrong = words[i].expected ^ words[i].found;
        bool other = !i || words[i].offset != words[i - 1].offset;
        pattern.bits |= wrong;
        pattern.wrong += (uint64_t)__builtin_popcountll(wrong);
        pattern.ones += (uint64_t)__builtin_popcountll(wrong & words[i].found);
        reads = other ? 1 : reads + 1;
        pattern.again += reads == 2;
        if (!other)
            continue;
        pattern.places++;
        pattern.pages += !i || words[i].offset / PAGE_BYTES != words[i - 1].offset / PAGE_BYTES;
        pattern.period = common_divisor(pattern.period, words[i].offset - words[0].offset);
    }
    if (pattern.places < PERIOD_WORDS)
        pattern.period = 0;
    return pattern;
}

static void report_pattern(struct probe_context *context, struct device_march_answer *answer)
{
    sort_stable(answer->words, answer->word_count, sizeof *answer->words, by_place);
    const struct pattern pattern = find_pattern(answer->words, answer->word_count);
    measures_add(context->measures, "main.march.first_error", (double)answer->first, "id",
                 "offset of the lowest wrong word");
    measures_add(context->measures, "main.march.places", (double)pattern.places, "",
                 "words of 8 bytes that were wrong, of the first 1,024 wrong reads");
    if (answer->wrong == answer->word_count)
        measures_add(context->measures, "main.march.again", (double)pattern.again, "",
                     "of these, words that were wrong in more than one read");
    measures_add(context->measures, "main.march.pages", (double)pattern.pages, "",
                 "pages of 2 MiB with these words");
    if (pattern.period)
        measures_add(context->measures, "main.march.period", (double)pattern.period, "B",
                     "largest common divisor of the distances between these words");
    measures_add(context->measures, "main.march.bits", (double)__builtin_popcountll(pattern.bits),
                 "", "bits that were wrong in any of these words");
    measures_add(context->measures, "main.march.bit", (double)__builtin_ctzll(pattern.bits), "id",
                 "the lowest of these bits");
    measures_add(context->measures, "main.march.ones", (double)pattern.ones / (double)pattern.wrong,
                 "", "share of the wrong bits that were read as 1");
}

static void march_report(struct probe_context *context, struct device_march_answer *answer,
                         const struct device_march *march)
{
    struct measure *m =
        measures_add(context->measures, "main.march.errors", (double)answer->wrong, "",
                     "words of 8 bytes that were read wrong, in every read anew");
    facts_set_int(&m->notes, "tested", (int64_t)answer->bytes);
    facts_set_int(&m->notes, "free", (int64_t)answer->free_bytes);
    facts_set_int(&m->notes, "backgrounds", march->backgrounds);
    facts_set_int(&m->notes, "reads", (int64_t)march->backgrounds * DEVICE_MARCH_READS);
    facts_set_int(&m->notes, "elapsed_ns", (int64_t)answer->elapsed_ns);
    if (answer->ecc_known)
        ecc_counts_add(context->measures, "main.march.ecc_corrected", "main.march.ecc_uncorrected",
                       &answer->ecc_before, &answer->ecc_after, march->backgrounds);
    if (answer->word_count)
        report_pattern(context, answer);
}

static int march_run(struct probe_context *context, struct err *err)
{
    const struct device_march march = {.backgrounds = context->options->profile == PROFILE_FULL
                                                          ? DEVICE_MARCH_BACKGROUNDS
                                                          : BACKGROUNDS,
                                       .seed = probe_seed(context)};
    struct device_march_answer answer;
    struct err own = {0};
    int rc = device_march_memory(context->device, &march, &answer, &own);
    if (rc)
        return repeats_end(context, "main.march.errors", rc, &own, err);
    march_report(context, &answer, &march);
    device_march_answer_fini(&answer);
    return 0;
}

const struct probe probe_memory_march = {
    .description = {"memory.march", "all free memory, by a March test", PROFILE_FULL},
    .metrics = {"main.march.errors", "main.march.first_error", "main.march.places",
                "main.march.again", "main.march.pages", "main.march.period", "main.march.bits",
                "main.march.bit", "main.march.ones", "main.march.ecc_corrected",
                "main.march.ecc_uncorrected"},
    .last = true, /* it takes all memory */
    .run = march_run,
};
