/* SPDX-License-Identifier: MIT
 *
 * Cleanup by scope. `auto_free char *p`, `auto_close int fd = -1`, `auto_done(buf) struct buf b`.
 * To hand ownership out, return steal_ptr(&p) or steal_fd(&fd).
 */
#ifndef SPOTTER_BASE_AUTO_H
#define SPOTTER_BASE_AUTO_H

#include <stdlib.h>
#include <unistd.h>

static inline void auto_free_(void *p)
{
	free(*(void **)p);
}

static inline void auto_close_(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

#define auto_free       __attribute__((cleanup(auto_free_)))
#define auto_close      __attribute__((cleanup(auto_close_)))
#define auto_done(noun) __attribute__((cleanup(noun##_done)))

static inline int steal_fd(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}

#define steal_ptr(pp)                             \
	({                                        \
		__typeof__(*(pp)) taken_ = *(pp); \
		*(pp) = NULL;                     \
		taken_;                           \
	})

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

#endif
