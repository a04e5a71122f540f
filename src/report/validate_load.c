/* Checks the sustained load of a GPU: known keys, and a curve that can be drawn. */
#include "report/validate_load.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "inventory/load_curve.h"

static bool is_known(const char *key)
{
    for (size_t i = 0; i < LOAD_CURVE_KEYS; i++)
        if (strcmp(load_curve_keys[i], key) == 0)
            return true;
    return false;
}

static bool is_good(const struct fact *fact)
{
    struct load_curve curve;
    if (strcmp(fact->key, "begun_after_s") == 0)
        return fact_number(fact) >= 0 && isfinite(fact_number(fact));
    if (fact->kind != FACT_TEXT || !is_known(fact->key))
        return false;
    return strcmp(fact->key, LOAD_CURVE_KEY) != 0 || load_curve_read(fact->text, &curve);
}

int report_validate_load(const struct inventory_gpu *gpu, struct err *err)
{
    for (size_t i = 0; i < gpu->load.count; i++)
        if (!is_good(&gpu->load.items[i]))
            return err_set(err, -EINVAL, "%.80s: load: %.80s is not what a load has",
                           gpu->uuid ? gpu->uuid : "a GPU without uuid", gpu->load.items[i].key);
    return 0;
}
