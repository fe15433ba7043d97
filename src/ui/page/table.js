// The table of a result: only the rows in view are elements, whatever their number.

import { counted, el, find, linked, number, slices } from "./draw.js";

const ROW = 28;
/** Browsers limit the height of an element; beyond this the scroll position is scaled. */
const TALLEST = 12_000_000;
const LARGEST_COLUMN = 420;
/** Rows that are sorted at once; larger runs are merged. */
const RUN = 2_048;
/** Milliseconds after which a filter counts as typed. */
const TYPED = 150;
/** Operands of comparisons, by the class of the column. */
const EXPECTED = { number: "a number, as in > 1,000", time: "a date or a time, as in >= 2026-07-01 05:00", boolean: "= true or = false" };
/** Valid parts of a value in lower case, by the class of the column: their characters, and words. */
const PARTS = { number: [/^[-+.\de]+$/, "null nan -inf"], time: [/^[-+:.\dtz]+$/, "null"], boolean: [/^$/, "null true false"] };
/** An id, which is never cut. */
const ID = /^[\w.:+-]{1,40}$/;

let tables = 0;

export class Table {
  constructor(root) {
    tables += 1;
    Object.assign(this, { root, name: `rows-${tables}`, turn: 0 });
    this.reset([]);
  }

  reset(columns) {
    clearTimeout(this.soon);
    clearTimeout(this.typing);
    this.turn += 1;
    Object.assign(this, {
      columns, rows: [], order: null, sorted: null, filters: columns.map(() => null), wrong: [], widths: null, drawn: "", active: null,
      arranging: false, soon: 0,
    });
    this.body = el("div", { class: "body", role: "rowgroup" });
    this.head = el("div", { class: "head", role: "rowgroup" });
    this.space = el("div", { class: "all" }, this.body);
    const names = { class: "grid", role: "grid", "aria-label": "Rows of the result", "aria-readonly": "true", tabindex: "0" };
    this.grid = el("div", names, this.head, this.space);
    this.count = el("p", { class: "count", role: "status" });
    this.root.replaceChildren(this.grid, this.count);
    this.grid.addEventListener("scroll", () => this.later());
    this.grid.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.later()).observe(this.grid);
    if (columns.length) {
      this.header();
      this.resize();
    }
  }

  /** Adds rows that arrived. */
  add(rows) {
    for (const row of rows) this.rows.push(row);
    if (!this.widths) this.measure();
    if (this.order || this.arranging) this.again();
    this.resize();
  }

  /** Sorts and filters again, but not for each of many parts. */
  again() {
    this.soon ||= setTimeout(() => {
      this.soon = 0;
      if (this.arranging) this.again();
      else if (this.order) this.arrange();
    }, 300);
  }

  get length() { return this.order ? this.order.length : this.rows.length; }

  row(at) { return this.rows[this.order ? this.order[at] : at]; }

  /** Widths by the names, and the values of the first rows. */
  measure() {
    const letter = 8.3;
    const longest = (at) => this.rows.slice(0, 100).reduce((most, row) => Math.max(most, Math.min(shown(row[at]).length, 80)), 0);
    this.widths = this.columns.map((column, at) => {
      const width = Math.max(column.name.length * letter + 52, longest(at) * letter + 26);
      return Math.round(Math.min(Math.max(width, 72), LARGEST_COLUMN));
    });
    this.lay();
  }

  /** Widens the columns whose numbers or ids in view are cut. */
  widen() {
    const cut = [...this.body.querySelectorAll(".row > div")].filter((cell) => cell.scrollWidth > cell.clientWidth
      && (cell.classList.contains("number") || ID.test(cell.textContent)));
    for (const cell of cut) {
      const at = [...cell.parentElement.children].indexOf(cell);
      this.widths[at] = Math.max(this.widths[at], cell.scrollWidth + 12);
    }
    if (cut.length) this.lay();
  }

  lay() {
    const template = this.widths.map((width) => `${width}px`).join(" ");
    this.grid.style.setProperty("--columns", template);
    this.grid.style.setProperty("--width", `${this.widths.reduce((sum, width) => sum + width, 0)}px`);
  }

  header() {
    const names = this.columns.map((column, at) => el("div", { role: "columnheader", "aria-sort": "none", class: column.class },
      el("button", { type: "button", title: `${column.name}: ${column.type}`, onclick: () => this.sort(at) }, column.name,
        el("span", { class: "arrow", "aria-hidden": "true" }))));
    const filters = this.columns.map((column, at) => el("div", { role: "gridcell" }, el("input", {
      "aria-label": `Filter ${column.name}`, dir: "auto", placeholder: column.class === "number" ? "> 10" : "filter",
      oninput: (event) => this.filter(at, event.target),
    })));
    this.head.append(el("div", { class: "row names", role: "row", "aria-rowindex": "1" }, names),
      el("div", { class: "row filters", role: "row", "aria-rowindex": "2" }, filters));
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

  filter(at, field) {
    const text = field.value.trim();
    this.filters[at] = text ? test(text, this.columns[at]) : null;
    const wrong = text !== "" && !this.filters[at];
    field.setAttribute("aria-invalid", String(wrong));
    this.wrong[at] = wrong ? `${this.columns[at].name}: expected ${EXPECTED[this.columns[at].class]}` : "";
    field.title = this.wrong[at];
    clearTimeout(this.typing);
    this.typing = setTimeout(() => this.arrange(), TYPED);
  }

  /** Computes the order of the rows in view: those that pass the filters, sorted. A newer call ends this one. */
  async arrange() {
    this.turn += 1;
    const { turn, rows, columns, filters, sorted } = this;
    const checks = filters.flatMap((holds, at) => (holds ? [{ at, holds }] : []));
    this.arranging = checks.length > 0 || sorted !== null;
    if (!this.arranging) {
      this.order = null;
      this.grid.removeAttribute("aria-busy");
      this.resize();
      return;
    }
    this.grid.setAttribute("aria-busy", "true");
    const unwanted = slices(() => turn !== this.turn);
    const all = rows.length;
    let order = new Uint32Array(all);
    let kept = 0;
    for (let at = 0; at < all; at += 1) {
      if (at % 1_024 === 0 && (await unwanted())) return;
      if (checks.every((check) => check.holds(rows[at][check.at]))) {
        order[kept] = at;
        kept += 1;
      }
    }
    order = order.subarray(0, kept);
    if (sorted) order = await sortedBy(order, rows, columns[sorted.at], sorted, unwanted);
    if (turn !== this.turn) return;
    this.arranging = false;
    this.order = order;
    this.grid.removeAttribute("aria-busy");
    this.resize();
  }

  resize() {
    const height = this.length * ROW;
    this.space.style.height = `${Math.min(height, TALLEST)}px`;
    // The names and the filters are rows as well.
    this.grid.setAttribute("aria-rowcount", String(this.length + 2));
    if (this.active !== null) this.active = this.length ? Math.min(this.active, this.length - 1) : null;
    const all = this.rows.length;
    const rows = this.length === all ? counted(all, "row") : `${number(this.length)} of ${number(all)} rows`;
    this.count.textContent = [rows, ...this.wrong.filter(Boolean)].join(" · ");
    this.later();
  }

  later() {
    this.waiting ||= requestAnimationFrame(() => {
      this.waiting = 0;
      this.draw();
    });
  }

  /** Height of the part with rows, and the pixels of rows for each pixel that is scrolled. */
  get view() {
    const room = Math.max(this.grid.clientHeight - this.head.offsetHeight, ROW);
    const height = this.length * ROW;
    return { room, scale: height > TALLEST ? (height - room) / (TALLEST - room) : 1 };
  }

  /** The row at the top of the view for a scroll position; a fraction of it is out of view. */
  rowAt(scrollTop) { return (scrollTop * this.view.scale) / ROW; }

  /** Makes elements of the rows in view. */
  draw() {
    const { scrollTop } = this.grid;
    const top = this.rowAt(scrollTop);
    const from = Math.max(0, Math.floor(top) - 4);
    const to = Math.min(this.length, from + Math.ceil(this.view.room / ROW) + 9);
    const places = Array.from({ length: Math.max(to - from, 0) }, (_, at) => this.order?.[from + at] ?? from + at);
    // The focus, the selection and clicks stay with elements that show what they showed.
    const key = `${from}-${this.active}-${this.grid.clientWidth > 0}-${places.join()}`;
    if (key !== this.drawn) {
      this.drawn = key;
      this.body.replaceChildren(...places.map((_, at) => this.line(from + at)));
      this.widen();
      // What is not drawn cannot be referred to.
      const drawn = this.active !== null && this.active >= from && this.active < to;
      if (drawn) this.grid.setAttribute("aria-activedescendant", `${this.name}-${this.active}`);
      else this.grid.removeAttribute("aria-activedescendant");
    }
    this.body.style.transform = `translateY(${scrollTop - (top - from) * ROW}px)`;
  }

  line(at) {
    const cells = this.row(at).map((value, column) => {
      const { class: kind } = this.columns[column];
      const text = shown(value);
      const name = `${kind}${value === null ? " null" : ""}`;
      const cell = el("div", { role: "gridcell", class: name, dir: kind === "text" ? "auto" : null });
      cell.append(kind === "text" ? linked(text.length > 300 ? `${text.slice(0, 300)}…` : text) : text);
      // Tab leaves the table, whose rows come and go; Enter opens a row, which has its links.
      for (const link of cell.children) link.tabIndex = -1;
      return cell;
    });
    const own = at === this.active;
    const attributes = { class: own ? "row active" : "row", id: `${this.name}-${at}`, role: "row", "aria-rowindex": String(at + 3) };
    return el("div", { ...attributes, onclick: (event) => {
      if (event.target.tagName !== "A" && !window.getSelection().toString()) this.open(at);
    } }, cells);
  }

  /** Moves the active row, as in other grids; Enter opens it. Scrolled out of view, it gives way to the first row in view. */
  key(event) {
    if (event.target !== this.grid || !this.length || event.ctrlKey || event.altKey || event.metaKey) return;
    const top = this.rowAt(this.grid.scrollTop);
    const rows = this.view.room / ROW;
    const page = Math.max(Math.floor(rows) - 1, 1);
    const seen = this.active !== null && this.active + 1 > top && this.active < top + rows;
    const now = seen ? this.active : Math.ceil(top - 0.1);
    const step = seen ? 1 : 0;
    const next = {
      ArrowDown: now + step, ArrowUp: now - step, PageDown: now + page, PageUp: now - page,
      Home: 0, End: this.length - 1, Enter: now,
    }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    this.activate(next);
    if (event.key === "Enter") this.open(this.active);
  }

  /** Makes a row the active one, and scrolls to it. */
  activate(at) {
    this.active = Math.min(Math.max(at, 0), this.length - 1);
    const { room, scale } = this.view;
    const top = this.rowAt(this.grid.scrollTop);
    if (this.active < top) this.grid.scrollTop = Math.floor((this.active * ROW) / scale);
    else if (this.active + 1 > top + room / ROW) this.grid.scrollTop = Math.ceil(((this.active + 1) * ROW - room) / scale);
    this.draw();
  }

  /** Shows a row with its whole texts. */
  open(at) {
    const dialog = find("record");
    const show = (next) => {
      const place = Math.min(Math.max(next, 0), this.length - 1);
      const row = this.row(place);
      this.activate(place);
      find("record-title").textContent = `Row ${number(place + 1)} of ${number(this.length)}`;
      dialog.querySelector("dl").replaceChildren(...this.columns.flatMap((column, number) => [
        el("dt", { dir: "auto" }, column.name),
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
  if (text.length <= most) return text;
  return `${text.slice(0, most)}… (the first ${most} of ${text.length} characters; a file has them all)`;
}

function shown(value) {
  if (value === null || value === undefined) return "NULL";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

const plainly = (one, other) => (one < other ? -1 : one > other ? 1 : 0);

/** A number as an integer if it is one, which may be larger than JavaScript's numbers are exact. */
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
  return (one, other) => plainly(String(one), String(other));
}

/** An instant in milliseconds. Times without a zone are those of one zone, so that they compare like UTC. */
function instant(text) {
  const at = Date.parse(zoned(text) ? text : `${text}Z`);
  return Number.isNaN(at) ? Date.parse(text) : at;
}
const zoned = (text) => /(Z|[+-]\d\d:?\d\d)$/.test(text);
/** What follows the milliseconds. */
const fraction = (text) => (/\.\d{3}(\d+)/.exec(text)?.[1] ?? "").padEnd(6, "0");

/** Rows by a column, in slices; nothing if they are no longer wanted. What is missing comes last in both directions. */
async function sortedBy(order, rows, column, { at, down }, unwanted) {
  // Each key is computed once.
  const numeric = column.class === "number" || column.class === "time";
  const keys = numeric ? new Float64Array(rows.length) : new Array(rows.length);
  const parts = column.class === "time" ? new Float64Array(rows.length) : null;
  const [known, missing] = [new Uint32Array(order.length), []];
  let length = 0;
  for (let place = 0; place < order.length; place += 1) {
    if (place % 1_024 === 0 && (await unwanted())) return undefined;
    const row = order[place];
    const value = rows[row][at];
    if (value === null) {
      missing.push(row);
      continue;
    }
    if (parts) [keys[row], parts[row]] = [instant(value), Number(fraction(value).slice(0, 6))];
    else keys[row] = numeric ? Number(exactly(value)) : typeof value === "object" ? shown(value) : value;
    known[length] = row;
    length += 1;
  }
  const exact = comparing(column);
  // Numbers that are sent as text are more exact than their keys.
  const equal = (one, other) => {
    const [a, b] = [rows[one][at], rows[other][at]];
    return typeof a === "string" || typeof b === "string" ? exact(a, b) : 0;
  };
  const rising = parts ? (one, other) => keys[one] - keys[other] || parts[one] - parts[other]
    : numeric ? (one, other) => (keys[one] < keys[other] ? -1 : keys[one] > keys[other] ? 1 : equal(one, other))
      : (one, other) => plainly(keys[one], keys[other]);
  const compare = down ? (one, other) => rising(other, one) || one - other : (one, other) => rising(one, other) || one - other;
  const sorted = await merged(known.subarray(0, length), compare, unwanted);
  if (!sorted) return undefined;
  const result = new Uint32Array(order.length);
  result.set(sorted);
  result.set(missing, length);
  return result;
}

/** Sorts numbers in slices: short runs, which are then merged. */
async function merged(numbers, compare, unwanted) {
  const all = numbers.length;
  for (let from = 0; from < all; from += RUN) {
    if (await unwanted()) return undefined;
    numbers.subarray(from, from + RUN).sort(compare);
  }
  let [source, target] = [numbers, new Uint32Array(all)];
  for (let width = RUN; width < all; width *= 2) {
    for (let from = 0; from < all; from += 2 * width) {
      const [middle, end] = [Math.min(from + width, all), Math.min(from + 2 * width, all)];
      let [left, right] = [from, middle];
      for (let at = from; at < end; at += 1) {
        if (at % 4_096 === 0 && (await unwanted())) return undefined;
        if (left < middle && (right >= end || compare(source[left], source[right]) <= 0)) {
          target[at] = source[left];
          left += 1;
        } else {
          target[at] = source[right];
          right += 1;
        }
      }
    }
    [source, target] = [target, source];
  }
  return source;
}

/** A number without separators of thousands, or a time, as values are written. */
const written = (text, { class: kind }) => (kind === "number" ? text.replace(/(?<=\d)[,_](?=\d{3}(?!\d))/g, "")
  : kind === "time" ? text.replace(/^(\d{4}-\d\d-\d\d) +/, "$1T") : text);

/** What a filter compares with; null if the column has no such values. */
function operandOf(text, column) {
  const [plain, kind] = [written(text, column), column.class];
  if (kind === "boolean") return /^(true|false)$/i.test(text) ? text.toLowerCase() : null;
  const valid = kind === "number" ? plain === "NaN" || (plain && !Number.isNaN(Number(exactly(plain))))
    : zoned(plain) ? !Number.isNaN(instant(plain)) : /^\d{4}-\d\d(-\d\d(T[\d:.]*)?)?$/.test(plain);
  return valid ? plain : null;
}

/** The test of a filter: a comparison, or a part of the text; null if no value of the column has it, or can be compared with it. */
function test(text, column) {
  const parts = EXPECTED[column.class] && /^(<=|>=|<>|!=|=|<|>)\s*(.*)$/.exec(text);
  if (parts) {
    const [, sign] = parts;
    const operand = operandOf(parts[2], column);
    if (operand === null) return null;
    // A day or minute is compared with the same part of a time.
    const part = column.class === "time" && !zoned(operand);
    const compare = part ? (value) => plainly(value.slice(0, operand.length), operand)
      : (value) => comparing(column)(value, operand);
    const holds = {
      "<": (order) => order < 0, ">": (order) => order > 0, "<=": (order) => order <= 0, ">=": (order) => order >= 0,
      "=": (order) => order === 0, "<>": (order) => order !== 0, "!=": (order) => order !== 0,
    }[sign];
    return (value) => value !== null && holds(compare(value));
  }
  const part = written(text, column).toLowerCase();
  const [letters, words] = PARTS[column.class] ?? [/^/, ""];
  if (!letters.test(part) && !words.includes(part)) return null;
  return (value) => shown(value).toLowerCase().includes(part);
}
