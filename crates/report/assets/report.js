// Interactive figures: zoom, toggles and values under the cursor, on top of the static ones. Without this script the page
// shows the same figures as drawings; on paper it does so too.
(() => {
  "use strict";
  const DASHES = [[], [8, 3], [2, 3], [10, 3, 2, 3], [5, 2], [1, 2]];
  const SHADES = [0.01, 0.03, 0.1, 0.2, 0.4];
  const OPACITY = [0.12, 0.26, 0.42, 0.6, 0.8, 1];
  const HEIGHT = 300;

  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const element = (tag, attributes = {}, text = "") => {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.textContent = text;
    return made;
  };

  const number = (value) => {
    if (value == null) return "–";
    const size = Math.abs(value);
    const digits = size >= 100 || size === 0 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3;
    return value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  };
  const nines = (n) => {
    const share = 100 * (1 - 10 ** -n);
    return share.toFixed(Math.max(0, Math.ceil(n) - 2 + (Number.isInteger(n) ? 0 : 1))) + " %";
  };
  const decade = (value) => {
    if (value >= 1e9) return value / 1e9 + "G";
    if (value >= 1e6) return value / 1e6 + "M";
    if (value >= 1e3) return value / 1e3 + "k";
    return String(+value.toPrecision(3));
  };
  const xText = (data, x) => {
    if (x == null) return "";
    if (data.k === "nines") return nines(x);
    if (data.k === "percent") return number(x) + " %";
    if (data.k === "time" || data.k === "heat") return number(x) + " " + data.xt.split(" ")[0];
    return data.xt + " " + number(x);
  };

  // All figures over time show the same stretch of it.
  const overTime = new Set();
  const isTime = (data) => data.k === "time" || data.k === "heat";

  const zoom = (figure, min, max) => {
    const [first, last] = figure.full;
    const least = (last - first) / 500;
    if (max - min < least) max = min + least;
    const range = min <= first && max >= last ? null : [Math.max(min, first), Math.min(max, last)];
    for (const other of isTime(figure.data) ? overTime : [figure]) {
      other.range = range;
      if (other.plot) other.plot.setScale("x", { min: (range || other.full)[0], max: (range || other.full)[1] });
    }
  };
  const shown = (figure) => figure.range || figure.full;
  // A step in the figure's own scale: factors on a logarithmic axis, differences elsewhere.
  const stretch = (figure, about, factor, shift) => {
    const log = figure.data.k === "log";
    const to = (v) => (log ? Math.log10(v) : v);
    const back = (v) => (log ? 10 ** v : v);
    const [min, max] = shown(figure).map(to);
    const [first, last] = figure.full.map(to);
    const centre = about == null ? (min + max) / 2 : to(about);
    let low = centre - (centre - min) * factor + (max - min) * shift;
    let high = centre + (max - centre) * factor + (max - min) * shift;
    if (shift && low < first) [low, high] = [first, first + high - low];
    if (shift && high > last) [low, high] = [last - (high - low), last];
    zoom(figure, back(low), back(high));
  };

  // Series with x values of their own are laid on one common list of x values.
  const aligned = (data) => {
    if (data.x) return [data.x, ...data.series.map((s) => s.y)];
    const tables = data.series.map((s) => {
      const order = s.x.map((_, i) => i).sort((a, b) => s.x[a] - s.x[b]);
      return [order.map((i) => s.x[i]), order.map((i) => s.y[i])];
    });
    const xs = [];
    const counts = new Map();
    for (const [x] of tables) {
      const seen = new Map();
      for (const v of x) seen.set(v, (seen.get(v) || 0) + 1);
      for (const [v, n] of seen) counts.set(v, Math.max(n, counts.get(v) || 0));
    }
    for (const v of [...counts.keys()].sort((a, b) => a - b)) for (let i = 0; i < counts.get(v); i++) xs.push(v);
    return [xs, ...tables.map(([x, y]) => {
      let at = 0;
      return xs.map((v) => (at < x.length && x[at] === v ? y[at++] : undefined));
    })];
  };

  const axis = (data, vertical) => {
    const base = {
      stroke: () => css("--muted"),
      grid: { stroke: () => css("--grid"), width: 1 },
      ticks: { stroke: () => css("--axis"), width: 1, size: 5 },
      font: "12px system-ui, sans-serif",
      labelFont: "12px system-ui, sans-serif",
      label: vertical ? data.yt : data.xt,
      labelSize: 18,
      size: vertical ? 58 : 34,
    };
    const log = vertical ? data.log : data.k === "log";
    if (log) base.values = (u, values) => values.map((v) => (v != null && Number.isInteger(+Math.log10(v).toFixed(9)) ? decade(v) : ""));
    else if (!vertical && data.k === "nines") {
      base.splits = (u, i, min, max) => {
        const all = [];
        for (let n = Math.ceil(min - 1e-9); n <= max + 1e-9; n++) all.push(n);
        return all;
      };
      base.values = (u, values) => values.map(nines);
    } else base.values = (u, values) => values.map((v) => (v == null ? "" : String(+v.toPrecision(6))));
    return base;
  };

  const drawMarks = (u, marks) => {
    const { left, top, width, height } = u.bbox;
    u.ctx.save();
    u.ctx.strokeStyle = css("--mark");
    u.ctx.setLineDash([3 * devicePixelRatio, 4 * devicePixelRatio]);
    u.ctx.lineWidth = devicePixelRatio;
    for (const at of marks) {
      const x = Math.round(u.valToPos(at, "x", true));
      if (x < left || x > left + width) continue;
      u.ctx.beginPath();
      u.ctx.moveTo(x, top);
      u.ctx.lineTo(x, top + height);
      u.ctx.stroke();
    }
    u.ctx.restore();
  };

  const drawCells = (u, data) => {
    const { ctx, bbox } = u;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    ctx.fillStyle = css("--line-0");
    const ys = data.edges.map((edge) => u.valToPos(edge, "y", true));
    data.x.forEach((start, column) => {
      const from = u.valToPos(start, "x", true);
      const to = u.valToPos(start + data.w, "x", true);
      if (to < bbox.left || from > bbox.left + bbox.width) return;
      const cells = data.cells[column];
      for (let i = 0; i < cells.length; i += 2) {
        const share = cells[i + 1] / data.totals[column];
        let shade = SHADES.findIndex((end) => share <= end);
        if (shade < 0) shade = SHADES.length;
        ctx.globalAlpha = OPACITY[shade];
        ctx.fillRect(from, ys[cells[i] + 1], to - from, ys[cells[i]] - ys[cells[i] + 1]);
      }
    });
    ctx.restore();
  };

  const heatText = (u, data) => {
    const { left, top } = u.cursor;
    if (left == null || left < 0) return "";
    const column = data.x.findIndex((start) => u.posToVal(left, "x") >= start && u.posToVal(left, "x") < start + data.w);
    if (column < 0) return "";
    const value = u.posToVal(top, "y");
    const bin = data.edges.findIndex((edge, i) => value >= edge && value < data.edges[i + 1]);
    const at = data.cells[column].findIndex((v, i) => i % 2 === 0 && v === bin);
    const count = at < 0 ? 0 : data.cells[column][at + 1];
    const range = bin < 0 ? "" : ` · ${number(data.edges[bin])} to ${number(data.edges[bin + 1])} ${data.yt}`;
    return `${xText(data, data.x[column])}${range}: ${count.toLocaleString("en-US")} of ${data.totals[column].toLocaleString("en-US")} replies`;
  };

  const options = (figure, width) => {
    const { data, output } = figure;
    const heat = data.k === "heat";
    const dist = (log) => (log ? { distr: 3, log: 10 } : {});
    const yRange = data.log
      ? (u, min, max) => (min == null ? [1, 10] : [10 ** Math.floor(Math.log10(min)), 10 ** Math.ceil(Math.log10(max) + 1e-9)])
      : (u, min, max) => [0, data.max != null && !(max > data.max) ? data.max : (max || 1) * 1.06];
    const colour = (s) => () => css(`--line-${s % (2 * DASHES.length)}`);
    // The second half of the colours has the dashes in another order.
    const dash = (s) => DASHES[(s + 3 * Math.floor(s / DASHES.length)) % DASHES.length];
    const series = heat
      ? [{ show: false }]
      : data.series.map((s) => ({
          label: s.n,
          stroke: colour(s.s),
          width: s.p ? 0 : 1.8,
          dash: dash(s.s),
          paths: s.p ? () => null : undefined,
          points: s.p ? { show: true, size: 6, fill: colour(s.s), stroke: colour(s.s) } : { show: false },
          spanGaps: false,
        }));
    return {
      width,
      height: HEIGHT,
      legend: { show: false },
      padding: [8, 16, 0, 0],
      scales: {
        x: { time: false, ...dist(data.k === "log"), auto: false, range: () => shown(figure) },
        y: heat ? { ...dist(true), auto: false, range: () => [data.edges[0], data.edges[data.edges.length - 1]] } : { ...dist(data.log), range: yRange },
      },
      axes: [axis(data, false), axis(heat ? { ...data, log: true } : data, true)],
      series: [{}, ...series],
      cursor: {
        drag: { x: true, y: false, setScale: false },
        sync: isTime(data) ? { key: "time", scales: ["x", null] } : undefined,
        points: { size: 7 },
        y: heat,
      },
      hooks: {
        drawAxes: heat ? [(u) => drawCells(u, data)] : [],
        draw: [(u) => drawMarks(u, data.marks)],
        setSelect: [(u) => {
          if (u.select.width < 4) return;
          zoom(figure, u.posToVal(u.select.left, "x"), u.posToVal(u.select.left + u.select.width, "x"));
          u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
        }],
        setCursor: [(u) => {
          if (heat) { output.textContent = heatText(u, data); return; }
          const i = u.cursor.idx;
          if (i == null || u.cursor.left < 0) { output.textContent = ""; return; }
          const parts = data.series.map((s, n) => (u.series[n + 1].show && u.data[n + 1][i] != null ? `${s.n} ${number(u.data[n + 1][i])}` : null));
          output.textContent = [xText(data, u.data[0][i]), ...parts.filter((part) => part)].join(" · ");
        }],
      },
    };
  };

  const build = (figure) => {
    const { data, box } = figure;
    const values = data.k === "heat" ? [[data.x[0], data.x[data.x.length - 1] + data.w], [data.edges[0], data.edges[data.edges.length - 1]]] : aligned(data);
    figure.node.classList.add("live");
    const width = Math.max(box.clientWidth, 320);
    figure.plot = new uPlot(options(figure, width), values, box);
    // The legend's state may be older than the plot.
    figure.off.forEach((n) => figure.plot.setSeries(n + 1, { show: false }));
    figure.plot.over.addEventListener("dblclick", () => zoom(figure, ...figure.full));
  };

  const button = (text, label, act) => {
    const made = element("button", { type: "button", "aria-label": label, title: label }, text);
    made.addEventListener("click", act);
    return made;
  };

  const keys = (figure, event) => {
    const { plot } = figure;
    const step = (by) => {
      const xs = plot.data[0];
      const [min, max] = shown(figure);
      let i = plot.cursor.idx == null || plot.cursor.left < 0 ? (by > 0 ? -1 : xs.length) : plot.cursor.idx;
      do i += by; while (i >= 0 && i < xs.length && (xs[i] < min || xs[i] > max));
      if (i >= 0 && i < xs.length) plot.setCursor({ left: plot.valToPos(xs[i], "x"), top: plot.over.clientHeight / 2 });
    };
    const acts = {
      ArrowLeft: () => (event.shiftKey ? stretch(figure, null, 1, -0.25) : step(-1)),
      ArrowRight: () => (event.shiftKey ? stretch(figure, null, 1, 0.25) : step(1)),
      "+": () => stretch(figure, null, 0.5, 0),
      "-": () => stretch(figure, null, 2, 0),
      0: () => zoom(figure, ...figure.full),
      Escape: () => zoom(figure, ...figure.full),
    };
    const act = acts[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey || !plot) return;
    event.preventDefault();
    act();
  };

  const tools = (figure) => {
    const bar = element("div", { class: "tools", role: "group", "aria-label": "Zoom" });
    bar.append(
      button("+", "Zoom in", () => stretch(figure, null, 0.5, 0)),
      button("−", "Zoom out", () => stretch(figure, null, 2, 0)),
      button("◀", "Earlier or smaller", () => stretch(figure, null, 1, -0.5)),
      button("▶", "Later or larger", () => stretch(figure, null, 1, 0.5)),
      button("All", "Show everything", () => zoom(figure, ...figure.full)),
    );
    if (figure.data.k !== "heat") {
      const log = button("log", "Logarithmic scale of values", () => {
        figure.data.log = !figure.data.log;
        log.setAttribute("aria-pressed", figure.data.log);
        rebuild(figure);
      });
      log.setAttribute("aria-pressed", figure.data.log);
      bar.append(log);
    }
    bar.append(figure.output);
    return bar;
  };

  const rebuild = (figure) => {
    if (!figure.plot) return;
    figure.plot.destroy();
    build(figure);
  };

  const toggles = (figure) => {
    for (const key of figure.node.querySelectorAll("[data-series]")) {
      const n = +key.dataset.series;
      const made = element("button", { type: "button", "aria-pressed": "true", title: "Show or hide" });
      made.append(...key.childNodes);
      made.addEventListener("click", () => {
        const show = figure.off.has(n);
        if (show) figure.off.delete(n); else figure.off.add(n);
        made.setAttribute("aria-pressed", show);
        if (figure.plot) figure.plot.setSeries(n + 1, { show });
      });
      key.replaceWith(made);
    }
  };

  const figures = [...document.querySelectorAll("figure")].flatMap((node) => {
    const source = node.querySelector('script[type="application/json"]');
    if (!source) return [];
    const data = JSON.parse(source.textContent);
    const label = node.querySelector("figcaption strong").textContent;
    const box = element("div", { class: "plot", tabindex: "0", role: "application",
      "aria-label": `${label} Arrow keys read values, plus and minus zoom, shift and arrow keys move, 0 shows everything. The table below has the values.` });
    const figure = { node, data, box, output: element("output", { "aria-live": "polite" }), off: new Set(), range: null, plot: null };
    if (data.k === "heat") {
      data.totals = data.cells.map((cells) => cells.reduce((sum, v, i) => (i % 2 ? sum + v : sum), 0));
      figure.full = [Math.min(0, data.x[0]), data.x[data.x.length - 1] + data.w];
    } else {
      const xs = data.x || data.series.flatMap((s) => s.x);
      const [first, last] = [xs.reduce((a, b) => Math.min(a, b)), xs.reduce((a, b) => Math.max(a, b))];
      if (data.k === "log") figure.full = [10 ** Math.floor(Math.log10(first)), 10 ** Math.ceil(Math.log10(last) + 1e-9)];
      else if (isTime(data) || data.k === "linear") figure.full = [Math.min(0, first), last > 0 ? last * (data.k === "linear" ? 1.03 : 1) : 1];
      else figure.full = [first, last];
    }
    if (isTime(data)) overTime.add(figure);
    toggles(figure);
    node.querySelector(".static").before(tools(figure), box);
    box.addEventListener("keydown", (event) => keys(figure, event));
    return [figure];
  });
  // Figures over time end where the longest of them ends.
  const end = Math.max(...[...overTime].map((figure) => figure.full[1]));
  overTime.forEach((figure) => { figure.full = [0, end]; });

  // Drawn when they come into sight; there may be many.
  const near = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      const figure = figures.find((one) => one.node === entry.target);
      if (entry.isIntersecting && !figure.plot) build(figure);
    }
  }, { rootMargin: "800px" });
  figures.forEach((figure) => near.observe(figure.node));

  let waiting = 0;
  addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => figures.forEach(({ plot, box }) => {
      if (plot && box.clientWidth) plot.setSize({ width: Math.max(box.clientWidth, 320), height: HEIGHT });
    }), 100);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => figures.forEach(({ plot }) => plot && plot.redraw(false, true)));
  addEventListener("beforeprint", () => document.querySelectorAll("details.fold").forEach((fold) => { fold.open = true; }));
  document.documentElement.dataset.interactive = figures.length;
})();
