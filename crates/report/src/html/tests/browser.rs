//! Charts in a real browser: hover, zoom, switching of series, keys, narrow screens.

use std::fs;

use super::*;

/// What a browser makes of a page: its messages on the console, and the document after scripts have run.
#[expect(clippy::disallowed_methods, reason = "pages are tried in a browser")]
fn browse(page: &str) -> (Vec<String>, String) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("report.html");
    fs::write(&file, page).unwrap();
    let profile = format!("--user-data-dir={}", dir.path().join("profile").display());
    let mut options = vec![
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--window-size=1200,1000",
        "--virtual-time-budget=10000",
        "--run-all-compositor-stages-before-draw",
        "--enable-logging=stderr",
        "--dump-dom",
        &profile,
    ];
    let address = format!("file://{}", file.display());
    options.push(&address);
    let done =
        std::process::Command::new("chromium").args(options).output().expect("chromium (make test-deps)");
    let messages = String::from_utf8_lossy(&done.stderr);
    let console = messages.lines().filter(|line| line.contains("CONSOLE")).map(str::to_owned).collect();
    (console, String::from_utf8_lossy(&done.stdout).into_owned())
}

/// A page that may run the scripts of a test after its own.
fn with_script(page: &str, script: &str) -> String {
    let (before, rest) = page.split_once("script-src 'sha256-").expect("a policy");
    let (_, after) = rest.split_once('\'').expect("its end");
    format!("{before}script-src 'unsafe-inline'{after}")
        .replace("</body>", &format!("<script>{script}</script></body>"))
}

/// What `steps` report about a page in a browser: each calls `say` with texts.
fn interact(page: &str, steps: &str) -> Vec<String> {
    const PRELUDE: &str = r##"
        const said = [];
        const say = (...texts) => said.push(texts.join(" "));
        const $ = (selector) => document.querySelector(selector);
        const $$ = (selector) => [...document.querySelectorAll(selector)];
        const chart = (id) => $(`#${id} .chart`);
        const values = (id) => $(`#${id} .tools output`).textContent;
        const labels = (id) => $$(`#${id} .live text`).map((text) => text.textContent);
        const curves = (id) => $$(`#${id} .live .curves path`).length;
        // A pointer event at a share of the plot's width and height.
        const pointer = (id, type, x, y = 0.5) => {
            const rect = $(`#${id} .live`).getBoundingClientRect();
            const data = JSON.parse($("#chart-data").textContent).charts[id];
            const [left, top, right, bottom] = data.frame;
            const scale = rect.width / 900;
            chart(id).dispatchEvent(new PointerEvent(type, {
                bubbles: true, button: 0, pointerType: "mouse",
                clientX: rect.left + (left + x * (right - left)) * scale,
                clientY: rect.top + (top + y * (bottom - top)) * scale,
            }));
        };
        const drag = (id, from, to) => {
            pointer(id, "pointerdown", from);
            pointer(id, "pointermove", (from + to) / 2);
            pointer(id, "pointermove", to);
            pointer(id, "pointerup", to);
        };
        const key = (id, key, more = {}) =>
            chart(id).dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...more }));
    "##;
    const REPORT: &str = r##"
        const told = document.createElement("pre");
        told.id = "said";
        told.textContent = JSON.stringify(said);
        document.body.append(told);
    "##;
    let (console, document) = browse(&with_script(page, &format!("{PRELUDE}{steps}{REPORT}")));
    assert_eq!(console, Vec::<String>::new());
    let (_, said) = document.split_once("<pre id=\"said\">").expect("the steps ran");
    let said = said.split_once("</pre>").unwrap().0;
    let said =
        said.replace("&lt;", "<").replace("&gt;", ">").replace("&nbsp;", "\u{a0}").replace("&amp;", "&");
    serde_json::from_str(&said).expect("texts")
}

#[test]
fn a_browser_shows_all_charts_without_complaint() {
    let page = html(&fold(&rich_run().logs()).unwrap());
    let interactive = chart_data(&page)["charts"].as_object().unwrap().len();
    let (console, document) = browse(&page);
    assert_eq!(console, Vec::<String>::new());
    assert!(document.contains(&format!("data-interactive=\"{interactive}\"")), "the script ran");
    assert_eq!(document.matches("<svg class=\"live\"").count(), interactive);
    assert_eq!(document.matches("<figure id=\"fig-").count() - interactive, 2, "bars are static");
    // A page whose script was altered must be found out, or this test would find nothing.
    let (console, document) = browse(&page.replace("(() => {", "(() => { nothing();"));
    assert!(console.iter().any(|line| line.contains("Content Security Policy")), "{console:?}");
    assert!(!document.contains("data-interactive"));
}

/// The value of the load chart's first series at its point number `index`, as a page writes it.
fn shown_load(page: &str, index: usize) -> String {
    let value = chart_data(page)["charts"]["fig-load"]["series"][0]["y"][index].as_f64().unwrap();
    let decimals = if value >= 100.0 {
        0
    } else if value >= 10.0 {
        1
    } else {
        2
    };
    format!("offered {}", text::number(Some(value), decimals))
}

#[test]
fn hovering_shows_the_values_of_all_series_in_all_charts_over_time() {
    let page = html(&fold(&Run::default().logs()).unwrap());
    let said = interact(
        &page,
        r##"
        pointer("fig-load", "pointermove", 0.5);
        say(values("fig-load"));
        say(values("fig-rptm"));
        say($$("#fig-load .live circle").length, $$("#fig-load .crosshair").length, $$("#fig-rptm .crosshair").length);
        say($$("#fig-percentiles .crosshair").length);
        pointer("fig-heat", "pointermove", 0.5, 0.4);
        say(values("fig-heat"));
        pointer("fig-load", "pointerleave", 0.5);
        say(values("fig-load"), values("fig-rptm"), $$(".crosshair").length);
        "##,
    );
    let x = &chart_data(&page)["x"][0];
    let last = x.as_array().unwrap().len() - 1;
    let half = x[last].as_f64().unwrap() / 2.0;
    let nearest = (0..=last)
        .min_by_key(|i| ((x[*i].as_f64().unwrap() - half).abs() * 1e6) as u64)
        .expect("there are values");
    let time = format!("{} s", text::number(x[nearest].as_f64(), 1));
    assert!(said[0].starts_with(&time) && said[0].contains(&shown_load(&page, nearest)), "{time}: {said:?}");
    for series in ["finished ", "succeeded ", "at the servers ", "per second"] {
        assert!(said[0].contains(series), "{series}: {said:?}");
    }
    assert!(said[1].starts_with(&time) && said[1].contains("p95 "), "charts over time agree: {said:?}");
    assert_eq!(said[2], "4 1 1", "a point for each series, and a crosshair");
    assert_eq!(said[3], "0", "other charts have none");
    assert!(said[4].contains(" ms: ") && said[4].contains(" replies"), "{said:?}");
    assert_eq!(said[5].trim(), "0", "no crosshair without a pointer");
}

#[test]
fn dragging_zooms_and_a_double_click_shows_everything() {
    let page = html(&fold(&Run::default().logs()).unwrap());
    let said = interact(
        &page,
        r##"
        const redrawn = () => $$(".redrawn").length;
        const paths = () => $$("#fig-load .live .curves path").map((path) => path.getAttribute("d")).join();
        say(redrawn(), labels("fig-load").length);
        drag("fig-load", 0.25, 0.5);
        say(labels("fig-load").join("|"));
        say(redrawn(), redrawn() === $$("figure:has(.live)").filter((one) => /start of the run/.test(one.textContent)).length);
        const first = paths();
        say(first.includes("NaN"), $(".redrawn > svg:not(.live)").checkVisibility(), $("#fig-load .live").checkVisibility());
        drag("fig-load", 0.2, 0.4);
        say(paths() !== first, labels("fig-load").join("|"));
        chart("fig-load").dispatchEvent(new MouseEvent("dblclick", { bubbles: true }));
        say(redrawn());
        drag("fig-percentiles", 0.2, 0.7);
        say(redrawn(), labels("fig-percentiles").join("|"));
        [...$$("#fig-percentiles .tools button")].find((one) => one.textContent === "Show all").click();
        say(redrawn());
        drag("fig-heat", 0.5, 0.75);
        say(curves("fig-heat"), labels("fig-heat").join("|"));
        drag("fig-popularity", 0.1, 0.3);
        say(labels("fig-popularity").join("|"));
        "##,
    );
    assert_eq!(said[0], "0 0", "the drawings are static");
    assert!(
        said[1].contains("|10|") && !said[1].contains("|30|"),
        "labels are those of the visible part: {said:?}"
    );
    assert!(said[2].ends_with(" true"), "charts over time zoom together: {said:?}");
    assert_eq!(said[3], "false false true", "the live drawing takes the place of the static one");
    let fine = said[4].split('|').filter_map(|label| label.trim_start_matches("true ").parse::<f64>().ok());
    assert!(said[4].starts_with("true") && fine.filter(|v| (8.0..20.0).contains(v)).count() > 3, "{said:?}");
    assert_eq!(said[5], "0", "everything again");
    assert!(said[6].starts_with("1 ") && said[6].contains(" %"), "others zoom alone: {said:?}");
    assert_eq!(said[7], "0");
    assert!(said[8].starts_with("6 "), "{said:?}");
    assert!(said[9].contains("rank of the object"), "{said:?}");
}

#[test]
fn the_legend_switches_series() {
    let page = html(&fold(&Run::default().logs()).unwrap());
    let said = interact(
        &page,
        r##"
        const keys = $$("#fig-load .legend button");
        say(keys.map((one) => one.textContent.trim() + one.getAttribute("aria-pressed")).join("|"));
        keys[1].click();
        say(keys[1].getAttribute("aria-pressed"), curves("fig-load"));
        pointer("fig-load", "pointermove", 0.5);
        say(values("fig-load"));
        keys.forEach((one, i) => i !== 1 && one.click());
        say(curves("fig-load"));
        keys.forEach((one) => one.click());
        say($$("#fig-load .redrawn").length);
        keys[0].focus();
        say(document.activeElement === keys[0], keys[0].tabIndex);
        const log = $("#fig-load .tools button[aria-pressed]");
        log.click();
        say(log.getAttribute("aria-pressed"), labels("fig-load").join("|"));
        "##,
    );
    assert_eq!(said[0], "offeredtrue|finishedtrue|succeededtrue|at the serverstrue");
    assert_eq!(said[1], "false 3");
    assert!(said[2].contains("offered ") && !said[2].contains("finished "), "{said:?}");
    assert_eq!(said[3], "0", "all may be hidden");
    assert_eq!(said[4], "0", "all shown again: the static drawing");
    assert_eq!(said[5], "true 0", "buttons are reached by Tab, and Enter and Space press them");
    assert!(said[6].starts_with("true ") && said[6].contains("|100|"), "{said:?}");
}

#[test]
fn keys_move_the_crosshair_and_zoom() {
    let page = html(&fold(&Run::default().logs()).unwrap());
    let said = interact(
        &page,
        r##"
        const box = chart("fig-load");
        const output = $("#fig-load .tools output");
        say(box.tabIndex, box.getAttribute("role"), box.getAttribute("aria-label"));
        box.dispatchEvent(new FocusEvent("focus"));
        say(output.getAttribute("aria-live"), $("#fig-rptm .tools output").getAttribute("aria-live"));
        key("fig-load", "ArrowRight");
        say(values("fig-load"));
        key("fig-load", "ArrowRight");
        say(values("fig-load"));
        key("fig-load", "ArrowLeft");
        say(values("fig-load"));
        key("fig-load", "End");
        say(values("fig-load"));
        key("fig-load", "+");
        say(labels("fig-load").join("|"));
        key("fig-load", "ArrowLeft", { shiftKey: true });
        say(labels("fig-load").join("|"));
        key("fig-load", "-");
        key("fig-load", "-");
        say($$("#fig-load .redrawn").length);
        key("fig-load", "+");
        key("fig-load", "Escape");
        say($$(".redrawn").length, values("fig-load").length);
        const copy = new KeyboardEvent("keydown", { key: "+", ctrlKey: true, cancelable: true });
        box.dispatchEvent(copy);
        say(copy.defaultPrevented);
        key("fig-heat", "ArrowRight");
        key("fig-heat", "ArrowUp");
        say(values("fig-heat"));
        box.dispatchEvent(new FocusEvent("blur"));
        say(output.getAttribute("aria-live"));
        "##,
    );
    assert!(said[0].starts_with("0 application Offered load and replies. Arrow keys"), "{said:?}");
    assert_eq!(said[1], "polite off", "one chart at a time is read aloud");
    for (index, said) in [(2, &said[2]), (3, &said[3]), (4, &said[4])] {
        let point = [0, 1, 0][index - 2];
        assert!(said.contains(&shown_load(&page, point)), "point {point}: {said}");
    }
    let last = chart_data(&page)["x"][0].as_array().unwrap().len() - 1;
    assert!(said[5].contains(&shown_load(&page, last)), "{said:?}");
    assert!(said[6].contains("|30|") && !said[6].contains("|10|"), "about the crosshair: {said:?}");
    assert!(said[7] != said[6], "moved to earlier times: {said:?}");
    assert_eq!(said[8..11], ["0", "0 0", "false"].map(String::from), "shortcuts of the browser stay");
    assert!(said[11].contains(" replies"), "{said:?}");
    assert_eq!(said[12], "off");
}

/// On a phone a chart is drawn for the width that it has; print shows the static drawing everywhere.
#[test]
fn narrow_charts_are_drawn_for_their_width() {
    let page = html(&fold(&Run::default().logs()).unwrap());
    let said = interact(
        &page,
        r##"
        document.body.style.width = "390px";
        document.body.style.display = "block";
        const look = (attempts) => {
            const redrawn = chart("fig-load").classList.contains("redrawn");
            if (!redrawn && attempts > 0) {
                setTimeout(look, 100, attempts - 1);
                return;
            }
            const width = $("#fig-load .live").viewBox.baseVal.width;
            const texts = $$("#fig-load .live text").map((text) => text.getBoundingClientRect());
            const overlap = texts.some((a, i) => texts.some((b, j) =>
                i < j && a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom));
            told.textContent = JSON.stringify([String(width === chart("fig-load").clientWidth), String(width < 391),
                String(texts.length > 6), String(overlap), String(redrawn)]);
        };
        // The browser says that the width has changed when it draws, which may be late on a busy machine.
        setTimeout(look, 500, 50);
        "##,
    );
    assert_eq!(said, ["true", "true", "true", "false", "true"]);
}
