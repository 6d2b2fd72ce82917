"use strict";
// The slider through dispatch time. Without this script the page shows the whole maps.
const schedule = JSON.parse(document.getElementById("schedule").textContent);
const slider = document.getElementById("turn");
const said = document.getElementById("turn-text");
const play = document.getElementById("play");
const now = document.getElementById("now");
const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
const maps = [...document.querySelectorAll("#maps .tiles")].map((box, i) => {
  const canvas = document.createElement("canvas");
  canvas.width = schedule.columns;
  canvas.height = schedule.rows;
  box.querySelector("img").after(canvas);
  return { canvas, name: box.dataset.name, begin: bytes(schedule.maps[i].begin), end: bytes(schedule.maps[i].end) };
});

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
  for (const map of maps) map.canvas.hidden = whole;
  const words = whole
    ? "The whole map. Move the slider to see which tiles run at the same time."
    : `Turn ${turn.toLocaleString("en")} of ${schedule.turns.toLocaleString("en")}. ${counts.join("; ")}.`;
  said.textContent = words;
  slider.setAttribute("aria-valuetext", words);
  if (now) {
    now.setAttribute("x1", `${(100 * step) / schedule.steps}%`);
    now.setAttribute("x2", `${(100 * step) / schedule.steps}%`);
    now.setAttribute("visibility", whole ? "hidden" : "visible");
  }
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
document.getElementById("slider").hidden = false;
slider.value = schedule.steps;
show();
