"use strict";
// Sorting and filtering of the tables; the page is complete without it.
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

for (const table of document.querySelectorAll("table.sort")) {
  for (const head of table.tHead.rows[0].cells) {
    const button = document.createElement("button");
    button.append(...head.childNodes);
    button.title = "sort";
    button.addEventListener("click", () => sortBy(table, head.cellIndex, head));
    head.append(button);
  }
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
      filter(input.closest("section"), input.value.toLowerCase().split(/\s+/).filter(Boolean), found);
    }, 120);
  });
}
