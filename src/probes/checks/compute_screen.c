/* The probe that screens all SMs for wrong results: arithmetic on operands of any bits. What the
 * host does not know is compared with most warps of the GPU, and its digest, by the judge, with
 * other GPUs. */
#include <errno.h>

#include "probes/checks/places.h"
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
};

static void add_wrong(struct probe_context *context, enum device_screen_path path,
                      const struct device_screen_answer *answer, struct screened *screened)
{
    const struct places sum = places_sum(answer->places, answer->place_count);
    screened->hashes += sum.count;
    screened->wrong += sum.wrong;
    if (!screened->paths || sum.with_hashes < screened->least_places)
        screened->least_places = sum.with_hashes;
    if (!sum.wrong)
        return;
    struct measure *m =
        measures_add(context->measures, metrics[path].wrong, (double)sum.wrong, "",
                     "hashes of warps that are not those of the host or of most warps");
    facts_set_int(&m->notes, "of", (int64_t)sum.count);
    m->n = (uint32_t)(sum.count < UINT32_MAX ? sum.count : UINT32_MAX);
    m = measures_add(context->measures, metrics[path].place, (double)(sum.worst / DEVICE_SUB_CORES),
                     "id", "the SM with the sub-core that has most of them");
    facts_set_int(&m->notes, "sub_core", (int64_t)(sum.worst % DEVICE_SUB_CORES));
    facts_set_int(&m->notes, "wrong", answer->places[sum.worst].wrong);
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
    .metrics = {"compute.screen", "compute.code", SCREENS(SCREEN_NAMES)},
    .run = compute_screen_run,
};
