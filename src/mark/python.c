/* SPDX-License-Identifier: MIT
 *
 * Marks as functions of CPython's own kind. Through ctypes a call with five arguments takes most of a microsecond,
 * ten times the mark itself; as a builtin it takes a tenth of that. No header and no library of Python is needed,
 * so that one libspotter serves every CPython: what is used has had the same shape since 3.7 and is part of its
 * stable ABI since 3.10, and the addresses of its functions are given by the package (python/spotter/_fast.py),
 * which knows them from ctypes. Other Pythons go on by ctypes.
 *
 * All of it runs with the GIL held. Arguments come from our own package; one that is not a number raises what Python
 * raises for it.
 */
#pragma GCC visibility push(default)
#include "spotter.h"
#pragma GCC visibility pop

#include <math.h>
#include <string.h>
#include <time.h>

typedef struct object object; /* PyObject, never looked into */

/* PyMethodDef */
struct method {
	const char *name;
	object *(*call)(object *self, object *const *args, intptr_t count);
	int flags;
	const char *doc;
};
enum { METH_FASTCALL = 0x80 };

/* What the package gives us, in this order: see FUNCTIONS there. */
struct python {
	object *(*function_new)(const struct method *method, object *self, object *module);
	unsigned long long (*as_number)(object *o); /* PyLong_AsUnsignedLongLongMask */
	double (*as_double)(object *o);
	object *(*float_new)(double v);
	char *(*as_bytes)(object *o);
	object *(*error)(void); /* PyErr_Occurred: borrowed, NULL none */
	void (*hold)(object *o);
	object *none;
};

/* Of the process; the same whoever gives it. */
static struct python py;

/* -1 is also what an error looks like. */
static inline int failed(uint64_t number, double value)
{
	return (number == UINT64_MAX || value == -1.0) && py.error();
}

static object *nothing(void)
{
	py.hold(py.none);
	return py.none;
}

static int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ll + ts.tv_nsec;
}

/* mark(kind, name or None, number, value, t_ns) */
static object *mark(object *self, object *const *args, intptr_t count)
{
	uint64_t kind, number, t_ns;
	const char *name = NULL;
	double value;

	(void)self;
	if (count != 5)
		return nothing();
	kind = py.as_number(args[0]);
	if (failed(kind, 0))
		return NULL;
	if (args[1] != py.none) {
		name = py.as_bytes(args[1]);
		if (!name)
			return NULL;
	}
	number = py.as_number(args[2]);
	if (failed(number, 0))
		return NULL;
	value = py.as_double(args[3]);
	if (failed(0, value))
		return NULL;
	t_ns = py.as_number(args[4]);
	if (failed(t_ns, 0))
		return NULL;
	spotter_mark((uint32_t)kind, name, number, value, (int64_t)t_ns);
	return nothing();
}

/* step(number, loss) */
static object *step(object *self, object *const *args, intptr_t count)
{
	uint64_t number;
	double loss;

	(void)self;
	if (count != 2)
		return nothing();
	number = py.as_number(args[0]);
	if (failed(number, 0))
		return NULL;
	loss = py.as_double(args[1]);
	if (failed(0, loss))
		return NULL;
	spotter_mark(SPOTTER_STEP, NULL, number, loss, 0);
	return nothing();
}

/* waited(since): for data, from then (time.monotonic_ns()) to now. */
static object *waited(object *self, object *const *args, intptr_t count)
{
	uint64_t since;
	int64_t now;

	(void)self;
	if (count != 1)
		return nothing();
	since = py.as_number(args[0]);
	if (failed(since, 0))
		return NULL;
	now = now_ns();
	spotter_mark(SPOTTER_DATA_WAIT, NULL, now > (int64_t)since ? (uint64_t)now - since : 0, NAN,
		     now);
	return nothing();
}

/* float_at(address): the 32 bits there, of a tensor in host memory that the caller holds. */
static object *float_at(object *self, object *const *args, intptr_t count)
{
	uint64_t address;
	float v = NAN;

	(void)self;
	if (count != 1)
		return nothing();
	address = py.as_number(args[0]);
	if (failed(address, 0))
		return NULL;
	if (address)
		memcpy(&v, (const void *)(uintptr_t)address, sizeof(v));
	return py.float_new(v);
}

void *spotter_python(const void *const *functions, const char *name)
{
	static const struct method all[] = {
		{ "mark", mark, METH_FASTCALL, NULL },
		{ "step", step, METH_FASTCALL, NULL },
		{ "waited", waited, METH_FASTCALL, NULL },
		{ "float_at", float_at, METH_FASTCALL, NULL },
	};

	memcpy(&py, functions, sizeof(py));
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (!strcmp(all[i].name, name))
			return py.function_new(&all[i], NULL, NULL);
	return nothing();
}
