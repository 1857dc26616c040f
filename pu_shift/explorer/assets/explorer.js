"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const data = JSON.parse(byId("data").textContent);
  const posteriors = Float64Array.from(data.posteriors);
  const n = posteriors.length;
  // The posterior at any prior has the same order: the most likely positive comes first.
  const ranked = Uint32Array.from(posteriors.keys()).sort((a, b) => posteriors[b] - posteriors[a] || a - b);

  /* ---- Decisions ---- */

  // Costs that are a column belong to the cases; the others are those of the controls.
  const ofEachCase = data.costs.falseAlarm !== null || data.costs.miss !== null;
  const costAt = (name, situation, i) => (data.costs[name] ? data.costs[name].values[i] : situation[name]);

  function decide(situation) {
    const { testPrior } = situation;
    const share = (falseAlarm, miss) => falseAlarm / (falseAlarm + miss);
    const thresholdOf = (penalty) => priors.condition(data.prior, testPrior, penalty).alphaUnif;
    const alpha = ofEachCase ? null : share(situation.falseAlarm, situation.miss);
    const threshold = ofEachCase ? null : thresholdOf(alpha);
    const probabilities = posteriors.map((value) => priors.shiftPosterior(value, data.prior, testPrior));
    const isFlagged = new Uint8Array(n);
    const sums = { flagged: 0, falseAlarms: 0, misses: 0, positives: 0, cost: 0, costOfNone: 0, costOfAll: 0 };
    probabilities.forEach((probability, i) => {
      const [falseAlarm, miss] = ["falseAlarm", "miss"].map((name) => costAt(name, situation, i));
      const costs = { alarm: falseAlarm * (1 - probability), miss: miss * probability };
      sums.positives += probability;
      sums.costOfAll += costs.alarm;
      sums.costOfNone += costs.miss;
      if (posteriors[i] > (ofEachCase ? thresholdOf(share(falseAlarm, miss)) : threshold)) {
        isFlagged[i] = 1;
        sums.flagged += 1;
        sums.falseAlarms += 1 - probability;
        sums.cost += costs.alarm;
      } else {
        sums.misses += probability;
        sums.cost += costs.miss;
      }
    });
    return { ...sums, alpha, threshold, probabilities, isFlagged };
  }

  /* ---- How far the errors may lie from what is expected ---- */

  // The share of held-out rows above a threshold, with half a row at either end, and its variance.
  function shareAbove({ n: rows, posteriors: values }, threshold) {
    let [low, high] = [0, values.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (values[middle] > threshold) high = middle;
      else low = middle + 1;
    }
    const share = ((rows * (values.length - low)) / values.length + 0.5) / (rows + 1);
    return { share, variance: (share * (1 - share)) / (rows + 1) };
  }
  // The 2.5 % and 97.5 % points of a gamma distribution (Wilson and Hilferty).
  function quantile(mean, variance, z) {
    if (!(mean > 0 && variance > 0)) return Math.max(mean, 0);
    const shape = (mean * mean) / variance;
    return mean * Math.max(1 - 1 / (9 * shape) + z / (3 * Math.sqrt(shape)), 0) ** 3;
  }
  // From the rate of errors that held-out rows show to the sum of the cases' probabilities.
  function band(sum, rate, variance, among) {
    const shown = among * rate;
    const spread = (mean) => mean + among * among * variance;
    const [low, high] = [Math.min(sum, shown), Math.max(sum, shown)];
    return [Math.floor(quantile(low, spread(low), -1.96)), Math.ceil(quantile(high, spread(high), 1.96))];
  }
  function bands({ falseAlarms, misses, threshold }, { testPrior }) {
    if (!data.heldOut) return null;
    const [ofP, ofU] = data.heldOut.map((rows) => shareAbove(rows, threshold));
    const rest = 1 - data.prior;
    const falseRate = Math.min(Math.max((ofU.share - data.prior * ofP.share) / rest, 0), 1);
    const falseVariance = (ofU.variance + data.prior * data.prior * ofP.variance) / (rest * rest);
    return {
      falseAlarms: band(falseAlarms, falseRate, falseVariance, n * (1 - testPrior)),
      misses: band(misses, 1 - ofP.share, ofP.variance, n * testPrior),
    };
  }

  /* ---- Numbers as people read them ---- */

  const format = (value, options) => new Intl.NumberFormat("en-GB", options).format(value);
  const whole = (value) => format(value, { maximumFractionDigits: 0 });
  const rough = (value) =>
    format(value, value < 100 ? { maximumSignificantDigits: 3, maximumFractionDigits: 2, roundingPriority: "lessPrecision" } : { maximumFractionDigits: 0 });
  // A number and its unit stay on one line.
  const percent = (share) => `${rough(100 * share)}\u00a0%`;
  const money = (value) => (data.unit ? `${rough(value)}\u00a0${data.unit}` : rough(value));
  const per1000 = (value) => (1000 * value) / n;
  const exact = (value) => String(Number(value.toPrecision(6)));

  // Text goes in as text only: nothing of the data is ever parsed as HTML.
  function set(id, text, value) {
    byId(id).textContent = text;
    if (value !== undefined) byId(id).dataset.value = JSON.stringify(value);
  }

  /* ---- The controls: a slider and a box each, which tell the same number ---- */

  const numbers = ["falseAlarm", "miss"].filter((name) => !data.costs[name]).map((name) => data[name]);
  const costRange = [Math.floor(Math.log10(Math.min(...numbers))) - 1, Math.ceil(Math.log10(Math.max(...numbers))) + 2];
  // Sliders of costs are logarithmic: what counts is how many times one cost is the other.
  const cost = {
    toSlider: (value) => Math.log10(value),
    fromSlider: (place) => Number((10 ** place).toPrecision(2)),
    toBox: (value) => value,
    fromBox: (text) => text,
    spoken: money,
    allows: (value) => value > 0 && Number.isFinite(value),
  };
  const kinds = {
    testPrior: {
      id: "test-prior",
      toSlider: (value) => 100 * value,
      fromSlider: (place) => place / 100,
      toBox: (value) => 100 * value,
      fromBox: (value) => value / 100,
      spoken: percent,
      allows: (value) => value > 0 && value < 1,
      wrong: "The share of positives must lie between 0 and 100 %.",
    },
    falseAlarm: { ...cost, id: "false-alarm", wrong: "The cost of a false alarm must be above 0." },
    miss: { ...cost, id: "miss", wrong: "The cost of a miss must be above 0." },
  };
  for (const [name, column] of Object.entries(data.costs)) {
    if (!column) continue;
    // A column takes the place of the slider and the box.
    const control = byId(kinds[name].id).closest(".control");
    const [low, high] = column.values.reduce(([a, b], value) => [Math.min(a, value), Math.max(b, value)], [Infinity, 0]);
    const source = document.createElement("p");
    source.className = "hint";
    source.id = `${kinds[name].id}-source`;
    source.textContent = `Each case has its own, from the column ${column.name}: ${rough(low)} to ${money(high)}.`;
    const label = control.querySelector("label");
    label.removeAttribute("for");
    control.replaceChildren(label, source);
    delete kinds[name];
  }
  const start = { testPrior: data.testPrior, falseAlarm: data.falseAlarm, miss: data.miss };
  const state = { ...start };

  function place(name, { slider = true, box = true } = {}) {
    const kind = kinds[name];
    if (slider) byId(kind.id).value = kind.toSlider(state[name]);
    byId(kind.id).setAttribute("aria-valuetext", kind.spoken(state[name]));
    if (box) byId(`${kind.id}-box`).value = exact(kind.toBox(state[name]));
    byId(`${kind.id}-box`).removeAttribute("aria-invalid");
  }
  for (const [name, kind] of Object.entries(kinds)) {
    const slider = byId(kind.id);
    const box = byId(`${kind.id}-box`);
    if (name !== "testPrior") [slider.min, slider.max] = costRange;
    slider.addEventListener("input", () => {
      state[name] = kind.fromSlider(slider.valueAsNumber);
      place(name, { slider: false });
      show();
    });
    box.addEventListener("input", () => {
      const value = kind.fromBox(box.valueAsNumber);
      if (!kind.allows(value)) {
        box.setAttribute("aria-invalid", "true");
        set("wrong", `${kind.wrong} The page still shows ${kind.spoken(state[name])}.`);
        return;
      }
      state[name] = value;
      place(name, { box: false });
      show();
    });
  }
  byId("reset").addEventListener("click", () => {
    Object.assign(state, start);
    for (const name of Object.keys(kinds)) place(name);
    show();
  });

  if (data.estimate) {
    const [share, low, high] = data.estimate;
    const button = byId("estimated");
    button.hidden = false;
    button.textContent = `Set to the share estimated from these cases: ${percent(share)} (${percent(low)} to ${percent(high)})`;
    button.addEventListener("click", () => {
      state.testPrior = share;
      place("testPrior");
      show();
    });
  }
  byId("about-band").hidden = !data.heldOut;
  byId("threshold-key").hidden = ofEachCase;

  /* ---- The histogram ---- */

  const BINS = 40;
  const SVG = "http://www.w3.org/2000/svg";
  function svg(tag, attributes, ...children) {
    const node = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    node.append(...children);
    return node;
  }
  function histogram({ probabilities, isFlagged, alpha, flagged }) {
    const counts = Array.from({ length: BINS }, () => [0, 0]);
    probabilities.forEach((probability, i) => {
      const bin = Math.min(Math.floor(probability * BINS), BINS - 1);
      counts[bin][isFlagged[i]] += 1;
    });
    // Drawn as wide as it is shown, so that its letters have the size of the page's.
    const width = Math.max(byId("histogram").clientWidth, 260);
    const [height, left, right, top, bottom] = [250, 46, 24, 24, 40];
    const highest = Math.max(...counts.map(([rest, above]) => rest + above));
    const x = (value) => left + value * (width - left - right);
    // Square roots: beside thousands of clear cases a few doubtful ones can still be seen.
    const y = (count) => height - bottom - Math.sqrt(count / highest) * (height - top - bottom);
    const root = svg("svg", {
      viewBox: `0 0 ${width} ${height}`,
      role: "img",
      "aria-label": `Histogram of the probability to be positive: ${whole(flagged)} of ${whole(n)} cases ${alpha === null ? "are flagged" : `lie above the threshold ${percent(alpha)}`}`,
    });
    for (const count of ticks(highest)) {
      root.append(svg("line", { class: "grid", x1: left, x2: width - right, y1: y(count), y2: y(count) }));
      root.append(svg("text", { x: left - 6, y: y(count) + 4, "text-anchor": "end" }, whole(count)));
    }
    for (const share of width < 420 ? [0, 0.25, 0.5, 0.75, 1] : [0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1]) {
      root.append(svg("text", { x: x(share), y: height - bottom + 16, "text-anchor": "middle" }, `${whole(100 * share)} %`));
    }
    root.append(svg("text", { x: x(0.5), y: height - 6, "text-anchor": "middle" }, "probability to be positive, at the share you set"));
    root.append(svg("text", { x: 2, y: 12 }, "cases (square-root scale)"));
    counts.forEach(([rest, above], bin) => {
      const bar = (kind, from, to) =>
        to > from && root.append(svg("rect", { class: kind, x: x(bin / BINS) + 0.5, width: x(1 / BINS) - x(0) - 1, y: y(to), height: y(from) - y(to), "data-count": to - from }));
      bar("bar", 0, rest);
      bar("bar flagged", rest, rest + above);
    });
    if (alpha !== null) {
      root.append(svg("line", { class: "threshold", x1: x(alpha), x2: x(alpha), y1: top - 6, y2: height - bottom }));
      const end = alpha > 0.6;
      root.append(svg("text", { class: "threshold-label", x: x(alpha) + (end ? -6 : 6), y: top + 4, "text-anchor": end ? "end" : "start" }, `flag above ${percent(alpha)}`));
    }
    byId("histogram").replaceChildren(root);
  }
  function ticks(highest) {
    // 1, 2, 5, 10, …: as many of them as stand apart on a square-root scale.
    const values = [];
    for (let power = 1; power <= highest; power *= 10) values.push(power, 2 * power, 5 * power);
    const kept = [];
    for (const value of [...values.filter((item) => item <= highest), 0].sort((a, b) => b - a)) {
      if (!kept.length || Math.sqrt(kept.at(-1) / highest) - Math.sqrt(value / highest) > 0.14) kept.push(value);
    }
    return kept;
  }

  /* ---- The list ---- */

  const SHOWN = 10;
  const columns = ["row", ...data.keep.map((column) => column.name), "probability", "label"];
  const named = (i) => [i + 1, ...data.keep.map((column) => column.values[i])];
  const entry = (i, { probabilities, isFlagged }) => [
    ...named(i),
    exact(probabilities[i]),
    isFlagged[i] ? 1 : -1,
  ];
  const mostLikelyFirst = ({ isFlagged }) => ranked.filter((i) => isFlagged[i]);
  function row(tag, cells) {
    const line = document.createElement("tr");
    for (const text of cells) {
      const cell = document.createElement(tag);
      if (tag === "th") cell.scope = "col";
      cell.textContent = text;
      line.append(cell);
    }
    return line;
  }
  byId("list").tHead.append(row("th", columns.slice(0, -1)));
  function list(result) {
    const first = Array.from(mostLikelyFirst(result).subarray(0, SHOWN));
    const lines = first.map((i) => row("td", [...named(i), percent(result.probabilities[i])]));
    byId("list").tBodies[0].replaceChildren(...lines);
    byId("list").hidden = !result.flagged;
    byId("download").disabled = !result.flagged;
    set(
      "list-note",
      !result.flagged ? "No case is worth flagging here."
        : result.flagged > SHOWN ? `The ${SHOWN} most likely positives of ${whole(result.flagged)}; the file has all of them.`
          : "The most likely positive comes first.",
    );
  }
  const quoted = (value) => (/[",\r\n]/.test(value) ? `"${String(value).replaceAll('"', '""')}"` : String(value));
  function download(name, chosen) {
    const result = decide(state);
    const lines = [columns, ...Array.from(chosen(result), (i) => entry(i, result))];
    const text = lines.map((cells) => `${cells.map(quoted).join(",")}\n`).join("");
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }
  byId("download").addEventListener("click", () => download("flagged.csv", mostLikelyFirst));
  byId("download-all").addEventListener("click", () => download("cases.csv", () => posteriors.keys()));

  /* ---- All of it ---- */

  const shell = (name) => (/^[\w./-]+$/.test(name) ? name : `'${name.replaceAll("'", "'\\''")}'`);
  const compared = (times) =>
    times === 1 ? "Both errors cost the same"
      : times > 1 ? `A miss costs ${rough(times)} times as much as a false alarm`
        : `A false alarm costs ${rough(1 / times)} times as much as a miss`;
  let announce = 0;
  function show() {
    const result = decide(state);
    const { alpha, flagged, falseAlarms, misses, positives } = result;
    set("wrong", "");
    set(
      "rule",
      ofEachCase ? "Flag a case if the miss would be expected to cost more than the false alarm: probability × cost of a miss above (1 − probability) × cost of a false alarm."
        : `${compared(state.miss / state.falseAlarm)}: flag a case if its probability to be positive is above ${percent(alpha)}.`,
      alpha,
    );
    set("flagged", whole(flagged), flagged);
    set("flagged-note", `of ${whole(n)}, that is ${percent(flagged / n)}`);
    set("false-alarms", rough(falseAlarms), falseAlarms);
    set("false-alarms-note", `${rough(per1000(falseAlarms))} per 1,000 cases`, per1000(falseAlarms));
    set("misses", rough(misses), misses);
    set("misses-note", `${rough(per1000(misses))} per 1,000 cases`, per1000(misses));
    set("cost", money(result.cost), result.cost);
    set("cost-note", `${money(per1000(result.cost))} per 1,000 cases`, per1000(result.cost));
    const likely = bands(result, state);
    if (likely) {
      for (const [name, ends] of [["false-alarms", likely.falseAlarms], ["misses", likely.misses]]) {
        set(`${name}-band`, `likely ${whole(ends[0])} to ${whole(ends[1])}`, ends);
      }
      const reach = (end) => Math.hypot(state.falseAlarm * (likely.falseAlarms[end] - falseAlarms), state.miss * (likely.misses[end] - misses));
      const ends = [Math.max(result.cost - reach(0), 0), result.cost + reach(1)];
      set("cost-band", `likely ${rough(ends[0])} to ${money(ends[1])}`, ends);
    }
    set("constants", `To flag no case would cost ${money(result.costOfNone)}, to flag all of them ${money(result.costOfAll)}.`);
    const mean = positives / n;
    const odd = Math.abs(mean - state.testPrior) > Math.max(0.05, 0.25 * Math.min(state.testPrior, 1 - state.testPrior));
    byId("doubt").hidden = !odd;
    set("doubt", `These cases contradict that share: with ${percent(state.testPrior)} positives their probabilities should average to it, but the mean is ${percent(mean)}. Is the share of positives right?`, mean);
    const keep = data.keep.map((column) => `--keep ${shell(column.name)} `).join("");
    const [falseAlarm, miss] = ["falseAlarm", "miss"].map((name) => (data.costs[name] ? shell(data.costs[name].name) : exact(state[name])));
    const costs = ofEachCase ? `--false-alarm ${falseAlarm} --miss ${miss}` : `--alpha ${exact(alpha)}`;
    set("command", `pu-shift predict ${shell(data.model)} ${shell(data.data)} ${keep}--test-prior ${exact(state.testPrior)} ${costs} --out predictions.csv`);
    set("live", `${whole(flagged)} flagged · cost ${money(result.cost)}`);
    histogram(result);
    list(result);
    // Screen readers hear where a slider stops, not every step on its way.
    clearTimeout(announce);
    announce = setTimeout(() => set("summary", `${whole(flagged)} of ${whole(n)} cases flagged, ${rough(falseAlarms)} false alarms and ${rough(misses)} missed cases expected, cost ${money(result.cost)}`), 400);
  }
  for (const unit of document.querySelectorAll(".unit")) unit.textContent = data.unit;
  for (const name of Object.keys(kinds)) place(name);
  window.addEventListener("resize", () => histogram(decide(state)));
  show();
  document.documentElement.dataset.ready = "true";
})();
