/* The words for the enumerations of the data model in files, in the order of the enumerations. */
#ifndef GPUMEMTOPO_INVENTORY_NAMES_H
#define GPUMEMTOPO_INVENTORY_NAMES_H

enum { GPU_STATUS_COUNT = 7, MEASURE_STATUS_COUNT = 4, INVENTORY_KIND_COUNT = 4 };

/* NULL-terminated, for yaml_read_fields. */
extern const char *const gpu_status_names[GPU_STATUS_COUNT + 1];
extern const char *const measure_status_names[MEASURE_STATUS_COUNT + 1];
extern const char *const inventory_kind_names[INVENTORY_KIND_COUNT + 1];

#endif
