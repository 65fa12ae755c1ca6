/* SPDX-License-Identifier: MIT
 *
 * The quick way of a training loop (src/mark/python.c), with a Python of a few lines: what it answers, what it
 * marks, and that every reference it took is given back.
 */
#include "../unit.h"
#include "mark/ring.h"
#include "place.h"
#include "spotter.h"

#include <math.h>
#include <pthread.h>

struct object {
	int refs;
	struct object *type;
	uint64_t number;
	double value;
	struct object *is_cpu, *dtype; /* attributes; NULL: has none */
	float *data;
};

struct method {
	const char *name;
	void (*call)(void);
	int flags;
	const char *doc;
};

static struct object none, yes, no, plain, single, twofold, grad_enabled, data_ptr, is_cpu_name,
    dtype_name;
static struct object *grad = &yes; /* what torch.is_grad_enabled() says */
static int made, errors;           /* objects that are there; exceptions that nobody took back */

static struct object *make(uint64_t number, double value)
{
	struct object *o = calloc(1, sizeof(*o));

	must(o);
	*o = (struct object){ .refs = 1, .number = number, .value = value };
	made++;
	return o;
}

static void hold(struct object *o)
{
	o->refs++;
}

static void drop(struct object *o)
{
	if (--o->refs == 0 && o->type == NULL && o != &none) {
		made--;
		free(o);
	}
}

static struct object *function_new(const struct method *m, struct object *self, struct object *mod)
{
	(void)self;
	(void)mod;
	return (struct object *)m;
}

static unsigned long long as_number(struct object *o)
{
	return o->number;
}

static double as_double(struct object *o)
{
	return o->value;
}

static struct object *float_new(double v)
{
	return make(0, v);
}

static struct object *error(void)
{
	return errors ? &none : NULL;
}

static void forgive(void)
{
	errors--;
}

static struct object *attribute(struct object *o, struct object *name)
{
	struct object *found = name == &is_cpu_name ? o->is_cpu : o->dtype;

	if (found)
		hold(found);
	else
		errors++;
	return found;
}

static struct object *call(struct object *f, ...)
{
	va_list args;
	struct object *o;

	va_start(args, f);
	o = va_arg(args, struct object *);
	va_end(args);
	if (f == &grad_enabled) {
		must(!o);
		hold(grad);
		return grad;
	}
	must(f == &data_ptr && o);
	if (o->data)
		return make((uintptr_t)o->data, 0);
	errors++;
	return NULL;
}

static struct object *type_of(struct object *o)
{
	hold(o->type);
	return o->type;
}

/* Of "(iKdLiKd)": kept for the test to look at. */
static struct {
	int at, since_update;
	unsigned long long number, scaled;
	double loss, scaled_loss;
	long long began_ns;
} left;

static struct object *build(const char *format, ...)
{
	va_list args;
	unsigned long long n;

	va_start(args, format);
	if (!strcmp(format, "K")) {
		n = va_arg(args, unsigned long long);
		va_end(args);
		return make(n, 0);
	}
	must(!strcmp(format, "(iKdLiKd)"));
	left.at = va_arg(args, int);
	left.number = va_arg(args, unsigned long long);
	left.loss = va_arg(args, double);
	left.began_ns = va_arg(args, long long);
	left.since_update = va_arg(args, int);
	left.scaled = va_arg(args, unsigned long long);
	left.scaled_loss = va_arg(args, double);
	va_end(args);
	return make(0, 0);
}

/* The method of that name. */
static const struct method *get(const char *name)
{
	/* ISO C has no way from a function to a void *, dlsym() and POSIX have. */
	const void *const table[] = {
		(void *)(uintptr_t)function_new,
		(void *)(uintptr_t)as_number,
		(void *)(uintptr_t)as_double,
		(void *)(uintptr_t)float_new,
		NULL,
		(void *)(uintptr_t)error,
		(void *)(uintptr_t)hold,
		&none,
		(void *)(uintptr_t)drop,
		(void *)(uintptr_t)attribute,
		(void *)(uintptr_t)call,
		(void *)(uintptr_t)type_of,
		(void *)(uintptr_t)build,
		(void *)(uintptr_t)forgive,
		&yes,
		&no,
	};

	return spotter_python(table, name);
}

static struct object *one(const char *name, struct object *arg)
{
	return ((struct object * (*)(struct object *, struct object *)) get(name)->call)(NULL, arg);
}

static bool is(const char *name, struct object *arg)
{
	struct object *answer = one(name, arg);

	must(answer == &yes || answer == &no);
	drop(answer);
	return answer == &yes;
}

static void many(const char *name, struct object *const *args, intptr_t count)
{
	struct object *(*f)(struct object *, struct object *const *, intptr_t) =
	    (struct object * (*)(struct object *, struct object *const *, intptr_t)) get(name)
		->call;

	must(f(NULL, args, count) == &none);
	drop(&none);
}

static void leave(void)
{
	drop(one("leave", NULL));
}

enum { OUT, STEPPED, ASKED, FETCHED, GRADED };

static void enter(int at, int begins, bool counts, uint64_t number, struct object *iterator,
		  struct object *clock)
{
	struct object args[8] = {
		{ .number = (uint64_t)at },     { .number = (uint64_t)begins },
		{ .number = counts },           { .number = 0 },
		{ .number = number },           { .number = (uintptr_t)iterator },
		{ .number = (uintptr_t)clock }, { .value = NAN },
	};
	struct object *pointers[8];

	for (int i = 0; i < 8; i++)
		pointers[i] = &args[i];
	many("enter", pointers, 8);
}

static void begin(struct place *p)
{
	struct object *facts[] = { &plain,    &single,      &grad_enabled,
				   &data_ptr, &is_cpu_name, &dtype_name };

	must(!setenv("SPOTTER_MARKS", p->path, 1));
	none.type = yes.type = no.type = plain.type = single.type = twofold.type = &none;
	many("know", facts, 6);
	many("know", facts, 6); /* again: what was held is let go */
	must(plain.refs == 1 && dtype_name.refs == 1);
}

static struct mark next(struct ring_reader *r)
{
	struct mark m = { 0 };
	uint64_t lost = 0;

	must(ring_next(r, &m, &lost) == 1 && !lost);
	return m;
}

static void all_given_back(void)
{
	must(made == 0 && errors == 0);
	must(yes.refs == 0 && no.refs == 0 && none.refs == 0 && plain.refs == 1 &&
	     single.refs == 1);
}

static void a_loop(struct place *p)
{
	float at_home = 0.5f;
	struct object iterator = { .type = &none }, clock = iterator, other = iterator;
	struct object loss = { .type = &plain, .is_cpu = &yes, .dtype = &single, .data = &at_home };
	struct ring_reader *r;
	struct mark m;

	begin(p);
	must(!is("asked", &iterator) && !is("graded", &loss) && !is("stepped", &clock));
	enter(STEPPED, STEPPED, true, 41, &iterator, &clock);
	for (int i = 0; i < 3; i++) {
		must(!is("came", &iterator) && !is("graded", &loss) && !is("stepped", &clock));
		must(!is("asked", &other) && is("asked", &iterator) && !is("asked", &iterator));
		must(!is("came", &other) && is("came", &iterator));
		must(!is("asked", &iterator) && is("graded", &loss) && !is("graded", &loss));
		must(!is("stepped", &other) && is("stepped", &clock));
		at_home += 1;
	}
	grad = &no; /* an evaluation */
	must(!is("asked", &iterator));
	leave();
	must(left.at == STEPPED && left.number == 44 && isnan(left.loss) && left.since_update == 1);
	must(!is("asked", &iterator));
	r = place_open(p, getpid());
	must(r);
	for (int i = 0; i < 3; i++) {
		m = next(r);
		must(m.kind == MARK_DATA_WAIT && m.number < 1000000000);
		m = next(r);
		must(m.kind == MARK_STEP && m.number == 42u + (unsigned)i && m.value == 0.5 + i);
	}
	ring_reader_close(r);
	drop(one("waits_seen", NULL));
	all_given_back();
}

static void losses(struct place *p)
{
	float at_home = 2;
	struct object clock = { .type = &none };
	struct object loss = { .type = &plain, .is_cpu = &yes, .dtype = &single, .data = &at_home };
	struct object changed;

	begin(p);
	enter(FETCHED, FETCHED, true, 0, NULL, &clock);
	changed = loss;
	changed.type = &single; /* a subclass */
	must(!is("graded", &changed));
	changed = loss;
	changed.dtype = &twofold;
	must(!is("graded", &changed));
	changed.dtype = NULL;
	must(!is("graded", &changed));
	changed = loss;
	changed.is_cpu = NULL;
	must(!is("graded", &changed));
	changed.is_cpu = &no; /* a device's, which nobody may wait for */
	changed.dtype = NULL;
	must(is("graded", &changed));
	leave();
	must(left.at == GRADED && isnan(left.loss));
	changed = loss;
	changed.data = NULL; /* no storage: torch raises */
	enter(FETCHED, FETCHED, true, 0, NULL, &clock);
	must(is("graded", &changed) && is("stepped", &clock) && is("graded", &loss));
	leave();
	must(left.at == GRADED && left.loss == 2 && left.number == 1);
	all_given_back();
}

static void *elsewhere(void *loss)
{
	must(!is("graded", loss));
	return NULL;
}

static void others(struct place *p)
{
	float at_home = 2;
	struct object clock = { .type = &none }, iterator = clock, value = { .value = 7 };
	struct object loss = { .type = &plain, .is_cpu = &yes, .dtype = &single, .data = &at_home };
	struct object *scaled[] = { &loss, &value };
	struct object *seen;
	pthread_t thread;

	begin(p);
	/* Another thread; a loss that AMP multiplied; steps that are the user's. */
	enter(FETCHED, STEPPED, false, 0, &iterator, &clock);
	must(!pthread_create(&thread, NULL, elsewhere, &loss) && !pthread_join(thread, NULL));
	many("scaled", scaled, 2);
	must(is("graded", &loss) && !is("stepped", &clock) && !is("updated", NULL));
	seen = one("loss_seen", NULL);
	must(seen->value == 7);
	drop(seen);
	leave();
	must(left.at == GRADED && left.loss == 7 && !left.scaled && !is("updated", NULL));
	enter(STEPPED, STEPPED, false, 0, &iterator, &clock);
	many("scaled", scaled, 2);
	must(is("updated", NULL) && is("asked", &iterator));
	leave();
	must(left.at == ASKED && left.began_ns > 0 && left.scaled == (uintptr_t)&loss &&
	     left.scaled_loss == 7);
	must(get("no_such_thing") == (const void *)&none);
	drop(&none);
	all_given_back();
}

static void run(void (*f)(struct place *))
{
	struct place p;
	int status;

	place_make(&p);
	status = in_child(f, &p);
	place_done(&p);
	assert_int_equal(status, 0);
}

static void a_loop_is_marked(void **state)
{
	(void)state;
	run(a_loop);
}

static void losses_of_all_kinds(void **state)
{
	(void)state;
	run(losses);
}

static void other_threads_and_amp(void **state)
{
	(void)state;
	run(others);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_loop_is_marked),
		cmocka_unit_test(losses_of_all_kinds),
		cmocka_unit_test(other_threads_and_amp),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
