/* The command line of gpumemtopo-predict. */
#ifndef GPUMEMTOPO_PREDICT_OPTIONS_H
#define GPUMEMTOPO_PREDICT_OPTIONS_H

#include "base/err.h"
#include "base/options.h"
#include "base/str.h"
#include "predict/machine.h"
#include "predict/prediction_page.h"

enum { PREDICT_JOBS_MAX = 1024, PREDICT_L2_PARTITIONS_MAX = 256 };

/* Strings point into argv. */
struct predict_options {
    struct option_list kernels, inventories, models, what_if_texts;
    struct what_if_list what_ifs;
    const char *output;
    const char *block_text, *mshrs_text, *l2_banks_text, *latency_text;
    uint64_t size, registers, mshrs, l2_mshrs, jobs;
    uint32_t block_x, block_y, l2_partitions, l2_banks;
    double k1, k2;
    enum prediction_format format;
    enum block_mapping mapping;
    enum sm_scheduler scheduler;
    enum model_writes writes;
    bool reuse, quiet, list_kernels, version;
    const char *help; /* the form of the help (options_print); NULL: none */
};

/* -EINVAL with one line that says what is wrong. */
int predict_options_read(struct predict_options *options, int count, char **arguments,
                         struct err *err);

void predict_options_help(const char *form, struct strbuf *out_text);

#endif
