//! The terminal view on a screen in memory.

use std::time::Instant;

use polygraph_monitor::terminal::app::Screen;
use polygraph_monitor::terminal::{App, AppKey, draw};
use polygraph_monitor::{FeedEvent, RowFilter};
use ratatui::Terminal;
use ratatui::backend::TestBackend;

use crate::messages::bench;

fn app(now: Instant) -> App {
    let mut app = App::new(RowFilter::default());
    for message in (1..=30).flat_map(bench) {
        app.take(FeedEvent::Statistics(Box::new(message)), now);
    }
    app
}

/// The screen as text.
fn screen(app: &App, width: u16, height: u16, now: Instant) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw::draw(frame, app, now)).unwrap();
    let buffer = terminal.backend().buffer();
    let line = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
    (0..height).map(line).collect::<Vec<_>>().join("\n")
}

fn press(app: &mut App, keys: &str, now: Instant) {
    keys.chars().for_each(|c| app.press(AppKey::Char(c), now));
}

#[test]
fn the_overview_shows_both_sides_and_all_processes() {
    let now = Instant::now();
    let shown = screen(&app(now), 160, 40, now);
    for part in [
        "3 of 3 running",
        "clients: 400",
        "hits 25.0 %",
        "servers: 200",
        "replies/s",
        "response, ms",
        "clt1:100",
        "clt2:100",
        "srv1:100",
        "meas 30 %",
        "VALID",
        "verdict so far",
        "█",
        "? help",
    ] {
        assert!(shown.contains(part), "{part}:\n{shown}");
    }
    // Small terminals show the table.
    for (width, height) in [(80, 12), (40, 5), (10, 3), (1, 1)] {
        let small = screen(&app(now), width, height, now);
        assert!(width < 80 || small.contains("clt1:100"), "{small}");
    }
}

#[test]
fn keys_filter_group_select_and_explain() {
    let now = Instant::now();
    let mut app = app(now);
    let rows = |app: &App| app.rows(now).iter().map(|row| row.name()).collect::<Vec<_>>();
    press(&mut app, "s", now);
    assert_eq!(rows(&app), ["clt1:100", "clt2:100"]);
    press(&mut app, "v", now);
    assert_eq!(rows(&app), ["clt1", "clt2"]);
    press(&mut app, "v", now);
    assert_eq!(rows(&app), ["all 2"]);
    press(&mut app, "vss", now);
    assert_eq!(rows(&app).len(), 3, "everything again");
    press(&mut app, "/srv", now);
    assert_eq!(rows(&app), ["srv1:100"], "while the filter is typed");
    assert!(screen(&app, 100, 30, now).contains("filter: srv_"));
    app.press(AppKey::Escape, now);
    assert_eq!(rows(&app).len(), 3, "Escape takes the words back");
    press(&mut app, "/clt2", now);
    app.press(AppKey::Backspace, now);
    app.press(AppKey::Enter, now);
    assert_eq!(rows(&app).len(), 2);
    app.press(AppKey::Down, now);
    app.press(AppKey::PageDown, now);
    assert_eq!(app.selected(), 1, "the selection stays in the table");
    app.press(AppKey::Enter, now);
    assert_eq!(app.screen(), Screen::Detail);
    let detail = screen(&app, 160, 40, now);
    for part in [
        "client clt2:100",
        "p95",
        "30.0 ms",
        "<b>odd</b> reply",
        "a remark",
        "the device sustained the load",
        "open connections",
    ] {
        assert!(detail.contains(part), "{part}:\n{detail}");
    }
    app.press(AppKey::Escape, now);
    press(&mut app, "?", now);
    app.take(FeedEvent::Problem("10.0.0.1:18300: connection refused".into()), now);
    let help = screen(&app, 160, 40, now);
    assert!(help.contains("filter by words") && help.contains("problem: 10.0.0.1:18300"), "{help}");
    press(&mut app, "h", now);
    assert_eq!(app.screen(), Screen::Overview);
    app.press(AppKey::Escape, now);
    assert_eq!(rows(&app).len(), 3, "Escape on the overview removes the filter");
    assert!(!app.is_over());
    press(&mut app, "q", now);
    assert!(app.is_over());
}

#[test]
fn an_empty_view_says_what_it_waits_for() {
    let now = Instant::now();
    let app = App::new(RowFilter::default());
    assert!(screen(&app, 120, 30, now).contains("waiting for processes"));
}
