/* Functions that all readers of the simulator's YAML files need. */
#include <string.h>

#include "device/sim/model.h"

const struct yaml_node *sim_at(const struct yaml_node *mapping, const char *key)
{
    const struct yaml_node *node = yaml_get(mapping, key);
    return node ? node : mapping;
}

int sim_copy_text(const struct yaml_node *mapping, const char *key, const char *text,
                  char out_text[SIM_TEXT_MAX], struct err *err)
{
    if (strlen(text) >= SIM_TEXT_MAX)
        return yaml_error(sim_at(mapping, key), err, "longer than %d bytes", SIM_TEXT_MAX - 1);
    memcpy(out_text, text, strlen(text) + 1);
    return 0;
}
