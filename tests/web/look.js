// SPDX-License-Identifier: MIT
// Playwright, as a person with a report: opens it, looks, hovers, zooms, searches, switches, copies, prints.
//
//   look.js FOLDER     reads *.html there, prints JSON for test_report.py, leaves *.png and report.pdf
//
// playwright-core and axe-core are found through NODE_PATH; CHROMIUM names the browser. WHOLE=1: pictures of the whole
// page, not only of what is seen first.
"use strict";
const fs = require("fs");
const path = require("path");
const { chromium } = require("playwright-core");

const FOLDER = path.resolve(process.argv[2] || ".");
const WHOLE = Boolean(process.env.WHOLE);
const PATIENCE = 60000; // ms for one action, on a machine that has other things to do
const RULES = { runOnly: { type: "tag", values: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] } };

// The script's "var uPlot = ..." is then without effect.
const NO_CHARTS = "Object.defineProperty(window, 'uPlot', { get() {}, set() {} })";

// Of each chart: how many pixels have ink, how many colours, and a number that differs where the drawing does.
function drawn() {
	return [...document.querySelectorAll("#timeline canvas")].map((canvas) => {
		const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
		const colors = new Set();
		let inked = 0, sum = 0;
		for (let i = 0; i < data.length; i += 4) {
			if (!data[i + 3])
				continue;
			const color = data[i] << 16 | data[i + 1] << 8 | data[i + 2];
			inked++;
			colors.add(color);
			sum = (sum * 31 + color + i) >>> 0;
		}
		return { width: canvas.width, inked, colors: colors.size, sum };
	});
}

async function open(browser, file, options = {}) {
	const { init, ...context } = options;
	const viewport = { width: 1280, height: 900 };
	const page = await (await browser.newContext({ viewport, reducedMotion: "reduce", ...context })).newPage();
	page.setDefaultTimeout(PATIENCE);
	const url = "file://" + path.join(FOLDER, file);
	page.problems = [];
	page.on("pageerror", (error) => page.problems.push(String(error)));
	page.on("console", (said) => ["error", "warning"].includes(said.type()) &&
		!/willReadFrequently/.test(said.text()) && // said of drawn(), which is ours
		page.problems.push(said.text()));
	page.on("request", (request) => !request.url().startsWith(url) && page.problems.push("request: " + request.url()));
	if (init)
		await page.addInitScript(init);
	await page.goto(url);
	await page.locator("h1").waitFor();
	return page;
}

async function settled(page) {
	await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
}

async function axe(page) {
	let source;
	try {
		source = fs.readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
	} catch {
		return null;
	}
	await page.evaluate(source);
	const { violations, passes } = await page.evaluate((rules) => window.axe.run(document, rules), RULES);
	return { passes: passes.length, found: violations.map((v) => ({ id: v.id, impact: v.impact,
		nodes: v.nodes.slice(0, 3).map((n) => n.html.slice(0, 200) + " " + (n.any[0]?.message || "")) })) };
}

async function first(browser, out) {
	const page = await open(browser, "story.html", { colorScheme: "light" });
	await settled(page);
	out.title = await page.title();
	out.heading = await page.locator("h1").innerText();
	out.text = await page.locator("main").innerText();
	out.charts = await page.evaluate(drawn);
	out.canDraw = await page.evaluate(() => typeof uPlot !== "undefined"); // this Spotter was built with it
	out.inert = await page.evaluate(() => ({ hurt: window.hurt, images: document.images.length,
		links: [...document.links].map((a) => a.getAttribute("href")).filter((to) => !to.startsWith("#")),
		handlers: [...document.querySelectorAll("*")].filter((e) => [...e.attributes].some((a) => /^on/i.test(a.name))).length }));
	out.width = await page.evaluate(() => document.documentElement.scrollWidth);
	await page.screenshot({ path: "light.png", fullPage: WHOLE });
	out.axe = await axe(page);
	await copying(page, out);
	if (out.canDraw)
		await zooming(page, out);
	await flame(page, out);
	await updating(page, out);
	out.problems = page.problems;
	await page.context().close();
}

async function copying(page, out) {
	await page.evaluate(() => { // what the page asked to be copied: another program may have the clipboard
		document.addEventListener("copy", () => {
			window.copied ||= document.getSelection().toString() || document.activeElement.value;
		});
		const write = navigator.clipboard?.writeText?.bind(navigator.clipboard);
		if (write)
			navigator.clipboard.writeText = async (text) => { window.copied = text; };
	});
	await page.locator("#copy-markdown").click();
	await page.locator("#toast").waitFor({ state: "attached" }); // its words stay when it has faded
	out.copied = await page.evaluate(() => window.copied);
	out.said = await page.locator("#toast").innerText();
}

async function zooming(page, out) {
	const range = () => page.locator("#timeline .range").innerText();
	const value = () => page.locator("#timeline .track-head .figure").first().innerText();
	await page.locator("#timeline").evaluate((section) => section.scrollIntoView());
	const at = await page.locator("#timeline .u-over").first().boundingBox();
	const y = at.y + at.height / 2, x = (part) => at.x + at.width * part;
	const zoom = out.zoom = { all: await range(), summary: await value(), before: await page.evaluate(drawn) };
	await page.mouse.move(x(0.5), y);
	await settled(page);
	zoom.value = await value();
	zoom.time = await page.locator("#timeline .when").innerText();
	await page.screenshot({ path: "cursor.png" });
	zoom.follow = await page.locator("#timeline .u-cursor-x").evaluateAll((all) => new Set(all.map((e) => e.style.transform)).size);
	await page.mouse.move(x(0.25), y);
	await page.mouse.down();
	await page.mouse.move(x(0.4), y, { steps: 3 });
	await page.mouse.move(x(0.5), y, { steps: 3 });
	await page.mouse.up();
	await settled(page);
	zoom.dragged = await range();
	zoom.after = await page.evaluate(drawn);
	await page.mouse.dblclick(x(0.5), y);
	await settled(page);
	zoom.again = await range();
	await page.locator("#timeline .charts").focus();
	await page.keyboard.press("+");
	zoom.key = await range();
	await page.keyboard.press("ArrowRight");
	zoom.live = await page.locator("#timeline [aria-live]").innerText();
	await page.keyboard.press("0");
	zoom.reset = await range();
	await page.getByRole("button", { name: /show step 333/ }).click();
	zoom.step = await range();
	await page.getByRole("button", { name: /Show 1 more track/ }).click();
	await settled(page);
	zoom.tracks = await page.locator("#timeline .track").count();
	zoom.kept = await range();
}

async function flame(page, out) {
	const frame = (words) => page.locator("#functions .frame", { hasText: words }).first();
	const share = async (words) => {
		const [a, b] = [await frame(words).boundingBox(), await page.locator("#functions .flame").boundingBox()];
		return a.width / b.width;
	};
	const f = out.flame = { frames: await page.locator("#functions .frame").count(), before: await share("train_step") };
	await frame("train_step").click();
	f.after = await share("train_step");
	f.gone = await frame("PhotoFolder.load").count();
	await page.keyboard.press("ArrowDown");
	f.below = await page.evaluate(() => document.activeElement.getAttribute("aria-label"));
	await page.keyboard.press("Escape");
	f.out = await share("train_step");
	await page.locator("#functions input").fill("libjpeg");
	f.found = await page.locator("#functions output").innerText();
	f.matches = await page.locator("#functions .frame.match").count();
	await page.screenshot({ path: "flame.png" });
	await page.locator("#functions input").fill("");
	await page.getByRole("button", { name: "Without waiting" }).click();
	f.busy = await page.locator("#functions .frame").first().innerText();
	await page.getByRole("button", { name: "Without waiting" }).click();
	await frame("main").hover();
	f.info = await page.locator("#functions .info").innerText();
	await page.locator("#processes").getByRole("button", { name: "Lived" }).click();
	f.sorted = await page.locator("#processes th[aria-sort]").getAttribute("aria-sort");
	f.firstProcess = await page.locator("#processes tbody tr").first().innerText();
}

// As a server does: the same page, a newer story. What was open and zoomed stays.
async function updating(page, out) {
	await page.locator("#findings summary").first().click();
	await page.locator("#timeline summary").click();
	const u = out.update = { before: await page.evaluate(drawn) };
	await page.evaluate(() => {
		const story = JSON.parse(document.getElementById("story").textContent);
		story.verdict.findings[0].title = "something else holds it up";
		story.verdict.steps.rate_hz = 12.3;
		for (const track of story.timeline.tracks)
			for (const series of track.series)
				series.mean = series.mean.map((v) => v && v / 2);
		story.timeline.events.push({ t: 40, kind: "oom", text: "a new event" });
		window.spotter.update(story);
	});
	await settled(page);
	u.after = await page.evaluate(drawn);
	u.heading = await page.locator("h1").innerText();
	u.open = await page.locator("#findings details[open]").count();
	u.events = await page.locator("#timeline details[open] tbody tr").count();
	u.range = out.canDraw ? await page.locator("#timeline .range").innerText() : null;
	u.speed = await page.locator(".tile").first().innerText();
	u.headers = await page.locator("header.bar").count();
}

async function dark(browser, out) {
	const page = await open(browser, "story.html", { colorScheme: "light" });
	const look = () => page.evaluate(() => ({ theme: document.documentElement.dataset.theme,
		paper: getComputedStyle(document.body).backgroundColor, text: getComputedStyle(document.body).color }));
	await settled(page);
	const d = out.dark = { light: await look(), lightCharts: await page.evaluate(drawn) };
	await page.locator("#theme").click();
	await settled(page);
	Object.assign(d, { dark: await look(), darkCharts: await page.evaluate(drawn) });
	d.label = await page.locator("#theme").getAttribute("aria-label");
	await page.screenshot({ path: "dark.png", fullPage: WHOLE });
	d.axe = await axe(page);
	await page.emulateMedia({ media: "print" });
	await settled(page);
	d.print = await page.evaluate(() => ({ bar: getComputedStyle(document.querySelector(".bar")).display,
		paper: getComputedStyle(document.body).backgroundColor, text: getComputedStyle(document.body).color,
		folded: document.querySelectorAll("details:not([open])").length }));
	await page.pdf({ path: "report.pdf", format: "A4", printBackground: true });
	await page.emulateMedia({ media: "screen" });
	await settled(page);
	d.foldedAgain = await page.locator("details:not([open])").count();
	d.problems = page.problems;
	await page.context().close();
	const other = await open(browser, "story.html", { colorScheme: "dark" });
	d.asked = await other.evaluate(() => document.documentElement.dataset.theme);
	await other.context().close();
}

async function narrow(browser, out) {
	const page = await open(browser, "story.html", { viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true });
	await settled(page);
	out.narrow = { width: await page.evaluate(() => document.documentElement.scrollWidth), charts: await page.evaluate(drawn),
		wide: await page.evaluate(() => [...document.querySelectorAll("main *")].filter((e) =>
			e.getBoundingClientRect().right > 361 && !e.closest(".scroll, .flame-scroll, pre, .chart, .lane, .command, .hidden"))
			.slice(0, 5).map((e) => e.outerHTML.slice(0, 120))) };
	await page.screenshot({ path: "narrow.png", fullPage: WHOLE });
	out.narrow.axe = await axe(page);
	out.narrow.problems = page.problems;
	await page.context().close();
}

async function others(browser, out) {
	for (const name of ["bare", "real", "plain"]) {
		if (!fs.existsSync(path.join(FOLDER, name + ".html")))
			continue;
		const start = Date.now();
		const page = await open(browser, name + ".html", name === "plain" ? { init: NO_CHARTS } : {});
		await settled(page);
		out[name] = { ms: Date.now() - start, text: await page.locator("main").innerText(),
			charts: await page.evaluate(drawn), problems: page.problems,
			picture: await page.locator("#timeline #timeline-svg svg").isVisible(), axe: name === "bare" ? await axe(page) : null };
		await page.screenshot({ path: name + ".png", fullPage: WHOLE });
		if (name === "real") { // docs/report.png and report-dark.png
			await page.locator("#theme").click();
			await page.locator("#timeline").evaluate((section) => section.scrollIntoView());
			await settled(page);
			await page.screenshot({ path: "real-dark.png" });
		}
		await page.context().close();
	}
}

async function main() {
	process.chdir(FOLDER);
	const browser = await chromium.launch({
		executablePath: process.env.CHROMIUM,
		timeout: PATIENCE,
		args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
	});
	const out = {};
	try {
		for (const part of [first, dark, narrow, others])
			await part(browser, out);
		console.log(JSON.stringify(out));
	} finally {
		await browser.close();
	}
}

module.exports = { axe, drawn, settled };

if (require.main === module)
	main().catch((error) => {
		console.error(error);
		process.exitCode = 1;
	});
