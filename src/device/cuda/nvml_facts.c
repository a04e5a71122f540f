/* Reads facts from NVML by table. */
#include "device/cuda/nvml_facts.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/mem.h"

/* NVML_VALUE_NOT_AVAILABLE: all bits set, in an answer that is otherwise valid. */
static int known(int result, bool available)
{
    return result == NVML_OK && !available ? NVML_NOT_SUPPORTED : result;
}

/* The function of a question; its type follows from the shape. NULL: this NVML does not have it. */
static void find_function(const struct nvml_gpu *gpu, const struct nvml_question *question,
                          void *out_function)
{
    void *address = nvml_symbol(gpu->nvml, question->symbol);
    memcpy(out_function, &address, sizeof address);
}

static int read_number(const struct nvml_gpu *gpu, const struct nvml_question *question,
                       int64_t *out)
{
    nvml_get_number *get;
    unsigned value = 0, divisor = question->divisor ? question->divisor : 1;
    find_function(gpu, question, &get);
    int result = get(gpu->handle, &value);
    *out = ((int64_t)value + divisor / 2) / divisor;
    return known(result, value != UINT_MAX);
}

static int read_text(const struct nvml_gpu *gpu, const struct nvml_question *question,
                     char out[NVML_TEXT_BYTES])
{
    nvml_get_text *get;
    find_function(gpu, question, &get);
    int result = get(gpu->handle, out, NVML_TEXT_BYTES);
    out[NVML_TEXT_BYTES - 1] = '\0';
    return result;
}

static int read_chosen(const struct nvml_gpu *gpu, const struct nvml_question *question,
                       int64_t *out)
{
    nvml_get_chosen *get;
    unsigned value = 0;
    find_function(gpu, question, &get);
    int result = get(gpu->handle, question->a[0], &value);
    *out = value;
    return known(result, value != UINT_MAX);
}

static int read_pair(const struct nvml_gpu *gpu, const struct nvml_question *question, int64_t *out)
{
    nvml_get_pair *get;
    unsigned values[2] = {0};
    find_function(gpu, question, &get);
    int result = get(gpu->handle, &values[0], &values[1]);
    *out = values[question->a[0]];
    return result;
}

static int read_ecc_total(const struct nvml_gpu *gpu, const struct nvml_question *question,
                          int64_t *out)
{
    nvml_get_ecc_total *get;
    unsigned long long count = 0;
    find_function(gpu, question, &get);
    int result = get(gpu->handle, question->a[0], question->a[1], &count);
    *out = (int64_t)count;
    return known(result, count != ULLONG_MAX);
}

static int read_ecc_at(const struct nvml_gpu *gpu, const struct nvml_question *question,
                       int64_t *out)
{
    nvml_get_ecc_at *get;
    unsigned long long count = 0;
    find_function(gpu, question, &get);
    int result = get(gpu->handle, question->a[0], question->a[1], question->a[2], &count);
    *out = (int64_t)count;
    return known(result, count != ULLONG_MAX);
}

/* Called without room for addresses, NVML returns how many there are. */
static int read_retired(const struct nvml_gpu *gpu, const struct nvml_question *question,
                        int64_t *out)
{
    nvml_get_retired *get;
    unsigned count = 0;
    find_function(gpu, question, &get);
    int result = get(gpu->handle, question->a[0], &count, NULL);
    *out = count;
    return result == NVML_TOO_SMALL ? NVML_OK : result;
}

static int read_remapped(const struct nvml_gpu *gpu, const struct nvml_question *question,
                         int64_t *out)
{
    nvml_get_remapped *get;
    unsigned values[4] = {0};
    find_function(gpu, question, &get);
    int result = get(gpu->handle, &values[0], &values[1], &values[2], &values[3]);
    *out = values[question->a[0]];
    return result;
}

static int read_banks(const struct nvml_gpu *gpu, const struct nvml_question *question,
                      int64_t *out)
{
    nvml_get_banks *get;
    struct nvml_banks banks = {0};
    find_function(gpu, question, &get);
    int result = get(gpu->handle, &banks);
    const unsigned values[] = {banks.max, banks.high, banks.partial, banks.low, banks.none};
    *out = values[question->a[0]];
    return result;
}

static int64_t number_of(const struct nvml_field *field)
{
    switch (field->type) {
    case NVML_IS_REAL:
        return llround(field->value.real);
    case NVML_IS_UNSIGNED:
        return field->value.unsigned_int;
    case NVML_IS_SIGNED:
        return field->value.signed_int;
    case NVML_IS_SIGNED_LONG_LONG:
        return field->value.signed_long_long;
    default:
        return (int64_t)field->value.unsigned_long_long;
    }
}

static int read_field(const struct nvml_gpu *gpu, const struct nvml_question *question,
                      int64_t *out)
{
    nvml_get_fields *get;
    struct nvml_field field = {.id = (unsigned)question->a[0]};
    find_function(gpu, question, &get);
    int result = get(gpu->handle, 1, &field);
    *out = number_of(&field);
    return result == NVML_OK ? field.result : result;
}

static int read_valid(const struct nvml_gpu *gpu, const struct nvml_question *question,
                      int64_t *out)
{
    nvml_check *check;
    find_function(gpu, question, &check);
    int result = check(gpu->handle);
    *out = result == NVML_OK;
    return result == NVML_CORRUPTED_INFOROM ? NVML_OK : result;
}

static int read_shape(const struct nvml_gpu *gpu, const struct nvml_question *question,
                      struct nvml_value *out)
{
    switch (question->shape) {
    case NVML_SHAPE_TEXT:
        return read_text(gpu, question, out->text);
    case NVML_SHAPE_CHOSEN:
        return read_chosen(gpu, question, &out->number);
    case NVML_SHAPE_PAIR:
        return read_pair(gpu, question, &out->number);
    case NVML_SHAPE_ECC_TOTAL:
        return read_ecc_total(gpu, question, &out->number);
    case NVML_SHAPE_ECC_AT:
        return read_ecc_at(gpu, question, &out->number);
    case NVML_SHAPE_RETIRED:
        return read_retired(gpu, question, &out->number);
    case NVML_SHAPE_REMAPPED:
        return read_remapped(gpu, question, &out->number);
    case NVML_SHAPE_BANKS:
        return read_banks(gpu, question, &out->number);
    case NVML_SHAPE_FIELD:
        return read_field(gpu, question, &out->number);
    case NVML_SHAPE_VALID:
        return read_valid(gpu, question, &out->number);
    default:
        return read_number(gpu, question, &out->number);
    }
}

struct nvml_value nvml_read(const struct nvml_gpu *gpu, const struct nvml_question *question)
{
    struct nvml_value value = {.result = NVML_FUNCTION_NOT_FOUND};
    void (*function)(void);
    find_function(gpu, question, &function);
    if (function)
        value.result = read_shape(gpu, question, &value);
    return value;
}

static const char *word_of(const struct nvml_question *question, int64_t number)
{
    for (int64_t i = 0; question->words[i]; i++)
        if (i == number)
            return question->words[i];
    return NULL;
}

static bool is_flag(const struct nvml_question *question)
{
    return question->shape == NVML_SHAPE_FLAG || question->shape == NVML_SHAPE_PAIR ||
           question->shape == NVML_SHAPE_VALID ||
           (question->shape == NVML_SHAPE_REMAPPED && question->a[0] >= 2);
}

static const char *no_handle(const struct nvml_gpu *gpu)
{
    return gpu->nvml->library ? "NVML does not know this GPU" : gpu->nvml->missing;
}

void nvml_tell(const struct nvml_gpu *gpu, const char *key, const struct nvml_question *question,
               struct facts *facts)
{
    if (!gpu->handle) {
        facts_set_unknown(facts, key, no_handle(gpu));
        return;
    }
    const struct nvml_value value = nvml_read(gpu, question);
    const char *word = question->shape == NVML_SHAPE_WORD ? word_of(question, value.number) : NULL;
    if (value.result != NVML_OK)
        facts_set_unknown(facts, key, nvml_reason(gpu->nvml, value.result));
    else if (question->shape == NVML_SHAPE_TEXT)
        facts_set_text(facts, key, value.text);
    else if (is_flag(question))
        facts_set_bool(facts, key, value.number != 0);
    else if (question->shape != NVML_SHAPE_WORD)
        facts_set_int(facts, key, value.number);
    else if (word)
        facts_set_text(facts, key, word);
    else
        facts_set_unknown(facts, key, "not known to this program");
}

void nvml_tell_settings(const struct nvml_gpu *gpu, enum inventory_facts set, struct facts *facts)
{
    for (size_t i = 0; i < setting_row_count; i++)
        if (setting_rows[i].set == set && setting_rows[i].nvml.shape)
            nvml_tell(gpu, setting_rows[i].key, &setting_rows[i].nvml, facts);
}

int nvml_tell_number(const struct nvml_gpu *gpu, const char *key, int result, int64_t number,
                     struct facts *facts)
{
    if (!gpu->handle)
        return facts_set_unknown(facts, key, no_handle(gpu));
    if (result != NVML_OK)
        return facts_set_unknown(facts, key, nvml_reason(gpu->nvml, result));
    return facts_set_int(facts, key, number);
}
