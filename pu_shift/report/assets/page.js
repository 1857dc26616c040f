"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);
  const SVG = "http://www.w3.org/2000/svg";

  // Text goes in as text nodes only: nothing of the data is ever parsed as HTML.
  function build(node, attributes, children) {
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    node.append(...children);
    return node;
  }
  const html = (tag, attributes = {}, ...children) =>
    build(document.createElement(tag), attributes, children);
  const svg = (tag, attributes = {}, ...children) =>
    build(document.createElementNS(SVG, tag), attributes, children);

  const minus = (text) => text.replace("-", "−");
  const signed = (value, digits) => (value < 0 ? "−" : "+") + Math.abs(value).toFixed(digits);
  const meanSe = (mean, se) => `${mean.toFixed(2)} ± ${se === null ? "–" : se.toFixed(2)}`;
  const pValue = (p) => (p === null ? "–" : p < 0.001 ? "< 0.001" : p.toFixed(3));

  const methods = new Map(data.methods.map((method) => [method.name, method]));
  const datasets = new Map(data.datasets.map((dataset) => [dataset.name, dataset]));

  /* ---- Charts ---- */

  const MARKERS = {
    o: (r) => `M${-r} 0a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0z`,
    s: (r) => `M${-r} ${-r}h${2 * r}v${2 * r}h${-2 * r}z`,
    D: (r) => `M0 ${-1.3 * r}L${1.3 * r} 0L0 ${1.3 * r}L${-1.3 * r} 0z`,
    "^": (r) => `M0 ${-1.2 * r}L${1.2 * r} ${r}H${-1.2 * r}z`,
    v: (r) => `M0 ${1.2 * r}L${1.2 * r} ${-r}H${-1.2 * r}z`,
    ">": (r) => `M${1.2 * r} 0L${-r} ${1.2 * r}V${-1.2 * r}z`,
    X: (r) => `M${-r} ${-r}L${r} ${r}M${-r} ${r}L${r} ${-r}`,
  };
  const marker = (name, r) => (MARKERS[name] || MARKERS.X)(r);

  function ticks(low, high, count) {
    const rough = (high - low) / count;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((f) => f * power).find((s) => s >= rough);
    const values = [];
    for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9; k++) values.push(k * step);
    const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
    return values.map((value) => [value, minus(value.toFixed(digits))]);
  }

  function chart({ title, label, xlim, ylim, width = 260, height = 240, axes = true, xticks, xlabel }) {
    const box = axes
      ? { left: 38, right: 8, top: 24, bottom: xlabel ? 40 : 26 }
      : { left: 1, right: 1, top: title ? 24 : 1, bottom: 1 };
    const x = (value) => box.left + ((value - xlim[0]) / (xlim[1] - xlim[0])) * (width - box.left - box.right);
    const y = (value) => height - box.bottom - ((value - ylim[0]) / (ylim[1] - ylim[0])) * (height - box.top - box.bottom);
    const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
    const inner = { x: box.left, y: box.top, width: width - box.left - box.right, height: height - box.top - box.bottom };
    const clip = `clip${chart.count = (chart.count || 0) + 1}`;
    root.append(svg("clipPath", { id: clip }, svg("rect", inner)));
    if (title) root.append(svg("text", { x: box.left, y: 16, "font-weight": 600 }, title));
    if (axes) {
      for (const [value, text] of xticks || ticks(...xlim, 5)) {
        root.append(svg("line", { class: "grid", x1: x(value), x2: x(value), y1: y(ylim[0]), y2: y(ylim[1]) }));
        root.append(svg("text", { class: "tick", x: x(value), y: height - box.bottom + 14, "text-anchor": "middle" }, text));
      }
      for (const [value, text] of ticks(...ylim, 5)) {
        root.append(svg("line", { class: "grid", x1: x(xlim[0]), x2: x(xlim[1]), y1: y(value), y2: y(value) }));
        root.append(svg("text", { class: "tick", x: box.left - 5, y: y(value) + 4, "text-anchor": "end" }, text));
      }
      if (xlabel) root.append(svg("text", { class: "tick", x: box.left + inner.width / 2, y: height - 4, "text-anchor": "middle" }, xlabel));
    }
    const plot = svg("g", { "clip-path": `url(#${clip})` });
    root.append(plot, svg("rect", { class: "frame", ...inner }));
    return { root, plot, x, y };
  }

  const pathOf = (points) => points.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");

  /* ---- Surfaces: base64 integers, thresholded cell by cell ---- */

  const banana = data.banana;

  function unpack({ base64, unit, bits }) {
    const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
    const integers = bits === 8 ? new Int8Array(bytes.buffer) : new Int16Array(bytes.buffer);
    return Float64Array.from(integers, (integer) => integer * unit);
  }

  // The part of the plane above a level, and the line around it, as SVG paths.
  function threshold(values, level, x, y) {
    const n = banana.size;
    const at = (i, [low, high]) => low + (i / (n - 1)) * (high - low);
    const columns = Array.from({ length: n }, (_, i) => x(at(i, banana.x)));
    const rows = Array.from({ length: n }, (_, j) => y(at(j, banana.y)));
    const fill = [];
    const line = [];
    for (let j = 0; j + 1 < n; j++) {
      let runStart = null;
      for (let i = 0; i < n; i++) {
        const corners = i + 1 < n ? [[i, j], [i + 1, j], [i + 1, j + 1], [i, j + 1]] : [];
        const heights = corners.map(([a, b]) => values[b * n + a] - level);
        const above = heights.filter((h) => h > 0).length;
        if (above === 4) {
          if (runStart === null) runStart = i;
          continue;
        }
        if (runStart !== null) {
          fill.push([[columns[runStart], rows[j]], [columns[i], rows[j]], [columns[i], rows[j + 1]], [columns[runStart], rows[j + 1]]]);
          runStart = null;
        }
        if (above === 0) continue;
        const polygon = [];
        const exits = [];
        const entries = [];
        corners.forEach(([a, b], k) => {
          const [c, d] = corners[(k + 1) % 4];
          const [here, next] = [heights[k], heights[(k + 1) % 4]];
          if (here > 0) polygon.push([columns[a], rows[b]]);
          if (here > 0 !== next > 0) {
            const t = here / (here - next);
            const point = [columns[a] + t * (columns[c] - columns[a]), rows[b] + t * (rows[d] - rows[b])];
            (here > 0 ? exits : entries).push([polygon.length, point]);
            polygon.push(point);
          }
        });
        fill.push(polygon);
        // The polygon runs straight from each way out to the next way in.
        for (const [position, point] of exits) {
          const [, next] = entries.find(([p]) => p > position) || entries[0];
          line.push([point, next]);
        }
      }
    }
    return {
      fill: fill.map((polygon) => pathOf(polygon) + "z").join(""),
      line: line.map(pathOf).join(""),
    };
  }

  let densities = null;
  function drawDensities(plot, x, y) {
    densities = densities || { 1: unpack(banana.densities["1"]), "-1": unpack(banana.densities["-1"]) };
    for (const [label, name] of [["1", "positive"], ["-1", "negative"]]) {
      for (const level of [0.3, 0.7]) {
        plot.append(svg("path", { class: `density ${name}`, d: threshold(densities[label], level, x, y).line }));
      }
    }
  }

  /* ---- Explorer ---- */

  const inputs = { prior: byId("prior"), testPrior: byId("test-prior"), alpha: byId("alpha") };
  let bananaChart = null;
  const posteriors = new Map();

  function show(id, value, text) {
    byId(id).dataset.value = String(value);
    byId(id).textContent = text;
  }

  function explore() {
    const condition = priors.condition(...["prior", "testPrior", "alpha"].map((name) => Number(inputs[name].value)));
    for (const [name, input] of Object.entries(inputs)) byId(`${input.id}-value`).textContent = condition[name].toFixed(2);
    show("prior-unif", condition.priorUnif, condition.priorUnif.toFixed(3));
    show("alpha-unif", condition.alphaUnif, condition.alphaUnif.toFixed(3));
    show("threshold", condition.threshold, condition.threshold.toFixed(3));
    show("threshold-up", condition.thresholdUp, condition.thresholdUp.toFixed(3));
    show("convex", condition.isConvex, condition.isConvex ? "✓ convex" : "✗ not guaranteed");
    const [prior, testPrior, alpha] = [condition.prior, condition.testPrior, condition.alpha].map((v) => v.toFixed(2));
    byId("both-where").textContent = `π = ${prior} → π′ = ${testPrior}, α = ${alpha}`;
    byId("both-classifier").textContent = `sign[π′·p/t − ${alpha}]`;
    byId("shift-where").textContent = `π = ${prior} → π_unif = ${condition.priorUnif.toFixed(3)}, α = ½`;
    byId("shift-classifier").textContent = "sign[π_unif·p/p_unif − ½]";
    byId("cost-where").textContent = `π = ${prior}, no shift, α_unif = ${condition.alphaUnif.toFixed(3)}`;
    byId("cost-classifier").textContent = `sign[π·p/u − ${condition.alphaUnif.toFixed(3)}]`;
    drawRatios(condition);
    if (banana) drawBanana(condition);
  }

  function drawRatios(condition) {
    const density = (x, mean) => Math.exp(-((x - mean) ** 2) / 2);
    const xs = Array.from({ length: 81 }, (_, i) => -4 + i / 10);
    const ratio = (x) => density(x, 1) / (condition.prior * density(x, 1) + (1 - condition.prior) * density(x, -1));
    const panels = [
      { name: "p/u", top: 11, curve: ratio, bound: 1 / condition.prior, boundName: "1/π", at: condition.threshold },
      { name: "u/p", top: 11, curve: (x) => 1 / ratio(x), bound: condition.prior, boundName: "π", at: condition.thresholdUp },
    ];
    byId("ratios").replaceChildren(
      ...panels.map(({ name, top, curve, bound, boundName, at }) => {
        const { root, plot, x, y } = chart({
          title: name === "p/u" ? `p/u ≤ 1/π = ${bound.toFixed(2)}` : "u/p > π, without an upper bound",
          label: `${name} for two Gaussian classes: bound ${bound.toFixed(2)}, threshold ${at.toFixed(2)}`,
          xlim: [-4, 4], ylim: [0, top], width: 420, height: 230,
        });
        const method = methods.get(`${name} uLSIF`);
        for (const [value, dash, text] of [[bound, "2 3", boundName], [at, "8 3 2 3", "threshold"]]) {
          plot.append(svg("line", { class: "guide", x1: x(-4), x2: x(4), y1: y(value), y2: y(value), "stroke-dasharray": dash }));
          const left = text !== "threshold";
          plot.append(svg("text", { x: left ? x(-3.9) : x(3.9), y: Math.max(y(value) - 4, 36), "text-anchor": left ? "start" : "end" }, text));
        }
        plot.append(svg("path", { d: pathOf(xs.map((v) => [x(v), y(Math.min(curve(v), 1e3))])), fill: "none", stroke: method ? method.colour : "currentColor", "stroke-width": 2.5 }));
        return root;
      }),
    );
  }

  function drawBanana(condition) {
    if (!bananaChart) {
      const made = chart({ label: "", xlim: banana.x, ylim: banana.y, width: 480, height: 430, axes: false });
      made.root.prepend(
        svg("defs", {}, svg("pattern", { id: "plus", width: 22, height: 22, patternUnits: "userSpaceOnUse" },
          svg("path", { class: "plus", d: "M11 8v6M8 11h6" }))),
      );
      made.region = svg("path", { class: "region", id: "banana-region" });
      made.hatch = svg("path", { fill: "url(#plus)" });
      made.boundary = svg("path", { class: "boundary", id: "banana-boundary" });
      made.plot.append(made.region, made.hatch);
      drawDensities(made.plot, made.x, made.y);
      made.plot.append(made.boundary);
      byId("banana").append(made.root);
      bananaChart = made;
    }
    const key = String(condition.prior);
    if (!posteriors.has(key)) posteriors.set(key, unpack(banana.posteriors[key]));
    const surface = posteriors.get(key);
    const { fill, line } = threshold(surface, condition.alphaUnif, bananaChart.x, bananaChart.y);
    bananaChart.region.setAttribute("d", fill);
    bananaChart.hatch.setAttribute("d", fill);
    bananaChart.boundary.setAttribute("d", line);
    const share = surface.filter((value) => value > condition.alphaUnif).length / surface.length;
    bananaChart.root.dataset.share = String(share);
    bananaChart.root.setAttribute("aria-label", `Decision region on the banana data: ${(100 * share).toFixed(0)} % of the area is said to be positive`);

    const [positives, negatives] = banana.rates[key];
    const rate = (rates, level) => {
      const position = level * (banana.levels - 1);
      const low = Math.min(Math.floor(position), banana.levels - 2);
      return rates[low] + (position - low) * (rates[low + 1] - rates[low]);
    };
    for (const [name, level] of [["moved", condition.alphaUnif], ["ordinary", 0.5]]) {
      const cost = 2 * (condition.alpha * (1 - condition.testPrior) * rate(negatives, level)
        + (1 - condition.alpha) * condition.testPrior * (1 - rate(positives, level)));
      show(`cost-${name}`, cost, `${(100 * cost).toFixed(1)} %`);
      byId(`cost-${name}-bar`).style.width = `${Math.min(100, 200 * cost)}%`;
    }
  }

  /* ---- Decision regions of the six methods ---- */

  function drawRegions() {
    const given = String(Number(byId("given").value));
    byId("given-value").textContent = given;
    byId("region-panels").replaceChildren(
      ...Object.entries(banana.scores).map(([method, byPrior]) => {
        const surface = unpack(byPrior[given]);
        const share = surface.filter((value) => value > 0).length / surface.length;
        const { root, plot, x, y } = chart({
          title: method, xlim: banana.x, ylim: banana.y, width: 200, height: 206, axes: false,
          label: `${method} with given prior ${given}: ${(100 * share).toFixed(0)} % of the area is said to be positive`,
        });
        const { fill, line } = threshold(surface, 0, x, y);
        const colour = methods.has(method) ? methods.get(method).colour : "gray";
        plot.append(svg("path", { d: fill, fill: colour, "fill-opacity": 0.45 }));
        drawDensities(plot, x, y);
        plot.append(svg("path", { d: line, fill: "none", stroke: colour, "stroke-width": 2 }));
        root.append(svg("text", { x: 199, y: 16, class: "tick", "text-anchor": "end" }, `+1: ${(100 * share).toFixed(0)} %`));
        root.dataset.share = String(share);
        return root;
      }),
    );
  }

  /* ---- Accuracy against the given prior ---- */

  const lineSample = (method) =>
    html("span", {}, svg("svg", { width: 34, height: 12, viewBox: "0 0 34 12", "aria-hidden": "true" },
      svg("path", { d: "M1 6H33", stroke: method.colour, "stroke-width": 3, "stroke-dasharray": method.dash.map((v) => 2 * v).join(" ") || "none" })), method.name);

  function drawCurves() {
    const curves = data.curves[Number(byId("curve-choice").value)];
    const points = curves.points.filter((point) => methods.has(point.method) && datasets.has(point.dataset));
    const xs = points.map((point) => point.given);
    const xlim = [Math.min(...xs) - 0.03, Math.max(...xs) + 0.03];
    const known = [...new Set(xs)].sort((a, b) => a - b);
    const xticks = known.length <= 5 ? known.map((v) => [v, String(v)]) : undefined;
    byId("curve-legend").replaceChildren(...data.methods.filter((m) => points.some((p) => p.method === m.name)).map(lineSample));
    byId("curve-panels").replaceChildren(
      ...[...datasets.keys()].filter((name) => points.some((p) => p.dataset === name)).map((name) => {
        const here = points.filter((point) => point.dataset === name);
        const low = Math.min(...here.map((p) => p.mean)) - 2;
        const high = Math.max(...here.map((p) => p.mean)) + 2;
        const { root, plot, x, y } = chart({
          title: name, label: `Accuracy on ${name} against the given prior, ${curves.title}`,
          xlim, ylim: [low, high], width: 340, height: 250, xticks, xlabel: "given prior",
        });
        plot.append(svg("line", { class: "guide", x1: x(curves.test_prior), x2: x(curves.test_prior), y1: y(low), y2: y(high), "stroke-dasharray": "2 3" }));
        for (const method of data.methods) {
          const line = here.filter((point) => point.method === method.name).sort((a, b) => a.given - b.given);
          plot.append(svg("path", {
            d: pathOf(line.map((p) => [x(p.given), y(p.mean)])), fill: "none", stroke: method.colour, "stroke-width": 2.5,
            "stroke-dasharray": method.dash.map((v) => 2 * v).join(" ") || "none",
          }));
          for (const p of line) {
            if (p.se !== null) plot.append(svg("path", { d: `M${x(p.given)} ${y(p.mean - p.se)}V${y(p.mean + p.se)}`, stroke: method.colour, "stroke-width": 1.5 }));
            plot.append(svg("circle", { cx: x(p.given), cy: y(p.mean), r: 3, fill: method.colour }, svg("title", {}, `${method.name}, given ${p.given}: ${meanSe(p.mean, p.se)}`)));
          }
        }
        return root;
      }),
    );
  }

  /* ---- Details of a cell ---- */

  const detail = byId("detail");
  let pinned = null;
  let active = null;
  let closing = 0;

  function describe(cell) {
    const printed = cell.paper_mean === null
      ? "nothing printed"
      : `paper ${meanSe(cell.paper_mean, cell.paper_se)}, difference ${signed(cell.delta, 1)}, p ${pValue(cell.p_value)}, `
        + (cell.consistent === null ? "not judged" : cell.consistent ? "consistent" : "not consistent");
    return `Table ${cell.table}, ${cell.dataset}, ${cell.method}, given prior ${cell.given_prior}: `
      + `ours ${meanSe(cell.mean, cell.se)}, ${printed}`;
  }

  function dotPlot(cell) {
    const printed = cell.paper_mean !== null;
    const spans = [cell.accuracies, [cell.mean - (cell.se || 0), cell.mean + (cell.se || 0)]];
    if (printed) spans.push([cell.paper_mean - cell.paper_se, cell.paper_mean + cell.paper_se]);
    const all = spans.flat();
    const margin = 0.05 * (Math.max(...all) - Math.min(...all)) + 0.3;
    const xlim = [Math.min(...all) - margin, Math.max(...all) + margin];
    const height = printed ? 92 : 66;
    const x = (value) => 52 + ((value - xlim[0]) / (xlim[1] - xlim[0])) * 252;
    const root = svg("svg", { viewBox: `0 0 312 ${height}`, role: "img", "aria-label": `Trials: ${cell.accuracies.join(", ")}` });
    for (const [value, text] of ticks(...xlim, 4)) {
      root.append(svg("line", { class: "grid", x1: x(value), x2: x(value), y1: 4, y2: height - 18 }));
      root.append(svg("text", { class: "tick", x: x(value), y: height - 4, "text-anchor": "middle" }, text));
    }
    const colour = methods.get(cell.method).colour;
    const error = (mean, se, y, fill) => [
      svg("path", { class: "guide", d: `M${x(mean - (se || 0))} ${y}H${x(mean + (se || 0))}`, "stroke-width": 2 }),
      svg("path", { class: "guide", d: MARKERS.D(4.5), transform: `translate(${x(mean)} ${y})`, fill }),
    ];
    root.append(svg("text", { x: 0, y: 24 }, "trials"), svg("text", { x: 0, y: 44 }, "ours"));
    // Equal accuracies are stacked, so that each trial is seen.
    const seen = new Map();
    for (const value of cell.accuracies) {
      const count = seen.get(value) || 0;
      seen.set(value, count + 1);
      const offset = (count % 2 ? -1 : 1) * Math.ceil(count / 2) * 3;
      root.append(svg("circle", { class: "trial halo", cx: x(value), cy: 20 + Math.max(-14, Math.min(12, offset)), r: 4, fill: colour }));
    }
    root.append(...error(cell.mean, cell.se, 40, colour));
    if (printed) root.append(svg("text", { x: 0, y: 66 }, "paper"), ...error(cell.paper_mean, cell.paper_se, 62, "none"));
    return root;
  }

  function fillDetail(cell) {
    const rows = [["ours", `${meanSe(cell.mean, cell.se)} (${cell.accuracies.length} trials)`]];
    if (cell.paper_mean === null) {
      rows.push(["paper", "not printed"]);
    } else {
      const verdict = cell.consistent === null ? "not judged" : cell.consistent ? "✓ consistent" : "≠ not consistent";
      rows.push(["paper", meanSe(cell.paper_mean, cell.paper_se)], ["Δ", `${signed(cell.delta, 2)} points`], ["p-value", `${pValue(cell.p_value)}, ${verdict}`]);
    }
    for (const [name, text] of Object.entries(cell.chosen)) rows.push([name, text]);
    byId("detail-body").replaceChildren(
      html("h3", {}, `${cell.method} on ${cell.dataset}`),
      html("p", {}, `Table ${cell.table}: π = ${cell.prior}, π′ = ${cell.test_prior}, given ${cell.given_prior}`),
      dotPlot(cell),
      html("dl", {}, ...rows.flatMap(([name, text]) => [html("dt", {}, name), html("dd", {}, text)])),
    );
  }

  function open(target, number) {
    clearTimeout(closing);
    if (active === target && !detail.hidden) return;
    close();
    active = target;
    fillDetail(data.cells[number]);
    target.setAttribute("aria-describedby", "detail-body");
    detail.hidden = false;
    const around = target.getBoundingClientRect();
    const width = document.documentElement.clientWidth;
    const left = Math.max(8, Math.min(around.left, width - detail.offsetWidth - 8));
    const below = around.bottom + 6;
    const fits = below + detail.offsetHeight < window.innerHeight || around.top < detail.offsetHeight + 6;
    detail.style.left = `${left + window.scrollX}px`;
    detail.style.top = `${(fits ? below : around.top - detail.offsetHeight - 6) + window.scrollY}px`;
  }

  function close() {
    clearTimeout(closing);
    if (active) {
      active.removeAttribute("aria-describedby");
      if (active.classList.contains("cell")) active.setAttribute("aria-expanded", "false");
    }
    pinned = active = null;
    detail.hidden = true;
  }

  // A moment to reach the details with the pointer before they go.
  const closeSoon = () => {
    clearTimeout(closing);
    if (!pinned) closing = setTimeout(close, 150);
  };

  function attach(target, number) {
    target.addEventListener("pointerenter", (event) => {
      if (event.pointerType === "mouse" && !pinned) open(target, number);
    });
    target.addEventListener("pointerleave", (event) => {
      if (event.pointerType === "mouse" && document.activeElement !== target) closeSoon();
    });
    target.addEventListener("click", (event) => {
      event.stopPropagation();
      if (pinned === target) return close();
      if (pinned) close();
      open(target, number);
      pinned = target;
      if (target.classList.contains("cell")) target.setAttribute("aria-expanded", "true");
    });
  }
  detail.addEventListener("pointerenter", () => clearTimeout(closing));
  detail.addEventListener("pointerleave", closeSoon);
  detail.addEventListener("click", (event) => event.stopPropagation());
  byId("detail-close").addEventListener("click", () => {
    const back = active;
    close();
    if (back && back.focus) back.focus();
    close();
  });
  document.addEventListener("click", close);
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") close();
  });

  /* ---- Tables: one tab stop each, arrow keys within ---- */

  const tables = [...document.querySelectorAll("table.cells")];

  function grid(table) {
    return [...table.querySelectorAll("tbody tr:not(.block):not(.off)")]
      .map((row) => [...row.querySelectorAll("td:not(.off):not(.faded) > .cell")])
      .filter((row) => row.length);
  }

  function oneTabStop(table) {
    const buttons = grid(table).flat();
    const current = buttons.find((button) => button.tabIndex === 0) || buttons[0];
    for (const button of table.querySelectorAll(".cell")) button.tabIndex = -1;
    if (current) current.tabIndex = 0;
  }

  function move(table, from, key, toEdge) {
    const rows = grid(table);
    const r = rows.findIndex((row) => row.includes(from));
    const c = rows[r].indexOf(from);
    const column = from.parentElement.dataset.col;
    // Up and down stay in the column even where rows have gaps.
    const vertical = (step) => {
      for (let k = r + step; k >= 0 && k < rows.length; k += step) {
        const found = rows[k].find((button) => button.parentElement.dataset.col === column);
        if (found) return found;
      }
      return from;
    };
    const last = rows[r].length - 1;
    const to = {
      ArrowLeft: () => rows[r][Math.max(0, c - 1)],
      ArrowRight: () => rows[r][Math.min(last, c + 1)],
      ArrowUp: () => vertical(-1),
      ArrowDown: () => vertical(1),
      Home: () => (toEdge ? rows[0][0] : rows[r][0]),
      End: () => (toEdge ? rows[rows.length - 1].slice(-1)[0] : rows[r][last]),
    }[key];
    if (!to) return false;
    from.tabIndex = -1;
    to().tabIndex = 0;
    to().focus();
    return true;
  }

  for (const table of tables) {
    for (const holder of table.querySelectorAll("[data-cell]")) {
      const number = Number(holder.dataset.cell);
      const button = holder.firstElementChild;
      button.setAttribute("aria-label", describe(data.cells[number]));
      button.setAttribute("aria-expanded", "false");
      attach(button, number);
      button.addEventListener("focus", () => {
        if (button.matches(":focus-visible") && pinned !== button) open(button, number);
      });
      button.addEventListener("blur", () => {
        if (!pinned) closeSoon();
      });
    }
    table.addEventListener("keydown", (event) => {
      const button = event.target.closest(".cell");
      if (button && !event.altKey && !event.metaKey) {
        if (pinned && event.key.startsWith("Arrow")) close();
        if (move(table, button, event.key, event.ctrlKey)) event.preventDefault();
      }
    });
  }

  /* ---- Filters ---- */

  const filterForm = byId("filters");
  const onlyBox = byId("inconsistent-only");

  function chosen() {
    const sets = {};
    for (const group of filterForm.querySelectorAll("[data-filter]")) {
      sets[group.dataset.filter] = new Set([...group.querySelectorAll("input:checked")].map((input) => input.value));
    }
    return (cell) => sets.table.has(String(cell.table)) && sets.dataset.has(cell.dataset) && sets.method.has(cell.method);
  }

  function filter() {
    close();
    const inside = chosen();
    const wanted = (cell) => !onlyBox.checked || cell.consistent === false;
    const shown = data.cells.map((cell) => inside(cell) && wanted(cell));
    for (const table of tables) {
      const columns = new Set();
      for (const holder of table.querySelectorAll("[data-cell]")) {
        const number = Number(holder.dataset.cell);
        if (inside(data.cells[number])) columns.add(holder.dataset.col);
        holder.classList.toggle("faded", !shown[number]);
      }
      for (const holder of table.querySelectorAll("[data-col]")) holder.classList.toggle("off", !columns.has(holder.dataset.col));
      for (const body of table.tBodies) {
        const rows = [...body.rows].filter((row) => !row.classList.contains("block"));
        for (const row of rows) row.classList.toggle("off", ![...row.querySelectorAll("[data-cell]")].some((holder) => shown[holder.dataset.cell]));
        body.classList.toggle("off", rows.every((row) => row.classList.contains("off")));
      }
      const empty = [...table.tBodies].every((body) => body.classList.contains("off"));
      (table.closest("section.table") || table).classList.toggle("off", empty);
      oneTabStop(table);
    }
    byId("shown").textContent = `${shown.filter(Boolean).length} of ${data.cells.length} cells shown`;
    drawScatter(shown);
  }

  /* ---- Scatter ---- */

  function drawScatter(shown) {
    const printed = data.cells.map((cell, number) => ({ cell, number })).filter(({ cell, number }) => shown[number] && cell.paper_mean !== null);
    const panels = byId("scatter-panels");
    if (!printed.length) {
      panels.replaceChildren(html("p", {}, "No cell with a printed number is shown."));
      byId("scatter-legend").replaceChildren();
      return;
    }
    const values = printed.flatMap(({ cell }) => [cell.mean, cell.paper_mean]);
    const lim = [Math.min(...values) - 4, Math.max(...values) + 4];
    byId("scatter-legend").replaceChildren(
      ...data.datasets.filter((d) => printed.some(({ cell }) => cell.dataset === d.name)).map((d) =>
        html("span", {}, svg("svg", { width: 14, height: 14, viewBox: "-7 -7 14 14", "aria-hidden": "true" },
          svg("path", { d: marker(d.marker, 4.5), class: "guide", fill: "none" })), d.name)),
    );
    panels.replaceChildren(
      ...data.methods.filter((m) => printed.some(({ cell }) => cell.method === m.name)).map((method) => {
        const here = printed.filter(({ cell }) => cell.method === method.name);
        const { root, plot, x, y } = chart({
          title: method.name, label: `Ours against the paper for ${method.name}, ${here.length} cells`,
          xlim: lim, ylim: lim, width: 320, height: 330, xlabel: "paper (%)",
        });
        plot.append(svg("path", { class: "guide", d: `M${x(lim[0])} ${y(lim[0])}L${x(lim[1])} ${y(lim[1])}` }));
        for (const { cell, number } of here) {
          const [px, py] = [x(cell.paper_mean), y(cell.mean)];
          const bars = `M${x(cell.paper_mean - cell.paper_se)} ${py}H${x(cell.paper_mean + cell.paper_se)}`
            + (cell.se === null ? "" : `M${px} ${y(cell.mean - cell.se)}V${y(cell.mean + cell.se)}`);
          const hollow = cell.consistent === false;
          const point = svg("g", { class: "point" },
            svg("path", { d: bars, stroke: method.colour, "stroke-width": 1.3 }),
            svg("path", { d: marker((datasets.get(cell.dataset) || {}).marker, 4.2), transform: `translate(${px} ${py})`, stroke: method.colour, "stroke-width": 1.6, fill: hollow ? "var(--page)" : method.colour }));
          attach(point, number);
          plot.append(point);
        }
        return root;
      }),
    );
  }

  /* ---- Colours, print, start ---- */

  const themes = ["automatic", "light", "dark"];
  function theme(name) {
    if (name === "automatic") document.documentElement.removeAttribute("data-theme");
    else document.documentElement.dataset.theme = name;
    byId("theme").textContent = `colours: ${name}`;
    byId("theme").dataset.name = name;
    // Storage may be refused to a page that is opened from a file.
    try { localStorage.setItem("pu-shift-colours", name); } catch { /* the choice holds for this visit */ }
  }
  let stored = null;
  try { stored = localStorage.getItem("pu-shift-colours"); } catch { /* as above */ }
  theme(themes.includes(stored) ? stored : "automatic");
  byId("theme").addEventListener("click", () => theme(themes[(themes.indexOf(byId("theme").dataset.name) + 1) % 3]));

  let opened = [];
  window.addEventListener("beforeprint", () => {
    close();
    opened = [...document.querySelectorAll("details:not([open])")];
    for (const part of opened) part.open = true;
  });
  window.addEventListener("afterprint", () => {
    for (const part of opened) part.open = false;
  });

  for (const node of document.querySelectorAll(".needs-banana")) node.classList.toggle("off", !banana);
  for (const node of document.querySelectorAll(".no-banana")) node.classList.toggle("off", Boolean(banana));
  inputs.prior.value = data.condition.prior;
  inputs.testPrior.value = data.condition.test_prior;
  inputs.alpha.value = data.condition.alpha;
  for (const input of Object.values(inputs)) input.addEventListener("input", explore);
  explore();
  if (banana) {
    byId("regions-prior").textContent = String(banana.prior);
    byId("given").addEventListener("input", drawRegions);
    drawRegions();
  }
  data.curves.forEach((curves, number) => byId("curve-choice").append(html("option", { value: number }, curves.title)));
  byId("curves").classList.toggle("off", !data.curves.length);
  byId("curve-choice").addEventListener("change", drawCurves);
  if (data.curves.length) drawCurves();
  filterForm.addEventListener("change", filter);
  byId("reset").addEventListener("click", () => {
    for (const input of filterForm.querySelectorAll("[data-filter] input")) input.checked = true;
    onlyBox.checked = false;
    filter();
  });
  if (window.matchMedia("(max-width: 44rem)").matches) document.querySelector(".filters").open = false;
  filter();
  document.documentElement.dataset.ready = "true";
})();
