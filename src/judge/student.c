/* Student's t distribution, from the incomplete beta function. */
#include "judge/student.h"

#include <math.h>

/* Continued fraction of the incomplete beta function (Abramowitz and Stegun 26.5.8), by Lentz's
 * method. */
static double beta_fraction(double a, double b, double x)
{
    enum { TERMS_MAX = 500 };
    const double tiny = 1e-300, precise = 1e-14;
    double numerator = 1, denominator = 1 - (a + b) * x / (a + 1);
    denominator = 1 / (fabs(denominator) < tiny ? tiny : denominator);
    double value = denominator;
    for (int k = 1; k < TERMS_MAX; k++) {
        double even = k * (b - k) * x / ((a + 2 * k - 1) * (a + 2 * k));
        double odd = -(a + k) * (a + b + k) * x / ((a + 2 * k) * (a + 2 * k + 1));
        const double terms[] = {even, odd};
        double change = 1;
        for (int i = 0; i < 2; i++) {
            denominator = 1 + terms[i] * denominator;
            numerator = 1 + terms[i] / numerator;
            denominator = 1 / (fabs(denominator) < tiny ? tiny : denominator);
            numerator = fabs(numerator) < tiny ? tiny : numerator;
            change = numerator * denominator;
            value *= change;
        }
        if (fabs(change - 1) < precise)
            break;
    }
    return value;
}

/* Regularised incomplete beta function I_x(a, b). */
static double beta_share(double a, double b, double x)
{
    if (x <= 0 || x >= 1)
        return x <= 0 ? 0 : 1;
    double front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
    if (x < (a + 1) / (a + b + 2))
        return front * beta_fraction(a, b, x) / a;
    return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

double student_tail(double t, double dof)
{
    return beta_share(dof / 2, 0.5, dof / (dof + t * t)) / 2;
}

double student_quantile(double tail, double dof)
{
    enum { DOUBLINGS = 200, HALVINGS = 60 };
    double low = 0, high = 1;
    for (int i = 0; i < DOUBLINGS && student_tail(high, dof) > tail; i++)
        high *= 2;
    for (int i = 0; i < HALVINGS; i++) {
        double middle = (low + high) / 2;
        if (student_tail(middle, dof) > tail)
            low = middle;
        else
            high = middle;
    }
    return high;
}
