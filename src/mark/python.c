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
 *
 * The second half is the quick way through the hooks of PyTorch: what a step of nearly every training does, kept in
 * one cache line here instead of in Python's objects (python/spotter/_hooks/torch_loop.py, which knows what it means).
 */
#pragma GCC visibility push(default)
#include "spotter.h"
#pragma GCC visibility pop

#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

typedef struct object object; /* PyObject, never looked into */

/* PyMethodDef; what `call` is called with depends on the flags: (self, args, count) or (self, the one argument). */
struct method {
	const char *name;
	void (*call)(void);
	int flags;
	const char *doc;
};
enum { METH_NOARGS = 0x4, METH_O = 0x8, METH_FASTCALL = 0x80 };

/* What the package gives us, in this order: see FUNCTIONS there. An older package gives no more than these. */
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

/* And then, for the quick way: see LANE_FUNCTIONS there. */
struct python_more {
	void (*drop)(object *o);
	object *(*attribute)(object *o, object *name);
	object *(*call)(object *function, ...); /* PyObject_CallFunctionObjArgs: up to a NULL */
	object *(*type)(object *o);             /* a new reference */
	object *(*build)(const char *format, ...);
	void (*forgive)(void);        /* PyErr_Clear */
	int (*matches)(object *kind); /* PyErr_ExceptionMatches */
	object *yes, *no, *ordinary;  /* Exception: what a program may be spared */
};

/* Of the process; the same whoever gives it. */
static struct python py;
static struct python_more more;

/* Where a training loop is on the quick way: what came last. The same numbers as in torch_loop.py. */
enum place { OUT, STEPPED, ASKED, FETCHED, GRADED };

/* Of the process, too. Objects without "held" are compared and never looked into; the package leaves the quick way
 * before one of them is gone. */
static struct {
	uint8_t at, begins; /* enum place; begins: with what a step begins */
	bool counts;        /* the steps are ours to count, and not the user's own */
	bool since_update;  /* a step since GradScaler.update() */
	pthread_t thread;   /* that trains */
	const object *iterator, *clock;
	uint64_t number;    /* of the last step */
	int64_t began_ns;   /* when the batch was asked for */
	double loss;        /* the last one, until a step takes it */
	double scaled_loss; /* of `scaled`, before AMP multiplied it */
	uint64_t waits;     /* that were marked here */
	/* held: */
	object *scaled; /* so that no other tensor has its address: NULL none */
	object *plain, *single, *grad_enabled, *mode_enabled, *data_ptr, *is_cpu, *dtype;
} lane __attribute__((aligned(64)));

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
	lane.loss = NAN; /* taken */
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

/* The 32 bits at the address of a tensor's data in host memory, which somebody holds. NAN: none, or no address of a
 * program's at all (the first page, the kernel's half). */
static double float_of(uint64_t address)
{
	float v;

	if (address < 4096 || address > INT64_MAX)
		return NAN;
	memcpy(&v, (const void *)(uintptr_t)address, sizeof(v));
	return v;
}

/* float_at(address): what is there. The caller knows that it is one: no function mode of torch has answered. */
static object *float_at(object *self, object *const *args, intptr_t count)
{
	uint64_t address;

	(void)self;
	if (count != 1)
		return nothing();
	address = py.as_number(args[0]);
	if (failed(address, 0))
		return NULL;
	return py.float_new(float_of(address));
}

/* --- the quick way: a batch, a backward() and a step of the clock, and then it begins again --- */

static object *answer(bool yes)
{
	object *o = yes ? more.yes : more.no;

	py.hold(o);
	return o;
}

/* What came of asking the user's objects, which may run any code of theirs: other threads, too. */
enum found { NO, YES, FAILS /* which is nobody's problem */, RAISES /* to be passed on */ };

/* The call of Python that went wrong. Ctrl-C and the end of the program are not ours to keep. */
static enum found fault(void)
{
	if (py.error() && !more.matches(more.ordinary))
		return RAISES;
	more.forgive();
	return FAILS;
}

/* A new reference, or NULL with an error. */
static enum found is_it(object *found, const object *wanted)
{
	if (!found)
		return fault();
	more.drop(found);
	return found == wanted ? YES : NO;
}

/* For what is no yes: false, or NULL for what must be passed on. */
static object *refusal(enum found found)
{
	return found == RAISES ? NULL : answer(false);
}

/* The caller gives a reference, which is now the lane's; NULL: none. Last, as letting go may run code, too. */
static void keep_scaled(object *tensor)
{
	object *before = lane.scaled;

	lane.scaled = tensor;
	if (before)
		more.drop(before);
}

/* know(torch.Tensor, torch.float32, torch.is_grad_enabled, torch._C._is_torch_function_mode_enabled,
 * torch.Tensor.data_ptr, "is_cpu", "dtype") */
static object *know(object *self, object *const *args, intptr_t count)
{
	object **known[] = { &lane.plain,    &lane.single, &lane.grad_enabled, &lane.mode_enabled,
			     &lane.data_ptr, &lane.is_cpu, &lane.dtype };

	(void)self;
	for (intptr_t i = 0; count == 7 && i < count; i++) {
		object *before = *known[i];

		py.hold(args[i]);
		*known[i] = args[i];
		if (before)
			more.drop(before);
	}
	return nothing();
}

/* enter(at, begins, counts, since_update, number, id of iterator, id of clock, loss): by the thread that trains */
static object *enter(object *self, object *const *args, intptr_t count)
{
	uint64_t given[7];
	double loss;

	(void)self;
	if (count != 8 || !lane.plain)
		return nothing();
	for (int i = 0; i < 7; i++) {
		given[i] = py.as_number(args[i]);
		if (failed(given[i], 0))
			return NULL;
	}
	loss = py.as_double(args[7]);
	if (failed(0, loss))
		return NULL;
	lane.begins = (uint8_t)given[1];
	lane.counts = given[2];
	lane.since_update = given[3];
	lane.number = given[4];
	lane.iterator = (const object *)(uintptr_t)given[5];
	lane.clock = (const object *)(uintptr_t)given[6];
	lane.loss = loss;
	lane.thread = pthread_self();
	lane.at = (uint8_t)given[0];
	keep_scaled(NULL);
	return nothing();
}

/* leave(): (at, number, loss, began_ns, since_update, id of scaled, its loss); OUT: it was not on it */
static object *leave(object *self, object *unused)
{
	int at = lane.at;
	object *told;

	(void)self;
	(void)unused;
	lane.at = OUT;
	told = more.build("(iKdLiKd)", at, (unsigned long long)lane.number, lane.loss,
			  (long long)lane.began_ns, (int)lane.since_update,
			  (unsigned long long)(uintptr_t)lane.scaled, lane.scaled_loss);
	keep_scaled(NULL);
	return told;
}

/* By the thread that trains, and this is what came last. Asked again after each call of what is not ours: meanwhile
 * another thread may have left the quick way, which then stays left. */
static bool is_at(enum place at)
{
	return lane.at == at && pthread_equal(pthread_self(), lane.thread);
}

/* asked(iterator): a batch is wanted. All of these answer whether that was it; else nothing was done. */
static object *asked(object *self, object *iterator)
{
	enum found grad;

	(void)self;
	if (!is_at(STEPPED) || iterator != lane.iterator)
		return answer(false);
	grad = is_it(more.call(lane.grad_enabled, NULL), more.yes);
	if (grad != YES) /* NO: an evaluation */
		return refusal(grad);
	if (!is_at(STEPPED) || iterator != lane.iterator)
		return answer(false);
	lane.at = ASKED;
	lane.began_ns = now_ns();
	return answer(true);
}

/* came(iterator): the batch is there. */
static object *came(object *self, object *iterator)
{
	int64_t now;

	(void)self;
	if (lane.at != ASKED || iterator != lane.iterator)
		return answer(false);
	lane.at = FETCHED;
	lane.waits++;
	now = now_ns();
	spotter_mark(SPOTTER_DATA_WAIT, NULL,
		     now > lane.began_ns ? (uint64_t)(now - lane.began_ns) : 0, NAN, now);
	return answer(true);
}

/* A loss that has one number (backward() wants no gradient for it), from host memory: no operator runs. YES: *ret is
 * it, NAN for that of a device, which would have to be waited for. Else it is of another type than most. */
static enum found loss_of(object *tensor, double *ret)
{
	enum found found = is_it(more.attribute(tensor, lane.is_cpu), more.yes);
	object *address;
	uint64_t at;

	*ret = NAN;
	if (found != YES)
		return found == NO ? YES : found;
	found = is_it(more.attribute(tensor, lane.dtype), lane.single);
	if (found != YES)
		return found;
	address = more.call(lane.data_ptr, tensor, NULL);
	if (!address)
		return fault();
	at = py.as_number(address);
	found = failed(at, 0) ? fault() : YES;
	if (found == YES)
		*ret = float_of(at);
	more.drop(address);
	return found;
}

/* graded(loss): its backward() is called, without a gradient. Not within a function mode of torch (since 2.0 also what
 * torch.set_default_device() is): the user's code would be asked for is_cpu, dtype and the address, and may answer
 * what it likes. backward() then is called twice, too; torch_loop.py knows of that. */
static object *graded(object *self, object *tensor)
{
	enum found found;
	object *type;
	double loss;

	(void)self;
	if (!is_at(FETCHED))
		return answer(false);
	type = more.type(tensor);
	more.drop(type);
	if (type != lane.plain)
		return answer(false);
	found = is_it(more.call(lane.mode_enabled, NULL), more.no);
	if (found != YES)
		return refusal(found);
	loss = lane.scaled_loss;
	if (lane.scaled != tensor)
		found = loss_of(tensor, &loss);
	if (found != YES)
		return refusal(found);
	if (!is_at(FETCHED))
		return answer(false);
	lane.loss = loss;
	lane.at = GRADED;
	keep_scaled(NULL);
	return answer(true);
}

/* stepped(optimizer) */
static object *stepped(object *self, object *optimizer)
{
	double loss = lane.loss;

	(void)self;
	if (lane.at != GRADED || optimizer != lane.clock || !lane.counts)
		return answer(false);
	lane.at = lane.begins;
	lane.since_update = true;
	lane.loss = NAN;
	spotter_mark(SPOTTER_STEP, NULL, ++lane.number, loss, 0);
	return answer(true);
}

/* scaled(tensor, loss): AMP multiplied that loss; backward() will be called on the tensor. */
static object *scaled(object *self, object *const *args, intptr_t count)
{
	double loss;

	(void)self;
	if (count != 2)
		return nothing();
	loss = py.as_double(args[1]);
	if (failed(0, loss))
		return NULL;
	py.hold(args[0]);
	lane.scaled_loss = loss;
	keep_scaled(args[0]);
	return nothing();
}

/* updated(): GradScaler.update(). False: behind a backward() that no step followed. */
static object *updated(object *self, object *unused)
{
	(void)self;
	(void)unused;
	if (lane.at == OUT || lane.at == GRADED)
		return answer(false);
	lane.since_update = false;
	return answer(true);
}

static object *loss_seen(object *self, object *unused)
{
	(void)self;
	(void)unused;
	return py.float_new(lane.at == OUT ? NAN : lane.loss);
}

static object *waits_seen(object *self, object *unused)
{
	(void)self;
	(void)unused;
	return more.build("K", (unsigned long long)lane.waits);
}

/* --- */

/* Called by CPython as its flags say. */
#define CALL(function) ((void (*)(void))(function))

void *spotter_python(const void *const *functions, const char *name)
{
	static const struct method all[] = {
		{ "mark", CALL(mark), METH_FASTCALL, NULL },
		{ "step", CALL(step), METH_FASTCALL, NULL },
		{ "waited", CALL(waited), METH_FASTCALL, NULL },
		{ "float_at", CALL(float_at), METH_FASTCALL, NULL },
	};
	static const struct method quick[] = {
		{ "know", CALL(know), METH_FASTCALL, NULL },
		{ "enter", CALL(enter), METH_FASTCALL, NULL },
		{ "leave", CALL(leave), METH_NOARGS, NULL },
		{ "asked", CALL(asked), METH_O, NULL },
		{ "came", CALL(came), METH_O, NULL },
		{ "graded", CALL(graded), METH_O, NULL },
		{ "stepped", CALL(stepped), METH_O, NULL },
		{ "scaled", CALL(scaled), METH_FASTCALL, NULL },
		{ "updated", CALL(updated), METH_NOARGS, NULL },
		{ "loss_seen", CALL(loss_seen), METH_NOARGS, NULL },
		{ "waits_seen", CALL(waits_seen), METH_NOARGS, NULL },
	};

	memcpy(&py, functions, sizeof(py));
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (!strcmp(all[i].name, name))
			return py.function_new(&all[i], NULL, NULL);
	for (size_t i = 0; i < sizeof(quick) / sizeof(quick[0]); i++) {
		if (strcmp(quick[i].name, name) != 0)
			continue;
		memcpy(&more, functions + sizeof(py) / sizeof(*functions), sizeof(more));
		return py.function_new(&quick[i], NULL, NULL);
	}
	return nothing();
}
