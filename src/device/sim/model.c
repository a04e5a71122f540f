/* Reads the model of a simulated GPU from YAML. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/number.h"
#include "device/sim/model.h"

enum { BANDWIDTH_MAX = 1000000, MHZ_MAX = 100000 };

struct model_text {
    const char *name;
    uint32_t sms, sms_per_tpc, sms_per_cpc;
    bool translate_first;
    int sm_order;
    const struct yaml_node *sms_per_gpc, *pci, *clock, *timer, *noise, *caches, *carveout, *l2,
        *tlb, *paths, *clusters, *instructions, *instruction_caches;
    const struct yaml_node *memory, *shared, *bandwidth, *hardware, *board, *config, *health;
};

static const char *const order_words[] = {"along", "across", NULL};

static const struct yaml_field model_fields[] = {
    {"name", YAML_STRING, offsetof(struct model_text, name), true},
    {"sms", YAML_U32, offsetof(struct model_text, sms), true, 1, SIM_SMS_MAX},
    {"sms_per_tpc", YAML_U32, offsetof(struct model_text, sms_per_tpc), .min = 1, .max = 64},
    {"sms_per_gpc", YAML_NODE, offsetof(struct model_text, sms_per_gpc)},
    {"sms_per_cpc", YAML_U32, offsetof(struct model_text, sms_per_cpc), .min = 1, .max = 64},
    {"sm_order", YAML_WORD, offsetof(struct model_text, sm_order), .words = order_words},
    {"pci", YAML_NODE, offsetof(struct model_text, pci)},
    {"clock", YAML_NODE, offsetof(struct model_text, clock)},
    {"timer", YAML_NODE, offsetof(struct model_text, timer)},
    {"noise", YAML_NODE, offsetof(struct model_text, noise)},
    {"caches", YAML_NODE, offsetof(struct model_text, caches)},
    {"carveout", YAML_NODE, offsetof(struct model_text, carveout)},
    {"l2", YAML_NODE, offsetof(struct model_text, l2), true},
    {"tlb", YAML_NODE, offsetof(struct model_text, tlb)},
    {"translate_first", YAML_BOOL, offsetof(struct model_text, translate_first)},
    {"paths", YAML_NODE, offsetof(struct model_text, paths), true},
    {"memory", YAML_NODE, offsetof(struct model_text, memory), true},
    {"shared", YAML_NODE, offsetof(struct model_text, shared)},
    {"clusters", YAML_NODE, offsetof(struct model_text, clusters)},
    {"instructions", YAML_NODE, offsetof(struct model_text, instructions)},
    {"instruction_caches", YAML_NODE, offsetof(struct model_text, instruction_caches)},
    {"bandwidth", YAML_NODE, offsetof(struct model_text, bandwidth)},
    {"hardware", YAML_NODE, offsetof(struct model_text, hardware)},
    {"board", YAML_NODE, offsetof(struct model_text, board)},
    {"config", YAML_NODE, offsetof(struct model_text, config)},
    {"health", YAML_NODE, offsetof(struct model_text, health)},
};

static const struct yaml_field clock_fields[] = {
    {"sm_mhz", YAML_F64, offsetof(struct sim_clock, sm_mhz), .min = 1, .max = MHZ_MAX},
    {"idle_mhz", YAML_F64, offsetof(struct sim_clock, idle_mhz), .min = 1, .max = MHZ_MAX},
    {"ramp_ms", YAML_F64, offsetof(struct sim_clock, ramp_ms), .min = 0, .max = 1e5},
    {"memory_mhz", YAML_F64, offsetof(struct sim_clock, memory_mhz), .min = 1, .max = MHZ_MAX},
};

struct timer_text {
    const struct yaml_node *overhead_cycles;
    double granularity_cycles;
};

static const struct yaml_field timer_fields[] = {
    {"overhead_cycles", YAML_NODE, offsetof(struct timer_text, overhead_cycles)},
    {"granularity_cycles", YAML_F64, offsetof(struct timer_text, granularity_cycles), .min = 1,
     .max = 1000},
};

static const struct yaml_field noise_fields[] = {
    {"jitter_cycles", YAML_F64, offsetof(struct sim_noise, jitter_cycles), .min = 0, .max = 1e5},
    {"spike_rate", YAML_F64, offsetof(struct sim_noise, spike_rate), .min = 0, .max = 0.5},
    {"spike_cycles", YAML_F64, offsetof(struct sim_noise, spike_cycles), .min = 0, .max = 1e6},
    {"bandwidth", YAML_F64, offsetof(struct sim_noise, bandwidth), .min = 0, .max = 0.2},
};

static const struct yaml_field memory_fields[] = {
    {"size", YAML_BYTES, offsetof(struct sim_model, memory_bytes), true, 1 << 20, 0x1p41},
    {"constant", YAML_BYTES, offsetof(struct sim_model, constant_bytes), .min = 1024,
     .max = 1 << 20},
    {"host", YAML_BYTES, offsetof(struct sim_model, host_bytes), .min = 4096, .max = 0x1p41},
    {"clocked", YAML_F64, offsetof(struct sim_model, dram_clocked), .min = 0, .max = 1},
    {"slow_share", YAML_F64, offsetof(struct sim_model, dram_slow_share), .min = 0, .max = 0.5},
    {"slow_cycles", YAML_F64, offsetof(struct sim_model, dram_slow_cycles), .min = 0, .max = 1e5},
    {"constant_first_cycles", YAML_F64, offsetof(struct sim_model, constant_first_cycles), .min = 0,
     .max = 1e5},
};

static const struct yaml_field shared_fields[] = {
    {"size", YAML_BYTES, offsetof(struct sim_model, shared_bytes_max), .min = 1024, .max = 1 << 24},
    {"conflict_cycles", YAML_F64, offsetof(struct sim_model, banks.conflict_cycles), .min = 0,
     .max = 1000},
    {"banks", YAML_U32, offsetof(struct sim_model, banks.count), .min = 1, .max = SIM_BANKS_MAX},
    {"bank_width", YAML_U32, offsetof(struct sim_model, banks.bank_bytes), .min = 4, .max = 16},
    {"interleave", YAML_U32, offsetof(struct sim_model, banks.interleave_bytes), .min = 4,
     .max = 16},
    {"pass_cycles", YAML_F64, offsetof(struct sim_model, banks.pass_cycles), .min = 0, .max = 1000},
    {"load_cycles", YAML_F64, offsetof(struct sim_model, banks.load_cycles), .min = 0, .max = 1000},
};

static const struct yaml_field bandwidth_fields[] = {
    {"sm", YAML_F64, offsetof(struct sim_bandwidth, sm), .min = 0.1, .max = BANDWIDTH_MAX},
    {"l1", YAML_F64, offsetof(struct sim_bandwidth, l1), .min = 0.1, .max = BANDWIDTH_MAX},
    {"shared", YAML_F64, offsetof(struct sim_bandwidth, shared), .min = 0.1, .max = BANDWIDTH_MAX},
    {"shared_write", YAML_F64, offsetof(struct sim_bandwidth, shared_write), .min = 0.1,
     .max = BANDWIDTH_MAX},
    {"read_only", YAML_F64, offsetof(struct sim_bandwidth, read_only), .min = 0.1,
     .max = BANDWIDTH_MAX},
    {"texture", YAML_F64, offsetof(struct sim_bandwidth, texture), .min = 0.1,
     .max = BANDWIDTH_MAX},
    {"constants", YAML_F64, offsetof(struct sim_bandwidth, constants), .min = 0.1,
     .max = BANDWIDTH_MAX},
    {"gpc", YAML_F64, offsetof(struct sim_bandwidth, gpc), .min = 0.1, .max = BANDWIDTH_MAX},
    {"l2_read", YAML_F64, offsetof(struct sim_bandwidth, l2_read), .min = 0.1,
     .max = BANDWIDTH_MAX},
    {"l2_write", YAML_F64, offsetof(struct sim_bandwidth, l2_write), .min = 0.1,
     .max = BANDWIDTH_MAX},
    {"l2_way", YAML_F64, offsetof(struct sim_bandwidth, l2_way), .min = 0.1, .max = BANDWIDTH_MAX},
    {"main_read", YAML_F64, offsetof(struct sim_bandwidth, main_read), .min = 0.1,
     .max = BANDWIDTH_MAX},
    {"main_write", YAML_F64, offsetof(struct sim_bandwidth, main_write), .min = 0.1,
     .max = BANDWIDTH_MAX},
    {"main_copy", YAML_F64, offsetof(struct sim_bandwidth, main_copy), .min = 0.1,
     .max = BANDWIDTH_MAX},
    {"main_add", YAML_F64, offsetof(struct sim_bandwidth, main_add), .min = 0.1,
     .max = BANDWIDTH_MAX},
    {"equal_l2_read", YAML_F64, offsetof(struct sim_bandwidth, equal_l2_read), .min = 0.1,
     .max = 1},
    {"equal_l2_write", YAML_F64, offsetof(struct sim_bandwidth, equal_l2_write), .min = 0.1,
     .max = 1},
    {"equal_main_read", YAML_F64, offsetof(struct sim_bandwidth, equal_main_read), .min = 0.1,
     .max = 1},
    {"equal_main_write", YAML_F64, offsetof(struct sim_bandwidth, equal_main_write), .min = 0.1,
     .max = 1},
    {"equal_main_copy", YAML_F64, offsetof(struct sim_bandwidth, equal_main_copy), .min = 0.1,
     .max = 1},
    {"h2d", YAML_F64, offsetof(struct sim_bandwidth, h2d), .min = 0.1, .max = BANDWIDTH_MAX},
    {"d2h", YAML_F64, offsetof(struct sim_bandwidth, d2h), .min = 0.1, .max = BANDWIDTH_MAX},
    {"bidir", YAML_F64, offsetof(struct sim_bandwidth, bidir), .min = 0.1, .max = BANDWIDTH_MAX},
    {"l2_loaded_cycles", YAML_F64, offsetof(struct sim_bandwidth, l2_loaded_cycles), .min = 0,
     .max = 1e5},
    {"round_cycles", YAML_F64, offsetof(struct sim_bandwidth, round_cycles), .min = 0, .max = 1e4},
    {"main_loaded_cycles", YAML_F64, offsetof(struct sim_bandwidth, main_loaded_cycles), .min = 0,
     .max = 1e5},
};

static int read_optional(const struct yaml_node *node, const char *key,
                         const struct yaml_field *fields, size_t count, void *out_struct,
                         struct err *err)
{
    if (!node)
        return 0;
    int rc = yaml_read_fields(node, fields, count, out_struct, err);
    if (rc)
        err_prefix(err, "%s", key);
    return rc;
}

static int read_clock(const struct yaml_node *node, struct sim_model *model, struct err *err)
{
    int rc = read_optional(node, "clock", clock_fields, COUNT_OF(clock_fields), &model->clock, err);
    if (rc)
        return rc;
    if (model->clock.idle_mhz > model->clock.sm_mhz)
        return yaml_error(sim_at(node, "idle_mhz"), err, "idle_mhz is above sm_mhz");
    model->nominal_clock = model->clock;
    return 0;
}

struct texts {
    const char *words[4];
};

static int read_texts(const struct yaml_node *node, const char *section, const char *const *keys,
                      char (*const *slots)[SIM_TEXT_MAX], size_t count, struct err *err)
{
    if (!node)
        return 0;
    struct texts texts = {{0}};
    struct yaml_field fields[4];
    for (size_t i = 0; i < count; i++)
        fields[i] = (struct yaml_field){keys[i], YAML_STRING, i * sizeof texts.words[0]};
    int rc = yaml_read_fields(node, fields, count, &texts, err);
    for (size_t i = 0; !rc && i < count; i++)
        if (texts.words[i])
            rc = sim_copy_text(node, keys[i], texts.words[i], *slots[i], err);
    if (rc)
        err_prefix(err, "%s", section);
    return rc;
}

static int read_pci(const struct yaml_node *node, struct sim_model *model, struct err *err)
{
    static const char *const keys[] = {"device", "subsystem"};
    char(*const slots[])[SIM_TEXT_MAX] = {&model->pci_device, &model->pci_subsystem};
    return read_texts(node, "pci", keys, slots, COUNT_OF(keys), err);
}

static int read_board(const struct yaml_node *node, struct sim_model *model, struct err *err)
{
    static const char *const keys[] = {"part", "vbios", "driver"};
    char(*const slots[])[SIM_TEXT_MAX] = {&model->board.part, &model->board.vbios,
                                          &model->board.driver};
    return read_texts(node, "board", keys, slots, COUNT_OF(keys), err);
}

struct hardware_text {
    struct sim_hardware hardware;
    const char *architecture, *compute_capability;
};

static const struct yaml_field hardware_fields[] = {
    {"architecture", YAML_STRING, offsetof(struct hardware_text, architecture)},
    {"compute_capability", YAML_STRING, offsetof(struct hardware_text, compute_capability)},
    {"cores_per_sm", YAML_U32, offsetof(struct hardware_text, hardware.cores_per_sm), .min = 1,
     .max = 1024},
    {"memory_bus_bits", YAML_U32, offsetof(struct hardware_text, hardware.memory_bus_bits),
     .min = 1, .max = 1 << 16},
    {"registers_per_sm", YAML_U32, offsetof(struct hardware_text, hardware.registers_per_sm),
     .min = 1, .max = 1 << 20},
    {"threads_per_block", YAML_U32, offsetof(struct hardware_text, hardware.threads_per_block),
     .min = 32, .max = 4096},
    {"threads_per_sm", YAML_U32, offsetof(struct hardware_text, hardware.threads_per_sm), .min = 32,
     .max = 8192},
    {"sm_clock_max_mhz", YAML_F64, offsetof(struct hardware_text, hardware.sm_clock_max_mhz),
     .min = 1, .max = MHZ_MAX},
    {"memory_clock_max_mhz", YAML_F64,
     offsetof(struct hardware_text, hardware.memory_clock_max_mhz), .min = 1, .max = MHZ_MAX},
    {"pcie_gen_max", YAML_U32, offsetof(struct hardware_text, hardware.pcie_gen_max), .min = 1,
     .max = 8},
    {"l2_persisting", YAML_BYTES, offsetof(struct hardware_text, hardware.l2_persisting)},
    {"pcie_width_max", YAML_U32, offsetof(struct hardware_text, hardware.pcie_width_max), .min = 1,
     .max = 32},
};

static int read_hardware(const struct yaml_node *node, struct sim_model *model, struct err *err)
{
    struct hardware_text text = {.hardware = model->hardware};
    int rc =
        read_optional(node, "hardware", hardware_fields, COUNT_OF(hardware_fields), &text, err);
    if (rc)
        return rc;
    struct sim_hardware *hardware = &text.hardware;
    if (text.architecture)
        rc = sim_copy_text(node, "architecture", text.architecture, hardware->architecture, err);
    if (rc)
        return rc;
    if (text.compute_capability)
        rc = sim_copy_text(node, "compute_capability", text.compute_capability,
                           hardware->compute_capability, err);
    if (rc)
        return rc;
    if (hardware->threads_per_block % hardware->warp_size)
        return yaml_error(sim_at(node, "threads_per_block"), err, "expected a multiple of 32");
    if (hardware->sm_clock_max_mhz <= 0)
        hardware->sm_clock_max_mhz = model->clock.sm_mhz;
    if (hardware->memory_clock_max_mhz <= 0)
        hardware->memory_clock_max_mhz = model->clock.memory_mhz;
    model->hardware = *hardware;
    return 0;
}

struct config_text {
    struct sim_config config;
    const char *compute_mode, *mig_profile, *virtualization, *confidential;
};

static const struct yaml_field config_fields[] = {
    {"ecc", YAML_BOOL, offsetof(struct config_text, config.ecc)},
    {"mig", YAML_BOOL, offsetof(struct config_text, config.mig)},
    {"persistence", YAML_BOOL, offsetof(struct config_text, config.persistence)},
    {"compute_mode", YAML_STRING, offsetof(struct config_text, compute_mode)},
    {"mig_profile", YAML_STRING, offsetof(struct config_text, mig_profile)},
    {"virtualization", YAML_STRING, offsetof(struct config_text, virtualization)},
    {"confidential_computing", YAML_STRING, offsetof(struct config_text, confidential)},
    {"power_limit_w", YAML_F64, offsetof(struct config_text, config.power_limit_w), .min = 1,
     .max = 1e4},
    {"power_limit_default_w", YAML_F64, offsetof(struct config_text, config.power_limit_default_w),
     .min = 1, .max = 1e4},
    {"power_draw_w", YAML_F64, offsetof(struct config_text, config.power_draw_w), .min = 1,
     .max = 1e4},
    {"pcie_gen", YAML_U32, offsetof(struct config_text, config.pcie_gen), .min = 1, .max = 8},
    {"pcie_width", YAML_U32, offsetof(struct config_text, config.pcie_width), .min = 1, .max = 32},
};

static int read_config(const struct yaml_node *node, struct sim_model *model, struct err *err)
{
    struct config_text text = {.config = model->config};
    text.config.pcie_gen = model->hardware.pcie_gen_max;
    text.config.pcie_width = model->hardware.pcie_width_max;
    int rc = read_optional(node, "config", config_fields, COUNT_OF(config_fields), &text, err);
    if (rc)
        return rc;
    const struct {
        const char *key, *text;
        char *to;
    } texts[] = {
        {"compute_mode", text.compute_mode, text.config.compute_mode},
        {"mig_profile", text.mig_profile, text.config.mig_profile},
        {"virtualization", text.virtualization, text.config.virtualization},
        {"confidential_computing", text.confidential, text.config.confidential},
    };
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        if (texts[i].text)
            rc =
                sim_copy_setting(node, texts[i].key, texts[i].key, texts[i].text, texts[i].to, err);
        if (rc)
            return rc;
    }
    if (text.config.mig_profile[0] && yaml_get(node, "mig") && !text.config.mig)
        return yaml_error(sim_at(node, "mig"), err, "must be true, or absent, with a mig_profile");
    text.config.mig |= text.config.mig_profile[0] != '\0';
    if (text.config.power_draw_w > text.config.power_limit_w)
        return yaml_error(sim_at(node, "power_draw_w"), err, "power_draw_w is above power_limit_w");
    if (text.config.power_limit_default_w <= 0)
        text.config.power_limit_default_w = text.config.power_limit_w;
    text.config.ecc_pending = text.config.ecc;
    text.config.mig_pending = text.config.mig;
    model->config = text.config;
    return 0;
}

static int read_health(const struct yaml_node *node, struct sim_model *model, struct err *err)
{
    struct sim_health_value values[HEALTH_NUMBERS] = {{0}};
    int rc = node ? sim_health_read(node, values, err) : 0;
    if (rc)
        err_prefix(err, "health");
    sim_health_apply(values, model->health);
    return rc;
}

static void set_defaults(struct sim_model *model)
{
    sim_health_defaults(model->health);
    model->clock = (struct sim_clock){1500, 250, 20, 1500};
    model->constant_bytes = 64 * 1024;
    model->host_bytes = 256 * 1024 * 1024;
    model->shared_bytes_max = 48 * 1024;
    model->banks = (struct sim_banks){32, 4, 0, 2, 1, 1};
    model->dram_clocked = 0.3;
    model->bandwidth = (struct sim_bandwidth){.sm = 64,
                                              .l1 = 128,
                                              .shared = 128,
                                              .l2_read = 2000,
                                              .l2_write = 1500,
                                              .main_read = 800,
                                              .main_write = 750,
                                              .main_copy = 700,
                                              .equal_l2_read = 1,
                                              .equal_l2_write = 1,
                                              .equal_main_read = 1,
                                              .equal_main_write = 1,
                                              .equal_main_copy = 1,
                                              .h2d = 24,
                                              .d2h = 24,
                                              .bidir = 44};
    model->hardware = (struct sim_hardware){.architecture = "simulated",
                                            .compute_capability = "0.0",
                                            .cores_per_sm = 128,
                                            .memory_bus_bits = 1024,
                                            .registers_per_sm = 65536,
                                            .threads_per_block = 1024,
                                            .threads_per_sm = 2048,
                                            .warp_size = 32,
                                            .pcie_gen_max = 4,
                                            .pcie_width_max = 16};
    model->board = (struct sim_board){"SIM-0000", "00.00.00.00.01", "000.00"};
    model->config = (struct sim_config){.ecc = true,
                                        .persistence = true,
                                        .compute_mode = "default",
                                        .power_limit_w = 300,
                                        .power_draw_w = 200};
    memcpy(model->pci_device, "10de:0000", sizeof "10de:0000");
    memcpy(model->pci_subsystem, "10de:0000", sizeof "10de:0000");
    model->dram_factor = 1;
    model->l1_share = 1;
    model->slow_sm = -1;
    model->wrong_card_path = -1;
    model->hang_after = -1;
    model->crash_after = -1;
}

static int read_timer(const struct yaml_node *node, struct sim_model *model, struct err *err)
{
    struct timer_text text = {.granularity_cycles = 1};
    int rc = read_optional(node, "timer", timer_fields, COUNT_OF(timer_fields), &text, err);
    if (rc)
        return rc;
    model->timer_granularity_cycles = text.granularity_cycles;
    return text.overhead_cycles ? sim_read_overheads(text.overhead_cycles, model, err) : 0;
}

static int read_shared_section(const struct yaml_node *node, struct sim_model *model,
                               struct err *err)
{
    struct sim_banks *banks = &model->banks;
    int rc = read_optional(node, "shared", shared_fields, COUNT_OF(shared_fields), model, err);
    if (rc)
        return rc;
    if (!number_is_power_of_two(banks->bank_bytes))
        return yaml_error(sim_at(node, "bank_width"), err, "expected 4, 8 or 16 bytes");
    if (!banks->interleave_bytes)
        banks->interleave_bytes = banks->bank_bytes;
    if (!number_is_power_of_two(banks->interleave_bytes) ||
        banks->interleave_bytes > banks->bank_bytes)
        return yaml_error(sim_at(node, "interleave"), err,
                          "expected a power of two up to the width of a bank");
    return 0;
}

static int read_machine(const struct model_text *text, struct sim_model *model, struct err *err)
{
    int rc = read_clock(text->clock, model, err);
    if (rc)
        return rc;
    rc = read_timer(text->timer, model, err);
    if (rc)
        return rc;
    rc = read_optional(text->noise, "noise", noise_fields, COUNT_OF(noise_fields), &model->noise,
                       err);
    if (rc)
        return rc;
    rc = read_optional(text->memory, "memory", memory_fields, COUNT_OF(memory_fields), model, err);
    if (rc)
        return rc;
    rc = read_shared_section(text->shared, model, err);
    if (rc)
        return rc;
    rc = read_optional(text->bandwidth, "bandwidth", bandwidth_fields, COUNT_OF(bandwidth_fields),
                       &model->bandwidth, err);
    if (rc)
        return rc;
    rc = read_pci(text->pci, model, err);
    if (rc)
        return rc;
    rc = read_hardware(text->hardware, model, err);
    if (rc)
        return rc;
    rc = read_board(text->board, model, err);
    if (rc)
        return rc;
    rc = read_config(text->config, model, err);
    if (rc)
        return rc;
    return read_health(text->health, model, err);
}

static int read_hierarchy(const struct model_text *text, struct sim_model *model, struct err *err)
{
    int rc = 0;
    if (text->carveout && text->shared && yaml_get(text->shared, "size"))
        return yaml_error(sim_at(text->shared, "size"), err,
                          "shared memory gets its size from `carveout`");
    if (text->carveout)
        rc = sim_read_carveout(text->carveout, model, err);
    if (rc)
        return rc;
    if (text->caches)
        rc = sim_read_caches(text->caches, model, err);
    if (rc)
        return rc;
    rc = sim_read_l2(text->l2, model, err);
    if (rc)
        return rc;
    if (text->tlb)
        rc = sim_read_tlbs(text->tlb, model, err);
    if (rc)
        return rc;
    if (text->clusters)
        rc = sim_read_clusters(text->clusters, model, err);
    if (rc)
        return rc;
    if (text->instructions)
        rc = sim_read_instructions(text->instructions, model, err);
    if (!rc && text->instruction_caches)
        rc = sim_read_instruction_caches(text->instruction_caches, model, err);
    return rc ? rc : sim_read_paths(text->paths, model, err);
}

/* As the names of real ones. */
static void name_kind(struct sim_model *model)
{
    size_t length = strlen(model->name);
    const struct sim_config *config = &model->config;
    if (config->mig_profile[0])
        snprintf(model->name + length, sizeof model->name - length, " MIG %s", config->mig_profile);
    length = strlen(model->name);
    if (gpu_kind_is(GPU_KIND_VIRTUAL, config->virtualization))
        snprintf(model->name + length, sizeof model->name - length, " vGPU");
}

static int read_whole_model(const struct yaml_node *root, struct sim_model *model, struct err *err)
{
    struct model_text text = {.sms_per_tpc = 1};
    set_defaults(model);
    int rc = yaml_read_fields(root, model_fields, COUNT_OF(model_fields), &text, err);
    if (rc)
        return rc;
    rc = sim_copy_text(root, "name", text.name, model->name, err);
    if (rc)
        return rc;
    model->sms = text.sms;
    model->sms_per_tpc = text.sms_per_tpc;
    model->sms_per_cpc = text.sms_per_cpc;
    rc = sim_read_places(text.sms_per_gpc, text.sm_order, model, err);
    if (rc)
        return rc;
    model->translate_first = text.translate_first;
    rc = read_machine(&text, model, err);
    if (rc)
        return rc;
    rc = read_hierarchy(&text, model, err);
    if (rc)
        return rc;
    name_kind(model);
    snprintf(model->key, sizeof model->key, "%s/%s/%s", model->pci_device, model->pci_subsystem,
             model->name);
    return 0;
}

static int model_of_document(struct yaml_doc *doc, struct sim_model **out_model, struct err *err)
{
    struct sim_model *model = mem_array(1, sizeof *model);
    int rc = read_whole_model(yaml_root(doc), model, err);
    yaml_destroy(doc);
    if (rc)
        free(model);
    else
        *out_model = model;
    return rc;
}

int sim_model_read_file(const char *path, struct sim_model **out_model, struct err *err)
{
    struct yaml_doc *doc;
    int rc = yaml_read_file(path, &yaml_limits_config, &doc, err);
    return rc ? rc : model_of_document(doc, out_model, err);
}

int sim_model_read_text(const char *text, size_t length, const char *name,
                        struct sim_model **out_model, struct err *err)
{
    struct yaml_doc *doc;
    int rc = yaml_read_text(text, length, name, &yaml_limits_config, &doc, err);
    return rc ? rc : model_of_document(doc, out_model, err);
}

void sim_model_destroy(struct sim_model *model)
{
    free(model);
}

const char *sim_model_name(const struct sim_model *model)
{
    return model->name;
}

bool sim_model_is_instance(const struct sim_model *model)
{
    return model->config.mig_profile[0] != '\0';
}

const char *sim_model_key(const struct sim_model *model)
{
    return model->key;
}
