// SPDX-License-Identifier: MIT
// Every finding with its evidence, its place, its fix and the page about its cause; then notes, and what could not be told.

function evidence(items) {
	return items.length > 0 && h("div.fix", null, h("span.key", null, "Why"),
		h("ul.evidence", null, items.map((e) => h("li", { title: e.metric }, sentence(e.text)))));
}

function whereLine(where) {
	if (!where || !(where.file || where.function))
		return null;
	return h("p.where", null, h("span.key", null, "At"), h("span", null, place(where), where.file && where.function && " in ",
		where.function && h("code", null, where.function), where.guess && " (a guess)", callers(where), where.file && h("span.path", null, where.file)));
}

// Innermost first: ", called at hooks.py:57 from train.py:88".
function callers(where) {
	return list(where.callers).map((x, i) => [i > 0 ? " from " : ", called at ", place(x)]);
}

function fixLines(finding, key) {
	const fix = finding.fix || {};
	return (fix.summary || fix.edit) && h("div.fix", null, h("span.key", null, "Fix"),
		h("div", null, fix.summary && h("p", null, sentence(fix.summary)), fix.edit && snippet(fix.edit, "edit-" + key)));
}

function gainLine(gain) {
	const [figure, ...rest] = gainWords(gain).split("; ");
	return figure && h("p.where", null, h("span.key", null, "Gain"), h("span", null, h("strong", null, sentence(figure)),
		rest.length > 0 && "; " + rest.join("; ")));
}

// How much it costs, and how sure that is; both 0..1.
function weights(finding) {
	const row = (key, text) => h("div", null, h("dt", null, key), h("dd", null, text));
	return h("dl.weights", null, finding.cost > 0 && row("costs", percent(finding.cost) + " of the time"),
		finite(finding.confidence) && row("sure", percent(finding.confidence)));
}

function docs(finding, story) {
	const pages = story.docs || {}, page = known(pages, finding.cause);
	if (!page)
		return null;
	const details = fold("doc-" + finding.cause, ["About ", h("code", null, finding.cause),
		": how Spotter tells, how it could be wrong, how to fix it"], markdown(page, new Set(Object.keys(pages))));
	details.id = "doc-" + slug(finding.cause);
	return details;
}

function finding(story, x, i) {
	const key = slug(x.cause) + "-" + i;
	return h("article.card.finding", { id: "finding-" + slug(x.cause) },
		h("header", null, h("div", null, h("h3", null, sentence(x.title)),
			h("p.small", null, h("code", null, x.cause), x.family && " · " + x.family)), weights(x)),
		whereLine(x.where), evidence(list(x.evidence)), fixLines(x, key), gainLine(x.gain), docs(x, story));
}

function note(story, x, i) {
	return h("li", null, fold("note-" + x.cause + i, [sentence(x.title), " ", h("code", null, x.cause)],
		whereLine(x.where), evidence(list(x.evidence)), fixLines(x, "note" + i), gainLine(x.gain), docs(x, story)));
}

// Causes that could not be told for the same reason share a line.
function blindness(rows) {
	const by = new Map();
	for (const row of rows)
		by.set(row.why, [...(by.get(row.why) || []), row.cause]);
	return [...by].map(([why, causes]) => h("li", null, sentence(why), ": ",
		causes.map((cause, i) => [i > 0 && ", ", h("code", null, cause)])));
}

component("findings", "Findings", (body, story) => {
	const { findings, notes, cannot_tell: blind, together } = story.verdict;
	const { tone, title } = headline(story.verdict);
	add(body, list(findings).length ? list(findings).map((x, i) => finding(story, x, i))
		: h("p", null, tone === "good" ? `None: nothing was found that would gain 5${NBSP}% or more.` : title + "."));
	if (together && finite(together.speedup) && list(findings).length > 1)
		add(body, h("p.together", null, "All of them mended: ", h("strong", null, gainText(together)),
			". Their gains do not add up."));
	if (list(notes).length)
		add(body, h("h3", null, "Notes"), h("ul.notes", null, list(notes).map((x, i) => note(story, x, i))));
	if (list(blind).length)
		add(body, h("h3", null, "What could not be told"), h("ul.blind", null, blindness(list(blind))));
}, (story) => [story.verdict, story.docs]);
