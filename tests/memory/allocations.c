/* Allocations that fail when a test wants them to: the functions that the linker puts in place of
 * malloc and of the library functions that allocate. */
#include "allocations.h"

#include <dirent.h>
#include <errno.h>
#include <execinfo.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <yaml.h>

enum { FRAMES_MAX = 32 };

static struct {
    bool counting;  /* from memory_limit to memory_restore */
    size_t allowed; /* SIZE_MAX: no limit */
    enum memory_outage outage;
    size_t count;
    bool failed;
    size_t failed_at;
    void *frames[FRAMES_MAX]; /* of the allocation that failed first */
    int frame_count;
} limit = {.allowed = SIZE_MAX};

static long live;

static struct {
    const size_t *numbers;
    size_t count, next;
    size_t failed;
    bool is_child;
} forks;

/* Call stacks seen so far, by their hash; 0: a free slot. */
enum { PATHS_MAX = 1 << 16 };
static struct {
    size_t *numbers;
    size_t room, count;
    uint64_t paths[PATHS_MAX];
} notes;

void memory_limit(size_t allowed, enum memory_outage outage)
{
    limit.counting = true;
    limit.allowed = allowed;
    limit.outage = outage;
    limit.count = 0;
    limit.failed = false;
    limit.frame_count = 0;
}

void memory_restore(void)
{
    limit.counting = false;
    limit.allowed = SIZE_MAX;
}

bool memory_failed(void)
{
    return limit.failed;
}

size_t memory_failed_at(void)
{
    return limit.failed_at;
}

enum memory_outage memory_outage(void)
{
    return limit.outage;
}

size_t memory_count(void)
{
    return limit.count;
}

long memory_live(void)
{
    return live;
}

void memory_print_failure(void)
{
    backtrace_symbols_fd(limit.frames, limit.frame_count, STDERR_FILENO);
}

void memory_note_paths(size_t *numbers, size_t room)
{
    memset(&notes, 0, sizeof notes);
    notes.numbers = numbers;
    notes.room = room;
}

size_t memory_noted(void)
{
    return notes.count;
}

void memory_fork_at(const size_t *numbers, size_t count)
{
    forks.numbers = numbers;
    forks.count = count;
    forks.next = forks.failed = 0;
}

bool memory_in_child(void)
{
    return forks.is_child;
}

size_t memory_failed_children(void)
{
    return forks.failed;
}

/* True in the child: the current allocation has to fail there. */
static bool fork_here(enum memory_outage outage)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        forks.is_child = true;
        forks.next = forks.count; /* a child does not fork again */
        limit.allowed = 0;
        limit.outage = outage;
        return true;
    }
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
        forks.failed++;
    return false;
}

static void fork_if_wanted(void)
{
    if (forks.next == forks.count || forks.numbers[forks.next] != limit.count)
        return;
    forks.next++;
    for (int outage = 0; outage < MEMORY_OUTAGES; outage++)
        if (fork_here((enum memory_outage)outage))
            return;
}

static uint64_t path_hash(void)
{
    void *frames[FRAMES_MAX];
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a, by words */
    for (int i = 0, count = backtrace(frames, FRAMES_MAX); i < count; i++)
        hash = (hash ^ (uintptr_t)frames[i]) * 0x100000001b3u;
    return hash ? hash : 1;
}

static void note_path(void)
{
    uint64_t hash = path_hash();
    size_t slot = hash % PATHS_MAX;
    for (size_t tried = 0; tried < PATHS_MAX && notes.paths[slot] != hash; tried++) {
        if (!notes.paths[slot]) {
            notes.paths[slot] = hash;
            if (notes.count < notes.room)
                notes.numbers[notes.count++] = limit.count;
            return;
        }
        slot = (slot + 1) % PATHS_MAX;
    }
}

/* Counts one allocation; true if it has to fail. */
static bool fails(void)
{
    if (!limit.counting)
        return false;
    if (notes.numbers)
        note_path();
    fork_if_wanted();
    limit.count++;
    if (limit.allowed == SIZE_MAX)
        return false;
    if (limit.allowed) {
        limit.allowed--;
        return false;
    }
    if (!limit.failed) {
        limit.failed_at = limit.count - 1;
        limit.frame_count = backtrace(limit.frames, FRAMES_MAX);
    }
    limit.failed = true;
    if (limit.outage == MEMORY_LACKS_ONE)
        limit.allowed = SIZE_MAX;
    errno = ENOMEM;
    return true;
}

static void *kept(void *block)
{
    live += block != NULL;
    return block;
}

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : kept(__real_malloc(size));
}

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size)
{
    return fails() ? NULL : kept(__real_calloc(count, size));
}

void __real_free(void *block);
void __wrap_free(void *block);
void __wrap_free(void *block)
{
    live -= block != NULL;
    __real_free(block);
}

void *__wrap_realloc(void *block, size_t size);
/* Always moves the block, so that code that keeps the old address is detected. */
void *__wrap_realloc(void *block, size_t size)
{
    void *grown = fails() ? NULL : kept(__real_malloc(size));
    if (!grown || !block)
        return grown;
    size_t held = malloc_usable_size(block);
    memcpy(grown, block, held < size ? held : size);
    __wrap_free(block);
    return grown;
}

void *__real_mmap64(void *address, size_t length, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap64(void *address, size_t length, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap64(void *address, size_t length, int protection, int flags, int fd, off_t offset)
{
    if (fails())
        return MAP_FAILED;
    void *block = __real_mmap64(address, length, protection, flags, fd, offset);
    live += block != MAP_FAILED;
    return block;
}

int __real_munmap(void *address, size_t length);
int __wrap_munmap(void *address, size_t length);
int __wrap_munmap(void *address, size_t length)
{
    live--;
    return __real_munmap(address, length);
}

/* Library functions. The project frees what they return, so it counts as allocated here. */

char *__real_realpath(const char *path, char *resolved);
char *__wrap_realpath(const char *path, char *resolved);
char *__wrap_realpath(const char *path, char *resolved)
{
    if (resolved)
        return __real_realpath(path, resolved);
    return fails() ? NULL : kept(__real_realpath(path, NULL));
}

typedef int dirent_filter(const struct dirent *entry);
typedef int dirent_order(const struct dirent **a, const struct dirent **b);
int __real_scandir64(const char *folder, struct dirent ***out_entries, dirent_filter *filter,
                     dirent_order *order);
int __wrap_scandir64(const char *folder, struct dirent ***out_entries, dirent_filter *filter,
                     dirent_order *order);
int __wrap_scandir64(const char *folder, struct dirent ***out_entries, dirent_filter *filter,
                     dirent_order *order)
{
    if (fails())
        return -1;
    int count = __real_scandir64(folder, out_entries, filter, order);
    if (count >= 0)
        live += count + (*out_entries != NULL);
    return count;
}

DIR *__real_opendir(const char *path);
DIR *__wrap_opendir(const char *path);
DIR *__wrap_opendir(const char *path)
{
    return fails() ? NULL : __real_opendir(path);
}

int __real_yaml_parser_initialize(yaml_parser_t *parser);
int __wrap_yaml_parser_initialize(yaml_parser_t *parser);
int __wrap_yaml_parser_initialize(yaml_parser_t *parser)
{
    if (!fails())
        return __real_yaml_parser_initialize(parser);
    memset(parser, 0, sizeof *parser);
    parser->error = YAML_MEMORY_ERROR;
    return 0;
}

int __real_yaml_parser_parse(yaml_parser_t *parser, yaml_event_t *event);
int __wrap_yaml_parser_parse(yaml_parser_t *parser, yaml_event_t *event);
int __wrap_yaml_parser_parse(yaml_parser_t *parser, yaml_event_t *event)
{
    if (!fails())
        return __real_yaml_parser_parse(parser, event);
    memset(event, 0, sizeof *event);
    parser->error = YAML_MEMORY_ERROR;
    return 0;
}
