/* SPDX-License-Identifier: MIT
 *
 * What is mapped where, kept up to date without reading maps often: a known address costs a look into
 * a table, an unknown one makes us read maps again, four times a second at most. Reading takes the lock
 * that the process needs to map memory, and 10 ms with 60,000 mappings: it is at most half a percent of
 * the time, and less and less of it when what is looked for is not found.
 */
#include "base/clock.h"
#include "stack/native/process.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>

#define MAPS_AGAIN  250000000ll /* ns; a process that maps all the time is not read all the time */
#define MAPS_SHARE  200 /* after a reading, so many times what it took passes until the next */
#define MAPS_RAREST 30000000000ll /* ns; between readings that find nothing */
#define MAPS_OLD    10000000000ll /* ns; a library may have taken the place of another */
#define CODE_FIRST  65536 /* nothing is mapped below, nor code above: pc of a walk that went wrong */
#define CODE_LAST   (1ull << 56)
#define HEADERS_MAX 64
#define BACK_MAX    64 /* mappings of one image; libcuda has some 10 */

static const char *name_of(const struct native_process *p, const struct elf_mapping *m)
{
	const char *text = p->fixed_maps ? p->fixed_maps : p->maps_text;

	return m->name ? text + m->name : "";
}

static void forget_images(struct native_process *p)
{
	for (size_t i = 0; i < p->images.n; i++)
		native_table_put(p->shared, p->images.v[i].table);
	p->images.n = p->places.n = 0;
	map_clear(&p->image_by_start);
	map_clear(&p->place_by_symbol);
	map_clear(&p->place_by_address);
	memset(p->calls, 0, sizeof(p->calls));
}

static const struct elf_mapping *find(const elf_mappings *maps, uint64_t address)
{
	size_t low = 0, high = maps->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (maps->v[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low < maps->n && maps->v[low].start <= address ? &maps->v[low] : NULL;
}

/* Is what was executable still what it was? Names are compared, an inode number may be used again. */
static bool still_there(const struct native_process *p, const elf_mappings *now, const char *text)
{
	for (size_t i = 0; i < p->maps.n; i++) {
		const struct elf_mapping *old = &p->maps.v[i], *m;

		if (!old->executable)
			continue;
		m = find(now, old->start);
		if (!m || m->start != old->start || m->end != old->end ||
		    m->offset != old->offset || m->inode != old->inode ||
		    m->device != old->device || m->name_n != old->name_n ||
		    memcmp(text + m->name, name_of(p, old), m->name ? m->name_n : 0) != 0)
			return false;
	}
	return true;
}

/* Mappings of the kernel come sorted; those of a torn or invented text need not. */
static void only_sorted(elf_mappings *maps)
{
	size_t n = 0;

	for (size_t i = 0; i < maps->n; i++)
		if (!n || maps->v[i].start >= maps->v[n - 1].end)
			maps->v[n++] = maps->v[i];
	maps->n = n;
}

/* Of 200 KB of text of a process with 300 libraries, 25 are left: every name once, without the rest of
 * the lines. Names stand in the order of the mappings, so none is written over before it was read. */
static char *only_names(char *text, elf_mappings *maps)
{
	const struct elf_mapping *last = NULL;
	size_t end = 1; /* 0 is no name */
	char *fit;

	for (size_t i = 0; i < maps->n; i++) {
		struct elf_mapping *m = &maps->v[i];

		if (!m->name)
			continue;
		if (last && last->name_n == m->name_n &&
		    memcmp(text + last->name, text + m->name, m->name_n) == 0) {
			m->name = last->name;
			continue;
		}
		memmove(text + end, text + m->name, m->name_n);
		m->name = (uint32_t)end;
		end += m->name_n;
		last = m;
	}
	fit = realloc(text, end);
	return fit ? fit : text;
}

/* Keeps what it has when maps cannot be read (the process has ended). */
static void replace_maps(struct native_process *p)
{
	elf_mappings now = { 0 };
	char *text = NULL;
	size_t n;
	int r = 0;

	if (!p->fixed_maps) {
		text = elf_read_maps(p->mem->pid, &n, &r);
		if (!text)
			return;
	}
	if (elf_parse_maps(text ? text : p->fixed_maps, text ? n : p->fixed_maps_n, &now) < 0)
		goto out;
	only_sorted(&now);
	if (!vec_reserve(&p->image_of, now.n))
		goto out;
	if (!still_there(p, &now, text ? text : p->fixed_maps))
		forget_images(p);
	p->image_of.n = now.n;
	if (now.n)
		memset(p->image_of.v, 0, now.n * sizeof(p->image_of.v[0]));
	free(p->maps_text);
	p->maps_text = text ? only_names(text, &now) : NULL;
	vec_done(&p->maps);
	p->maps = now;
	return;
out:
	vec_done(&now);
	free(text);
}

static void read_maps(struct native_process *p, int64_t now_ns)
{
	int64_t begin = clock_mono_ns(), cost;

	replace_maps(p);
	cost = clock_mono_ns() - begin;
	p->maps_tried = true;
	p->maps_ns = now_ns;
	p->maps_pause = cost > MAPS_AGAIN / MAPS_SHARE ? cost * MAPS_SHARE : MAPS_AGAIN;
	p->maps_reads++;
}

/* A clock that went backwards is no reason never to read again. */
static bool may_read(const struct native_process *p, int64_t now_ns)
{
	int64_t pause = p->maps_pause;

	for (unsigned i = 0; i < p->maps_vain && pause < MAPS_RAREST; i++)
		pause = 2 * pause < MAPS_RAREST ? 2 * pause : MAPS_RAREST;
	return !p->maps_tried || now_ns < p->maps_ns || now_ns - p->maps_ns >= pause;
}

const struct elf_mapping *native_mapping(struct native_process *p, uint64_t address, int64_t now_ns)
{
	const struct elf_mapping *m = find(&p->maps, address);

	if (m || address < CODE_FIRST || address >= CODE_LAST || !may_read(p, now_ns))
		return m;
	read_maps(p, now_ns);
	m = find(&p->maps, address);
	if (m)
		p->maps_vain = 0;
	else if (p->maps_vain < 16)
		p->maps_vain++;
	return m;
}

/* Programs without a dynamic table have no symbols for us, but unwind rules. */
static int plain_image(struct mem *m, uint64_t start, struct elf_image *ret, uint64_t *ret_index)
{
	Elf64_Ehdr head;
	Elf64_Phdr headers[HEADERS_MAX];
	uint64_t low = UINT64_MAX, high = 0, index = 0;
	int r = mem_read(m, start, &head, sizeof(head));

	if (r < 0)
		return r;
	if (memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != ELFCLASS64 ||
	    head.e_ident[EI_DATA] != ELFDATA2LSB || head.e_phentsize != sizeof(Elf64_Phdr) ||
	    head.e_phnum == 0 || head.e_phnum > HEADERS_MAX || head.e_phoff > 1 << 20)
		return -ENOEXEC;
	r = mem_read(m, start + head.e_phoff, headers, head.e_phnum * sizeof(headers[0]));
	if (r < 0)
		return r;
	for (unsigned i = 0; i < head.e_phnum; i++) {
		const Elf64_Phdr *h = &headers[i];

		if (h->p_type == PT_GNU_EH_FRAME)
			index = h->p_vaddr;
		if (h->p_type != PT_LOAD || h->p_vaddr + h->p_memsz < h->p_vaddr)
			continue;
		low = h->p_vaddr < low ? h->p_vaddr : low;
		high = h->p_vaddr + h->p_memsz > high ? h->p_vaddr + h->p_memsz : high;
	}
	if (low >= high)
		return -ENOEXEC;
	*ret = (struct elf_image){ .start = start,
				   .bias = start - (low & ~(uint64_t)4095),
				   .machine = head.e_machine };
	ret->end = ret->bias + high;
	*ret_index = index ? index + ret->bias : 0;
	return ret->end > start ? 0 : -ENOEXEC;
}

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

/* "libc.so.6", "libc-2.31.so", "libpthread-2.31.so", "ld-musl-x86_64.so.1", "[vdso]" */
static bool is_libc(const char *file)
{
	const char *base = strrchr(file, '/');

	base = base ? base + 1 : file;
	return strcmp(file, "[vdso]") == 0 || begins(base, "libc.so") || begins(base, "libc-2.") ||
	       begins(base, "libpthread.so") || begins(base, "libpthread-2.") ||
	       begins(base, "ld-musl-") || begins(base, "libc.musl-");
}

/* The path that is mapped, without the kernel's remark that it has been deleted since. */
static const char *keep_file(struct native_process *p, const struct elf_mapping *m)
{
	static const char deleted[] = " (deleted)";
	const char *name = name_of(p, m);
	size_t n = m->name ? m->name_n : 0, tail = sizeof(deleted) - 1;

	if (n > tail && memcmp(name + n - tail, deleted, tail) == 0)
		n -= tail;
	if (n && *name != '/' && !(n == 6 && memcmp(name, "[vdso]", 6) == 0))
		n = 0; /* [heap], [anon:...] */
	return names_keep(&p->names, name, n);
}

/* The image that begins with mapping i: its number, or NATIVE_NONE. */
static uint32_t image_at(struct native_process *p, size_t i)
{
	const struct elf_mapping *m = &p->maps.v[i];
	struct native_image image = { 0 }, *slot;
	struct elf_image dynamic;
	struct native_key key;
	uint64_t index;
	uint32_t number;

	if (map_get(&p->image_by_start, m->start, &number))
		return number;
	if (p->images.n >= ELF_IMAGES_MAX || plain_image(p->mem, m->start, &image.elf, &index) < 0)
		return NATIVE_NONE;
	if (elf_image_at(p->mem, &p->maps, i, &dynamic) == 0)
		image.elf = dynamic;
	if (index)
		(void)native_index_read(p->mem, &image.elf, index, &image.index);
	image.file = keep_file(p, m);
	image.libc = is_libc(image.file);
	number = (uint32_t)p->images.n;
	if (!vec_reserve(&p->images, p->images.n + 1) ||
	    !map_put(&p->image_by_start, m->start, number))
		return NATIVE_NONE;
	image.device = m->device;
	image.inode = m->inode;
	(void)native_headers_read(p->mem, m->start, &image.elf.bias, &image.headers);
	native_identity(p->mem, m, &image.elf, &image.headers, &key);
	image.table = native_table_get(p->shared, &key);
	if (!image.table) {
		map_del(&p->image_by_start, m->start);
		return NATIVE_NONE;
	}
	slot = vec_push(&p->images);
	*slot = image;
	return number;
}

static bool may_begin(const struct elf_mapping *m)
{
	return m->readable && !m->offset && m->name;
}

struct native_image *native_image(struct native_process *p, const struct elf_mapping *mapping,
				  uint64_t address)
{
	size_t i = (size_t)(mapping - p->maps.v), begin = i;
	uint32_t *known = &p->image_of.v[i], number = NATIVE_NONE;
	const struct native_image *image;

	if (!*known) {
		/* Its text may have been moved to huge pages: anonymous, between its other parts. */
		while (begin && i - begin < BACK_MAX && !may_begin(&p->maps.v[begin]))
			begin--;
		if (may_begin(&p->maps.v[begin]))
			number = image_at(p, begin);
		*known = 1;
		if (number != NATIVE_NONE && mapping->start < p->images.v[number].elf.end)
			*known = number + 2;
	}
	if (*known == 1)
		return NULL;
	image = &p->images.v[*known - 2];
	return address >= image->elf.start && address < image->elf.end ? &p->images.v[*known - 2]
								       : NULL;
}

/* Anonymous memory has no image, and is not kept: it may become anything. */
static bool place_outside(struct native_process *p, const struct elf_mapping *m,
			  struct native_place *ret)
{
	const char *file = keep_file(p, m);

	*ret = (struct native_place){ .symbol = "", .file = file, .libc = is_libc(file) };
	return true;
}

static void keep_address(struct native_process *p, uint64_t address, uint32_t place)
{
	if (p->place_by_address.n >= NATIVE_SEEN_MAX)
		map_clear(&p->place_by_address);
	(void)map_put(&p->place_by_address, address, place);
}

/* Not by its index: a table that was dropped and read again need not have the same ones. 0 0: none. */
static uint64_t place_key(const struct native_process *p, const struct native_image *image,
			  uint32_t start, uint32_t size)
{
	return (uint64_t)(image - p->images.v) << 52 | (uint64_t)start << 20 | (size & 0xfffff);
}

/* The function that covers an address, exported or not: start, size and name; the name of an exported one
 * is left NULL. False: its name is being looked for. */
static bool function_at(struct native_process *p, struct native_image *image, uint64_t address,
			int64_t now_ns, uint32_t *ret_symbol, struct native_local *ret)
{
	const struct native_symbol *s;

	*ret_symbol = native_symbol(p, image, address);
	if (*ret_symbol != NATIVE_NONE) {
		s = &image->table->symbols.v[*ret_symbol];
		*ret = (struct native_local){ .start = s->start, .size = s->size };
		return true;
	}
	if (!native_local(p, image, address, now_ns, ret))
		return false;
	if (!*ret->name)
		*ret = (struct native_local){ .name = "" };
	return true;
}

bool native_place(struct native_process *p, uint64_t address, int64_t now_ns,
		  struct native_place *ret)
{
	const struct elf_mapping *m;
	struct native_image *image;
	struct native_place *slot;
	struct native_local f;
	uint32_t place, symbol;
	uint64_t key;

	if (map_get(&p->place_by_address, address, &place)) {
		*ret = p->places.v[place];
		return true;
	}
	if (p->maps_tried && now_ns - p->maps_ns > MAPS_OLD && now_ns - p->maps_ns > p->maps_pause)
		read_maps(p, now_ns);
	m = native_mapping(p, address, now_ns);
	if (!m)
		return false;
	image = native_image(p, m, address);
	if (!image)
		return place_outside(p, m, ret);
	*ret = (struct native_place){ .symbol = "", .file = image->file, .libc = image->libc };
	ret->pending = !function_at(p, image, address, now_ns, &symbol, &f);
	if (ret->pending)
		return true;
	key = place_key(p, image, f.start, f.size);
	if (map_get(&p->place_by_symbol, key, &place)) {
		keep_address(p, address, place);
		*ret = p->places.v[place];
		return true;
	}
	ret->symbol = f.name ? f.name : native_symbol_name(p, image, symbol);
	place = (uint32_t)p->places.n;
	slot = vec_push(&p->places);
	if (!slot)
		return true;
	*slot = *ret;
	if (map_put(&p->place_by_symbol, key, place))
		keep_address(p, address, place);
	return true;
}

int native_open_memory(struct native_process **ret, struct mem *m, const char *maps, size_t maps_n)
{
	int r = native_open(ret, NULL, 0);

	if (r < 0)
		return r;
	(*ret)->mem = m;
	(*ret)->fixed_maps = maps;
	(*ret)->fixed_maps_n = maps_n;
	return 0;
}

int native_open(struct native_process **ret, struct native_shared *shared, pid_t pid)
{
	struct native_process *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->shared = shared;
	p->shared_own = !shared;
	if (!shared && native_shared_open(&p->shared) < 0) {
		free(p);
		return -ENOMEM;
	}
	mem_open(&p->own, pid);
	p->mem = &p->own;
	*ret = p;
	return 0;
}

void native_close(struct native_process *p)
{
	if (!p)
		return;
	forget_images(p);
	vec_done(&p->images);
	vec_done(&p->maps);
	vec_done(&p->image_of);
	vec_done(&p->places);
	map_done(&p->image_by_start);
	map_done(&p->place_by_symbol);
	map_done(&p->place_by_address);
	names_done(&p->names);
	if (p->shared_own)
		native_shared_close(p->shared);
	free(p->maps_text);
	mem_close(&p->own);
	free(p);
}
