/* The survey's configuration; world files: what is read can be combined, printed and read again. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "judge/world.h"
#include "survey/config.h"

static void read_world(const char *text, size_t size)
{
    struct world world = {0}, again = {0};
    struct strbuf printed = {0};
    struct err err = {0};
    if (world_read_text(text, size, "fuzz", &world, &err))
        return;
    world_print(&world, "0", &printed);
    if (world_read_text(printed.data, printed.length, "again", &again, &err))
        abort();
    world_add(&world, &again);
    strbuf_fini(&printed);
    world_fini(&world);
    world_fini(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct survey_config config = {0};
    struct err err = {0};
    char *text = malloc(size + 1);
    memcpy(text, data, size);
    text[size] = '\0';
    if (survey_config_read(text, "fuzz", &config, &err) == 0)
        survey_config_fini(&config);
    read_world(text, size);
    free(text);
    return 0;
}
