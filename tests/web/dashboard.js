// SPDX-License-Identifier: MIT
// Playwright, as a person with the dashboard: opens the address that was printed, looks at the list, at a run that is
// over, at one that goes on until it ends, and at a server that goes away.
//
//   dashboard.js FOLDER    reads plan.json there ({ url, past, going, hostile }), prints JSON for test_dashboard.py, leaves *.png
//
// It talks to the test by lines: prints "ended?" when the run may end and "gone?" when the server may, and goes on when
// a line comes back. playwright-core and axe-core are found through NODE_PATH; CHROMIUM names the browser.
"use strict";
const fs = require("fs");
const path = require("path");
const readline = require("readline");
const { chromium } = require("playwright-core");
const { axe, drawn, settled } = require("./look.js");

const FOLDER = path.resolve(process.argv[2]);
const PATIENCE = 120000; // ms for one action, on a machine that has other things to do
const plan = JSON.parse(fs.readFileSync(path.join(FOLDER, "plan.json"), "utf8"));
const origin = new URL(plan.url).origin;
const lines = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();

async function ask(question) {
	process.stdout.write(question + "\n");
	await lines.next();
}

// A context of its own has no cookie. Nothing may be asked for elsewhere; what fails is noted.
async function newPage(browser, options = {}) {
	const viewport = { width: 1280, height: 900 };
	const page = await (await browser.newContext({ viewport, reducedMotion: "reduce", ...options })).newPage();
	page.setDefaultTimeout(PATIENCE);
	page.problems = [];
	page.on("pageerror", (error) => page.problems.push(String(error)));
	page.on("console", (said) => ["error", "warning"].includes(said.type()) &&
		!/willReadFrequently/.test(said.text()) && page.problems.push(said.text()));
	page.on("request", (request) => !request.url().startsWith(origin + "/") && !request.url().startsWith("data:") &&
		page.problems.push("request: " + request.url()));
	return page;
}

// The headline of every run that has one.
async function listReady(page) {
	await page.waitForFunction((n) => document.querySelectorAll("#app .says .tag").length >= n, plan.runs);
	await settled(page);
}

async function list(browser, out) {
	const page = await newPage(browser, { colorScheme: "light" });
	await page.goto(plan.url);
	await listReady(page);
	const l = out.list = { address: page.url(), title: await page.title(), text: await page.locator("main").innerText() };
	l.going = await page.locator("#going li").count();
	l.past = await page.locator("#past li").count();
	l.sparks = await page.locator("#going .spark-line .line").evaluateAll((all) => all.map((e) => e.getTotalLength()));
	l.sign = await page.locator("#sign").innerText();
	l.cookie = (await page.context().cookies()).map(({ name, httpOnly, sameSite }) => ({ name, httpOnly, sameSite }));
	l.script = await page.evaluate(() => document.cookie);
	l.inert = await page.evaluate(() => ({ hurt: window.hurt, images: document.images.length,
		links: [...document.links].map((a) => a.getAttribute("href")).filter((to) => !/^[/#]/.test(to)),
		handlers: [...document.querySelectorAll("*")].filter((e) => [...e.attributes].some((a) => /^on/i.test(a.name))).length }));
	l.width = await page.evaluate(() => document.documentElement.scrollWidth);
	await page.screenshot({ path: "list.png" });
	l.axe = await axe(page);
	await page.locator("#filter").fill("no run is called so");
	l.none = await page.locator("#none").innerText();
	await page.locator("#filter").fill("GOING");
	l.filtered = await page.locator("main li").count();
	await page.locator("#filter").fill("");
	const since = () => page.locator("#going .since").first().innerText();
	const before = l.before = await since();
	await page.waitForFunction((old) => document.querySelector("#going .since")?.innerText !== old, before);
	l.after = await since();
	await page.locator("#theme").click();
	await settled(page);
	l.dark = { paper: await page.evaluate(() => getComputedStyle(document.body).backgroundColor), axe: await axe(page) };
	await page.screenshot({ path: "list-dark.png" });
	await page.setViewportSize({ width: 360, height: 740 });
	await settled(page);
	l.narrow = { width: await page.evaluate(() => document.documentElement.scrollWidth), axe: await axe(page) };
	await page.screenshot({ path: "list-narrow.png" });
	l.problems = page.problems;
	return page;
}

async function past(page, out) {
	await page.setViewportSize({ width: 1280, height: 900 });
	await page.locator(`#past a[href="/run/${plan.past}"]`).click();
	await page.locator("#verdict h1").waitFor();
	await page.waitForFunction(() => document.getElementById("sign")?.dataset.kind === "ended");
	await settled(page);
	const p = out.past = { address: page.url(), heading: await page.locator("h1").innerText(),
		text: await page.locator("main").innerText(), charts: await page.evaluate(drawn),
		sign: await page.locator("#sign").innerText(), foot: await page.locator("footer").innerText(),
		canDraw: await page.evaluate(() => typeof uPlot !== "undefined"), headers: await page.locator("header.bar").count() };
	await page.screenshot({ path: "past.png" });
	p.axe = await axe(page);
	await page.locator(".brand").click();
	await page.locator("#runs h1").waitFor();
	p.back = page.url();
	p.problems = page.problems;
}

async function going(browser, out) {
	const page = await newPage(browser, { colorScheme: "light" });
	await page.goto(plan.url.replace("/?", `/run/${plan.going}?`));
	await page.locator("#verdict h1").waitFor();
	await page.waitForFunction(() => document.getElementById("sign")?.dataset.kind === "live");
	const seen = () => page.evaluate(() => ({ line: document.querySelector(".run")?.innerText,
		range: document.querySelector("#timeline .range")?.innerText }));
	const g = out.going = { address: page.url(), before: await seen(), charts: await page.evaluate(drawn) };
	await page.waitForFunction((old) => document.querySelector(".run")?.innerText !== old, g.before.line);
	await settled(page);
	g.after = await seen();
	g.chartsAfter = await page.evaluate(drawn);
	g.text = await page.locator("main").innerText();
	g.sign = await page.locator("#sign").innerText();
	await page.screenshot({ path: "going.png" });
	await ask("ended?");
	await page.waitForFunction(() => document.getElementById("sign")?.dataset.kind === "ended");
	await settled(page);
	g.end = (await seen()).line;
	g.endSign = await page.locator("#sign").innerText();
	g.problems = page.problems;
	await page.context().close();
}

async function strangers(browser, out) {
	const page = await newPage(browser);
	const answer = await page.goto(origin + "/");
	out.stranger = { status: answer.status(), text: await page.locator("body").innerText(),
		problems: page.problems.filter((p) => !/403/.test(p)) };
	await page.context().close();
}

// The list is open when its server ends.
async function gone(page, out) {
	await page.waitForFunction(() => document.getElementById("sign")?.dataset.kind === "live");
	page.problems.length = 0;
	await ask("gone?");
	await page.waitForFunction(() => document.getElementById("sign")?.dataset.kind === "lost");
	out.gone = { sign: await page.locator("#sign").innerText(), runs: await page.locator("main li").count() };
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
		const page = await list(browser, out);
		await past(page, out);
		await strangers(browser, out);
		await going(browser, out);
		await gone(page, out);
		fs.writeFileSync("seen.json", JSON.stringify(out));
	} finally {
		await browser.close();
		process.stdin.destroy();
	}
}

main().catch((error) => {
	console.error(error);
	process.exit(1);
});
