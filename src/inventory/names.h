/* The words that stand in files for the data model's enumerations, in the enumerations' order. */
#ifndef GPUMEMTOPO_INVENTORY_NAMES_H
#define GPUMEMTOPO_INVENTORY_NAMES_H

enum { GPU_STATUS_COUNT = 7, MEASURE_STATUS_COUNT = 4, INVENTORY_KIND_COUNT = 4 };

/* NULL-terminated, as yaml_read_fields wants them. */
extern const char *const gpu_status_names[GPU_STATUS_COUNT + 1];
extern const char *const measure_status_names[MEASURE_STATUS_COUNT + 1];
extern const char *const inventory_kind_names[INVENTORY_KIND_COUNT + 1];

#endif
