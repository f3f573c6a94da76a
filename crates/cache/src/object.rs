//! A stored reply and its key.

use polygraph_wire::head::Header;
use polygraph_wire::parse_reply;

use crate::content::Content;
use crate::directives::for_each_item;
use crate::message::merge_heads;
use crate::policy::{Freshness, ReplyFacts, ReplyRules, RequestFacts, Validators, may_store};

/// A complete stored reply: immutable, shared by the store and the transactions that send it.
#[derive(Debug)]
pub struct Object {
    /// The canonical URL of the request.
    pub key: Box<[u8]>,
    /// Hash of `key`, computed by its store.
    pub hash: u64,
    /// Request fields that select this reply among those for the same URL.
    pub selecting: Selecting,
    /// Status code.
    pub status: u16,
    /// Status line and end-to-end fields with `Via` and `Content-Length`, each line ended; no `Age`, no empty line.
    pub head: Box<[u8]>,
    /// The content.
    pub body: Content,
    /// Freshness of the reply.
    pub freshness: Freshness,
    /// Validators of the reply.
    pub validators: Validators,
}

/// Memory that a block of `bytes` takes; large blocks take whole pages.
fn block(bytes: u64) -> u64 {
    const PAGE: u64 = 4096;
    const LARGE: u64 = 64 * 1024;
    if bytes < LARGE { bytes } else { bytes.next_multiple_of(PAGE) }
}

impl Object {
    /// Bytes of memory that the reply takes without the store's own bookkeeping. A generated content counts as if it
    /// were in memory.
    pub fn bytes(&self) -> u64 {
        // Each separate allocation costs the allocator a header and rounding, about 16 bytes; `Bytes` adds a
        // small shared block.
        const ALLOCATIONS: usize = 6 * 16 + 32;
        let etag = self.validators.etag.as_ref().map_or(0, |etag| etag.len());
        let own = size_of::<Object>() + ALLOCATIONS + self.key.len() + self.head.len() + etag;
        (own + self.selecting.bytes()) as u64 + block(self.body.len())
    }

    /// The reply with the fields of the origin's `304`, written by [`write_reply`](crate::message::write_reply) to `block`,
    /// and whether it may be stored (RFC 9111, section 4.3.4). `None` if both together have too many fields.
    pub fn updated(
        &self,
        block: &[u8],
        facts_304: &ReplyFacts<'_>,
        rules: &ReplyRules,
        request_ms: u64,
        now_ms: u64,
    ) -> Option<(Object, bool)> {
        let mut head = merge_heads(&self.head, block);
        head.extend_from_slice(b"\r\n");
        let merged = parse_reply(&head, |reply| {
            let facts = ReplyFacts { age: facts_304.age, ..ReplyFacts::read(reply.headers, now_ms) };
            let keep = may_store(rules, self.status, &facts, now_ms);
            let freshness = Freshness::new(self.status, &facts, request_ms, now_ms);
            (keep, freshness, Validators::of(&facts, now_ms))
        });
        let (keep, freshness, validators) = merged.ok()??;
        head.truncate(head.len() - 2);
        let object = Object {
            key: self.key.clone(),
            hash: self.hash,
            selecting: self.selecting.clone(),
            status: self.status,
            head: head.into_boxed_slice(),
            body: self.body.clone(),
            freshness,
            validators,
        };
        Some((object, keep))
    }
}

/// The form in which a stored reply answers a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyForm {
    /// Head and body.
    Whole,
    /// Only the head, for `HEAD`.
    Head,
    /// `304 Not Modified`.
    NotModified,
}

impl ReplyForm {
    /// The form for a request with this method and these conditions.
    pub fn to(method: &str, facts: &RequestFacts<'_>, object: &Object) -> ReplyForm {
        // Conditions apply to what would otherwise be a success (RFC 9110, section 13.2.1).
        if object.status == 200 && object.validators.not_modified(facts) {
            ReplyForm::NotModified
        } else if method == "HEAD" {
            ReplyForm::Head
        } else {
            ReplyForm::Whole
        }
    }
}

/// The request fields that a reply's `Vary` names, with their values in its request (RFC 9111, section 4.1). Empty
/// for a reply that does not vary.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selecting(Box<[SelectingField]>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct SelectingField {
    /// Name in lower case.
    name: Box<str>,
    /// Value; `None` if the request had no such field.
    value: Option<Box<[u8]>>,
}

impl Selecting {
    /// The selecting fields of a reply with fields `reply` to a request.
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
        // Two allocations per field, each with about 16 bytes of overhead.
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
