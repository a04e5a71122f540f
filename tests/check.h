/* cmocka with the headers it wants before it. */
#ifndef GPUMEMTOPO_TESTS_CHECK_H
#define GPUMEMTOPO_TESTS_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h" /* COUNT_OF */

/* Cases that run the same code with other figures: under ASan every second one is enough. */
#ifdef GPUMEMTOPO_SANITIZED
enum { CHECK_EVERY = 2 };
#else
enum { CHECK_EVERY = 1 };
#endif

#endif
