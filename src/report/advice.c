/* What to do next with a GPU or a node: one table of sentences. */
#include "report/advice.h"

#include <string.h>

#include "base/mem.h"

static const char replaces[] = "the vendor replaces it (`gpumemtopo-report rma` makes the archive)";
static const char if_it_stays[] = "the vendor replaces it if that does not help";
static const char if_it_moves[] =
    "the vendor replaces it if the loss moves with the GPU and is 5 % or more";
static const char does_not[] = "the vendor would not replace it for that";

/* docs/outliers.md has the same table; tests/report/test_summary.c compares them. */
const struct advice advice_rows[] = {
    {VERDICT_FAILING, "health.remap_pending", "reset the GPU: the remap then takes effect",
     if_it_stays},
    {VERDICT_FAILING, "health.retired_pages_pending", "reset the GPU: the pages are then left out",
     if_it_stays},
    {VERDICT_FAILING, "health.remap_failed",
     "take the GPU out of use: its memory has no spare rows", replaces},
    {VERDICT_FAILING, "health.ecc_",
     "reset the GPU, then test the whole memory with `--profile full`", if_it_stays},
    {VERDICT_FAILING, "main.", "take the GPU out of use: its memory loses data", replaces},
    {VERDICT_FAILING, "compute.", "take the GPU out of use: results of its jobs may be wrong",
     replaces},
    {VERDICT_FAILING, "health.nvlink",
     "reset the GPU, look at the fabric manager and at the seating of the board", if_it_stays},
    {VERDICT_FAILING, "health.fabric", "restart the fabric manager, then reset the GPU",
     if_it_stays},
    {VERDICT_FAILING, "links.",
     "reset the GPU, look at the fabric manager and at the seating of the board", if_it_stays},
    {VERDICT_FAILING, "health.xid", "look for the event in the kernel's log, then reset the GPU",
     if_it_stays},
    {VERDICT_FAILING, "worker.", "look at the kernel's log, reset the GPU and survey it again",
     if_it_stays},
    {VERDICT_FAILING, "", "look at the kernel's log, power-cycle the node and survey it again",
     if_it_stays},
    {VERDICT_DEGRADED, "clock.", "look at cooling, power supply and power cables", does_not},
    {VERDICT_DEGRADED, "load.", "look at cooling, power supply and power cables", does_not},
    {VERDICT_DEGRADED, "health.throttle", "look at cooling, power supply and power cables",
     does_not},
    {VERDICT_DEGRADED, "health.temperature", "look at cooling: dust, fans, thermal paste, airflow",
     does_not},
    {VERDICT_DEGRADED, "config.pcie_", "reseat the GPU, look at riser, slot and BIOS", does_not},
    {VERDICT_DEGRADED, "health.pcie_", "reseat the GPU, look at riser, slot and BIOS", does_not},
    {VERDICT_DEGRADED, "host.", "reseat the GPU, look at riser, slot and BIOS", does_not},
    {VERDICT_DEGRADED, "sm.", "survey it again with `--profile full`: the chip itself is slower",
     if_it_stays},
    {VERDICT_DEGRADED, "compute.",
     "survey it again with `--profile full`: the chip itself is slower", if_it_stays},
    {VERDICT_DEGRADED, "main.",
     "swap the GPU with one of another node and survey both, to see whether the loss moves with it",
     if_it_moves},
    {VERDICT_DEGRADED, "health.", "survey it again in a day, to see whether the counter grows",
     if_it_stays},
    {VERDICT_DEGRADED, "",
     "survey it again with `--profile full`, and after a swap with a GPU of another node",
     if_it_moves},
    {VERDICT_MISCONFIGURED, "",
     "set it as on its peers: clocks (`nvidia-smi -rac`, `-rgc`), power limit (`-pl`), ECC, MIG, "
     "driver",
     does_not},
    {VERDICT_MISMATCHED, "", "compare it with what was ordered: `gpumemtopo-report accept`",
     "the vendor replaces it if something else was ordered"},
    {VERDICT_UNSTEADY, "", "look for other processes and for heat, then survey it again",
     if_it_stays},
    {VERDICT_BUILT_SLOWER, "", "nothing: it was built so", does_not},
    {VERDICT_UNKNOWN, "", "look again after the next survey", does_not},
};
const size_t advice_row_count = COUNT_OF(advice_rows);

static bool advice_fits(const struct advice *row, const struct inventory_outlier *entry)
{
    bool fits = !*row->metric;
    for (size_t i = 0; i < entry->evidence_count && !fits; i++)
        fits = strncmp(entry->evidence[i].metric ? entry->evidence[i].metric : "", row->metric,
                       strlen(row->metric)) == 0;
    return fits && row->verdict == entry->verdict;
}

const struct advice *advice_of_gpu(const struct inventory_outlier *entry)
{
    const struct advice *row = advice_rows;
    while (!advice_fits(row, entry))
        row++;
    return row;
}

/* The text of a place has the metric in it. */
const struct advice *advice_of_place(const struct inventory_node *place)
{
    const struct advice *row = advice_rows;
    while (row->verdict != place->verdict ||
           !strstr(place->finding ? place->finding : "", row->metric))
        row++;
    return row;
}
