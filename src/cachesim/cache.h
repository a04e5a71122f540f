/* One simulated cache (or TLB): which lines and sectors it holds. It does not model time. */
#ifndef GPUMEMTOPO_CACHESIM_CACHE_H
#define GPUMEMTOPO_CACHESIM_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"
#include "cachesim/divider.h"

enum cache_index {
    CACHE_MODULO,
    CACHE_HASHED,
    CACHE_SHIFTED, /* modulo of the line number without its lowest index_shift bits */
    CACHE_PRIME,   /* modulo the largest prime that is not above the number of sets */
    CACHE_XOR,     /* the modulo, combined with the digit above it */
};
enum cache_policy {
    CACHE_LRU,
    CACHE_RANDOM,
    CACHE_FERMI,
    CACHE_EARLY,
    CACHE_FIFO,
    CACHE_TREE, /* pseudo-LRU: a binary tree whose nodes point away from the last use */
    CACHE_LFU,  /* the line with the fewest uses since it came; the first of several */
};

/* A tree of so many ways, and one more in larger sets, has its nodes in 64 bits. */
enum {
    CACHE_SECTORS_MAX = 16,
    CACHE_TREE_WAYS_MAX = 31,
    CACHE_SLOTS_MAX = 64,
    CACHE_TAGS_WAYS_MAX = 32,
    CACHE_FEW_MASKS = 16, /* of four sectors */
};

/* Sizes in bytes: sector divides fetch, fetch divides line, a line has at most CACHE_SECTORS_MAX
 * sectors. ways 0: fully associative. */
struct cache_geometry {
    uint64_t size;
    uint64_t line;
    uint64_t sector;
    uint64_t fetch; /* what a miss brings: sector, or more behind L2 */
    uint64_t ways;
    uint64_t tags;      /* bytes for which there are tags, more than data has room; 0: as many. Not
                         * with CACHE_EARLY, nor with more than CACHE_TAGS_WAYS_MAX ways */
    uint64_t set_bytes; /* so many neighbouring bytes go to the same set: whole lines; 0: a line */
    /* Unequal sets: the ways of each, 0 after the last; none: all sets are equal. A set of k times
     * as many ways as the smallest one takes the lines of k equal sets, so that contiguous lines
     * fill all sets alike. At most CACHE_SLOTS_MAX of these. */
    uint16_t set_ways[CACHE_SLOTS_MAX + 1];
    enum cache_index index;
    uint32_t index_shift; /* CACHE_SHIFTED */
    enum cache_policy policy;
    double early_fill;   /* CACHE_EARLY: fill of a set from which valid lines are evicted early */
    uint32_t dirty_ways; /* so many lines of a set are dirty at most; 0: all of them */
    double slack;        /* share of victims chosen at random instead of by the policy */
    bool mostly_hits;    /* L2: the search of its sets is optimised for hits, not for misses */
    bool marked;  /* sets of 5 to 16 ways keep marks and an order: quicker than both others */
    bool in_bulk; /* cache_serve is used; implies marked */
};

/* Kept small, so that a search touches few lines of the real cache. */
struct cache_line {
    uint64_t key; /* line number + 1 + the cache's base: keys from before a reset are never found */
    uint32_t used; /* tick of the last use; CACHE_LFU: number of uses */
    uint16_t sectors;
    uint16_t dirty; /* sectors written since they came */
};

struct cache_set {
    uint32_t first; /* its lines are first .. first + ways - 1, the first `filled` valid */
    uint32_t ways;
    uint32_t filled;
    uint32_t dirty;  /* lines */
    uint32_t resets; /* cache.resets at the last use of the set; if not the same, it is empty */
    uint32_t newest, oldest; /* ends of the list by use; linked caches only */
    uint64_t tree;           /* CACHE_TREE: bit n is set if node n points to its upper half */
    uint64_t order;          /* ways by last use, the newest lowest, four bits each; 0: not known */
};

/* Sets of many ways are searched through a hash table and ordered by a list. */
struct cache_link {
    uint32_t chain, newer, older;
};

/* The fields belong to this folder, except the counts and `epoch`. */
struct cache {
    struct cache_geometry geometry;
    struct divider by_line, by_sector, by_sets;
    struct divider by_run; /* lines that go to the same set one after the other */
    bool fifo, tree, lfu;  /* the policy: uses do not make younger, are kept in a tree, counted */
    bool stored;           /* some lines were written */
    uint16_t fetch_masks[CACHE_SECTORS_MAX];
    uint16_t fetched[CACHE_FEW_MASKS]; /* what a load of these sectors brings */
    uint32_t lines_max, line_count, set_count;
    uint32_t room, held; /* lines of data, and how many are there; more tags than data only */
    uint32_t ways, larger_sets;      /* the first larger_sets sets have one way more */
    uint32_t slot_count;             /* unequal sets: lines go to slots in turn; 0: to sets */
    uint16_t slots[CACHE_SLOTS_MAX]; /* the set of each slot */
    struct cache_line *lines;
    uint32_t last;     /* the line used last of all */
    uint32_t last_way; /* where the last search found a line */
    struct cache_set *sets;
    struct cache_link *links; /* NULL: sets are scanned */
    uint8_t *marks;    /* a byte of each line's hash: most lines need not be read; NULL: not kept */
    bool ordered;      /* sets keep their order */
    uint32_t *buckets; /* slot + 1, 0: none */
    uint32_t bucket_mask;
    uint32_t tick;
    uint32_t resets;
    uint64_t base;         /* of keys; rises with each reset, so that emptying costs nothing */
    uint64_t fills;        /* lines or sectors brought in so far: unchanged means nothing changed */
    uint64_t brought;      /* sectors that cache_load brought in so far */
    uint64_t written_back; /* written sectors that were evicted or cleaned so far */
    uint64_t epoch;        /* the owner's mark of when it was reset */
};

/* Empty cache of at most geometry->size. */
struct cache *cache_create(const struct cache_geometry *geometry);
void cache_destroy(struct cache *cache); /* accepts NULL */

/* Empties it and sets its size (at least one line, at most the size it was created with). */
void cache_reset(struct cache *cache, uint64_t size_bytes);

/* One load: true when its sector was there; brings it in otherwise. */
bool cache_access(struct cache *cache, uint64_t address, struct rng *rng);

/* The same for several sectors of one line (bit i: the sector i of the line). Return the sectors
 * that were not there. A load brings what it misses, in units of `fetch`; a store brings nothing,
 * but what it wrote is there from then on, and is counted when it is evicted. */
uint32_t cache_load(struct cache *cache, uint64_t address, uint32_t sectors, struct rng *rng);
uint32_t cache_store(struct cache *cache, uint64_t address, uint32_t sectors, struct rng *rng);

/* A copy of what is written elsewhere: there from then on, never written back. */
void cache_place(struct cache *cache, uint64_t address, uint32_t sectors, struct rng *rng);

enum cache_operation {
    CACHE_LOAD,  /* cache_load */
    CACHE_STORE, /* cache_store */
    CACHE_PLACE, /* cache_place; all its sectors count as missing */
    CACHE_DROP,  /* cache_drop; all its sectors then count as missing */
    CACHE_PASS,  /* does not reach the cache: all its sectors count as missing */
};

/* One of many accesses. */
struct cache_request {
    uint64_t number; /* address / line size */
    uint16_t sectors;
    uint16_t missing; /* result: the sectors that were not there */
    uint16_t cache;   /* which of the caches it is for */
    uint8_t operation;
    uint8_t note; /* the caller's */
};

/* Serves many accesses in their order, as the functions above would one by one: for caches of equal
 * geometry, or for one cache, without CACHE_DROP and CACHE_PASS. What they look at comes from
 * memory before their turn, if the cache's geometry has `in_bulk`. */
void cache_serve(struct cache *const *caches, struct cache_request *requests, size_t count,
                 struct rng *rng);
void cache_serve_one(struct cache *cache, struct cache_request *requests, size_t count,
                     struct rng *rng);

/* Whether such a cache takes random numbers. */
bool cache_draws(const struct cache_geometry *geometry);

/* Whether all these sectors are there; changes nothing. */
bool cache_holds(struct cache *cache, uint64_t address, uint32_t sectors);

/* Invalidates the sectors of this address's line, if it is there. LRU, FIFO and LFU then replace it
 * first. */
void cache_drop(struct cache *cache, uint64_t address);

/* Written sectors that are still in the cache. */
uint64_t cache_dirty_sectors(const struct cache *cache);

/* True when the line of this address was the last one used: another access would change nothing.
 * For caches with one sector per line and a power of two as line size, such as TLBs. */
static inline bool cache_is_last(const struct cache *cache, uint64_t address)
{
    return cache->lines[cache->last].key == (address >> cache->by_line.shift) + 1 + cache->base;
}

/* The equal sets that unequal ones stand for; 0: set_ways is empty. */
uint32_t cache_slot_count(const struct cache_geometry *geometry);

/* Addresses this many bytes apart fall into the same set. */
uint64_t cache_span(const struct cache *cache);

#endif
