/* Numbers of all SMs as text: two letters each. */
#ifndef GPUMEMTOPO_INVENTORY_SM_TEXT_H
#define GPUMEMTOPO_INVENTORY_SM_TEXT_H

#include <stddef.h>

enum { SM_TEXT_BASE = 64, SM_TEXT_CODES = SM_TEXT_BASE * SM_TEXT_BASE, SM_TEXT_SMS_MAX = 512 };

/* The letter of a number below SM_TEXT_BASE, and back; -1 if it is none. */
char sm_text_letter(int number);
int sm_text_number(char letter);

/* The two letters of a number below SM_TEXT_CODES (larger and smaller ones are brought into it),
 * and back; -1 if they are none. */
void sm_text_put(double number, char out_letters[2]);
int sm_text_get(const char letters[2]);

/* Of 1 to SM_TEXT_SMS_MAX values. */
double sm_text_median(const double *values, size_t count);

#endif
