/* SPDX-License-Identifier: MIT
 *
 * The shared state's file: made whole before it gets its name, so nobody ever sees half of one, and
 * believed only if it is ours and of this layout.
 */
#include "layout.h"

#include "base/auto.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define STATE_DIR "/dev/shm"
static const char magic[8] = "vgpu-1\n";
static const char plain[] = "gpu \"NVIDIA H100 80GB HBM3\"\n";

uint64_t vgpu_hash(const char *text, size_t n)
{
	uint64_t h = 1469598103934665603ull; /* FNV-1a */

	for (size_t i = 0; i < n; i++)
		h = (h ^ (unsigned char)text[i]) * 1099511628211ull;
	return h;
}

bool vgpu_path(const char *name, char *ret, size_t size)
{
	size_t n = strlen(name);

	if (!n || n > 100 || name[0] == '.')
		return false;
	for (size_t i = 0; i < n; i++)
		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-",
			    name[i]))
			return false;
	return snprintf(ret, size, STATE_DIR "/vgpu-%u-%s", (unsigned)geteuid(), name) < (int)size;
}

/* What the environment asks for. */
struct wanted {
	char path[160];
	const char *file; /* $VGPU_SCENARIO */
	char *text;       /* the scenario; freed by wanted_done */
	size_t n;
	uint64_t hash;
	bool any; /* a state is named and no scenario: join whatever is there */
};

static void wanted_done(struct wanted *w)
{
	free(w->text);
}

/* Without a name the scenario's text names the state: the same scenario is the same machine. */
static int wanted_read(struct wanted *w, struct err *e)
{
	const char *file = getenv("VGPU_SCENARIO"), *name = getenv("VGPU_STATE");
	char automatic[32], why[80];
	int r = 0;

	file = file && *file ? file : NULL;
	name = name && *name ? name : NULL;
	w->any = name && !file;
	w->file = file ? file : "the plain scenario";
	if (file) {
		w->text = io_slurp(AT_FDCWD, file, SCENARIO_BYTES, &w->n, &r);
		if (!w->text)
			return err_set(e, r, "cannot read the scenario '%s': %s", file,
				       err_name(r, why, sizeof(why)));
	} else {
		w->text = strdup(plain);
		w->n = sizeof(plain) - 1;
	}
	if (!w->text)
		return err_set(e, -ENOMEM, "no memory");
	w->hash = vgpu_hash(w->text, w->n);
	snprintf(automatic, sizeof(automatic), "auto-%016llx", (unsigned long long)w->hash);
	if (!vgpu_path(name ? name : automatic, w->path, sizeof(w->path)))
		return err_set(e, -EINVAL,
			       "VGPU_STATE '%s' is no name: letters, digits, '.', '_' and '-' only",
			       name ? name : "");
	return 0;
}

static uint64_t layout_number(void)
{
	return sizeof(struct shared) * 1000003ull + sizeof(struct device_state);
}

static size_t size_for(int devices)
{
	return sizeof(struct shared) + (size_t)devices * sizeof(struct device_state);
}

static void make_mutex(pthread_mutex_t *m)
{
	pthread_mutexattr_t a;

	pthread_mutexattr_init(&a);
	pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(m, &a);
	pthread_mutexattr_destroy(&a);
}

static void fill(struct shared *s, const struct scenario *scenario, const struct wanted *w)
{
	memcpy(s->magic, magic, sizeof(magic));
	s->layout = layout_number();
	s->scenario = *scenario;
	s->size = size_for(scenario->n_devices);
	s->scenario_hash = w->hash;
	s->born_mono = clock_mono_ns();
	s->born_wall = clock_wall_ns();
	make_mutex(&s->mutex);
	model_begin(s);
}

/* 0, -EEXIST when another was faster, or an error. */
static int create(const struct wanted *w, struct err *e)
{
	auto_free struct scenario *scenario = malloc(sizeof(*scenario));
	auto_close int fd = -1;
	struct err wrong = { 0 };
	struct shared *s;
	char link[64], why[80];
	size_t size;
	int r;

	if (!scenario)
		return err_set(e, -ENOMEM, "no memory");
	r = scenario_parse(w->text, w->n, scenario, &wrong);
	if (r)
		return err_set(e, r, "%s: %s", w->file, wrong.text);
	size = size_for(scenario->n_devices);
	fd = open(STATE_DIR, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	/* All of it now: a full file system must be an error here, not a SIGBUS later. */
	if (fd < 0 || (r = posix_fallocate(fd, 0, (off_t)size)) != 0) {
		r = fd < 0 ? -errno : -r;
		return err_set(e, r, "cannot make the state in " STATE_DIR ": %s",
			       err_name(r, why, sizeof(why)));
	}
	s = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (s == MAP_FAILED)
		return err_set(e, -errno, "cannot map the state");
	fill(s, scenario, w);
	munmap(s, size);
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (linkat(AT_FDCWD, link, AT_FDCWD, w->path, AT_SYMLINK_FOLLOW) == 0)
		return 0;
	r = -errno;
	if (r != -EEXIST)
		err_set(e, r, "cannot name the state '%s': %s", w->path,
			err_name(r, why, sizeof(why)));
	return r;
}

static bool counts_fit(const struct shared *s)
{
	const struct scenario *c = &s->scenario;
	bool fit = c->n_devices >= 0 && c->n_devices <= VGPU_DEVICES;

	for (int i = 0; fit && i < c->n_devices; i++) {
		const struct scenario_device *d = &c->device[i];

		fit = d->n_loads >= 0 && d->n_loads <= SCENARIO_WINDOWS && d->n_slows >= 0 &&
		      d->n_slows <= SCENARIO_WINDOWS && d->n_eccs >= 0 &&
		      d->n_eccs <= SCENARIO_WINDOWS && d->n_calls >= 0 &&
		      d->n_calls <= SCENARIO_CALLS && d->n_guests >= 0 &&
		      d->n_guests <= SCENARIO_GUESTS && d->n_xids >= 0 &&
		      d->n_xids <= SCENARIO_WINDOWS && d->about.n_partitions >= 0 &&
		      d->about.n_partitions <= VGPU_PARTITIONS && d->about.clock_sm_max > 0 &&
		      memchr(d->about.name, 0, sizeof(d->about.name)) &&
		      memchr(d->about.uuid, 0, sizeof(d->about.uuid));
	}
	return fit && s->size == size_for(c->n_devices);
}

static int foreign(const struct wanted *w, struct err *e, const char *what)
{
	err_set(e, -EPROTO, "'%s' %s", w->path, what);
	err_hint(e, "delete that file, or choose another name with VGPU_STATE");
	return -EPROTO;
}

/* Whether the mapped file is a state, and the one asked for. */
static int judge(const struct shared *s, size_t size, const struct wanted *w, struct err *e)
{
	if (memcmp(s->magic, magic, sizeof(magic)) != 0)
		return foreign(w, e, "is not a state of the virtual GPU");
	if (s->layout != layout_number() || s->size != size)
		return foreign(w, e, "is the state of another version of the virtual GPU");
	if (!counts_fit(s))
		return foreign(w, e, "is broken");
	if (s->born_mono > clock_mono_ns())
		return foreign(w, e, "is from the future (another boot of this machine)");
	if (!w->any && s->scenario_hash != w->hash)
		return foreign(w, e, "was made from another scenario than VGPU_SCENARIO says");
	return 0;
}

/* The descriptor for locks cannot be the mapped one: a mapping keeps its open file, and with it the
 * lock, alive in a forked child that has closed the descriptor. */
static int open_again(int fd, int *ret, const struct wanted *w, struct err *e)
{
	char link[64], why[80];
	int r;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	*ret = open(link, O_RDWR | O_CLOEXEC | O_NOCTTY);
	if (*ret >= 0)
		return 0;
	r = -errno;
	return err_set(e, r, "cannot open '%s' again: %s", w->path, err_name(r, why, sizeof(why)));
}

static int join(const struct wanted *w, struct vgpu *ret, struct err *e)
{
	auto_close int fd = open(w->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	struct shared *s;
	char why[80];
	int r;

	if (fd < 0 && errno == ENOENT)
		return -ENOENT;
	if (fd < 0 || fstat(fd, &st)) {
		r = -errno;
		return err_set(e, r, "cannot open '%s': %s", w->path,
			       err_name(r, why, sizeof(why)));
	}
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 077))
		return foreign(w, e, "is not a file that only this user can write");
	if (st.st_size < (off_t)sizeof(*s) || st.st_size > (off_t)size_for(VGPU_DEVICES))
		return foreign(w, e, "is not a state of this version of the virtual GPU");
	s = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (s == MAP_FAILED)
		return err_set(e, -errno, "cannot map '%s'", w->path);
	r = judge(s, (size_t)st.st_size, w, e);
	if (!r)
		r = open_again(fd, &ret->fd, w, e);
	if (r) {
		munmap(s, (size_t)st.st_size);
		return r;
	}
	ret->s = s;
	ret->inode = (uint64_t)st.st_ino;
	return 0;
}

struct vgpu *vgpu_open(void)
{
	struct wanted w __attribute__((cleanup(wanted_done))) = { 0 };
	struct vgpu *v = calloc(1, sizeof(*v));
	struct err e = { 0 };
	int r = v ? wanted_read(&w, &e) : -ENOMEM;

	/* Either may lose a race with another process; not often in a row. */
	for (int i = 0; !r && i < 10; i++) {
		r = join(&w, v, &e);
		if (r != -ENOENT)
			break;
		r = create(&w, &e);
		r = r == -EEXIST ? 0 : r;
	}
	if (!r && v->s) {
		v->client = -1;
		return v;
	}
	fprintf(stderr, "vgpu: %s\n", e.text[0] ? e.text : "the state comes and goes");
	if (e.hint[0])
		fprintf(stderr, "vgpu: %s\n", e.hint);
	free(v);
	errno = r ? -r : EAGAIN;
	return NULL;
}

void vgpu_close(struct vgpu *v)
{
	if (!v)
		return;
	munmap(v->s, v->s->size);
	if (life_can_tell(v))
		close(v->fd);
	free(v);
}

void vgpu_remove(void)
{
	struct wanted w __attribute__((cleanup(wanted_done))) = { 0 };
	const char *name = getenv("VGPU_STATE");
	struct err e = { 0 };

	/* With a name the scenario does not matter, nor whether it is still there. */
	if (name && *name ? vgpu_path(name, w.path, sizeof(w.path)) : !wanted_read(&w, &e))
		unlink(w.path);
}

int64_t vgpu_age(const struct vgpu *v)
{
	return clock_mono_ns() - v->s->born_mono;
}

bool vgpu_lock(struct vgpu *v)
{
	struct timespec until;
	int r;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 2;
	r = pthread_mutex_timedlock(&v->s->mutex, &until);
	if (r == EOWNERDEAD) {
		pthread_mutex_consistent(&v->s->mutex);
		for (int i = 0; i < v->s->scenario.n_devices; i++)
			queue_repair(v->s, i);
		r = 0;
	}
	return r == 0;
}

void vgpu_unlock(struct vgpu *v)
{
	pthread_mutex_unlock(&v->s->mutex);
}
