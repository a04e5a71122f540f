/* What kind of GPU it is: a MIG instance, a virtual GPU, passthrough, confidential computing; on a
 * stand-in NVML, and on one of an old driver (FAKE_OLD), which does not say. */
#include <stdlib.h>
#include <string.h>

#include "../../../check.h"
#include "device/source.h"

/* "key=value", "key!reason" for an unknown one, "-key" for one that is not there. */
enum { EXPECTED_MAX = 8 };
struct kind_case {
    const char *settings, *name;
    const char *expected[EXPECTED_MAX];
};

static bool is_old(void)
{
    return getenv("FAKE_OLD") != NULL;
}

static void kind_put_value(const struct fact *fact, struct strbuf *text)
{
    switch (fact->kind) {
    case FACT_TEXT:
        strbuf_printf(text, "=%s", fact->text);
        break;
    case FACT_BOOL:
        strbuf_puts(text, fact->flag ? "=true" : "=false");
        break;
    case FACT_INT:
        strbuf_printf(text, "=%lld", (long long)fact->integer);
        break;
    case FACT_REAL:
        strbuf_printf(text, "=%g", fact->real);
        break;
    default:
        strbuf_printf(text, "!%s", fact->text ? fact->text : "");
    }
}

static void kind_check(const char *settings, const struct device_look *look, const char *expected)
{
    bool absent = *expected == '-';
    const char *from = expected + absent;
    char *key = str_copy_n(from, strcspn(from, "=!"));
    const struct fact *fact = facts_get(&look->config, key);
    if (!fact)
        fact = facts_get(&look->board, key);
    struct strbuf is = {0};
    strbuf_puts(&is, key);
    if (fact)
        kind_put_value(fact, &is);
    if (absent ? fact != NULL : !fact || strcmp(is.data, expected) != 0)
        fail_msg("%s: expected %s, is %s", settings, expected, fact ? is.data : "absent");
    strbuf_fini(&is);
    free(key);
}

static void kind_check_case(const struct kind_case *c)
{
    struct device_source *source = NULL;
    struct device_look look = {0};
    setenv("FAKE_NVML", c->settings, 1);
    assert_int_equal(device_source_cuda(&source, NULL), 0);
    assert_int_equal(device_source_look(source, 0, false, &look, NULL), 0);
    const struct device_info *info = device_source_info(source, 0);
    if (strcmp(info->name, c->name) != 0 || !strstr(info->model_key, c->name))
        fail_msg("%s: name %s, key %s", c->settings, info->name, info->model_key);
    for (size_t i = 0; i < EXPECTED_MAX && c->expected[i]; i++)
        kind_check(c->settings, &look, c->expected[i]);
    device_look_fini(&look);
    device_source_destroy(source);
}

static void kinds(void **state)
{
    (void)state;
    static const struct kind_case cases[] = {
        {"",
         "Fake GPU",
         {"virtualization=none", "confidential_computing=off", "confidential_devtools=false",
          "mig=false", "-mig_profile", "-mig_parent", "-mig_gpu_instance", "-health_of"}},
        {"virtualization=1", "Fake GPU", {"virtualization=passthrough"}},
        {"virtualization=2", "Fake GPU vGPU", {"virtualization=vgpu"}},
        {"virtualization=3", "Fake GPU", {"virtualization=host_vgpu"}},
        {"virtualization=4", "Fake GPU", {"virtualization=host_vsga"}},
        {"virtualization=5", "Fake GPU", {"virtualization!not known to this program"}},
        {"virtualization=e3", "Fake GPU", {"virtualization!not supported"}},
        {"confidential=1",
         "Fake GPU",
         {"confidential_computing=on", "confidential_devtools=false"}},
        {"confidential=1 devtools=1",
         "Fake GPU",
         {"confidential_computing=on", "confidential_devtools=true"}},
        {"multi_gpu=1", "Fake GPU", {"confidential_computing=protected_pcie"}},
        {"confidential=1 multi_gpu=2", "Fake GPU", {"confidential_computing=encrypted_nvlink"}},
        {"multi_gpu=7", "Fake GPU", {"confidential_computing!not known to this program"}},
        /* Drivers before R550 have the state only. */
        {"confidential=1 devtools=1 multi_gpu=e13",
         "Fake GPU",
         {"confidential_computing=on", "confidential_devtools=true"}},
        {"confidential=e3",
         "Fake GPU",
         {"confidential_computing!not supported", "confidential_devtools!not supported"}},
        {"mig_mode=1",
         "Fake GPU MIG 2g.36gb",
         {"mig=true", "mig_profile=2g.36gb", "mig_gpu_instance=9", "mig_compute_instance=1",
          "mig_parent=GPU-ffeeddcc-bbaa-9988-7766-554433221100", "mig_sm_share=0.242",
          "mig_memory_share=0.25", "health_of=whole GPU"}},
        {"mig_mode=1 gpu_instance=e3 compute_instance=e4 uuid=e3 profiles=e4",
         "Fake GPU MIG 2g.36gb",
         {"mig_profile=2g.36gb", "mig_gpu_instance!not supported",
          "mig_compute_instance!some error", "mig_parent!not supported",
          "mig_sm_share!not supported", "mig_memory_share!not supported"}},
        {"mig_mode=1 virtualization=2",
         "Fake GPU MIG 2g.36gb vGPU",
         {"virtualization=vgpu", "mig_profile=2g.36gb"}},
    };
    for (size_t i = 0; i < COUNT_OF(cases) && !is_old(); i++)
        kind_check_case(&cases[i]);
}

static void old_driver(void **state)
{
    (void)state;
    static const struct kind_case cases[] = {
        {"virtualization=2 confidential=1",
         "Fake GPU",
         {"virtualization!not in this NVML", "confidential_computing!not in this NVML",
          "confidential_devtools!not in this NVML", "-mig_profile"}},
        {"mig_mode=1",
         "Fake GPU MIG 2g.36gb",
         {"mig_profile=2g.36gb", "mig_gpu_instance!not in this NVML", "mig_parent!not in this NVML",
          "mig_sm_share!not supported", "health_of=whole GPU"}},
    };
    for (size_t i = 0; i < COUNT_OF(cases) && is_old(); i++)
        kind_check_case(&cases[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(kinds), cmocka_unit_test(old_driver)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
