
  // Draws the requests of a load into an element: the steps of the server, sequences in each, requests that wait, and a bar for each
  // request. `timeline` gives the timeline of the page, where it has one.
  const requestsView = (view, data, timeline) => {
    const part = (name) => view.querySelector(name);
    const [canvas, find, sum, about, panel] = ["canvas", ".find", ".sum", ".about", ".panel"].map(part);
    const context = canvas.getContext("2d");
    const { requests, steps } = data;
    const due = sums(requests.due);
    const starts = sums(steps.start);
    const from = starts.map((start, step) => start + steps.device_start[step]);
    const to = from.map((start, step) => start + steps.device_length[step]);
    const count = due.length;
    const end = due.map((at, request) => at + (requests.latency[request] ?? 0));
    const firstRun = new Uint32Array(count + 1);
    requests.runs.forEach((runs, request) => (firstRun[request + 1] = firstRun[request] + runs));

    // The moment from which a request no longer waits: its first step is prepared, or its first token is there.
    const served = due.map((at, request) => {
      const run = firstRun[request];
      if (run < firstRun[request + 1]) return Math.max(starts[requests.run_step[run]], at);
      return at + (requests.ttft[request] ?? 0);
    });
    const arrivals = Float64Array.from(due).sort();
    const departures = Float64Array.from(served).sort();

    const hasSteps = starts.length > 0;
    const narrow = canvas.clientWidth < 600;
    const label = narrow ? 96 : 210;
    const axis = 22;
    let top = axis;
    const lane = (height) => {
      const from = top;
      top += height + 10;
      return { top: from, height };
    };
    const strip = lane(hasSteps ? 14 : -10);
    const sequences = lane(hasSteps ? 48 : -10);
    const waiting = lane(36);
    const bars = lane(Math.min(Math.max(count * 14, 56), 420));
    canvas.style.height = `${top}px`;
    about.textContent = `${count.toLocaleString("en")} requests, ${starts.length.toLocaleString("en")} steps.`;

    let hover = null;
    let chosen = {};
    let rows = [];
    const place = { span: data.span, label, width: canvas.clientWidth - label };
    const redraw = onceAFrame(() => draw());
    const { range, show, ns, x } = zoomable(canvas, place, redraw, {
      ArrowUp: () => nextRequest(-1),
      ArrowDown: () => nextRequest(1),
      Escape: () => {
        choose({});
        show(0, data.span);
      },
    });
    const rowHeight = () => Math.min(14, bars.height / Math.max(rows.length, 1));
    const coloursOf = () => {
      const colours = {};
      for (const swatch of view.querySelectorAll(".legend i")) colours[swatch.className.slice(2)] = getComputedStyle(swatch).backgroundColor;
      return colours;
    };
    const kindOfStep = (step) => ({ prefill: "prefill", mixed: "mixed" })[steps.label[step]] ?? "decode";
    const kindOfWork = (work, step) => (work === "decode" && steps.label[step] === "mixed" ? "mixed" : work);

    const isVisible = (from, to) => to >= range.from && from <= range.to;
    const box = (colour, from, to, y, height) => {
      const [left, right] = [Math.max(x(from), label), Math.min(x(to), label + place.width)];
      if (right < label || left > label + place.width) return;
      context.fillStyle = colour;
      context.fillRect(left, y, Math.max(right - left, 0.7), height);
    };

    const drawSteps = (colours) => {
      const [context_, generation] = [new Uint32Array(place.width + 1), new Uint32Array(place.width + 1)];
      for (let step = 0; step < starts.length; step++) {
        if (to[step] <= from[step] || !isVisible(from[step], to[step])) continue;
        box(colours[kindOfStep(step)], from[step], to[step], strip.top, strip.height);
        // The most of each column of pixels: a peak must not be lost.
        const last = Math.min(x(to[step]) - label, place.width);
        for (let px = Math.max(Math.floor(x(from[step]) - label), 0); px <= last; px++) {
          context_[px] = Math.max(context_[px], steps.context[step]);
          generation[px] = Math.max(generation[px], steps.generation[step]);
        }
      }
      columns(sequences, [[generation, colours.decode], [context_, colours.prefill]]);
    };

    // Stacked columns of whole numbers, one for each column of pixels, with the largest sum at the left.
    const columns = (lane, layers) => {
      const sum = (px) => layers.reduce((all, [values]) => all + values[px], 0);
      let most = 1;
      for (let px = 0; px <= place.width; px++) most = Math.max(most, sum(px));
      for (let px = 0; px <= place.width; px++) {
        let base = lane.top + lane.height;
        for (const [values, colour] of layers) {
          const height = (values[px] / most) * lane.height;
          context.fillStyle = colour;
          context.fillRect(label + px, base - height, 1, height);
          base -= height;
        }
      }
      context.fillStyle = getComputedStyle(document.body).color;
      context.textAlign = "right";
      context.fillText(String(most), label - 6, lane.top + 9);
      context.fillText("0", label - 6, lane.top + lane.height);
      context.textAlign = "left";
    };

    // How many of these moments are not after another.
    const before = (moments, at) => {
      let [low, high] = [0, moments.length];
      while (low < high) {
        const middle = (low + high) >> 1;
        if (moments[middle] <= at) low = middle + 1;
        else high = middle;
      }
      return low;
    };

    const drawWaiting = (colours) => {
      const values = new Uint32Array(place.width + 1);
      let [arrived, gone] = [before(arrivals, range.from), before(departures, range.from)];
      for (let px = 0; px <= place.width; px++) {
        const until = ns(label + px + 1);
        let most = arrived - gone;
        while (arrived < count && arrivals[arrived] <= until) {
          while (gone < count && departures[gone] <= arrivals[arrived]) gone++;
          most = Math.max(most, ++arrived - gone);
        }
        while (gone < count && departures[gone] <= until) gone++;
        values[px] = Math.max(most, 0);
      }
      columns(waiting, [[values, colours.queue ?? colours.first]]);
    };

    const drawRequest = (request, y, height, colours) => {
      const [first, last] = [firstRun[request], firstRun[request + 1]];
      const matched = first < last;
      if (!matched) {
        const token = due[request] + (requests.ttft[request] ?? 0);
        box(colours.first, due[request], token, y, height);
        box(colours.output, token, end[request], y, height);
        return;
      }
      if (height >= 3) box(colours.between, due[request], end[request], y + height * 0.375, Math.max(height / 4, 1));
      box(colours.queue, due[request], served[request], y, height);
      for (let run = first; run < last; run++) drawRun(run, y, height, colours);
      const final = requests.run_step[last - 1] + requests.run_length[last - 1] - 1;
      box(colours.return, Math.min(to[final], end[request]), end[request], y, height);
    };

    // Step by step where a row can be told from its neighbours; as one bar where it cannot.
    const drawRun = (run, y, height, colours) => {
      const [first, length, work] = [requests.run_step[run], requests.run_length[run], requests.run_work[run]];
      const last = first + length - 1;
      if (!isVisible(from[first], to[last])) return;
      if (height < 3) return box(colours[work], from[first], to[last], y, height);
      let open = null;
      for (let step = first; step <= last; step++) {
        if (to[step] <= from[step] || !isVisible(from[step], to[step])) continue;
        const colour = colours[kindOfWork(work, step)];
        if (open && open.colour === colour && x(from[step]) - x(open.to) < 0.6) open.to = to[step];
        else {
          if (open) box(open.colour, open.from, open.to, y, height);
          open = { colour, from: from[step], to: to[step] };
        }
      }
      if (open) box(open.colour, open.from, open.to, y, height);
    };

    const drawLabels = (colour) => {
      context.fillStyle = colour;
      const names = hasSteps
        ? [[strip, "steps on the device"], [sequences, "sequences per step"], [waiting, "requests waiting"]]
        : [[waiting, "waiting for the first token"]];
      for (const [lane, name] of [...names, [bars, "requests by due time"]]) context.fillText(name, 2, lane.top + 11, label - 34);
      const height = rowHeight();
      if (height < 11 || narrow) return;
      context.textAlign = "right";
      rows.forEach((request, row) => context.fillText(`#${requests.number[request]}`, label - 6, bars.top + row * height + 10));
      context.textAlign = "left";
    };

    const drawChosen = (colour) => {
      if (chosen.step !== undefined) {
        context.globalAlpha = 0.25;
        box(colour, from[chosen.step], to[chosen.step], strip.top, top - strip.top);
        context.globalAlpha = 1;
      }
      const row = rows.indexOf(chosen.request);
      if (row < 0) return;
      const height = Math.max(rowHeight(), 4);
      context.strokeStyle = colour;
      context.strokeRect(label - 0.5, bars.top + row * rowHeight() - 1, place.width, height);
    };

    const draw = () => {
      const width = cleared(canvas, context, top);
      place.width = width - label;
      // A closed section has no width.
      if (place.width <= 0) return;
      [canvas.dataset.from, canvas.dataset.to] = [range.from, range.to];
      const colour = getComputedStyle(document.body).color;
      const colours = coloursOf();
      rows = [];
      for (let request = 0; request < count; request++) if (isVisible(due[request], end[request])) rows.push(request);
      drawAxis(context, range, x, axis, width);
      drawLabels(colour);
      if (hasSteps) drawSteps(colours);
      drawWaiting(colours);
      const height = rowHeight();
      rows.forEach((request, row) => drawRequest(request, bars.top + row * height, height > 6 ? height - 2 : height, colours));
      drawChosen(colour);
      if (hover) drawHint(context, hover, width, top);
    };

    // The step or request at a place of the canvas.
    const under = (px, py) => {
      if (px < label) return {};
      const at = ns(px);
      if (hasSteps && py >= strip.top && py < waiting.top) {
        const near = (range.to - range.from) / place.width;
        const step = from.findIndex((start, step) => start - near <= at && to[step] + near >= at && to[step] > start);
        return step < 0 ? {} : { step };
      }
      const row = Math.floor((py - bars.top) / rowHeight());
      return py < bars.top || rows[row] === undefined ? {} : { request: rows[row] };
    };

    const nameOf = (request) => `request #${requests.number[request]}${requests.id[request] ? ` (${requests.id[request]})` : ""}`;
    const partsOf = (request) =>
      data.part_names.map((name, part) => [name, requests.parts[part][request]]).filter(([, time]) => time);
    const batchOf = (step) => {
      const [prompts, sequences] = [steps.context[step], steps.generation[step]];
      return `${prompts} ${prompts === 1 ? "prompt" : "prompts"} and ${sequences} decoding ${sequences === 1 ? "sequence" : "sequences"}`;
    };
    const latencyOf = (request) => {
      const [latency, ttft] = [requests.latency[request], requests.ttft[request]];
      const failed = requests.failed[request] ? "failed; " : "";
      return latency === null ? `${failed}no output` : `${failed}latency ${words(latency)}, time to first token ${words(ttft)}`;
    };

    // Rows of a table, at most; more cannot be read.
    const most = 500;
    const rest = (all) => (all > most ? [element("p", `${(all - most).toLocaleString("en")} more are in metrics.json.`)] : []);

    const describeRequest = (request) => {
      const [input, output] = [requests.input[request], requests.output[request]];
      const tokens = `${input ?? "-"} prompt tokens, ${output ?? "-"} output tokens`;
      const rows = [];
      for (let run = firstRun[request]; run < firstRun[request + 1]; run++) {
        for (let index = 0; index < requests.run_length[run]; index++) rows.push([requests.run_step[run] + index, run]);
      }
      const parts = partsOf(request).map(([name, time]) => [name, words(time), `${((time / requests.latency[request]) * 100).toFixed(1)}%`]);
      const taken = rows.slice(0, most).map(([step, run]) => [
        button(String(step), () => choose({ request, step })), words(starts[step]), String(requests.run_tokens[run]), requests.run_work[run], batchOf(step),
      ]);
      return [
        element("h3", nameOf(request)),
        element("p", `Due at ${words(due[request])}; ${latencyOf(request)}; ${tokens}.`),
        ...(parts.length ? [tableOf(["part", "time", "share of its latency"], parts)] : []),
        ...(taken.length ? [tableOf(["step", "prepared from", "its tokens", "work", "batch"], taken), ...rest(rows.length)] : []),
      ];
    };

    const describeStep = (step) => {
      const inside = [];
      for (let request = 0; request < count; request++) {
        for (let run = firstRun[request]; run < firstRun[request + 1]; run++) {
          const first = requests.run_step[run];
          if (step >= first && step < first + requests.run_length[run]) inside.push([request, run]);
        }
      }
      const jump = () => timeline().reveal(...[from, to].map((at) => data.origin + at[step] - timeline().origin));
      const taken = inside.slice(0, most).map(([request, run]) => [
        button(nameOf(request), () => choose({ request, step })), String(requests.run_tokens[run]), requests.run_work[run],
      ]);
      const tokens = steps.tokens[step] === null ? "" : `, ${steps.tokens[step].toLocaleString("en")} tokens`;
      const roofline = steps.roofline[step] === null ? "" : ` (roofline time ${words(steps.roofline[step])})`;
      return [
        element("h3", `step ${step} (${steps.label[step] ?? "unknown work"})`),
        element("p", `${batchOf(step)}${tokens}. On the device from ${words(from[step])} for ${words(to[step] - from[step])}, busy for `
          + `${words(steps.busy[step])}${roofline} with ${steps.kernels[step].toLocaleString("en")} kernels; prepared from ${words(starts[step])}.`),
        ...(timeline() ? [button("show in the timeline", jump)] : []),
        ...(taken.length ? [tableOf(["request", "its tokens", "work"], taken), ...rest(inside.length)] : []),
      ];
    };

    const choose = (what) => {
      chosen = what;
      const { request, step } = what;
      const said = [
        ...(request === undefined ? [] : [`${nameOf(request)}: ${latencyOf(request)}`]),
        ...(step === undefined ? [] : [`step ${step}: ${batchOf(step)}, ${words(to[step] - from[step])}`]),
      ];
      sum.textContent = said.join("; ");
      panel.replaceChildren(...(step === undefined ? [] : describeStep(step)), ...(request === undefined ? [] : describeRequest(request)));
      redraw();
    };
    const chooseRequest = (request) => {
      if (!isVisible(due[request], end[request])) {
        const [half, middle] = [(range.to - range.from) / 2, (due[request] + end[request]) / 2];
        show(middle - half, middle + half);
      }
      choose({ request });
    };
    const nextRequest = (by) => {
      const next = chosen.request === undefined ? rows[0] ?? 0 : chosen.request + by;
      if (next >= 0 && next < count) chooseRequest(next);
    };

    let drag = null;
    canvas.addEventListener("pointerdown", (event) => {
      drag = { px: event.offsetX, range: { ...range }, moved: false };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      const { offsetX: px, offsetY: py } = event;
      if (drag && (drag.moved || Math.abs(px - drag.px) > 3)) {
        drag.moved = true;
        const by = ((px - drag.px) / place.width) * (drag.range.to - drag.range.from);
        return show(drag.range.from - by, drag.range.to - by);
      }
      const { request, step } = under(px, py);
      hover = null;
      if (step !== undefined) hover = { x: px, y: py, text: `step ${step} (${steps.label[step] ?? "unknown work"}), ${words(to[step] - from[step])}`, more: batchOf(step) };
      if (request !== undefined) {
        const parts = partsOf(request).sort((a, b) => b[1] - a[1]).slice(0, 4).map(([name, time]) => `${name} ${words(time)}`);
        hover = { x: px, y: py, text: `${nameOf(request)}: ${latencyOf(request)}`, more: parts.join(", ") };
      }
      redraw();
    });
    canvas.addEventListener("pointerup", (event) => {
      const moved = drag?.moved;
      drag = null;
      if (!moved) choose(under(event.offsetX, event.offsetY));
    });
    canvas.addEventListener("pointerleave", () => {
      hover = null;
      redraw();
    });
    part(".all").addEventListener("click", () => show(0, data.span));
    find.addEventListener("input", () => {
      const wanted = find.value.trim().replace(/^#/, "");
      const isWanted = (number, request) => String(number) === wanted || (wanted && requests.id[request]?.includes(wanted));
      const found = requests.number.findIndex(isWanted);
      if (found >= 0) chooseRequest(found);
      else choose({});
    });
    new ResizeObserver(redraw).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
    draw();
    canvas.dataset.ready = performance.now().toFixed(1);
  };
