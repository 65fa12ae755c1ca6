/* SPDX-License-Identifier: MIT
 *
 * Calls that have caused more bugs than they have saved lines. Forced into every source file of
 * ours by the build (-include), so that a slip fails to compile. Each has a replacement in base/.
 */
#ifndef SPOTTER_BASE_BANNED_H
#define SPOTTER_BASE_BANNED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#pragma GCC poison strcpy strcat strncpy strncat sprintf vsprintf strtok atoi atol atof gets
#pragma GCC poison sscanf fscanf popen system gmtime localtime ctime asctime

#endif
