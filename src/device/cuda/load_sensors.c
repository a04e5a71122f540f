/* What NVML reports of a GPU while it is under load. */
#include "device/cuda/load_sensors.h"

#include <math.h>

/* Since Ampere, the ordinary power reading is a mean over one second. The field has the momentary
 * power; older drivers do not know it. */
static const struct nvml_question power_now = {
    NVML_SHAPE_FIELD, "nvmlDeviceGetFieldValues", {NVML_FIELD_POWER_NOW}};
static const struct nvml_question power_mean = {NVML_SHAPE_NUMBER, "nvmlDeviceGetPowerUsage"};
static const struct nvml_question energy = {
    NVML_SHAPE_FIELD, "nvmlDeviceGetFieldValues", {NVML_FIELD_ENERGY}};
static const struct nvml_question sm_clock = {
    NVML_SHAPE_CHOSEN, "nvmlDeviceGetClockInfo", {NVML_CLOCK_OF_SM}};
static const struct nvml_question memory_clock = {
    NVML_SHAPE_CHOSEN, "nvmlDeviceGetClockInfo", {NVML_CLOCK_OF_MEMORY}};
static const struct nvml_question temperature = {
    NVML_SHAPE_CHOSEN, "nvmlDeviceGetTemperature", {NVML_SENSOR_GPU}};
static const struct nvml_question memory_temperature = {
    NVML_SHAPE_FIELD, "nvmlDeviceGetFieldValues", {NVML_FIELD_MEMORY_TEMPERATURE}};

/* The number times scale, or NAN. */
static double read_scaled(const struct nvml_gpu *gpu, const struct nvml_question *row, double scale)
{
    if (!gpu->handle)
        return NAN;
    const struct nvml_value value = nvml_read(gpu, row);
    return value.result == NVML_OK ? (double)value.number * scale : NAN;
}

/* A sensor that does not exist reads 0. */
static double above_zero(double value)
{
    return value > 0 ? value : NAN;
}

void load_sensors_read(const struct nvml_gpu *gpu, struct device_load_sample *sample)
{
    unsigned long long reasons = 0;
    sample->sm_mhz = read_scaled(gpu, &sm_clock, 1);
    sample->memory_mhz = read_scaled(gpu, &memory_clock, 1);
    sample->power_w = above_zero(read_scaled(gpu, &power_now, 1e-3));
    if (isnan(sample->power_w))
        sample->power_w = above_zero(read_scaled(gpu, &power_mean, 1e-3));
    sample->energy_j = above_zero(read_scaled(gpu, &energy, 1e-3));
    sample->temperature_c = read_scaled(gpu, &temperature, 1);
    sample->temperature_memory_c = above_zero(read_scaled(gpu, &memory_temperature, 1));
    sample->throttle_known = gpu->handle && gpu->nvml->throttle_reasons &&
                             gpu->nvml->throttle_reasons(gpu->handle, &reasons) == NVML_OK;
    sample->throttle_reasons = sample->throttle_known ? reasons : 0;
}
