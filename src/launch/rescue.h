/* SPDX-License-Identifier: MIT
 *
 * The status of a program that has ended while its parent, R, neither reports it nor dies (stopped,
 * or stuck in the kernel). The zombie's /proc/PID/stat has it as field 52, for those who may see
 * it (Linux 3.5; others read 0 there). A sample, ended with exit(7), which is 7 << 8:
 *
 *	71 (a) b) Z 70 69 69 0 -1 4227084 90 0 0 0 0 0 0 0 20 0 1 0 1159 0 0 18446744073709551615
 *	0 0 0 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0 0 1792
 */
#ifndef SPOTTER_LAUNCH_RESCUE_H
#define SPOTTER_LAUNCH_RESCUE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* False unless it is a zombie whose status can be known. */
bool rescue_status(pid_t pid, int *ret_status);
/* Its state letter: 'T' stopped, 'Z' zombie, 0 when it is gone. */
char rescue_state(pid_t pid);
/* Of the text of /proc/PID/stat. */
bool rescue_parse(const char *text, size_t n, int *ret_status);

#endif
