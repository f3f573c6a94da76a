//! Intentional faults, which show whether a test detects them.
//!
//! Each fault has an occasion, for example a stored reply that has expired, and the share of the occasions on which the proxy
//! injects it. Draws are seeded.
//!
//! [`Faults::instead`] gives wrong answers from the store, [`Faults::on_head`] alters reply headers of origin servers before the
//! client and the store receive them, and [`Faults::on_facts`] makes the proxy store replies that it must not store.

use std::cell::RefCell;
use std::io::Write as _;
use std::sync::Arc;

use bytes::Bytes;
use polygraph_traffic::{Random, Seed, Stream};
use polygraph_wire::head::Header;
use polygraph_wire::range::{ByteRange, ContentRange, RangeSet};
use polygraph_wire::{RequestHead, date};

use crate::content::Content;
use crate::counters::Counters;
use crate::directives::Directives;
use crate::object::{Object, ReplyForm};
use crate::policy::{ReplyFacts, RequestFacts, Reuse};
use crate::store::Store;

macro_rules! faults {
    ($($(#[$doc:meta])+ $kind:ident $name:literal $text:literal,)+) => {
        /// A fault of a broken proxy.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Fault {
            $($(#[$doc])+ $kind,)+
        }

        impl Fault {
            /// All faults.
            pub const ALL: &[Fault] = &[$(Fault::$kind,)+];

            /// The name of the fault, for example `swap-bodies`.
            pub fn name(self) -> &'static str {
                match self { $(Fault::$kind => $name,)+ }
            }

            /// What the fault does, in a few words.
            pub fn text(self) -> &'static str {
                match self { $(Fault::$kind => $text,)+ }
            }
        }
    };
}

faults! {
    /// A stored reply whose lifetime is over is used without validation.
    Stale "stale" "uses expired copies without revalidation",
    /// A hit has the body of another stored object and its own head.
    SwapBodies "swap-bodies" "answers hits with the body of another object",
    /// A hit is answered with another stored object.
    SwapReplies "swap-replies" "answers hits with the head and body of another object",
    /// Replies that forbid storing are stored for an hour.
    StorePrivate "store-private" "stores replies that must not be stored",
    /// A hit ends in the middle of the body; the connection is closed.
    Cut "cut" "closes the connection in the middle of stored bodies",
    /// A hit lacks the second half of the body, and its length says so.
    Shorten "shorten" "cuts off stored bodies and adapts their Content-Length",
    /// A hit has additional bytes at its end, and its length says so.
    Lengthen "lengthen" "adds bytes to stored bodies and adapts their Content-Length",
    /// A hit is followed by bytes that do not belong to it.
    Overrun "overrun" "sends more bytes of stored bodies than announced",
    /// One bit in the body of a hit is inverted.
    Alter "alter" "alters a byte of stored bodies",
    /// A stored reply is used although the fields that `Vary` names are different.
    ForgetVary "forget-vary" "ignores Vary",
    /// Fields whose names begin with `X-` are removed from replies.
    StripMarks "strip-marks" "removes X- fields from replies",
    /// A request that forbids stored replies gets one.
    IgnoreReload "ignore-reload" "answers no-cache requests from the store",
    /// A request for one range of a stored object gets another range.
    WrongRange "wrong-range" "answers with a range other than the requested one",
    /// A request for one range of a stored object gets bytes from elsewhere in it.
    ShiftRange "shift-range" "answers range requests with bytes from another position",
    /// A conditional request for a stored object is answered `304`, whatever the condition.
    FalseNotModified "false-304" "answers 304 to all conditional requests",
    /// `Date` is an hour late.
    WrongDate "wrong-date" "adds an hour to Date",
    /// `Content-MD5` is the digest of no bytes at all.
    WrongDigest "wrong-digest" "replaces Content-MD5 and leaves bodies as they are",
}

impl std::str::FromStr for Fault {
    type Err = String;

    fn from_str(name: &str) -> Result<Fault, String> {
        let found = Fault::ALL.iter().find(|fault| fault.name() == name);
        found.copied().ok_or_else(|| {
            let names: Vec<&str> = Fault::ALL.iter().map(|fault| fault.name()).collect();
            format!("`{name}` is not a fault; write one of {}", names.join(", "))
        })
    }
}

/// Faults that alter the body of a hit. Only one is injected at a time, so that each can be recognized.
const OF_BODIES: [Fault; 7] = [
    Fault::SwapReplies,
    Fault::SwapBodies,
    Fault::Cut,
    Fault::Shorten,
    Fault::Lengthen,
    Fault::Overrun,
    Fault::Alter,
];

/// The surplus bytes after bodies that are too long.
const SURPLUS: &[u8] = b"and more";

/// `Date` is wrong by this many seconds.
const DATE_OFFSET: u64 = 3600;

/// The digest of no bytes, as it stands in `Content-MD5`.
const OTHER_DIGEST: &[u8] = b"Content-MD5: 1B2M2Y8AsgTpgAmY7PhCfg==\r\n";

/// A wrong answer from the store.
#[derive(Debug)]
pub(crate) struct Wrong {
    /// The object to send.
    pub object: Arc<Object>,
    /// The form of the answer.
    pub form: ReplyForm,
    /// Whether to close the connection, because the end of the body is never sent.
    pub closes: bool,
}

/// The faults of one loop.
#[derive(Debug)]
pub(crate) struct Faults {
    /// Shares, by the fault's position in [`Fault::ALL`].
    shares: [f64; Fault::ALL.len()],
    rng: RefCell<Stream>,
    counters: Arc<Counters>,
}

impl Faults {
    /// The faults of loop number `index`; `None` if there are none.
    pub fn new(shares: &[(Fault, f64)], seed: u64, index: usize, counters: &Arc<Counters>) -> Option<Faults> {
        let mut all = [0.0; Fault::ALL.len()];
        shares.iter().for_each(|&(fault, share)| all[fault as usize] = share);
        let rng = RefCell::new(Seed(seed).stream("proxy faults", index as u64));
        let faults = Faults { shares: all, rng, counters: Arc::clone(counters) };
        all.iter().any(|&share| share > 0.0).then_some(faults)
    }

    /// Whether to inject the fault on this occasion; if so, counts it.
    fn commits(&self, fault: Fault) -> bool {
        let share = self.shares[fault as usize];
        let commits = share > 0.0 && self.rng.borrow_mut().event(share);
        self.counters.faults.add(u64::from(commits));
        commits
    }

    /// A wrong answer to a `GET` or `HEAD` request without a body.
    pub fn instead(
        &self,
        store: &Store,
        head: &RequestHead<'_, '_>,
        facts: &RequestFacts<'_>,
        (hash, key): (u64, &[u8]),
        now: u64,
    ) -> Option<Wrong> {
        let fitting = store.get(hash, key, |object| object.selecting.matches(head.headers));
        let whole = |object, form| Some(Wrong { object, form, closes: false });
        if let Some(object) = &fitting {
            if facts.if_modified_since.or(facts.if_none_match.map(|_| 0)).is_some()
                && self.commits(Fault::FalseNotModified)
            {
                return whole(Arc::clone(object), ReplyForm::NotModified);
            }
            if facts.for_origin {
                return whole(self.range(object, head.headers)?, ReplyForm::Whole);
            }
        }
        if facts.for_origin {
            return None;
        }
        let (object, mut wrong) = match fitting {
            Some(object) => (object, false),
            None => (store.get(hash, key, |_| true)?, self.commits(Fault::ForgetVary)),
        };
        if !wrong && !object.selecting.matches(head.headers) {
            return None;
        }
        if object.freshness.reuse(&facts.control, now) == Reuse::Validate {
            let forbidden = facts.control.no_cache || facts.control.max_age.is_some();
            let fault = if forbidden { Fault::IgnoreReload } else { Fault::Stale };
            if !self.commits(fault) {
                return None;
            }
            wrong = true;
        }
        let form = ReplyForm::to(head.method, facts, &object);
        if form == ReplyForm::Whole
            && object.status == 200
            && let Some((object, closes)) =
                OF_BODIES.iter().find_map(|&fault| self.spoil(fault, store, &object))
        {
            return Some(Wrong { object, form, closes });
        }
        if wrong { whole(object, form) } else { None }
    }

    /// The object with an altered body, and whether its end is never sent.
    fn spoil(&self, fault: Fault, store: &Store, object: &Arc<Object>) -> Option<(Arc<Object>, bool)> {
        if self.shares[fault as usize] == 0.0 || object.body.is_empty() {
            return None;
        }
        let body = object.body.bytes();
        let middle = body.len() / 2;
        let other = match fault {
            Fault::SwapReplies | Fault::SwapBodies => {
                let place = self.rng.borrow_mut().bits();
                Some(store.another(&object.key, place).filter(|other| other.status == 200)?)
            }
            _ => None,
        };
        if !self.commits(fault) {
            return None;
        }
        let new = match (fault, other) {
            (Fault::SwapReplies, Some(other)) => other,
            (_, Some(other)) => with_body(object, &object.head, other.body.bytes(), true),
            (Fault::Cut, _) => with_body(object, &object.head, body.slice(..middle), false),
            (Fault::Shorten, _) => with_body(object, &object.head, body.slice(..middle), true),
            (Fault::Alter, _) => {
                let mut body = body.to_vec();
                let at = self.rng.borrow_mut().below(body.len() as u64) as usize;
                body[at] ^= 1;
                with_body(object, &object.head, body.into(), false)
            }
            (fault, _) => {
                let body = [&body[..], SURPLUS].concat();
                with_body(object, &object.head, body.into(), fault == Fault::Lengthen)
            }
        };
        Some((new, fault == Fault::Cut))
    }

    /// A wrong part of an object, if the request is for one range.
    fn range(&self, object: &Arc<Object>, request: &[Header<'_>]) -> Option<Arc<Object>> {
        let wanted = request.iter().find(|header| header.name.eq_ignore_ascii_case("range"))?;
        let size = object.body.len();
        let ranges: Vec<ByteRange> = RangeSet::parse(wanted.value)?.resolve(size).collect();
        let [asked] = ranges[..] else { return None };
        // As many bytes from another position, after the requested bytes or before them.
        let first = match asked.first() + 2 * asked.len() <= size {
            true => asked.first() + asked.len(),
            false => asked.first().checked_sub(asked.len())?,
        };
        let other = ByteRange::new(first, first + asked.len() - 1)?;
        let announced = if object.status != 200 {
            return None;
        } else if self.commits(Fault::WrongRange) {
            other
        } else if self.commits(Fault::ShiftRange) {
            asked
        } else {
            return None;
        };
        let mut head = b"HTTP/1.1 206 Partial Content\r\n".to_vec();
        lines(&object.head).skip(1).for_each(|line| head.extend_from_slice(line));
        head.extend_from_slice(b"Content-Range: ");
        ContentRange::Part(announced, Some(size)).write(&mut head);
        head.extend_from_slice(b"\r\n");
        let body = object.body.bytes().slice(first as usize..(first + asked.len()) as usize);
        Some(with_body(object, &head, body, true))
    }

    /// Alters the header of an origin server's reply.
    pub fn on_head(&self, status: u16, head: &mut Vec<u8>) {
        if status == 304 {
            return;
        }
        if self.commits(Fault::StripMarks) {
            *head = lines(head).filter(|line| !begins(line, b"x-")).flatten().copied().collect();
        }
        if self.commits(Fault::WrongDate) {
            let mut new = Vec::with_capacity(head.len());
            for line in lines(head) {
                match date::parse(line.get(6..).unwrap_or_default().trim_ascii()) {
                    Some(time) if begins(line, b"date: ") => {
                        let _ = write!(new, "Date: {}\r\n", date::format(time + DATE_OFFSET));
                    }
                    _ => new.extend_from_slice(line),
                }
            }
            *head = new;
        }
        let is_digest = |line: &&[u8]| begins(line, b"content-md5:");
        if lines(head).any(|line| is_digest(&line)) && self.commits(Fault::WrongDigest) {
            let other = |line| if is_digest(&line) { OTHER_DIGEST } else { line };
            *head = lines(head).flat_map(other).copied().collect();
        }
    }

    /// Makes the proxy store a reply that it must not store.
    pub fn on_facts(&self, facts: &mut ReplyFacts<'_>) {
        let Directives { no_store, no_cache, private, .. } = facts.control;
        if (no_store || no_cache || private) && self.commits(Fault::StorePrivate) {
            facts.control = Directives { present: true, max_age: Some(3600), ..Directives::default() };
        }
    }
}

/// The object with another header and body; `adapts`: the length in the header is that of the body.
fn with_body(object: &Object, head: &[u8], body: Bytes, adapts: bool) -> Arc<Object> {
    let mut new = Vec::with_capacity(head.len() + 8);
    for line in lines(head) {
        if adapts && begins(line, b"content-length:") {
            let _ = write!(new, "Content-Length: {}\r\n", body.len());
        } else {
            new.extend_from_slice(line);
        }
    }
    Arc::new(Object {
        key: object.key.clone(),
        hash: object.hash,
        selecting: object.selecting.clone(),
        status: object.status,
        head: new.into_boxed_slice(),
        body: Content::Kept(body),
        freshness: object.freshness,
        validators: object.validators.clone(),
    })
}

fn lines(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    head.split_inclusive(|&b| b == b'\n')
}

/// Whether `line` begins with `start`, which is in lower case.
fn begins(line: &[u8], start: &[u8]) -> bool {
    line.get(..start.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(start))
}
