//! The page in a real browser: charts, filter, buttons, keys.

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use polygraph_live::LiveState;
use polygraph_live::http::{self, PageReply, PageRequest};
use polygraph_monitor::{FeedEvent, WebView};
use polygraph_stats::Side;

use crate::messages::{bench, message};

/// Whatever takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(100);

/// What the steps of a test can use. Each text that a step passes to `say` comes back to the test. `until` waits for the page.
const PRELUDE: &str = r##"
    const said = [];
    const say = (...texts) => said.push(texts.join(" "));
    const $ = (selector) => document.querySelector(selector);
    const $$ = (selector) => [...document.querySelectorAll(selector)];
    const until = async (what) => {
        while (!what()) await new Promise((go) => setTimeout(go, 20));
    };
    const key = (name, target = document.body) =>
        target.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true, cancelable: true }));
    const rows = () => $$("#table tbody tr").map((row) => row.children[1].textContent);
    const cells = (row) => [...$$("#table tbody tr")[row].children].map((cell) => cell.textContent).join("|");
    const type = (text) => {
        $("#filter").value = text;
        $("#filter").dispatchEvent(new Event("input", { bubbles: true }));
    };
    const wrong = [];
    addEventListener("error", (event) => wrong.push(event.message));
    addEventListener("securitypolicyviolation", (event) => wrong.push(`policy: ${event.violatedDirective} ${event.blockedURI}`));
"##;

/// A browser that is killed when this is dropped.
struct Browser {
    child: Child,
    _profile: tempfile::TempDir,
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn browse(address: &str) -> Browser {
    let profile = tempfile::tempdir().unwrap();
    let child = Command::new("chromium")
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--window-size=1200,1000",
            "--remote-debugging-port=0",
            &format!("--user-data-dir={}", profile.path().display()),
            address,
        ])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("chromium (make test-deps)");
    Browser { child, _profile: profile }
}

fn decode(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let code: Vec<u8> = rest.by_ref().take(2).collect();
            bytes.push(u8::from_str_radix(std::str::from_utf8(&code).unwrap(), 16).unwrap());
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).unwrap()
}

/// What `steps` say about the page of a view. The page is served as always, with one more script.
fn interact(view: &Arc<WebView>, steps: &str) -> Vec<String> {
    const CHECKED: &str = "fetch(`/done?${encodeURIComponent(JSON.stringify([...said, ...wrong.map((one) => `wrong: ${one}`)]))}`)";
    let script = format!(
        "{PRELUDE}(async () => {{ try {{ {steps} }} catch (e) {{ wrong.push(String(e)); }} {CHECKED}; }})();"
    );
    let (done, said) = channel();
    let (view, done) = (Arc::clone(view), Mutex::new(done));
    let answer = move |request: &PageRequest| match request.path.as_str() {
        "/steps.js" => PageReply::page("text/javascript; charset=utf-8", script.clone()),
        "/done" => {
            let _ = done.lock().unwrap().send(decode(&request.query));
            PageReply::page("text/plain", "")
        }
        "/" => {
            // Under the policy of the page.
            let page = include_str!("../../assets/monitor.html");
            let page = page.replace("</head>", "<script src=\"/steps.js\" defer></script></head>");
            PageReply::page("text/html; charset=utf-8", page).with_header(
                "content-security-policy",
                "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:",
            )
        }
        _ => view.answer(request),
    };
    let address = http::serve(TcpListener::bind(("127.0.0.1", 0)).unwrap(), answer).unwrap();
    let _browser = browse(&format!("http://{address}/"));
    said_in_time(&said)
}

fn said_in_time(said: &Receiver<String>) -> Vec<String> {
    let text = said.recv_timeout(PATIENCE).expect("the steps end in time");
    let said: Vec<String> = serde_json::from_str(&text).unwrap();
    assert!(!said.iter().any(|text| text.starts_with("wrong: ")), "{said:#?}");
    said
}

fn view(seconds: u64) -> Arc<WebView> {
    let view = WebView::new(None);
    for message in (1..=seconds).flat_map(bench) {
        view.take(FeedEvent::Statistics(Box::new(message)), Instant::now());
    }
    view
}

#[test]
fn charts_table_verdict_and_errors_are_drawn() {
    let said = interact(
        &view(60),
        r##"
        await until(() => rows().length === 3 && $$("#charts polyline").length > 0);
        say(rows().join("|"));
        say(cells(0));
        say($("#status").textContent);
        say($$("#charts figure").map((one) => one.querySelectorAll("polyline").length).join(" "));
        say($("#chart-rate output").textContent);
        say($("#chart-rptm output").textContent);
        say($("#chart-hits output").textContent);
        say($("#chart-rate svg").textContent.includes("300 s ago"), $("#chart-rate svg").innerHTML.includes("NaN"));
        say($("#verdict").textContent);
        say($("#errors tbody").textContent, $$("#errors tbody b").length);
        "##,
    );
    assert_eq!(said[0], "clt1:100|clt2:100|srv1:100");
    assert_eq!(said[1], "client|clt1:100|running|meas 60 %|100|20 ms|25.0|1|60|0.99|5|VALID");
    assert_eq!(said[2], "3 of 3 running, 3 shown");
    assert_eq!(said[3], "2 2 1 2 2", "a curve for each side; servers do not see hits");
    assert_eq!(said[4].trim(), "client 400 /s server 200 /s");
    assert_eq!(said[5].trim(), "client 20.0 ms server 20.0 ms");
    assert_eq!(said[6].trim(), "client 25.0 %");
    assert_eq!(said[7], "true false");
    assert_eq!(said[8], "So far: VALID: the device sustained the loada remark");
    assert!(said[9].contains("<b>odd</b> reply") && said[9].ends_with(" 0"), "texts are no markup: {said:?}");
}

#[test]
fn filter_and_buttons_select_what_is_shown() {
    let said = interact(
        &view(20),
        r##"
        await until(() => rows().length === 3);
        type("clt2 meas");
        say(rows().join("|"), $("#chart-rate output").textContent);
        type("nothing like this");
        say(rows().length, $("#empty").hidden, $("#empty").textContent);
        type("");
        $("#sides [data-side=server]").click();
        say(rows().join("|"), $("#sides [aria-pressed=true]").textContent);
        $("#sides [data-side='']").click();
        $("#grouping [data-grouping=sides]").click();
        say(rows().join("|"), cells(0));
        $("#grouping [data-grouping=processes]").click();
        $$("#table tbody tr")[1].click();
        say($("#detail").hidden, $("#detail").textContent);
        $("#span").value = "60";
        $("#span").dispatchEvent(new Event("change"));
        say($("#chart-open svg").textContent.includes("60 s ago"));
        $("#chart-rate svg").dispatchEvent(new PointerEvent("pointermove", {
            clientX: $("#chart-rate svg").getBoundingClientRect().right - 2, bubbles: true }));
        say($$(".hover").length, $("#chart-hits output").textContent);
        "##,
    );
    assert_eq!(said[0].trim(), "clt2:100 client 300 /s");
    assert_eq!(said[1], "0 false No process passes the filter.");
    assert_eq!(said[2], "srv1:100 servers");
    assert!(said[3].starts_with("all 2|all 1 client|all 2|running|meas 20 %|400|"), "{said:?}");
    assert!(
        said[4].starts_with("false ") && said[4].contains("clt2:100") && said[4].contains("p95 30 ms"),
        "{said:?}"
    );
    assert_eq!(said[5], "true");
    assert!(said[6].starts_with("5 client 25.0 %"), "all charts show the same moment: {said:?}");
}

#[test]
fn keys_do_what_buttons_do() {
    let said = interact(
        &view(20),
        r##"
        await until(() => rows().length === 3);
        key("/");
        say(document.activeElement.id);
        type("clt");
        say(rows().length);
        key("Escape", $("#filter"));
        say(rows().length, document.activeElement.id !== "filter", $("#filter").value === "");
        key("s");
        say(rows().join("|"));
        key("s"); key("s");
        key("v");
        say(rows().join("|"));
        key("v"); key("v");
        key("j"); key("ArrowDown");
        const selected = () => $("#table [aria-selected=true]");
        say(selected().children[1].textContent, document.activeElement === selected());
        key("k");
        key("Enter", selected());
        say($("#detail").hidden, $("#detail").textContent.includes("clt2:100"));
        key("?");
        say($("#help").open, $("#help dt").textContent);
        $("#help form button").click();
        say($("#help").open);
        key("p");
        say($("#status").textContent);
        "##,
    );
    assert_eq!(said[0], "filter");
    assert_eq!(said[1], "2");
    assert_eq!(said[2], "3 true true");
    assert_eq!(said[3], "clt1:100|clt2:100");
    assert_eq!(said[4], "clt1|clt2|srv1");
    assert_eq!(said[5], "srv1:100 true");
    assert_eq!(said[6], "false true");
    assert_eq!(said[7], "true /");
    assert_eq!(said[8], "false");
    assert!(said[9].ends_with("paused"), "{said:?}");
}

#[test]
fn what_comes_later_appears_by_itself() {
    let view = WebView::new(None);
    let later = Arc::clone(&view);
    // Repeated until the browser has it: it attaches at some time. The thread ends with the test program.
    std::thread::spawn(move || {
        for second in 1.. {
            let mut told = message("clt9", Side::Client, second, 50.0);
            if second % 2 == 0 {
                told.state = LiveState::Ended;
            }
            later.take(FeedEvent::Statistics(Box::new(told)), Instant::now());
            std::thread::sleep(Duration::from_millis(500));
        }
    });
    let said = interact(
        &view,
        r##"
        await until(() => $("#table tbody").textContent.includes("running"));
        await until(() => $("#table tbody").textContent.includes("ended"));
        say(rows().join("|"));
        "##,
    );
    assert_eq!(said, ["clt9:100"]);
}
