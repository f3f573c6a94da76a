//! The view on a terminal.
//!
//! * [`app`]: what is shown, and what keys change; draws nothing, so tests need no terminal.
//! * [`draw`]: draws it.

pub mod app;
pub mod draw;

use std::io;
use std::time::{Duration, Instant};

use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

pub use self::app::{App, AppKey};
use crate::feed::Feed;

/// How often the view is drawn at least. Keys are answered at once.
const REDRAW: Duration = Duration::from_millis(500);
/// The most messages that are taken between two looks at the keyboard.
const MOST_EVENTS: usize = 10_000;

/// Shows a feed until the user leaves.
///
/// # Errors
/// If there is no terminal.
pub fn show(feed: &Feed, mut app: App) -> io::Result<()> {
    let mut terminal = ratatui::try_init()?;
    let shown = run(&mut terminal, feed, &mut app);
    ratatui::try_restore()?;
    shown
}

fn run(terminal: &mut ratatui::DefaultTerminal, feed: &Feed, app: &mut App) -> io::Result<()> {
    while !app.is_over() {
        let now = Instant::now();
        feed.events.try_iter().take(MOST_EVENTS).for_each(|event| app.take(event, now));
        terminal.draw(|frame| draw::draw(frame, app, now))?;
        if event::poll(REDRAW)? {
            // Keys that were pressed meanwhile belong together.
            loop {
                if let Event::Key(key) = event::read()?
                    && let Some(key) = key_of(key)
                {
                    app.press(key, Instant::now());
                }
                if !event::poll(Duration::ZERO)? {
                    break;
                }
            }
        }
    }
    Ok(())
}

fn key_of(key: KeyEvent) -> Option<AppKey> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    Some(match key.code {
        KeyCode::Char('c') if control => AppKey::Quit,
        KeyCode::Char(c) if !control => AppKey::Char(c),
        KeyCode::Enter => AppKey::Enter,
        KeyCode::Esc => AppKey::Escape,
        KeyCode::Backspace => AppKey::Backspace,
        KeyCode::Up => AppKey::Up,
        KeyCode::Down => AppKey::Down,
        KeyCode::Left => AppKey::Left,
        KeyCode::Right => AppKey::Right,
        KeyCode::PageUp => AppKey::PageUp,
        KeyCode::PageDown => AppKey::PageDown,
        KeyCode::Home => AppKey::Home,
        KeyCode::End => AppKey::End,
        KeyCode::Tab => AppKey::Char('v'),
        _ => return None,
    })
}
