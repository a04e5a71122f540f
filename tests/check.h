/* cmocka with the headers it wants before it. */
#ifndef GPUMEMTOPO_TESTS_CHECK_H
#define GPUMEMTOPO_TESTS_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h" /* COUNT_OF */

#endif
