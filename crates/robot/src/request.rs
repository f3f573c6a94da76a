//! Requests: which object a robot asks for, and how the request looks on the wire.

pub mod auth;
pub mod cookies;
pub mod encode;
pub mod generator;
pub mod page;
pub mod trace;
