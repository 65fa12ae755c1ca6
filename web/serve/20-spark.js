// SPDX-License-Identifier: MIT
// Small pictures of a run: one line and the area below it, with what it is and how much in words beside it.

const SVG = "http://www.w3.org/2000/svg";
const SPARK_WIDTH = 96, SPARK_HEIGHT = 26;
const SPARKS = { GPU: "gpu", CPU: "cpu", step: "steps" }; // name: its colour (--l-...)

function svg(tag, attributes, ...children) {
	const element = document.createElementNS(SVG, tag);
	for (const [key, value] of Object.entries(attributes))
		element.setAttribute(key, value);
	element.append(...children);
	return element;
}

// Pieces of a line: what is not known is a gap. Between two steps (joined) nothing is missing.
function pieces(values, top, joined) {
	const x = (i) => (i / Math.max(1, values.length - 1) * SPARK_WIDTH).toFixed(1);
	const y = (v) => (SPARK_HEIGHT - 1.5 - Math.min(1, Math.max(0, v / top)) * (SPARK_HEIGHT - 3)).toFixed(1);
	const out = [];
	let piece = null;
	values.forEach((v, i) => {
		if (!finite(v))
			piece = joined ? piece : null;
		else if (piece)
			piece.push([x(i), y(v)]);
		else
			out.push(piece = [[x(i), y(v)]]);
	});
	return out.filter((p) => p.length > 1);
}

function sparkWords(spark, values) {
	const last = values[values.length - 1], mean = values.reduce((a, b) => a + b, 0) / values.length;
	switch (spark.name) {
	case "GPU": return ["GPU", `${Math.round(mean)}${NBSP}%`, "busy on average"];
	case "CPU": return ["CPU", cores(mean) + (finite(spark.of) ? ` of ${cores(spark.of)}` : ""), "cores on average"];
	default: return ["Step", seconds(last), "the last"];
	}
}

// Null: there is nothing to draw.
function sparkPicture(spark) {
	const values = list(spark.v).filter(finite), kind = Object.hasOwn(SPARKS, spark.name) ? SPARKS[spark.name] : null;
	if (!kind || values.length < 2)
		return null;
	const most = Math.max(...values), top = spark.name === "step" ? most * 1.1 : Math.max(most, finite(spark.of) ? spark.of : 0);
	const lines = pieces(spark.v, top || 1, spark.name === "step"), path = (p) => "M" + p.map((at) => at.join(" ")).join("L");
	const [title, figure, what] = sparkWords(spark, values);
	const picture = svg("svg", { viewBox: `0 0 ${SPARK_WIDTH} ${SPARK_HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true",
		class: "spark-line " + kind });
	for (const p of lines)
		picture.append(svg("path", { class: "area", d: `${path(p)}L${p[p.length - 1][0]} ${SPARK_HEIGHT}L${p[0][0]} ${SPARK_HEIGHT}Z` }),
			svg("path", { class: "line", d: path(p) }));
	return h("div.spark", { title: `${title}: ${figure} ${what}` }, picture, h("span.spark-words", null, h("span", null, title), " ",
		h("b", null, figure)));
}

function sparkRow(summary) {
	return list(summary?.sparks).map(sparkPicture).filter(Boolean);
}
