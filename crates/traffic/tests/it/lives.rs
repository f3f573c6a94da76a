//! Times of objects over their lives.

use polygraph_traffic::life::{Expiry, ExpiryBase, LifeCycle};
use polygraph_traffic::{Distr, Selector};

use crate::standard::{DAY, IMAGE, PAGE, YEAR, catalog, life, oid};
use crate::stat::{assert_follows, assert_mean, assert_share, deviation};

const NOW: i64 = 1_800_000_000;

#[test]
fn cycles_have_the_length_of_their_distribution() {
    // 20,000 objects whose modifications are on time: the distance of two is the cycle. Deviations within 5 %, five
    // times their relative standard error for shapes with a kurtosis up to 9.
    for (length, mean, sd) in [
        (Distr::logn(7.0 * DAY, DAY), 7.0 * DAY, DAY),
        (Distr::logn(YEAR / 2.0, 30.0 * DAY), YEAR / 2.0, 30.0 * DAY),
        (Distr::Unif { min: DAY, max: YEAR }, (DAY + YEAR) / 2.0, (YEAR - DAY) / 12f64.sqrt()),
    ] {
        let life = life(length, 0.0);
        let times: Vec<_> = (0..20_000).map(|seed| life.times(seed, NOW)).collect();
        let cycles: Vec<f64> = times.iter().map(|t| (t.nmt - t.lmt) as f64 + 0.5).collect();
        assert_mean(&cycles, mean, "cycle");
        assert!((deviation(&cycles) / sd - 1.0).abs() < 0.05, "{}", deviation(&cycles));
        // Where in its cycle an object is now is a matter of chance.
        let mut ages: Vec<f64> =
            times.iter().map(|t| (NOW - t.lmt) as f64 / (t.nmt - t.lmt) as f64).collect();
        assert_follows(&mut ages, |age| age, "age");
    }
}

#[test]
fn modifications_vary_within_their_bounds() {
    // 300 pages over 30 modifications each; the standard HTML life cycle, 7 days with a variance of 33 %.
    let catalog = catalog();
    let steady = {
        let mut catalog = catalog.clone();
        catalog.contents[1].life.as_mut().unwrap().variance = 0.0;
        catalog
    };
    let mut offs = Vec::new();
    for name in 1..=300 {
        let page = oid(PAGE, name);
        let exact = steady.times(&page, NOW).unwrap();
        let cycle = (exact.nmt - exact.lmt) as f64;
        let mut now = NOW;
        for _ in 0..30 {
            let times = catalog.times(&page, now).unwrap();
            assert!(times.lmt <= now && now < times.nmt);
            let length = (times.nmt - times.lmt) as f64;
            assert!(length >= cycle * 0.67 - 2.0 && length <= cycle * 1.33 + 2.0, "{length} of {cycle}");
            // Distance from the nearest place of a cycle without variance.
            let off = (times.nmt - exact.lmt) as f64 / cycle;
            offs.push((off - off.round()) / 0.33 + 0.5);
            now = times.nmt;
        }
    }
    assert!(offs.iter().all(|off| (-0.001..=1.001).contains(off)));
    assert_follows(&mut offs, |off| off.clamp(0.0, 1.0), "variance");
}

#[test]
fn rules_and_visible_modifications_have_their_shares() {
    // 50,000 objects; the gaps 1, 2, 3 tell the rules apart.
    let n = 50_000;
    let rule = |base, gap| Expiry { base, gap: Distr::Const(gap) };
    let life = LifeCycle {
        with_lmt: 0.4,
        expires: Selector::weighted([
            (rule(ExpiryBase::Lmt, 1.0), 0.2),
            (rule(ExpiryBase::Now, 2.0), 0.3),
            (rule(ExpiryBase::Nmt, 3.0), 0.5),
        ]),
        ..life(Distr::Exp { mean: DAY }, 0.5)
    };
    let times: Vec<_> = (0..n as u64).map(|seed| life.times(seed, NOW)).collect();
    assert_share(times.iter().filter(|t| t.shows_lmt).count(), n, 0.4, "shows its modification");
    // A few objects with cycles of seconds fit more than one rule: 3 seconds of a day.
    let by = |base: &dyn Fn(&polygraph_traffic::life::Times) -> i64| {
        times.iter().filter(|t| t.expires == Some(base(t))).count()
    };
    assert_share(by(&|t| t.lmt + 1), n, 0.2, "lmt");
    assert_share(by(&|_| NOW + 2), n, 0.3, "now");
    assert_share(by(&|t| t.nmt + 3), n, 0.5, "nmt");
}

#[test]
fn a_truthful_rule_expires_with_the_next_modification() {
    let catalog = catalog();
    for name in 1..1_000 {
        let times = catalog.times(&oid(IMAGE, name), NOW).unwrap();
        assert_eq!(times.expires, Some(times.nmt));
        assert!(times.shows_lmt);
    }
}
