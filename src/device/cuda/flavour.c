/* Which of the embedded kernels a GPU runs. */
#include "device/cuda/flavour.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "device/cuda/machine_code.h"
#include "device/source.h"

/* The fat binaries, embedded at build time. CUDA_FLAVOURS(X), of the build: X(toolkit,
 * architectures...) for each flavour, the newest first. */
#define FATBIN_DECLARED(name, file, toolkit) extern const unsigned char cuda_##file##_##toolkit[];
#define FATBIN_ADDRESS(name, file, toolkit) [CUDA_KERNELS_##name] = cuda_##file##_##toolkit,
#define FLAVOUR_DECLARED(toolkit, ...)                                                             \
    CUDA_KERNELS(FATBIN_DECLARED, toolkit)                                                         \
    static const int archs_##toolkit[] = {__VA_ARGS__};
#define FLAVOUR_ROW(toolkit, ...)                                                                  \
    {toolkit, archs_##toolkit, COUNT_OF(archs_##toolkit), {CUDA_KERNELS(FATBIN_ADDRESS, toolkit)}},
CUDA_FLAVOURS(FLAVOUR_DECLARED)
static const struct flavour flavours[] = {CUDA_FLAVOURS(FLAVOUR_ROW)};

int flavour_oldest_driver(void)
{
    return flavours[COUNT_OF(flavours) - 1].toolkit / 1000 * 1000;
}

bool flavour_is_built(const struct flavour *flavour, int arch)
{
    for (size_t i = 0; i < flavour->arch_count; i++)
        if (flavour->archs[i] == arch)
            return true;
    return false;
}

static int oldest_arch(const struct flavour *flavour)
{
    int least = flavour->archs[0];
    for (size_t i = 1; i < flavour->arch_count; i++)
        least = flavour->archs[i] < least ? flavour->archs[i] : least;
    return least;
}

static bool has_machine_code(const struct flavour *flavour, int capability)
{
    for (size_t i = 0; i < flavour->arch_count; i++)
        if (flavour->archs[i] / 10 == capability / 10 && flavour->archs[i] <= capability)
            return true;
    return false;
}

uint64_t flavour_code(const struct flavour *flavour, enum cuda_kernels file, int capability)
{
    const char *forced = getenv("CUDA_FORCE_PTX_JIT");
    return forced && strcmp(forced, "1") == 0
               ? 0
               : machine_code_name(flavour->fatbins[file], capability);
}

/* The oldest driver with which the flavour runs on the GPU; 0: no driver does. */
static int needed_driver(const struct flavour *flavour, int capability)
{
    if (has_machine_code(flavour, capability))
        return flavour->toolkit / 1000 * 1000;
    return oldest_arch(flavour) <= capability ? flavour->toolkit : 0;
}

static const char TOOLKIT_ASKED[] = "GPUMEMTOPO_CUDA_TOOLKIT";

static bool is_asked_for(const struct flavour *flavour)
{
    const char *asked = getenv(TOOLKIT_ASKED);
    char version[16];
    snprintf(version, sizeof version, "%d.%d", flavour->toolkit / 1000,
             flavour->toolkit % 1000 / 10);
    return !asked || !*asked || strcmp(asked, version) == 0;
}

int device_cuda_check(struct err *err)
{
    struct strbuf built = {0};
    bool found = false;
    for (size_t i = 0; i < COUNT_OF(flavours) && !found; i++) {
        found = is_asked_for(&flavours[i]);
        strbuf_printf(&built, "%s%d.%d", i ? " or " : "", flavours[i].toolkit / 1000,
                      flavours[i].toolkit % 1000 / 10);
    }
    int rc = found ? 0
                   : err_set(err, -EINVAL,
                             "%s is \"%s\": this program has no kernels by that toolkit; expected "
                             "%s, or unset it",
                             TOOLKIT_ASKED, getenv(TOOLKIT_ASKED), built.data);
    strbuf_fini(&built);
    return rc;
}

/* Says what would serve the GPU. */
static int explain_none(int capability, int driver, struct err *err)
{
    int oldest = 0, needed = 0;
    for (size_t i = 0; i < COUNT_OF(flavours); i++) {
        int arch = oldest_arch(&flavours[i]);
        int least = is_asked_for(&flavours[i]) ? needed_driver(&flavours[i], capability) : 0;
        oldest = !oldest || arch < oldest ? arch : oldest;
        needed = least && (!needed || least < needed) ? least : needed;
    }
    if (needed)
        return err_set(err, -ENOTSUP,
                       "this build has no kernels for compute capability %d.%d that the driver "
                       "runs: they need CUDA %d.%d, it supports %d.%d: use a newer driver",
                       capability / 10, capability % 10, needed / 1000, needed % 1000 / 10,
                       driver / 1000, driver % 1000 / 10);
    if (capability >= oldest)
        return err_set(
            err, -ENOTSUP,
            "this build has no kernels of CUDA %s for compute capability %d.%d: unset %s",
            getenv(TOOLKIT_ASKED), capability / 10, capability % 10, TOOLKIT_ASKED);
    return err_set(err, -ENOTSUP,
                   "the GPU is too old for this build: its compute capability is %d.%d, the oldest "
                   "kernels are for %d.%d; a build with CUDA 11.8 has kernels from 3.5 on "
                   "(docs/install.md)",
                   capability / 10, capability % 10, oldest / 10, oldest % 10);
}

int flavour_choose(int capability, int driver, const struct flavour **out_flavour, struct err *err)
{
    const struct flavour *chosen = NULL;
    for (size_t i = 0; i < COUNT_OF(flavours); i++) {
        const struct flavour *flavour = &flavours[i];
        int needed = needed_driver(flavour, capability);
        if (!needed || driver < needed || !is_asked_for(flavour))
            continue;
        if (!chosen ||
            (!has_machine_code(chosen, capability) && has_machine_code(flavour, capability)))
            chosen = flavour;
    }
    if (!chosen)
        return explain_none(capability, driver, err);
    *out_flavour = chosen;
    return 0;
}
