/* Sketches of figures of healthy GPUs elsewhere, by model and board part, without identity: a lone
 * GPU or a small site is compared with them. docs/share.md describes the file. */
#ifndef GPUMEMTOPO_JUDGE_WORLD_H
#define GPUMEMTOPO_JUDGE_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

enum { WORLD_SCHEMA = 2, WORLD_QUANTILES = 7 };

/* The shares below the quantiles: 1, 5, 25, 50, 75, 95 and 99 %. */
extern const double world_shares[WORLD_QUANTILES];

/* One metric of the GPUs of a population, at their usual SM clock. */
struct world_figure {
    char *metric;
    uint32_t n; /* GPUs behind it */
    double median;
    double scatter;                    /* between GPUs: a robust standard deviation */
    double spread;                     /* median over the GPUs of the spread of their repetitions */
    double quantiles[WORLD_QUANTILES]; /* in ascending order */
};

/* A sorted list of different texts. */
struct world_words {
    char **items;
    size_t count;
};

/* GPUs with one board part. */
struct world_population {
    char *part; /* NULL: not known */
    uint32_t gpus;
    struct world_words programs; /* versions of gpumemtopo that measured */
    struct world_words drivers;
    struct world_figure *figures; /* sorted by metric */
    size_t figure_count;
};

struct world_model {
    char *name, *key;                     /* as in an inventory */
    struct world_population *populations; /* sorted by part */
    size_t population_count;
};

/* A file that was added. */
struct world_source {
    char *path;
    uint64_t hash; /* of its figures */
};

/* Zero-initialised is empty. Released with world_fini. */
struct world {
    char *first, *last;         /* months of the surveys: "2026-11"; NULL: none */
    struct world_model *models; /* sorted by key */
    size_t model_count;
    struct world_source *sources;
    size_t source_count, source_room;
};
void world_fini(struct world *world);

/* Reads a file: every key is known, every figure is possible. -EINVAL with position, or the system
 * error. out_world untouched on failure. */
int world_read_file(const char *path, struct world *out_world, struct err *err);

int world_read_text(const char *text, size_t length, const char *name, struct world *out_world,
                    struct err *err);

/* Whether the file begins as a world file; false if it cannot be read. */
bool world_is_file(const char *path);

/* The YAML text. version: of the program. */
void world_print(const struct world *world, const char *version, struct strbuf *out_text);

/* Adds what `from` has. Figures of the same model, board part and metric are combined, as if their
 * GPUs were different. */
void world_add(struct world *into, const struct world *from);

/* Reads a file and adds it. Errors as world_read_file, and -EINVAL for a file whose figures were
 * added before. */
int world_add_file(struct world *into, const char *path, struct err *err);

/* The model with this key; NULL if there is none. */
const struct world_model *world_find_model(const struct world *world, const char *key);
const struct world_population *world_find_population(const struct world_model *model,
                                                     const char *part);
const struct world_figure *world_find_figure(const struct world_population *population,
                                             const char *metric);

/* The entry of that name, added if it is not there. Pointers to other entries of the list are
 * invalid afterwards. */
struct world_model *world_have_model(struct world *world, const char *name, const char *key);
struct world_population *world_have_population(struct world_model *model, const char *part);
struct world_figure *world_have_figure(struct world_population *population, const char *metric);

/* Add a word; NULL changes nothing. Widen first and last so that they include the month of a time
 * ("2026-11-16T12:00:00Z") or a month. */
void world_add_word(struct world_words *words, const char *word);
void world_add_month(struct world *world, const char *time);

enum { WORLD_PROGRAM_MAX = 64 };

/* "0.1.0"; of simulated GPUs "0.1.0 sim". NULL counts as "". */
void world_program(const char *version, const char *backend, char out_word[WORLD_PROGRAM_MAX]);

/* True if both measure alike: versions that differ only behind the second dot, both simulated or
 * both not. */
bool world_program_alike(const char *a, const char *b);

#endif
