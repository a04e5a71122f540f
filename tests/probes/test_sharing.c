/* What is shared with a cache that could not be studied is not known, and said so. */
#include "../check.h"

#include <errno.h>
#include <string.h>

#include "probed.h"

/* L1 and texture are one array, the read-only cache is another. */
static const char two_arrays[] =
    "name: Two\nsms: 8\nmemory: {size: 1 GiB}\nclock: {sm_mhz: 1000, ramp_ms: 0}\n"
    "caches: {l1: {size: 16 KiB, line: 128, sector: 32, ways: 4},"
    " ro: {size: 8 KiB, line: 128, sector: 32, ways: 4}}\n"
    "l2: {size: 1 MiB, line: 128, ways: 16}\n"
    "paths: {global_ca: [l1: 30, l2: 200, main: 500], global_cg: [l2: 200, main: 500],"
    " texture: [l1: 80, l2: 250, main: 550], read_only: [ro: 40, l2: 210, main: 510]}\n";

/* A backend that has no answer for one path after its first batches. */
static const struct device_ops *inner;
static struct device_ops outer;
static size_t left;

static int forgetful_batch(struct device *device, const void *request, void *answer,
                           struct err *err)
{
    const struct device_batch *batch = request;
    struct device_answer *answers = answer;
    for (size_t i = 0; i < batch->job_count; i++)
        if (batch->jobs[i].steps[0].array.path == DEVICE_TEXTURE && left-- == 0) {
            left = 0;
            return err_set(err, -ENODATA, "no answer");
        }
    return inner->calls[DEVICE_CALL_BATCH](device, batch, answers, err);
}

static void forget_texture(struct device *device)
{
    inner = device->ops;
    outer = *inner;
    outer.calls[DEVICE_CALL_BATCH] = forgetful_batch;
    device->ops = &outer;
}

static struct measures run_with(size_t answered)
{
    left = answered;
    return probed_run(&(struct probed){.model = two_arrays,
                                       .profile = PROFILE_STANDARD,
                                       .list = "cache.shared",
                                       .prepare = forget_texture});
}

static void what_is_shared_is_found(void **state)
{
    (void)state;
    struct measures all = run_with(SIZE_MAX);
    const struct measure *l1 = measures_get(&all, "l1_data.shared_with");
    const struct measure *ro = measures_get(&all, "read_only.shared_with");
    assert_int_equal(l1->status, MEASURE_OK);
    assert_int_equal(l1->word_count, 1);
    assert_string_equal(l1->words[0], "texture");
    assert_int_equal(ro->status, MEASURE_OK);
    assert_int_equal(ro->word_count, 0);
    measures_fini(&all);
}

static void what_was_not_tried_is_told(void **state)
{
    enum { FIRST_JOBS = 40 }; /* enough to see that there is a cache, too few for its size */
    (void)state;
    struct measures all = run_with(FIRST_JOBS);
    const struct measure *l1 = measures_get(&all, "l1_data.shared_with");
    const struct measure *texture = measures_get(&all, "texture.shared_with");
    assert_int_equal(texture->status, MEASURE_FAILED);
    assert_int_equal(l1->status, MEASURE_NOISY);
    assert_non_null(strstr(l1->reason, "not tried with texture"));
    assert_true(l1->confidence <= 0.5);
    measures_fini(&all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_shared_is_found),
        cmocka_unit_test(what_was_not_tried_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
