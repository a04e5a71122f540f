"use strict";
// Sorting and filtering of the tables, and tables of what is only text; the page is complete without it.
document.documentElement.classList.add("js");

function valueOf(row, column) {
  const cell = row.cells[column];
  const text = cell ? cell.textContent.trim() : "";
  const number = parseFloat(text);
  return {text, number: /^[-+]?[\d.]/.test(text) && Number.isFinite(number) ? number : null};
}

function compare(a, b) {
  if (a.number !== null && b.number !== null) return a.number - b.number;
  if (a.number !== null || b.number !== null) return a.number === null ? 1 : -1;
  return a.text.localeCompare(b.text, undefined, {numeric: true});
}

function sortBy(table, column, head) {
  const down = head.getAttribute("aria-sort") === "ascending";
  const body = table.tBodies[0];
  const rows = Array.from(body.rows, (row) => ({row, value: valueOf(row, column)}));
  rows.sort((a, b) => (down ? compare(b.value, a.value) : compare(a.value, b.value)));
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  body.append(...rows.map((entry) => entry.row));
}

function makeSortable(table) {
  for (const head of table.tHead.rows[0].cells) {
    const button = document.createElement("button");
    button.append(...head.childNodes);
    button.title = "sort";
    button.addEventListener("click", () => sortBy(table, head.cellIndex, head));
    head.append(button);
  }
}
document.querySelectorAll("table.sort").forEach(makeSortable);

// The GPUs of a very large fleet are lines of text: a node with its model, then its GPUs, each with a tab before it.
function* gpusOf(block) {
  let place = [];
  for (const line of block.querySelector("pre").textContent.split("\n")) {
    if (line.startsWith("\t")) yield [...place, ...line.slice(1).split("\t")];
    else if (line) place = line.split("\t");
  }
}

function tableOf(section, gpus) {
  const names = Array.from(section.querySelectorAll(".columns i"), (name) => name.textContent);
  const table = document.createElement("table");
  const head = table.createTHead().insertRow();
  for (const name of ["node", "model", ...names]) {
    head.append(Object.assign(document.createElement("th"), {textContent: name}));
  }
  const body = table.createTBody();
  for (const gpu of gpus) {
    const row = body.insertRow();
    for (const text of gpu) row.insertCell().textContent = text;
  }
  table.className = "sort values";
  makeSortable(table);
  const wide = Object.assign(document.createElement("div"), {className: "wide"});
  wide.append(table);
  return wide;
}

for (const block of document.querySelectorAll(".many .block")) {
  block.addEventListener("toggle", () => {
    const lines = block.querySelector("pre");
    if (!block.open || lines.hidden) return;
    lines.hidden = true;
    block.append(tableOf(block.closest("section"), gpusOf(block)));
  });
}

// The first GPUs that have all the words, in a table above the blocks.
function filterMany(section, words, found) {
  const HITS_MAX = 200;
  const hits = [];
  let count = 0;
  for (const block of words.length ? section.querySelectorAll(".block") : []) {
    for (const gpu of gpusOf(block)) {
      const text = gpu.join(" ").toLowerCase();
      if (!words.every((word) => text.includes(word))) continue;
      if (++count <= HITS_MAX) hits.push(gpu);
    }
  }
  section.querySelector(".hits")?.remove();
  if (hits.length) {
    const table = tableOf(section, hits);
    table.classList.add("hits");
    section.querySelector(".many").before(table);
  }
  const more = count > HITS_MAX ? ", the first " + HITS_MAX + " are shown" : "";
  found.textContent = words.length ? count + " found" + more : "";
}

// Shows the rows that have all the words; a group of rows (a node) without any is hidden.
function filter(section, words, found) {
  let count = 0;
  for (const table of section.querySelectorAll("table.filter")) {
    const group = table.closest("details.node");
    const groupText = group ? group.firstElementChild.textContent.toLowerCase() : "";
    let shown = 0;
    for (const row of table.tBodies[0].rows) {
      const text = groupText + " " + row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
      shown += row.hidden ? 0 : 1;
    }
    if (group) group.hidden = shown === 0;
    if (group) group.open = words.length > 0 && shown > 0 && count < 200;
    count += shown;
  }
  found.textContent = words.length ? count + " found" : "";
}

for (const input of document.querySelectorAll("input[type=search]")) {
  const found = input.parentElement.querySelector(".found");
  let waiting = 0;
  input.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      const section = input.closest("section");
      const show = section.querySelector(".many") ? filterMany : filter;
      show(section, input.value.toLowerCase().split(/\s+/).filter(Boolean), found);
    }, 120);
  });
}
