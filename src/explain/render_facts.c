/* SPDX-License-Identifier: MIT
 *
 * Every fact the rules were told: for whoever wants to check a verdict, or to write a rule.
 */
#include "explain/verdict.h"

#include "base/buf.h"
#include "base/json.h"
#include "explain/fact.h"

#include <stdio.h>

enum { NAME_WIDTH = 24, VALUE_WIDTH = 28 };

/* "0.671 (0.58 to 0.76) ratio" */
static void put_value(const struct fact *x, const char *unit, struct buf *out)
{
	char value[64], range[64] = "";

	if (x->low < x->high)
		snprintf(range, sizeof(range), " (%.3g to %.3g)", x->low, x->high);
	snprintf(value, sizeof(value), "%.4g%s", x->value, range);
	buf_printf(out, "%-*s %s%s%s", VALUE_WIDTH, value, unit, x->text[0] ? "  " : "", x->text);
}

void render_facts(const struct verdict *v, struct buf *out)
{
	for (int i = 0; v->facts && i < FACTS; i++) {
		const struct fact *x = &v->facts->v[i];

		buf_printf(out, "%-*s ", NAME_WIDTH, fact_infos[i].name);
		if (x->known)
			put_value(x, fact_infos[i].unit, out);
		else
			buf_printf(out, "%-*s %s", VALUE_WIDTH, "-", x->why);
		buf_str(out, "\n");
	}
}

void render_facts_json(const struct verdict *v, struct buf *out)
{
	struct json j;

	json_init(&j, out, true);
	json_begin(&j, '{');
	json_key_str(&j, "schema", "spotter.facts/1");
	json_key_begin(&j, "facts", '{');
	for (int i = 0; v->facts && i < FACTS; i++) {
		const struct fact *x = &v->facts->v[i];

		json_key_begin(&j, fact_infos[i].name, '{');
		if (x->known) {
			json_key_num(&j, "value", x->value);
			json_key_num(&j, "low", x->low);
			json_key_num(&j, "high", x->high);
			json_key_str(&j, "unit", fact_infos[i].unit);
		}
		json_key_str(&j, "text", x->known && x->text[0] ? x->text : NULL);
		json_key_str(&j, "why", x->known ? NULL : x->why);
		json_end(&j, '}');
	}
	json_end(&j, '}');
	json_end(&j, '}');
	buf_str(out, "\n");
}
