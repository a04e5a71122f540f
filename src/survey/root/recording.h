/* The record of the whole survey, made by rank 0. It is begun before anything is measured and has
 * one part per GPU. */
#ifndef GPUMEMTOPO_SURVEY_ROOT_RECORDING_H
#define GPUMEMTOPO_SURVEY_ROOT_RECORDING_H

#include <stddef.h>

#include "base/err.h"

struct pseudonyms;
struct recording;
struct root_view;
struct survey_config;
struct survey_options;

/* What is known about the run before it begins. */
struct recording_input {
    const struct survey_options *options;
    const struct survey_config *config;
    int argc;
    char *const *argv;
    int ranks;
};
int recording_begin(const struct recording_input *input, struct recording **out_recording,
                    struct err *err);

/* Adds the part of one GPU, as a rank made it. A write error is kept and returned by recording_end;
 * the survey continues. */
void recording_add(struct recording *recording, const char *part, size_t length);

/* Adds what rank 0 knows, then moves the file to its place. With --anonymous it keeps its names and
 * a temporary name until recording_anonymise. */
int recording_end(struct recording *recording, const struct root_view *view, struct err *err);

/* Writes the record without names, after recording_end; does nothing without --anonymous. names:
 * those of the inventory, sealed; NULL: the record has pseudonyms of its own. */
int recording_anonymise(struct recording *recording, struct pseudonyms *names, struct err *err);

void recording_destroy(struct recording *recording); /* accepts NULL */

#endif
