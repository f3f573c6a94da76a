//! Explains why the measured hit ratio is below the offered one.
//!
//! For every offered hit that was a miss, robots know the history of its object ([`MissCause`]); this module turns the
//! causes into sentences. An object that was a hit earlier and then a miss indicates a cache that is too small. An
//! object that was never a hit may never have been stored, or was evicted before its first repeat. It counts as a
//! capacity miss only if something else shows that the cache evicts objects: evictions, missed repeats that came much
//! later than repeats that were hits, hits on some objects of every content type (admission rules would exclude whole
//! types), or a phase in which most offered hits were delivered while there was room. A device that failed, was too slow or restarted may lose
//! copies whatever the size of its cache, so nothing is said of its size then.
//!
//! If there was no hit at all, no cause explains anything: lifetimes and transfers do not matter to a device that stores nothing.

use polygraph_stats::{Class, CountAndBytes, MissCause};

use crate::facts::{PhaseFacts, ProcessFacts, RunFacts};
use crate::judge;
use crate::scope::Scope;
use crate::text::{self, ms, number};

/// Share of the offered hits below which a loss needs no explanation.
const NEGLIGIBLE: f64 = 0.02;
/// Causes below this share of the missed hits appear only in the table.
const WORTH_A_SENTENCE: f64 = 0.10;
/// Share of evictions that shows that the cache evicts objects.
const FORGETS: f64 = 0.05;
/// Share of the offered hits of a content type that shows that at least some of its objects are stored.
const STORES: f64 = 0.02;
/// Minimum number of offered hits from which conclusions about a content type are drawn.
const TELLING: u64 = 100;
/// Ratio of the median ages of missed repeats and hits that shows that the cache evicts objects.
const LATER: f64 = 2.0;
/// Minimum number of values for a meaningful median.
const FEW: u64 = 20;
/// Smallest share of the offered hits that a device with free space delivers.
const MOST: f64 = 0.5;
/// Minimum number of offered hits of phases that are compared.
const LEAST_OFFERED: u64 = 50;

/// Causes that replies themselves show, whether the device has a cache or not.
const SHOWN_BY_REPLIES: [MissCause; 2] = [MissCause::Unmarked, MissCause::Forbidden];

/// The explanation of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct MissExplanation {
    /// The explanation in sentences, the most important first.
    pub sentences: Vec<String>,
    /// Names of the phases that are compared.
    pub phases: Vec<String>,
    /// For each cause that occurred, how many offered hits it cost in each of these phases.
    pub causes: Vec<(MissCause, Vec<CountAndBytes>)>,
}

/// Explains the missed hits of a run; `None` if none has a known cause.
pub fn explain(facts: &RunFacts) -> Option<MissExplanation> {
    let client = facts.client.as_ref()?;
    let headline = facts.headline.as_ref()?;
    if !facts.tested.is_device() {
        // Nothing was there that could have answered from a cache.
        return None;
    }
    if headline.scope.block.missed_total().count == 0 {
        return None;
    }
    let measured: Vec<(&PhaseFacts, &Scope)> = client
        .phases
        .iter()
        .filter(|phase| phase.primary == headline.primary)
        .filter_map(|phase| Some((phase, phase.scope.as_ref()?)))
        .filter(|(_, scope)| scope.block.offered_hits.count >= LEAST_OFFERED)
        .collect();
    let with_room = while_there_was_room(&client.phases, &headline.scope);
    let hits = client.total.as_ref().map_or(0, |total| total.block.class(Class::Hit).size.count());
    let sentences = if hits > 0 {
        let mut sentences = sentences(&headline.scope, with_room, judge::kept_up(facts));
        sentences.extend(comparison(&measured));
        sentences
    } else {
        let says_how_long_fresh = client.processes.iter().all(ProcessFacts::says_how_long_fresh);
        let may_have_cache = client.processes.iter().all(ProcessFacts::may_have_cache);
        without_hits(&headline.scope, may_have_cache, says_how_long_fresh)
    };
    if sentences.is_empty() {
        return None;
    }
    let causes = MissCause::ALL
        .into_iter()
        .filter(|cause| hits > 0 || SHOWN_BY_REPLIES.contains(cause))
        .map(|cause| {
            let of = |(_, scope): &(&PhaseFacts, &Scope)| scope.block.missed[cause as usize];
            (cause, measured.iter().map(of).collect::<Vec<_>>())
        })
        .filter(|(_, tallies)| tallies.iter().any(|tally| tally.count > 0))
        .collect();
    let phases = measured.iter().map(|(phase, _)| phase.name.clone()).collect();
    Some(MissExplanation { sentences, phases, causes })
}

/// A share from 0 to 1 as a percentage without decimals.
fn percent(share: f64) -> String {
    text::percent(share, 0)
}

fn lost_share(scope: &Scope) -> f64 {
    scope.block.missed_total().count as f64 / scope.block.offered_hits.count.max(1) as f64
}

/// The first phase before the measured ones in which the device delivered most of the offered hits, far more than in
/// the measured phases, `later`; with the share that it delivered.
fn while_there_was_room<'a>(phases: &'a [PhaseFacts], later: &Scope) -> Option<(&'a str, f64)> {
    let bound = MOST.max(2.0 * (1.0 - lost_share(later)));
    phases.iter().take_while(|phase| !phase.primary).find_map(|phase| {
        let scope = phase.scope.as_ref()?;
        let delivered = 1.0 - lost_share(scope);
        (at_least(delivered, scope.block.offered_hits.count) > bound)
            .then_some((phase.name.as_str(), delivered))
    })
}

/// The lower end of the 95 % confidence interval of a share that was observed in `n` cases (Wilson 1927).
fn at_least(share: f64, n: u64) -> f64 {
    const Z: f64 = 1.96;
    if n == 0 {
        return 0.0;
    }
    let n = n as f64;
    let spread = Z * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt();
    (share + Z * Z / (2.0 * n) - spread) / (1.0 + Z * Z / n)
}

fn sentences(scope: &Scope, with_room: Option<(&str, f64)>, kept_up: bool) -> Vec<String> {
    let block = &scope.block;
    let missed = block.missed_total().count;
    let share = |cause: MissCause| block.missed[cause as usize].count as f64 / missed as f64;
    let lost = lost_share(scope);
    let count = |n: u64| number(Some(n as f64), 0);
    let mut out = vec![format!(
        "{} of {} offered hits ({}) were misses.",
        count(missed),
        count(block.offered_hits.count),
        percent(lost)
    )];
    if lost < NEGLIGIBLE {
        out.push("The device delivered nearly all hits that were offered.".to_owned());
        return out;
    }
    let stored = [MissCause::Evicted, MissCause::NeverStored].map(share);
    let mut causes = vec![storage(scope, stored, with_room, kept_up)];
    causes.extend(MissCause::ALL.into_iter().filter(|cause| !cause.is_of_storage()).map(|cause| {
        let share = share(cause);
        (share, of_cause(cause, &percent(share)))
    }));
    causes.retain(|(share, _)| *share >= WORTH_A_SENTENCE);
    causes.sort_by(|a, b| b.0.total_cmp(&a.0));
    out.extend(causes.into_iter().map(|(_, text)| text));
    out.extend(ages(scope));
    out
}

/// The explanation of a run without hits. Only what the replies themselves show can be said of a device that may have no cache, and
/// nothing of one that has none.
fn without_hits(scope: &Scope, may_have_cache: bool, says_how_long_fresh: bool) -> Vec<String> {
    let block = &scope.block;
    let missed = block.missed_total().count;
    let share = |cause: MissCause| block.missed[cause as usize].count as f64 / missed as f64;
    let shown: Vec<String> = SHOWN_BY_REPLIES
        .into_iter()
        .filter(|cause| share(*cause) >= WORTH_A_SENTENCE)
        .map(|cause| of_cause(cause, &percent(share(cause))))
        .collect();
    if !may_have_cache && shown.is_empty() {
        return Vec::new();
    }
    let what = match share(MissCause::Unmarked) > 0.0 {
        true => "No reply could be recognized as a hit",
        false => "No reply came from a cache",
    };
    let mut out = vec![format!("{what}: all {} offered hits were misses.", number(Some(missed as f64), 0))];
    let storage = share(MissCause::Evicted) + share(MissCause::NeverStored);
    if 2 * block.tls.tunneled.size.count() > block.ok_count() {
        out.push(
            "Requests travelled in tunnels (CONNECT), where only a proxy that intercepts TLS can see them."
                .to_owned(),
        );
    } else if shown.is_empty() && storage >= WORTH_A_SENTENCE {
        let fresh = match says_how_long_fresh {
            true => "",
            false => {
                "it may be unable to know how long the replies are fresh (no `Content` of the workload file has `obj_life_cycle`), or "
            }
        };
        out.push(format!(
            "If there is one in the path, {fresh}it is set up not to store them, or does not use its copies: fields that it or a filter \
             adds (`Set-Cookie`, `Vary`), and cookies or credentials of requests, keep many caches from that."
        ));
    }
    out.extend(shown);
    out
}

/// The share of missed hits that a device could have delivered, with its explanation. `with_room` is a phase in which
/// the device kept its objects, with the share of the offered hits that it delivered then.
fn storage(
    scope: &Scope,
    [evicted, never]: [f64; 2],
    with_room: Option<(&str, f64)>,
    kept_up: bool,
) -> (f64, String) {
    let both = evicted + never;
    let forgets = evicted >= FORGETS
        || median_ages(scope).is_some_and(|(hit, miss)| miss >= LATER * hit)
        || evicted > 0.0 && stores_some_of_everything(scope)
        || with_room.is_some();
    let before = with_room.map_or_else(String::new, |(phase, share)| {
        format!(" In phase {phase}, before it was full, it delivered {} of the offered hits.", percent(share))
    });
    let text = if !forgets {
        format!(
            "The device does not store what it is allowed to store: {} of the missed hits were objects that it had delivered \
             completely, but never from its cache. Check its size first, because a full cache may keep what it has and take \
             nothing more; then its limits on object size and its admission rules.",
            percent(both)
        )
    } else if !kept_up {
        format!(
            "{} of the missed hits were objects that the device did not keep, or did not use: those that had been hits before ({}), and those \
             that never were ({}). It failed, was too slow or restarted, which may be why; so nothing can be said of the size of its cache.",
            percent(both),
            percent(evicted),
            percent(never)
        )
    } else if never >= FORGETS {
        format!(
            "The cache is too small, or has a time limit of its own: {} of the missed hits were capacity misses, objects that had been hits before ({}) or \
             that had been evicted before their first repeat ({}).{before}",
            percent(both),
            percent(evicted),
            percent(never)
        )
    } else {
        format!(
            "The cache is too small, or has a time limit of its own: {} of the missed hits were capacity misses, objects that had been hits before.{before}",
            percent(evicted)
        )
    };
    (both, text)
}

/// True if there are hits on objects of every content type that is requested often enough.
fn stores_some_of_everything(scope: &Scope) -> bool {
    let stores = |hits: u64, offered: u64| hits as f64 >= STORES * offered as f64;
    let mut telling = scope.block.kinds.iter().filter(|kind| kind.offered_hits.count >= TELLING).peekable();
    telling.peek().is_some() && telling.all(|kind| stores(kind.hits.count, kind.offered_hits.count))
}

fn of_cause(cause: MissCause, share: &str) -> String {
    match cause {
        MissCause::Unmarked => format!(
            "{share} of the missed hits were replies without the marks of our servers, so their origin is unknown: the device \
             removes X- headers or answers requests itself."
        ),
        MissCause::Forbidden => format!(
            "{share} of the missed hits were replies that forbid caching although their objects are cachable: the \
             device changes Cache-Control or Pragma."
        ),
        MissCause::AfterAbort => format!(
            "{share} of the missed hits followed a transfer that was aborted or failed: the device had no complete copy."
        ),
        MissCause::InFlight => format!(
            "{share} of the missed hits were requested while the first copy was still being transferred; a device that \
             combines such requests would have answered them from that copy."
        ),
        MissCause::Invalidated => format!(
            "{share} of the missed hits followed a PUT or POST to the same object, after which a cache must not use the copy that it had \
             (RFC 9111, section 4.4): the size of the cache does not matter to them."
        ),
        MissCause::Expired => format!(
            "{share} of the missed hits were repeats of copies that had expired: the workload's lifetimes are shorter \
             than its repeats."
        ),
        MissCause::AfterReload => {
            format!("{share} of the missed hits followed a reload, whose reply the device did not store.")
        }
        MissCause::Elsewhere => format!(
            "{share} of the missed hits have no known cause: robots know only what they requested in the same event loop, process and \
             coding, and not too long ago. Repeat the run with one client and `--loops 1` to learn the causes; for contents with \
             several `encodings`, have all robots accept the same one, because a cache keeps a copy of each."
        ),
        MissCause::Evicted | MissCause::NeverStored => String::new(),
    }
}

/// Median time since the last transfer in milliseconds: of hits, of misses.
fn median_ages(scope: &Scope) -> Option<(f64, f64)> {
    let (hits, misses) = (&scope.block.hit_since_transfer_ms, &scope.block.miss_since_transfer_ms);
    if hits.count().min(misses.count()) < FEW {
        return None;
    }
    Some((hits.quantile(0.5)? as f64, misses.quantile(0.5)? as f64))
}

fn ages(scope: &Scope) -> Option<String> {
    let (hit, miss) = median_ages(scope)?;
    Some(format!(
        "The median time since the last transfer of the object was {} for hits, and {} for repeats of objects that were not kept.",
        ms(Some(hit)),
        ms(Some(miss))
    ))
}

/// Compares the first and the last of several measured phases.
fn comparison(measured: &[(&PhaseFacts, &Scope)]) -> Option<String> {
    let [(first, early), .., (last, late)] = measured else { return None };
    let evicted = |scope: &Scope| {
        let missed = scope.block.missed_total().count.max(1) as f64;
        scope.block.missed[MissCause::Evicted as usize].count as f64 / missed
    };
    Some(format!(
        "From phase {} to phase {}, the share of offered hits that were missed changed from {} to {}, and the share of evicted \
         objects among them from {} to {}.",
        first.name,
        last.name,
        percent(lost_share(early)),
        percent(lost_share(late)),
        percent(evicted(early)),
        percent(evicted(late))
    ))
}

#[cfg(test)]
mod tests {
    use polygraph_stats::Block;

    use super::*;

    /// A scope with 1000 offered hits and these causes of missed ones.
    fn scope(causes: &[(MissCause, u64)]) -> Scope {
        let mut block = Block::new();
        (0..1000).for_each(|_| block.offered_hits.record(10));
        for &(cause, n) in causes {
            (0..n).for_each(|_| block.miss(cause, 10));
        }
        Scope { block, seconds: 10.0, ..Scope::default() }
    }

    fn told(scope: &Scope) -> String {
        sentences(scope, None, true).join("\n")
    }

    fn phase(name: &str, causes: &[(MissCause, u64)]) -> PhaseFacts {
        PhaseFacts {
            name: name.into(),
            primary: true,
            goal_duration_s: None,
            goal_xactions: None,
            load: None,
            begin_s: Some(0.0),
            end_s: Some(10.0),
            lost_s: 0.0,
            end: crate::facts::PhaseEnd::Complete,
            scope: Some(scope(causes)),
            sound: None,
        }
    }

    #[test]
    fn a_cache_that_kept_everything_while_it_had_room_is_too_small() {
        // As measured with Squid 5, whose full memory keeps what is in it and takes little more.
        let mut top = phase("top1", &[(MissCause::NeverStored, 860), (MissCause::Evicted, 10)]);
        let told = |early: PhaseFacts, top: &PhaseFacts| {
            let phases = [early, top.clone()];
            let scope = top.scope.as_ref().unwrap();
            sentences(scope, while_there_was_room(&phases, scope), true).join("\n")
        };
        let early = |offered: u64, missed: u64| {
            let mut block = Block::new();
            (0..offered).for_each(|_| block.offered_hits.record(10));
            (0..missed).for_each(|_| block.miss(MissCause::NeverStored, 10));
            let scope = Some(Scope { block, ..Scope::default() });
            PhaseFacts { primary: false, scope, ..phase("fill", &[]) }
        };
        top.scope
            .as_mut()
            .unwrap()
            .block
            .finish(&polygraph_stats::Finished { class: Class::Hit, ..Default::default() });
        let text = told(early(10, 0), &top);
        assert!(
            text.contains("The cache is too small, or has a time limit of its own: 100 % of the missed hits were capacity misses"),
            "{text}"
        );
        assert!(
            text.contains("In phase fill, before it was full, it delivered 100 % of the offered hits."),
            "{text}"
        );
        // Too few, or as little as later.
        for early in [early(0, 0), early(3, 0), early(100, 60)] {
            assert!(told(early, &top).contains("does not store what it is allowed to store"));
        }
    }

    #[test]
    fn the_confidence_in_a_share_grows_with_the_number_of_cases() {
        let close = |a: f64, b: f64| (a - b).abs() < 5e-4;
        assert!(
            close(at_least(1.0, 10), 0.7225) && close(at_least(0.5, 100), 0.4038),
            "{}",
            at_least(0.5, 100)
        );
        assert_eq!(at_least(1.0, 0), 0.0);
    }

    #[test]
    fn two_measured_phases_are_compared() {
        let top1 = phase("top1", &[(MissCause::InFlight, 80), (MissCause::Evicted, 20)]);
        let top2 = phase("top2", &[(MissCause::InFlight, 50), (MissCause::Evicted, 350)]);
        let mut facts = crate::fold::fold(&crate::testlog::Run::default().logs()).unwrap();
        let headline = facts.headline.as_mut().unwrap();
        headline.scope = Scope::sequential([&top1, &top2].map(|p| p.scope.as_ref().unwrap())).unwrap();
        facts.client.as_mut().unwrap().phases = vec![top1, top2];
        let story = explain(&facts).unwrap();
        assert_eq!(story.sentences[0], "500 of 2,000 offered hits (25 %) were misses.");
        assert_eq!(
            story.sentences.last().unwrap(),
            "From phase top1 to phase top2, the share of offered hits that were missed changed from 10 % to 40 %, and \
             the share of evicted objects among them from 20 % to 88 %."
        );
        let counts: Vec<_> = story.causes.iter().map(|(c, t)| (*c, t[0].count, t[1].count)).collect();
        assert_eq!(counts, [(MissCause::InFlight, 80, 50), (MissCause::Evicted, 20, 350)]);
    }

    #[test]
    fn evictions_mean_a_small_cache() {
        let text = told(&scope(&[(MissCause::Evicted, 415), (MissCause::InFlight, 85)]));
        let wanted = "The cache is too small, or has a time limit of its own: 83 % of the missed hits were capacity misses, objects that had been hits before.";
        assert!(text.contains(wanted), "{text}");
        assert!(
            text.starts_with("500 of 1,000 offered hits (50 %) were misses.") && text.contains("17 % of")
        );
    }

    #[test]
    fn a_device_that_failed_or_restarted_tells_nothing_of_its_size() {
        use crate::testlog::Run;
        use polygraph_stats::ErrorKind::{ConnectFailed, Timeout};
        let evicted = scope(&[(MissCause::Evicted, 300), (MissCause::NeverStored, 100)]);
        let told = |run: Run| {
            let mut facts = crate::fold::fold(&run.logs()).unwrap();
            facts.headline.as_mut().unwrap().scope = evicted.clone();
            explain(&facts).unwrap().sentences.join("\n")
        };
        assert!(told(Run::default()).contains("The cache is too small"));
        for run in [
            Run { error: Some((20, Timeout)), ..Run::default() },
            Run { error: Some((2000, ConnectFailed)), ..Run::default() },
            Run { capacity: 80.0, ..Run::default() },
        ] {
            let text = told(run);
            assert!(
                !text.contains("too small") && text.contains("100 % of the missed hits were objects that"),
                "{text}"
            );
        }
    }

    #[test]
    fn a_cache_that_keeps_some_of_every_type_is_too_small() {
        // As measured with a tenth of the room for a uniformly popular working set: few objects live to be hits
        // twice, so few are known to have been evicted.
        let kinds = |hits: [u64; 2]| {
            let mut scope = scope(&[(MissCause::NeverStored, 900), (MissCause::Evicted, 10)]);
            scope.block.kinds = hits
                .map(|hits| {
                    let tally = |count| CountAndBytes { count, bytes: 10 * count };
                    let offered_hits = tally(500);
                    polygraph_stats::KindStats { offered_hits, hits: tally(hits), ..Default::default() }
                })
                .to_vec();
            told(&scope)
        };
        assert!(kinds([60, 40]).contains("time limit of its own: 100 %"), "{}", kinds([60, 40]));
        assert!(kinds([95, 0]).contains("does not store what it is allowed to store"), "{}", kinds([95, 0]));
    }

    /// A device that had hits before the measured phase.
    fn with_a_hit(mut scope: Scope) -> Scope {
        scope.block.finish(&polygraph_stats::Finished { class: Class::Hit, ..Default::default() });
        scope
    }

    /// The explanation of a run with this scope, whose client's log has this setting.
    fn told_of_run(scope: Scope, setting: (&str, &str)) -> String {
        told_of_workload(scope, setting, "")
    }

    fn told_of_workload(scope: Scope, setting: (&str, &str), workload: &str) -> String {
        let mut facts = crate::fold::fold(&crate::testlog::Run::default().logs()).unwrap();
        facts.headline.as_mut().unwrap().scope = scope.clone();
        let client = facts.client.as_mut().unwrap();
        client.phases.iter_mut().for_each(|phase| phase.scope = Some(scope.clone()));
        client.total = Some(scope);
        client.processes[0].header.workload_text = workload.to_owned();
        let settings = &mut client.processes[0].header.settings;
        settings.retain(|(name, _)| name != setting.0);
        settings.push((setting.0.into(), setting.1.into()));
        let Some(story) = explain(&facts) else { return String::new() };
        let causes = story.causes.iter().map(|(cause, _)| cause.name());
        story.sentences.into_iter().chain(causes.map(str::to_owned)).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn without_any_hit_there_may_be_no_cache() {
        let none = "No reply came from a cache: all 500 offered hits were misses.";
        let surrogate = ("device", "surrogate");
        let never = || scope(&[(MissCause::NeverStored, 500)]);
        let text = told_of_run(never(), surrogate);
        assert!(
            text.starts_with(none) && text.contains("If there is one in the path, it is set up not"),
            "{text}"
        );
        let unknown = "it may be unable to know how long the replies are fresh";
        for (workload, told) in
            [("Content c = { size = 1KB; };", true), ("Content c = { obj_life_cycle = l; };", false)]
        {
            assert_eq!(told_of_workload(never(), surrogate, workload).contains(unknown), told, "{workload}");
        }
        let text = told_of_run(with_a_hit(never()), surrogate);
        assert!(text.contains("The device does not store what it is allowed to store: 100 %"), "{text}");
    }

    #[test]
    fn a_proxy_that_sees_no_requests_stores_nothing() {
        let mut scope = scope(&[(MissCause::NeverStored, 500)]);
        for told in [false, true] {
            let text = told_of_run(scope.clone(), ("proxy", "127.0.0.1:3128"));
            assert_eq!(text.contains("Requests travelled in tunnels"), told, "{text}");
            assert_eq!(text.contains("it is set up not to store them"), !told, "{text}");
            scope.block.tls.tunneled.size.record_n(10, 1000);
        }
    }

    #[test]
    fn a_device_without_a_cache_is_told_nothing_about_lifetimes() {
        let causes = [(MissCause::Expired, 320), (MissCause::NeverStored, 100), (MissCause::AfterReload, 80)];
        for setting in [("device", "balancer"), ("SOCKS proxy", "127.0.0.1:1080")] {
            assert_eq!(told_of_run(scope(&causes), setting), "", "{setting:?}");
        }
        let text = told_of_run(with_a_hit(scope(&causes)), ("device", "balancer"));
        assert!(text.contains("64 % of the missed hits were repeats of copies that had expired"), "{text}");
        // What the replies show is true of any device.
        let text = told_of_run(
            scope(&[(MissCause::Unmarked, 400), (MissCause::Expired, 100)]),
            ("device", "balancer"),
        );
        assert!(
            text.starts_with(
                "No reply could be recognized as a hit: all 500 offered hits were misses.\n80 % of"
            ),
            "{text}"
        );
    }

    #[test]
    fn what_an_upload_invalidates_is_no_matter_of_size() {
        let text = told(&scope(&[(MissCause::Invalidated, 73), (MissCause::NeverStored, 3)]));
        assert!(text.contains("96 % of the missed hits followed a PUT or POST to the same object"), "{text}");
        assert!(!text.contains("too small") && !text.contains("does not store"), "{text}");
    }

    #[test]
    fn an_unknown_cause_comes_with_the_way_to_learn_it() {
        let text = told(&scope(&[(MissCause::Elsewhere, 100)]));
        assert!(
            text.contains("100 % of the missed hits have no known cause") && text.contains("`--loops 1`"),
            "{text}"
        );
    }

    #[test]
    fn what_is_never_a_hit_is_a_matter_of_capacity_only_with_evidence() {
        let causes = [(MissCause::NeverStored, 400), (MissCause::Evicted, 4)];
        let mut scope = scope(&causes);
        assert!(
            told(&scope).contains("does not store what it is allowed to store: 100 %"),
            "{}",
            told(&scope)
        );
        for i in 0..100 {
            scope.block.since_transfer(true, 5_000 + i);
            scope.block.since_transfer(false, 60_000 + i);
        }
        let text = told(&scope);
        assert!(
            text.contains("time limit of its own: 100 %") && text.contains("first repeat (99 %)"),
            "{text}"
        );
        assert!(text.contains("was 5,051 ms for hits") && text.contains("60.1 s for repeats"), "{text}");
    }

    #[test]
    fn small_losses_are_not_explained() {
        let text = told(&scope(&[(MissCause::Evicted, 10)]));
        assert!(text.ends_with("The device delivered nearly all hits that were offered."), "{text}");
    }

    #[test]
    fn rare_causes_are_left_to_the_table() {
        let text = told(&scope(&[(MissCause::Expired, 95), (MissCause::Forbidden, 5)]));
        assert!(text.contains("expired") && !text.contains("forbid"), "{text}");
    }
}
