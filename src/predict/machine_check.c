/* Refuses geometry that makes no sense. */
#include "predict/machine_check.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

typedef unsigned long long number;

/* One cache, and which of its figures are the user's. */
struct level {
    const char *name;
    const struct cache_geometry *cache;
    bool size, ways;
};

static bool is_given(const struct what_if *what_if, const char *name, const char *figure)
{
    char key[WHAT_IF_WORD_MAX];
    snprintf(key, sizeof key, "%s.%s", name, figure);
    return what_if_value(what_if, key) != NULL;
}

static int check_order(const struct level *l, struct err *err)
{
    const struct cache_geometry *c = l->cache;
    if (c->fetch > c->line)
        return err_set(err, -EINVAL,
                       "%s.fetch (%llu B) is larger than %s.line (%llu B), but a miss brings at "
                       "most its line; give both",
                       l->name, (number)c->fetch, l->name, (number)c->line);
    if (c->line > c->size)
        return err_set(err, -EINVAL,
                       "%s.line (%llu B) is larger than %s.size (%llu B), so that no line fits; "
                       "give a larger size or a smaller line",
                       l->name, (number)c->line, l->name, (number)c->size);
    if (c->line / c->sector > CACHE_SECTORS_MAX)
        return err_set(err, -EINVAL,
                       "%s.line (%llu B) has more than %d sectors of %llu B, which are not "
                       "modelled; give a smaller line, or a larger fetch of both caches",
                       l->name, (number)c->line, CACHE_SECTORS_MAX, (number)c->sector);
    return 0;
}

static int check_whole_lines(const struct level *l, struct err *err)
{
    const struct cache_geometry *c = l->cache;
    uint64_t below = c->size / c->line * c->line;
    if (!l->size || below == c->size)
        return 0;
    return err_set(err, -EINVAL,
                   "%s.size is not a multiple of %s.line (%llu B); the nearest ones are %llu and "
                   "%llu",
                   l->name, l->name, (number)c->line, (number)below, (number)(below + c->line));
}

static int check_ways(const struct level *l, struct err *err)
{
    const struct cache_geometry *c = l->cache;
    uint64_t lines = c->size / c->line, set = c->ways * c->line;
    if (c->ways > lines)
        return err_set(err, -EINVAL,
                       "%s.ways: %llu ways need as many lines, but %s.size (%llu B) has only %llu; "
                       "give a larger size or fewer ways (0: fully associative)",
                       l->name, (number)c->ways, l->name, (number)c->size, (number)lines);
    if (l->ways && set && !c->tags && lines % c->ways) {
        uint64_t below = c->size / set * set;
        return err_set(err, -EINVAL,
                       "%s.ways: %llu ways do not divide the %llu lines of %s.size; give both, "
                       "such as %s.ways=%llu+%s.size=%llu",
                       l->name, (number)c->ways, (number)lines, l->name, l->name, (number)c->ways,
                       l->name, (number)below);
    }
    if (c->policy == CACHE_TREE && (!c->ways || c->ways > CACHE_TREE_WAYS_MAX))
        return err_set(err, -EINVAL,
                       "%s.policy: a tree has 1 to %d ways, not %llu; give both, such as "
                       "%s.policy=tree+%s.ways=16",
                       l->name, CACHE_TREE_WAYS_MAX, (number)c->ways, l->name, l->name);
    return 0;
}

/* More tags than data: l1_data.sets is for that alone; otherwise size, line and ways say it. */
static int check_sets(const struct cache_geometry *l1, uint64_t sets, struct err *err)
{
    uint64_t tags = sets * l1->ways * l1->line;
    if (!l1->ways)
        return err_set(err, -EINVAL,
                       "l1_data.sets: a fully associative cache has one set; give the ways, too, "
                       "such as l1_data.sets=%llu+l1_data.ways=4",
                       (number)sets);
    if (tags < l1->size)
        return err_set(err, -EINVAL,
                       "l1_data.sets: %llu sets of %llu ways have tags for %llu B, less than "
                       "l1_data.size (%llu B); give more sets or a smaller size",
                       (number)sets, (number)l1->ways, (number)tags, (number)l1->size);
    if (tags > l1->size && !l1->tags)
        return err_set(err, -EINVAL,
                       "l1_data.sets: more tags than data are modelled for up to %d ways, not %llu",
                       CACHE_TAGS_WAYS_MAX, (number)l1->ways);
    return 0;
}

static int check_level(const char *name, const struct cache_geometry *cache,
                       const struct what_if *what_if, struct err *err)
{
    struct level level = {.name = name,
                          .cache = cache,
                          .size = is_given(what_if, name, "size"),
                          .ways = is_given(what_if, name, "ways")};
    int rc = check_order(&level, err);
    rc = rc ? rc : check_whole_lines(&level, err);
    return rc ? rc : check_ways(&level, err);
}

int machine_check(const struct machine *machine, uint64_t sets, const struct what_if *what_if,
                  struct err *err)
{
    const struct model_config *config = &machine->config;
    int rc = check_level("l1_data", &config->l1, what_if, err);
    rc = rc ? rc : check_level("l2", &config->l2, what_if, err);
    if (!rc && is_given(what_if, "l1_data", "sets"))
        rc = check_sets(&config->l1, sets, err);
    return rc;
}

int machine_check_carveout(struct machine *machine, uint64_t carveout,
                           const struct what_if *what_if, struct err *err)
{
    struct cache_geometry *l1 = &machine->config.l1;
    uint64_t shared = machine->config.limits.shared_bytes;
    if (isnan(machine->shared_carveout))
        return err_set(err, -EINVAL,
                       "l1_data.carveout: L1 and shared memory do not share storage on this "
                       "model, so there is nothing to divide; l1_data.size and "
                       "shared_per_sm_bytes can be changed");
    if (is_given(what_if, "l1_data", "size"))
        return err_set(err, -EINVAL,
                       "l1_data.carveout already decides l1_data.size; give one of them");
    uint64_t storage = l1->size + (uint64_t)machine->shared_carveout;
    uint64_t most = storage - l1->line;
    if (shared && shared < most)
        most = shared;
    if (carveout > most)
        return err_set(err, -EINVAL,
                       "l1_data.carveout (%llu B) is more than the %llu B that shared memory can "
                       "have of the %llu B that it shares with L1; give at most %llu",
                       (number)carveout, (number)most, (number)storage, (number)most);
    l1->size = (storage - carveout) / l1->line * l1->line;
    machine->config.limits.shared_bytes = carveout ? carveout : 1; /* 0 would mean no limit */
    machine->shared_carveout = NAN; /* the division is fixed: L1 does not shrink further */
    return 0;
}
