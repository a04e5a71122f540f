/* The probe that screens all SMs for wrong results: arithmetic on operands of any bits. What the
 * host does not know is compared with most warps of the GPU, and its digest, by the judge, with
 * other GPUs. */
#include <errno.h>
#include <math.h>

#include "base/str.h"
#include "device/screen_program.h"
#include "probes/checks/places.h"
#include "probes/method/repeats.h"

/* Digests are kept with six digits: all of them are in the file, and one wrong digest of a million
 * is taken for a right one. */
enum { TARGET_MS = 4, FULL_TARGET_MS = 100, DIGEST_VALUES = 1000000 };

static const struct {
    const char *wrong, *place, *digest, *host;
} metrics[DEVICE_SCREEN_COUNT] = {
#define SCREEN_METRICS(id, name, words, ...)                                                       \
    {"compute.wrong_on." name, "compute.wrong_at." name, "compute.digest." name,                   \
     "compute.not_as_host." name},
    SCREENS(SCREEN_METRICS)};

struct screened {
    uint64_t hashes, wrong;
    uint32_t paths;        /* that were screened */
    uint32_t least_places; /* sub-cores that gave a hash, on the path where it was fewest */
    uint32_t no_memory;    /* paths for which there was too little */
    uint64_t code;
};

static void set_bits(struct facts *notes, const char *key, const uint32_t *words, size_t count)
{
    struct strbuf text = {0};
    for (size_t i = 0; i < count; i++)
        strbuf_printf(&text, "%s0x%08x", i ? " " : "", words[i]);
    facts_set_text(notes, key, text.data);
    strbuf_fini(&text);
}

/* The first wrong result, and what the bits of all that were kept have in common. */
static void add_results(struct facts *notes, enum device_screen_path path,
                        const struct device_screen_answer *answer)
{
    const struct device_wrong_result *first = &answer->results[0];
    uint32_t taken = device_screen_rows[path].taken, step = first->number / taken, wrong = 0;
    uint32_t operands[SCREEN_OPERANDS];
    const struct screen_place place = {answer->again.set, first->period, step, first->lane};
    uint32_t count = screen_operands(path, &place, operands);
    for (size_t i = 0; i < answer->result_count; i++)
        wrong |= answer->results[i].expected ^ answer->results[i].found;
    facts_set_int(notes, "results", (int64_t)answer->again.results);
    facts_set_int(notes, "results_wrong", (int64_t)answer->again.differ);
    facts_set_int(notes, "lane", first->lane);
    facts_set_int(notes, "set", answer->again.set);
    facts_set_int(notes, "period", first->period);
    facts_set_int(notes, "step", step);
    facts_set_int(notes, "word", first->number % taken);
    if (count)
        set_bits(notes, "operands", operands, count);
    set_bits(notes, "expected", &first->expected, 1);
    set_bits(notes, "found", &first->found, 1);
    set_bits(notes, "bits", &wrong, 1);
}

static void add_second_look(struct facts *notes, enum device_screen_path path,
                            const struct device_screen_answer *answer)
{
    const struct device_second_look *again = &answer->again;
    if (!again->launches)
        return;
    facts_set_int(notes, "again", again->launches);
    facts_set_int(notes, "again_wrong", again->wrong);
    if (answer->result_count)
        add_results(notes, path, answer);
    if (!isnan(again->sm_mhz))
        facts_set_real(notes, "sm_mhz", again->sm_mhz);
    if (!isnan(again->power_w))
        facts_set_real(notes, "power_w", again->power_w);
    if (!isnan(again->temperature_c))
        facts_set_real(notes, "temperature_c", again->temperature_c);
}

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
        measures_add(context->measures, metrics[path].wrong,
                     (double)answer->wrong_launches + answer->again.wrong, "",
                     "launches with hashes of warps that are not those of most warps");
    m->n = answer->launches + answer->again.launches;
    facts_set_int(&m->notes, "of", m->n);
    facts_set_int(&m->notes, "hashes", (int64_t)sum.count);
    facts_set_int(&m->notes, "hashes_wrong", (int64_t)sum.wrong);
    m = measures_add(context->measures, metrics[path].place, (double)(sum.worst / DEVICE_SUB_CORES),
                     "id", "the SM with the sub-core that has most of them");
    facts_set_int(&m->notes, "sub_core", (int64_t)(sum.worst % DEVICE_SUB_CORES));
    facts_set_int(&m->notes, "wrong", answer->places[sum.worst].wrong);
    facts_set_int(&m->notes, "of", answer->places[sum.worst].count);
    add_second_look(&m->notes, path, answer);
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
    screened->no_memory += rc == -ENOMEM;
    if (rc == -ENOTSUP || rc == -ENOMEM)
        return 0;
    if (rc)
        return err_set(err, rc, "%s: %s", device_screen_names[path], own.text);
    add_wrong(context, path, &answer, screened);
    if (answer.code || device_screen_rows[path].by_host)
        measures_add(context->measures, metrics[path].digest,
                     (double)(answer.digest % DIGEST_VALUES), "id", "of the hash of most warps");
    screened->code = answer.code;
    if (answer.not_as_host)
        measures_add(context->measures, metrics[path].host, 1, "",
                     "most warps agree on another hash than the host");
    screened->paths++;
    device_screen_answer_fini(&answer);
    return 0;
}

static void screened_report(struct probe_context *context, const struct screened *screened)
{
    struct measure *m =
        measures_add(context->measures, "compute.screen", (double)screened->wrong, "",
                     "hashes of warps that are not those of most warps, over all paths");
    facts_set_int(&m->notes, "of", (int64_t)screened->hashes);
    facts_set_int(&m->notes, "paths", screened->paths);
    facts_set_int(&m->notes, "sub_cores", screened->least_places);
    m->n = (uint32_t)(screened->hashes < UINT32_MAX ? screened->hashes : UINT32_MAX);
    if (screened->no_memory)
        facts_set_int(&m->notes, "too_little_memory", screened->no_memory);
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
    "compute.wrong_on." name, "compute.wrong_at." name, "compute.digest." name,                    \
        "compute.not_as_host." name,
const struct probe probe_compute_screen = {
    .description = {"compute.screen", "whether every SM computes right, with operands of any bits",
                    PROFILE_STANDARD},
    .metrics = {"compute.screen", "compute.code", SCREENS(SCREEN_NAMES)},
    .run = compute_screen_run,
};
