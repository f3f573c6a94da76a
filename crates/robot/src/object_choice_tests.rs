//! By which rules objects are chosen, and when launches are left out.

use std::sync::Arc;

use polygraph_link::{Nanos, SECOND};
use polygraph_traffic::{
    Catalog, Content, ContentKind, Distr, IdSource, Method, RequestKind, Seed, Selector,
};

use crate::group_tests::{errors, pages, run, settings};
use crate::request::Request;
use crate::request::generator::{Factors, RequestGenerator};
use crate::settings::{Field, Rules, Server, Settings};
use crate::testing::{Answer, TestLink, object, with_life};

const RECURRENCE: f64 = 0.6875;
const FULL: Factors = Factors { recur: 1.0, special: 1.0 };
/// Between requests.
const STEP: Nanos = Nanos::from_millis(10);

/// Robots with the mix of kinds and methods of PolyMix-4 and so many servers, by these rules.
fn mixed(rules: Rules, servers: u8, prefers_small: f64) -> Settings {
    let catalog =
        Catalog { seed: Seed(3), contents: vec![Content::plain("x", Distr::Exp { mean: 1e4 }, 0.8)] };
    let mut settings = settings(with_life(catalog), |robot| {
        robot.embed_recur = 0.0;
        robot.behavior.recurrence = RECURRENCE;
        robot.behavior.popularity.bhr_discrimination = prefers_small;
        robot.behavior.kinds = Selector::weighted([
            (RequestKind::Basic, 0.8),
            (RequestKind::Ims200, 0.05),
            (RequestKind::Ims304, 0.1),
            (RequestKind::Reload, 0.05),
        ]);
        robot.behavior.methods =
            Selector::weighted([(Method::Get, 0.9), (Method::Post, 0.05), (Method::Head, 0.05)]);
        robot.origins = Selector::even((0..servers.into()).collect());
    });
    let field = Arc::get_mut(&mut settings.field).unwrap();
    let server = |last| Server {
        authority: format!("10.0.0.{last}:80"),
        addresses: Vec::new(),
        behind: Vec::new(),
        bad_certificate: None,
        direct: 0,
        tls: false,
    };
    *field = Field {
        servers: (0..servers).map(server).collect(),
        rules,
        settle: if rules == Rules::Device { 4.0 } else { 0.0 },
        ..field.clone()
    };
    settings
}

/// The first `count` requests of a robot.
fn requests(settings: &Settings, count: u64) -> Vec<Request> {
    let mut generator = RequestGenerator::new(settings, IdSource::reproducible(1, 1));
    let mut rng = settings.seed.stream("test", 0);
    (0..count).map(|at| generator.next(settings, 0, FULL, at * STEP, &mut rng)).collect()
}

fn is_near(share: f64, expected: f64, count: usize) -> bool {
    // Five standard errors of a share.
    (share - expected).abs() < 5.0 * (expected * (1.0 - expected) / count as f64).sqrt()
}

#[test]
fn requests_that_fill_no_cache_are_for_known_objects_unless_the_original_is_asked_for() {
    // 100,000 requests for one server; 10 % of them are Ims304, 10 % are no GET. The first seconds, in which nothing is known,
    // are left out.
    for rules in [Rules::Device, Rules::V4_9] {
        let all = requests(&mixed(rules, 1, 0.9), 100_000);
        let special =
            |request: &&Request| request.kind == RequestKind::Ims304 || request.method != Method::Get;
        let special: Vec<&Request> = all.iter().skip(1_000).filter(special).collect();
        assert!(is_near(special.len() as f64 / 99_000.0, 0.19, 99_000), "{}", special.len());
        let new = special.iter().filter(|request| !request.repeat).count();
        match rules {
            Rules::Device => assert_eq!(new, 0),
            Rules::V4_9 => {
                let share = new as f64 / special.len() as f64;
                assert!(is_near(share, 1.0 - RECURRENCE, special.len()), "{share} of {}", special.len());
            }
        }
        // Whatever fills a cache is as it was asked for by both.
        let usual: Vec<&Request> = all
            .iter()
            .skip(1_000)
            .filter(|request| request.kind != RequestKind::Ims304 && request.method == Method::Get)
            .collect();
        let share = usual.iter().filter(|request| request.repeat).count() as f64 / usual.len() as f64;
        assert!(is_near(share, RECURRENCE, usual.len()), "{rules:?}: {share}");
    }
}

#[test]
fn only_the_original_asks_again_for_what_is_still_on_its_way() {
    for rules in [Rules::Device, Rules::V4_9] {
        let mut born = std::collections::HashMap::new();
        let mut youngest = Nanos::MAX;
        for request in requests(&mixed(rules, 1, 0.0), 20_000) {
            match request.repeat {
                false => drop(born.insert(request.oid, request.due)),
                true => youngest = youngest.min(request.due - born[&request.oid]),
            }
        }
        match rules {
            Rules::Device => assert!((4 * SECOND..5 * SECOND).contains(&youngest), "{youngest:?}"),
            Rules::V4_9 => assert_eq!(youngest, STEP),
        }
    }
}

#[test]
fn a_repeat_moves_to_a_server_that_has_an_object_unless_small_ones_are_preferred() {
    // The first 240 requests visit servers that nobody has asked before, 250 of them; everything may be repeated at once. Of some
    // 160 wanted repeats behind the first 20 requests nearly all come about if they move, and none if they stay.
    let kept = |rules, prefers_small| {
        let mut settings = mixed(rules, 250, prefers_small);
        Arc::get_mut(&mut settings.field).unwrap().settle = 0.0;
        let all = requests(&settings, 240);
        let wanted: Vec<&Request> = all.iter().skip(20).filter(|request| request.repeat_wanted).collect();
        assert!(wanted.len() > 100);
        wanted.iter().filter(|request| request.repeat).count() as f64 / wanted.len() as f64
    };
    for (rules, prefers_small, least, most) in [
        (Rules::Device, 0.0, 0.7, 1.0),
        (Rules::Device, 1.0, 0.0, 0.0),
        (Rules::V4_9, 0.0, 0.0, 0.0),
        (Rules::V4_9, 1.0, 0.0, 0.0),
    ] {
        let share = kept(rules, prefers_small);
        assert!((least..=most).contains(&share), "{rules:?} {prefers_small}: {share}");
    }
}

#[test]
fn a_frozen_working_set_still_offers_repeats_where_it_was_empty() {
    for rules in [Rules::Device, Rules::V4_9] {
        let settings = mixed(rules, 2, 0.9);
        let mut generator = RequestGenerator::new(&settings, IdSource::reproducible(1, 1));
        let mut rng = settings.seed.stream("test", 0);
        generator.freeze();
        let all: Vec<Request> = (0..20_000)
            .map(|at| {
                let request = generator.next(&settings, 0, FULL, at * STEP, &mut rng);
                // Whatever is asked for first, the second of two visits freezes what there is.
                (at == 1).then(|| generator.freeze());
                request
            })
            .collect();
        let basic: Vec<&Request> = all.iter().skip(2_000).filter(|request| request.is_basic()).collect();
        let share = basic.iter().filter(|request| request.repeat).count() as f64 / basic.len() as f64;
        assert!(is_near(share, RECURRENCE, basic.len()), "{rules:?}: {share}");
    }
}

#[test]
fn a_robot_goes_on_while_its_page_is_on_its_way() {
    // Pages of five take 2 s; ten requests a second are due. Until the first parts come nothing has taken the place of
    // any launch: 20 of them, with a deviation of sqrt(20); and over 500 s the rate is that of all requests together.
    let link = || {
        let catalog = pages();
        TestLink::new(move |ask| {
            Answer::Reply(object(&catalog, ask, "Content-Type: text/html\r\n"), 2 * SECOND)
        })
    };
    let mut settings = settings(pages(), |_| {});
    let field = Arc::get_mut(&mut settings.field).unwrap();
    (field.rules, field.page_delay) = (Rules::V4_9, 2.0);
    let first = link();
    run(&first, settings.clone(), 500);
    let early = first.asked().iter().filter(|ask| ask.at < 2 * SECOND).count();
    assert!((8..40).contains(&early), "{early}");
    // Deviation sqrt(500 * 10 * 5), five of them.
    let block = run(&link(), settings, 500);
    let all = block.ok_count() as f64;
    assert!((all - 5_000.0).abs() < 800.0 && errors(&block).is_empty(), "{all}");
}

#[test]
fn what_a_cache_can_have_is_expected_at_once() {
    let mut settings = settings(pages(), |robot| robot.behavior.recurrence = 0.5);
    Arc::get_mut(&mut settings.field).unwrap().page_delay = 2.0;
    let all = requests(&settings, 1_000);
    for request in &all {
        let wait = if request.repeat { Nanos::ZERO } else { 2 * SECOND };
        assert_eq!((request.parts_from, request.planned), (request.due + wait, 4));
    }
    assert!(all.iter().any(|request| request.repeat) && all.iter().any(|request| !request.repeat));
    assert_eq!(all[0].oid.kind, ContentKind::FIRST);
}
