// A board on which moves are made by clicking places, with the mouse, by touch or by keyboard.
//
// `svg` is a picture made by gamelore, in which each place is a rect with the class `place` and a number in data-place.
// `paths` has for each legal move its steps, and for each step the numbers of the places that may be clicked for it.
// Emits `move` with the indices of the moves that the clicks mean: one, or several that only a menu can tell apart; and
// with the ply and the role that were shown, because another role may be asked by the time that the click arrives.
export default {
  template: `
    <div class="gl-board" role="group" :aria-label="label">
      <div ref="picture" v-html="svg" @click="onClick" @keydown="onKey"></div>
      <div class="gl-spoken" role="status" aria-live="polite">{{ spoken }}</div>
    </div>`,
  props: { svg: String, paths: Array, ply: Number, role: String, label: String, spoken: String },
  data() {
    return { clicks: [], position: "", held: null };
  },
  mounted() {
    this.redraw();
  },
  watch: {
    svg() {
      this.redraw();
    },
    paths() {
      this.redraw();
    },
  },
  methods: {
    // Show a new picture. Clicks so far are kept if it is of the same position, and the focus stays on the board.
    redraw() {
      const position = JSON.stringify([this.ply, this.role, this.paths]);
      if (position !== this.position) this.clicks = [];
      this.position = position;
      this.hold();
      this.$nextTick(() => {
        this.fit();
        this.mark();
        this.refocus();
      });
    },
    restart() {
      this.clicks = [];
      this.mark();
    },
    // Remember the place that has the focus, which a new picture replaces.
    hold() {
      const active = document.activeElement;
      const rect = this.$refs.picture?.contains(active) ? active.closest("rect.place") : null;
      if (rect) this.held = [rect.dataset.place, this.middle(rect)];
      else if (active && active !== document.body) this.held = null;
    },
    // Give the focus back to the place, or to the nearest one that can be used, as soon as there is one.
    refocus() {
      if (!this.held || document.activeElement !== document.body) return;
      const [place, [x, y]] = this.held;
      const far = (rect) => Math.hypot(this.middle(rect)[0] - x, this.middle(rect)[1] - y);
      const usable = [...this.$refs.picture.querySelectorAll('rect.place[tabindex="0"]')];
      usable.sort((a, b) => (b.dataset.place === place) - (a.dataset.place === place) || far(a) - far(b));
      usable[0]?.focus({ preventScroll: true });
    },
    middle(rect) {
      return [rect.x.baseVal.value + rect.width.baseVal.value / 2, rect.y.baseVal.value + rect.height.baseVal.value / 2];
    },
    // Fill the room there is, but keep small pictures small, and long ones large enough to be read.
    fit() {
      const svg = this.$refs.picture?.querySelector("svg");
      if (!svg) return;
      const { width, height } = svg.viewBox.baseVal;
      const most = svg.querySelector("rect.place") ? 2.6 : 1.4; // a picture without a board is text
      const high = `max(${(72 * width) / height}vh, ${0.55 * width}px)`;
      svg.style.width = `min(100%, 40rem, ${most * width}px, ${high})`;
    },
    matching(clicks) {
      const fits = (path) => path.length >= clicks.length && clicks.every((place, i) => path[i].includes(place));
      return (this.paths || []).map((path, i) => [path, i]).filter(([path]) => path.length && fits(path));
    },
    // Mark the places that can be clicked next, and those that were clicked.
    mark() {
      const next = new Set();
      for (const [path] of this.matching(this.clicks))
        if (path.length > this.clicks.length) path[this.clicks.length].forEach((place) => next.add(place));
      if (this.clicks.length) next.add(this.clicks.at(-1));
      const starts = new Set();
      for (const [path] of this.matching([])) path[0].forEach((place) => starts.add(place));
      for (const rect of this.$refs.picture.querySelectorAll("rect.place")) {
        const place = Number(rect.dataset.place);
        const usable = next.has(place) || starts.has(place);
        rect.classList.toggle("gl-next", next.has(place));
        rect.classList.toggle("gl-clicked", this.clicks.includes(place));
        rect.setAttribute("role", usable ? "button" : "img"); // screen readers name both
        usable ? rect.setAttribute("tabindex", "0") : rect.removeAttribute("tabindex");
      }
    },
    onClick(event) {
      const rect = event.target.closest("rect.place");
      if (rect) this.clicked(Number(rect.dataset.place));
    },
    clicked(place) {
      let clicks = [...this.clicks, place];
      if (!this.matching(clicks).length) {
        if (this.clicks.at(-1) === place) return this.restart(); // takes the click back
        clicks = [place]; // begins anew with another piece
      }
      const moves = this.matching(clicks);
      this.clicks = moves.length ? clicks : [];
      if (moves.length && moves.every(([path]) => path.length === clicks.length)) {
        this.$emit("move", { indices: moves.map(([, i]) => i), ply: this.ply, role: this.role });
        this.clicks = [];
      }
      this.mark();
    },
    onKey(event) {
      const rect = event.target.closest("rect.place");
      if (event.key === "Escape") return this.restart();
      if (!rect) return;
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        return this.clicked(Number(rect.dataset.place));
      }
      const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
      if (!step) return;
      event.preventDefault();
      this.neighbour(rect, step)?.focus();
    },
    // Return the nearest usable place in a direction.
    neighbour(rect, [dx, dy]) {
      const [x, y] = this.middle(rect);
      let best = null;
      for (const other of this.$refs.picture.querySelectorAll('rect.place[tabindex="0"]')) {
        const [ox, oy] = this.middle(other);
        const ahead = (ox - x) * dx + (oy - y) * dy;
        const aside = Math.abs((ox - x) * dy) + Math.abs((oy - y) * dx);
        if (ahead > 1 && (!best || ahead + 3 * aside < best[0])) best = [ahead + 3 * aside, other];
      }
      return best && best[1];
    },
  },
};
