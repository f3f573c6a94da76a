//! What a finished transaction counts as.

use polygraph_link::{Link, Nanos};
use polygraph_stats::{Class, ErrorKind, Finished};

use crate::crew::Crew;
use crate::exchange::Fault;
use crate::order::Order;
use crate::reply::Facts;

/// Whether the reply was made for this very request, known from first hand: the server echoes the mutant of
/// the request's transaction id, and a stored reply carries the mutant of an older one.
///
/// A reply without the mark is never a hit; it counts as a miss and as foreign.
fn class_of(order: &Order, facts: &Facts) -> Class {
    let first_hand = facts.marks.xact.is_some_and(|mark| mark.id == order.xact.mutant());
    if facts.marks.xact.is_some() && !first_hand {
        Class::Hit
    } else if facts.cachable {
        Class::Miss
    } else {
        Class::Uncachable
    }
}

/// Counts a transaction that began at `started` and has ended now.
pub fn settle<L: Link>(crew: &Crew<L>, order: &Order, started: Nanos, outcome: Result<Facts, Fault>) {
    let now = crew.now();
    let outcome = outcome.and_then(|facts| check(crew, order, &facts).map(|()| facts));
    let recorder = crew.recorder();
    match outcome {
        Err(fault) => {
            recorder.with(|block| block.xacts.leave(now));
            recorder.error(fault.kind, now, || format!("{}: {}", crew.url(order), fault.detail));
        }
        Ok(facts) => {
            let class = class_of(order, &facts);
            recorder.with(|block| {
                block.xacts.leave(now);
                block.finish(&Finished {
                    class,
                    rptm_us: (now - started) / 1000,
                    due_rptm_us: Some((now - order.due) / 1000),
                    size: facts.size(),
                    offered_hit: order.offers_hit(),
                    first: !order.repeat,
                    ..Finished::default()
                });
            });
            note(crew, order, &facts, class, now);
        }
    }
}

/// What makes a complete reply a failure.
fn check<L: Link>(crew: &Crew<L>, order: &Order, facts: &Facts) -> Result<(), Fault> {
    if facts.status != 200 {
        let detail = format!("status {} instead of 200", facts.status);
        return Err(Fault { kind: ErrorKind::BadStatus, detail });
    }
    // Worlds belong to one loop of one run, so nobody else can have asked for an object of them before.
    if class_of(order, facts) == Class::Hit && !order.repeat {
        let detail = "a stored reply to a request that was never made".to_owned();
        return Err(Fault { kind: ErrorKind::WrongObject, detail });
    }
    let settings = crew.settings();
    if settings.verify_size && is_ours(facts) {
        let expected = settings.properties.size(&order.oid);
        if facts.body_bytes != expected {
            let detail = format!("{} body bytes instead of {expected}", facts.body_bytes);
            return Err(Fault { kind: ErrorKind::WrongObject, detail });
        }
    }
    Ok(())
}

fn is_ours(facts: &Facts) -> bool {
    facts.marks.xact.is_some() || facts.marks.target.is_some()
}

/// What is wrong with a reply but lets the transaction succeed.
fn note<L: Link>(crew: &Crew<L>, order: &Order, facts: &Facts, class: Class, now: Nanos) {
    if !is_ours(facts) {
        crew.recorder().error(ErrorKind::ForeignReply, now, || format!("{}: no X- headers", crew.url(order)));
    }
    if class == Class::Hit && !facts.cachable {
        crew.recorder().error(ErrorKind::UncachableHit, now, || {
            format!("{}: a stored reply to an earlier request", crew.url(order))
        });
    }
}
