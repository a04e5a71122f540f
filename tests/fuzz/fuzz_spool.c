/* Spool files, as they are and with their sums put right, which damage would else be caught by. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "inventory/wire/frame.h"
#include "inventory/wire/spool.h"
#include "schema/wire.h"

static void read_whole(const uint8_t *data, size_t size)
{
    struct spool_file file = {0};
    struct err err = {0};
    if (spool_read(data, size, "fuzz", &file, &err) == 0)
        spool_file_fini(&file);
}

/* A file whose frame of that type has these bytes. */
static void read_frame(const uint8_t *data, size_t size, uint32_t type)
{
    const struct schema *schema = type == 1 ? &spool_origin_schema : &spool_plan_schema;
    struct strbuf file = {0}, origin = {0}, content = {0};
    wire_put_u32(&origin, schema_wire_version(&spool_origin_schema));
    for (int i = 0; i < 3; i++)
        wire_put_text(&origin, "a");
    for (int i = 0; i < 2; i++)
        wire_put_u64(&origin, 1);
    strbuf_printf(&file, "gpumemtopo spool %d\n", SPOOL_SCHEMA);
    if (type != 1)
        frame_write(&file, 1, origin.data, origin.length);
    if (type != 2)
        wire_put_u32(&content, schema_wire_version(schema));
    strbuf_append(&content, (const char *)data, size);
    frame_write(&file, type, content.data, content.length);
    read_whole((const uint8_t *)file.data, file.length);
    strbuf_fini(&file);
    strbuf_fini(&origin);
    strbuf_fini(&content);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    read_whole(data, size);
    const uint8_t *line_end = memchr(data, '\n', size);
    if (line_end) {
        size_t first = (size_t)(line_end + 1 - data);
        uint8_t *copy = fuzz_copy(data, size);
        fuzz_seal_frames(copy + first, size - first);
        read_whole(copy, size);
        free(copy);
    }
    for (uint32_t type = 1; type <= 3; type++)
        read_frame(data, size, type);
    struct gpu_result result = {0};
    struct err err = {0};
    uint8_t *sealed = malloc(size + 8);
    uint32_t sum = frame_crc32(data, size), version = schema_wire_version(&gpu_result_schema);
    memcpy(sealed, &version, 4);
    memcpy(sealed + 4, &sum, 4);
    memcpy(sealed + 8, data, size);
    if (gpu_result_decode(sealed, size + 8, &result, &err) == 0)
        gpu_result_fini(&result);
    free(sealed);
    return 0;
}
