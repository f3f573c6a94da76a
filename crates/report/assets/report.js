// Interactive charts on top of the static SVG drawings: a crosshair with the values of all series, zoom, switching of
// series, keyboard control. A chart that is neither zoomed nor switched is the static drawing with an overlay; otherwise
// the script draws the visible part anew from the data of the page. Print always shows the static drawing.
(() => {
  "use strict";
  const source = document.getElementById("chart-data");
  const page = source ? JSON.parse(source.textContent) : { x: [], charts: {} };

  // The same styles as in src/html/chart/mod.rs and heat.rs.
  const DASHES = ["", "8,3", "2,3", "10,3,2,3", "5,2", "6,2,1,2,1,2"];
  const SHADES = [0.01, 0.03, 0.1, 0.2, 0.4];
  const OPACITY = [0.12, 0.26, 0.42, 0.6, 0.8, 1];
  const colour = (style) => `var(--line-${style % (2 * DASHES.length)})`;
  const dash = (style) => DASHES[(style + 3 * Math.floor(style / DASHES.length)) % DASHES.length];
  // Boxes that are narrower than this get a drawing of their own width instead of the scaled static one.
  const NARROW = 640;
  const HELP = "Arrow keys move the crosshair, plus and minus zoom, Shift with arrow keys moves the zoomed part, Escape shows everything.";

  const element = (tag, attributes = {}, ...children) => {
    const svg = ["svg", "g", "path", "rect", "line", "circle", "text", "clipPath"].includes(tag);
    const made = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) if (value != null) made.setAttribute(name, value);
    made.append(...children);
    return made;
  };

  // --- Numbers and labels ---

  const number = (value) => {
    const size = Math.abs(value);
    const digits = size >= 100 || size === 0 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3;
    return value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  };
  const whole = (value) => value.toLocaleString("en-US");
  const short = (value) => {
    for (const [factor, letter] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]]) if (value >= factor) return +(value / factor).toPrecision(4) + letter;
    return String(+value.toPrecision(4));
  };
  // The share with a number of nines: 2 is 99 %.
  const nines = (n) => +(100 * (1 - 10 ** -n)).toFixed(Math.max(0, Math.ceil(n) - 1)) + " %";

  // Round values from `min` to `max`, about `count` of them, with their labels.
  const linearTicks = (min, max, count, label) => {
    const raw = (max - min) / Math.max(count, 1);
    const power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= raw * 0.999);
    const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
    const write = label || ((v) => v.toLocaleString("en-US", { minimumFractionDigits: 0, maximumFractionDigits: digits }));
    const ticks = [];
    for (let i = Math.ceil(min / step - 1e-9); i * step <= max * (1 + 1e-12) + step * 1e-9; i++) ticks.push([i * step || 0, write(i * step || 0)]);
    return ticks;
  };
  // Powers of ten; between them 2 and 5 if there are few; linear steps within less than a decade.
  const logTicks = (min, max, count) => {
    const decades = Math.log10(max / min);
    const every = Math.max(1, Math.ceil(decades / count));
    const factors = decades > 2.5 ? [1] : [1, 2, 5];
    const ticks = [];
    for (let n = Math.floor(Math.log10(min)); n <= Math.log10(max) + 1e-9; n++) {
      for (const factor of factors) {
        const value = factor * 10 ** n;
        if (n % every === 0 && value >= min * 0.999 && value <= max * 1.001) ticks.push([value, short(value)]);
      }
    }
    return ticks.length > 2 ? ticks : linearTicks(min, max, count);
  };

  // Maps values to positions and back.
  const scale = (from, to, start, end, log) => {
    const forth = log ? Math.log10 : (v) => v;
    const factor = (end - start) / (forth(to) - forth(from));
    return {
      at: (value) => start + (forth(value) - forth(from)) * factor,
      value: (at) => { const v = forth(from) + (at - start) / factor; return log ? 10 ** v : v; },
    };
  };

  // Index of the value of an ascending list that is nearest to `x`.
  const nearest = (list, x) => {
    let [low, high] = [0, list.length - 1];
    while (high - low > 1) { const middle = (low + high) >> 1; if (list[middle] < x) low = middle; else high = middle; }
    return Math.abs(list[low] - x) <= Math.abs(list[high] - x) ? low : high;
  };

  // --- A chart ---

  class Chart {
    constructor(node, data) {
      this.node = node;
      this.data = data;
      this.heat = data.kind === "heat";
      this.overTime = data.kind === "time" || this.heat;
      this.log = data.log || this.heat;
      this.full = data.xr;
      this.view = data.xr;
      this.hidden = new Set();
      this.at = null; // x of the crosshair
      this.row = null; // bin of the crosshair in a heat map
      if (this.heat) {
        this.xs = data.cells.map((_, i) => data.start + (i + 0.5) * data.width);
        this.totals = data.cells.map((cells) => cells.reduce((sum, v, i) => (i % 2 ? sum + v : sum), 0));
      } else {
        for (const series of data.series) {
          const x = page.x[series.x];
          series.points = series.y.map((y, i) => [x[i], y]);
          // Points may come in any order; a line is drawn as it comes, and read from left to right.
          series.sorted = series.points.filter((p) => p[1] != null).sort((a, b) => a[0] - b[0]);
        }
        this.xs = [...new Set(data.series.flatMap((series) => page.x[series.x]))].sort((a, b) => a - b);
      }
      this.build();
    }

    // What the script adds to the figure: tools with the values at the crosshair, buttons in the legend, the live drawing.
    build() {
      const title = this.node.querySelector("figcaption strong").textContent;
      this.box = this.node.querySelector(".chart");
      this.static = this.box.querySelector("svg");
      this.svg = element("svg", { class: "live", "aria-hidden": "true" });
      this.drawing = element("g");
      this.overlay = element("g");
      this.svg.append(this.drawing, this.overlay);
      this.box.append(this.svg);
      for (const [name, value] of Object.entries({ tabindex: "0", role: "application", "aria-label": `${title} ${HELP} The table below the chart has the values.` })) {
        this.box.setAttribute(name, value);
      }
      this.readout = element("output", { "aria-live": "off" });
      const button = (text, label, act) => {
        const made = element("button", { type: "button", "aria-label": `${label}: ${title}`, title: label }, text);
        made.addEventListener("click", act);
        return made;
      };
      this.whenZoomed = [
        button("◀", "Move left", () => this.stretch(1, -0.5)),
        button("▶", "Move right", () => this.stretch(1, 0.5)),
        button("Show all", "Show everything", () => this.reset()),
      ];
      this.whenZoomed.forEach((one) => { one.hidden = true; });
      const tools = element("div", { class: "tools" }, this.readout, ...this.whenZoomed,
        button("−", "Zoom out", () => this.stretch(2, 0)), button("+", "Zoom in", () => this.stretch(0.5, 0)));
      if (!this.heat) {
        const log = button("log", "Logarithmic y axis", () => {
          this.log = !this.log;
          log.setAttribute("aria-pressed", this.log);
          this.draw();
        });
        log.setAttribute("aria-pressed", this.log);
        tools.append(log);
      }
      this.box.parentElement.before(tools);
      for (const key of this.node.querySelectorAll("[data-series]")) {
        const n = +key.dataset.series;
        const made = element("button", { type: "button", "aria-pressed": "true", title: "Show or hide" }, ...key.childNodes);
        made.addEventListener("click", () => {
          if (!this.hidden.delete(n)) this.hidden.add(n);
          made.setAttribute("aria-pressed", !this.hidden.has(n));
          this.draw();
        });
        key.replaceWith(made);
      }
      this.listen();
    }

    // Charts over time show the same time and the same crosshair.
    get group() { return this.overTime ? charts.filter((other) => other.overTime) : [this]; }
    get zoomed() { return this.view !== this.full; }
    get logX() { return this.data.kind === "log"; }
    get shown() { return this.heat ? [] : this.data.series.filter((_, n) => !this.hidden.has(n)); }

    // Where the plot is within the drawing, and the scales of its axes.
    layout() {
      const { frame, height, xr, yr } = this.data;
      const width = this.box.clientWidth;
      this.narrow = width > 0 && width < NARROW;
      const touched = this.zoomed || this.hidden.size > 0 || this.log !== (this.heat || this.data.log);
      this.redrawn = this.narrow || touched;
      if (this.narrow) {
        this.size = [width, Math.min(height, 250)];
        this.frame = [48, 24, width - 10, this.size[1] - 38];
      } else {
        this.size = [900, height];
        this.frame = frame;
      }
      const [left, top, right, bottom] = this.frame;
      this.yRange = touched && !this.heat ? this.visibleRange() : yr;
      this.x = scale(...this.view, left, right, this.logX);
      this.y = scale(...this.yRange, bottom, top, this.log);
    }

    // Round ends of the y axis around the visible values.
    visibleRange() {
      const [from, to] = this.view;
      const values = this.shown.flatMap((series) => series.sorted.filter(([x, y]) => x >= from && x <= to && (!this.log || y > 0)).map((p) => p[1]));
      if (values.length === 0) return this.log ? [1, 10] : [0, 1];
      const max = values.reduce((a, b) => Math.max(a, b));
      if (this.log) {
        const low = Math.floor(Math.log10(values.reduce((a, b) => Math.min(a, b))));
        return [10 ** low, 10 ** Math.max(Math.ceil(Math.log10(max)), low + 1)];
      }
      if (this.data.max != null && max <= this.data.max && max > this.data.max / 2) return [0, this.data.max];
      const step = linearTicks(0, max > 0 ? max * 1.02 : 1, 5);
      return [0, step[1][0] * Math.ceil((max > 0 ? max * 1.02 : 1) / step[1][0])];
    }

    draw() {
      this.layout();
      const { box, svg, size } = this;
      svg.setAttribute("viewBox", `0 0 ${size[0]} ${size[1]}`);
      box.classList.toggle("redrawn", this.redrawn);
      this.whenZoomed.forEach((one) => { one.hidden = !this.zoomed; });
      this.drawing.replaceChildren();
      if (this.redrawn && box.clientWidth > 0) {
        this.drawAxes();
        const clip = `${this.node.id}-clip`;
        const [left, top, right, bottom] = this.frame;
        const marks = (this.data.marks || []).filter((x) => x >= this.view[0] && x <= this.view[1]).map((x) => `M${this.x.at(x)} ${top}V${bottom}`);
        this.drawing.append(
          element("clipPath", { id: clip }, element("rect", { x: left, y: top - 3, width: right - left, height: bottom - top + 6 })),
          element("g", { class: "curves", "clip-path": `url(#${clip})`, fill: "none", "stroke-width": 1.8 }, ...(this.heat ? this.cells() : this.shown.flatMap((series) => this.curve(series)))),
          element("path", { d: marks.join(""), stroke: "var(--mark)", "stroke-width": 1.5, "stroke-dasharray": "3,4" }),
        );
      }
      this.drawCursor();
    }

    drawAxes() {
      const [left, top, right, bottom] = this.frame;
      const { data, x, y } = this;
      const columns = Math.max(2, Math.floor((right - left) / 66));
      const rows = Math.max(2, Math.floor((bottom - top) / 42));
      const text = (at, content, more) => element("text", { x: at[0], y: at[1], "font-size": 12, fill: "var(--muted)", ...more }, content);
      const yTicks = this.log ? logTicks(...this.yRange, rows) : linearTicks(...this.yRange, rows);
      const wholeNines = data.kind === "nines" && this.view[1] - this.view[0] >= 1;
      const xTicks = this.logX ? logTicks(...this.view, columns)
        : wholeNines ? linearTicks(...this.view, this.view[1] - this.view[0], nines)
        : linearTicks(...this.view, columns, data.kind === "nines" ? nines : null);
      const grid = yTicks.map(([v]) => `M${left} ${y.at(v).toFixed(1)}H${right}`).join("");
      const axes = `M${left} ${top}V${bottom}H${right}` + xTicks.map(([v]) => `M${x.at(v).toFixed(1)} ${bottom}v5`).join("") + yTicks.map(([v]) => `M${left} ${y.at(v).toFixed(1)}h-5`).join("");
      this.drawing.append(element("path", { d: grid, stroke: "var(--grid)" }), element("path", { d: axes, stroke: "var(--axis)", fill: "none" }));
      for (const [value, label] of yTicks) this.drawing.append(text([left - 8, y.at(value) + 4], label, { "text-anchor": "end" }));
      let end = -Infinity;
      for (const [value, label] of xTicks) {
        const half = label.length * 3.4;
        const at = Math.min(Math.max(x.at(value), half), this.size[0] - half);
        if (at - half < end + 8) continue;
        end = at + half;
        this.drawing.append(text([at, bottom + 17], label, { "text-anchor": "middle" }));
      }
      this.drawing.append(text([(left + right) / 2, this.size[1] - 5], data.xt, { "text-anchor": "middle" }));
      this.drawing.append(this.narrow ? text([4, 13], data.yt)
        : text([0, 0], data.yt, { "text-anchor": "middle", transform: `translate(14,${(top + bottom) / 2}) rotate(-90)` }));
    }

    // The elements of a series: a line with gaps where values are missing, and points.
    curve(series) {
      const [from, to] = this.view;
      const point = ([x, y]) => `${this.x.at(x).toFixed(1)} ${this.y.at(y).toFixed(1)}`;
      const usable = ([, y]) => y != null && (!this.log || y > 0);
      const made = [];
      if (series.shape !== "points") {
        let pen = "M";
        let d = "";
        series.points.forEach((p, i) => {
          const next = series.points[i + 1] || p;
          const before = series.points[i - 1] || p;
          // One point beyond each edge, so that lines leave the picture.
          if (!usable(p) || (next[0] < from && p[0] < from) || (before[0] > to && p[0] > to)) { pen = "M"; return; }
          d += pen + point(p);
          pen = "L";
        });
        made.push(element("path", { d, stroke: colour(series.style), "stroke-dasharray": dash(series.style) || null }));
      }
      if (series.shape !== "line") {
        const d = series.points.filter((p) => usable(p) && p[0] >= from && p[0] <= to).map((p) => `M${point(p)}h0`).join("");
        made.push(element("path", { d, stroke: colour(series.style), "stroke-width": 6.5, "stroke-linecap": "round" }));
      }
      return made;
    }

    cells() {
      const { data } = this;
      const shades = OPACITY.map(() => "");
      data.cells.forEach((cells, column) => {
        const start = data.start + column * data.width;
        const [from, to] = [this.x.at(start).toFixed(1), this.x.at(start + data.width).toFixed(1)];
        for (let i = 0; i < cells.length; i += 2) {
          const share = cells[i + 1] / this.totals[column];
          const shade = SHADES.findIndex((end) => share <= end);
          const [low, high] = [data.edges[cells[i]], data.edges[cells[i] + 1]].map((v) => this.y.at(v).toFixed(1));
          shades[shade < 0 ? SHADES.length : shade] += `M${from} ${low}H${to}V${high}H${from}z`;
        }
      });
      return shades.map((d, i) => element("path", { d, fill: colour(0), "fill-opacity": OPACITY[i], stroke: "none" }));
    }

    // --- Crosshair ---

    // The values of a series at `x`: those measured there, or one on the line between its neighbours.
    valuesAt(series, x) {
      const { sorted } = series;
      const same = sorted.filter((p) => p[0] === x).map((p) => p[1]);
      if (same.length > 0 || series.shape === "points") return { values: same };
      const after = sorted.findIndex((p) => p[0] > x);
      // Where all series share their x values, a missing value is a gap.
      if (after < 1 || this.data.series.every((other) => other.x === series.x)) return { values: [] };
      const [[x0, y0], [x1, y1]] = [sorted[after - 1], sorted[after]];
      const along = (this.x.at(x) - this.x.at(x0)) / (this.x.at(x1) - this.x.at(x0));
      return { values: [this.y.value(this.y.at(y0) + along * (this.y.at(y1) - this.y.at(y0)))], between: true };
    }

    xText(x) {
      if (this.data.kind === "nines") return nines(x);
      return `${number(x)} ${this.data.xu}`;
    }

    drawCursor() {
      this.overlay.replaceChildren();
      this.readout.replaceChildren();
      const inside = this.at != null && this.at >= this.view[0] && this.at <= this.view[1];
      if (!inside || this.xs.length === 0) return;
      const [, top, , bottom] = this.frame;
      const x = this.at;
      const at = this.x.at(x);
      const line = element("line", { class: "crosshair", x1: at, x2: at, y1: top, y2: bottom });
      if (this.heat) return this.drawHeatCursor(line);
      this.overlay.append(line);
      this.readout.append(element("b", {}, this.xText(x)));
      for (const series of this.shown) {
        const { values, between } = this.valuesAt(series, x);
        if (values.length === 0) continue;
        for (const y of values.filter((y) => !this.log || y > 0)) {
          this.overlay.append(element("circle", { cx: at, cy: this.y.at(y), r: 4, fill: colour(series.style), stroke: "var(--back)", "stroke-width": 1.5 }));
        }
        const text = (between ? "≈ " : "") + values.slice(0, 3).map(number).join(", ") + (values.length > 3 ? ", …" : "");
        this.readout.append(element("span", {}, element("i", { "aria-hidden": "true", style: `background:${colour(series.style)}` }), `${series.name} `, element("b", {}, text)));
      }
      this.readout.append(element("span", {}, this.data.yt));
    }

    drawHeatCursor(line) {
      const { data } = this;
      const column = nearest(this.xs, this.at);
      const start = data.start + column * data.width;
      this.overlay.append(line);
      this.readout.append(element("b", {}, `${number(start)} to ${number(start + data.width)} ${data.xu}`));
      const of = whole(this.totals[column]);
      if (this.row == null) { this.readout.append(element("span", {}, `${of} replies`)); return; }
      const [low, high] = [data.edges[this.row], data.edges[this.row + 1]];
      const found = data.cells[column].findIndex((v, i) => i % 2 === 0 && v === this.row);
      const count = found < 0 ? 0 : data.cells[column][found + 1];
      const [left, right] = [this.x.at(start), this.x.at(start + data.width)];
      this.overlay.append(element("rect", { class: "cell", x: left, width: right - left, y: this.y.at(high), height: this.y.at(low) - this.y.at(high) }));
      this.readout.append(element("span", {}, `${number(low)} to ${number(high)} ${data.yt}: `, element("b", {}, whole(count)), ` of ${of} replies`));
    }

    // Puts the crosshair on the measured x value next to `x`; charts over time follow.
    point(x, row = null) {
      for (const other of this.group) {
        other.at = x == null ? null : other.xs[nearest(other.xs, x)];
        other.row = other === this ? row : null;
        other.drawCursor();
      }
    }

    step(by) {
      const seen = this.xs.filter((x) => x >= this.view[0] && x <= this.view[1]);
      if (seen.length === 0) return;
      const visible = this.at != null && this.at >= seen[0] && this.at <= seen[seen.length - 1];
      const i = visible ? nearest(seen, this.at) + by : by > 0 ? 0 : seen.length - 1;
      this.point(seen[Math.min(Math.max(i, 0), seen.length - 1)], this.row);
    }

    // --- Zoom ---

    zoom(min, max) {
      const [first, last] = this.limits;
      const whole = min <= first && max >= last;
      for (const other of this.group) {
        other.view = whole ? other.full : [Math.max(min, first), Math.min(max, last)];
        other.draw();
      }
    }

    // The range that the group spans.
    get limits() { return [Math.min(...this.group.map((other) => other.full[0])), Math.max(...this.group.map((other) => other.full[1]))]; }

    reset() { this.zoom(...this.limits); }

    // Makes the visible part `factor` times as wide about the crosshair, and moves it by `shift` of its width.
    stretch(factor, shift) {
      const to = (v) => (this.logX ? Math.log10(v) : v);
      const back = (v) => (this.logX ? 10 ** v : v);
      const [min, max] = this.view.map(to);
      const [first, last] = this.limits.map(to);
      const centre = this.at == null ? (min + max) / 2 : Math.min(Math.max(to(this.at), min), max);
      const width = Math.max((max - min) * factor, (last - first) / 500);
      const share = (centre - min) / (max - min);
      let low = centre - share * width + shift * (max - min);
      low = Math.min(Math.max(low, first), Math.max(first, last - width));
      this.zoom(back(low), back(low + width));
    }

    // --- Pointer and keys ---

    position(event) {
      const rect = this.svg.getBoundingClientRect();
      const factor = this.size[0] / rect.width;
      const [left, top, right, bottom] = this.frame;
      const x = Math.min(Math.max((event.clientX - rect.left) * factor, left), right);
      const y = Math.min(Math.max((event.clientY - rect.top) * factor, top), bottom);
      return [x, y];
    }

    listen() {
      const { box } = this;
      let from = null; // where a drag started
      let selection = null;
      const end = () => { if (selection) selection.remove(); from = selection = null; };
      box.addEventListener("pointerdown", (event) => {
        if (event.button !== 0 || event.pointerType === "touch") return;
        [from] = this.position(event);
      });
      box.addEventListener("pointermove", (event) => {
        const [x, y] = this.position(event);
        const bin = this.heat ? this.data.edges.findIndex((edge, i) => this.y.value(y) >= edge && this.y.value(y) < this.data.edges[i + 1]) : -1;
        this.point(this.x.value(x), bin < 0 ? null : bin);
        if (from == null || (!selection && Math.abs(x - from) < 4)) return;
        if (!selection) {
          selection = element("rect", { class: "selection", y: this.frame[1], height: this.frame[3] - this.frame[1] });
          this.svg.append(selection);
          if (event.isTrusted) box.setPointerCapture(event.pointerId);
        }
        selection.setAttribute("x", Math.min(from, x));
        selection.setAttribute("width", Math.abs(x - from));
      });
      box.addEventListener("pointerup", (event) => {
        const [x] = this.position(event);
        const [a, b] = [Math.min(from, x), Math.max(from, x)].map((at) => this.x.value(at));
        const dragged = selection != null;
        end();
        if (dragged) this.zoom(a, b);
      });
      box.addEventListener("pointercancel", end);
      box.addEventListener("pointerleave", (event) => { if (from == null && event.pointerType !== "touch") this.point(null); });
      box.addEventListener("dblclick", () => this.reset());
      box.addEventListener("focus", () => this.readout.setAttribute("aria-live", "polite"));
      box.addEventListener("blur", () => this.readout.setAttribute("aria-live", "off"));
      box.addEventListener("keydown", (event) => this.key(event, end));
    }

    key(event, endDrag) {
      const { shiftKey: shift } = event;
      const up = (by) => this.heat && this.at != null && (() => this.point(this.at, Math.min(Math.max((this.row ?? -1) + by, 0), this.data.edges.length - 2)));
      const acts = {
        ArrowLeft: () => (shift ? this.stretch(1, -0.25) : this.step(-1)),
        ArrowRight: () => (shift ? this.stretch(1, 0.25) : this.step(1)),
        ArrowUp: up(1),
        ArrowDown: up(-1),
        Home: () => this.step(-Infinity),
        End: () => this.step(Infinity),
        "+": () => this.stretch(0.5, 0),
        "=": () => this.stretch(0.5, 0),
        "-": () => this.stretch(2, 0),
        0: () => this.reset(),
        Escape: () => { endDrag(); this.point(null); this.reset(); },
      };
      const act = acts[event.key];
      if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      act();
    }
  }

  const charts = Object.entries(page.charts).map(([id, data]) => new Chart(document.getElementById(id), data));
  for (const chart of charts) chart.draw();
  // The width of a chart changes with the window, and when the fold that it is in opens.
  const sizes = new ResizeObserver((entries) => requestAnimationFrame(() => {
    for (const { target } of entries) charts.find(({ box }) => box === target).draw();
  }));
  for (const { box } of charts) sizes.observe(box);
  addEventListener("beforeprint", () => document.querySelectorAll("details.fold").forEach((fold) => { fold.open = true; }));
  document.documentElement.dataset.interactive = charts.length;
})();
