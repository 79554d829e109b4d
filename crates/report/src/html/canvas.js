
  const isDark = () => matchMedia("(prefers-color-scheme: dark)").matches;

  // The colour of a stage, a family of kernels, a cause: the one that every timeline and chart of them has for it.
  const colourOf = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim() || "#8a94a0";

  // Black or white, whichever is read on a colour.
  const inkOn = (colour) => {
    const [red, green, blue] = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
    return 0.299 * red + 0.587 * green + 0.114 * blue > 140 ? "#000" : "#fff";
  };

  // Runs a drawing at most once a frame.
  const onceAFrame = (draw) => {
    let waiting = false;
    return () => {
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => {
        waiting = false;
        draw();
      });
    };
  };

  // An empty canvas of a height, as sharp as the screen. Asking for the width of an element is slow; it is asked for once in each
  // drawing.
  const cleared = (canvas, context, height) => {
    const [scale, width] = [devicePixelRatio || 1, canvas.clientWidth];
    const size = [Math.round(width * scale), Math.round(height * scale)];
    if (canvas.width !== size[0] || canvas.height !== size[1]) [canvas.width, canvas.height] = size;
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, width, height);
    context.font = "11px system-ui, sans-serif";
    context.fillStyle = getComputedStyle(document.body).color;
    return width;
  };

  // Round times of a range, below the top; what they are relative to, where they are, stands at the left.
  const drawAxis = (context, range, x, axis, width) => {
    const left = x(range.from);
    const { base, marks } = ticks(range.from, range.to, Math.max((width - left) / 90, 2));
    if (base !== null) context.fillText(`${exactly(base)}`, 2, axis - 8, left - 8);
    for (const { at, text } of marks) {
      context.fillRect(x(at), axis - 5, 1, 5);
      if (x(at) + context.measureText(text).width + 4 < width) context.fillText(text, x(at) + 2, axis - 8);
    }
  };

  // Lines beside the pointer.
  const drawHint = (context, hover, width, height) => {
    const text = getComputedStyle(document.body).color;
    const texts = [hover.text, hover.more, ...(hover.rest ?? [])].filter(Boolean);
    const wide = Math.min(Math.max(...texts.map((one) => context.measureText(one).width)) + 12, width - 8);
    const tall = 6 + 14 * texts.length;
    const left = Math.min(hover.x + 10, width - wide - 4);
    const up = Math.max(Math.min(hover.y + 12, height - tall - 4), 0);
    context.fillStyle = isDark() ? "#000" : "#fff";
    context.fillRect(left, up, wide, tall);
    context.strokeStyle = text;
    context.strokeRect(left, up, wide, tall);
    context.fillStyle = text;
    texts.forEach((one, line) => context.fillText(one, left + 6, up + 14 + 14 * line, wide - 12));
  };

  // A range of time that wheel and keys zoom and pan; `place` has the span, the room for labels, and the width beside them.
  // `changed` is told of each change that its reader made.
  const zoomable = (canvas, place, redraw, keys, changed = () => {}) => {
    const range = { from: 0, to: place.span };
    const show = (from, to) => {
      const least = Math.min(10, place.span || 1);
      const span = Math.min(Math.max(to - from, least), Math.max(place.span, 1));
      range.from = Math.min(Math.max(from, 0), Math.max(place.span - span, 0));
      range.to = range.from + span;
      redraw();
      changed();
    };
    const ns = (px) => range.from + ((px - place.label) / place.width) * (range.to - range.from);
    const x = (at) => place.label + ((at - range.from) / (range.to - range.from)) * place.width;
    const zoom = (factor, at) => show(at - (at - range.from) * factor, at + (range.to - at) * factor);
    const pan = (share) => show(range.from + share * (range.to - range.from), range.to + share * (range.to - range.from));
    const says = canvas.parentElement.querySelector(".wheel");
    canvas.addEventListener("wheel", (event) => {
      const across = Math.abs(event.deltaX) > Math.abs(event.deltaY);
      if (!event.ctrlKey && !event.altKey && !across && document.activeElement !== canvas) {
        if (says) says.hidden = false;
        return;
      }
      if (says) says.hidden = true;
      event.preventDefault();
      if (across) pan(event.deltaX / place.width);
      else zoom(Math.exp(event.deltaY / 400), ns(event.offsetX));
    }, { passive: false });
    canvas.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      // Keys zoom in on what the reader is at, where that is seen.
      const at = place.at?.() ?? NaN;
      const middle = at >= range.from && at <= range.to ? at : (range.from + range.to) / 2;
      const closer = () => zoom(0.5, middle);
      const further = () => zoom(2, middle);
      const does = {
        "+": closer, "=": closer, w: closer, "-": further, s: further,
        ArrowLeft: () => pan(-1 / 8), a: () => pan(-1 / 8), ArrowRight: () => pan(1 / 8), d: () => pan(1 / 8),
        ...keys,
      }[event.key.length === 1 ? event.key.toLowerCase() : event.key];
      if (!does) return;
      event.preventDefault();
      does();
    });
    return { range, show, ns, x };
  };

  // Values from their differences.
  const sums = (differences) => {
    let at = 0;
    return Float64Array.from(differences, (step) => (at += step));
  };

  const element = (name, ...children) => {
    const made = document.createElement(name);
    made.append(...children);
    return made;
  };
  const button = (text, does) => {
    const made = element("button", text);
    made.type = "button";
    made.addEventListener("click", does);
    return made;
  };
  const tableOf = (heads, rows) => {
    const head = element("tr", ...heads.map((text) => element("th", text)));
    const body = rows.map((cells) => element("tr", ...cells.map((cell) => element("td", cell))));
    const scroll = element("div", element("table", element("thead", head), element("tbody", ...body)));
    [scroll.className, scroll.tabIndex] = ["scroll", 0];
    return scroll;
  };
