/* Benchmark: lines per second of each kernel, and how much slower the model is than the GPU at
 * best. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "predict/bound.h"
#include "predict/kernel.h"

static double cpu_seconds(void)
{
    return (double)clock() / CLOCKS_PER_SEC;
}

/* Runs one kernel; false: something failed, and was told. */
static bool measure(const struct machine *machine, const struct kernel *kernel)
{
    static struct kernel_launch launch;
    static struct model_counts counts;
    struct err err = {0};
    double begin = cpu_seconds();
    if (kernel_launch_init(&launch, kernel, 0, 0, 0, &err) ||
        model_run(&machine->config, &launch, &counts, &err)) {
        fprintf(stderr, "%s: %s\n", kernel->name, err.text);
        return false;
    }
    double seconds = cpu_seconds() - begin;
    struct bound bound = bound_of(&counts, machine);
    printf("%-11s %8.1f M lines %7.2f s %6.1f M lines/s %9.0f x the GPU's bound\n", kernel->name,
           (double)counts.lines / 1e6, seconds, (double)counts.lines / seconds / 1e6,
           seconds / bound.seconds[bound.limit]);
    fflush(stdout);
    return true;
}

/* bench_speed INVENTORY [KERNEL...] */
int main(int argc, char **argv)
{
    struct inventory inventory;
    static struct machine machine;
    struct err err = {0};
    if (argc < 2 || inventory_read_file(argv[1], &inventory, &err) || !inventory.model_count ||
        machine_init(&machine, &inventory.models[0], argv[1], NULL, &err)) {
        fprintf(stderr, "bench_speed INVENTORY [KERNEL...]: %s\n", err.text);
        return EXIT_FAILURE;
    }
    bool good = true;
    for (size_t i = 0; i < kernel_table_count; i++) {
        bool named = argc == 2;
        for (int k = 2; k < argc; k++)
            named |= strcmp(argv[k], kernel_table[i].name) == 0;
        if (named)
            good &= measure(&machine, &kernel_table[i]);
    }
    inventory_fini(&inventory);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
