  const words = (ns) => {
    const size = Math.abs(ns);
    if (size >= 1e9) return `${(ns / 1e9).toPrecision(3)} s`;
    if (size >= 1e6) return `${(ns / 1e6).toPrecision(3)} ms`;
    if (size >= 1e3) return `${(ns / 1e3).toPrecision(3)} us`;
    return `${Math.round(ns)} ns`;
  };

  const isDark = () => matchMedia("(prefers-color-scheme: dark)").matches;

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

  // Round times of a range, below the top.
  const drawAxis = (context, range, x, axis, width) => {
    const span = range.to - range.from;
    const step = 10 ** Math.floor(Math.log10(span / 4));
    for (let at = Math.ceil(range.from / step) * step; at <= range.to; at += step * (span / step > 12 ? 5 : 1)) {
      context.fillRect(x(at), axis - 5, 1, 5);
      if (x(at) + 52 < width) context.fillText(words(at), x(at) + 2, axis - 8);
    }
  };

  // Two lines beside the pointer.
  const drawHint = (context, hover, width, height) => {
    const text = getComputedStyle(document.body).color;
    const texts = [hover.text, hover.more];
    const wide = Math.min(Math.max(...texts.map((one) => context.measureText(one).width)) + 12, width - 8);
    const left = Math.min(hover.x + 10, width - wide - 4);
    const up = Math.min(hover.y + 12, height - 38);
    context.fillStyle = isDark() ? "#000" : "#fff";
    context.fillRect(left, up, wide, 34);
    context.strokeStyle = text;
    context.strokeRect(left, up, wide, 34);
    context.fillStyle = text;
    texts.forEach((one, line) => context.fillText(one, left + 6, up + 14 + 14 * line, wide - 12));
  };

  // A range of time that wheel and keys zoom and pan; `place` has the span, the room for labels, and the width beside them.
  const zoomable = (canvas, place, redraw, keys) => {
    const range = { from: 0, to: place.span };
    const show = (from, to) => {
      const least = Math.min(100, place.span || 1);
      const span = Math.min(Math.max(to - from, least), Math.max(place.span, 1));
      range.from = Math.min(Math.max(from, 0), Math.max(place.span - span, 0));
      range.to = range.from + span;
      redraw();
    };
    const ns = (px) => range.from + ((px - place.label) / place.width) * (range.to - range.from);
    const x = (at) => place.label + ((at - range.from) / (range.to - range.from)) * place.width;
    const zoom = (factor, at) => show(at - (at - range.from) * factor, at + (range.to - at) * factor);
    canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.altKey && Math.abs(event.deltaX) < Math.abs(event.deltaY) && document.activeElement !== canvas) return;
      event.preventDefault();
      if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        const by = (event.deltaX / place.width) * (range.to - range.from);
        show(range.from + by, range.to + by);
      } else zoom(Math.exp(event.deltaY / 400), ns(event.offsetX));
    }, { passive: false });
    canvas.addEventListener("keydown", (event) => {
      const [span, middle] = [range.to - range.from, (range.from + range.to) / 2];
      const does = {
        "+": () => zoom(0.5, middle),
        "=": () => zoom(0.5, middle),
        "-": () => zoom(2, middle),
        ArrowLeft: () => show(range.from - span / 8, range.to - span / 8),
        ArrowRight: () => show(range.from + span / 8, range.to + span / 8),
        ...keys,
      }[event.key];
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
