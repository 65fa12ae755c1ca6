/* SPDX-License-Identifier: MIT
 *
 * Two runs side by side as JSON, schema spotter.compare/1: keys are only ever added. What is not known is an
 * absent key; `change` is B less A.
 */
#include "explain/compare.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "explain/fact.h"

#include <math.h>
#include <stdio.h>

static const char *const sides[COMPARE_SIDES] = { "a", "b" };

static void put_run(struct json *j, const char *key, const struct verdict *v)
{
	const struct run_info *r = v->run;
	char iso[40], level[4];

	snprintf(level, sizeof(level), "L%d", v->level & 3);
	json_key_begin(j, key, '{');
	json_key_str(j, "id", r->id[0] ? r->id : NULL);
	json_key_str(j, "name", r->name);
	json_key_begin(j, "argv", '[');
	for (size_t i = 0; r->argv && r->argv[i]; i++)
		json_str(j, r->argv[i]);
	json_end(j, ']');
	json_key_str(j, "host", r->machine.hostname[0] ? r->machine.hostname : NULL);
	if (r->started_wall_ns > 0) {
		clock_iso(r->started_wall_ns, iso, sizeof(iso));
		json_key_str(j, "started", iso);
	}
	json_key_num(j, "window_s", ((double)v->to_ns - (double)v->from_ns) / 1e9);
	json_key_str(j, "level", level);
	json_key_str(j, "step_source", steps_source(&v->steps));
	json_key_bool(j, "healthy", v->healthy);
	json_key_bool(j, "complete", r->state == RUN_ENDED);
	json_end(j, '}');
}

static void put_speed(struct json *j, const struct compare_speed *s)
{
	json_key_begin(j, "speed", '{');
	json_key_str(j, "basis", compare_basis_name(s->basis));
	if (s->basis != COMPARE_BY_NOTHING) {
		json_key_num(j, "a_s", fact_round(s->seconds[COMPARE_A]));
		json_key_num(j, "b_s", fact_round(s->seconds[COMPARE_B]));
	}
	json_key_num(j, "ratio", fact_round(s->ratio));
	json_key_num(j, "low", fact_round(s->low));
	json_key_num(j, "high", fact_round(s->high));
	json_end(j, '}');
}

static void put_rows(struct json *j, const char *key, const char *name, const compare_rows *rows)
{
	json_key_begin(j, key, '[');
	for (size_t i = 0; i < rows->n; i++) {
		const struct compare_row *r = &rows->v[i];

		json_begin(j, '{');
		json_key_str(j, name, r->name);
		json_key_str(j, "unit", r->unit);
		for (int k = 0; k < COMPARE_SIDES; k++)
			json_key_num(j, sides[k], fact_round(r->v[k]));
		json_key_num(j, "change", fact_round(compare_change(r)));
		json_end(j, '}');
	}
	json_end(j, ']');
}

static void put_ledger(struct json *j, const char *key, const char *name, const char *per,
		       const compare_rows *rows)
{
	json_key_begin(j, key, '{');
	json_key_str(j, "per", per);
	put_rows(j, "ledger", name, rows);
	json_end(j, '}');
}

static void put_finding(struct json *j, const char *key, const struct finding *f)
{
	if (!f)
		return;
	json_key_begin(j, key, '{');
	json_key_str(j, "title", f->title);
	json_key_bool(j, "note", f->note);
	json_key_num(j, "cost", fact_round(f->cost));
	if (f->where.file[0]) {
		json_key_str(j, "file", f->where.file);
		if (f->where.line > 0)
			json_key_int(j, "line", f->where.line);
	}
	if (f->has_gain) {
		json_key_num(j, "speedup", fact_round(f->speedup));
		json_key_num(j, "low", fact_round(f->low));
		json_key_num(j, "high", fact_round(f->high));
	}
	json_end(j, '}');
}

static void put_causes(struct json *j, const struct comparison *c)
{
	json_key_begin(j, "causes", '[');
	for (size_t i = 0; i < c->causes.n; i++) {
		const struct compare_cause *x = &c->causes.v[i];

		json_begin(j, '{');
		json_key_str(j, "cause", x->cause);
		json_key_str(j, "change", compare_change_name(x->change));
		json_key_str(j, "why", x->why);
		for (int k = 0; k < COMPARE_SIDES; k++)
			put_finding(j, sides[k], x->x[k]);
		json_end(j, '}');
	}
	json_end(j, ']');
}

void compare_json(const struct comparison *c, struct buf *out)
{
	struct json j;

	json_init(&j, out, true);
	json_begin(&j, '{');
	json_key_str(&j, "schema", "spotter.compare/1");
	put_run(&j, "a", c->side[COMPARE_A].verdict);
	put_run(&j, "b", c->side[COMPARE_B].verdict);
	put_speed(&j, &c->speed);
	put_ledger(&j, "time", "state", c->per_step ? "step" : "window", &c->time);
	put_ledger(&j, "cpu", "role", c->per_step ? "step" : "window", &c->cpu);
	put_causes(&j, c);
	put_rows(&j, "settings", "name", &c->settings);
	put_rows(&j, "usage", "name", &c->usage);
	json_key_begin(&j, "remarks", '[');
	for (size_t i = 0; i < c->remarks.n; i++) {
		json_begin(&j, '{');
		json_key_str(&j, "code", c->remarks.v[i].code);
		json_key_str(&j, "text", c->remarks.v[i].text);
		json_end(&j, '}');
	}
	json_end(&j, ']');
	json_end(&j, '}');
	buf_char(out, '\n');
}
