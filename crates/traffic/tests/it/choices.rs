//! Which objects robots ask for, how and when.

use polygraph_traffic::{
    Arrivals, LoadCurve, PopModel, Popularity, Random, RequestKind, Seed, Selector, World,
};

use crate::stat::{assert_counts, assert_follows, assert_mean, assert_share, slope};

#[test]
fn arrivals_are_a_poisson_stream() {
    // 30,000 gaps with a mean of 1/0.4 s; counts of 1,000 windows of 100 s have the variance of their mean.
    let mut stream = Arrivals::new(0.4);
    let mut rng = Seed(51).stream("arrivals", 0);
    let curve = LoadCurve { launch_window: 0.0 };
    let times: Vec<f64> = (0..30_001).map(|_| stream.next(&curve, &mut rng)).collect();
    let mut gaps: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_mean(&gaps, 2.5, "gap");
    assert_follows(&mut gaps, |x| 1.0 - (-x / 2.5).exp(), "gap");
    let windows = 700;
    let mut counts = vec![0.0; windows];
    times
        .iter()
        .filter_map(|t| Some((t / 100.0) as usize).filter(|&w| w < windows))
        .for_each(|w| counts[w] += 1.0);
    // Dispersion of a Poisson count: 1, standard error sqrt(2 / 700).
    let mean = crate::stat::mean(&counts);
    let dispersion = crate::stat::deviation(&counts).powi(2) / mean;
    assert!((dispersion - 1.0).abs() < 5.0 * (2.0 / windows as f64).sqrt(), "{dispersion}");
}

#[test]
fn request_kinds_have_their_shares() {
    // 100,000 requests with the kinds of the standard robots.
    let kinds = [
        (RequestKind::Ims200, 0.05),
        (RequestKind::Ims304, 0.10),
        (RequestKind::Reload, 0.05),
        (RequestKind::Basic, 0.80),
    ];
    let selector = Selector::weighted(kinds);
    let mut rng = Seed(52).stream("kinds", 0);
    let drawn: Vec<_> = (0..100_000).filter_map(|_| selector.draw(&mut rng)).collect();
    let counts: Vec<usize> =
        kinds.iter().map(|(kind, _)| drawn.iter().filter(|d| **d == kind).count()).collect();
    assert_counts(&counts, &kinds.map(|(_, share)| share), "request kinds");
}

#[test]
fn popularity_has_its_slope() {
    // 400,000 draws from 10,000 objects. Regression of log count on log rank over ranks 5 to 200, the rarest of which
    // is drawn about 200 times; tolerance 0.03.
    let (n, draws) = (10_000u64, 400_000);
    let counts = |law: Popularity| {
        let mut rng = Seed(53).stream("popularity", 0);
        let mut counts = vec![0f64; n as usize + 1];
        (0..draws).for_each(|_| counts[(n + 1 - law.choose(n, &mut rng)) as usize] += 1.0);
        counts
    };
    let slope_of = |counts: &[f64]| {
        let points: Vec<_> = (5..=200).map(|rank| ((rank as f64).ln(), counts[rank].ln())).collect();
        slope(&points)
    };
    // The law is ln(1 + 1/r), a little flatter than 1/r at the low ranks.
    let law: Vec<f64> = (0..=200).map(|rank| (1.0 + 1.0 / rank as f64).ln()).collect();
    let (found, expected) = (slope_of(&counts(Popularity::Zipf { skew: 1.0 })), slope_of(&law));
    assert!((expected + 1.0).abs() < 0.03 && (found - expected).abs() < 0.03, "{found} for {expected}");
    let flat = slope_of(&counts(Popularity::Unif));
    assert!(flat.abs() < 0.03, "{flat}");
}

#[test]
fn skewed_popularity_follows_its_law() {
    // 50,000 draws: the rank is at most r with probability (ln(r + 1) / ln(n + 1))^(1/skew).
    for skew in [0.5, 1.0, 2.0] {
        let n = 5_000u64;
        let mut rng = Seed(54).stream("skew", 0);
        let law = Popularity::Zipf { skew };
        let mut ranks: Vec<f64> = (0..50_000).map(|_| (n + 1 - law.choose(n, &mut rng)) as f64).collect();
        let cdf = |rank: f64| ((rank + 1.0).ln() / (n as f64 + 1.0).ln()).powf(1.0 / skew);
        assert_follows(&mut ranks, cdf, &format!("skew {skew}"));
    }
}

#[test]
fn recurrence_and_hot_set_of_a_world() {
    // 60,000 requests, 69 % of them repeats, to a working set frozen at 5,000 objects, 1 % of which get 10 %.
    let model = PopModel { hot_frac: 0.01, hot_prob: 0.10, ..PopModel::default() };
    let mut rng = Seed(55).stream("world", 0);
    let mut world = World::default();
    for _ in 0..5_000 {
        world.produce(0);
    }
    world.freeze();
    let (mut repeats, mut hot, mut ages) = (0, 0, Vec::new());
    for due in 0..60_000 {
        world.make_repeatable(due, &mut rng);
        if rng.event(0.69) && world.can_repeat() {
            let chosen = world.repeat(&model, &mut rng, |_| None);
            repeats += 1;
            let end = world.facts().hot_end;
            hot += usize::from((end.max(51) - 49..=end.max(50)).contains(&chosen.name));
            if !chosen.hot {
                ages.push((world.facts().size - chosen.name + 1) as f64);
            }
        } else {
            world.produce(due);
        }
    }
    assert_share(repeats, 60_000, 0.69, "recurrence");
    // Those outside the hot choice fall into the hot set as into any 1 % of the window, unless it is at the end.
    assert_share(hot, repeats, 0.10 + 0.90 * 0.01, "hot set");
    assert_follows(&mut ages, |age| age / 5_000.0, "age of repeated objects");
}
