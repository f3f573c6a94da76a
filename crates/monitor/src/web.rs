//! The view as a page: the same messages as server-sent events, and a script that draws them.
//!
//! The page, its script and its style contain nothing about a test, so anybody may load them. Events need the token, if
//! there is one. Without a token the server listens on loopback only, and answers only requests that address it as such:
//! otherwise a page from elsewhere could reach it under its own name (DNS rebinding).

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use hyper::StatusCode;
use polygraph_live::LiveStatistics;
use polygraph_live::http::{self, PageReply, PageRequest};
use serde_json::{Value, json};
use tokio::sync::mpsc::{Sender, channel};

use crate::feed::{Feed, FeedEvent};
use crate::table::{Grouping, RowFilter, rows};
use crate::watched::{ProcessKey, Watched, WatchedProcess};

const PAGE: &str = include_str!("../assets/monitor.html");
const SCRIPT: &str = include_str!("../assets/monitor.js");
const STYLE: &str = include_str!("../assets/monitor.css");
/// The page loads nothing from elsewhere, and nobody may frame it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Events that may wait for a browser. One that falls further behind is disconnected, and attaches again.
const BACKLOG: usize = 1024;
/// The most browsers at a time.
const MOST_BROWSERS: usize = 64;
/// How often a browser gets a sign of life.
const KEEP_ALIVE: Duration = Duration::from_secs(5);

/// What browsers see.
#[derive(Debug, Default)]
pub struct WebView {
    state: Mutex<WebState>,
    token: Option<String>,
}

#[derive(Debug, Default)]
struct WebState {
    watched: Watched,
    browsers: Vec<Sender<Bytes>>,
}

impl WebView {
    /// A view for browsers that know the token; `None`: for all browsers of this host.
    pub fn new(token: Option<String>) -> Arc<WebView> {
        Arc::new(WebView { state: Mutex::default(), token })
    }

    /// Serves browsers on a thread. Returns the address.
    ///
    /// # Errors
    /// If the address cannot be used.
    pub fn serve(self: &Arc<WebView>, address: SocketAddr) -> io::Result<SocketAddr> {
        let view = Arc::clone(self);
        http::serve(TcpListener::bind(address)?, move |request| view.answer(request))
    }

    /// Takes the events of a feed, as long as it brings some.
    pub fn follow(&self, feed: &Feed) {
        let mut alive = Instant::now();
        loop {
            match feed.events.recv_timeout(KEEP_ALIVE) {
                Ok(event) => self.take(event, Instant::now()),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if alive.elapsed() >= KEEP_ALIVE {
                alive = Instant::now();
                self.state().send(": alive\n\n".into());
            }
        }
    }

    /// Takes an event of a feed.
    pub fn take(&self, event: FeedEvent, now: Instant) {
        match event {
            FeedEvent::Statistics(message) => {
                let event = sse("statistics", message.line().trim_end());
                let mut state = self.state();
                state.watched.take(*message, now);
                state.send(event);
            }
            FeedEvent::Lost(keys) if keys.is_empty() => {}
            FeedEvent::Lost(keys) => {
                let names: Vec<Value> = keys.iter().map(key_json).collect();
                let mut state = self.state();
                state.watched.lose(&keys);
                state.send(sse("lost", &json!(names).to_string()));
            }
            FeedEvent::Problem(text) => self.state().send(sse("problem", &json!(text).to_string())),
            FeedEvent::Attached(_) => {}
        }
    }

    fn state(&self) -> MutexGuard<'_, WebState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The reply to a request.
    pub fn answer(&self, request: &PageRequest) -> PageReply {
        if self.token.is_none() && !request.host.as_deref().is_some_and(is_loopback) {
            return PageReply::refusal(
                StatusCode::FORBIDDEN,
                "this page answers only to localhost, 127.0.0.1 and [::1]\n",
            );
        }
        let allowed = || self.is_allowed(&request.query);
        let reply = match request.path.as_str() {
            "/" => PageReply::page("text/html; charset=utf-8", PAGE),
            "/monitor.js" => PageReply::page("text/javascript; charset=utf-8", SCRIPT),
            "/monitor.css" => PageReply::page("text/css; charset=utf-8", STYLE),
            "/events" | "/state.json" if !allowed() => PageReply::refusal(
                StatusCode::FORBIDDEN,
                "the address must end with the token that `mon` has printed\n",
            ),
            "/events" => self.attach(),
            "/state.json" => PageReply::page("application/json", self.json()),
            _ => PageReply::refusal(StatusCode::NOT_FOUND, "there is no such page\n"),
        };
        reply
            .with_header("content-security-policy", POLICY)
            .with_header("x-content-type-options", "nosniff")
            .with_header("referrer-policy", "no-referrer")
    }

    /// Whether a query has the token. All bytes are compared, so that the time tells nothing.
    fn is_allowed(&self, query: &str) -> bool {
        let Some(token) = &self.token else { return true };
        let given = query.split('&').find_map(|part| part.strip_prefix("token=")).unwrap_or_default();
        given.len() == token.len()
            && given.bytes().zip(token.bytes()).fold(0, |sum, (a, b)| sum | (a ^ b)) == 0
    }

    /// A stream of events: all processes with their histories, then what comes.
    fn attach(&self) -> PageReply {
        let (to_browser, parts) = channel(BACKLOG);
        let mut state = self.state();
        state.browsers.retain(|browser| !browser.is_closed());
        if state.browsers.len() >= MOST_BROWSERS {
            return PageReply::refusal(StatusCode::SERVICE_UNAVAILABLE, "too many browsers\n");
        }
        let now = Instant::now();
        let all: Vec<Value> =
            state.watched.processes().map(|(key, process)| process_json(key, process, now)).collect();
        // The channel is empty.
        let _ = to_browser.try_send(sse("history", &json!(all).to_string()));
        state.browsers.push(to_browser);
        PageReply::events(parts)
    }

    /// The table of processes, for programs.
    fn json(&self) -> String {
        let rows = rows(&self.state().watched, Grouping::Processes, &RowFilter::default(), Instant::now());
        json!(rows.iter().map(|row| row.json()).collect::<Vec<_>>()).to_string()
    }
}

impl WebState {
    fn send(&mut self, event: Bytes) {
        self.browsers.retain(|browser| browser.try_send(event.clone()).is_ok());
    }
}

/// A server-sent event. JSON has no line ends.
fn sse(name: &str, data: &str) -> Bytes {
    format!("event: {name}\ndata: {data}\n\n").into()
}

fn key_json(key: &ProcessKey) -> Value {
    json!({ "host": key.host, "pid": key.pid, "side": key.side })
}

/// A process with its history: for each message the end of its time, then what the script needs of its counts.
fn process_json(key: &ProcessKey, process: &WatchedProcess, now: Instant) -> Value {
    let point = |point: &crate::watched::HistoryPoint| {
        let counts = &point.counts;
        json!([
            point.at_s,
            counts.seconds,
            counts.ok,
            counts.failed,
            counts.rptm_us,
            counts.basic,
            counts.hits,
            point.open_connections
        ])
    };
    let latest: &LiveStatistics = &process.latest;
    json!({
        "key": key_json(key),
        "latest": latest,
        "lost": process.gone,
        "silent_s": now.saturating_duration_since(process.seen).as_secs_f64(),
        "points": process.history.iter().map(point).collect::<Vec<_>>(),
    })
}

/// Whether a `Host` field names this host as such.
fn is_loopback(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let plain = name.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost") || plain.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_host_is_answered_without_a_token() {
        for host in ["localhost", "LOCALHOST:80", "127.0.0.1:8080", "127.1.2.3", "[::1]", "[::1]:8080"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in
            ["", "example.com", "localhost.example.com:80", "10.0.0.1:80", "127.0.0.1.example.com", "[::2]:1"]
        {
            assert!(!is_loopback(host), "{host}");
        }
    }

    #[test]
    fn a_token_must_be_the_right_one() {
        let view = WebView::new(Some("secret".into()));
        for (query, allowed) in [
            ("token=secret", true),
            ("a=b&token=secret", true),
            ("token=secreT", false),
            ("token=", false),
            ("", false),
            ("token=secret1", false),
        ] {
            assert_eq!(view.is_allowed(query), allowed, "{query}");
        }
    }
}
