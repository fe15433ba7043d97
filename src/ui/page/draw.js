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

export const number = (value, options) => Number(value).toLocaleString("en", options);

/** A text as a link if it is an address of the web, otherwise as it is. */
export function linked(text) {
  if (!/^https?:\/\/[^\s]+$/i.test(text)) return text;
  try {
    const url = new URL(text);
    if (url.protocol !== "http:" && url.protocol !== "https:") return text;
    return el("a", { href: url.href, rel: "noopener noreferrer", target: "_blank" }, text);
  } catch {
    return text;
  }
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
  return svg("svg", { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img", "aria-label": label, class: "spark" },
    svg("polygon", { points: `2,${height - 2} ${points.join(" ")} ${width - 2},${height - 2}` }),
    svg("polyline", { points: points.slice(0, -1).join(" ") }),
    svg("polyline", { points: points.slice(-2).join(" "), class: "open" }));
}

/** Shares of a whole as a bar, with a legend for screen readers. */
export function shares(parts) {
  const whole = parts.reduce((sum, [, value]) => sum + value, 0);
  const label = parts.map(([name, value]) => `${name} ${whole ? Math.round((value / whole) * 100) : 0} %`).join(", ");
  let from = 0;
  const bars = parts.filter(([, value]) => value > 0).map(([name, value]) => {
    const width = (value / whole) * 100;
    from += width;
    return svg("rect", { x: from - width, y: 0, width: Math.max(width - 0.6, 0.2), height: 8, class: `share ${name}` },
      svg("title", {}, `${name}: ${number(value)}`));
  });
  return svg("svg", { viewBox: "0 0 100 8", preserveAspectRatio: "none", role: "img", "aria-label": label, class: "shares" }, bars);
}

const DAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

/**
 * Numbers by weekday and hour: rows of weekday (1 is Monday, 0 and 7 are Sunday), hour and number, or of an instant, which is counted,
 * and a number if there is one. Returns `null` for other columns.
 */
export function heatmap(columns, rows, title) {
  const grid = Array.from({ length: 7 }, () => new Array(24).fill(0));
  const add = (day, hour, value) => {
    const row = grid[(day + 6) % 7];
    if (row && hour >= 0 && hour < 24) row[hour] += Number(value) || 0;
  };
  if (columns[0]?.class === "time") {
    const value = columns.findIndex((column) => column.class === "number");
    for (const row of rows) {
      // The text has the zone of the query.
      const parts = /^(\d{4})-(\d\d)-(\d\d)T(\d\d)/.exec(row[0] ?? "");
      if (parts) add(new Date(Date.UTC(parts[1], parts[2] - 1, parts[3])).getUTCDay(), Number(parts[4]), value < 0 ? 1 : row[value]);
    }
  } else if (columns.length >= 3 && columns.slice(0, 3).every((column) => column.class === "number")) {
    for (const row of rows) add(Number(row[0]), Number(row[1]), row[2]);
  } else {
    return null;
  }
  const top = Math.max(...grid.flat(), 1);
  const [left, head, size] = [36, 20, 24];
  const picture = svg("svg", { viewBox: `0 0 ${left + 24 * size} ${head + 7 * size + 4}`, role: "img", "aria-label": title, class: "heat" });
  for (let hour = 0; hour < 24; hour += 3) {
    picture.append(svg("text", { x: left + (hour + 0.5) * size, y: 14, "text-anchor": "middle" }, String(hour)));
  }
  for (const [day, hours] of grid.entries()) {
    picture.append(svg("text", { x: 0, y: head + (day + 0.65) * size }, DAYS[day]));
    for (const [hour, value] of hours.entries()) {
      picture.append(svg("rect", {
        x: left + hour * size + 1, y: head + day * size + 1, width: size - 2, height: size - 2, rx: 3,
        "fill-opacity": (0.06 + 0.94 * Math.sqrt(value / top)).toFixed(3),
      }, svg("title", {}, `${DAYS[day]} ${hour}:00: ${number(value)}`)));
    }
  }
  return picture;
}
