/* The command line of gpumemtopo-predict. */
#ifndef GPUMEMTOPO_PREDICT_OPTIONS_H
#define GPUMEMTOPO_PREDICT_OPTIONS_H

#include "base/err.h"
#include "base/str.h"
#include "predict/machine.h"
#include "predict/prediction_formats.h"

enum { OPTIONS_LIST_MAX = 64, OPTIONS_JOBS_MAX = 1024, OPTIONS_L2_PARTITIONS_MAX = 256 };

struct options_list {
    const char *items[OPTIONS_LIST_MAX];
    size_t count;
};

/* Strings point into argv. */
struct options {
    struct options_list kernels, inventories, models, what_if_texts;
    struct what_if_list what_ifs;
    const char *output;
    const char *size_text, *block_text, *format_text, *mapping_text, *scheduler_text, *writes_text;
    const char *registers_text, *mshrs_text, *l2_banks_text, *latency_text, *jobs_text;
    uint64_t size, registers, mshrs, l2_mshrs, jobs;
    uint32_t block_x, block_y, l2_partitions, l2_banks;
    double k1, k2;
    enum prediction_format format;
    enum block_mapping mapping;
    enum sm_scheduler scheduler;
    enum model_writes writes;
    bool reuse, quiet, list_kernels, help, version;
};

/* -EINVAL with one line that says what is wrong. */
int options_read(struct options *options, int count, char **arguments, struct err *err);

void options_help(struct strbuf *out_text);

#endif
