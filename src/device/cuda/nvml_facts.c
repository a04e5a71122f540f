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

/* Copies the row's function from the table of NVML; its type follows from the row's shape. */
static void find(const struct nvml_gpu *gpu, const struct nvml_row *row, void *out_function)
{
    memcpy(out_function, (const char *)gpu->nvml + row->function, sizeof(void (*)(void)));
}

static int read_number(const struct nvml_gpu *gpu, const struct nvml_row *row, int64_t *out)
{
    nvml_get_number *get;
    unsigned value = 0, divisor = row->divisor ? row->divisor : 1;
    find(gpu, row, &get);
    int result = get(gpu->handle, &value);
    *out = ((int64_t)value + divisor / 2) / divisor;
    return known(result, value != UINT_MAX);
}

static int read_text(const struct nvml_gpu *gpu, const struct nvml_row *row,
                     char out[NVML_TEXT_BYTES])
{
    nvml_get_text *get;
    find(gpu, row, &get);
    int result = get(gpu->handle, out, NVML_TEXT_BYTES);
    out[NVML_TEXT_BYTES - 1] = '\0';
    return result;
}

static int read_chosen(const struct nvml_gpu *gpu, const struct nvml_row *row, int64_t *out)
{
    nvml_get_chosen *get;
    unsigned value = 0;
    find(gpu, row, &get);
    int result = get(gpu->handle, row->a[0], &value);
    *out = value;
    return known(result, value != UINT_MAX);
}

static int read_pair(const struct nvml_gpu *gpu, const struct nvml_row *row, int64_t *out)
{
    nvml_get_pair *get;
    unsigned values[2] = {0};
    find(gpu, row, &get);
    int result = get(gpu->handle, &values[0], &values[1]);
    *out = values[row->a[0]];
    return result;
}

static int read_ecc_total(const struct nvml_gpu *gpu, const struct nvml_row *row, int64_t *out)
{
    nvml_get_ecc_total *get;
    unsigned long long count = 0;
    find(gpu, row, &get);
    int result = get(gpu->handle, row->a[0], row->a[1], &count);
    *out = (int64_t)count;
    return known(result, count != ULLONG_MAX);
}

static int read_ecc_at(const struct nvml_gpu *gpu, const struct nvml_row *row, int64_t *out)
{
    nvml_get_ecc_at *get;
    unsigned long long count = 0;
    find(gpu, row, &get);
    int result = get(gpu->handle, row->a[0], row->a[1], row->a[2], &count);
    *out = (int64_t)count;
    return known(result, count != ULLONG_MAX);
}

/* Called without room for addresses, NVML returns how many there are. */
static int read_retired(const struct nvml_gpu *gpu, const struct nvml_row *row, int64_t *out)
{
    nvml_get_retired *get;
    unsigned count = 0;
    find(gpu, row, &get);
    int result = get(gpu->handle, row->a[0], &count, NULL);
    *out = count;
    return result == NVML_TOO_SMALL ? NVML_OK : result;
}

static int read_remapped(const struct nvml_gpu *gpu, const struct nvml_row *row, int64_t *out)
{
    nvml_get_remapped *get;
    unsigned values[4] = {0};
    find(gpu, row, &get);
    int result = get(gpu->handle, &values[0], &values[1], &values[2], &values[3]);
    *out = values[row->a[0]];
    return result;
}

static int read_banks(const struct nvml_gpu *gpu, const struct nvml_row *row, int64_t *out)
{
    nvml_get_banks *get;
    struct nvml_banks banks = {0};
    find(gpu, row, &get);
    int result = get(gpu->handle, &banks);
    const unsigned values[] = {banks.max, banks.high, banks.partial, banks.low, banks.none};
    *out = values[row->a[0]];
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

static int read_field(const struct nvml_gpu *gpu, const struct nvml_row *row, int64_t *out)
{
    nvml_get_fields *get;
    struct nvml_field field = {.id = (unsigned)row->a[0]};
    find(gpu, row, &get);
    int result = get(gpu->handle, 1, &field);
    *out = number_of(&field);
    return result == NVML_OK ? field.result : result;
}

static int read_valid(const struct nvml_gpu *gpu, const struct nvml_row *row, int64_t *out)
{
    nvml_check *check;
    find(gpu, row, &check);
    int result = check(gpu->handle);
    *out = result == NVML_OK;
    return result == NVML_CORRUPTED_INFOROM ? NVML_OK : result;
}

static int read_shape(const struct nvml_gpu *gpu, const struct nvml_row *row,
                      struct nvml_value *out)
{
    switch (row->shape) {
    case NVML_SHAPE_TEXT:
        return read_text(gpu, row, out->text);
    case NVML_SHAPE_CHOSEN:
        return read_chosen(gpu, row, &out->number);
    case NVML_SHAPE_PAIR:
        return read_pair(gpu, row, &out->number);
    case NVML_SHAPE_ECC_TOTAL:
        return read_ecc_total(gpu, row, &out->number);
    case NVML_SHAPE_ECC_AT:
        return read_ecc_at(gpu, row, &out->number);
    case NVML_SHAPE_RETIRED:
        return read_retired(gpu, row, &out->number);
    case NVML_SHAPE_REMAPPED:
        return read_remapped(gpu, row, &out->number);
    case NVML_SHAPE_BANKS:
        return read_banks(gpu, row, &out->number);
    case NVML_SHAPE_FIELD:
        return read_field(gpu, row, &out->number);
    case NVML_SHAPE_VALID:
        return read_valid(gpu, row, &out->number);
    default:
        return read_number(gpu, row, &out->number);
    }
}

struct nvml_value nvml_read(const struct nvml_gpu *gpu, const struct nvml_row *row)
{
    struct nvml_value value = {.result = NVML_FUNCTION_NOT_FOUND};
    void (*function)(void);
    find(gpu, row, &function);
    if (function)
        value.result = read_shape(gpu, row, &value);
    return value;
}

static const char *word_of(const struct nvml_row *row, int64_t number)
{
    for (int64_t i = 0; row->words[i]; i++)
        if (i == number)
            return row->words[i];
    return NULL;
}

static bool is_flag(const struct nvml_row *row)
{
    return row->shape == NVML_SHAPE_FLAG || row->shape == NVML_SHAPE_PAIR ||
           row->shape == NVML_SHAPE_VALID || (row->shape == NVML_SHAPE_REMAPPED && row->a[0] >= 2);
}

static int tell(const struct nvml_row *row, const struct nvml_value *value, struct facts *facts)
{
    if (row->shape == NVML_SHAPE_TEXT)
        return facts_set_text(facts, row->key, value->text);
    if (is_flag(row))
        return facts_set_bool(facts, row->key, value->number != 0);
    if (row->shape != NVML_SHAPE_WORD)
        return facts_set_int(facts, row->key, value->number);
    const char *word = word_of(row, value->number);
    return word ? facts_set_text(facts, row->key, word)
                : facts_set_unknown(facts, row->key, "not known to this program");
}

static const char *no_handle(const struct nvml_gpu *gpu)
{
    return gpu->nvml->library ? "NVML does not know this GPU" : gpu->nvml->missing;
}

int nvml_tell(const struct nvml_gpu *gpu, const struct nvml_row *rows, size_t count,
              struct facts *facts)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < count; i++) {
        if (!gpu->handle) {
            rc = facts_set_unknown(facts, rows[i].key, no_handle(gpu));
            continue;
        }
        const struct nvml_value value = nvml_read(gpu, &rows[i]);
        rc = value.result == NVML_OK
                 ? tell(&rows[i], &value, facts)
                 : facts_set_unknown(facts, rows[i].key, nvml_reason(gpu->nvml, value.result));
    }
    return rc;
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
