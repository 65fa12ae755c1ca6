// SPDX-License-Identifier: MIT
// The list: runs that go on as cards, those that are over as rows, the newest first.

const drawn = new Map(); // id and state: { text, element }: drawn again only when something about it has changed
const shown = { runs: null, words: "" };

function age(started) {
	const s = (Date.now() - Date.parse(started)) / 1000;
	if (!finite(s))
		return "";
	if (s < 60)
		return "just now";
	const [n, unit] = s < 3600 ? [s / 60, "minute"] : s < 86400 ? [s / 3600, "hour"] : [s / 86400, "day"];
	return plural(Math.floor(n), unit) + " ago";
}

function when(run) {
	if (!run.started)
		return null;
	const at = new Date(run.started);
	return h("time", { datetime: run.started, title: Number.isNaN(at.getTime()) ? run.started : at.toLocaleString() }, age(run.started));
}

// Its end, in words; of one that goes on, what it says itself.
function stateWords(run) {
	if (run.state === "interrupted")
		return "its recorder was stopped";
	if (run.state === "detached")
		return "left running";
	return howItEnded({ ...run, complete: true });
}

function title(run) {
	const label = name(run.name || "run");
	return run.id ? h("a", { href: "/run/" + run.id, "data-key": "run-" + run.id }, label) : label;
}

function verdictWords(run) {
	const verdict = run.summary?.verdict;
	if (run.problem)
		return h("div.says.unsure", null, h("p.tag", null, "Cannot be read"), h("p.headline", null, sentence(run.problem)));
	if (!verdict)
		return h("div.says", null, h("p.headline.small", null, "Reading the record …"));
	const { tone, tag, title: words } = headline(verdict), gain = list(verdict.findings)[0]?.gain;
	return h(`div.says.${tone}`, null, h("p.tag", null, tag), h("p.headline", null, words),
		gain && h("p.small", null, "Mended: ", gainWords(gain)));
}

function figures(run) {
	const { steps, usage } = run.summary?.verdict || {}, out = [];
	if (finite(steps?.rate_hz))
		out.push([...stepRate(steps.rate_hz)].join(" "));
	if (finite(usage?.memory?.peak_bytes))
		out.push(bytes(usage.memory.peak_bytes) + " peak");
	return out;
}

function separated(parts) {
	const there = parts.filter(Boolean);
	return there.map((part, i) => h("span", null, part, i < there.length - 1 && " · "));
}

function liveCard(run) {
	return h("li.card.going", null,
		h("header", null, h("h3", null, title(run)), h("p.since", null, h("span.dot", { "aria-hidden": "true" }), "running, ",
			finite(run.duration_s) ? seconds(run.duration_s) : "")),
		verdictWords(run), h("div.sparks", null, sparkRow(run.summary)),
		h("p.small", null, separated([...figures(run), "record " + bytes(run.bytes)])));
}

function pastRow(run) {
	return h("li.past", null,
		h("div.who", null, h("h3", null, title(run)),
			h("p.small", null, separated([when(run), finite(run.duration_s) && seconds(run.duration_s),
				!run.problem && stateWords(run), bytes(run.bytes)])),
			h("p.small", null, separated(figures(run)))),
		verdictWords(run), h("div.sparks", null, sparkRow(run.summary)));
}

// The element of a run, as it was where nothing has changed.
function element(run, i, draw) {
	const key = `${draw.name} ${run.id || "nameless " + i + run.name}`, text = JSON.stringify(run);
	const old = drawn.get(key);
	if (old?.text === text)
		return [key, old.element];
	const made = draw(run);
	const at = old?.element.contains(document.activeElement) && document.activeElement.dataset.key;
	drawn.set(key, { text, element: made });
	if (at) { // where the reader is, he stays
		old.element.replaceWith(made);
		made.querySelector(`[data-key="${CSS.escape(at)}"]`)?.focus();
	}
	return [key, made];
}

// What is in its place already is not touched.
function place(box, elements) {
	elements.forEach((e, i) => {
		if (box.children[i] !== e)
			box.insertBefore(e, box.children[i] || null);
	});
	while (box.children.length > elements.length)
		box.lastElementChild.remove();
}

function matches(run) {
	const verdict = run.summary?.verdict;
	const text = [run.name, run.id, run.state, run.problem, verdict && headline(verdict).title].join(" ").toLowerCase();
	return shown.words.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}

function drawRuns(answer) {
	shown.runs = answer;
	const all = list(answer.runs), seen = all.filter(matches), isLive = (run) => run.state === "going" && !run.problem;
	const going = seen.filter(isLive).map((run, i) => element(run, i, liveCard));
	const past = seen.filter((run) => !isLive(run)).map((run, i) => element(run, i, pastRow));
	const kept = new Set([...going, ...past].map(([key]) => key));
	for (const key of drawn.keys())
		if (!kept.has(key))
			drawn.delete(key);
	place(document.querySelector("#going ul"), going.map(([, e]) => e));
	place(document.querySelector("#past ul"), past.map(([, e]) => e));
	document.getElementById("going").hidden = !going.length;
	document.getElementById("past").hidden = !past.length;
	const live = all.filter(isLive).length, more = answer.count - all.length;
	const none = document.getElementById("none");
	none.hidden = seen.length > 0;
	none.textContent = all.length ? "No run is called that, and no verdict says it."
		: "Nothing has been recorded yet. Begin with: spotter run -- python train.py";
	document.getElementById("about").replaceChildren(plural(answer.count, "run"), live ? `, ${live} going on` : "",
		`, ${bytes(answer.bytes)} in `, h("code", null, answer.folder || ""), more > 0 ? `; the newest ${all.length} are shown` : "");
	document.title = (live ? `${live} running – ` : "") + "spotter";
	say("live", "Live");
}

function makeList() {
	const filter = h("input", { type: "search", id: "filter", placeholder: "Filter by name or verdict", "aria-label": "Filter runs by name or verdict",
		oninput: (event) => {
			shown.words = event.target.value.trim();
			if (shown.runs)
				drawRuns(shown.runs);
		} });
	document.body.prepend(h("a.skip", { href: "#app" }, "To the runs"),
		h("header.bar", null, h("a.brand", { href: "/", "aria-label": "Spotter: all runs" }, "spotter"), sign,
			h("div.actions", null, themeButton())));
	document.getElementById("app").replaceChildren(
		h("section", { id: "runs" }, h("div.runs-head", null, h("h1", null, "Runs"), filter), h("p.small", { id: "about" }, "Reading …"),
			h("p.lead", { id: "none", hidden: true })),
		h("section", { id: "going", "aria-labelledby": "going-title", hidden: true }, h("h2", { id: "going-title" }, "Going on"), h("ul.goings")),
		h("section", { id: "past", "aria-labelledby": "past-title", hidden: true }, h("h2", { id: "past-title" }, "Past"), h("ul.pasts")));
	setTheme(themeNow());
	say("wait", "Connecting");
	feed("/events", { runs: drawRuns, trouble: ({ why }) => say("lost", show(why || "The list cannot be read")) });
	setInterval(() => document.querySelectorAll("#past time").forEach((t) => { t.textContent = age(t.dateTime); }), 20000);
}
