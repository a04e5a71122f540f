/* Benchmark: lines per second of each kernel, how much slower the model is than the GPU was and
 * than it could be at best, and memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "predict/kernel.h"
#include "predict/prediction.h"

/* Over all kernels that were run. */
struct totals {
    double lines, accesses, seconds, rate_min, rate_max;
    double factors, to_bound;    /* sums: to the time that the GPU took, and to its bound */
    size_t kernels, slow, timed; /* slow: below the goal; timed: the GPU's time is known */
};

static const double goal_rate = 20e6;

static double cpu_seconds(void)
{
    return (double)clock() / CLOCKS_PER_SEC;
}

/* Loads look into L1, all go to the L2 without L1, and what L1 did not have to the L2 behind it. By
 * sectors, so it is not exact for lines of which L1 had some. */
static double cache_accesses(const struct model_counts *c)
{
    double sectors = (double)(c->l1_reads + c->l1_writes);
    double looked_at = (double)(c->l1_reads + c->l2.reads + c->l2.writes) + sectors;
    return (double)c->lines * looked_at / sectors;
}

/* The nanoseconds that a launch of the kernel's own size took on the GPU, L1 on: the last column of
 * a file of tools/gpu-validate. 0: it is not there. */
static double gpu_ns(const char *path, const char *kernel)
{
    char line[1024], wanted[64];
    double ns = 0;
    FILE *file = fopen(path, "r");
    snprintf(wanted, sizeof wanted, "table,%s,", kernel);
    while (file && !ns && fgets(line, sizeof line, file))
        if (strncmp(line, wanted, strlen(wanted)) == 0 && strstr(line, ",on,"))
            ns = strtod(strrchr(line, ',') + 1, NULL);
    if (file)
        fclose(file);
    return ns;
}

static void add(struct totals *t, double lines, double accesses, double seconds)
{
    double rate = lines / seconds;
    t->lines += lines;
    t->accesses += accesses;
    t->seconds += seconds;
    t->rate_min = !t->kernels || rate < t->rate_min ? rate : t->rate_min;
    t->rate_max = rate > t->rate_max ? rate : t->rate_max;
    t->slow += rate < goal_rate;
    t->kernels++;
}

/* Runs one kernel; false: something failed, and was told. */
static bool measure(const struct machine *machine, const struct kernel *kernel, double ns,
                    struct totals *t)
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
    double seconds = cpu_seconds() - begin, lines = (double)counts.lines;
    struct bound bound = bound_of(&counts, machine);
    double to_bound = seconds / bound.seconds[bound.limit], accesses = cache_accesses(&counts);
    double factor = ns ? seconds / ns * 1e9 : 0;
    printf("%-11s %8.1f M lines %7.2f s %6.1f M lines/s %6.1f M accesses of caches/s %8.0f x the "
           "GPU, %8.0f x its bound\n",
           kernel->name, lines / 1e6, seconds, lines / seconds / 1e6, accesses / seconds / 1e6,
           factor, to_bound);
    fflush(stdout);
    add(t, lines, accesses, seconds);
    t->factors += factor;
    t->timed += ns > 0;
    t->to_bound += to_bound;
    return true;
}

static void print_totals(const struct totals *t)
{
    struct rusage usage;
    printf("%zu kernels: %.1f to %.1f M lines/s, %.1f M lines/s and %.1f M accesses of caches/s in "
           "all; %zu below %.0f M lines/s\n",
           t->kernels, t->rate_min / 1e6, t->rate_max / 1e6, t->lines / t->seconds / 1e6,
           t->accesses / t->seconds / 1e6, t->slow, goal_rate / 1e6);
    printf("mean factor: %.0f x the time of the GPU (%zu kernels), %.0f x its bound\n",
           t->timed ? t->factors / (double)t->timed : 0, t->timed,
           t->to_bound / (double)t->kernels);
    if (getrusage(RUSAGE_SELF, &usage) == 0)
        printf("peak memory: %.1f MB\n", (double)usage.ru_maxrss / 1e3);
}

/* bench_speed INVENTORY COUNTERS [KERNEL...]: COUNTERS has what the GPU took. */
int main(int argc, char **argv)
{
    struct inventory inventory;
    static struct machine machine;
    struct totals totals = {0};
    struct err err = {0};
    if (argc < 3 || inventory_read_file(argv[1], &inventory, &err) || !inventory.model_count ||
        machine_init(&machine, &inventory.models[0], argv[1], NULL, &err)) {
        fprintf(stderr, "bench_speed INVENTORY COUNTERS [KERNEL...]: %s\n", err.text);
        return EXIT_FAILURE;
    }
    bool good = true;
    for (size_t i = 0; i < kernel_table_count; i++) {
        bool named = argc == 3;
        for (int k = 3; k < argc; k++)
            named |= strcmp(argv[k], kernel_table[i].name) == 0;
        if (named)
            good &=
                measure(&machine, &kernel_table[i], gpu_ns(argv[2], kernel_table[i].name), &totals);
    }
    if (totals.kernels)
        print_totals(&totals);
    inventory_fini(&inventory);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
