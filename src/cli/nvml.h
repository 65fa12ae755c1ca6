/* SPDX-License-Identifier: MIT
 *
 * Which NVML library is loaded: --nvml, else $SPOTTER_NVML, else the one the driver installed. For the
 * virtual GPU, and for drivers in unusual places.
 */
#ifndef SPOTTER_CLI_NVML_H
#define SPOTTER_CLI_NVML_H

#include <stdlib.h>

#define NVML_OPT(type, member)                              \
	OPT("nvml", 0, OPT_STRING, "FILE", type, member,    \
	    "load this NVML library for NVIDIA GPUs (also " \
	    "$SPOTTER_NVML)")

/* NULL: the usual one. */
static inline const char *nvml_path(const char *option)
{
	const char *path = option ? option : getenv("SPOTTER_NVML");

	return path && path[0] ? path : NULL;
}

#endif
