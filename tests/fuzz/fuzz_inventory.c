/* Inventories: what is read can be validated, shown, drained and printed again. */
#include "fuzz.h"
#include "inventory/inventory.h"
#include "report/drain.h"
#include "report/summary.h"
#include "report/validate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct inventory inventory = {0};
    struct err err = {0};
    struct strbuf text = {0}, lines = {0}, refused = {0};
    if (inventory_read_text((const char *)data, size, "fuzz", &inventory, &err))
        return 0;
    report_validate(&inventory, &err);
    report_summary(&inventory, NULL, &text);
    report_drain(&inventory, &lines, &refused, &err);
    inventory_print(&inventory, &text);
    inventory_fini(&inventory);
    strbuf_fini(&text);
    strbuf_fini(&lines);
    strbuf_fini(&refused);
    return 0;
}
