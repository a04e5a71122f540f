/* The part of a GPU source that all backends share. */
#include "device/source.h"

#include <errno.h>

size_t device_source_count(const struct device_source *source)
{
    return source->info_count;
}

const struct device_info *device_source_info(const struct device_source *source, size_t i)
{
    return &source->infos[i];
}

size_t device_source_bare_count(const struct device_source *source)
{
    return source->bare_count;
}

const char *device_source_bare_node(const struct device_source *source, size_t i)
{
    return source->bare_nodes[i];
}

int device_source_open(struct device_source *source, size_t i, struct device **out_device,
                       struct err *err)
{
    if (i >= source->info_count)
        return err_set(err, -EINVAL, "the source has no GPU %zu", i);
    return source->ops->open(source, i, out_device, err);
}

int device_source_look(struct device_source *source, size_t i, bool thorough,
                       struct device_look *look, struct err *err)
{
    if (i >= source->info_count)
        return err_set(err, -EINVAL, "the source has no GPU %zu", i);
    return source->ops->look ? source->ops->look(source, i, thorough, look, err) : 0;
}

void device_source_destroy(struct device_source *source)
{
    if (source)
        source->ops->destroy(source);
}
