// An editor for rulesheets: CodeMirror, as NiceGUI ships it, with the colours of GDL and marks at findings.
//
// The browser has the text. It is sent as a whole: after a pause, when the editor loses the focus, when the page is left,
// and again until the server has received it, because messages get lost with a connection. What was not received is kept
// in the session of the tab, so that a reload finds it. `edits` counts the changes made here; what the server says about
// another count is out of date, and is ignored. `base` is the revision of the draft that the text was made from, so that
// the server sees whether another tab has changed the draft meanwhile.
// Texts of findings are set as text, never as HTML.
//
// Emits `typed` with {text, edits, base}, `toolong` with the length of a text that cannot be sent, and `save` for Ctrl+S.
import * as CM from "nicegui-codemirror";

const PAUSE = 250; // milliseconds without a change
const AGAIN = 1500; // milliseconds until a text is sent again that the server has not received
const MOST = 950_000; // characters of a message
const WORD = /;.*|\?[^\s();]+|[^\s();?][^\s();]*/g;
const KEYWORDS = new Set(
  "<= role init true does next legal goal terminal distinct not or and base input sees random".split(" "),
);

function kind(word) {
  if (word.startsWith(";")) return "comment";
  if (word.startsWith("?")) return "variable";
  if (KEYWORDS.has(word.toLowerCase())) return "keyword";
  return /^[+-]?\d+$/.test(word) ? "number" : "name";
}

const looks = Object.fromEntries(
  ["comment", "variable", "keyword", "number", "name"].map((name) => [
    name,
    CM.Decoration.mark({ class: `gl-gdl-${name}` }),
  ]),
);
const matcher = new CM.MatchDecorator({ regexp: WORD, decoration: (match) => looks[kind(match[0])] });
const colours = CM.ViewPlugin.fromClass(
  class {
    constructor(view) {
      this.decorations = matcher.createDeco(view);
    }
    update(update) {
      this.decorations = matcher.updateDeco(update, this.decorations);
    }
  },
  { decorations: (plugin) => plugin.decorations },
);

const setMarks = CM.StateEffect.define();
const marks = CM.StateField.define({
  create: () => CM.Decoration.none,
  update(set, transaction) {
    set = set.map(transaction.changes);
    for (const effect of transaction.effects) if (effect.is(setMarks)) set = effect.value;
    return set;
  },
  provide: (field) => CM.EditorView.decorations.from(field),
});

// Return the findings between two places, errors first.
function findingsAt(state, from, to) {
  const findings = [];
  state.field(marks).between(from, to, (start, end, mark) => void findings.push(mark.spec.finding));
  return findings.sort((a, b) => (a.severity < b.severity ? -1 : a.severity > b.severity ? 1 : 0));
}

class Sign extends CM.GutterMarker {
  constructor(severity, text) {
    super();
    this.severity = severity;
    this.text = text;
  }
  eq(other) {
    return other.severity === this.severity && other.text === this.text;
  }
  toDOM() {
    const sign = document.createElement("span");
    sign.className = `gl-sign gl-${this.severity}`;
    sign.textContent = this.severity === "error" ? "✖" : "▲";
    sign.title = this.text;
    return sign;
  }
}

const gutter = CM.gutter({
  class: "gl-signs",
  lineMarker(view, line) {
    const findings = findingsAt(view.state, line.from, line.to);
    return findings.length ? new Sign(findings[0].severity, findings.map((f) => f.message).join("\n")) : null;
  },
  lineMarkerChange: (update) => update.startState.field(marks) !== update.state.field(marks),
  initialSpacer: () => new Sign("warning", ""),
});

const tooltip = CM.hoverTooltip((view, place) => {
  const findings = findingsAt(view.state, place, place);
  if (!findings.length) return null;
  return {
    pos: place,
    create() {
      const dom = document.createElement("div");
      dom.className = "gl-tip";
      for (const { severity, message, remedy } of findings) {
        const line = dom.appendChild(document.createElement("div"));
        line.textContent = `${severity}: ${message}${remedy ? ` - remedy: ${remedy}` : ""}`;
      }
      return { dom };
    },
  };
});

// Return the place of a line and a column, both counted from 1; a column counts characters, not UTF-16 units.
function placeOf(doc, line, column) {
  const at = doc.line(Math.max(1, Math.min(line, doc.lines)));
  const before = Array.from(at.text).slice(0, Math.max(0, column - 1)).join("");
  return Math.min(at.from + before.length, at.to);
}

// Return the end of what begins at a place: a list up to its closing parenthesis or the end of its line, else a word.
function endOf(doc, from) {
  const line = doc.lineAt(from);
  const rest = line.text.slice(from - line.from);
  let depth = 0;
  for (let i = 0; rest[0] === "(" && i < rest.length; i++) {
    depth += rest[i] === "(" ? 1 : rest[i] === ")" ? -1 : 0;
    if (depth === 0) return from + i + 1;
  }
  const length = rest[0] === "(" ? rest.length : (rest.match(/^[^\s();]+/) || [rest.slice(0, 1)])[0].length;
  return from + length;
}

export default {
  template: `<div class="gl-editor"></div>`,
  props: { text: String, revision: Number, writable: Boolean, label: String, sheet: String },
  watch: {
    writable(value) {
      this.view.dispatch({ effects: this.access.reconfigure(this.permission(value)) });
    },
  },
  mounted() {
    this.edits = this.sent = this.received = 0; // the numbers of changes made, sent, and received by the server
    this.base = this.revision;
    this.access = new CM.Compartment();
    this.theme = new CM.Compartment();
    this.view = new CM.EditorView({ doc: this.text, extensions: this.extensions(), parent: this.$el });
    this.observer = new MutationObserver(() => this.view.dispatch({ effects: this.theme.reconfigure(this.shades()) }));
    this.observer.observe(document.body, { attributes: true, attributeFilter: ["class"] });
    this.onLeave = () => (this.send(), this.store());
    window.addEventListener("pagehide", this.onLeave);
    this.restore();
  },
  beforeUnmount() {
    this.send();
    this.observer.disconnect();
    window.removeEventListener("pagehide", this.onLeave);
    clearTimeout(this.timer);
    this.view.destroy();
  },
  methods: {
    extensions() {
      const changed = CM.EditorView.updateListener.of((update) => {
        const isOurs = update.docChanged && !update.transactions.some((part) => part.annotation(CM.Transaction.remote));
        if (isOurs) this.onEdit();
      });
      const keys = [
        { key: "Mod-s", run: () => (this.send(), this.$emit("save", {}), true) },
        { key: "F8", run: () => this.goToNext() },
        CM.indentWithTab,
      ];
      const language = [{ commentTokens: { line: ";" }, closeBrackets: { brackets: ["("] } }];
      return [
        CM.Prec.high(CM.keymap.of(keys)),
        gutter,
        CM.basicSetup,
        marks,
        colours,
        tooltip,
        changed,
        CM.EditorView.lineWrapping,
        CM.indentUnit.of("    "),
        CM.EditorState.languageData.of(() => language),
        CM.EditorView.contentAttributes.of({ "aria-label": this.label, spellcheck: "false" }),
        CM.EditorView.domEventHandlers({ blur: () => void this.send() }),
        this.theme.of(this.shades()),
        this.access.of(this.permission(this.writable)),
      ];
    },
    permission(writable) {
      return [CM.EditorState.readOnly.of(!writable)];
    },
    // Return the colours that are not those of words, for the bright or the dark page.
    shades() {
      const rules = {
        "&": { height: "100%", color: "var(--gl-ink)", backgroundColor: "var(--gl-paper)", fontSize: "13px" },
        ".cm-scroller": { overflow: "auto", fontFamily: "ui-monospace, Consolas, monospace" },
        ".cm-content": { caretColor: "var(--gl-ink)" },
        ".cm-cursor": { borderLeftColor: "var(--gl-ink)" },
        ".cm-gutters": { color: "var(--gl-faint)", backgroundColor: "var(--gl-paper)", border: "none" },
        ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "rgba(128, 150, 180, 0.13)" },
      };
      return CM.EditorView.theme(rules, { dark: document.body.classList.contains("body--dark") });
    },
    // ---- sending
    onEdit() {
      this.edits++;
      this.sendAfter(PAUSE);
    },
    sendAfter(pause) {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.send(true), pause);
    },
    send(again) {
      if (this.received === this.edits || (this.sent === this.edits && !again)) return;
      const text = this.view.state.doc.toString().replace(/\p{Surrogate}/gu, "\ufffd"); // which no JSON may have
      if (JSON.stringify(JSON.stringify(text)).length > MOST) return this.$emit("toolong", { length: text.length });
      if (window.socket?.connected) {
        this.sent = this.edits;
        this.$emit("typed", { text, edits: this.edits, base: this.base });
      } else {
        this.store();
      }
      this.sendAfter(AGAIN);
    },
    confirm(edits, revision) {
      this.received = edits;
      this.base = revision;
      if (edits !== this.edits) return;
      clearTimeout(this.timer);
      sessionStorage.removeItem(this.storageKey());
    },
    storageKey() {
      return `gamelore ${this.sheet}`;
    },
    store() {
      if (this.received === this.edits) return;
      try {
        const kept = { text: this.view.state.doc.toString(), base: this.base };
        sessionStorage.setItem(this.storageKey(), JSON.stringify(kept));
      } catch (error) {
        console.warn("the text is too long for the storage of the browser", error);
      }
    },
    // Take over a text that could not be sent before the page was loaded again.
    restore() {
      const kept = JSON.parse(sessionStorage.getItem(this.storageKey()));
      sessionStorage.removeItem(this.storageKey());
      if (kept === null) return;
      this.base = kept.base;
      this.change(kept.text);
    },
    // ---- what the server asks for
    change(text, annotations) {
      const old = this.view.state.doc.toString();
      let from = 0;
      let [oldEnd, newEnd] = [old.length, text.length];
      while (from < oldEnd && from < newEnd && old[from] === text[from]) from++;
      while (oldEnd > from && newEnd > from && old[oldEnd - 1] === text[newEnd - 1]) oldEnd--, newEnd--;
      if (from < oldEnd || from < newEnd)
        this.view.dispatch({ changes: { from, to: oldEnd, insert: text.slice(from, newEnd) }, annotations });
    },
    replace(text, edits, revision) {
      if (edits !== this.edits) return this.send();
      this.base = revision;
      this.change(text, CM.Transaction.remote.of(true));
    },
    mark(findings, edits) {
      if (edits !== this.edits) return;
      const doc = this.view.state.doc;
      const ranges = [];
      for (const finding of findings) {
        const from = placeOf(doc, finding.line, finding.column);
        const to = endOf(doc, from);
        const look = { class: `gl-mark gl-mark-${finding.severity}`, finding };
        if (to > from) ranges.push(CM.Decoration.mark(look).range(from, to));
      }
      this.view.dispatch({ effects: setMarks.of(CM.Decoration.set(ranges, true)) });
    },
    go(line, column) {
      const anchor = placeOf(this.view.state.doc, line, column);
      const effects = CM.EditorView.scrollIntoView(anchor, { y: "center" });
      this.view.dispatch({ selection: { anchor }, effects });
      this.view.focus();
    },
    goToNext() {
      const places = [];
      this.view.state.field(marks).between(0, this.view.state.doc.length, (from) => void places.push(from));
      if (!places.length) return true;
      const here = this.view.state.selection.main.head;
      const anchor = places.find((place) => place > here) ?? places[0];
      this.view.dispatch({ selection: { anchor }, scrollIntoView: true });
      return true;
    },
  },
};
