/* What NVML reports of a GPU while it is under load. */
#ifndef GPUMEMTOPO_DEVICE_CUDA_LOAD_SENSORS_H
#define GPUMEMTOPO_DEVICE_CUDA_LOAD_SENSORS_H

#include "device/cuda/nvml_facts.h"
#include "device/device.h"

/* Sets clocks, power, energy, temperatures and throttle reasons of the sample. */
void load_sensors_read(const struct nvml_gpu *gpu, struct device_load_sample *sample);

#endif
