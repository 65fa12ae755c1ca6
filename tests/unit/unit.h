/* SPDX-License-Identifier: MIT
 *
 * What every unit test needs before cmocka.h, in the order cmocka wants it.
 */
#ifndef SPOTTER_TESTS_UNIT_H
#define SPOTTER_TESTS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* Doubles within a relative error. */
static inline int near(double a, double b, double relative)
{
	double d = a > b ? a - b : b - a, m = a > 0 ? a : -a;

	return d <= relative * (m > 1e-300 ? m : 1e-300) || d == 0;
}

#endif
