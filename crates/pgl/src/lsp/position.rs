//! Positions of the protocol: lines and UTF-16 columns from 0, and files as URIs.

use serde_json::{Value as Json, json};

use crate::source::{SourceFile, Span};

/// The byte at a position; the end of the line if the column is beyond it.
pub fn offset(file: &SourceFile, line: usize, column: usize) -> u32 {
    let Some(start) = file.line_start(line) else { return file.text.len() as u32 };
    let rest = &file.text[start as usize..];
    let text = rest.split('\n').next().unwrap_or("");
    let mut units = 0;
    for (at, c) in text.char_indices() {
        if units >= column {
            return start + at as u32;
        }
        units += c.len_utf16();
    }
    start + text.len() as u32
}

/// The range of a span.
pub fn range_of(file: &SourceFile, span: Span) -> Json {
    json!({ "start": position(file, span.start), "end": position(file, span.end) })
}

fn position(file: &SourceFile, offset: u32) -> Json {
    let (line, _) = file.line_col(offset);
    let start = file.line_start(line - 1).unwrap_or(0) as usize;
    let end = (offset as usize).min(file.text.len());
    let units = file.text.get(start..end).map_or(0, |text| text.encode_utf16().count());
    json!({ "line": line - 1, "character": units })
}

/// The path of a file URI.
pub fn path_of(uri: &str) -> Option<String> {
    let rest = uri.strip_prefix("file://")?;
    let bytes = rest.as_bytes();
    let mut path = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = |at: usize| bytes.get(at).and_then(|c| (*c as char).to_digit(16));
        match (bytes[at], hex(at + 1), hex(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                path.push((high * 16 + low) as u8);
                at += 3;
            }
            (c, ..) => {
                path.push(c);
                at += 1;
            }
        }
    }
    String::from_utf8(path).ok()
}

/// The URI of a path.
pub fn uri_of(path: &str) -> String {
    let mut uri = String::from("file://");
    for c in path.bytes() {
        match c {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'~' => uri.push(c as char),
            _ => uri.push_str(&format!("%{c:02X}")),
        }
    }
    uri
}
