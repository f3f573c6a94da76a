//! Labels of axes that charts-rs does not write: nines, decades, small steps.

use crate::text::number;

/// The share (0 to 1) with so many nines: 2 gives 0.99.
pub fn share_of_nines(nines: f64) -> f64 {
    1.0 - 10f64.powf(-nines)
}

/// The label of a power of ten.
pub fn decade(exponent: i32) -> String {
    match exponent {
        ..0 => format!("{:.1$}", 10f64.powi(exponent), exponent.unsigned_abs() as usize),
        0..3 => format!("{}", 10f64.powi(exponent)),
        3..6 => format!("{}k", 10f64.powi(exponent - 3)),
        6..9 => format!("{}M", 10f64.powi(exponent - 6)),
        9.. => format!("{}G", 10f64.powi(exponent - 9)),
    }
}

/// The label of a number of nines that charts-rs wrote; empty unless it is whole.
pub fn nines(label: &str) -> String {
    match label.parse() {
        Ok(0) => "0 %".to_owned(),
        Ok(1) => "90 %".to_owned(),
        Ok(2) => "99 %".to_owned(),
        Ok(n @ 3..=12) => format!("99.{} %", "9".repeat(n - 2)),
        _ => String::new(),
    }
}

/// The label of a power of ten whose exponent charts-rs wrote; empty unless it is whole.
pub fn exponent(label: &str) -> String {
    label.parse().map(decade).unwrap_or_default()
}

/// Exponents of the powers of ten at the ends of a logarithmic axis for positive values from `low` to `high`.
pub fn decades(low: f64, high: f64) -> (i32, i32) {
    let low = low.log10().floor() as i32;
    (low, (high.log10().ceil() as i32).max(low + 1))
}

/// Labels of `count` equal steps from `top` down to 0, with enough digits to differ.
pub fn steps(top: f64, count: usize) -> Vec<String> {
    let step = top / count as f64;
    // Steps have two digits at most.
    let decimals = (1 - step.log10().floor() as i32).clamp(0, 9) as usize;
    let label = |index: usize| {
        let plain = number(Some(step * index as f64), decimals);
        if plain.contains('.') { plain.trim_end_matches('0').trim_end_matches('.').to_owned() } else { plain }
    };
    (0..=count).rev().map(label).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_steps_are_exact_and_differ() {
        assert_eq!(steps(0.4, 5), ["0.4", "0.32", "0.24", "0.16", "0.08", "0"]);
        assert_eq!(steps(1250.0, 5), ["1,250", "1,000", "750", "500", "250", "0"]);
        assert_eq!(steps(7.5, 5), ["7.5", "6", "4.5", "3", "1.5", "0"]);
        assert_eq!(steps(0.0015, 5).first().map(String::as_str), Some("0.0015"));
        assert_eq!(steps(25_000_000.0, 5)[1], "20,000,000");
    }
}
