/* For the files that define calls: the row of a call, its function with types, and what releases
 * its answer. */
#ifndef GPUMEMTOPO_DEVICE_CALL_ROW_H
#define GPUMEMTOPO_DEVICE_CALL_ROW_H

#include "device/calls.h"

#define ROW(call, fields, answers, code, text)                                                     \
    .name = call, .asked = fields, .answer = answers, .absent_code = code, .absent = text

#define CALL_FUNCTION(name, call, request, answer)                                                 \
    int name(struct device *device, const request *asked, answer *out_answer, struct err *err)     \
    {                                                                                              \
        return device_call(device, call, asked, out_answer, err);                                  \
    }

#define CALL_FINI(name, answer, fields)                                                            \
    void name(answer *it)                                                                          \
    {                                                                                              \
        fields_fini(&fields, it);                                                                  \
    }

#endif
