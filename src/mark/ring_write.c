/* SPDX-License-Identifier: MIT
 *
 * The writing end of a ring. This runs inside other people's programs: no allocation, no output, no signal
 * that we cause, and nothing of base (libspotter stands alone).
 */
#include "mark/ring.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

_Static_assert(sizeof(struct ring_slot) == 64, "a slot is a cache line");
_Static_assert(sizeof(struct ring_header) <= RING_HEADER, "the header has room");

enum {
	KNOWN = 2 * RING_NAMES, /* places to look for a name; a power of two, never full */
	FOLDER_MODE = 0700,
	FILE_NAME = 64,
};

struct ring {
	struct ring_header *header;
	char (*names)[RING_NAME_BYTES];
	struct ring_slot *slots;
	_Atomic uint64_t known[KNOWN]; /* hash << 32 | place + 1; 0 free */
};

/* --- names --- */

/* Bytes of the name that are kept: whole characters of UTF-8. */
static size_t name_length(const char *name)
{
	size_t n = strnlen(name, RING_NAME_BYTES);

	if (n < RING_NAME_BYTES)
		return n;
	n = RING_NAME_BYTES - 1;
	for (size_t back = n; back > n - 4; back--)
		if ((name[back] & 0xc0) != 0x80)
			return back;
	return n;
}

static uint32_t name_hash(const char *name, size_t n)
{
	uint32_t h = 2166136261u;

	for (size_t i = 0; i < n; i++)
		h = (h ^ (unsigned char)name[i]) * 16777619u;
	return h ^ h >> 15;
}

static bool name_is(const struct ring *r, uint32_t place, const char *name, size_t n)
{
	return !memcmp(r->names[place - 1], name, n) && !r->names[place - 1][n];
}

/* Number of the name, or 0 with *ret_at the free place where it belongs. */
static uint32_t name_find(struct ring *r, const char *name, size_t n, uint32_t hash,
			  uint32_t *ret_at)
{
	for (uint32_t i = 0; i < KNOWN; i++) {
		uint32_t at = (hash + i) % KNOWN;
		uint64_t known = atomic_load_explicit(&r->known[at], memory_order_acquire);

		if (!known) {
			*ret_at = at;
			return 0;
		}
		if (known >> 32 == hash && name_is(r, (uint32_t)known, name, n))
			return (uint32_t)known;
	}
	*ret_at = KNOWN;
	return 0;
}

uint32_t ring_name(struct ring *r, const char *name)
{
	size_t n = name ? name_length(name) : 0;
	uint32_t hash = n ? name_hash(name, n) : 0, at = 0, place;

	if (!n)
		return 0;
	place = name_find(r, name, n, hash, &at);
	if (place)
		return place;
	if (at < KNOWN && atomic_load(&r->header->named) < RING_NAMES)
		place = atomic_fetch_add(&r->header->named, 1) + 1;
	if (!place || place > RING_NAMES) {
		atomic_fetch_add(&r->header->unnamed, 1);
		return 0;
	}
	memcpy(r->names[place - 1], name, n);
	/* Another thread may have come first, even with the same name: then that is there twice. */
	for (uint64_t none = 0; at < KNOWN; none = 0) {
		if (atomic_compare_exchange_strong(&r->known[at], &none,
						   (uint64_t)hash << 32 | place))
			break;
		name_find(r, name, n, hash, &at);
		if (at < KNOWN && atomic_load(&r->known[at]))
			break;
	}
	return place;
}

/* Of a ring that is taken up: the names that it has. */
static void names_learn(struct ring *r)
{
	uint32_t named = atomic_load(&r->header->named), at = 0;

	for (uint32_t i = 0; i < named && i < RING_NAMES; i++) {
		size_t n = strnlen(r->names[i], RING_NAME_BYTES);
		uint32_t hash = name_hash(r->names[i], n);

		if (n && n < RING_NAME_BYTES && !name_find(r, r->names[i], n, hash, &at) &&
		    at < KNOWN)
			atomic_store(&r->known[at], (uint64_t)hash << 32 | (i + 1));
	}
}

/* --- marks --- */

/* Whoever was overtaken by a whole lap writes beside somebody else into the same slot: with atomic stores
 * that is no race of the language, and `check` tells the reader. Release (on x86 a plain store): whoever sees
 * a field sees that the head had come round. */
#define PUT(field, to) __atomic_store(&(field), &(to), __ATOMIC_RELEASE)

void ring_put(struct ring *r, enum mark_kind kind, uint32_t name, uint64_t number, double value,
	      int64_t t_ns)
{
	uint64_t n = atomic_fetch_add_explicit(&r->header->head, 1, memory_order_acq_rel);
	struct ring_slot *to = &r->slots[n % RING_SLOTS];
	struct ring_slot m = {
		.t_ns = t_ns, .number = number, .value = value, .kind = kind, .name = name
	};
	uint64_t turn = atomic_load_explicit(&to->turn, memory_order_relaxed);

	do {
		if (turn > 2 * n) /* a lap behind: the slot is a later mark's */
			return;
	} while (!atomic_compare_exchange_weak_explicit(
	    &to->turn, &turn, 2 * n + 1, memory_order_acquire, memory_order_relaxed));
	m.check = ring_check(n, &m);
	PUT(to->t_ns, m.t_ns);
	PUT(to->number, m.number);
	PUT(to->value, m.value);
	PUT(to->kind, m.kind);
	PUT(to->name, m.name);
	PUT(to->check, m.check);
	turn = 2 * n + 1;
	atomic_compare_exchange_strong_explicit(&to->turn, &turn, 2 * n + 2, memory_order_release,
						memory_order_relaxed);
}

/* --- coming and going --- */

/* The number in an environment variable, -1: none. */
static int32_t env_number(const char *name)
{
	const char *text = getenv(name);
	int32_t v = 0;

	if (!text || !*text)
		return -1;
	for (; *text; text++) {
		if (*text < '0' || *text > '9' || v > 10000000)
			return -1;
		v = v * 10 + (*text - '0');
	}
	return v;
}

/* First match wins: a torchrun within a Slurm job knows better. */
static void identify(struct ring_header *h)
{
	static const struct {
		const char *rank, *world;
	} sources[] = {
		{ "RANK", "WORLD_SIZE" },
		{ "SLURM_PROCID", "SLURM_NTASKS" },
		{ "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE" },
		{ "PMI_RANK", "PMI_SIZE" },
		{ "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE" },
		{ "PMIX_RANK", "PMIX_SIZE" },
	};
	int32_t rank = -1, world = -1;

	for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]) && rank < 0; i++) {
		rank = env_number(sources[i].rank);
		world = rank < 0 ? -1 : env_number(sources[i].world);
	}
	if (world <= rank) /* one of them is not what we take it for; rank alone may be right */
		world = -1;
	PUT(h->rank, rank);
	PUT(h->world, world);
}

/* This process and the start of it (clock ticks since boot): fields 1 and 22 of /proc/self/stat, where
 *	4242 (a name (with) 2 brackets) S 1 4242 ...
 * The pid that /proc gives is the one that the recorder sees. */
static bool self_name(int32_t *ret_pid, char *ret, size_t size)
{
	char text[1024];
	int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	char *p, *end;
	long pid;
	unsigned long long ticks;

	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return false;
	text[n] = '\0';
	pid = strtol(text, &end, 10);
	p = strrchr(text, ')');
	if (pid <= 0 || pid > INT32_MAX || *end != ' ' || !p)
		return false;
	for (int field = 2; field < 22; field++) {
		p = strchr(p + 1, ' ');
		if (!p)
			return false;
	}
	ticks = strtoull(p + 1, &end, 10);
	if (end == p + 1)
		return false;
	*ret_pid = (int32_t)pid;
	return snprintf(ret, size, "%ld-%llu.ring", pid, ticks) < (int)size;
}

/* A folder of ours that nobody else may look into, or -1. */
static int folder_open(const char *folder)
{
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return -1;
	if (fstat(fd, &st) < 0 || st.st_uid != geteuid() || (st.st_mode & 0777) != FOLDER_MODE) {
		close(fd);
		return -1;
	}
	return fd;
}

/* All of it is there before anybody maps it. A limit on file sizes would be told by a signal. */
static bool allocate(int fd)
{
	struct rlimit limit;
	int e = EINTR;

	if (getrlimit(RLIMIT_FSIZE, &limit) < 0 || limit.rlim_cur < RING_BYTES)
		return false;
	for (int i = 0; e == EINTR && i < 100; i++)
		e = posix_fallocate(fd, 0, RING_BYTES);
	return !e;
}

static struct ring *ring_map(int fd)
{
	struct ring *r =
	    mmap(NULL, sizeof(*r), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *at;

	if (r == MAP_FAILED)
		return NULL;
	at = mmap(NULL, RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
	if (at == MAP_FAILED) {
		munmap(r, sizeof(*r));
		return NULL;
	}
	r->header = (void *)at;
	r->names = (void *)(at + RING_HEADER);
	r->slots = (void *)(at + RING_HEADER + RING_NAMES * RING_NAME_BYTES);
	return r;
}

/* One that is there already: see ring_create(). */
static struct ring *take_up(int folder, const char *file, int32_t pid)
{
	int fd = openat(folder, file, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct ring *r = NULL;
	struct stat st;

	if (fd < 0)
		return NULL;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size == RING_BYTES && allocate(fd))
		r = ring_map(fd);
	close(fd);
	if (!r)
		return NULL;
	if (r->header->magic != RING_MAGIC || r->header->version != RING_VERSION ||
	    r->header->slots != RING_SLOTS || r->header->names != RING_NAMES ||
	    r->header->bytes != RING_BYTES || r->header->pid != pid) {
		ring_forget(r);
		return NULL;
	}
	names_learn(r);
	identify(r->header);
	atomic_store(&r->header->ended, 0);
	return r;
}

/* It gets its name when it is complete: a reader never sees half of one. */
static struct ring *make(int folder, const char *file, int32_t pid)
{
	char young[FILE_NAME];
	struct ring *r = NULL;
	int fd;

	snprintf(young, sizeof(young), ".%ld.new", syscall(SYS_gettid));
	fd = openat(folder, young, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return NULL;
	if (allocate(fd))
		r = ring_map(fd);
	close(fd);
	if (r) {
		r->header->version = RING_VERSION;
		r->header->slots = RING_SLOTS;
		r->header->names = RING_NAMES;
		r->header->bytes = RING_BYTES;
		r->header->pid = pid;
		identify(r->header);
		r->header->magic = RING_MAGIC;
	}
	if (r && linkat(folder, young, folder, file, 0) < 0) {
		ring_forget(r);
		r = NULL;
	}
	unlinkat(folder, young, 0);
	return r;
}

struct ring *ring_create(const char *folder)
{
	char file[FILE_NAME];
	struct ring *r;
	int32_t pid;
	int fd;

	if (!self_name(&pid, file, sizeof(file)))
		return NULL;
	fd = folder_open(folder);
	if (fd < 0)
		return NULL;
	r = take_up(fd, file, pid);
	if (!r)
		r = make(fd, file, pid);
	if (!r) /* another thread was faster */
		r = take_up(fd, file, pid);
	close(fd);
	return r;
}

/* Plain memory in its place, which costs nothing while nobody writes there: whoever is within ring_put() now
 * (another thread; or this one, when a signal handler forked) does no harm. Fails only without memory for
 * the map itself; then the ring stays. */
void ring_forget(struct ring *r)
{
	/* Not mmap(): ThreadSanitizer in the program would take it for a write to all of it. */
	if (r)
		syscall(SYS_mmap, r->header, (size_t)RING_BYTES, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0l);
}

void ring_end(struct ring *r)
{
	if (r)
		atomic_store(&r->header->ended, 1);
}

void ring_close(struct ring *r)
{
	ring_end(r);
	ring_forget(r);
}
