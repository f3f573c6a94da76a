//! Views of running tests, without a terminal, and in a browser.

#![allow(clippy::disallowed_methods, reason = "tests have a browser, and peers on threads")]

mod browser;
mod feed;
mod messages;
mod terminal;
mod watched;
mod web;
