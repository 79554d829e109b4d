//! `report`: the page in a browser.

use serde_json::{Value, json};

use crate::browser::{Browser, browser, firefox};
use crate::scratch::{Output, Scratch, capture};

/// Nothing was complained of, and nothing but the page itself was asked for.
fn assert_quiet(browser: &Browser) {
    assert_eq!(browser.complaints(), Vec::<String>::new());
    // Pictures of inputs are in the page itself.
    let requests = browser.requests().into_iter().filter(|url| !url.starts_with("data:"));
    let (own, asked): (Vec<_>, Vec<_>) = requests.partition(|url| url.starts_with("file://"));
    assert!(!own.is_empty(), "the page itself is among what was asked for");
    assert_eq!(asked, Vec::<String>::new());
}

fn number(value: &Value) -> i64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number")).round() as i64
}

pub(crate) const CANVAS: &str = "document.querySelector('#timeline canvas')";

/// Everything selected is what the metrics say the device was busy and idle for.
fn assert_sums(browser: &Browser, metrics: &Value) {
    browser.value(&format!("{CANVAS}.scrollIntoView({{ behavior: 'instant', block: 'start' }})"));
    let place =
        browser.value(&format!("(({{ left, right, top }}) => [left, right, top])({CANVAS}.getBoundingClientRect())"));
    let [left, right, top] = [0, 1, 2].map(|index| number(&place[index]));
    browser.drag([left + 5, top + 40], [right + 10, top + 40]);
    let sums = browser.value("document.querySelector('#timeline .sum').dataset.ns");
    let sums: Value = serde_json::from_str(sums.as_str().unwrap()).unwrap();
    let lane = |name: &str| {
        let lanes = sums.as_array().unwrap();
        lanes.iter().find(|one| one["lane"].as_str().unwrap().contains(name)).unwrap_or_else(|| panic!("{sums}"))
    };
    let time = &metrics["device_time"][0];
    assert_eq!(number(&lane("stream")["ns"]), number(&time["busy_ns"]));
    assert_eq!(number(&lane("idle")["ns"]), number(&time["idle_ns"]));
    // Every cause has the time that the metrics give it, and no other is named.
    let causes = lane("idle")["causes"].as_object().unwrap();
    let idle = time["idle"].as_array().unwrap();
    assert_eq!(causes.len(), idle.len(), "{causes:?}");
    let mut drawn: Vec<i64> = causes.values().map(number).collect();
    drawn.sort_unstable_by_key(|ns| std::cmp::Reverse(*ns));
    assert_eq!(drawn, idle.iter().map(|one| number(&one["ns"])).collect::<Vec<_>>(), "{causes:?}");
    let copies: i64 = time["copies"].as_array().unwrap().iter().map(|one| number(&one["calls"])).sum();
    assert_eq!(number(&lane("stream")["events"]), number(&metrics["totals"]["kernel_count"]) + copies);
}

pub(crate) fn a_real_capture_can_be_sorted_filtered_zoomed_and_summed() {
    let browser = browser();
    let scratch = Scratch::imported(&capture("torch/dsocr-h200.json.gz"));
    browser.open(&scratch.page(&["run"]));

    // The kernels by launches, most first.
    let table = "[...document.querySelectorAll('#kernels table')].find((one) => one.tBodies[0].rows.length > 20)";
    browser.value("document.querySelector('#kernels details').open = true");
    let head = format!("[...({table}).tHead.rows[0].cells].findIndex((one) => one.textContent === 'calls')");
    let column = number(&browser.value(&head));
    assert!(column >= 0, "{}", browser.value(&format!("({table}).tHead.textContent")));
    browser.value(&format!("({table}).tHead.rows[0].cells[{column}].querySelector('button').click()"));
    let cells =
        format!("[...({table}).tBodies[0].rows].map((row) => +row.cells[{column}].textContent.replaceAll(',', ''))");
    let calls: Vec<i64> = browser.value(&cells).as_array().unwrap().iter().map(number).collect();
    assert!(calls.windows(2).all(|pair| pair[0] >= pair[1]) && calls[0] > calls[calls.len() - 1], "{calls:?}");

    // Only what contains the word stays.
    let filter = format!("({table}).parentElement.previousElementSibling.querySelector('input')");
    browser.value(&format!("((one) => {{ one.value = 'gemm'; one.dispatchEvent(new Event('input')); }})({filter})"));
    let left = format!("[...({table}).tBodies[0].rows].filter((row) => !row.hidden).map((row) => row.textContent)");
    let left = browser.value(&left);
    let left = left.as_array().unwrap();
    assert!(!left.is_empty() && left.len() < calls.len());
    assert!(left.iter().all(|row| row.as_str().unwrap().to_lowercase().contains("gemm")), "{left:?}");

    assert_sums(&browser, &scratch.json("run", "metrics.json"));

    // Zooming in halves what is seen.
    let canvas = CANVAS;
    let seen = || number(&browser.value(&format!("{canvas}.dataset.to - {canvas}.dataset.from")));
    let whole = seen();
    browser.value(&format!("{canvas}.dispatchEvent(new KeyboardEvent('keydown', {{ key: '+' }}))"));
    browser.wait(&format!("{canvas}.dataset.to - {canvas}.dataset.from < {whole}"));
    assert!((seen() - whole / 2).abs() <= 1, "{} of {whole}", seen());
    assert_quiet(&browser);
}

/// How much of a lane is painted: the ink of its row over its area, in columns of pixels, and how many columns it has.
pub(crate) fn painted(browser: &Browser, lane: &str) -> [f64; 2] {
    let script = format!(
        "((canvas) => {{ const lane = JSON.parse(canvas.dataset.lanes).find((one) => one.name.includes('{lane}'));
           const wide = canvas.clientWidth - lane.left;
           const copy = Object.assign(document.createElement('canvas'), {{ width: canvas.width, height: canvas.height }});
           const context = copy.getContext('2d', {{ willReadFrequently: true }});
           context.drawImage(canvas, 0, 0);
           const {{ data }} = context.getImageData(lane.left, lane.top, wide, lane.height);
           let ink = 0;
           for (let at = 3; at < data.length; at += 4) ink += data[at];
           return [ink / 255 / lane.height, wide]; }})({CANVAS})"
    );
    let found = browser.value(&script);
    [0, 1].map(|index| found[index].as_f64().unwrap())
}

/// Shows this range of the timeline, by its address.
pub(crate) fn zoom(browser: &Browser, from: i64, to: i64) {
    browser.value(&format!("location.hash = '#timeline@{from},{to}'"));
    browser.wait(&format!("Math.abs({CANVAS}.dataset.from - {from}) + Math.abs({CANVAS}.dataset.to - {to}) < 2"));
}

pub(crate) fn what_is_painted_is_what_the_metrics_say_at_three_zooms() {
    let browser = browser();
    let scratch = Scratch::imported(&capture("torch/dsocr-h200.json.gz"));
    browser.open(&scratch.page(&["run"]));
    let metrics = scratch.json("run", "metrics.json");
    let origin = number(&browser.value(&format!("+{CANVAS}.dataset.origin")));
    let whole = number(&browser.value(&format!("+{CANVAS}.dataset.to")));
    let assert_painted = |lane: &str, busy: i64, span: i64| {
        let [ink, columns] = painted(&browser, lane);
        let expected = busy as f64 / span as f64 * columns;
        assert!((ink - expected).abs() < 1.0, "{lane}: {ink:.2} columns of {columns}, not {expected:.2}");
    };
    let time = &metrics["device_time"][0];
    assert_painted("stream", number(&time["busy_ns"]), whole);
    assert_painted("idle", number(&time["idle_ns"]), whole);
    let steps = metrics["steps"]["list"].as_array().unwrap();
    for shown in [&steps[..2], &steps[1..2]] {
        let start = number(&shown[0]["device_start_ns"]) - origin;
        let end = number(&shown[shown.len() - 1]["device_end_ns"]) - origin;
        zoom(&browser, start, end);
        let busy = shown.iter().map(|step| number(&step["device_ns"])).sum();
        assert_painted("stream", busy, end - start);
        assert_painted("idle", end - start - busy, end - start);
    }
    assert_quiet(&browser);
}

pub(crate) fn labels_of_the_axis_are_distinct_at_every_zoom() {
    let browser = browser();
    let scratch = Scratch::imported(&capture("torch/small.json"));
    browser.open(&scratch.page(&["run"]));
    // From an hour to ten nanoseconds, at the start, after a second and after a day.
    let script = format!(
        "((({{ ticks }}) => {{ const wrong = [];
           for (const from of [0, 1234567891, 86400e9 + 181204345]) for (let power = 1; power < 12.6; power += 0.1) {{
             const {{ marks }} = ticks(from, from + 10 ** power, 10);
             const texts = new Set(marks.map(({{ text }}) => text));
             if (texts.size !== marks.length || marks.length < 3 || marks.length > 12) wrong.push([from, power, ...texts]);
           }}
           return wrong; }})((() => {{ {}; return {{ ticks }}; }})()))",
        include_str!("../../../report/src/html/time.js")
    );
    assert_eq!(browser.value(&script), json!([]));
}

pub(crate) fn search_finds_what_it_counts_and_the_address_opens_what_was_seen() {
    let browser = browser();
    let capture = capture("torch/dsocr-h200.json.gz");
    let scratch = Scratch::new();
    let arguments = ["import", capture.to_str().unwrap(), "--model", "deepseek-ocr", "--out", "run"];
    let output = Output::of(scratch.command(&arguments));
    assert_eq!(output.code, 0, "{}", output.stderr);
    let page = scratch.page(&["run"]);
    browser.open(&page);
    let search = |text: &str| {
        let find = "document.querySelector('#timeline .find')";
        browser
            .value(&format!("((one) => {{ one.value = '{text}'; one.dispatchEvent(new Event('input')); }})({find})"));
    };
    let hits = "document.querySelector('#timeline .hits').textContent";
    let metrics = scratch.json("run", "metrics.json");
    let kernels = metrics["kernels"].as_array().unwrap();
    let is_cat = |kernel: &&Value| kernel["name"].as_str().unwrap().contains("CatArrayBatchedCopy");
    let calls: i64 = kernels.iter().filter(is_cat).map(|kernel| number(&kernel["calls"])).sum();
    search("CatArrayBatchedCopy");
    assert_eq!(browser.value(hits), json!(format!("{calls} hits")));
    browser.value("document.querySelector('#timeline .next').click()");
    assert_eq!(browser.value(hits), json!(format!("1 of {calls} hits")));
    let panel = "document.querySelector('#timeline .panel').textContent";
    let said = browser.value(panel);
    for part in [
        "CatArrayBatchedCopy",
        "launched by",
        "cudaLaunchKernel",
        "operator",
        "aten::cat",
        "modulemodel",
        "grid ",
        "idle before",
        "ranking",
    ] {
        assert!(said.as_str().unwrap().contains(part), "{part}: {said}");
    }
    // The address opens the same event and range in another window.
    browser.wait("location.hash.split(',').length === 4");
    let seen = "[location.hash, document.querySelector('#timeline canvas').dataset.from]";
    let before = browser.value(seen);
    browser.value("location.reload()");
    browser.wait(&format!("!!{CANVAS}?.dataset.ready && {panel} !== ''"));
    assert_eq!(browser.value(seen), before);
    assert_eq!(browser.value(panel), said);
    // By keys alone: the next event, its time, and all of it.
    browser.value(&format!("{CANVAS}.focus()"));
    let press = |key: &str| {
        browser
            .value(&format!("document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {{ key: '{key}' }}))"));
    };
    press(".");
    assert_ne!(browser.value(panel), said);
    press("f");
    press("m");
    let selected = browser.value("document.querySelector('#timeline .sum').textContent");
    assert!(selected.as_str().unwrap().contains(" selected: "), "{selected}");
    assert_quiet(&browser);
}

pub(crate) fn ranks_are_drawn_on_one_clock_and_sum_to_their_metrics() {
    let browser = browser();
    let scratch = Scratch::new();
    let captures = ["torch/two-ranks-h200-0.json.gz", "torch/two-ranks-h200-1.json.gz"].map(capture);
    let arguments = ["import", captures[0].to_str().unwrap(), captures[1].to_str().unwrap(), "--out", "run"];
    let output = Output::of(scratch.command(&arguments));
    assert_eq!(output.code, 0, "{}", output.stderr);
    browser.open(&scratch.page(&["run"]));
    let metrics = scratch.json("run", "metrics.json");
    let whole = number(&browser.value(&format!("+{CANVAS}.dataset.to")));
    for (rank, time) in metrics["device_time"].as_array().unwrap().iter().enumerate() {
        let [ink, columns] = painted(&browser, &format!("rank {rank}, device 0, stream"));
        let expected = time["busy_ns"].as_f64().unwrap() / whole as f64 * columns;
        assert!((ink - expected).abs() < 1.0, "rank {rank}: {ink:.2} columns of {columns}, not {expected:.2}");
    }
    // Both start within a step of each other, because their collectives end together.
    let about = browser.value("document.querySelector('#timeline .about').textContent");
    assert!(
        about.as_str().unwrap().contains("Ranks are on one clock, aligned on collective end times, to "),
        "{about}"
    );
    assert!(whole < 2 * number(&metrics["device_time"][0]["span_ns"]), "{whole}");
    // What launched the kernels of both is a graph, its steps together.
    browser.value("document.querySelector('#stacks .find').value = 'together'");
    browser.value("document.querySelector('#stacks .find').dispatchEvent(new Event('input'))");
    assert_eq!(browser.value("document.querySelector('#stacks .hits').textContent"), json!("2 hits"));
    assert_quiet(&browser);
}

pub(crate) fn keys_alone_reach_everything() {
    let browser = browser();
    let scratch = Scratch::imported(&capture("torch/small.json"));
    browser.open(&scratch.page(&["run"]));
    let all = "[...document.querySelectorAll('a[href], button, input, summary, canvas, .scroll, figure')]\
               .filter((one) => one.checkVisibility())";
    let count = number(&browser.value(&format!("{all}.length")));
    browser.value("(window.reached = new Set(), addEventListener('focusin', (event) => reached.add(event.target)))");
    for _ in 0..count + 2 {
        let tab = json!({ "type": "keyDown", "key": "Tab", "code": "Tab", "windowsVirtualKeyCode": 9 });
        browser.command("Input.dispatchKeyEvent", &tab);
    }
    let missed = format!("{all}.filter((one) => !reached.has(one)).map((one) => one.outerHTML.slice(0, 80))");
    assert_eq!(browser.value(&missed), json!([]), "of {count}");
    // In the timeline: an event, its details, and the call that launched it.
    browser.value(&format!("{CANVAS}.focus()"));
    let key =
        |key: &str| browser.command("Input.dispatchKeyEvent", &json!({ "type": "keyDown", "key": key, "text": key }));
    key(".");
    browser.wait("!!document.querySelector('#timeline .panel h3')");
    let focusable =
        browser.value("[...document.querySelectorAll('#timeline .panel button')].every((one) => one.tabIndex === 0)");
    assert_eq!(focusable, json!(true));
}

pub(crate) fn requests_and_steps_lead_to_each_other_and_to_the_timeline() {
    let browser = browser();
    let scratch = Scratch::served();
    browser.open(&scratch.page(&["run"]));
    let metrics = scratch.json("run", "metrics.json");
    let canvas = "document.querySelector('#requests canvas')";
    browser.wait(&format!("!!({canvas}.dataset.ready && {CANVAS}.dataset.ready)"));

    // The second request to be due, by its number.
    browser.value(&format!("{canvas}.dispatchEvent(new KeyboardEvent('keydown', {{ key: 'ArrowDown' }}))"));
    browser.value(&format!("{canvas}.dispatchEvent(new KeyboardEvent('keydown', {{ key: 'ArrowDown' }}))"));
    let tables = "[...document.querySelectorAll('#requests .panel table')].map((one) => one.tBodies[0].rows.length)";
    let request = &metrics["requests"][1];
    let parts = request["parts"].as_object().unwrap().values().filter(|part| number(part) != 0).count();
    let steps = request["steps"].as_array().unwrap();
    assert_eq!(browser.value(tables), json!([parts, steps.len()]));

    // Its first step, and the requests in that.
    browser.value("document.querySelectorAll('#requests .panel table')[1].querySelector('button').click()");
    let step = &steps[0]["step"];
    let title = browser.value("document.querySelector('#requests .panel h3').textContent");
    assert!(title.as_str().unwrap().starts_with(&format!("step {step} (")), "{title}");
    let is_in = |one: &&Value| one["steps"].as_array().unwrap().iter().any(|taken| taken["step"] == *step);
    let inside = metrics["requests"].as_array().unwrap().iter().filter(is_in).count();
    assert_eq!(browser.value(&format!("{tables}[0]")), json!(inside));

    // The timeline shows that step, with a quarter of its time on either side.
    browser.value("document.querySelector('#requests .panel > button').click()");
    let timeline = CANVAS;
    let seen = format!("{timeline}.dataset.to - {timeline}.dataset.from");
    let step = &metrics["steps"]["list"][number(step) as usize];
    let length = number(&step["device_end_ns"]) - number(&step["device_start_ns"]);
    browser.wait(&format!("Math.abs({seen} - {}) < 10", length as f64 * 1.5));
    assert_quiet(&browser);
}

pub(crate) fn a_run_of_our_own_has_its_timeline_at_once() {
    let scratch = Scratch::new();
    let small = ["infer.base_size=64", "infer.image_size=64", "infer.max_tiles=2", "infer.max_new_tokens=4"];
    let output = scratch.profile(&small, &["--out", "run"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let browser = browser();
    browser.open(&scratch.path("run/report.html"));
    let lanes = browser.value(&format!("JSON.parse({CANVAS}.dataset.lanes).map(({{ name }}) => name)"));
    assert_eq!(lanes, json!(["stages", "modules", "operators"]));
    // The first event by keys is the first stage.
    browser.value(&format!("{CANVAS}.dispatchEvent(new KeyboardEvent('keydown', {{ key: '.' }}))"));
    let panel = browser.value("document.querySelector('#timeline .panel h3').textContent");
    assert_eq!(panel, json!("prefill"));
    // Layers are one frame.
    browser.value("document.querySelector('#flame .find').value = 'together'");
    browser.value("document.querySelector('#flame .find').dispatchEvent(new Event('input'))");
    let hits = browser.value("document.querySelector('#flame .hits').textContent");
    assert!(!hits.as_str().unwrap().starts_with("0 "), "{hits}");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

pub(crate) fn pictures_of_inputs_are_small_and_drawn() {
    let scratch = Scratch::new();
    let small = ["infer.base_size=64", "infer.image_size=64", "infer.max_tiles=2", "infer.max_new_tokens=2"];
    let smoke = "dataset/sampling@dataset.sampling=sampling.smoke";
    let output = scratch.profile(&[&[smoke], &small[..]].concat(), &["--out", "run"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let pictures = scratch.text("run", "report.html").matches("<img src=\"data:image/jpeg;base64,").count();
    let browser = browser();
    browser.open(&scratch.path("run/report.html"));
    let sizes = browser.value("[...document.images].map((one) => Math.max(one.naturalWidth, one.naturalHeight))");
    let sizes: Vec<i64> = sizes.as_array().unwrap().iter().map(number).collect();
    assert!(!sizes.is_empty() && sizes.len() == pictures, "{sizes:?} of {pictures}");
    assert!(sizes.iter().all(|side| (1..=160).contains(side)), "{sizes:?}");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

pub(crate) fn firefox_draws_the_page_and_sums_the_same() {
    let browser = firefox();
    let scratch = Scratch::imported(&capture("torch/dsocr-h200.json.gz"));
    browser.open(&scratch.page(&["run"]));
    assert_sums(&browser, &scratch.json("run", "metrics.json"));
    let drawn = format!(
        "[...{CANVAS}.getContext('2d').getImageData(0, 0, {CANVAS}.width, {CANVAS}.height).data].some((one) => one > 0)"
    );
    assert_eq!(browser.value(&drawn), json!(true));
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

/// What lies between a target and the next part of the page: the section of a picture, or all up to the next heading.
const PART: &str = "((target) => {
  if (target.tagName === 'SECTION') return [target];
  const part = [];
  for (let one = target; one && (one === target || !/^H[1-3]$/.test(one.tagName)); one = one.nextElementSibling) part.push(one);
  return part;
})";

/// Every number, answer and the verdict of the first screen leads to a part that says which key of which document it is from, and
/// each number is in the table there: one click. That part leads on to the table, to the files or to the inputs: another.
fn assert_sources(browser: &Browser, run: &str) {
    let links = "[...document.querySelectorAll('.numbers dd a, .verdict a, .answers dt a')]";
    let wanted =
        number(&browser.value("document.querySelectorAll('.numbers dd:not(.m), .verdict, .answers dt').length"));
    assert_eq!(number(&browser.value(&format!("{links}.length"))), wanted, "{run}: each has a link");
    let unsourced = format!(
        "{links}.filter((link) => {{ const part = {PART}(document.querySelector(link.hash)); \
           return !part.some((one) => one.matches('.source') || one.querySelector('.source')); }})\
         .map((link) => `${{link.textContent}} ${{link.hash}}`)"
    );
    assert_eq!(browser.value(&unsourced), json!([]), "{run}: no source");
    let absent = format!(
        "{links}.filter((link) => link.closest('.numbers')).filter((link) => {{ \
           const part = {PART}(document.querySelector(link.hash)); \
           return !part.some((one) => one.textContent.includes(link.textContent)); }})\
         .map((link) => `${{link.closest('div').textContent}} ${{link.hash}}`)"
    );
    assert_eq!(browser.value(&absent), json!([]), "{run}: the number is not where it leads to");
    let nowhere =
        "[...document.querySelectorAll('a')].filter((one) => !document.querySelector(one.hash)).map((one) => one.hash)";
    assert_eq!(browser.value(nowhere), json!([]), "{run}: links that lead nowhere");
}

pub(crate) fn every_number_of_the_first_screen_leads_to_its_source_in_two_clicks() {
    let browser = browser();
    let small = ["infer.base_size=64", "infer.image_size=64", "infer.max_tiles=2", "infer.max_new_tokens=4"];
    let native = Scratch::new();
    let output = native.profile(&small, &["--out", "run"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let command = Scratch::new();
    let output = Output::of(command.command(&["profile", "--out", "run", "--", "/bin/true"]));
    assert_eq!(output.code, 0, "{}", output.stderr);
    let runs = [
        ("native", native),
        ("command", command),
        ("torch", Scratch::imported(&capture("torch/dsocr-h200.json.gz"))),
        ("nsys", Scratch::imported(&capture("nsys/dsocr-h200.sqlite.gz"))),
        ("serving", Scratch::served()),
    ];
    for (name, scratch) in &runs {
        browser.open(&scratch.page(&["run"]));
        assert_sources(&browser, name);
    }
    // A part that is closed opens.
    browser.value("location.hash = '#kernels'");
    browser.wait("document.querySelector('#kernels details').open");
    let top = "document.querySelector('#kernels').getBoundingClientRect().top";
    browser.wait(&format!("Math.abs({top}) < 300"));
    assert_quiet(&browser);
}

pub(crate) fn labels_keep_off_bars_and_off_each_other() {
    let browser = browser();
    let scratch = Scratch::imported(&capture("torch/dsocr-h200.json.gz"));
    browser.open(&scratch.page(&["run"]));
    let hit = "[...document.querySelectorAll('#shares svg')].flatMap((svg) => { \
                 const boxes = [...svg.querySelectorAll('text, rect')].map((one) => [one, one.getBBox()]); \
                 return boxes.filter(([one]) => one.tagName === 'text').filter(([one, own]) => boxes.some(([other, box]) => \
                   other !== one && own.x + own.width > box.x + 0.5 && box.x + box.width > own.x + 0.5 && \
                   own.y + own.height > box.y + 4 && box.y + box.height > own.y + 4)).map(([one]) => one.textContent); })";
    assert_eq!(browser.value(hit), json!([]), "texts over bars or texts");
    assert!(number(&browser.value("document.querySelectorAll('#shares rect').length")) > 3);
    let wide = "[...document.querySelectorAll('main svg text')].filter((label) => { \
                  const [own, all] = [label.getBBox(), label.ownerSVGElement.viewBox.baseVal]; \
                  return own.x < -0.5 || own.x + own.width > all.width + 0.5; }).map((label) => label.textContent)";
    assert_eq!(browser.value(wide), json!([]), "texts that leave their picture");
}

pub(crate) fn a_page_is_dark_where_wanted_fits_a_phone_and_prints_whole() {
    let browser = browser();
    let scratch = Scratch::imported(&capture("torch/dsocr-h200.json.gz"));
    let page = scratch.page(&["run"]);
    browser.emulate("screen", "light");
    browser.open(&page);
    let colours = "(({ backgroundColor, color }) => [backgroundColor, color])(getComputedStyle(document.body))";
    let light = browser.value(colours);
    browser.emulate("screen", "dark");
    let dark = browser.value(colours);
    assert!(light[0] != dark[0] && light[1] != dark[1], "{light} {dark}");

    browser.resize(390);
    browser.open(&page);
    let wide = number(&browser.value("document.documentElement.scrollWidth"));
    assert!(wide <= 390, "{wide}");

    browser.emulate("print", "light");
    assert_eq!(browser.value("getComputedStyle(document.querySelector('nav')).display"), json!("none"));
    browser.emulate("", "light");
    let printed = browser.command("Page.printToPDF", &json!({ "paperWidth": 8.27, "paperHeight": 11.69 }));
    assert!(printed["data"].as_str().unwrap().starts_with("JVBERi"), "a PDF");
    assert_eq!(browser.value("[...document.querySelectorAll('details')].every((one) => one.open)"), json!(true));
    assert_quiet(&browser);
}

pub(crate) fn names_from_a_trace_cannot_get_out_of_their_place() {
    let browser = browser();
    let hostile =
        "</title></template><script>window.harmed = 1</script><img src=x onerror='window.harmed = 2'>\"'`${1}&lt;";
    let long = format!("{hostile}{}", "x".repeat(10_000));
    // The capture is not strict JSON, so that names are changed in its text.
    let mut trace = std::fs::read_to_string(capture("torch/small.json")).unwrap();
    let kernel = "void gemm<4, {lambda(float)#1}, {lambda()#2}>(int, char*)";
    for (name, other) in [("aten::mm", hostile), ("decode_step", hostile), (kernel, long.as_str())] {
        let before = json!(name).to_string();
        assert!(trace.contains(&before), "{name}");
        trace = trace.replace(&before, &json!(other).to_string());
    }
    let scratch = Scratch::new();
    std::fs::write(scratch.path("trace.json"), trace).unwrap();
    let output = Output::of(scratch.command(&["import", "trace.json", "--out", "run"]));
    assert_eq!(output.code, 0, "{}", output.stderr);
    browser.open(&scratch.page(&["run"]));
    assert_eq!(browser.value("window.harmed === undefined && document.images.length === 0"), json!(true));
    assert_eq!(browser.value("document.scripts.length"), json!(1));
    assert!(browser.value("document.body.textContent").as_str().unwrap().contains("window.harmed = 1"));
    browser.resize(390);
    let wide = number(&browser.value("document.documentElement.scrollWidth"));
    assert!(wide <= 390, "{wide}");
    assert_quiet(&browser);
}

pub(crate) fn runs_without_kernels_and_comparisons_are_pages_too() {
    let browser = browser();
    let scratch = Scratch::imported(&capture("torch/small.json"));
    let output = Output::of(scratch.command(&["profile", "--out", "bare", "--", "/bin/true"]));
    assert_eq!(output.code, 0, "{}", output.stderr);
    browser.open(&scratch.page(&["bare"]));
    assert_eq!(browser.value("document.querySelectorAll('.view').length"), json!(0));
    assert!(browser.value("document.body.textContent").as_str().unwrap().contains("This page has no timeline"));
    assert_quiet(&browser);
    let output = Output::of(scratch.command(&[
        "import",
        capture("torch/dsocr-h200.json.gz").to_str().unwrap(),
        "--out",
        "other",
    ]));
    assert_eq!(output.code, 0, "{}", output.stderr);
    browser.open(&scratch.page(&["run", "other"]));
    assert!(number(&browser.value("document.querySelectorAll('svg').length")) > 0);
    assert!(browser.value("document.title").as_str().unwrap().contains("compared with"));
    assert_quiet(&browser);
}
