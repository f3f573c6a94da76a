//! Lists of addresses written as short lists of ranges.

use crate::{Addr, AddrRange, HostRange, NumberRange, TextPart, TextRange};

/// The shortest list of ranges that has these members in this order.
///
/// Neighbours are merged if they differ in one number only and the numbers are consecutive, so the order never
/// changes. Numbers inside names are merged too: `w1.x, w2.x` becomes `w[1-2].x`.
pub fn compact(addrs: impl IntoIterator<Item = Addr>) -> Vec<AddrRange> {
    let numbered = addrs.into_iter().map(|addr| {
        let name = match &addr.host {
            crate::Host::Name(name) => Some(TextRange::numbered(name)),
            _ => None,
        };
        let mut range = AddrRange::from(addr);
        if let Some(name) = name {
            range.host = HostRange::Name(name);
        }
        range
    });
    let mut ranges = merge_all(numbered);
    for range in &mut ranges {
        if let HostRange::Name(name) = &mut range.host {
            *name = name.folded();
        }
    }
    ranges
}

/// Merges neighbouring ranges where that preserves members and order.
///
/// Number positions are merged one after the other from the right, each over the whole list. Merging 10.0.3.1-9
/// with the first nine of 10.0.4.1-250 at once would split the latter.
pub fn merge_all(ranges: impl IntoIterator<Item = AddrRange>) -> Vec<AddrRange> {
    let mut ranges: Vec<AddrRange> = ranges.into_iter().collect();
    let most_places = ranges.iter().map(AddrRange::places).max().unwrap_or(0);
    for from_right in 1..=most_places {
        ranges.dedup_by(|next, last| absorb(last, next, from_right).is_some());
    }
    ranges
}

/// Turns `a` into the range for `a` followed by `b`, if they differ in one number position only and its numbers
/// are consecutive.
///
/// All positions left of it must have one number each: they change more slowly, so otherwise `b` would not
/// follow all of `a`.
fn absorb(a: &mut AddrRange, b: &AddrRange, from_right: usize) -> Option<()> {
    let place = a.places().checked_sub(from_right)?;
    let (left, right) = (a.place(place)?, b.place(place)?);
    let mergeable = left.hi.checked_add(1) == Some(right.lo)
        && a.subnet == b.subnet
        && a.interface == b.interface
        && same_shape(a, b)
        && (0..place).all(|i| a.place(i) == b.place(i) && a.place(i).is_none_or(|span| span.len() == 1))
        && (place + 1..a.places()).all(|i| a.place(i) == b.place(i));
    if mergeable {
        a.place_mut(place)?.hi = right.hi;
        return Some(());
    }
    None
}

fn same_shape(a: &AddrRange, b: &AddrRange) -> bool {
    let same_host = match (&a.host, &b.host) {
        (HostRange::V4(_), HostRange::V4(_)) | (HostRange::V6(_), HostRange::V6(_)) => true,
        (HostRange::Name(a), HostRange::Name(b)) => {
            a.parts.len() == b.parts.len()
                && a.parts.iter().zip(&b.parts).all(|parts| match parts {
                    (TextPart::Lit(a), TextPart::Lit(b)) => a == b,
                    (TextPart::Range(_), TextPart::Range(_)) => true,
                    _ => false,
                })
        }
        _ => false,
    };
    same_host && a.port.is_some() == b.port.is_some()
}

/// The number positions of a range, from left to right. Literal parts of a name and a missing port are
/// positions without a number.
impl AddrRange {
    fn places(&self) -> usize {
        1 + match &self.host {
            HostRange::V4(octets) => octets.len(),
            HostRange::V6(groups) => groups.len(),
            HostRange::Name(name) => name.parts.len(),
        }
    }

    fn place(&self, i: usize) -> Option<NumberRange> {
        let host = match &self.host {
            HostRange::V4(octets) => octets.get(i).copied(),
            HostRange::V6(groups) => groups.get(i).copied(),
            HostRange::Name(name) => match name.parts.get(i) {
                Some(TextPart::Range(span)) => Some(*span),
                _ => None,
            },
        };
        if i + 1 == self.places() { self.port } else { host }
    }

    fn place_mut(&mut self, i: usize) -> Option<&mut NumberRange> {
        if i + 1 == self.places() {
            return self.port.as_mut();
        }
        match &mut self.host {
            HostRange::V4(octets) => octets.get_mut(i),
            HostRange::V6(groups) => groups.get_mut(i),
            HostRange::Name(name) => match name.parts.get_mut(i) {
                Some(TextPart::Range(span)) => Some(span),
                _ => None,
            },
        }
    }
}
