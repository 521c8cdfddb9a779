"use strict";
// headings of sortable tables become buttons
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    head.setAttribute("aria-sort", "none");
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") !== "descending";
      heads.forEach((each) => each.setAttribute("aria-sort", "none"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const key = (row) => {
        const cell = row.cells[column], data = cell.querySelector("data");
        return data ? Number(data.value) : cell.textContent.trim();
      };
      const missing = (value) => value === "" || value === "\u2013";
      const rows = [...table.tBodies[0].rows].map((row) => [key(row), row]);
      rows.sort(([a], [b]) => {
        if (missing(a) || missing(b)) return missing(a) - missing(b);
        const order = typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), undefined, { numeric: true });
        return down ? -order : order;
      });
      table.tBodies[0].append(...rows.map(([, row]) => row));
    });
  });
}
// what an element means, on hover, focus and tap; Escape closes it
const tip = document.getElementById("tip");
let owner = null;
const hide = () => { tip.hidden = true; if (owner) owner.removeAttribute("aria-describedby"); owner = null; };
const show = (event) => {
  const target = event.target instanceof Element ? event.target.closest("[data-tip]") : null;
  if (!target) return hide();
  if (target === owner) return;
  hide();
  owner = target;
  tip.textContent = target.getAttribute("data-tip");
  tip.hidden = false;
  target.setAttribute("aria-describedby", "tip");
  const box = target.getBoundingClientRect(), own = tip.getBoundingClientRect(), width = document.documentElement.clientWidth;
  tip.style.left = Math.max(8, Math.min(box.left, width - own.width - 8)) + window.scrollX + "px";
  const above = box.top - own.height - 6;
  tip.style.top = (above > 0 ? above : box.bottom + 6) + window.scrollY + "px";
};
for (const kind of ["mouseover", "focusin", "click"]) document.addEventListener(kind, show);
document.addEventListener("focusout", hide);
document.addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });
// a printed page has everything open
window.addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((each) => { each.open = true; }));
