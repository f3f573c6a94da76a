//! Labels of axes that the drawing library cannot write: nines and decades.

/// The share (0 to 1) that so many nines stand for.
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

/// The label of so many nines, written by the library as a number; nothing between whole ones.
pub fn nines(label: &str) -> String {
    match label.parse() {
        Ok(0) => "0 %".to_owned(),
        Ok(1) => "90 %".to_owned(),
        Ok(2) => "99 %".to_owned(),
        Ok(n @ 3..=12) => format!("99.{} %", "9".repeat(n - 2)),
        _ => String::new(),
    }
}

/// The label of a power of ten, written by the library as its exponent; nothing between whole ones.
pub fn exponent(label: &str) -> String {
    label.parse().map(decade).unwrap_or_default()
}

/// Powers of ten at the ends of a logarithmic axis for positive values from `low` to `high`.
pub fn decades(low: f64, high: f64) -> (i32, i32) {
    let low = low.log10().floor() as i32;
    (low, (high.log10().ceil() as i32).max(low + 1))
}
