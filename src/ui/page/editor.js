// The editor: a text area over its own text in colours, with completion.

import { call } from "./calls.js";
import { el } from "./draw.js";

const TOKEN = new RegExp([
  /(--[^\n]*|\/\*[\s\S]*?(?:\*\/|$))|('(?:[^']|'')*'?)|("(?:[^"]|"")*"?)|(\b\d+(?:\.\d+)?\b)|([\p{L}_][\p{L}\p{N}_]*)/u,
  /(:{1,2}['"]?[\p{L}_][\p{L}\p{N}_]*['"]?)|(;)|\s+|[^]/u,
].map((part) => part.source).join("|"), "uy");

/** The tokens of a text: kind, text and offset. */
export function* tokens(text) {
  TOKEN.lastIndex = 0;
  for (let at = 0; at < text.length; at = TOKEN.lastIndex) {
    TOKEN.lastIndex = at;
    const [all, comment, string, quoted, digits, word, variable, end] = TOKEN.exec(text);
    const kind = comment ? "comment" : string ? "string" : quoted ? "quoted" : digits ? "number" : word ? "word"
      : variable && !variable.startsWith("::") ? "variable" : end ? "end" : "";
    yield { kind, text: all, at };
  }
}

/** The names of `:name`, `:'name'` and `:"name"`. */
export function variables(text) {
  const names = [...tokens(text)].filter((token) => token.kind === "variable").map((token) => token.text.replace(/[:'"]/g, ""));
  return [...new Set(names)];
}

/** A text as a string of SQL. */
export const quoted = (text) => `'${text.replaceAll("'", "''")}'`;

/** Mentions a day by sentiment, of a literal or a parameter. The service counts the days of one sentiment: its cost is known before. */
export function bySentiment(aid) {
  const one = (name) => `SELECT date_trunc('day', published_at) AS day, '${name}' AS sentiment, count(*) AS mentions
FROM mentions WHERE aid = ${aid} AND duration = '30d' AND sentiment = '${name}' GROUP BY 1`;
  return `-- Mentions a day by sentiment, with one request for each; mentions without a sentiment are not counted
${["positive", "neutral", "negative"].map(one).join("\nUNION ALL\n")}
ORDER BY 1`;
}

/** The statement at an offset, of those that semicolons separate: its text and where it begins. */
export function statementAt(text, offset) {
  let [from, last] = [0, { text: "", from: 0 }];
  for (const token of [...tokens(text), { kind: "end", at: text.length }]) {
    if (token.kind !== "end") continue;
    const part = text.slice(from, token.at);
    if (part.trim()) {
      last = { text: part, from };
      if (offset <= token.at) break;
    }
    from = token.at + 1;
  }
  return last;
}

export class Editor {
  /** `changed` is called after each change of the text, `run` for Ctrl+Enter. */
  constructor(root, { changed, run }) {
    const [area, paint, list] = ["textarea", ".paint", ".words"].map((part) => root.querySelector(part));
    Object.assign(this, { area, paint, list, changed, run, keywords: new Set(), functions: new Set() });
    Object.assign(this, { mark: null, found: [], chosen: 0, start: 0, asked: null });
    area.addEventListener("input", (event) => {
      this.mark = null;
      this.show();
      this.changed();
      if (this.inserts) this.close();
      else if (event.inputType?.startsWith("insert") || event.inputType?.startsWith("delete")) this.complete(false);
    });
    area.addEventListener("keydown", (event) => this.key(event));
    area.addEventListener("blur", () => this.close());
    area.addEventListener("click", () => this.close());
    area.addEventListener("scroll", () => this.follow());
    // The text keeps the focus, without which the list is closed.
    list.addEventListener("mousedown", (event) => event.preventDefault());
  }

  get text() { return this.area.value; }

  set text(text) {
    this.area.value = text;
    this.mark = null;
    this.show();
    this.changed();
  }

  /** The selected text, or the statement at the cursor, with its offset. */
  get statement() {
    const { selectionStart: from, selectionEnd: to, value } = this.area;
    const selected = value.slice(from, to);
    return selected.trim() ? { text: selected, from } : statementAt(value, from);
  }

  /** Inserts a text at the cursor, as if it was typed. */
  insert(text) {
    const { selectionStart: from, selectionEnd: to, value } = this.area;
    this.replace(from, to, (from > 0 && !/[\s(.,]$/.test(value.slice(0, from)) ? " " : "") + text);
  }

  /** Replaces a part of the text, so that it can be undone. */
  replace(from, to, text) {
    this.area.focus();
    this.area.setSelectionRange(from, to);
    this.inserts = true;
    // Behind a dialog, the text area takes no focus.
    if (document.activeElement !== this.area || !document.execCommand("insertText", false, text)) {
      this.area.setRangeText(text, from, to, "end");
      this.area.dispatchEvent(new InputEvent("input"));
    }
    this.inserts = false;
  }

  /** Marks the place of an error, and moves the cursor there if wanted. */
  point(offset, move) {
    this.mark = offset;
    this.show();
    if (!move) return;
    this.area.focus();
    this.area.setSelectionRange(offset, offset);
  }

  show() {
    const parts = [];
    for (const { kind, text, at } of tokens(this.text)) {
      const upper = text.toUpperCase();
      const known = kind !== "word" ? kind : this.keywords.has(upper) ? "keyword"
        : this.functions.has(text.toLowerCase()) ? "function" : "";
      const wrong = this.mark !== null && this.mark >= at && this.mark < at + text.length && text.trim();
      parts.push(known || wrong ? el("span", { class: wrong ? `${known} wrong` : known }, text) : text);
    }
    if (this.mark !== null && this.mark >= this.text.length) parts.push(el("span", { class: "wrong" }, " "));
    // The last line has a height even if it is empty.
    this.paint.replaceChildren(...parts, "\n");
    this.area.style.height = "auto";
    this.area.style.height = `${Math.min(this.area.scrollHeight, window.innerHeight * 0.4)}px`;
    this.follow();
  }

  follow() {
    this.paint.style.height = `${this.area.clientHeight}px`;
    this.paint.scrollTop = this.area.scrollTop;
    this.paint.scrollLeft = this.area.scrollLeft;
  }

  key(event) {
    // The keys of a word that is composed are those of the input method.
    if (event.isComposing) return;
    const open = !this.list.hidden;
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      this.close();
      this.run();
    } else if (event.key === " " && event.ctrlKey) {
      event.preventDefault();
      this.complete(true);
    } else if (open && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
      event.preventDefault();
      this.choose(event.key === "ArrowDown" ? this.chosen + 1 : Math.max(this.chosen, 0) - 1);
    } else if (open && event.key === "Enter" && this.chosen < 0) {
      // A list that opened while somebody types takes no Enter.
      this.close();
    } else if (open && (event.key === "Enter" || event.key === "Tab")) {
      event.preventDefault();
      this.take(this.found[Math.max(this.chosen, 0)]);
    } else if (open && event.key === "Escape") {
      event.preventDefault();
      this.close();
    }
  }

  /** Asks for completions of the word before the cursor. Unless `wanted`, only once two letters or a quote were typed. */
  async complete(wanted) {
    this.asked?.abort();
    const at = this.area.selectionStart;
    const before = this.text.slice(0, at);
    if (!wanted && !/([\p{L}_][\p{L}\p{N}_.]+|[.'])$/u.test(before)) return this.close();
    this.asked = new AbortController();
    const { signal } = this.asked;
    try {
      if (!wanted) await new Promise((done) => setTimeout(done, 120));
      if (signal.aborted) return undefined;
      const { words, replaces } = await call("complete", { before, after: this.text.slice(at) }, signal);
      const typed = before.slice(at - replaces);
      this.start = at - replaces;
      this.found = words.filter(([, word]) => word !== typed);
    } catch {
      return this.close();
    }
    if (signal.aborted || !this.found.length || document.activeElement !== this.area) return this.close();
    this.list.replaceChildren(...this.found.map(([shown], number) => el("li", {
      role: "option", id: `word-${number}`, "aria-selected": "false",
      onmousedown: () => this.take(this.found[number]),
    }, shown)));
    this.place(this.start);
    this.list.hidden = false;
    this.chosen = -1;
    if (wanted) this.choose(0);
    return undefined;
  }

  /** Moves the list below a place of the text. */
  place(offset) {
    const range = document.createRange();
    let rest = offset;
    const walk = document.createTreeWalker(this.paint, NodeFilter.SHOW_TEXT);
    for (let node = walk.nextNode(); node; node = walk.nextNode()) {
      if (rest <= node.length) {
        range.setStart(node, rest);
        range.setEnd(node, Math.min(rest + 1, node.length));
        break;
      }
      rest -= node.length;
    }
    const [at, around] = [range.getBoundingClientRect(), this.paint.parentElement.getBoundingClientRect()];
    this.list.style.left = `${Math.max(0, Math.min(at.left - around.left, around.width - 260))}px`;
    this.list.style.top = `${at.bottom - around.top + 4}px`;
  }

  choose(number) {
    const items = [...this.list.children];
    this.chosen = (number + items.length) % items.length;
    for (const [at, item] of items.entries()) item.setAttribute("aria-selected", String(at === this.chosen));
    items[this.chosen].scrollIntoView({ block: "nearest" });
    this.area.setAttribute("aria-activedescendant", items[this.chosen].id);
    this.area.setAttribute("aria-controls", this.list.id);
  }

  take([, typed]) {
    const at = this.area.selectionStart;
    const quote = typed.endsWith("'") && this.text[at] === "'" ? 1 : 0;
    this.close();
    this.replace(this.start, at + quote, typed);
  }

  close() {
    this.asked?.abort();
    this.list.hidden = true;
    this.area.removeAttribute("aria-activedescendant");
  }
}
