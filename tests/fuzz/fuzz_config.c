/* The survey's configuration. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "survey/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct survey_config config = {0};
    struct err err = {0};
    char *text = malloc(size + 1);
    memcpy(text, data, size);
    text[size] = '\0';
    if (survey_config_read(text, "fuzz", &config, &err) == 0)
        survey_config_fini(&config);
    free(text);
    return 0;
}
