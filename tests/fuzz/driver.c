/* Runs a fuzz target without libFuzzer: on every file of its corpus, and on so many damaged copies.
 * usage: TARGET RUNS FOLDER... */
#include "fuzz.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"

enum { FILES_MAX = 1024, SIZE_MAX_BYTES = 1 << 20 };

struct file {
    uint8_t *data;
    size_t size;
};

/* Behind the `count` files that are there; returns how many there are then. */
static size_t load(const char *folder, struct file *files, size_t count)
{
    struct dirent **entries = NULL;
    int found = scandir(folder, &entries, NULL, alphasort);
    for (int i = 0; i < found; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        FILE *file = entries[i]->d_name[0] == '.' || count == FILES_MAX ? NULL : fopen(path, "rb");
        if (file) {
            uint8_t *data = malloc(SIZE_MAX_BYTES);
            files[count++] = (struct file){data, fread(data, 1, SIZE_MAX_BYTES, file)};
            fclose(file);
        }
        free(entries[i]);
    }
    free(entries);
    return count;
}

/* Flips, overwrites, cuts, repeats and crosses over: crude, but the same each time. */
static size_t damage(const struct file *files, size_t count, uint64_t number, uint8_t *out)
{
    struct rng rng;
    rng_init(&rng, number, "damage");
    const struct file *file = &files[rng_below(&rng, count)];
    size_t size = file->size;
    memcpy(out, file->data, size);
    for (uint64_t steps = rng_below(&rng, 6) + 1; steps && size; steps--) {
        size_t at = rng_below(&rng, size);
        const struct file *other = &files[rng_below(&rng, count)];
        size_t from = other->size ? rng_below(&rng, other->size) : 0;
        size_t length = rng_below(&rng, 64) + 1;
        switch (rng_below(&rng, 6)) {
        case 0:
            out[at] ^= (uint8_t)(1u << rng_below(&rng, 8));
            break;
        case 1:
            out[at] = (uint8_t)rng_below(&rng, 256);
            break;
        case 2:
            size = at;
            break;
        case 3:
            memmove(out + at, out + at + 1, size - at - 1);
            size--;
            break;
        case 4: /* four bytes of a length or a count */
            if (size - at >= 4)
                memset(out + at, rng_below(&rng, 2) ? 0xff : 0, 4);
            break;
        default:
            length = length < other->size - from ? length : other->size - from;
            length = length < size - at ? length : size - at;
            memcpy(out + at, other->data + from, length);
            break;
        }
    }
    return size;
}

int main(int argc, char **argv)
{
    static struct file files[FILES_MAX];
    size_t count = 0;
    if (argc < 3)
        return 2;
    for (int i = 2; i < argc; i++) {
        size_t before = count;
        count = load(argv[i], files, count);
        if (count == before) {
            fprintf(stderr, "no corpus in %s\n", argv[i]);
            return 1;
        }
    }
    for (size_t i = 0; i < count; i++)
        LLVMFuzzerTestOneInput(files[i].data, files[i].size);
    uint64_t runs = strtoull(argv[1], NULL, 10);
    uint8_t *bytes = malloc(SIZE_MAX_BYTES);
    for (uint64_t number = 0; bytes && number < runs; number++) {
        size_t size = damage(files, count, number, bytes);
        /* In a block of its own size, so that reading past its end is noticed. */
        uint8_t *exact = malloc(size ? size : 1);
        memcpy(exact, bytes, size);
        LLVMFuzzerTestOneInput(exact, size);
        free(exact);
    }
    free(bytes);
    for (size_t i = 0; i < count; i++)
        free(files[i].data);
    printf("%zu files, %llu damaged ones\n", count, (unsigned long long)runs);
    return 0;
}
