//! A stored reply, and the name it is stored under.

use bytes::Bytes;
use polygraph_wire::head::Header;
use polygraph_wire::parse_reply;

use crate::directives::for_each_item;
use crate::message::merge_heads;
use crate::policy::{Freshness, ReplyFacts, RequestFacts, may_store, not_modified};

/// A complete reply as it is kept: never changed once made, shared by the store and by those who write it out.
#[derive(Debug)]
pub struct Object {
    /// The canonical URL it answers.
    pub key: Box<[u8]>,
    /// Hash of `key`, as given by the store it is in.
    pub hash: u64,
    /// Request fields that select it among the replies of the same URL.
    pub selecting: Selecting,
    /// Status code.
    pub status: u16,
    /// Status line and end-to-end fields with `Via` and `Content-Length`, each line ended; no `Age`, no empty line.
    pub head: Box<[u8]>,
    /// The content.
    pub body: Bytes,
    /// When it is fresh.
    pub freshness: Freshness,
    /// `ETag`, a validator.
    pub etag: Option<Box<[u8]>>,
    /// `Last-Modified` in seconds since 1970, a validator.
    pub last_modified: Option<u64>,
    /// `Date` or else the time of arrival, in seconds since 1970.
    pub date: u64,
}

/// Memory that a block of `bytes` takes: large ones are of whole pages.
fn block(bytes: usize) -> usize {
    const PAGE: usize = 4096;
    const LARGE: usize = 64 * 1024;
    if bytes < LARGE { bytes } else { bytes.next_multiple_of(PAGE) }
}

impl Object {
    /// Bytes of memory this takes, apart from the store's own bookkeeping.
    pub fn bytes(&self) -> u64 {
        // Each separate allocation costs the allocator a header and rounding, about 16 bytes; `Bytes` adds a
        // small shared block.
        const ALLOCATIONS: usize = 6 * 16 + 32;
        let own =
            size_of::<Object>() + ALLOCATIONS + self.key.len() + self.head.len() + block(self.body.len());
        (own + self.selecting.bytes() + self.etag.as_ref().map_or(0, |etag| etag.len())) as u64
    }

    /// The reply with the fields of the origin's `304`, written by [`write_reply`](crate::message::write_reply) to `block`,
    /// and whether that may be stored (RFC 9111, section 4.3.4). `None`: taken together, these are too many fields.
    pub fn brought_up_to_date(
        &self,
        block: &[u8],
        facts_304: &ReplyFacts<'_>,
        wanted: &RequestFacts<'_>,
        request_ms: u64,
        now_ms: u64,
    ) -> Option<(Object, bool)> {
        let mut head = merge_heads(&self.head, block);
        head.extend_from_slice(b"\r\n");
        let merged = parse_reply(&head, |reply| {
            let facts = ReplyFacts { age: facts_304.age, ..ReplyFacts::read(reply.headers, now_ms) };
            let keep = may_store("GET", wanted, self.status, &facts, now_ms);
            let freshness = Freshness::new(self.status, &facts, request_ms, now_ms);
            (keep, freshness, Object::validators(&facts, now_ms))
        });
        let (keep, freshness, (etag, last_modified, date)) = merged.ok()??;
        head.truncate(head.len() - 2);
        let object = Object {
            key: self.key.clone(),
            hash: self.hash,
            selecting: self.selecting.clone(),
            status: self.status,
            head: head.into_boxed_slice(),
            body: self.body.clone(),
            freshness,
            etag,
            last_modified,
            date,
        };
        Some((object, keep))
    }

    /// True if the origin can be asked whether it is still good.
    pub fn has_validator(&self) -> bool {
        self.etag.is_some() || self.last_modified.is_some()
    }

    /// The moment that stands in for `Last-Modified`, and validators, taken from a reply's fields.
    pub fn validators(facts: &ReplyFacts<'_>, response_ms: u64) -> (Option<Box<[u8]>>, Option<u64>, u64) {
        (facts.etag.map(Box::from), facts.last_modified, facts.date.unwrap_or(response_ms / 1000))
    }
}

/// In which form a stored reply answers a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// Head and body.
    Whole,
    /// The head alone, to `HEAD`.
    Head,
    /// `304 Not Modified`.
    NotModified,
}

impl How {
    /// For a request with this method and these conditions.
    pub fn to(method: &str, facts: &RequestFacts<'_>, object: &Object) -> How {
        // Conditions apply to what would otherwise be a success (RFC 9110, section 13.2.1).
        let tag = object.etag.as_deref();
        if object.status == 200 && not_modified(facts, tag, object.last_modified, object.date) {
            How::NotModified
        } else if method == "HEAD" {
            How::Head
        } else {
            How::Whole
        }
    }
}

/// The request fields named by a reply's `Vary`, with the values they had in the request it answers
/// (RFC 9111, section 4.1). Empty for a reply that does not vary.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selecting(Box<[SelectingField]>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct SelectingField {
    /// In lower case.
    name: Box<str>,
    /// `None` if the request had no such field.
    value: Option<Box<[u8]>>,
}

impl Selecting {
    /// For a reply with these fields to a request with those.
    pub fn new(reply: &[Header<'_>], request: &[Header<'_>]) -> Selecting {
        let mut fields: Vec<SelectingField> = Vec::new();
        for header in reply.iter().filter(|header| header.name.eq_ignore_ascii_case("vary")) {
            for_each_item(header.value, |name| {
                let name = String::from_utf8_lossy(name).to_ascii_lowercase().into_boxed_str();
                if !fields.iter().any(|field| field.name == name) {
                    let value = combined(request, &name).map(Vec::into_boxed_slice);
                    fields.push(SelectingField { name, value });
                }
            });
        }
        Selecting(fields.into_boxed_slice())
    }

    /// True if a request with these fields may be answered by the reply.
    pub fn matches(&self, request: &[Header<'_>]) -> bool {
        self.0.iter().all(|field| combined(request, &field.name).as_deref() == field.value.as_deref())
    }

    fn bytes(&self) -> usize {
        // Two allocations a field, each with about 16 bytes of the allocator's own.
        let field = |field: &SelectingField| {
            size_of_val(field) + 32 + field.name.len() + field.value.as_ref().map_or(0, |value| value.len())
        };
        self.0.iter().map(field).sum()
    }
}

/// The values of all fields of a name as one list, blanks around commas normalised; `None` without such a field.
fn combined(headers: &[Header<'_>], name: &str) -> Option<Vec<u8>> {
    let mut value: Option<Vec<u8>> = None;
    for header in headers.iter().filter(|header| header.name.eq_ignore_ascii_case(name)) {
        let value = value.get_or_insert_default();
        for_each_item(header.value, |item| {
            if !value.is_empty() {
                value.extend_from_slice(b", ");
            }
            value.extend_from_slice(item);
        });
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header<'a>((name, value): &(&'a str, &'a str)) -> Header<'a> {
        Header { name, value: value.as_bytes() }
    }

    #[test]
    fn variants_are_selected_by_the_named_fields() {
        #[track_caller]
        fn check(vary: &str, first: &[(&str, &str)], second: &[(&str, &str)], expected: bool) {
            let reply = [Header { name: "Vary", value: vary.as_bytes() }];
            let first: Vec<_> = first.iter().map(header).collect();
            let second: Vec<_> = second.iter().map(header).collect();
            let selecting = Selecting::new(&reply, &first);
            assert!(selecting.matches(&first));
            assert_eq!(selecting.matches(&second), expected, "{vary}: {first:?} and {second:?}");
        }
        check("", &[("Accept", "a")], &[], true);
        check("Accept", &[("Accept", "a")], &[("accept", "a"), ("X", "y")], true);
        check("Accept", &[("Accept", "a")], &[("Accept", "b")], false);
        check("Accept", &[("Accept", "a")], &[], false);
        check("Accept", &[("Accept", "")], &[], false);
        check("Accept", &[], &[("X", "y")], true);
        check("Accept", &[("Accept", "a,b")], &[("Accept", "a"), ("Accept", " b ")], true);
        check("Accept, X", &[("Accept", "a"), ("X", "1")], &[("Accept", "a"), ("X", "2")], false);
    }
}
