//! The ranges of range requests.

use polygraph_pgl::types::{MultiRange, RequestRange, Selector as PglSelector, SingleRange, Size, Tree};
use polygraph_traffic::Selector;
use polygraph_traffic::ranges::{DrawnExtent, Extent, RangeRule};

use super::{Lowering, maybe};

/// A selector of range rules. The checks of the language have refused incomplete ones.
pub fn rules(choice: &PglSelector<RequestRange, Tree>, found: &mut Lowering<'_>) -> Selector<RangeRule> {
    let rule = |range: &RequestRange, found: &mut Lowering<'_>| match range {
        RequestRange::Single(range) => single(range),
        RequestRange::Multi(range) => several(range, found),
    };
    let rules: Vec<_> =
        choice.items.iter().filter_map(|(range, prob)| Some((rule(range, found)?, *prob))).collect();
    Selector::weighted(rules)
}

fn single(range: &SingleRange) -> Option<RangeRule> {
    let extent = |absolute: Option<Size>, relative: Option<f64>| {
        let bytes = absolute.map(|size| Extent::Absolute(u64::try_from(size.0).unwrap_or(0)));
        bytes.or(relative.map(Extent::Relative))
    };
    if let Some(length) = extent(range.suffix_length_absolute, range.suffix_length_relative) {
        return Some(RangeRule::Suffix(length));
    }
    let first = extent(range.first_byte_pos_absolute, range.first_byte_pos_relative)?;
    let last = extent(range.last_byte_pos_absolute, range.last_byte_pos_relative);
    Some(RangeRule::From { first, last })
}

fn several(range: &MultiRange, found: &mut Lowering<'_>) -> Option<RangeRule> {
    let length = maybe(&range.range_length_absolute, "range_length_absolute", found)
        .map(DrawnExtent::Absolute)
        .or_else(|| {
            maybe(&range.range_length_relative, "range_length_relative", found).map(DrawnExtent::Relative)
        })?;
    let first = maybe(&range.first_range_start_absolute, "first_range_start_absolute", found)
        .map(DrawnExtent::Absolute)
        .or_else(|| {
            maybe(&range.first_range_start_relative, "first_range_start_relative", found)
                .map(DrawnExtent::Relative)
        });
    Some(RangeRule::Many { count: maybe(&range.range_count, "range_count", found)?, length, first })
}
