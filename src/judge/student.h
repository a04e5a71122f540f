/* Student's t distribution, for any positive number of degrees of freedom. */
#ifndef GPUMEMTOPO_JUDGE_STUDENT_H
#define GPUMEMTOPO_JUDGE_STUDENT_H

/* The probability of a value above t, for t >= 0. */
double student_tail(double t, double dof);

/* The value that is exceeded with probability `tail`, 0 < tail <= 0.5. */
double student_quantile(double tail, double dof);

#endif
