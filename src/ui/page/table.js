// The table of a result: only the rows in view are elements, whatever their number.

import { el, find, linked, number } from "./draw.js";

const ROW = 28;
/** Browsers limit the height of an element; beyond this the scroll position is scaled. */
const TALLEST = 12_000_000;
const LARGEST_COLUMN = 420;

export class Table {
  constructor(root) {
    this.root = root;
    this.reset([]);
  }

  reset(columns) {
    Object.assign(this, { columns, rows: [], order: null, sorted: null, filters: columns.map(() => ""), widths: null, drawn: "" });
    this.body = el("div", { class: "body", role: "rowgroup" });
    this.head = el("div", { class: "head", role: "rowgroup" });
    this.space = el("div", { class: "all" }, this.body);
    this.grid = el("div", { class: "grid", role: "table", "aria-label": "Rows of the result", tabindex: "0" }, this.head, this.space);
    this.count = el("p", { class: "count", role: "status" });
    this.root.replaceChildren(this.grid, this.count);
    this.grid.addEventListener("scroll", () => this.later());
    this.grid.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.later()).observe(this.grid);
    if (columns.length) this.header();
  }

  /** Adds rows that arrived. */
  add(rows) {
    for (const row of rows) this.rows.push(row);
    if (!this.widths) this.measure();
    // Sorted and filtered again, but not for each of many parts.
    if (this.order) {
      this.soon ||= setTimeout(() => {
        this.soon = 0;
        if (this.order) this.arrange();
      }, 300);
    }
    this.resize();
  }

  get length() {
    return this.order ? this.order.length : this.rows.length;
  }

  row(at) {
    return this.rows[this.order ? this.order[at] : at];
  }

  /** Widths by the names, and the values of the first rows. */
  measure() {
    const letter = 8.3;
    const longest = (at) => this.rows.slice(0, 100).reduce((most, row) => Math.max(most, Math.min(shown(row[at]).length, 80)), 0);
    this.widths = this.columns.map((column, at) => {
      const width = Math.max(column.name.length * letter + 52, longest(at) * letter + 26);
      return Math.round(Math.min(Math.max(width, 72), LARGEST_COLUMN));
    });
    const template = this.widths.map((width) => `${width}px`).join(" ");
    this.grid.style.setProperty("--columns", template);
    this.grid.style.setProperty("--width", `${this.widths.reduce((sum, width) => sum + width, 0)}px`);
  }

  header() {
    const names = this.columns.map((column, at) => el("div", { role: "columnheader", "aria-sort": "none", class: column.class },
      el("button", { type: "button", title: `${column.name}: ${column.type}`, onclick: () => this.sort(at) }, column.name,
        el("span", { class: "arrow", "aria-hidden": "true" }))));
    const filters = this.columns.map((column, at) => el("div", { role: "cell" }, el("input", {
      "aria-label": `Filter ${column.name}`, placeholder: column.class === "number" ? "> 10" : "filter",
      oninput: (event) => this.filter(at, event.target.value),
    })));
    this.head.append(el("div", { class: "row names", role: "row" }, names), el("div", { class: "row filters", role: "row" }, filters));
    this.measure();
    this.widths = null;
  }

  sort(at) {
    const down = this.sorted?.at === at && !this.sorted.down;
    this.sorted = this.sorted?.at === at && this.sorted.down ? null : { at, down };
    for (const [other, cell] of [...this.head.firstChild.children].entries()) {
      const own = this.sorted?.at === other;
      cell.setAttribute("aria-sort", own ? (this.sorted.down ? "descending" : "ascending") : "none");
      cell.querySelector(".arrow").textContent = own ? (this.sorted.down ? "▼" : "▲") : "";
    }
    this.arrange();
  }

  filter(at, text) {
    this.filters[at] = text.trim();
    this.arrange();
  }

  /** Computes the order of the rows in view: those that pass the filters, sorted. */
  arrange() {
    const tests = this.filters.map((text, at) => text && test(text, this.columns[at])).map((check, at) => check && ((row) => check(row[at])));
    const checks = tests.filter(Boolean);
    if (!checks.length && !this.sorted) {
      this.order = null;
    } else {
      const order = [];
      for (let at = 0; at < this.rows.length; at += 1) {
        if (checks.every((check) => check(this.rows[at]))) order.push(at);
      }
      if (this.sorted) {
        const { at, down } = this.sorted;
        const compare = comparing(this.columns[at]);
        const texts = (value) => (value !== null && typeof value === "object" ? shown(value) : value);
        order.sort((one, other) => {
          const [a, b] = [texts(this.rows[one][at]), texts(this.rows[other][at])];
          // What is missing comes last in both directions.
          if (a === null || b === null) return a === b ? one - other : a === null ? 1 : -1;
          return (down ? compare(b, a) : compare(a, b)) || one - other;
        });
      }
      this.order = order;
    }
    this.resize();
  }

  resize() {
    const height = this.length * ROW;
    this.space.style.height = `${Math.min(height, TALLEST)}px`;
    this.grid.setAttribute("aria-rowcount", String(this.length + 1));
    const all = this.rows.length;
    this.count.textContent = this.length === all ? `${number(all)} row${all === 1 ? "" : "s"}` : `${number(this.length)} of ${number(all)} rows`;
    this.drawn = "";
    this.later();
  }

  later() {
    this.waiting ||= requestAnimationFrame(() => {
      this.waiting = 0;
      this.draw();
    });
  }

  /** Makes elements of the rows in view. */
  draw() {
    const { scrollTop, clientHeight } = this.grid;
    const height = this.length * ROW;
    const room = Math.max(clientHeight - this.head.offsetHeight, ROW);
    const scale = height > TALLEST ? (height - room) / Math.max(Math.min(height, TALLEST) - room, 1) : 1;
    const from = Math.max(0, Math.floor((scrollTop * scale) / ROW) - 4);
    const to = Math.min(this.length, from + Math.ceil(room / ROW) + 9);
    const key = `${from}-${to}-${this.length}`;
    if (key !== this.drawn) {
      this.drawn = key;
      const rows = [];
      for (let at = from; at < to; at += 1) rows.push(this.line(at));
      this.body.replaceChildren(...rows);
    }
    this.body.style.transform = `translateY(${scale === 1 ? from * ROW : scrollTop - (scrollTop * scale - from * ROW)}px)`;
  }

  line(at) {
    const cells = this.row(at).map((value, column) => {
      const { class: kind } = this.columns[column];
      const text = shown(value);
      const cell = el("div", { role: "cell", class: `${kind}${value === null ? " null" : ""}`, dir: kind === "text" ? "auto" : null });
      cell.append(kind === "text" ? linked(text.length > 300 ? `${text.slice(0, 300)}…` : text) : text);
      return cell;
    });
    return el("div", { class: "row", role: "row", "aria-rowindex": String(at + 2), onclick: (event) => {
      if (event.target.tagName !== "A" && !window.getSelection().toString()) this.open(at);
    } }, cells);
  }

  key(event) {
    if (event.target !== this.grid) return;
    if (event.key === "Enter" && this.length) {
      this.open(Math.min(this.length - 1, Math.round(this.grid.scrollTop / ROW)));
    }
  }

  /** Shows a row with its whole texts. */
  open(at) {
    const dialog = find("record");
    const show = (next) => {
      const place = Math.min(Math.max(next, 0), this.length - 1);
      const row = this.row(place);
      find("record-title").textContent = `Row ${number(place + 1)} of ${number(this.length)}`;
      dialog.querySelector("dl").replaceChildren(...this.columns.flatMap((column, number) => [
        el("dt", {}, column.name),
        el("dd", { dir: "auto", class: row[number] === null ? "null" : null }, linked(beginning(shown(row[number])))),
      ]));
      find("record-before").onclick = () => show(place - 1);
      find("record-after").onclick = () => show(place + 1);
    };
    find("record-close").onclick = () => dialog.close();
    dialog.onkeydown = (event) => {
      const button = { ArrowLeft: "record-before", ArrowRight: "record-after" }[event.key];
      if (button) find(button).click();
    };
    show(at);
    if (!dialog.open) dialog.showModal();
  }
}

/** The beginning of a text that is too long for a browser to lay out. */
function beginning(text) {
  const most = 100_000;
  return text.length > most ? `${text.slice(0, most)}… (the first ${most} of ${text.length} characters; a file has them all)` : text;
}

function shown(value) {
  if (value === null || value === undefined) return "NULL";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

const plainly = (one, other) => (one < other ? -1 : one > other ? 1 : 0);

/** A number as integer where it is one, which may be larger than JavaScript's numbers are exact. */
function exactly(value) {
  if (typeof value === "string" && /^-?\d+$/.test(value)) return BigInt(value);
  const named = { inf: Infinity, "-inf": -Infinity }[value];
  return named ?? Number(value);
}

/** Compares two values of a column. NaN is the largest number. */
function comparing({ class: kind }) {
  if (kind === "number") {
    return (one, other) => {
      const [a, b] = [exactly(one), exactly(other)];
      return Number.isNaN(a) || Number.isNaN(b) ? plainly(Number.isNaN(a), Number.isNaN(b)) : plainly(a, b);
    };
  }
  if (kind === "time") return (one, other) => plainly(instant(one), instant(other)) || plainly(fraction(one), fraction(other));
  return plainly;
}

/** An instant in milliseconds. Times without a zone are those of one zone, so that they compare like UTC. */
const instant = (text) => Date.parse(zoned(text) ? text : `${text}Z`) || Date.parse(text);
const zoned = (text) => /(Z|[+-]\d\d:?\d\d)$/.test(text);
/** What follows the milliseconds. */
const fraction = (text) => (/\.\d{3}(\d+)/.exec(text)?.[1] ?? "").padEnd(6, "0");

/** The test of a filter: a comparison with a number or a time, or a part of the text. */
function test(text, column) {
  const parts = /^(<=|>=|<>|!=|=|<|>)\s*(.+)$/.exec(text);
  if (parts && (column.class === "number" || column.class === "time")) {
    const [, sign, operand] = parts;
    // A day or minute is compared with the same part of a time.
    const part = column.class === "time" && !zoned(operand);
    const compare = part ? (value) => plainly(value.slice(0, operand.length), operand) : (value) => comparing(column)(value, operand);
    const holds = { "<": (order) => order < 0, ">": (order) => order > 0, "<=": (order) => order <= 0, ">=": (order) => order >= 0, "=": (order) => order === 0, "<>": (order) => order !== 0, "!=": (order) => order !== 0 }[sign];
    return (value) => value !== null && holds(compare(value));
  }
  const part = text.toLowerCase();
  return (value) => shown(value).toLowerCase().includes(part);
}
