/* SPDX-License-Identifier: MIT
 *
 * Prints the monotonic clock in ns as its first act: when exec'ed by `spotter run`, the difference
 * to the time of the call is what starting under Spotter costs.
 */
#include <stdio.h>
#include <time.h>

int main(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	printf("%lld\n", (long long)ts.tv_sec * 1000000000ll + ts.tv_nsec);
	return 0;
}
