//! Figures as people read them.

pub(crate) use polygraph_text::whole;

/// A number of connections or the like that was counted in memory.
pub(crate) fn count(number: usize) -> String {
    whole(number as u64)
}

/// A rate: whole from 10 on, with one digit after the point below.
pub(crate) fn rate(number: f64) -> String {
    if number >= 10.0 { whole(number.round() as u64) } else { format!("{number:.1}") }
}

/// A number of bytes in multiples of 1024.
pub(crate) fn bytes(number: u64) -> String {
    let number = number as f64;
    let units = [(1u64 << 40, "TB"), (1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "KB")];
    match units.iter().find(|(size, _)| number >= *size as f64) {
        Some((size, unit)) => {
            let value = number / *size as f64;
            if value >= 10.0 { format!("{value:.0} {unit}") } else { format!("{value:.1} {unit}") }
        }
        None => format!("{number} bytes"),
    }
}

/// A share from 0 to 1 in percent.
pub(crate) fn percent(share: f64) -> String {
    let value = share * 100.0;
    match value {
        v if v >= 10.0 => format!("{v:.0} %"),
        v if v >= 0.1 || v == 0.0 => format!("{v:.1} %"),
        v => format!("{v:.4} %"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_readable() {
        assert_eq!([470.53, 9.84, 0.0].map(rate), ["471", "9.8", "0.0"]);
        assert_eq!([12, 65_536, 3_500_000_000].map(bytes), ["12 bytes", "64 KB", "3.3 GB"]);
        assert_eq!([0.5, 0.012, 0.000_05, 0.0].map(percent), ["50 %", "1.2 %", "0.0050 %", "0.0 %"]);
    }
}
