/* Letters as digits of base 64. */
#include "inventory/sm_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

char sm_text_letter(int number)
{
    return letters[number];
}

int sm_text_number(char letter)
{
    const char *found = letter ? strchr(letters, letter) : NULL;
    return found ? (int)(found - letters) : -1;
}

void sm_text_put(double number, char out_letters[2])
{
    int code = (int)fmin(fmax(round(number), 0), SM_TEXT_CODES - 1);
    out_letters[0] = letters[code / SM_TEXT_BASE];
    out_letters[1] = letters[code % SM_TEXT_BASE];
}

int sm_text_get(const char pair[2])
{
    int high = sm_text_number(pair[0]), low = high < 0 ? -1 : sm_text_number(pair[1]);
    return low < 0 ? -1 : high * SM_TEXT_BASE + low;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double sm_text_median(const double *values, size_t count)
{
    double sorted[SM_TEXT_SMS_MAX];
    memcpy(sorted, values, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, compare_doubles);
    return (sorted[(count - 1) / 2] + sorted[count / 2]) / 2;
}
