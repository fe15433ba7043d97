// Elements and small drawings. Every text is inserted as a text, never as HTML.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

/** An element with attributes, listeners (`onclick`) and children. */
export const el = (name, attributes = {}, ...children) => fill(document.createElement(name), attributes, children);
export const svg = (name, attributes = {}, ...children) => fill(document.createElementNS(SVG, name), attributes, children);
export const find = (id) => document.getElementById(id);

/** A number for people; that of a small fraction has its first six digits. */
export function number(value) {
  const known = Number(value);
  const small = !Number.isInteger(known) && Math.abs(known) < 1_000;
  return known.toLocaleString("en", small ? { maximumSignificantDigits: 6 } : {});
}

/** Writes the line of an error into an element, with its place, and with a button that tries `again` if the server is gone. */
export function tell(shown, error, again) {
  shown.hidden = false;
  const place = error.place ? `Line ${error.place.line}, column ${error.place.column}: ` : "";
  shown.replaceChildren(`${place}${error.message}`);
  if (error.gone && again) shown.append(" ", el("button", { type: "button", onclick: again }, "Try again"));
}

/** A line about an error, with a button that tries again what failed. */
export function failed(error, again) {
  const shown = el("p", { class: "problem", role: "alert" }, `${error.message} `, el("button", { type: "button", onclick: () => {
    shown.remove();
    again();
  } }, "Try again"));
  return shown;
}

/** What this browser remembers by a name, or is to remember; null if it keeps nothing. */
export function remembered(name, value) {
  try {
    if (value !== undefined) localStorage.setItem(name, value);
    return localStorage.getItem(name);
  } catch {
    return null;
  }
}

/** A number of things: `1 request`, `1,000 rows`. */
export const counted = (value, name) => `${number(value)} ${name}${value === 1 ? "" : "s"}`;

const PARTS = Object.fromEntries(["year", "month", "day", "hour", "minute", "second"].map((name) => [name, "2-digit"]));
/** An instant in the zone of the browser, with its name: `2026-11-26 12:00:00 UTC`. Sweden writes dates so. */
export const time = (at) => new Date(at).toLocaleString("sv", { ...PARTS, year: "numeric", timeZoneName: "short" });

/** A line about what runs. */
export const running = (text) => el("p", { class: "progress running", role: "status" }, text);

/** Longest work in milliseconds before the page may do something else. */
const SLICE = 12;
/** A function that lets the page do something else once a slice of time is used up, and returns true if the work is unwanted. */
export function slices(unwanted) {
  let begun = performance.now();
  return async () => {
    if (performance.now() - begun < SLICE) return false;
    await (globalThis.scheduler?.yield?.() ?? new Promise((done) => setTimeout(done)));
    begun = performance.now();
    return unwanted?.();
  };
}

/** A text as a link if it is an address of the web, otherwise as it is. */
export function linked(text) {
  if (!/^https?:\/\/[^\s]+$/i.test(text)) return text;
  try {
    return el("a", { href: new URL(text).href, rel: "noopener noreferrer", target: "_blank" }, text);
  } catch {
    return text;
  }
}

/** Rows that a chart has in words: more would keep the page waiting. */
const DESCRIBED = 50_000;
/** Series that a chart has at most. */
const SERIES = 9;
/** The content of a chart in words: the first, last and highest value of its numbers. */
export function described(kind, columns, all) {
  const told = all.slice(0, DESCRIBED);
  const time = columns[0]?.class === "time";
  const isNumber = (at) => columns[at].class === "number";
  // A heat map of numbers has a weekday and an hour before them.
  const from = kind === "heatmap" ? 2 : columns.length > 1 ? 1 : 0;
  const values = [...columns.keys()].filter((at) => at >= from && isNumber(at)).slice(0, 3);
  // A number is a place of the chart, and rows without one are not drawn.
  const placed = from === 1 && isNumber(0) ? told.filter((row) => row[0] !== null) : told;
  const rows = placed.length ? placed : told;
  const undrawn = told.length - rows.length;
  // A text between the axis and a number names the series.
  const series = from === 1 && columns.length === 3 && !isNumber(1) ? 1 : null;
  const label = (row) => [...columns.keys()].filter((at) => at !== series && !values.includes(at) && (at < from || !isNumber(at)))
    .map((at) => String(row[at] ?? "NULL").replace(/T00:00:00(\.0+)?(Z|[+-]\d\d:\d\d)?$/, "").slice(0, 60)).join(", ");
  const earlier = (one, other) => time && one[0] < other[0];
  const part = (at, name, rows) => {
    const known = rows.filter((row) => row[at] !== null && !Number.isNaN(Number(row[at])));
    if (!known.length) return `${name}: no number`;
    if (known.length === 1) return `${name}: ${number(known[0][at])}`;
    const pick = (better) => known.reduce((best, row) => (better(row, best) ? row : best));
    const found = [["first", earlier], ["last", (one, other) => !earlier(one, other)],
      ["highest", (one, other) => Number(one[at]) > Number(other[at])]];
    const picked = found.map(([name, better]) => [name, pick(better)]);
    const words = picked.map(([name, row]) => `${name} ${number(row[at])} (${label(row)})`);
    return `${name}: ${words.join(", ")}`;
  };
  const kinds = series === null ? [] : [...new Set(rows.map((row) => row[series]))].slice(0, SERIES);
  const parts = values.flatMap((at) => series === null ? part(at, columns[at].name, rows)
    : kinds.map((kind) => part(at, `${columns[at].name} of ${kind ?? "(none)"}`, rows.filter((row) => row[series] === kind))));
  const words = kind === "heatmap" && columns.some((column) => column.class === "time") ? busiest(columns, rows) : parts.join("; ");
  const seen = all.length > told.length ? `, in words the first ${number(DESCRIBED)}` : "";
  const without = undrawn ? `, ${number(undrawn)} of them without a number and not drawn` : "";
  return `Chart of ${columns.map((column) => column.name).join(", ")}; ${counted(all.length, "row")}${without}${seen}. ${words}`;
}

const WEEKDAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
/** A heat map of times in words: the three hours of the week with most rows, or with the largest sums of the numbers. */
function busiest(columns, rows) {
  const [time, value] = ["time", "number"].map((kind) => columns.findIndex((column) => column.class === kind));
  const sums = new Map();
  for (const row of rows) {
    if (row[time] === null || (value >= 0 && row[value] === null)) continue;
    // Times are written in the zone of the query.
    const hour = `${WEEKDAYS[new Date(row[time].slice(0, 10)).getUTCDay()]} ${row[time].slice(11, 13) || "00"}:00`;
    sums.set(hour, (sums.get(hour) ?? 0) + (value < 0 ? 1 : Number(row[value])));
  }
  const most = [...sums].sort((one, other) => other[1] - one[1]).slice(0, 3).map(([hour, sum]) => `${hour} (${number(sum)})`);
  return `Highest: ${most.join(", ") || "none"}`;
}

/** Tabs: a click or an arrow key chooses one, and shows its panel. */
export function tabs(list, chosen) {
  const all = [...list.querySelectorAll("[role=tab]")];
  const choose = (tab) => {
    for (const other of all) {
      other.setAttribute("aria-selected", String(other === tab));
      other.tabIndex = other === tab ? 0 : -1;
      find(other.getAttribute("aria-controls")).hidden = other !== tab;
    }
    chosen?.(tab.id);
  };
  for (const [at, tab] of all.entries()) {
    tab.addEventListener("click", () => choose(tab));
    tab.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      const next = all[(at + step + all.length) % all.length];
      choose(next);
      next.focus();
    });
  }
  return (id) => choose(all.find((tab) => tab.id === id));
}

/** A line of numbers without axes; `label` says what it shows. The last number is of a day that has not ended. */
export function sparkline(values, label) {
  const [width, height] = [160, 36];
  const top = Math.max(...values, 1);
  const x = (at) => (values.length > 1 ? (at / (values.length - 1)) * (width - 4) + 2 : width / 2);
  const y = (value) => height - 3 - (value / top) * (height - 6);
  const points = values.map((value, at) => `${x(at).toFixed(1)},${y(value).toFixed(1)}`);
  const viewBox = `0 0 ${width} ${height}`;
  return svg("svg", { viewBox, preserveAspectRatio: "none", role: "img", "aria-label": label, class: "spark" },
    svg("polygon", { points: `2,${height - 2} ${points.join(" ")} ${width - 2},${height - 2}` }),
    svg("polyline", { points: points.slice(0, -1).join(" ") }), svg("polyline", { points: points.slice(-2).join(" "), class: "open" }));
}

/** Shares of a whole as a bar and in words, since colours alone tell nothing to many. */
export function shares(parts) {
  const whole = parts.reduce((sum, [, value]) => sum + value, 0);
  const words = parts.map(([name, value]) => `${name} ${whole ? Math.round((value / whole) * 100) : 0} %`).join(", ");
  let from = 0;
  const bars = parts.filter(([, value]) => value > 0).map(([name, value]) => {
    const width = (value / whole) * 100;
    from += width;
    return svg("rect", { x: from - width, y: 0, width: Math.max(width - 0.6, 0.2), height: 8, class: `share ${name}` },
      svg("title", {}, `${name}: ${number(value)}`));
  });
  const bar = svg("svg", { viewBox: "0 0 100 8", preserveAspectRatio: "none", "aria-hidden": "true", class: "shares" }, bars);
  return [bar, el("p", { class: "sources" }, words)];
}
