"use strict";
// A button that copies each text: commands, the best swizzle, the source of an attempt.
for (const text of document.querySelectorAll("pre:not(.wrap)")) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(text.textContent).then(
      () => (button.textContent = "Copied"),
      () => getSelection().selectAllChildren(text), // where a page may not write: Ctrl-C copies what is selected
    );
    setTimeout(() => (button.textContent = "Copy"), 1500);
  });
  text.before(button);
}

// A click on a head sorts the table by that column, numbers as numbers; a second click turns it round.
function sortBy(head) {
  const body = head.closest("table").tBodies[0];
  const down = head.getAttribute("aria-sort") === "ascending";
  const key = (row) => {
    const cell = row.cells[head.cellIndex].textContent.trim();
    const number = parseFloat(cell.replace(/[=, ]/g, ""));
    return Number.isNaN(number) ? cell : number;
  };
  const before = (a, b) => (typeof a === typeof b ? (a < b ? -1 : a > b ? 1 : 0) : typeof a === "number" ? -1 : 1);
  const rows = [...body.rows].sort((a, b) => (down ? -1 : 1) * before(key(a), key(b)));
  for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  body.append(...rows);
}
for (const head of document.querySelectorAll(".wide th")) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "sort";
  button.append(...head.childNodes);
  button.addEventListener("click", () => sortBy(head));
  head.append(button);
}

// The attempts, the best first or as they were made.
for (const button of document.querySelectorAll("#sort-attempts button")) {
  const key = (one) => Number(one.dataset[button.dataset.key]);
  const all = document.getElementById("listed");
  button.addEventListener("click", () => all.append(...[...all.children].sort((a, b) => key(a) - key(b))));
  button.parentNode.hidden = false;
}

// The slider through dispatch time. Without this script the page shows the whole maps.
const schedule = JSON.parse(document.getElementById("schedule").textContent);
const slider = document.getElementById("turn");
const said = document.getElementById("turn-text");
const play = document.getElementById("play");
const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
const shown = (name) => document.querySelector(`#${name}-picture .drawn`);
// A canvas over each of the two maps.
const maps = schedule.maps.map((map, i) => {
  const canvas = document.createElement("canvas");
  canvas.width = schedule.columns;
  canvas.height = schedule.rows;
  return { canvas, i, name: schedule.names[i], begin: bytes(map.begin), end: bytes(map.end) };
});

function place(map) {
  const drawn = shown("map");
  if (map.canvas.parentNode !== drawn) drawn.append(map.canvas);
  const whole = drawn.getBoundingClientRect();
  const plot = drawn.querySelector(`[id$="-plot-${map.i}"]`).getBoundingClientRect();
  const at = { left: plot.left - whole.left, top: plot.top - whole.top, width: plot.width, height: plot.height };
  for (const [key, value] of Object.entries(at)) map.canvas.style[key] = `${value}px`;
}

// The turn of the slider in the chart of the hit rate over time; that chart has turns on its axis in lockstep alone.
const cursor = document.createElement("i");
cursor.className = "now";
function point(share, hidden) {
  const drawn = shown("over_time");
  if (!document.getElementById("slider").dataset.turns) return;
  if (cursor.parentNode !== drawn) drawn.append(cursor);
  const whole = drawn.getBoundingClientRect();
  const plot = drawn.querySelector('[id$="-plot-0"]').getBoundingClientRect();
  cursor.style.left = `${plot.left - whole.left + share * plot.width}px`;
  cursor.style.top = `${plot.top - whole.top}px`;
  cursor.style.height = `${plot.height}px`;
  cursor.hidden = hidden;
}

// Veil what does not run: what waits almost wholly, what is done in part.
function veil(map, step, paper) {
  const context = map.canvas.getContext("2d");
  const image = context.createImageData(schedule.columns, schedule.rows);
  const count = { running: 0, done: 0, waiting: 0 };
  for (let i = 0; i < map.begin.length; i++) {
    if (map.begin[i] === schedule.never) continue;
    const state = step < map.begin[i] ? "waiting" : step < map.end[i] ? "running" : "done";
    count[state]++;
    image.data.set(paper, 4 * i);
    image.data[4 * i + 3] = { running: 0, done: 165, waiting: 240 }[state];
  }
  context.putImageData(image, 0, 0);
  return `${map.name}: ${count.running} running, ${count.done} done, ${count.waiting} waiting`;
}

function show() {
  const step = Number(slider.value);
  const whole = step === schedule.steps;
  const paper = getComputedStyle(document.body).backgroundColor.match(/\d+/g).slice(0, 3).map(Number);
  const turn = Math.floor((step * schedule.turns) / schedule.steps);
  const counts = maps.map((map) => veil(map, step, paper));
  for (const map of maps) {
    place(map);
    map.canvas.hidden = whole;
  }
  const words = whole
    ? "The whole map. Move the slider to see which tiles run at the same time."
    : `Turn ${turn.toLocaleString("en")} of ${schedule.turns.toLocaleString("en")}. ${counts.join("; ")}.`;
  said.textContent = words;
  slider.setAttribute("aria-valuetext", words);
  point(step / schedule.steps, whole);
}

let timer = 0;
function stop() {
  clearInterval(timer);
  timer = 0;
  play.textContent = "Play";
}
play.addEventListener("click", () => {
  if (timer) return stop();
  if (Number(slider.value) === schedule.steps) slider.value = 0;
  play.textContent = "Stop";
  timer = setInterval(() => {
    slider.value = Number(slider.value) + 1;
    show();
    if (Number(slider.value) === schedule.steps) stop();
  }, 60);
});
slider.addEventListener("input", () => {
  if (timer) stop();
  show();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
addEventListener("resize", show);
document.getElementById("slider").hidden = false;
slider.value = schedule.steps;
show();
