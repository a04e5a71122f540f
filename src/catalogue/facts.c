/* The catalogue of facts: a row each. */
#include "catalogue/facts.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "inventory/fabric.h"

enum { CELSIUS_MAX = 200, BANKS_MAX = 640 };

#define CELSIUS -CELSIUS_MAX, CELSIUS_MAX
#define ECC_TOTAL(error)                                                                           \
    {                                                                                              \
        NVML_SHAPE_ECC_TOTAL, "nvmlDeviceGetTotalEccErrors",                                       \
        {                                                                                          \
            error, NVML_SINCE_RESET                                                                \
        }                                                                                          \
    }
#define ECC_AT(error, place)                                                                       \
    {                                                                                              \
        NVML_SHAPE_ECC_AT, "nvmlDeviceGetMemoryErrorCounter",                                      \
        {                                                                                          \
            error, NVML_EVER, place                                                                \
        }                                                                                          \
    }
#define RETIRED(cause)                                                                             \
    {                                                                                              \
        NVML_SHAPE_RETIRED, "nvmlDeviceGetRetiredPages",                                           \
        {                                                                                          \
            cause                                                                                  \
        }                                                                                          \
    }
#define REMAPPED(number)                                                                           \
    {                                                                                              \
        NVML_SHAPE_REMAPPED, "nvmlDeviceGetRemappedRows",                                          \
        {                                                                                          \
            number                                                                                 \
        }                                                                                          \
    }
#define BANKS(number)                                                                              \
    {                                                                                              \
        NVML_SHAPE_BANKS, "nvmlDeviceGetRowRemapperHistogram",                                     \
        {                                                                                          \
            number                                                                                 \
        }                                                                                          \
    }

const struct health_row catalogue_health[HEALTH_FACTS] = {
    [HEALTH_TEMPERATURE] = {"temperature_c", "temperature",
                            .nvml = {NVML_SHAPE_CHOSEN,
                                     "nvmlDeviceGetTemperature",
                                     {NVML_SENSOR_GPU}},
                            .sim = {50, CELSIUS}, .moment_unit = "&deg;C"},
    [HEALTH_TEMPERATURE_MEMORY] = {"temperature_memory_c", "temperature of the memory",
                                   .nvml = {NVML_SHAPE_FIELD,
                                            "nvmlDeviceGetFieldValues",
                                            {NVML_FIELD_MEMORY_TEMPERATURE}},
                                   .sim = {60, CELSIUS}, .moment_unit = "&deg;C"},
    [HEALTH_TEMPERATURE_MARGIN] = {"temperature_margin_c",
                                   "degrees below the temperature at which the GPU slows down",
                                   .sim = {37, CELSIUS}, .moment_unit = "&deg;C"},
    [HEALTH_POWER_DRAW] = {"power_draw_w", "power",
                           .nvml = {NVML_SHAPE_NUMBER, "nvmlDeviceGetPowerUsage", .divisor = 1000},
                           .moment_unit = "W"},
    [HEALTH_VIOLATION_POWER] = {"violation_power_ns",
                                "time in which the power limit lowered the clock"},
    [HEALTH_VIOLATION_THERMAL] = {"violation_thermal_ns",
                                  "time in which the temperature lowered the clock"},
    [HEALTH_ECC_CORRECTED_VOLATILE] = {"ecc_corrected_volatile",
                                       "corrected ECC errors since the driver was loaded",
                                       .nvml = ECC_TOTAL(NVML_CORRECTED),
                                       .verdict = VERDICT_DEGRADED,
                                       .growth = {GROWTH_COMPARED, 1000, 1e7}, .is_counter = true},
    [HEALTH_ECC_CORRECTED_DRAM] = {"ecc_corrected_dram", "corrected ECC errors of memory",
                                   .nvml = ECC_AT(NVML_CORRECTED, NVML_PLACE_DRAM),
                                   .verdict = VERDICT_DEGRADED,
                                   .growth = {GROWTH_COMPARED, 1000, 1e7}, .is_counter = true},
    [HEALTH_ECC_CORRECTED_SRAM] = {"ecc_corrected_sram", "corrected ECC errors of caches",
                                   .verdict = VERDICT_DEGRADED,
                                   .growth = {GROWTH_COMPARED, 1000, 1e7}, .is_counter = true},
    [HEALTH_ECC_CORRECTED_NEW] = {"ecc_corrected_new", "corrected ECC errors during the survey",
                                  .is_counter = true},
    [HEALTH_ECC_CORRECTED_PER_S] = {"ecc_corrected_per_s",
                                    "corrected ECC errors during the survey, per second"},
    [HEALTH_ECC_UNCORRECTED_VOLATILE] = {"ecc_uncorrected_volatile",
                                         "uncorrectable ECC errors since the driver was loaded",
                                         .nvml = ECC_TOTAL(NVML_UNCORRECTED), .rule = RULE_FAULT,
                                         .verdict = VERDICT_FAILING, .growth = {GROWTH_BY_RULE, 1},
                                         .is_counter = true},
    [HEALTH_ECC_UNCORRECTED_NEW] = {"ecc_uncorrected_new",
                                    "uncorrectable ECC errors during the survey",
                                    .rule = RULE_FAULT, .verdict = VERDICT_FAILING,
                                    .is_counter = true},
    [HEALTH_ECC_UNCORRECTED_DRAM] = {"ecc_uncorrected_dram",
                                     "uncorrectable ECC errors of memory in its life",
                                     .nvml = ECC_AT(NVML_UNCORRECTED, NVML_PLACE_DRAM),
                                     .rule = RULE_HINT, .verdict = VERDICT_FAILING,
                                     .growth = {GROWTH_EVERY, 1}, .is_counter = true},
    [HEALTH_ECC_UNCORRECTED_SRAM] = {"ecc_uncorrected_sram",
                                     "uncorrectable ECC errors of caches in its life",
                                     .rule = RULE_HINT, .verdict = VERDICT_FAILING,
                                     .growth = {GROWTH_EVERY, 1}, .is_counter = true},
    [HEALTH_RETIRED_PAGES_CORRECTED] = {"retired_pages_corrected",
                                        "pages retired after corrected errors",
                                        .nvml = RETIRED(NVML_RETIRED_CORRECTED),
                                        .verdict = VERDICT_DEGRADED, .growth = {GROWTH_EVERY, 1},
                                        .is_counter = true},
    [HEALTH_RETIRED_PAGES_UNCORRECTED] = {"retired_pages_uncorrected",
                                          "pages retired after uncorrectable errors",
                                          .nvml = RETIRED(NVML_RETIRED_UNCORRECTED),
                                          .verdict = VERDICT_DEGRADED, .growth = {GROWTH_EVERY, 1},
                                          .is_counter = true},
    [HEALTH_RETIRED_PAGES_PENDING] =
        {"retired_pages_pending", "page retirement pending", .is_flag = true,
         .nvml = {NVML_SHAPE_FLAG, "nvmlDeviceGetRetiredPagesPendingStatus"}, .rule = RULE_FAULT,
         .verdict = VERDICT_FAILING, .finding = "page retirement is pending: the GPU needs a reset",
         .growth = {GROWTH_BY_RULE, 1}, .is_counter = true},
    [HEALTH_REMAPPED_ROWS_CORRECTED] = {"remapped_rows_corrected",
                                        "rows remapped after corrected errors", .nvml = REMAPPED(0),
                                        .verdict = VERDICT_DEGRADED, .growth = {GROWTH_EVERY, 1},
                                        .is_counter = true},
    [HEALTH_REMAPPED_ROWS_UNCORRECTED] = {"remapped_rows_uncorrected",
                                          "rows remapped after uncorrectable errors",
                                          .nvml = REMAPPED(1), .verdict = VERDICT_DEGRADED,
                                          .growth = {GROWTH_EVERY, 1}, .is_counter = true},
    [HEALTH_REMAP_PENDING] = {"remap_pending", "row remap pending", .is_flag = true,
                              .nvml = REMAPPED(2), .rule = RULE_FAULT, .verdict = VERDICT_FAILING,
                              .finding = "a row remap is pending: the GPU needs a reset",
                              .growth = {GROWTH_BY_RULE, 1}, .is_counter = true},
    [HEALTH_REMAP_FAILED] = {"remap_failed", "row remap failed", .is_flag = true,
                             .nvml = REMAPPED(3), .rule = RULE_FAULT, .verdict = VERDICT_FAILING,
                             .finding = "a row remap failed: the memory cannot be repaired",
                             .growth = {GROWTH_BY_RULE, 1}, .is_counter = true},
    [HEALTH_REMAP_BANKS_MAX] = {"remap_banks_max", "banks of memory with all spare rows",
                                .nvml = BANKS(0), .sim = {BANKS_MAX}},
    [HEALTH_REMAP_BANKS_HIGH] = {"remap_banks_high", "banks of memory with many spare rows left",
                                 .nvml = BANKS(1), .is_counter = true},
    [HEALTH_REMAP_BANKS_PARTIAL] = {"remap_banks_partial",
                                    "banks of memory with some spare rows left", .nvml = BANKS(2),
                                    .is_counter = true},
    [HEALTH_REMAP_BANKS_LOW] = {"remap_banks_low", "banks of memory with few spare rows left",
                                .nvml = BANKS(3), .rule = RULE_FAULT, .verdict = VERDICT_DEGRADED,
                                .growth = {GROWTH_BY_RULE, 1}, .is_counter = true},
    [HEALTH_REMAP_BANKS_NONE] = {"remap_banks_none", "banks of memory without spare rows",
                                 .nvml = BANKS(4), .rule = RULE_FAULT, .verdict = VERDICT_DEGRADED,
                                 .growth = {GROWTH_BY_RULE, 1}, .is_counter = true},
    [HEALTH_INFOROM_VALID] = {"inforom_valid", "the InfoROM is sound", .is_flag = true,
                              .nvml = {NVML_SHAPE_VALID, "nvmlDeviceValidateInforom"},
                              .sim = {true}},
    [HEALTH_PCIE_REPLAYS] = {"pcie_replays", "PCIe replays",
                             .nvml = {NVML_SHAPE_NUMBER, "nvmlDeviceGetPcieReplayCounter"},
                             .verdict = VERDICT_DEGRADED,
                             .growth = {GROWTH_COMPARED, 1000, INFINITY}, .is_counter = true},
    [HEALTH_PCIE_REPLAYS_NEW] = {"pcie_replays_new", "PCIe replays during the survey",
                                 .is_counter = true},
    [HEALTH_PCIE_REPLAYS_PER_S] = {"pcie_replays_per_s",
                                   "PCIe replays during the survey, per second"},
    [HEALTH_NVLINKS_ACTIVE] = {"nvlinks_active", "active NVLinks", .verdict = VERDICT_FAILING,
                               .compared = COMPARED_LOWER},
    [HEALTH_NVLINKS_DOWN] = {"nvlinks_down", "NVLinks down", .is_counter = true},
    [HEALTH_NVLINK_ERRORS] = {"nvlink_errors", "errors on NVLinks", .rule = RULE_HINT,
                              .verdict = VERDICT_FAILING,
                              .growth = {GROWTH_COMPARED, 1000, INFINITY, .degrades = true},
                              .is_counter = true},
    [HEALTH_NVLINK_ERRORS_NEW] = {"nvlink_errors_new", "errors on NVLinks during the survey",
                                  .is_counter = true},
    [HEALTH_NVLINK_ERRORS_PER_S] = {"nvlink_errors_per_s",
                                    "errors on NVLinks during the survey, per second"},
    [HEALTH_PROCESSES] = {"processes", "other processes that compute on the GPU"},
    [HEALTH_THROTTLE] = {"throttle", "reasons that lowered the clock"},
    [HEALTH_XID] = {"xid", "Xid events during the survey"},
    [HEALTH_FABRIC_STATE] = {"fabric_state", "state of the NVLink fabric, or what is wrong there"},
    [HEALTH_FABRIC_CLIQUE] = {FABRIC_CLIQUE, "cluster and clique in the NVLink fabric"},
};

static const char *const compute_modes[] = {"default", "exclusive_thread", "prohibited",
                                            "exclusive_process", NULL};

/* The first word of both is the usual kind, as which a GPU counts that does not say. */
static const char *const virtualizations[] = {
    [NVML_VIRTUALIZATION_NONE] = "none",
    [NVML_VIRTUALIZATION_PASSTHROUGH] = "passthrough",
    [NVML_VIRTUALIZATION_VGPU] = "vgpu",
    [NVML_VIRTUALIZATION_HOST_VGPU] = "host_vgpu",
    [NVML_VIRTUALIZATION_HOST_VSGA] = "host_vsga",
    NULL,
};
static const char *const confidential_modes[] = {
    [NVML_CONFIDENTIAL_OFF] = "off",
    [NVML_CONFIDENTIAL_ON] = "on",
    [NVML_CONFIDENTIAL_PROTECTED_PCIE] = "protected_pcie",
    [NVML_CONFIDENTIAL_ENCRYPTED_NVLINK] = "encrypted_nvlink",
    NULL,
};

#define NUMBER(name)                                                                               \
    {                                                                                              \
        NVML_SHAPE_NUMBER, "nvmlDeviceGet" name                                                    \
    }
#define TEXT(name)                                                                                 \
    {                                                                                              \
        NVML_SHAPE_TEXT, "nvmlDeviceGet" name                                                      \
    }
#define MILLIWATTS(name)                                                                           \
    {                                                                                              \
        NVML_SHAPE_NUMBER, "nvmlDeviceGet" name, .divisor = 1000                                   \
    }
#define PAIR(name, number)                                                                         \
    {                                                                                              \
        NVML_SHAPE_PAIR, "nvmlDeviceGet" name,                                                     \
        {                                                                                          \
            number                                                                                 \
        }                                                                                          \
    }
#define CLOCK(name, clock)                                                                         \
    {                                                                                              \
        NVML_SHAPE_CHOSEN, "nvmlDeviceGet" name,                                                   \
        {                                                                                          \
            clock                                                                                  \
        }                                                                                          \
    }

const struct setting_row catalogue_settings[] = {
    {INVENTORY_HARDWARE, "sms", "SMs"},
    {INVENTORY_HARDWARE, "cores", .nvml = NUMBER("NumGpuCores")},
    {INVENTORY_HARDWARE, "l2_bytes", "L2"},
    {INVENTORY_HARDWARE, "memory_bytes", "memory"},
    {INVENTORY_HARDWARE, "memory_bus_bits", "memory bus"},
    {INVENTORY_HARDWARE, "sm_clock_max_mhz", "highest SM clock"},
    {INVENTORY_HARDWARE, "pcie_gen_max", "highest PCIe generation",
     NUMBER("MaxPcieLinkGeneration")},
    {INVENTORY_HARDWARE, "pcie_width_max", "most PCIe lanes", NUMBER("MaxPcieLinkWidth")},

    /* Only versions of the board are compared: serial and part numbers may differ. */
    {INVENTORY_BOARD, "serial", .nvml = TEXT("Serial")},
    {INVENTORY_BOARD, "part", "board part", TEXT("BoardPartNumber"), COMPARED_KIND},
    {INVENTORY_BOARD, "vbios", "VBIOS", TEXT("VbiosVersion"), COMPARED_DIFFERENT,
     VERDICT_MISCONFIGURED, .by_board = true},
    {INVENTORY_BOARD, "inforom", "InfoROM", TEXT("InforomImageVersion"), COMPARED_DIFFERENT,
     VERDICT_MISCONFIGURED, .by_board = true},
    {INVENTORY_BOARD, "mig_parent", "UUID of the GPU that the MIG instance is a part of",
     .nvml = {NVML_SHAPE_TEXT, "nvmlDeviceGetUUID", .of = NVML_OF_PARENT}},
    {INVENTORY_BOARD, "driver", .compared = COMPARED_DIFFERENT, .verdict = VERDICT_MISCONFIGURED},

    {INVENTORY_CONFIG, "compute_mode",
     .nvml = {NVML_SHAPE_WORD, "nvmlDeviceGetComputeMode", .words = compute_modes}},
    {INVENTORY_CONFIG, "persistence", .nvml = {NVML_SHAPE_FLAG, "nvmlDeviceGetPersistenceMode"}},
    {INVENTORY_CONFIG, "ecc", "ECC", PAIR("EccMode", 0)},
    {INVENTORY_CONFIG, "ecc_pending", .nvml = PAIR("EccMode", 1), .compared = COMPARED_NOT},
    {INVENTORY_CONFIG, "mig", "MIG", PAIR("MigMode", 0)},
    {INVENTORY_CONFIG, "mig_pending", .nvml = PAIR("MigMode", 1), .compared = COMPARED_NOT},
    /* Only of MIG instances. */
    {INVENTORY_CONFIG, "mig_profile", "MIG profile", .compared = COMPARED_NOT},
    {INVENTORY_CONFIG, "mig_gpu_instance", "GPU instance",
     .nvml = {NVML_SHAPE_NUMBER, "nvmlDeviceGetGpuInstanceId", .of = NVML_OF_INSTANCE},
     .compared = COMPARED_KIND}, /* the place on the die follows from it */
    {INVENTORY_CONFIG, "mig_compute_instance", "compute instance",
     .nvml = {NVML_SHAPE_NUMBER, "nvmlDeviceGetComputeInstanceId", .of = NVML_OF_INSTANCE},
     .compared = COMPARED_NOT},
    {INVENTORY_CONFIG, "mig_sm_share", "share of the SMs of the GPU", .compared = COMPARED_NOT},
    {INVENTORY_CONFIG, "mig_memory_share", "share of the memory of the GPU",
     .compared = COMPARED_NOT},
    {INVENTORY_CONFIG, "health_of", "what health, power and clocks are of",
     .compared = COMPARED_NOT},
    {INVENTORY_CONFIG, "virtualization", "virtualization",
     .nvml = {NVML_SHAPE_WORD, "nvmlDeviceGetVirtualizationMode", .words = virtualizations},
     .compared = COMPARED_KIND, .figures = "host."},
    {INVENTORY_CONFIG, "confidential_computing", "confidential computing",
     .nvml = {NVML_SHAPE_CONFIDENTIAL, "nvmlSystemGetConfComputeState",
              .words = confidential_modes},
     .compared = COMPARED_KIND, .figures = "host."},
    {INVENTORY_CONFIG, "confidential_devtools", "developer tools in confidential computing",
     .nvml = {NVML_SHAPE_CONFIDENTIAL, "nvmlSystemGetConfComputeState", {true}},
     .compared = COMPARED_NOT},
    {INVENTORY_CONFIG, "power_limit_w", NULL, MILLIWATTS("PowerManagementLimit"),
     COMPARED_DIFFERENT, VERDICT_MISCONFIGURED, .by_board = true},
    /* The board has this value; software cannot change it. */
    {INVENTORY_CONFIG, "power_limit_default_w", NULL, MILLIWATTS("PowerManagementDefaultLimit"),
     COMPARED_DIFFERENT, VERDICT_MISMATCHED, .by_board = true},
    {INVENTORY_CONFIG, "sm_clock_limit_mhz", "SM clock limit",
     CLOCK("MaxClockInfo", NVML_CLOCK_OF_SM)},
    {INVENTORY_CONFIG, "memory_clock_limit_mhz",
     .nvml = CLOCK("MaxClockInfo", NVML_CLOCK_OF_MEMORY)},
    {INVENTORY_CONFIG, "sm_clock_application_mhz", "SM application clock",
     CLOCK("ApplicationsClock", NVML_CLOCK_OF_SM)},
    {INVENTORY_CONFIG, "sm_clock_application_default_mhz", "default SM application clock",
     CLOCK("DefaultApplicationsClock", NVML_CLOCK_OF_SM), COMPARED_DIFFERENT, VERDICT_MISMATCHED,
     .by_board = true},
    {INVENTORY_CONFIG, "memory_clock_application_mhz", "memory application clock",
     CLOCK("ApplicationsClock", NVML_CLOCK_OF_MEMORY)},
    {INVENTORY_CONFIG, "memory_free_bytes", "free memory", .compared = COMPARED_NOT,
     .moment_unit = "B"},
    {INVENTORY_CONFIG, "l2_fetch_limit_bytes", "L2 fetch limit"},
    {INVENTORY_CONFIG, "pcie_gen", "PCIe generation", .compared = COMPARED_LOWER,
     .verdict = VERDICT_DEGRADED},
    {INVENTORY_CONFIG, "pcie_width", "PCIe lanes", .compared = COMPARED_LOWER,
     .verdict = VERDICT_DEGRADED},
    {INVENTORY_CONFIG, "pcie_under_load", .compared = COMPARED_NOT},
};
const size_t catalogue_setting_count = COUNT_OF(catalogue_settings);

static const struct setting_row *setting_find(const char *key)
{
    for (size_t i = 0; i < COUNT_OF(catalogue_settings); i++)
        if (strcmp(catalogue_settings[i].key, key) == 0)
            return &catalogue_settings[i];
    return NULL;
}

static const struct health_row *health_find(const char *key)
{
    for (size_t i = 0; i < HEALTH_FACTS; i++)
        if (strcmp(catalogue_health[i].key, key) == 0)
            return &catalogue_health[i];
    return NULL;
}

struct fact_manner catalogue_manner(enum inventory_facts set, const char *key)
{
    static const struct fact_manner usual[INVENTORY_FACTS_COUNT] = {
        [INVENTORY_HARDWARE] = {COMPARED_DIFFERENT, VERDICT_MISMATCHED, false},
        [INVENTORY_BOARD] = {COMPARED_NOT, 0, false},
        [INVENTORY_CONFIG] = {COMPARED_DIFFERENT, VERDICT_MISCONFIGURED, false},
        [INVENTORY_HEALTH] = {COMPARED_NOT, 0, false},
    };
    const struct setting_row *setting = setting_find(key);
    const struct health_row *health = health_find(key);
    if (set == INVENTORY_HEALTH && health && health->compared)
        return (struct fact_manner){health->compared, health->verdict, false};
    if (setting && setting->set == set && setting->compared)
        return (struct fact_manner){setting->compared, setting->verdict, setting->by_board};
    return usual[set];
}

bool catalogue_kind_changes(const struct setting_row *row, const char *figure)
{
    return row->compared == COMPARED_KIND && row->figures &&
           strncmp(figure, row->figures, strlen(row->figures)) == 0;
}

const char *const *catalogue_setting_words(const char *key)
{
    const struct setting_row *row = key ? setting_find(key) : NULL;
    return row ? row->nvml.words : NULL;
}

static const struct {
    const char *key; /* of the fact that tells it */
    int word;        /* the number of the word that does; 0: each but the usual one */
} gpu_kinds[GPU_KINDS] = {
    [GPU_KIND_INSTANCE] = {"mig_profile"},
    [GPU_KIND_VIRTUAL] = {"virtualization", NVML_VIRTUALIZATION_VGPU},
    [GPU_KIND_CONFIDENTIAL] = {"confidential_computing"},
    [GPU_KIND_CONFIDENTIAL_ALONE] = {"confidential_computing", NVML_CONFIDENTIAL_ON},
};

const char *gpu_kind_key(enum gpu_kind kind)
{
    return gpu_kinds[kind].key;
}

bool gpu_kind_is(enum gpu_kind kind, const char *word)
{
    const char *const *words = catalogue_setting_words(gpu_kinds[kind].key);
    if (!word || !*word)
        return false;
    if (gpu_kinds[kind].word)
        return strcmp(word, words[gpu_kinds[kind].word]) == 0;
    return !words || strcmp(word, words[0]) != 0;
}

bool catalogue_kind_is_usual(const struct setting_row *row, const struct fact *fact)
{
    return !fact || fact->kind == FACT_UNKNOWN ||
           (row->nvml.words && fact->kind == FACT_TEXT &&
            strcmp(fact->text, row->nvml.words[0]) == 0);
}

bool catalogue_kinds_differ(const struct kind_view *is, const struct kind_view *other,
                            const char *figure)
{
    for (size_t i = 0; i < COUNT_OF(catalogue_settings); i++) {
        const struct setting_row *row = &catalogue_settings[i];
        if (!catalogue_kind_changes(row, figure))
            continue;
        const struct fact a = is->read(is, row);
        const struct fact b = other ? other->read(other, row) : (struct fact){0};
        bool usual = catalogue_kind_is_usual(row, &a);
        if (usual != catalogue_kind_is_usual(row, &b) || (!usual && !fact_equal(&a, &b)))
            return true;
    }
    return false;
}

static struct fact read_inventory_kind(const struct kind_view *view, const struct setting_row *row)
{
    const struct fact *fact = inventory_fact_of(view->from, view->gpu, row->set, row->key);
    return fact ? *fact : (struct fact){0};
}

struct kind_view catalogue_kind_view(const struct inventory_lookup *lookup,
                                     const struct inventory_gpu *gpu)
{
    return (struct kind_view){.read = read_inventory_kind, .from = lookup, .gpu = gpu};
}

void catalogue_put_kinds(const struct facts *config, struct strbuf *out)
{
    for (size_t i = 0; i < COUNT_OF(catalogue_settings); i++) {
        const struct setting_row *row = &catalogue_settings[i];
        const struct fact *fact = facts_get(config, row->key);
        if (row->compared == COMPARED_KIND && row->nvml.words && fact && fact->kind == FACT_TEXT &&
            !catalogue_kind_is_usual(row, fact))
            strbuf_printf(out, ", %s %s", row->words, fact->text);
    }
}

const char *catalogue_words(const char *key)
{
    const struct setting_row *setting = setting_find(key);
    const struct health_row *health = setting ? NULL : health_find(key);
    return setting ? setting->words : health && health->compared ? health->words : NULL;
}

const char *catalogue_moment_unit(const char *key)
{
    const struct setting_row *setting = setting_find(key);
    const struct health_row *health = health_find(key);
    return setting ? setting->moment_unit : health ? health->moment_unit : NULL;
}
