/* GPUs that look bad are measured again. */
#include "survey/root/second_look.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "probes/probes.h"

struct suspect {
    char *uuid;
    struct strbuf probes; /* names, comma-separated */
};

struct suspects {
    struct suspect *items;
    size_t count, capacity;
};

static void suspects_fini(struct suspects *suspects)
{
    for (size_t i = 0; i < suspects->count; i++) {
        free(suspects->items[i].uuid);
        strbuf_fini(&suspects->items[i].probes);
    }
    free(suspects->items);
}

static bool has_name(const char *list, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = list; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, name, length) == 0 && (!at[length] || at[length] == ','))
            return true;
    }
    return false;
}

/* The probe behind a figure or its spread; NULL: it is a fact, which is not measured. */
static int find_probe(const char *metric, const char **out_probe)
{
    char *name = str_copy(metric);
    if (!name)
        return -ENOMEM;
    char *end = strrchr(name, '.');
    if (end && str_equal(end, MEASURE_SPREAD))
        *end = '\0';
    *out_probe = probe_of_metric(name);
    free(name);
    return 0;
}

/* All suspicions about one GPU come in a row. */
static int take_suspicion(void *user, const char *uuid, const char *metric, struct err *err)
{
    struct suspects *suspects = user;
    const char *probe = NULL;
    if (find_probe(metric, &probe))
        return err_no_memory(err);
    if (!probe)
        return 0;
    bool first = !suspects->count || !str_equal(suspects->items[suspects->count - 1].uuid, uuid);
    if (first) {
        struct suspect *grown =
            mem_grow(suspects->items, &suspects->capacity, suspects->count + 1, sizeof *grown);
        if (!grown)
            return err_no_memory(err);
        suspects->items = grown;
        struct suspect *added = &grown[suspects->count++];
        if (str_copy_to(&added->uuid, uuid))
            return err_no_memory(err);
    }
    struct strbuf *probes = &suspects->items[suspects->count - 1].probes;
    if (!probes->length || !has_name(probes->data, probe))
        strbuf_printf(probes, "%s%s", probes->length ? "," : "", probe);
    return probes->failed ? err_no_memory(err) : 0;
}

static int by_uuid(const void *left, const void *right)
{
    const struct root_suspect *a = left, *b = right;
    return strcmp(a->uuid, b->uuid);
}

int second_look_ask(const struct judging *judging, struct root *root, size_t *out_count,
                    struct err *err)
{
    struct suspects suspects = {0};
    struct root_suspect *list = NULL;
    int rc = judge_suspicions(judging->judge, take_suspicion, &suspects, err);
    if (rc)
        goto out;
    list = mem_array(suspects.count, sizeof *list);
    if (!list) {
        rc = err_no_memory(err);
        goto out;
    }
    for (size_t i = 0; i < suspects.count; i++)
        list[i] = (struct root_suspect){suspects.items[i].uuid, suspects.items[i].probes.data};
    if (suspects.count)
        qsort(list, suspects.count, sizeof *list, by_uuid);
    *out_count = suspects.count;
    rc = root_measure_again(root, list, suspects.count, err);
out:
    free(list);
    suspects_fini(&suspects);
    return rc;
}
