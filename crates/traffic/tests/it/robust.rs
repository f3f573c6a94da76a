//! Nothing panics, whatever the workload says and whatever a URL names.

use std::io::IoSlice;
use std::sync::Arc;

use polygraph_traffic::content::{BodySource, Embeds, Injected, Injection};
use polygraph_traffic::files::{File, Files};
use polygraph_traffic::life::{Expiry, ExpiryBase, LifeCycle};
use polygraph_traffic::table::Bin;
use polygraph_traffic::{
    Catalog, Content, ContentKind, Distr, DistributionTable, Oid, Seed, Selector, UniqId,
};
use proptest::option;
use proptest::prelude::*;

pub fn any_world() -> impl Strategy<Value = UniqId> {
    (any::<u32>(), any::<u32>(), any::<u32>()).prop_map(|(time, mix, counter)| UniqId { time, mix, counter })
}

pub fn small_sizes() -> BoxedStrategy<Distr> {
    (0f64..20_000.0, 0f64..20_000.0).prop_map(|(min, max)| Distr::Unif { min, max }).boxed()
}

/// Any distribution, with sense or without.
pub fn any_distr() -> BoxedStrategy<Distr> {
    let number = || prop_oneof![any::<f64>(), -10f64..100_000.0];
    let bin = (number(), option::of(number()), number());
    prop_oneof![
        number().prop_map(Distr::Const),
        (number(), number()).prop_map(|(min, max)| Distr::Unif { min, max }),
        number().prop_map(|mean| Distr::Exp { mean }),
        (number(), number()).prop_map(|(mean, sd)| Distr::Norm { mean, sd }),
        (number(), number()).prop_map(|(mean, sd)| Distr::logn(mean, sd)),
        any::<u64>().prop_map(|n| Distr::Zipf { n }),
        any::<u64>().prop_map(|period| Distr::Seq { period }),
        number().prop_map(|first| Distr::Ascending { first }),
        proptest::collection::vec(bin, 1..5).prop_map(|bins| {
            let bins = bins.into_iter().map(|(min, max, weight)| Bin { min, max, weight });
            DistributionTable::new(bins).map_or(Distr::Const(1.0), Distr::Table)
        }),
    ]
    .boxed()
}

fn any_files() -> impl Strategy<Value = Arc<Files>> {
    let text =
        prop_oneof!["[a-z<>/\"= ]{0,200}", Just(String::new()), Just("<p class=\"a>b\">x</p>".repeat(9))];
    proptest::collection::vec(text, 0..4).prop_map(|texts| {
        let file =
            |(at, text): (usize, String)| File { name: format!("dir/f{at}"), bytes: text.into_bytes() };
        Arc::new(Files(texts.into_iter().enumerate().map(file).collect()))
    })
}

fn any_life() -> impl Strategy<Value = LifeCycle> {
    let rule =
        (prop_oneof![Just(ExpiryBase::Lmt), Just(ExpiryBase::Now), Just(ExpiryBase::Nmt)], any_distr())
            .prop_map(|(base, gap)| Expiry { base, gap });
    let variance = prop_oneof![any::<f64>(), 0f64..1.0];
    (any_distr(), variance, 0f64..1.0, proptest::collection::vec(rule, 0..3)).prop_map(
        |(length, variance, with_lmt, rules)| LifeCycle {
            length,
            variance,
            with_lmt,
            expires: Selector::even(rules),
        },
    )
}

fn any_content(sizes: BoxedStrategy<Distr>) -> impl Strategy<Value = Content> {
    let source = prop_oneof![
        2 => Just(BodySource::Text),
        1 => Just(BodySource::Data),
        1 => any_files().prop_map(BodySource::Database),
        1 => any_files().prop_map(BodySource::Root),
    ];
    let what = prop_oneof![
        Just(Injected::RequestUri),
        (any_files(), any_distr()).prop_map(|(texts, gap)| Injected::Texts { texts, gap }),
    ];
    let injection = (0f64..2.0, what).prop_map(|(prob, what)| Injection { prob, what });
    // Kinds of the catalog, of itself, and of none.
    let embeds = (proptest::collection::vec((0u8..9).prop_map(ContentKind), 0..3), any_distr())
        .prop_map(|(kinds, count)| Embeds { kinds: Selector::even(kinds), count });
    let share = || prop_oneof![any::<f64>(), 0f64..1.0];
    (
        option::of(sizes),
        source,
        option::of(share()),
        option::of(injection),
        option::of(embeds),
        option::of(any_life()),
        (share(), share()),
        proptest::collection::vec("[a-z/.]{0,5}", 0..3),
    )
        .prop_map(|(size, source, unique, injection, embeds, life, (cachable, checksum), words)| {
            Content {
                size,
                source,
                unique,
                injection,
                embeds,
                life,
                checksum,
                prefixes: Selector::even(words.clone()),
                extensions: Selector::even(words),
                ..Content::plain("any", Distr::Const(1.0), cachable)
            }
        })
}

pub fn any_catalog(sizes: BoxedStrategy<Distr>) -> impl Strategy<Value = Catalog> {
    (any::<u64>(), proptest::collection::vec(any_content(sizes), 1..4))
        .prop_map(|(seed, contents)| Catalog { seed: Seed(seed), contents })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn catalogs_answer_any_object(
        catalog in any_catalog(any_distr()),
        world in any_world(),
        kind in any::<u8>(),
        name in any::<u64>(),
        now in any::<i64>(),
    ) {
        for kind in [kind, 0, 3, 4, 5] {
            let oid = Oid { world, kind: ContentKind(kind), name };
            let size = catalog.size(&oid);
            prop_assert!(size as f64 <= polygraph_traffic::content::MAX_BODY);
            catalog.cachable(&oid);
            catalog.has_checksum(&oid);
            let mut path = Vec::new();
            catalog.write_path(&oid, &mut path);
            prop_assert!(path.starts_with(b"/"));
            prop_assert_eq!(catalog.embedded(&oid).count() as u64 <= catalog.embedded_count(&oid), true);
            let body = catalog.body(&oid, &path);
            prop_assert_eq!(body.len(), size);
            let mut slices = [IoSlice::new(&[]); 8];
            prop_assert_eq!(body.slices(&mut slices) > 0, size > 0);
            if let Some(times) = catalog.times(&oid, now) {
                let now = now.clamp(-1_000_000_000_000, 1_000_000_000_000);
                prop_assert!(times.lmt <= now && now < times.nmt, "{:?} at {}", times, now);
            }
        }
    }

    #[test]
    fn draws_are_numbers(distr in any_distr(), seed in any::<u64>(), index in any::<u64>()) {
        let mut rng = Seed(seed).stream("robust", 0);
        for value in [distr.sample(&mut rng), distr.sample_at(index, &mut rng), distr.mean(), distr.high()] {
            prop_assert!(value >= 0.0, "{}: {}", distr, value);
        }
    }
}
