/* Instructions on a real GPU: each has a latency and a rate, and chains that do not depend on each
 * other overlap. Skipped, and counted as such, where there is no GPU. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include <cmocka.h>

#include "device/instruction.h"
#include "real_gpu.h"

enum { SHORT = 64, LONG = 192 };

static struct device *device;

/* Cycles per instruction of a warp, or below 0. */
static double cycles_each(uint32_t row, uint32_t chains, uint32_t warps, double *out_machine)
{
    struct device_code code = {.instruction = row, .chains = chains, .warps = warps, .repeats = 16};
    struct device_code_answer answers[2];
    for (int i = 0; i < 2; i++) {
        struct err err = {0};
        code.length = i ? LONG : SHORT;
        int rc = device_run_code(device, &code, &answers[i], &err);
        if (rc == -ENOTSUP)
            return -1;
        if (rc)
            fail_msg("%s: %s", instruction_table[row].name, err.text);
    }
    *out_machine = (double)(answers[1].machine - answers[0].machine) / (LONG - SHORT);
    return (double)(answers[1].cycles - answers[0].cycles) / ((LONG - SHORT) * code.repeats);
}

static void all_instructions(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < instruction_count; i++) {
        double machine = 0, other = 0;
        struct timespec a, b;
        clock_gettime(CLOCK_MONOTONIC, &a);
        double alone = cycles_each(i, 1, 1, &machine);
        double again = cycles_each(i, 1, 1, &machine);
        double two = cycles_each(i, 2, 1, &other);
        double busy = cycles_each(i, 4, 32, &other);
        clock_gettime(CLOCK_MONOTONIC, &b);
        printf("%-16s latency %8.3f %8.3f cycles, two chains %8.3f, machine %.2f, rate %8.2f per "
               "cycle and SM, %.0f ms\n",
               instruction_table[i].name, alone, again, two, machine,
               instruction_table[i].operations * 32 / busy,
               1e3 * (double)(b.tv_sec - a.tv_sec) + 1e-6 * (double)(b.tv_nsec - a.tv_nsec));
    }
}

static int all_tests(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_instructions)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return real_gpu_run(&device, all_tests);
}
