//! What robots find out about a proxy that is broken on purpose: each fault has its error classes, is counted as
//! often as it was committed, and has examples. A proxy without faults gives no cause for complaint.

use polygraph_cache::{Fault, ProxyConfig};
use polygraph_plan::Goal;
use polygraph_robot::{Load, Profile};
use polygraph_stats::evidence::fact;
use polygraph_stats::{Block, Class, ErrorKind, MissCause};
use polygraph_traffic::content::{BodySource, Embeds, Encodings};
use polygraph_traffic::life::{Expiry, ExpiryBase, LifeCycle};
use polygraph_traffic::ranges::{DrawnExtent, Extent, RangeRule};
use polygraph_traffic::{Behavior, Catalog, Content, ContentKind, Distr, RequestKind, Seed, Selector};

use super::engine;
use crate::support::{Bench, Run};

/// Seconds of a run, except where copies have to become old.
const DURATION: f64 = 4.0;
/// Requests per second of all robots: what a test build on a busy host carries without being late.
const RATE: f64 = 600.0;
const ROBOTS: usize = 6;

fn life(length: f64, base: ExpiryBase, gap: f64) -> Option<LifeCycle> {
    let expires = Selector::only(Expiry { base, gap: Distr::Const(gap) });
    Some(LifeCycle { length: Distr::Const(length), variance: 0.0, with_lmt: 1.0, expires })
}

/// Objects that do not change, cachable for an hour, with enough bytes to tell them from each other.
fn lasting(name: &str) -> Content {
    let life = life(1e9, ExpiryBase::Now, 3600.0);
    Content { life, ..Content::plain(name, Distr::Unif { min: 200.0, max: 8000.0 }, 1.0) }
}

/// One content type for each thing that can be checked.
fn mixed() -> Vec<Content> {
    let page = Content {
        embeds: Some(Embeds { kinds: Selector::only(ContentKind::of_index(0)), count: Distr::Const(3.0) }),
        mime_type: Some("text/html".to_owned()),
        ..lasting("page")
    };
    let mut contents = vec![
        lasting("text"),
        Content { source: BodySource::Data, checksum: 1.0, ..lasting("data") },
        Content { unique: Some(1.0), checksum: 0.5, ..lasting("unique") },
        page,
        Content { cachable: 0.0, ..lasting("private") },
    ];
    contents.extend(ageing());
    contents
}

/// Objects whose copies are good until the next modification, or for a second.
fn ageing() -> Vec<Content> {
    vec![
        Content { life: life(4.0, ExpiryBase::Nmt, 0.0), ..lasting("changing") },
        Content { life: life(1e9, ExpiryBase::Now, 1.0), ..lasting("expiring") },
    ]
}

/// Content that comes as it is or compressed.
fn coded() -> Vec<Content> {
    vec![Content { encodings: Encodings { identity: true, gzip: true }, checksum: 0.5, ..lasting("coded") }]
}

/// Requests of all kinds.
const ALL_KINDS: [(RequestKind, f64); 5] = [
    (RequestKind::Basic, 0.6),
    (RequestKind::Ims200, 0.1),
    (RequestKind::Ims304, 0.1),
    (RequestKind::Reload, 0.1),
    (RequestKind::Range, 0.1),
];

fn run(contents: Vec<Content>, kinds: &[(RequestKind, f64)], faults: &[(Fault, f64)], duration: f64) -> Run {
    let behavior = Behavior {
        recurrence: 0.7,
        kinds: Selector::weighted(kinds.iter().copied()),
        ranges: Selector::even(vec![
            RangeRule::From { first: Extent::Relative(0.2), last: Some(Extent::Relative(0.4)) },
            RangeRule::From { first: Extent::Absolute(1000), last: None },
            RangeRule::Suffix(Extent::Absolute(100)),
            RangeRule::Many {
                count: Distr::Const(3.0),
                length: DrawnExtent::Absolute(Distr::Const(100.0)),
                first: None,
            },
        ]),
        ..Behavior::default()
    };
    let robots = |name: &str, accept: &str| Profile {
        accept_encoding: Some(accept.to_owned()),
        requests_per_connection: Distr::Const(20.0),
        embed_recur: 1.0,
        lifetime: Some(Distr::Const(20.0)),
        upload: Selector::only(ContentKind::FIRST),
        ..Profile::plain(name, ROBOTS / 2, Load::Open { rate: RATE / ROBOTS as f64 }, behavior.clone())
    };
    let catalog = Catalog { seed: Seed(1), contents };
    let profiles = vec![robots("new", "gzip, identity"), robots("old", "identity")];
    let mut bench = Bench::new(catalog, profiles);
    bench.farm.requests_per_connection = Distr::Const(1e9);
    bench.settle = 0.25;
    bench.schedule = Bench::only(Goal { duration: Some(duration), ..Goal::default() });
    bench.proxy = Some(ProxyConfig { faults: faults.to_vec(), ..ProxyConfig::default() });
    let run = bench.run(engine());
    let client = &run.client;
    let (begun, ok) = (client.xacts.entered, client.ok_count());
    let errors: Vec<_> = client.errors.iter().collect();
    // Of those that were begun: a busy host begins fewer than were due.
    assert!(2 * ok > begun, "{ok} of {begun}, {:?}, {errors:?}", run.proxy);
    run
}

/// How often a fault is found if it was committed `n` times.
enum Often {
    /// Each time, up to transactions under way at the end.
    Always,
    /// Not more often: some do not show.
    AtMost,
    /// There is no such relation.
    Somehow,
}

#[track_caller]
fn finds(contents: Vec<Content>, fault: Fault, share: f64, expected: &[ErrorKind], often: Often) {
    let run = run(contents, &ALL_KINDS, &[(fault, share)], DURATION);
    found(&run, fault, expected, often);
}

/// The errors of a side, without what a busy host does to its timers.
fn errors_of_traffic(block: &Block) -> Vec<(&'static str, u64)> {
    let traffic = block.errors.iter().filter(|(kind, _)| *kind != ErrorKind::LateTimers);
    traffic.map(|(kind, count)| (kind.name(), count)).collect()
}

/// Judges what was found in a run with one fault.
#[track_caller]
fn found(run: &Run, fault: Fault, expected: &[ErrorKind], often: Often) {
    let errors = &run.client.errors;
    let found = errors_of_traffic(&run.client);
    let all = || {
        errors.iter().flat_map(|(kind, _)| run.examples(kind)).map(|e| format!("{e:?}\n")).collect::<String>()
    };
    for kind in expected {
        assert!(errors[*kind] >= 3, "{fault:?}: {found:?}, no {}\n{}", kind.name(), all());
    }
    // A changed byte of compressed content may make it end early, which looks like a wrong size.
    // And a reply in place of another one of the same object is an old copy.
    let may_differ = matches!(often, Often::AtMost) || matches!(fault, Fault::SwapReplies);
    let odd = |count: u64| may_differ && count < 3;
    let kinds = found.iter().filter(|(_, count)| !odd(*count)).count();
    assert_eq!(kinds, expected.len(), "{fault:?}: {found:?}\n{}", all());
    assert_eq!(errors_of_traffic(&run.server), [], "{fault:?}");
    let count: u64 = found.iter().map(|(_, count)| count).sum();
    let committed = run.proxy.as_ref().expect("a proxy").faults;
    // Some begin between the end of the last interval and that of the robots.
    let under_way = run.client.xacts.entered - run.client.xacts.left + 2 * ROBOTS as u64;
    match often {
        Often::Always => {
            assert!(count.abs_diff(committed) <= under_way, "{fault:?}: {found:?} of {committed}\n{}", all());
        }
        Often::AtMost => assert!(count <= committed, "{fault:?}: {found:?} of {committed}"),
        Often::Somehow => {}
    }
    for kind in expected {
        let examples = run.examples(*kind);
        assert!(examples.len() as u64 >= errors[*kind].min(4), "{fault:?}");
        for (detail, facts) in examples {
            assert!(!detail.is_empty(), "{fault:?}");
            for wanted in [fact::URL, fact::ROBOT, fact::XACT, fact::REQUEST, fact::EXPECTED, fact::SEEN] {
                let known = facts.iter().any(|(name, value)| name == wanted && !value.is_empty());
                assert!(known, "{fault:?}: no `{wanted}` in {detail}: {facts:?}");
            }
        }
    }
}

#[test]
fn nothing_is_wrong_without_faults() {
    for contents in [mixed(), coded()] {
        let coded = contents.len() == 1;
        let run = run(contents, &ALL_KINDS, &[], DURATION + 2.0);
        for block in [&run.client, &run.server] {
            let found = errors_of_traffic(block);
            assert!(found.is_empty(), "{found:?} {:?}", run.examples(block.errors.iter().next().unwrap().0));
        }
        let client = &run.client;
        let classes = [Class::Hit, Class::Miss, Class::Ims200, Class::Ims304, Class::Reload, Class::Range];
        for class in classes {
            assert!(client.class(class).size.count() > 20, "{class:?}, coded {coded}");
        }
        assert!(client.verified.replies as f64 > 0.8 * client.ok_count() as f64, "{:?}", client.verified);
        assert!(client.verified.digests > 100);
        assert_eq!(run.proxy.unwrap().faults, 0);
        // There was room for everything: copies were missed because they had expired and changed, or were coded otherwise.
        let missed = |cause: MissCause| client.missed[cause as usize].count;
        let lost = missed(MissCause::Evicted) + missed(MissCause::NeverStored);
        let reason = if coded { MissCause::Elsewhere } else { MissCause::Expired };
        assert!(missed(reason) > 10 && 50 * lost <= missed(reason), "{:?}, coded {coded}", client.missed);
    }
}

/// The proxy replaces the header fields of a copy by those of the 304 that confirms it, as RFC 9111, section 4.3.4, demands.
#[test]
fn confirmed_copies_are_hits() {
    let run = run(ageing().split_off(1), &[(RequestKind::Basic, 1.0)], &[], DURATION);
    let (client, confirmed) = (&run.client, run.server.validations.useless.size.count());
    assert!(confirmed > 50, "{:?}", run.server.validations);
    assert_eq!(client.missed[MissCause::Expired as usize].count, 0, "{:?}", client.missed);
    assert!(client.class(Class::Hit).size.count() > confirmed);
    assert_eq!(errors_of_traffic(client), []);
}

#[test]
fn copies_that_uploads_invalidate_were_not_evicted() {
    let kinds = [(RequestKind::Basic, 0.6), (RequestKind::Upload, 0.4)];
    let run = run(vec![lasting("text")], &kinds, &[], DURATION);
    let missed = |cause: MissCause| run.client.missed[cause as usize].count;
    // A download may overtake the upload that was sent before it.
    let lost = missed(MissCause::Evicted) + missed(MissCause::NeverStored);
    let invalidated = missed(MissCause::Invalidated);
    assert!(invalidated > 50 && 20 * lost <= invalidated, "{:?}", run.client.missed);
}

#[test]
fn stale_copies() {
    // Conditional requests are answered from the old copy, too.
    let kinds = [(RequestKind::Basic, 0.6), (RequestKind::Ims200, 0.4)];
    // A modification shows after its tolerance of a second or two, and all tolerances are over after five.
    let run = run(ageing(), &kinds, &[(Fault::Stale, 1.0)], DURATION + 3.0);
    let expected = [ErrorKind::Stale, ErrorKind::Expired, ErrorKind::FalseNotModified];
    found(&run, Fault::Stale, &expected, Often::AtMost);
}

#[test]
fn swapped_bodies() {
    finds(mixed(), Fault::SwapBodies, 0.05, &[ErrorKind::WrongObject], Often::Always);
}

#[test]
fn swapped_replies() {
    finds(mixed(), Fault::SwapReplies, 0.05, &[ErrorKind::WrongObject], Often::Always);
}

#[test]
fn private_replies_given_again() {
    let kinds = [ErrorKind::PrivateLeak, ErrorKind::UncachableHit];
    finds(mixed(), Fault::StorePrivate, 0.1, &kinds, Often::Somehow);
}

#[test]
fn truncated_bodies() {
    for contents in [mixed, coded] {
        finds(contents(), Fault::Cut, 0.05, &[ErrorKind::BodyShort], Often::Always);
        finds(contents(), Fault::Shorten, 0.05, &[ErrorKind::WrongSize], Often::Always);
    }
}

#[test]
fn bodies_with_more_at_their_end() {
    for contents in [mixed, coded] {
        finds(contents(), Fault::Lengthen, 0.05, &[ErrorKind::WrongSize], Often::Always);
        finds(contents(), Fault::Overrun, 0.05, &[ErrorKind::BodyLong], Often::Always);
    }
}

#[test]
fn altered_bytes() {
    finds(mixed(), Fault::Alter, 0.05, &[ErrorKind::AlteredBody], Often::Always);
    // Some bits of the head of compressed content mean nothing, so only a digest notices.
    finds(coded(), Fault::Alter, 0.05, &[ErrorKind::AlteredBody], Often::AtMost);
}

#[test]
fn forgotten_vary() {
    finds(coded(), Fault::ForgetVary, 0.2, &[ErrorKind::UnacceptableCoding], Often::AtMost);
}

#[test]
fn lost_marks() {
    finds(mixed(), Fault::StripMarks, 0.05, &[ErrorKind::ForeignReply], Often::Somehow);
}

#[test]
fn reloads_from_the_store() {
    finds(mixed(), Fault::IgnoreReload, 0.5, &[ErrorKind::ReloadHit], Often::Always);
}

#[test]
fn wrong_ranges() {
    finds(mixed(), Fault::WrongRange, 0.3, &[ErrorKind::BadRange], Often::Always);
    finds(mixed(), Fault::ShiftRange, 0.3, &[ErrorKind::BadRange], Often::Always);
}

#[test]
fn not_modified_whatever_was_asked() {
    finds(mixed(), Fault::FalseNotModified, 0.5, &[ErrorKind::FalseNotModified], Often::AtMost);
}

#[test]
fn wrong_clocks() {
    finds(mixed(), Fault::WrongDate, 0.05, &[ErrorKind::ClockSkew], Often::Always);
}

/// Hits have the wrong digest, too, if their copy has it.
#[test]
fn wrong_digests_of_right_bodies() {
    for contents in [mixed(), coded()] {
        finds(contents, Fault::WrongDigest, 0.3, &[ErrorKind::WrongDigest], Often::Somehow);
    }
}
