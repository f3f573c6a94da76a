//! The server side: origin servers that answer robots.
