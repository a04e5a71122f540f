/* The table of probes, and which of them a survey runs in which order. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "catalogue/facts.h"
#include "probes/probe.h"

/* One row per line. */
/* clang-format off */
const struct probe *const probe_table[] = {
    &probe_l1_data_global,
    &probe_caches[STUDY_L1_DATA][CACHE_LINE],
    &probe_caches[STUDY_L1_DATA][CACHE_SIZE],
    &probe_caches[STUDY_L1_DATA][CACHE_LATENCY],
    &probe_caches[STUDY_TEXTURE][CACHE_LINE],
    &probe_caches[STUDY_TEXTURE][CACHE_SIZE],
    &probe_caches[STUDY_TEXTURE][CACHE_LATENCY],
    &probe_caches[STUDY_READ_ONLY][CACHE_LINE],
    &probe_caches[STUDY_READ_ONLY][CACHE_SIZE],
    &probe_caches[STUDY_READ_ONLY][CACHE_LATENCY],
    &probe_caches[STUDY_CONSTANT_L15][CACHE_LINE],
    &probe_caches[STUDY_CONSTANT_L15][CACHE_SIZE],
    &probe_caches[STUDY_CONSTANT_L15][CACHE_LATENCY],
    &probe_caches[STUDY_CONSTANT_L1][CACHE_LINE],
    &probe_caches[STUDY_CONSTANT_L1][CACHE_SIZE],
    &probe_caches[STUDY_CONSTANT_L1][CACHE_LATENCY],
    &probe_sm_groups,
    &probe_cache_shared,
    &probe_cache_per_sm,
    &probe_shared_carveout,
    &probe_shared_carveouts,
    &probe_main_latency,
    &probe_main_size,
    &probe_main_bandwidth_read,
    &probe_main_bandwidth_write,
    &probe_main_bandwidth_copy,
    &probe_main_equal_read,
    &probe_main_equal_write,
    &probe_main_equal_copy,
    &probe_compute_check,
    &probe_compute_screen,
    &probe_l2_latency,
    &probe_l2_part_sms,
    &probe_l2_line,
    &probe_l2_size,
    &probe_l2_bandwidth_read,
    &probe_l2_bandwidth_write,
    &probe_l2_bandwidth_copy,
    &probe_l2_equal_read,
    &probe_l2_equal_write,
    &probe_main_first_end,
    &probe_l2_first_end,
    &probe_l1_data_bandwidth_read,
    &probe_l1_data_bandwidth_write,
    &probe_texture_bandwidth_read,
    &probe_read_only_bandwidth_read,
    &probe_constant_bandwidth_read,
    &probe_shared_size,
    &probe_shared_latency,
    &probe_shared_bandwidth_read,
    &probe_shared_bandwidth_write,
    &probe_bandwidth_widths,
    &probe_shared_banks,
    &probe_surfaces,
    &probe_main_latency_loaded,
    &probe_l2_latency_loaded,
    &probe_l2_way,
    &probe_host_latency,
    &probe_host_bandwidth_h2d,
    &probe_host_bandwidth_d2h,
    &probe_host_bandwidth_both,
    &probe_clock_sm,
    &probe_clock_memory,
    &probe_instructions,
    &probe_instruction_cache,
    &probe_jumping_code,
    &probe_code_and_constants,
    &probe_cluster_groups,
    &probe_cluster_latency,
    &probe_cluster_bandwidth,
    &probe_bulk_copy_latency,
    &probe_bulk_copy_bandwidth,
    &probe_sm_l1_latency,
    &probe_sm_l2_latency,
    &probe_load,
    &probe_host_together,
    &probe_links,
    &probe_die_map,
    &probe_die_bandwidth,
    &probe_structures[STUDY_L1_DATA],
    &probe_structures[STUDY_TEXTURE],
    &probe_structures[STUDY_READ_ONLY],
    &probe_structures[STUDY_CONSTANT_L1],
    &probe_structures[STUDY_CONSTANT_L15],
    &probe_structure_l2,
    &probe_l2_prefetch,
    &probe_memory_whole,
    &probe_memory_march,
    &probe_compute_pulse,
    &probe_die_memory,
    &probe_tlb,
    &probe_spectrum,
    NULL,
};

/* clang-format on */

/* What GPUs of a kind cannot measure. */
static const struct unmeasurable {
    enum gpu_kind kind;
    const char *metrics; /* those that begin like this */
    const char *reason;
} unmeasurable[] = {
    {GPU_KIND_INSTANCE, "links.", "a MIG instance has no links to other GPUs"},
    {GPU_KIND_INSTANCE, "host.together.", "the MIG instances of a GPU share its host link"},
    {GPU_KIND_INSTANCE, "die.", "a MIG instance sees a part of the die"},
    {GPU_KIND_INSTANCE, "load.power.",
     "the power of the whole GPU is reported, not that of a MIG instance"},
    {GPU_KIND_INSTANCE, "load.per_joule",
     "the power of the whole GPU is reported, not that of a MIG instance"},
    {GPU_KIND_INSTANCE, "load.temperature", "the temperature is that of the whole GPU"},
    {GPU_KIND_INSTANCE, "main.whole.ecc_", "the ECC counters are those of the whole GPU"},
    {GPU_KIND_INSTANCE, "main.march.ecc_", "the ECC counters are those of the whole GPU"},
    {GPU_KIND_INSTANCE, "compute.pulse_step",
     "the power of the whole GPU is reported, not that of a MIG instance"},
    {GPU_KIND_VIRTUAL, "links.", "a virtual GPU has no links to other GPUs"},
    {GPU_KIND_VIRTUAL, "host.together.", "the virtual GPUs of a GPU share its host link"},
    {GPU_KIND_VIRTUAL, "die.",
     "a virtual GPU gets its GPU in turn with others, which disturb its map"},
    {GPU_KIND_VIRTUAL, "load.",
     "others may use the GPU of a virtual GPU meanwhile; its power is not known"},
    {GPU_KIND_VIRTUAL, "compute.pulse", "others may use the GPU of a virtual GPU meanwhile"},
    {GPU_KIND_VIRTUAL, "compute.hot", "others may use the GPU of a virtual GPU meanwhile"},
    {GPU_KIND_VIRTUAL, "main.whole.", "a virtual GPU has a part of the memory of its GPU"},
    {GPU_KIND_VIRTUAL, "main.march.", "a virtual GPU has a part of the memory of its GPU"},
    {GPU_KIND_CONFIDENTIAL_ALONE, "links.",
     "with confidential computing, GPUs do not reach each other"},
    {GPU_KIND_CONFIDENTIAL, "host.latency",
     "with confidential computing, the GPU does not load from the host's memory"},
};

const char *probe_unmeasurable(const struct facts *config, const char *entry)
{
    for (size_t i = 0; config && i < COUNT_OF(unmeasurable); i++) {
        const struct unmeasurable *row = &unmeasurable[i];
        if (gpu_kind_is(row->kind, facts_text(config, gpu_kind_key(row->kind))) &&
            strncmp(entry, row->metrics, strlen(row->metrics)) == 0)
            return row->reason;
    }
    return NULL;
}

int probe_profile_parse(const char *word, enum probe_profile *out_profile)
{
    static const char *const words[] = {"quick", "standard", "full"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp(word, words[i]) == 0) {
            *out_profile = (enum probe_profile)i;
            return 0;
        }
    }
    return -EINVAL;
}

_Static_assert(COUNT_OF(probe_table) <= PROBES_MAX, "room in every selection");

size_t probe_count(void)
{
    return sizeof probe_table / sizeof *probe_table - 1;
}

struct probe_description probe_describe(size_t i)
{
    return probe_table[i]->description;
}

static size_t table_find(const char *name)
{
    size_t i = 0;
    while (i < probe_count() && strcmp(probe_table[i]->description.name, name) != 0)
        i++;
    return i;
}

/* A word names a probe, or a group: the part before the dot. */
static bool matches(const char *name, const char *word, size_t length)
{
    return strncmp(name, word, length) == 0 && (name[length] == '\0' || name[length] == '.');
}

static int unknown(const char *word, struct err *err)
{
    const char **names = mem_array(probe_count(), sizeof *names);
    for (size_t i = 0; i < probe_count(); i++)
        names[i] = probe_table[i]->description.name;
    const char *near = str_nearest(word, names, probe_count());
    int rc = near ? err_set(err, -EINVAL, "no probe is called \"%.60s\"; did you mean \"%s\"?",
                            word, near)
                  : err_set(err, -EINVAL, "no probe is called \"%.60s\"; --list-probes names them",
                            word);
    free(names);
    return rc;
}

static int mark_list(const char *list, bool *wanted, struct err *err)
{
    for (const char *word = list; word;) {
        const char *comma = strchr(word, ',');
        size_t length = comma ? (size_t)(comma - word) : strlen(word);
        bool any = false;
        for (size_t i = 0; i < probe_count() && length; i++) {
            if (matches(probe_table[i]->description.name, word, length))
                wanted[i] = any = true;
        }
        if (!any) {
            char *copy = str_copy_n(word, length);
            int rc = unknown(copy, err);
            free(copy);
            return rc;
        }
        word = comma ? comma + 1 : NULL;
    }
    return 0;
}

/* Depth first: the dependencies of a probe come before it. The table has no cycles (a test checks
 * this). */
static void visit(size_t i, bool *placed, struct probe_selection *out)
{
    if (placed[i])
        return;
    placed[i] = true;
    for (size_t d = 0; d < PROBE_LIST_MAX && probe_table[i]->depends[d]; d++)
        visit(table_find(probe_table[i]->depends[d]), placed, out);
    out->indices[out->count++] = i;
}

int probes_select(enum probe_profile profile, const char *list, struct probe_selection *out,
                  struct err *err)
{
    struct probe_selection selection = {.indices = mem_array(probe_count(), sizeof(size_t))};
    bool *wanted = mem_array(probe_count(), sizeof *wanted);
    bool *placed = mem_array(probe_count(), sizeof *placed);
    int rc = list ? mark_list(list, wanted, err) : 0;
    for (size_t i = 0; i < probe_count() && !list; i++)
        wanted[i] = probe_table[i]->description.profile <= profile;
    for (size_t i = 0; i < probe_count() && !rc; i++)
        if (wanted[i]) {
            selection.named[i] = list != NULL;
            visit(i, placed, &selection);
        }
    free(wanted);
    free(placed);
    if (rc)
        free(selection.indices);
    else
        *out = selection;
    return rc;
}

void probes_add(struct probe_selection *selection, const char *name)
{
    size_t at = table_find(name);
    for (size_t i = 0; i < selection->count; i++)
        if (selection->indices[i] == at)
            return;
    selection->indices[selection->count++] = at;
}

void probes_remove(struct probe_selection *selection, const char *name)
{
    size_t kept = 0, at = table_find(name);
    for (size_t i = 0; i < selection->count; i++)
        if (selection->indices[i] != at)
            selection->indices[kept++] = selection->indices[i];
    selection->count = kept;
}

bool probe_entry_is_group(const char *entry)
{
    size_t length = strlen(entry);
    return length > 1 && entry[length - 1] == '*';
}

bool probe_entry_is(const char *entry, const char *metric)
{
    if (probe_entry_is_group(entry))
        return strncmp(entry, metric, strlen(entry) - 1) == 0;
    return strcmp(entry, metric) == 0;
}

static bool reports(const struct probe *probe, const char *metric)
{
    for (size_t k = 0; k < PROBE_LIST_MAX && probe->metrics[k]; k++)
        if (probe_entry_is(probe->metrics[k], metric))
            return true;
    return false;
}

const char *probe_of_metric(const char *metric)
{
    for (size_t i = 0; i < probe_count(); i++)
        if (reports(probe_table[i], metric))
            return probe_table[i]->description.name;
    return NULL;
}

bool probe_reports(const char *metric, const char **out_nearest)
{
    enum { NAMES_MAX = 256 };
    const char *names[NAMES_MAX];
    size_t count = 0;
    *out_nearest = NULL;
    if (probe_of_metric(metric))
        return true;
    for (size_t i = 0; i < probe_count(); i++)
        for (size_t k = 0; k < PROBE_LIST_MAX && probe_table[i]->metrics[k]; k++)
            if (count < NAMES_MAX && !probe_entry_is_group(probe_table[i]->metrics[k]))
                names[count++] = probe_table[i]->metrics[k];
    *out_nearest = str_nearest(metric, names, count);
    return false;
}
