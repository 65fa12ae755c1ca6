/* SPDX-License-Identifier: MIT
 *
 * Runs one back-end over the states of a fixture root, or over a folder a test fills.
 */
#ifndef SPOTTER_TESTS_GPU_FIXTURE_H
#define SPOTTER_TESTS_GPU_FIXTURE_H

#include "../unit.h"

#include "gpu/backend.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

extern const struct gpu_backend amd_backend, intel_backend;

struct fixture {
	struct gpu_world w;
	const struct gpu_backend *b;
	void *state;
	struct gpu_snapshot *s;
	int opened;
	int64_t second;
};

static inline void fixture_at(struct fixture *f, const char *path)
{
	if (f->w.root >= 0)
		close(f->w.root);
	f->w.root = open(path, O_RDONLY | O_DIRECTORY);
	assert_true(f->w.root >= 0);
}

static inline void fixture_open(struct fixture *f, const struct gpu_backend *b, const char *path)
{
	*f = (struct fixture){ .b = b, .w = { .root = -1 } };
	fixture_at(f, path);
	f->state = calloc(1, b->state_size);
	f->s = calloc(1, sizeof(*f->s));
	assert_non_null(f->state);
	assert_non_null(f->s);
	f->opened = b->open(&f->w, f->state, NULL);
}

/* One second after the reading before. */
static inline int fixture_read(struct fixture *f, enum gpu_depth depth)
{
	memset(f->s, 0, sizeof(*f->s));
	f->s->taken_ns = ++f->second * 1000000000;
	return f->b->read(&f->w, f->state, depth, f->s);
}

static inline void fixture_close(struct fixture *f)
{
	if (f->opened == 0)
		f->b->close(f->state);
	free(f->state);
	free(f->s);
	close(f->w.root);
}

/* Writes a file below a folder, with the folders it needs. */
static inline void fixture_put(const char *root, const char *path, const void *data, size_t n)
{
	char full[512];
	int fd;

	snprintf(full, sizeof(full), "%s/%s", root, path);
	for (char *p = full + strlen(root) + 1; (p = strchr(p, '/')); p++) {
		*p = '\0';
		(void)mkdir(full, 0755);
		*p = '/';
	}
	fd = open(full, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, n), n);
	close(fd);
}

static inline int fixture_remove_one(const char *path, const struct stat *st, int kind,
				     struct FTW *at)
{
	(void)st, (void)kind, (void)at;
	return remove(path);
}

static inline void fixture_remove(const char *root)
{
	assert_int_equal(nftw(root, fixture_remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

#define assert_metric(d, m, want)                                        \
	do {                                                             \
		assert_int_equal(gpu_metric((d), (m))->have, GPU_KNOWN); \
		assert_int_equal(gpu_metric((d), (m))->raw, (want));     \
	} while (0)

#define assert_lacks(d, m, why) assert_int_equal(gpu_metric((d), (m))->have, (why))

static inline const struct gpu_process *fixture_process(const struct gpu_snapshot *s, int device,
							int32_t pid)
{
	for (int i = 0; i < s->n_processes; i++)
		if (s->process[i].device == device && s->process[i].pid == pid)
			return &s->process[i];
	return NULL;
}

#endif
