/* Orders: what is read can be compared with a delivery and reported. */
#include <stdlib.h>

#include "fuzz.h"
#include "inventory/inventory.h"
#include "report/accept/accept.h"

static const struct judge_config *config(void)
{
    static struct judge_metric metrics[] = {{.metric = (char *)"main.latency"},
                                            {.metric = (char *)"main.bandwidth.read"},
                                            {.metric = (char *)"clock.sm"}};
    static struct judge_config made = {.metrics = metrics, .metric_count = 3};
    policy_read(NULL, &made.policy, NULL);
    return &made;
}

/* Two GPUs of model A on node n1, one of which was not measured; one of B on n2. */
static const struct inventory *delivery(void)
{
    static struct inventory_value values[] = {
        {.metric = (char *)"main.latency", .value = 600, .spread = 1},
        {.metric = (char *)"clock.sm", .value = 1980, .status = MEASURE_NOISY}};
    static struct measure measures[] = {
        {.metric = (char *)"main.latency", .unit = (char *)"cycles", .value = 600}};
    static struct inventory_model models[] = {
        {.id = (char *)"a", .name = (char *)"A", .memory = {measures, 1, 1}},
        {.id = (char *)"b", .name = (char *)"B"}};
    static struct inventory_gpu gpus[] = {{.uuid = (char *)"GPU-1",
                                           .node = (char *)"n1",
                                           .model = (char *)"a",
                                           .values = values,
                                           .value_count = 2},
                                          {.uuid = (char *)"GPU-2",
                                           .node = (char *)"n1",
                                           .index = 1,
                                           .model = (char *)"a",
                                           .status = GPU_CRASHED},
                                          {.uuid = (char *)"GPU-3",
                                           .node = (char *)"n2",
                                           .model = (char *)"b",
                                           .values = values,
                                           .value_count = 1}};
    static const struct inventory made = {
        .models = models, .model_count = 2, .gpus = gpus, .gpu_count = 3};
    return &made;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct accept_source source = {"in", "order", "0", "1", "0"};
    struct order order = {0};
    struct accept accept = {0};
    struct strbuf text = {0};
    struct err err = {0};
    if (order_read_text((const char *)data, size, "fuzz", config(), &order, &err))
        return 0;
    if (accept_compare(&order, delivery(), &accept, &err))
        abort();
    accept_put_text(&accept, &source, &text);
    accept_put_page(&accept, &source, &text);
    strbuf_fini(&text);
    accept_fini(&accept);
    order_fini(&order);
    return 0;
}
