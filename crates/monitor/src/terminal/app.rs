//! What the terminal view shows, and what keys change.

use std::time::Instant;

use polygraph_stats::Side;

use crate::feed::FeedEvent;
use crate::table::{Grouping, RowFilter, TableRow, rows};
use crate::watched::{ProcessKey, SeriesFigure, TimeSpan, Watched, WatchedProcess};

/// Problems that are kept for the help page.
const MOST_PROBLEMS: usize = 8;
/// Rows that a page key moves.
const PAGE: usize = 10;
/// Seconds that a step of a curve covers, from which the user chooses.
const STEPS_S: [f64; 5] = [1.0, 2.0, 5.0, 15.0, 60.0];

/// A key, apart from the terminal that it was pressed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "keys are named after what is printed on them")]
pub enum AppKey {
    Char(char),
    Enter,
    Escape,
    Backspace,
    Up,
    Down,
    Left,
    Right,
    PageUp,
    PageDown,
    Home,
    End,
    /// Ctrl-C, which always leaves.
    Quit,
}

/// What is on the screen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Screen {
    /// Curves of both sides, and the table.
    #[default]
    Overview,
    /// Everything about the selected row.
    Detail,
    /// Keys, and problems with sources.
    Help,
}

/// The state of the view.
#[derive(Debug, Default)]
pub struct App {
    watched: Watched,
    screen: Screen,
    grouping: Grouping,
    filter: RowFilter,
    /// The words of a filter that is being typed.
    typing: Option<String>,
    selected: usize,
    step: usize,
    problems: Vec<String>,
    sources: usize,
    over: bool,
}

impl App {
    /// A view with a filter.
    pub fn new(filter: RowFilter) -> App {
        App { filter, ..App::default() }
    }

    /// Whether the user has left.
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// What is on the screen.
    pub fn screen(&self) -> Screen {
        self.screen
    }

    /// All processes.
    pub fn watched(&self) -> &Watched {
        &self.watched
    }

    /// What the rows are about.
    pub fn grouping(&self) -> Grouping {
        self.grouping
    }

    /// The filter in force.
    pub fn filter(&self) -> &RowFilter {
        &self.filter
    }

    /// The words of a filter that is being typed.
    pub fn typing(&self) -> Option<&str> {
        self.typing.as_deref()
    }

    /// The number of the selected row.
    pub fn selected(&self) -> usize {
        self.selected
    }

    /// Problems with sources, the latest last.
    pub fn problems(&self) -> &[String] {
        &self.problems
    }

    /// The number of sources to which the view has attached so far.
    pub fn sources(&self) -> usize {
        self.sources
    }

    /// The rows of the table.
    pub fn rows(&self, now: Instant) -> Vec<TableRow> {
        rows(&self.watched, self.grouping, &self.filter, now)
    }

    /// Seconds that a step of a curve covers.
    pub fn step_s(&self) -> f64 {
        STEPS_S[self.step]
    }

    /// A figure of a side over time, as far as the filter shows it.
    pub fn series(&self, side: Side, figure: SeriesFigure, steps: usize, now: Instant) -> Vec<Option<f64>> {
        let wanted = |key: &ProcessKey, process: &WatchedProcess| {
            key.side == side.name() && self.filter.shows(process, now)
        };
        self.watched.series(self.span(steps), figure, wanted)
    }

    /// A figure of a row over time.
    pub fn series_of(
        &self,
        row: &TableRow,
        figure: SeriesFigure,
        steps: usize,
        now: Instant,
    ) -> Vec<Option<f64>> {
        let wanted = |key: &ProcessKey, process: &WatchedProcess| {
            key.side == row.side.name()
                && (row.host.is_empty() || key.host == row.host)
                && row.pid.is_none_or(|pid| key.pid == pid)
                && self.filter.shows(process, now)
        };
        self.watched.series(self.span(steps), figure, wanted)
    }

    fn span(&self, steps: usize) -> TimeSpan {
        // The curve moves by whole steps, so that what has been drawn does not change.
        let until_s = (self.watched.last_s() / self.step_s()).floor() * self.step_s();
        TimeSpan { until_s, step_s: self.step_s(), steps }
    }

    /// Takes an event of the feed.
    pub fn take(&mut self, event: FeedEvent, now: Instant) {
        match event {
            FeedEvent::Statistics(message) => self.watched.take(*message, now),
            FeedEvent::Lost(keys) => self.watched.lose(&keys),
            FeedEvent::Attached(_) => self.sources += 1,
            FeedEvent::Problem(text) => {
                self.problems.retain(|known| *known != text);
                self.problems.push(text);
                let more = self.problems.len().saturating_sub(MOST_PROBLEMS);
                self.problems.drain(..more);
            }
        }
    }

    /// Does what a key asks for.
    pub fn press(&mut self, key: AppKey, now: Instant) {
        if key == AppKey::Quit {
            self.over = true;
            return;
        }
        if self.typing.is_some() {
            self.type_filter(key);
            return;
        }
        let last = self.rows(now).len().saturating_sub(1);
        match key {
            AppKey::Char('q') => self.over = true,
            AppKey::Char('h' | '?') => {
                self.screen = if self.screen == Screen::Help { Screen::Overview } else { Screen::Help };
            }
            AppKey::Escape if self.screen == Screen::Overview => self.filter = RowFilter::default(),
            AppKey::Escape => self.screen = Screen::Overview,
            AppKey::Enter => {
                self.screen = if self.screen == Screen::Overview { Screen::Detail } else { Screen::Overview };
            }
            AppKey::Char('/') => self.typing = Some(self.filter.words.clone()),
            AppKey::Char('s') => {
                self.filter.side = match self.filter.side {
                    None => Some(Side::Client),
                    Some(Side::Client) => Some(Side::Server),
                    Some(Side::Server) => None,
                };
            }
            AppKey::Char('v') => self.grouping = self.grouping.next(),
            AppKey::Char('R') => {
                self.filter = RowFilter::default();
                self.watched.forget_ended(now);
            }
            AppKey::Left | AppKey::Char('+') => self.step = self.step.saturating_sub(1),
            AppKey::Right | AppKey::Char('-') => self.step = (self.step + 1).min(STEPS_S.len() - 1),
            AppKey::Up | AppKey::Char('k') => self.selected = self.selected.saturating_sub(1),
            AppKey::Down | AppKey::Char('j') => self.selected += 1,
            AppKey::PageUp => self.selected = self.selected.saturating_sub(PAGE),
            AppKey::PageDown => self.selected += PAGE,
            AppKey::Home => self.selected = 0,
            AppKey::End => self.selected = last,
            AppKey::Char(_) | AppKey::Backspace | AppKey::Quit => {}
        }
        self.selected = self.selected.min(self.rows(now).len().saturating_sub(1));
    }

    /// Every character changes the filter at once; Escape brings the former one back.
    fn type_filter(&mut self, key: AppKey) {
        let before = self.typing.clone().unwrap_or_default();
        match key {
            AppKey::Enter => self.typing = None,
            AppKey::Escape => {
                self.filter.words = before;
                self.typing = None;
            }
            AppKey::Backspace => drop(self.filter.words.pop()),
            AppKey::Char(c) => self.filter.words.push(c),
            _ => {}
        }
        self.selected = 0;
    }
}
