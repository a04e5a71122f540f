/* Creates, empties and destroys a simulated cache. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/mem.h"
#include "cachesim/cache.h"
#include "cachesim/marks.h"

/* Larger than any line number. */
static const uint64_t key_step = UINT64_C(1) << 48;

/* Up to this many ways, scanning all lines finds the oldest sooner than keeping a list. */
enum { FEW_WAYS = 4, SCANNED_WAYS = 16 };

uint64_t cache_span(const struct cache *cache)
{
    uint64_t sets = cache->geometry.index == CACHE_PRIME ? cache->by_sets.d : cache->set_count;
    return sets * cache->by_run.d * cache->geometry.line;
}

static uint32_t count_unequal(const struct cache_geometry *geometry)
{
    uint32_t count = 0;
    while (count < CACHE_SLOTS_MAX && geometry->set_ways[count])
        count++;
    return count;
}

static uint32_t count_lines(const struct cache_geometry *geometry)
{
    uint32_t lines = 0;
    for (uint32_t s = 0; s < count_unequal(geometry); s++)
        lines += geometry->set_ways[s];
    return lines;
}

/* When the lines are no multiple of the ways, some sets are larger. Real caches have unequal sets
 * too (Mei and Chu, section 4.4). */
static uint32_t count_sets(const struct cache_geometry *geometry, uint32_t lines)
{
    if (geometry->set_ways[0])
        return count_unequal(geometry);
    uint64_t ways = geometry->ways ? geometry->ways : lines;
    uint64_t sets = lines / ways;
    return sets ? (uint32_t)sets : 1;
}

uint32_t cache_slot_count(const struct cache_geometry *geometry)
{
    uint32_t smallest = UINT32_MAX, slots = 0, sets = count_unequal(geometry);
    for (uint32_t s = 0; s < sets; s++)
        smallest = geometry->set_ways[s] < smallest ? geometry->set_ways[s] : smallest;
    for (uint32_t s = 0; s < sets; s++)
        slots += geometry->set_ways[s] / smallest;
    return slots;
}

/* Unequal sets keep their sizes: such a cache cannot shrink. */
static void lay_out_unequal(struct cache *cache)
{
    const uint16_t *ways = cache->geometry.set_ways;
    uint32_t first = 0, smallest = UINT32_MAX;
    cache->set_count = count_unequal(&cache->geometry);
    cache->slot_count = 0;
    for (uint32_t s = 0; s < cache->set_count; s++)
        smallest = ways[s] < smallest ? ways[s] : smallest;
    for (uint32_t s = 0; s < cache->set_count; s++) {
        for (uint32_t k = 0; k < ways[s] / smallest && cache->slot_count < CACHE_SLOTS_MAX; k++)
            cache->slots[cache->slot_count++] = (uint16_t)s;
        cache->sets[s] = (struct cache_set){.first = first, .ways = ways[s]};
        first += ways[s];
    }
    cache->line_count = first;
    cache->by_sets = divider_of(cache->slot_count);
}

static bool is_prime(uint32_t number)
{
    for (uint32_t d = 2; (uint64_t)d * d <= number; d++)
        if (number % d == 0)
            return false;
    return number > 1;
}

/* By what a line number is divided: the number of sets that are used. */
static uint32_t index_divisor(const struct cache *cache)
{
    uint32_t sets = cache->set_count;
    if (cache->geometry.index == CACHE_PRIME)
        while (sets > 2 && !is_prime(sets))
            sets--;
    return sets;
}

/* Writes all sets and lines anew: the sets have another size, or the keys begin again. */
static void lay_out(struct cache *cache, uint32_t lines)
{
    if (cache->geometry.set_ways[0]) {
        lay_out_unequal(cache);
        return;
    }
    cache->set_count = count_sets(&cache->geometry, lines);
    cache->by_sets = divider_of(index_divisor(cache));
    cache->ways = lines / cache->set_count;
    cache->larger_sets = lines % cache->set_count;
    cache->line_count = lines;
    uint32_t first = 0;
    for (uint32_t s = 0; s < cache->set_count; s++) {
        uint32_t own = cache->ways + (s < cache->larger_sets);
        cache->sets[s] = (struct cache_set){.first = first, .ways = own};
        first += own;
    }
}

void cache_reset(struct cache *cache, uint64_t size_bytes)
{
    uint64_t wanted = size_bytes / cache->geometry.line;
    uint32_t lines = wanted < cache->lines_max ? (uint32_t)wanted : cache->lines_max;
    lines = lines ? lines : 1;
    cache->room = lines;
    cache->held = 0;
    lines = cache->geometry.set_ways[0] || cache->geometry.tags ? cache->lines_max : lines;
    cache->base += key_step;
    cache->resets++;
    if (!cache->base) {
        cache->base = key_step;
        memset(cache->lines, 0, cache->lines_max * sizeof *cache->lines);
    }
    if (lines != cache->line_count || !cache->resets) {
        cache->resets = 1;
        lay_out(cache, lines);
    }
    if (cache->links)
        memset(cache->buckets, 0, ((size_t)cache->bucket_mask + 1) * sizeof *cache->buckets);
    cache->last = 0;
    cache->fills++;
}

/* An L2 has megabytes of lines, used in random order: with small pages each would cost a page fault
 * or two. */
enum { LARGE_BYTES = 1 << 20 };

static struct cache_line *lines_create(uint32_t count)
{
    size_t bytes = (size_t)count * sizeof(struct cache_line);
    if (bytes < LARGE_BYTES)
        return mem_array(count, sizeof(struct cache_line));
    void *lines = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (lines == MAP_FAILED)
        mem_exhausted(bytes);
    (void)madvise(lines, bytes, MADV_HUGEPAGE); /* only a hint: failure does no harm */
    return lines;
}

static void lines_destroy(struct cache_line *lines, uint32_t count)
{
    size_t bytes = (size_t)count * sizeof *lines;
    if (bytes < LARGE_BYTES)
        free(lines);
    else
        munmap(lines, bytes);
}

static void create_links(struct cache *cache)
{
    uint32_t buckets = 1;
    while (buckets < cache->lines_max)
        buckets *= 2;
    buckets *= cache->geometry.in_bulk ? 2 : 1; /* shorter chains; but more to empty at a reset */
    cache->bucket_mask = buckets - 1;
    cache->links = mem_array(cache->lines_max, sizeof *cache->links);
    cache->buckets = mem_array(buckets, sizeof *cache->buckets);
}

struct cache *cache_create(const struct cache_geometry *geometry)
{
    struct cache *cache = mem_array(1, sizeof *cache);
    cache->geometry = *geometry;
    cache->by_line = divider_of(geometry->line);
    cache->by_sector = divider_of(geometry->sector);
    cache->by_run = divider_of(geometry->set_bytes ? geometry->set_bytes / geometry->line : 1);
    cache->tree = geometry->policy == CACHE_TREE;
    cache->lfu = geometry->policy == CACHE_LFU;
    cache->fifo = geometry->policy == CACHE_FIFO || cache->lfu;
    cache->lines_max =
        (uint32_t)((geometry->tags ? geometry->tags : geometry->size) / geometry->line);
    cache->lines_max = cache->lines_max ? cache->lines_max : 1;
    if (geometry->set_ways[0])
        cache->lines_max = count_lines(geometry);
    uint32_t sectors = (uint32_t)(geometry->line / geometry->sector);
    uint32_t together = (uint32_t)(geometry->fetch / geometry->sector);
    for (uint32_t s = 0; s < sectors; s++)
        for (uint32_t k = 0; k < sectors; k++)
            if (k / together == s / together)
                cache->fetch_masks[s] = (uint16_t)(cache->fetch_masks[s] | 1u << k);
    for (uint32_t mask = 0; mask < CACHE_FEW_MASKS; mask++)
        for (uint32_t s = 0; s < sectors && mask >> s; s++)
            if (mask >> s & 1)
                cache->fetched[mask] |= cache->fetch_masks[s];
    /* A smaller size after cache_reset has fewer sets, never more. */
    cache->lines = lines_create(cache->lines_max);
    cache->sets = mem_array(count_sets(geometry, cache->lines_max), sizeof *cache->sets);
    bool marked = geometry->marked || geometry->in_bulk;
    uint64_t scanned = geometry->mostly_hits || marked ? SCANNED_WAYS : FEW_WAYS;
    bool linked = !cache->lfu && (geometry->ways == 0 || geometry->ways > scanned);
    linked &= !geometry->tags; /* their oldest lines are searched for in any set */
    linked |= geometry->set_ways[0] > 0;
    marked &= !linked && geometry->ways > FEW_WAYS && !geometry->tags;
    cache->ordered = marked && !cache->lfu && !cache->tree;
    if (marked)
        cache->marks = mem_array((size_t)cache->lines_max + MARKS_TOGETHER, sizeof *cache->marks);
    if (linked)
        create_links(cache);
    cache_reset(cache, geometry->size);
    return cache;
}

bool cache_draws(const struct cache_geometry *geometry)
{
    return geometry->policy == CACHE_RANDOM || geometry->policy == CACHE_FERMI ||
           geometry->policy == CACHE_EARLY || geometry->slack > 0 || geometry->tags;
}

uint64_t cache_dirty_sectors(const struct cache *cache)
{
    uint64_t sectors = 0;
    for (uint32_t i = 0; i < cache->line_count; i++)
        if (cache->lines[i].key > cache->base)
            sectors += (uint64_t)__builtin_popcount(cache->lines[i].dirty);
    return sectors;
}

void cache_destroy(struct cache *cache)
{
    if (!cache)
        return;
    lines_destroy(cache->lines, cache->lines_max);
    free(cache->sets);
    free(cache->links);
    free(cache->marks);
    free(cache->buckets);
    free(cache);
}
