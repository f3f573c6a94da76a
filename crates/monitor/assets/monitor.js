// The page of `polygraph mon --web`: reads server-sent events, keeps what processes have said, and draws it.
// It makes no request except to the monitor that served it.
"use strict";
(() => {
  const SILENT_S = 15;
  const MOST_POINTS = 3600;
  // Points of a curve: more than there are pixels would only cost time.
  const STEPS = 240;
  const SIDES = ["client", "server"];
  const SVG = "http://www.w3.org/2000/svg";
  const [WIDTH, HEIGHT, LEFT, TOP, BOTTOM] = [420, 130, 46, 8, 18];

  const $ = (selector) => document.querySelector(selector);
  const processes = new Map();
  const phases = [];
  const view = { side: "", grouping: "processes", words: "", span_s: 300, selected: null, detail: false, paused: false, hover: null };
  let connected = false;

  // A point is what was counted between two messages. Sums of several processes add up; see `LiveCounts`.
  const point = (list) => {
    const [at, seconds, ok, failed, rptm_us, basic, hits, open] = list;
    return { at, seconds, ok, failed, rptm_us, basic, hits, open };
  };
  const pointOf = ({ start_unix_us, elapsed_s, interval, open_connections }) => ({
    at: start_unix_us / 1e6 + elapsed_s,
    seconds: interval.seconds, ok: interval.ok, failed: interval.failed, rptm_us: interval.rptm_us,
    basic: interval.basic, hits: interval.hits, open: open_connections,
  });
  const perSecond = (counts, value) => (counts.seconds > 0 ? value / counts.seconds : null);
  const ratio = (part, whole) => (whole > 0 ? part / whole : null);

  const CHARTS = [
    { id: "rate", title: "Replies per second", unit: "/s", sides: SIDES, value: (sum) => sum.rate },
    { id: "rptm", title: "Mean response time", unit: "ms", sides: SIDES, value: (sum) => (sum.ok > 0 ? sum.rptm_us / sum.ok / 1000 : null) },
    { id: "hits", title: "Document hit ratio", unit: "%", sides: ["client"], value: (sum) => (sum.basic > 0 ? (sum.hits / sum.basic) * 100 : null) },
    { id: "failed", title: "Errors per second", unit: "/s", sides: SIDES, value: (sum) => sum.errors },
    { id: "open", title: "Open connections", unit: "", sides: SIDES, value: (sum) => sum.open },
  ];

  // Numbers as people read them.
  const number = (value, digits = 1) => (value === null || value === undefined || Number.isNaN(value) ? "–"
    : value.toLocaleString("en", { maximumFractionDigits: digits, minimumFractionDigits: value < 100 ? digits : 0 }));
  const ms = (value) => (value === null || value === undefined ? "–"
    : value >= 10000 ? `${number(value / 1000)} s` : `${number(value, value < 10 ? 2 : 0)} ms`);

  const keyText = ({ host, pid, side }) => `${side} ${host}:${pid}`;
  const now_s = () => performance.now() / 1000;

  // Messages ----------------------------------------------------------------------------------------------------

  const isSameRun = (one, other) =>
    one.side === other.side && one.start_unix_us === other.start_unix_us && one.start_unix_us > 0;

  const take = (latest, points, seen_s) => {
    const key = keyText(latest);
    const known = processes.get(key);
    // A notification says less than the process itself.
    if (latest.version === "" && [...processes.values()].some((one) => one.latest.version !== "" && isSameRun(one.latest, latest))) return;
    if (latest.version !== "") {
      for (const [name, one] of processes) if (one.latest.version === "" && isSameRun(one.latest, latest)) processes.delete(name);
    }
    const isNewRun = !known || known.latest.start_unix_us !== latest.start_unix_us;
    const kept = isNewRun ? [] : known.points;
    for (const one of points) {
      if (one.seconds > 0 && (kept.length === 0 || one.at > kept[kept.length - 1].at)) kept.push(one);
    }
    if (kept.length > MOST_POINTS) kept.splice(0, kept.length - MOST_POINTS);
    notePhase(latest);
    processes.set(key, { latest, points: kept, seen_s, lost: false });
  };

  const notePhase = ({ side, phase, start_unix_us, elapsed_s }) => {
    if (!phase || side !== "client") return;
    const at = start_unix_us / 1e6 + elapsed_s - phase.elapsed_s;
    if (!phases.some((one) => one.name === phase.name && Math.abs(one.at - at) < 3)) phases.push({ name: phase.name, at });
    if (phases.length > 200) phases.shift();
  };

  const connect = () => {
    const source = new EventSource(`/events${location.search}`);
    source.addEventListener("open", () => { connected = true; });
    source.addEventListener("error", () => {
      connected = false;
      draw();
    });
    source.addEventListener("history", (event) => {
      processes.clear();
      for (const one of JSON.parse(event.data)) {
        take(one.latest, one.points.map(point), now_s() - one.silent_s);
        const kept = processes.get(keyText(one.key));
        if (kept) kept.lost = one.lost;
      }
      draw();
    });
    source.addEventListener("statistics", (event) => {
      const latest = JSON.parse(event.data);
      take(latest, [pointOf(latest)], now_s());
      schedule();
    });
    source.addEventListener("lost", (event) => {
      for (const key of JSON.parse(event.data)) {
        const process = processes.get(keyText(key));
        if (process) process.lost = true;
      }
      schedule();
    });
    source.addEventListener("problem", (event) => {
      const item = document.createElement("li");
      item.textContent = JSON.parse(event.data);
      $("#problems").append(item);
      while ($("#problems").children.length > 8) $("#problems").firstChild.remove();
    });
  };

  // What is shown -----------------------------------------------------------------------------------------------

  const condition = ({ latest, lost, seen_s }) => {
    if (latest.state === "running" && lost) return "lost";
    if (latest.state === "running" && now_s() - seen_s > Math.max(SILENT_S, 3 * latest.interval.seconds)) return "silent";
    return latest.state === "waiting" && lost ? "gone" : latest.state;
  };

  const passes = (process) => {
    const { host, pid, side, label, workload, phase, verdict } = process.latest;
    if (view.side && view.side !== side) return false;
    const text = [host, pid, side, label, workload, phase?.name ?? "", condition(process), verdict?.word ?? ""].join(" ").toLowerCase();
    return view.words.toLowerCase().split(/\s+/).every((word) => text.includes(word));
  };

  const shown = () => [...processes.values()].filter(passes);
  const severity = (word) => (!word ? 0 : word === "VALID" ? 1 : word.startsWith("INVALID") ? 2 : 3);
  const worst = (all) => all.reduce((bad, one) => (severity(one?.word) > severity(bad?.word) ? one : bad), null);
  const agreed = (values) => (new Set(values).size === 1 ? values[0] : "mixed");

  const groupName = ({ host, pid, side }) =>
    ({ processes: `${side} ${host}:${pid}`, hosts: `${side} ${host}`, sides: side })[view.grouping];

  const rows = () => {
    const groups = new Map();
    for (const process of shown()) {
      const name = groupName(process.latest);
      groups.set(name, [...(groups.get(name) ?? []), process]);
    }
    return [...groups].sort(([a], [b]) => a.localeCompare(b, "en", { numeric: true })).map(([name, members]) => row(name, members));
  };

  const row = (name, members) => {
    const running = members.filter((one) => condition(one) === "running");
    const sum = (list, value) => list.reduce((total, one) => total + value(one.latest), 0);
    const [ok, failed] = [sum(running, (one) => one.interval.ok), sum(running, (one) => one.interval.failed)];
    const total = { ok: sum(members, (one) => one.total.ok), failed: sum(members, (one) => one.total.failed) };
    const progress = members.map(({ latest: { phase } }) => (phase?.duration_s ? Math.min(phase.elapsed_s / phase.duration_s, 1) : null));
    const { side, host, pid } = members[0].latest;
    return {
      name, members, side, ok, failed, total,
      title: { processes: `${host}:${pid}`, hosts: members.length > 1 ? `${host} (${members.length})` : host, sides: `all ${members.length}` }[view.grouping],
      state: agreed(members.map(condition)),
      phase: agreed(members.map((one) => one.latest.phase?.name ?? "")),
      progress: running.length && progress.every((share) => share !== null) ? Math.min(...progress) : null,
      isRunning: running.length > 0,
      rate: running.reduce((all, one) => all + (perSecond(one.latest.interval, one.latest.interval.ok) ?? 0), 0),
      rptm_ms: ok > 0 ? sum(running, (one) => one.interval.rptm_us) / ok / 1000 : null,
      hits: ratio(sum(running, (one) => one.interval.hits), sum(running, (one) => one.interval.basic)),
      open: sum(running, (one) => one.open_connections),
      verdict: worst(members.map((one) => one.latest.verdict)),
    };
  };

  // Curves: each step of the time has, for each process, the last point that covers it; processes add up.
  const steps = (span) => {
    const sums = { client: [], server: [] };
    for (const process of shown()) {
      const of_side = sums[process.latest.side];
      const own = [];
      for (const one of process.points) {
        const from = Math.max(0, Math.ceil((one.at - one.seconds - span.from) / span.step - 0.5));
        const to = Math.min(STEPS, Math.ceil((one.at - span.from) / span.step - 0.5));
        for (let at = from; at < to; at += 1) own[at] = one;
      }
      own.forEach((one, at) => {
        of_side[at] ??= { rate: 0, errors: 0, ok: 0, rptm_us: 0, basic: 0, hits: 0, open: 0 };
        const to = of_side[at];
        to.rate += one.ok / one.seconds;
        to.errors += one.failed / one.seconds;
        for (const name of ["ok", "rptm_us", "basic", "hits", "open"]) to[name] += one[name];
      });
    }
    return sums;
  };

  const timeSpan = () => {
    const all = shown().flatMap((one) => (one.points.length ? [one.points[0].at - one.points[0].seconds, one.points[one.points.length - 1].at] : []));
    const [first, last] = [Math.min(...all), Math.max(...all)];
    if (!Number.isFinite(first)) return null;
    const length = Math.max(view.span_s || last - first, 10);
    return { from: last - length, to: last, step: length / STEPS };
  };

  // Drawing -----------------------------------------------------------------------------------------------------

  const element = (name, attributes = {}, text = null) => {
    const made = document.createElementNS(SVG, name);
    Object.entries(attributes).forEach(([key, value]) => made.setAttribute(key, value));
    if (text !== null) made.textContent = text;
    return made;
  };

  const html = (name, text, className = "") => {
    const made = document.createElement(name);
    made.textContent = text;
    made.className = className;
    return made;
  };

  // The next round number above a value, for the axis.
  const ceiling = (value) => {
    if (!(value > 0)) return 1;
    const power = 10 ** Math.floor(Math.log10(value));
    return [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((round) => round >= value * 0.999);
  };

  const makeCharts = () => {
    for (const chart of CHARTS) {
      const figure = document.createElement("figure");
      figure.id = `chart-${chart.id}`;
      const caption = html("figcaption", chart.title);
      caption.append(document.createElement("output"));
      const drawing = element("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": chart.title });
      figure.append(caption, drawing);
      $("#charts").append(figure);
      drawing.addEventListener("pointermove", (event) => {
        const box = drawing.getBoundingClientRect();
        const x = ((event.clientX - box.left) / box.width) * WIDTH;
        view.hover = Math.min(Math.max((x - LEFT) / (WIDTH - LEFT), 0), 1);
        drawCharts();
      });
      drawing.addEventListener("pointerleave", () => {
        view.hover = null;
        drawCharts();
      });
    }
  };

  const drawCharts = () => {
    const span = timeSpan();
    const sums = span && steps(span);
    for (const chart of CHARTS) drawChart(chart, span, sums);
  };

  const drawChart = (chart, span, sums) => {
    const figure = $(`#chart-${chart.id}`);
    const drawing = figure.querySelector("svg");
    const output = figure.querySelector("output");
    drawing.replaceChildren();
    output.replaceChildren();
    if (!span) return;
    const sides = chart.sides.filter((side) => sums[side].length);
    const values = Object.fromEntries(sides.map((side) => [side, Array.from({ length: STEPS }, (_, at) => (sums[side][at] ? chart.value(sums[side][at]) : null))]));
    const top = ceiling(Math.max(0, ...sides.flatMap((side) => values[side].filter((value) => value !== null))));
    const x = (at) => LEFT + ((at + 0.5) / STEPS) * (WIDTH - LEFT);
    const y = (value) => HEIGHT - BOTTOM - (value / top) * (HEIGHT - BOTTOM - TOP);
    for (const share of [0, 0.5, 1]) {
      drawing.append(element("line", { class: "grid", x1: LEFT, x2: WIDTH, y1: y(share * top), y2: y(share * top) }));
      drawing.append(element("text", { x: LEFT - 4, y: y(share * top) + 4, "text-anchor": "end" }, number(share * top, Number.isInteger(share * top) ? 0 : 1)));
    }
    const length = span.to - span.from;
    for (const { name, at } of phases.filter((one) => one.at > span.from && one.at < span.to)) {
      const place = LEFT + ((at - span.from) / length) * (WIDTH - LEFT);
      drawing.append(element("line", { class: "phase", x1: place, x2: place, y1: TOP, y2: HEIGHT - BOTTOM }));
      drawing.append(element("text", { class: "phase-name", x: place + 3, y: TOP + 8 }, name));
    }
    drawing.append(element("text", { x: LEFT, y: HEIGHT - 4 }, `${number(length, 0)} s ago`));
    drawing.append(element("text", { x: WIDTH, y: HEIGHT - 4, "text-anchor": "end" }, "now"));
    for (const side of sides) drawCurve(drawing, side, values[side], x, y);
    const at = view.hover === null ? null : Math.min(Math.floor(view.hover * STEPS), STEPS - 1);
    if (at !== null) drawing.append(element("line", { class: "hover", x1: x(at), x2: x(at), y1: TOP, y2: HEIGHT - BOTTOM }));
    for (const side of sides) {
      const known = values[side].filter((value) => value !== null);
      const value = at === null ? known[known.length - 1] : values[side][at];
      output.append(html("span", `${side} ${number(value)} ${chart.unit} `, side));
    }
  };

  // Where nothing is known, the curve has a gap.
  const drawCurve = (drawing, side, values, x, y) => {
    let part = [];
    const end = () => {
      if (part.length === 1) part.push(part[0]);
      if (part.length) drawing.append(element("polyline", { class: side, points: part.join(" ") }));
      part = [];
    };
    values.forEach((value, at) => {
      if (value === null) end();
      else part.push(`${x(at).toFixed(1)},${y(value).toFixed(1)}`);
    });
    end();
  };

  const tone = (word) => {
    const first = (word ?? "").split(" ")[0];
    return { VALID: "good", running: "good", FAILED: "bad", lost: "bad", INVALID: "doubt", silent: "doubt" }[first] ?? "";
  };

  const drawTable = (all) => {
    const body = $("#table tbody");
    const focused = body.contains(document.activeElement);
    if (!all.some((one) => one.name === view.selected)) view.selected = all[0]?.name ?? null;
    body.replaceChildren(...all.map((one) => {
      const line = document.createElement("tr");
      const isSelected = one.name === view.selected;
      line.dataset.name = one.name;
      line.tabIndex = isSelected ? 0 : -1;
      line.setAttribute("aria-selected", String(isSelected));
      const when = (value) => (one.isRunning ? value : null);
      const cells = [
        [one.side, one.side], [one.title], [one.state, tone(one.state)],
        [one.progress === null ? one.phase : `${one.phase} ${Math.floor(one.progress * 100)} %`],
        [number(when(one.rate)), "n"], [ms(one.rptm_ms), "n"], [number(one.hits === null ? null : one.hits * 100), "n"],
        [number(when(one.failed), 0), "n"], [number(one.total.failed, 0), "n"],
        [number(ratio(one.total.failed * 100, one.total.ok + one.total.failed), 2), "n"], [number(when(one.open), 0), "n"],
        [one.verdict?.word ?? "–", tone(one.verdict?.word)],
      ];
      line.append(...cells.map(([text, className = ""]) => html("td", text, className)));
      return line;
    }));
    if (focused) body.querySelector("[aria-selected=true]")?.focus();
    $("#empty").hidden = all.length > 0;
    $("#empty").textContent = processes.size
      ? "No process passes the filter."
      : "No process so far. Start a test on this host, for example polygraph run.";
  };

  const drawDetail = (all) => {
    const one = all.find(({ name }) => name === view.selected);
    $("#detail").hidden = !view.detail || !one;
    if (!view.detail || !one) return;
    const list = document.createElement("dl");
    const add = (name, text) => list.append(html("dt", name), html("dd", text));
    add("row", `${one.side} ${one.title}`);
    add("transactions", `${number(one.total.ok, 0)} succeeded, ${number(one.total.failed, 0)} failed`);
    for (const { latest } of one.members.slice(0, 20)) {
      const { host, pid, label, workload, phase, planned_rate, rptm_p95_us, agents, rss_bytes, interval, end } = latest;
      add(`${host}:${pid}`, [
        label, workload, phase ? `phase ${phase.index + 1} of ${phase.planned}` : "no phase",
        planned_rate ? `${number(planned_rate)} requests/s planned` : "", rptm_p95_us === null ? "" : `p95 ${ms(rptm_p95_us / 1000)}`,
        `${number(agents, 0)} agents`, `${number(rss_bytes / 1048576, 0)} MB`,
        `busiest loop ${number((perSecond(interval, interval.busiest_s) ?? 0) * 100, 0)} %`, end ?? "",
      ].filter((text) => text).join(", "));
    }
    $("#detail").replaceChildren(list);
  };

  const drawVerdict = () => {
    const verdict = worst(shown().map((one) => one.latest.verdict));
    const box = $("#verdict");
    box.hidden = !verdict;
    if (!verdict) return;
    const word = html("strong", verdict.word, tone(verdict.word));
    const list = document.createElement("ul");
    list.append(...verdict.findings.map((text) => html("li", text)));
    box.replaceChildren("So far: ", word, `: ${verdict.meaning}`, list);
  };

  const drawErrors = () => {
    const counts = new Map();
    for (const { latest } of shown()) {
      for (const { number: id, text, count } of latest.errors) {
        const name = `${id} ${latest.side}`;
        counts.set(name, { id, side: latest.side, text, count: (counts.get(name)?.count ?? 0) + count });
      }
    }
    const all = [...counts.values()].sort((a, b) => b.count - a.count).slice(0, 20);
    $("#errors").hidden = all.length === 0;
    $("#errors tbody").replaceChildren(...all.map(({ id, side, text, count }) => {
      const line = document.createElement("tr");
      line.append(html("td", id), html("td", side, side), html("td", number(count, 0), "n"), html("td", text));
      return line;
    }));
  };

  const draw = () => {
    const running = [...processes.values()].filter((one) => condition(one) === "running").length;
    $("#status").textContent = connected || processes.size
      ? `${running} of ${processes.size} running, ${shown().length} shown${connected ? "" : ", connection lost"}${view.paused ? ", paused" : ""}`
      : "no connection to the monitor: does the address have the right token?";
    const all = rows();
    drawVerdict();
    drawCharts();
    drawTable(all);
    drawDetail(all);
    drawErrors();
  };

  // Many messages within a moment are drawn once.
  let due = false;
  const schedule = () => {
    if (due || view.paused) return;
    due = true;
    setTimeout(() => {
      due = false;
      draw();
    }, 200);
  };

  // Controls ----------------------------------------------------------------------------------------------------

  const press = (group, value) => {
    for (const button of document.querySelectorAll(`#${group} button`)) {
      button.setAttribute("aria-pressed", String(Object.values(button.dataset)[0] === value));
    }
  };
  const setSide = (side) => {
    view.side = side;
    press("sides", side);
    draw();
  };
  const setGrouping = (grouping) => {
    view.grouping = grouping;
    press("grouping", grouping);
    draw();
  };
  const select = (by) => {
    const names = [...document.querySelectorAll("#table tbody tr")].map((line) => line.dataset.name);
    const at = Math.min(Math.max(names.indexOf(view.selected) + by, 0), names.length - 1);
    view.selected = names[at] ?? null;
    draw();
    $("#table [aria-selected=true]")?.focus();
  };
  const togglePause = () => {
    view.paused = !view.paused;
    $("#pause").setAttribute("aria-pressed", String(view.paused));
    draw();
  };
  const toggleDetail = () => {
    view.detail = !view.detail;
    draw();
  };
  const after = (list, value) => list[(list.indexOf(value) + 1) % list.length];

  const KEYS = {
    "/": () => $("#filter").focus(),
    s: () => setSide(after(["", ...SIDES], view.side)),
    v: () => setGrouping(after(["processes", "hosts", "sides"], view.grouping)),
    p: togglePause,
    j: () => select(1),
    k: () => select(-1),
    ArrowDown: () => select(1),
    ArrowUp: () => select(-1),
    Enter: toggleDetail,
    "?": () => $("#help").showModal(),
  };

  const listen = () => {
    document.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.altKey || event.metaKey || $("#help").open) return;
      if (event.target === $("#filter")) {
        if (event.key === "Escape") {
          $("#filter").value = view.words = "";
          $("#filter").blur();
          draw();
        }
        return;
      }
      // Buttons and lists have keys of their own.
      if (["BUTTON", "SELECT"].includes(event.target.tagName) && event.key !== "/" && event.key.length > 1) return;
      const action = KEYS[event.key];
      if (action) {
        event.preventDefault();
        action();
      }
    });
    $("#filter").addEventListener("input", (event) => {
      view.words = event.target.value;
      draw();
    });
    $("#sides").addEventListener("click", (event) => event.target.dataset.side !== undefined && setSide(event.target.dataset.side));
    $("#grouping").addEventListener("click", (event) => event.target.dataset.grouping && setGrouping(event.target.dataset.grouping));
    $("#span").addEventListener("change", (event) => {
      view.span_s = Number(event.target.value);
      draw();
    });
    $("#pause").addEventListener("click", togglePause);
    $("#help-button").addEventListener("click", () => $("#help").showModal());
    $("#table tbody").addEventListener("click", (event) => {
      const line = event.target.closest("tr");
      view.detail = !(view.detail && view.selected === line.dataset.name);
      view.selected = line.dataset.name;
      draw();
    });
  };

  makeCharts();
  listen();
  connect();
  // Silence shows although nothing comes.
  setInterval(schedule, 2000);
})();
