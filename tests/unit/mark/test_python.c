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
	bool odd; /* its address is no number */
};

struct method {
	const char *name;
	void (*call)(void);
	int flags;
	const char *doc;
};

static struct object none, yes, no, plain, single, twofold, grad_enabled, mode_enabled, data_ptr,
    is_cpu_name, dtype_name, ordinary;
/* What torch.is_grad_enabled() says, and whether there is a function mode; NULL: raises. */
static struct object *grad = &yes, *mode = &no;
static int made, errors;        /* objects that are there; exceptions that nobody took back */
static bool ctrl_c;             /* those are none that may be taken back */
static void (*meanwhile)(void); /* what another thread does while torch is asked */

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
	if (o->odd) {
		errors++;
		return UINT64_MAX;
	}
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

static int matches(struct object *kind)
{
	must(kind == &ordinary && errors == 1);
	return !ctrl_c;
}

/* A new reference; NULL raises. */
static struct object *given(struct object *o)
{
	if (meanwhile)
		meanwhile();
	if (o)
		hold(o);
	else
		errors++;
	return o;
}

static struct object *attribute(struct object *o, struct object *name)
{
	return given(name == &is_cpu_name ? o->is_cpu : o->dtype);
}

static struct object *call(struct object *f, ...)
{
	va_list args;
	struct object *o, *made_last;

	va_start(args, f);
	o = va_arg(args, struct object *);
	va_end(args);
	if (f == &grad_enabled || f == &mode_enabled) {
		must(!o);
		return given(f == &grad_enabled ? grad : mode);
	}
	must(f == &data_ptr && o);
	if (!o->data)
		return given(NULL);
	made_last = make((uintptr_t)o->data, 0);
	made_last->odd = o->odd;
	return made_last;
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
		(void *)(uintptr_t)matches,
		&yes,
		&no,
		&ordinary,
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
	struct object *facts[] = { &plain,    &single,      &grad_enabled, &mode_enabled,
				   &data_ptr, &is_cpu_name, &dtype_name };

	must(!setenv("SPOTTER_MARKS", p->path, 1));
	none.type = yes.type = no.type = plain.type = single.type = twofold.type = &none;
	many("know", facts, 6); /* of another package: not one that is known */
	must(plain.refs == 0);
	many("know", facts, 7);
	many("know", facts, 7); /* again: what was held is let go */
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
	must(!is("graded", &changed) && is("graded", &loss) && is("stepped", &clock));
	changed = loss;
	changed.odd = true; /* its address is None, say */
	must(!is("graded", &changed) && is("graded", &loss));
	leave();
	must(left.at == GRADED && left.loss == 2 && left.number == 1);
	for (uintptr_t i = 0; i < 3; i++) { /* nobody's memory: 1, 0xfff, -1 */
		changed = loss;
		changed.data = (float *)(i == 0 ? 1 : i == 1 ? 0xfff : UINTPTR_MAX);
		enter(FETCHED, FETCHED, true, 0, NULL, &clock);
		must(is("graded", &changed));
		leave();
		must(isnan(left.loss));
	}
	all_given_back();
}

/* A function mode may answer anything for anything: nothing is asked within one. */
static void modes(struct place *p)
{
	float at_home = 2;
	struct object clock = { .type = &none }, value = { .value = 7 };
	struct object loss = { .type = &plain, .is_cpu = &yes, .dtype = &single, .data = &at_home };
	struct object *scaled[] = { &loss, &value };
	struct object *answers[] = { &yes, &none, NULL };

	begin(p);
	enter(FETCHED, FETCHED, true, 0, NULL, &clock);
	loss.data = (float *)1;
	for (size_t i = 0; i < 3; i++) {
		mode = answers[i];
		must(!is("graded", &loss));
		many("scaled", scaled, 2);
		must(!is("graded", &loss) && loss.refs == 1);
	}
	mode = &no;
	must(is("graded", &loss) && loss.refs == 0);
	leave();
	must(left.at == GRADED && left.loss == 7 && !left.scaled);
	/* What is kept is let go by entering and leaving, too. */
	many("scaled", scaled, 2);
	many("scaled", scaled, 2);
	must(loss.refs == 1);
	enter(FETCHED, FETCHED, true, 0, NULL, &clock);
	must(loss.refs == 0);
	all_given_back();
}

/* Ctrl-C, wherever it comes, is passed on; errors are not. */
static void interrupted(struct place *p)
{
	float at_home = 2;
	struct object clock = { .type = &none }, iterator = clock;
	const struct object loss = {
		.type = &plain, .is_cpu = &yes, .dtype = &single, .data = &at_home
	};
	struct object changed;

	begin(p);
	ctrl_c = true;
	for (int i = 0; i < 6; i++) {
		changed = loss;
		if (i == 0)
			grad = NULL;
		else if (i == 1)
			mode = NULL;
		else if (i == 2)
			changed.is_cpu = NULL;
		else if (i == 3)
			changed.dtype = NULL;
		else if (i == 4)
			changed.data = NULL;
		else
			changed.odd = true;
		enter(i ? FETCHED : STEPPED, STEPPED, true, 0, &iterator, &clock);
		must(!one(i ? "graded" : "asked", i ? &changed : &iterator) && errors == 1);
		errors = 0;
		grad = &yes;
		mode = &no;
		leave();
		must(left.at == (i ? FETCHED : STEPPED));
	}
	all_given_back();
}

/* Another thread leaves the quick way while torch is asked. */
static void left_meanwhile(struct place *p)
{
	float at_home = 2;
	struct object clock = { .type = &none }, iterator = clock;
	struct object loss = { .type = &plain, .is_cpu = &yes, .dtype = &single, .data = &at_home };

	begin(p);
	meanwhile = leave;
	enter(STEPPED, STEPPED, true, 5, &iterator, &clock);
	must(!is("asked", &iterator));
	leave();
	must(left.at == OUT && left.began_ns == 0);
	enter(FETCHED, STEPPED, true, 5, &iterator, &clock);
	must(!is("graded", &loss) && !is("stepped", &clock));
	leave();
	must(left.at == OUT && left.number == 5 && isnan(left.loss));
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
	     left.scaled_loss == 7 && loss.refs == 0);
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

static void nothing_is_asked_within_a_mode(void **state)
{
	(void)state;
	run(modes);
}

static void an_interrupt_is_passed_on(void **state)
{
	(void)state;
	run(interrupted);
}

static void what_was_left_meanwhile_stays_left(void **state)
{
	(void)state;
	run(left_meanwhile);
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
		cmocka_unit_test(nothing_is_asked_within_a_mode),
		cmocka_unit_test(an_interrupt_is_passed_on),
		cmocka_unit_test(what_was_left_meanwhile_stays_left),
		cmocka_unit_test(other_threads_and_amp),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
