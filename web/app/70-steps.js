// SPDX-License-Identifier: MIT
// The slowest steps and what was different in them; the ranks of a distributed run.

function besideUsual(x, most) {
	if (!finite(x.usual_s))
		return "–";
	const usual = Math.min(x.usual_s, x.seconds), width = (s) => ({ vars: { width: s / most * 100 + "%" } });
	return [h("span.over", { "aria-hidden": "true" }, h("span.usual", width(usual)), h("span.beyond", width(x.seconds - usual))),
		h("span.small", null, `${three(x.seconds / x.usual_s)}× the usual ${seconds(x.usual_s)}`)];
}

function slowStep(x, most, i) {
	const around = Math.max(x.seconds * 3, 1), canShow = typeof uPlot !== "undefined" && timeline.whole && finite(x.t);
	const at = canShow ? button(clock(x.t), () => showTime(x.t - around, x.t + x.seconds + around),
		{ class: "plain", "aria-label": `${clock(x.t)}: show step ${x.step} in the timeline`, "data-key": "slow" + i }) : clock(x.t);
	const differed = list(x.differed).map((text) => h("li", null, sentence(text)));
	return h("tr", null,
		h("th.number", { scope: "row" }, count(x.step), finite(x.rank) && h("span.id", null, "rank " + x.rank)),
		h("td.number", null, at), h("td.number", null, seconds(x.seconds)), h("td", null, besideUsual(x, most)),
		h("td", null, differed.length ? h("ul.differed", null, differed) : h("span.absent", null, "nothing that was measured")));
}

// Heading, and how a figure of it is said.
const RANK_COLUMNS = [
	["#Steps", "steps", count],
	["#Rate", "rate_hz", (hz) => stepRate(hz).join(NBSP)],
	["#Median step", "median_s", seconds],
	["#Own work", "own_work_s", seconds],
	["#Waiting for others", "comm_wait_s", seconds],
	["#Waiting for data", "data_wait_share", percent],
];

function ranksTable(ranks) {
	return table("Ranks", ["#Rank", "Host", ...RANK_COLUMNS.map(([head]) => head)], ranks.slice(0, 1024).map((r) => h("tr", null,
		h("th.number", { scope: "row" }, r.rank), h("td", null, r.host && name(r.host)),
		RANK_COLUMNS.map(([, key, say]) => h("td.number", null, finite(r[key]) ? say(r[key]) : "–")))));
}

component("steps", "Slowest steps", (body, story) => {
	const slow = list(story.slow_steps).filter((x) => finite(x.seconds)), { steps, ranks } = story.verdict;
	const most = Math.max(...slow.map((x) => x.seconds), 0);
	if (slow.length)
		add(body, table("Slowest steps", ["#Step", "#At", "#Took", "Beside the usual", "What differed"],
			slow.map((x, i) => slowStep(x, most, i))));
	else
		add(body, absent(!steps ? "Absent: no steps were marked, so none can be compared."
			: steps.source === "inferred" ? "Absent: steps are inferred from what repeats; single ones are not known."
				: "No step stood out."));
	if (list(ranks).length)
		add(body, h("h3", null, "Ranks"), ranksTable(ranks));
}, (story) => [story.slow_steps, story.verdict.steps, story.verdict.ranks]);
