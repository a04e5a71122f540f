/* The probe that screens all SMs for wrong results: arithmetic on operands of any bits. What the
 * host does not know is compared with most warps of the GPU, and its digest, by the judge, with
 * other GPUs. */
#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/sort.h"
#include "probes/method/repeats.h"

/* Digests are kept with six digits: all of them are in the file, and one wrong digest of a million
 * is taken for a right one. */
enum { TARGET_MS = 4, FULL_TARGET_MS = 250, DIGEST_VALUES = 1000000 };

static const struct {
    const char *wrong, *place, *digest;
} metrics[DEVICE_SCREEN_COUNT] = {
#define SCREEN_METRICS(id, name, words, ...)                                                       \
    {"compute.wrong_on." name, "compute.wrong_at." name, "compute.digest." name},
    SCREENS(SCREEN_METRICS)};

struct screened {
    uint64_t hashes, wrong;
    uint32_t paths;        /* that were screened */
    uint32_t least_places; /* sub-cores that gave a hash, on the path where it was fewest */
    uint64_t code;
    double slowest; /* sub-core over the median one, on the path where that is most */
    size_t slowest_place;
};

static void add_wrong(struct probe_context *context, enum device_screen_path path,
                      const struct device_screen_answer *answer, struct screened *screened)
{
    uint64_t wrong = 0, count = 0;
    uint32_t places = 0;
    size_t worst = 0;
    for (size_t i = 0; i < answer->place_count; i++) {
        const struct device_screen_place *place = &answer->places[i];
        places += place->count > 0;
        count += place->count;
        wrong += place->wrong;
        worst = place->wrong > answer->places[worst].wrong ? i : worst;
    }
    screened->hashes += count;
    screened->wrong += wrong;
    if (!screened->paths || places < screened->least_places)
        screened->least_places = places;
    if (!wrong)
        return;
    struct measure *m =
        measures_add(context->measures, metrics[path].wrong, (double)wrong, "",
                     "hashes of warps that are not those of the host or of most warps");
    facts_set_int(&m->notes, "of", (int64_t)count);
    m->n = (uint32_t)(count < UINT32_MAX ? count : UINT32_MAX);
    m = measures_add(context->measures, metrics[path].place, (double)(worst / DEVICE_SUB_CORES),
                     "id", "the SM with the sub-core that has most of them");
    facts_set_int(&m->notes, "sub_core", (int64_t)(worst % DEVICE_SUB_CORES));
    facts_set_int(&m->notes, "wrong", answer->places[worst].wrong);
}

static int by_cycles(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Every sub-core does the same work: one that takes longer is slower. */
static void find_slowest(const struct device_screen_answer *answer, struct screened *screened)
{
    size_t count = answer->place_count;
    uint64_t *cycles = mem_array(count ? count : 1, sizeof *cycles);
    for (size_t i = 0; i < count; i++)
        cycles[i] = answer->places[i].cycles;
    sort_stable(cycles, count, sizeof *cycles, by_cycles);
    double median = count ? (double)cycles[count / 2] : 0;
    for (size_t i = 0; i < count && median > 0; i++) {
        double ratio = (double)answer->places[i].cycles / median;
        if (ratio > screened->slowest) {
            screened->slowest = ratio;
            screened->slowest_place = i;
        }
    }
    free(cycles);
}

static int screen_path(struct probe_context *context, enum device_screen_path path,
                       struct screened *screened, struct err *err)
{
    const struct device_screen screen = {
        .path = path,
        .target_ms = context->options->profile == PROFILE_FULL ? FULL_TARGET_MS : TARGET_MS};
    struct device_screen_answer answer;
    struct err own = {0};
    int rc = device_screen_path(context->device, &screen, &answer, &own);
    if (rc == -ENOTSUP)
        return 0;
    if (rc)
        return err_set(err, rc, "%s: %s", device_screen_names[path], own.text);
    add_wrong(context, path, &answer, screened);
    if (answer.code)
        measures_add(context->measures, metrics[path].digest,
                     (double)(answer.digest % DIGEST_VALUES), "id", "of the hash of most warps");
    find_slowest(&answer, screened);
    screened->code = answer.code;
    screened->paths++;
    device_screen_answer_fini(&answer);
    return 0;
}

static void screened_report(struct probe_context *context, const struct screened *screened)
{
    struct measure *m =
        measures_add(context->measures, "compute.screen", (double)screened->wrong, "",
                     "hashes of warps that are not those of the host or of most warps, over all "
                     "paths");
    facts_set_int(&m->notes, "of", (int64_t)screened->hashes);
    facts_set_int(&m->notes, "paths", screened->paths);
    facts_set_int(&m->notes, "sub_cores", screened->least_places);
    m->n = (uint32_t)(screened->hashes < UINT32_MAX ? screened->hashes : UINT32_MAX);
    if (screened->slowest > 0) {
        m = measures_add(context->measures, "compute.slowest", screened->slowest, "",
                         "time of the slowest sub-core over that of the median one, on the path "
                         "where it is most");
        facts_set_int(&m->notes, "sm", (int64_t)(screened->slowest_place / DEVICE_SUB_CORES));
        facts_set_int(&m->notes, "sub_core", (int64_t)(screened->slowest_place % DEVICE_SUB_CORES));
    }
    if (screened->code)
        measures_add(context->measures, "compute.code", (double)(screened->code % DIGEST_VALUES),
                     "id", "of the machine code of the screen");
}

static int compute_screen_run(struct probe_context *context, struct err *err)
{
    struct screened screened = {0};
    int rc = 0;
    for (int path = 0; path < DEVICE_SCREEN_COUNT && !rc; path++)
        rc = screen_path(context, (enum device_screen_path)path, &screened, err);
    if (!rc && screened.paths)
        screened_report(context, &screened);
    else if (!rc)
        repeats_unsupported(context, "compute.screen", "this device cannot screen its SMs");
    return rc;
}

#define SCREEN_NAMES(id, name, words, ...)                                                         \
    "compute.wrong_on." name, "compute.wrong_at." name, "compute.digest." name,
const struct probe probe_compute_screen = {
    .description = {"compute.screen", "whether every SM computes right, with operands of any bits",
                    PROFILE_NONE}, /* its kernels have not run on a GPU yet */
    .metrics = {"compute.screen", "compute.slowest", "compute.code", SCREENS(SCREEN_NAMES)},
    .run = compute_screen_run,
};
