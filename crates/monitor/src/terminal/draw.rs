//! Draws the terminal view.

use std::time::Instant;

use polygraph_live::LiveStatistics;
use polygraph_report::text::{bytes, duration, ms, number, times};
use polygraph_stats::Side;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Cell, Paragraph, Row, Sparkline, Table, TableState, Wrap};

use super::app::{App, Screen};
use crate::table::{COLUMNS, Grouping, RowFilter, TableRow, is_number, rows};
use crate::watched::{SIDES, SeriesFigure, WatchedProcess};

/// The curves of a side, with their titles.
const CURVES: [(SeriesFigure, &str); 5] = [
    (SeriesFigure::Rate, "replies/s"),
    (SeriesFigure::ResponseTime, "response, ms"),
    (SeriesFigure::HitRatio, "hits, %"),
    (SeriesFigure::Errors, "errors/s"),
    (SeriesFigure::OpenConnections, "open connections"),
];
/// Curves of the overview: more do not fit.
const IN_OVERVIEW: [usize; 3] = [0, 1, 2];
/// Narrowest and widest columns of the table.
const WIDTHS: [(u16, u16); COLUMNS.len()] =
    [(6, 6), (12, 30), (7, 8), (8, 18), (8, 9), (8, 10), (6, 7), (7, 7), (7, 10), (6, 7), (6, 8), (16, 24)];

/// Draws everything.
pub fn draw(frame: &mut Frame<'_>, app: &App, now: Instant) {
    let [title, body, footer] =
        Layout::vertical([Constraint::Length(1), Constraint::Min(0), Constraint::Length(1)])
            .areas(frame.area());
    draw_title(frame, title, app, now);
    match app.screen() {
        Screen::Overview => overview(frame, body, app, now),
        Screen::Detail => detail(frame, body, app, now),
        Screen::Help => help(frame, body, app),
    }
    draw_footer(frame, footer, app);
}

fn draw_title(frame: &mut Frame<'_>, area: Rect, app: &App, now: Instant) {
    let all = app.watched().processes().count();
    let running = app.watched().processes().filter(|(_, process)| process.is_current(now)).count();
    let shown = app.watched().processes().filter(|(_, process)| app.filter().shows(process, now)).count();
    let mut text = format!(" polygraph mon  {running} of {all} running");
    if shown < all {
        text.push_str(&format!(", {shown} shown"));
    }
    if let Some(side) = app.filter().side {
        text.push_str(&format!("  side: {}", side.name()));
    }
    if !app.filter().words.is_empty() {
        text.push_str(&format!("  filter: {}", app.filter().words));
    }
    let style = Style::new().add_modifier(Modifier::REVERSED);
    frame.render_widget(Paragraph::new(text).style(style), area);
}

fn draw_footer(frame: &mut Frame<'_>, area: Rect, app: &App) {
    let text = match app.typing() {
        Some(_) => format!("filter: {}_   Enter keeps it, Esc takes it back", app.filter().words),
        None => format!(
            "q quit  ? help  / filter  s side  v {}  Enter detail  ←→ {} per step",
            app.grouping().next().name(),
            duration(app.step_s())
        ),
    };
    frame.render_widget(Paragraph::new(text).style(Style::new().fg(Color::DarkGray)), area);
}

fn overview(frame: &mut Frame<'_>, area: Rect, app: &App, now: Instant) {
    let curves = if area.height >= 20 { 8 } else { 0 };
    let [top, table] = Layout::vertical([Constraint::Length(curves), Constraint::Min(3)]).areas(area);
    if curves > 0 {
        let sides: Vec<Side> =
            SIDES.into_iter().filter(|side| app.filter().side.is_none_or(|own| own == *side)).collect();
        let areas = Layout::horizontal(vec![Constraint::Fill(1); sides.len()]).split(top);
        for (side, area) in sides.into_iter().zip(areas.iter()) {
            side_panel(frame, *area, app, side, now);
        }
    }
    draw_table(frame, table, app, now);
}

/// The figures of a side, and its curves.
fn side_panel(frame: &mut Frame<'_>, area: Rect, app: &App, side: Side, now: Instant) {
    let filter = RowFilter { side: Some(side), ..app.filter().clone() };
    let row = rows(app.watched(), Grouping::Sides, &filter, now).pop();
    let title = row.as_ref().map_or_else(|| format!(" {}: no process ", side.name()), side_title);
    let block = Block::bordered().title(title);
    let inner = block.inner(area);
    frame.render_widget(block, area);
    if row.is_none() {
        return;
    }
    let shown: Vec<_> = IN_OVERVIEW
        .iter()
        .map(|at| CURVES[*at])
        .filter(|(figure, _)| side == Side::Client || *figure != SeriesFigure::HitRatio)
        .collect();
    let areas = Layout::vertical(vec![Constraint::Fill(1); shown.len()]).split(inner);
    for ((figure, title), area) in shown.into_iter().zip(areas.iter()) {
        let steps = usize::from(area.width.saturating_sub(LABEL));
        curve(frame, *area, title, &app.series(side, figure, steps, now));
    }
}

fn side_title(row: &TableRow) -> String {
    let hits = match row.side {
        Side::Client => format!("  hits {} %", number(row.interval.hit_percent(), 1)),
        Side::Server => String::new(),
    };
    format!(
        " {}s: {} replies/s  response {}{hits}  errors {}  open {} ",
        row.side.name(),
        number(Some(row.rate), 1),
        ms(row.interval.mean_rptm_ms()),
        number(Some(row.total.failed), 0),
        row.open_connections
    )
}

/// Columns of the text beside a curve.
const LABEL: u16 = 26;

/// A curve with its title and its range.
fn curve(frame: &mut Frame<'_>, area: Rect, title: &str, values: &[Option<f64>]) {
    let [text, plot] = Layout::horizontal([Constraint::Length(LABEL), Constraint::Min(0)]).areas(area);
    let known = || values.iter().flatten().copied();
    let (least, most) = (known().reduce(f64::min), known().reduce(f64::max));
    let range = format!("{} to {}", number(least, 1), number(most, 1));
    let lines =
        vec![Line::from(title.to_owned()), Line::from(Span::styled(range, Style::new().fg(Color::DarkGray)))];
    frame.render_widget(Paragraph::new(lines), text);
    // Bars have whole numbers; this keeps three digits of the largest.
    let scale = most.filter(|most| *most > 0.0).map_or(0.0, |most| 1000.0 / most);
    let bars: Vec<Option<u64>> =
        values.iter().map(|value| value.map(|value| (value * scale) as u64)).collect();
    let line = Sparkline::default().data(bars).max(1000).style(Style::new().fg(Color::Cyan));
    frame.render_widget(line, plot);
}

/// The colour of a verdict or a state.
fn style_of(word: &str) -> Style {
    match word.split(' ').next().unwrap_or_default() {
        "VALID" | "running" => Style::new().fg(Color::Green),
        "FAILED" | "lost" => Style::new().fg(Color::Red),
        "INVALID" | "silent" => Style::new().fg(Color::Yellow),
        _ => Style::new(),
    }
}

/// Columns that narrow terminals do without, the least important first.
const DISPENSABLE: [usize; 4] = [7, 9, 2, 10];

/// The columns that fit, with their widths.
fn columns(width: u16) -> Vec<(usize, u16)> {
    let needed = |columns: &[usize]| {
        // Each column is followed by a space, and the frame takes two.
        columns.iter().map(|&column| WIDTHS[column].0 + 1).sum::<u16>() + 1
    };
    let mut shown: Vec<usize> = (0..COLUMNS.len()).collect();
    for column in DISPENSABLE {
        if needed(&shown) > width {
            shown.retain(|&kept| kept != column);
        }
    }
    let wide = shown.iter().map(|&column| WIDTHS[column].1 + 1).sum::<u16>() < width;
    shown.into_iter().map(|column| (column, if wide { WIDTHS[column].1 } else { WIDTHS[column].0 })).collect()
}

fn draw_table(frame: &mut Frame<'_>, area: Rect, app: &App, now: Instant) {
    let rows = app.rows(now);
    let title = match rows.len() {
        0 if app.watched().processes().next().is_some() => " no process passes the filter ".to_owned(),
        0 => " waiting for processes: client, server and run on this host appear by themselves ".to_owned(),
        count => format!(" {count} {} ", app.grouping().name()),
    };
    let columns = columns(area.width);
    let lines = rows.iter().map(|row| {
        let texts = row.cells();
        let cells = columns.iter().map(|&(column, _)| {
            let text = texts[column].clone();
            let style = if [2, 11].contains(&column) { style_of(&text) } else { Style::new() };
            cell(column, text).style(style)
        });
        Row::new(cells.collect::<Vec<_>>())
    });
    let widths = columns.iter().map(|&(_, width)| Constraint::Max(width));
    let head = Row::new(columns.iter().map(|&(column, _)| cell(column, COLUMNS[column].to_owned())));
    let table = Table::new(lines, widths)
        .header(head.style(Style::new().add_modifier(Modifier::BOLD)))
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED))
        .block(Block::bordered().title(title));
    let mut state = TableState::default().with_selected((!rows.is_empty()).then_some(app.selected()));
    frame.render_stateful_widget(table, area, &mut state);
}

fn cell(column: usize, text: String) -> Cell<'static> {
    let line = Line::from(text);
    Cell::from(if is_number(column) { line.right_aligned() } else { line })
}

/// Everything about the selected row.
fn detail(frame: &mut Frame<'_>, area: Rect, app: &App, now: Instant) {
    let rows = app.rows(now);
    let Some(row) = rows.get(app.selected()) else {
        frame.render_widget(Paragraph::new("nothing is selected"), area);
        return;
    };
    let block = Block::bordered().title(format!(" {} {} ", row.side.name(), row.name()));
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let [text, curves] = Layout::horizontal([Constraint::Percentage(45), Constraint::Min(0)]).areas(inner);
    let process = app
        .watched()
        .processes()
        .find(|(key, _)| Some(key.pid) == row.pid && key.host == row.host && key.side == row.side.name());
    let lines = detail_lines(row, process.map(|(_, process)| process));
    frame.render_widget(Paragraph::new(lines).wrap(Wrap { trim: false }), text);
    let areas = Layout::vertical(vec![Constraint::Fill(1); CURVES.len()]).split(curves);
    for ((figure, title), area) in CURVES.iter().zip(areas.iter()) {
        let steps = usize::from(area.width.saturating_sub(LABEL));
        curve(frame, *area, title, &app.series_of(row, *figure, steps, now));
    }
}

fn detail_lines(row: &TableRow, process: Option<&WatchedProcess>) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    let mut line = |name: &str, text: String| lines.push(Line::from(format!("{name:<14} {text}")));
    line("state", row.state.clone());
    line("phase", row.phase_text());
    line("replies/s", format!("{} of {} planned", number(Some(row.rate), 1), number(row.planned_rate, 1)));
    line(
        "response",
        format!("{} now, {} so far", ms(row.interval.mean_rptm_ms()), ms(row.total.mean_rptm_ms())),
    );
    line(
        "hits",
        format!(
            "{} % now, {} % so far",
            number(row.interval.hit_percent(), 1),
            number(row.total.hit_percent(), 1)
        ),
    );
    line("transactions", format!("{} succeeded, {} failed", row.total.ok, row.total.failed));
    line("open", row.open_connections.to_string());
    if let Some(WatchedProcess { latest, .. }) = process {
        process_lines(latest, &mut line);
    }
    if let Some([word, meaning]) = &row.verdict {
        line("verdict so far", format!("{word}: {meaning}"));
    }
    lines
}

fn process_lines(latest: &LiveStatistics, line: &mut impl FnMut(&str, String)) {
    line("p95", ms(latest.rptm_p95_us.map(|us| us as f64 * 1e-3)));
    line("agents", latest.agents.to_string());
    line("memory", bytes(Some(latest.rss_bytes as f64)));
    let share = latest.interval.per_second(latest.interval.busiest_s);
    line("busiest loop", format!("{} %", number(share.map(|share| share * 100.0), 0)));
    line("run", format!("{} {}, {}", latest.label, latest.workload, duration(latest.elapsed_s)));
    if let Some(end) = &latest.end {
        line("end", end.clone());
    }
    for error in &latest.errors {
        let kind = if error.fails { "error" } else { "noted" };
        line(kind, format!("{}: c{} {}", times(error.count), error.number, error.text));
    }
    for finding in latest.verdict.iter().flat_map(|verdict| &verdict.findings) {
        line("finding", finding.clone());
    }
}

fn help(frame: &mut Frame<'_>, area: Rect, app: &App) {
    const KEYS: [(&str, &str); 12] = [
        ("q, Ctrl-C", "quit; the processes go on"),
        ("h, ?", "this page"),
        ("/", "filter by words of host, id, side, label, workload, phase, state, verdict"),
        ("s", "both sides, clients, servers"),
        ("v, Tab", "rows are processes, hosts, sides"),
        ("R", "remove the filter, and forget processes that have ended"),
        ("Enter", "everything about the selected row; back"),
        ("Esc", "back; on the overview, remove the filter"),
        ("↑ ↓ j k", "select a row"),
        ("PgUp PgDn", "ten rows at once"),
        ("Home End", "first and last row"),
        ("← →", "shorter and longer steps of curves"),
    ];
    let mut lines: Vec<Line<'_>> =
        KEYS.iter().map(|(key, what)| Line::from(format!("{key:<12} {what}"))).collect();
    lines.push(Line::from(""));
    lines.push(Line::from("silent: no message for 15 s; lost: the connection ended, but the run had not"));
    lines.push(Line::from("verdict so far: the one that the run would get if it ended now"));
    lines.push(Line::from(format!("attached to {} sources so far", app.sources())));
    lines.extend(app.problems().iter().map(|problem| Line::from(format!("problem: {problem}"))));
    frame.render_widget(
        Paragraph::new(lines).wrap(Wrap { trim: false }).block(Block::bordered().title(" help ")),
        area,
    );
}
