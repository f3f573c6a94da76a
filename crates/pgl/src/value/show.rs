//! Values in PGL notation: rounded for people, or exact for comparisons.

use std::fmt::Write;

use crate::value::{Array, Distr, Domain, PopDistr, Record, Shape, Value};

/// A value as `print()` shows it: rounded, with a suitable unit. Strings have no quotes.
pub fn show(value: &Value) -> String {
    match value {
        Value::Str(text) => text.to_string(),
        value => Writer { exact: false, out: String::new() }.done(value),
    }
}

/// A value with all its digits: two values are equal if their exact texts are.
pub fn exact(value: &Value) -> String {
    Writer { exact: true, out: String::new() }.done(value)
}

struct Writer {
    exact: bool,
    out: String,
}

impl Writer {
    fn done(mut self, value: &Value) -> String {
        self.value(value);
        self.out
    }

    fn number(&mut self, value: f64) {
        let text = if self.exact { format!("{}", value + 0.0) } else { significant(value, 6) };
        self.out.push_str(&text);
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::Undef => self.out.push_str("undef()"),
            Value::Poison => self.out.push('?'),
            Value::Bool(value) => self.out.push_str(if *value { "true" } else { "false" }),
            Value::Int(value) => self.out.push_str(&value.to_string()),
            Value::Float(value) => self.number(*value),
            Value::Str(text) => self.quoted(text),
            Value::Time(us) => match self.exact {
                true => self.put(format_args!("{us}us")),
                false => self.out.push_str(&show_time(*us)),
            },
            Value::Size(bytes) => match self.exact {
                true => self.put(format_args!("{bytes}Byte")),
                false => self.out.push_str(&show_size(*bytes as f64)),
            },
            Value::Rate(rate) => {
                self.number(*rate);
                self.out.push_str("/sec");
            }
            Value::Bwidth(bytes) => match self.exact {
                true => self.put(format_args!("{bytes}Byte/sec")),
                false => self.put(format_args!("{}/sec", show_bits(*bytes * 8.0))),
            },
            Value::Addr(addr) => self.put(format_args!("'{addr}'")),
            Value::DynName(addr, prob) => {
                self.put(format_args!("dynamicName('{addr}', "));
                self.number(*prob);
                self.out.push(')');
            }
            Value::AddrRange(range) => self.put(format_args!("'{range}'")),
            Value::StrRange(range) => self.put(format_args!("\"{range}\"")),
            Value::UniqId(id) => self.put(format_args!("{:08x}.{:08x}", id >> 32, id & 0xffff_ffff)),
            Value::Re(matcher) => self.put(format_args!("{matcher}")),
            Value::PopDistr(PopDistr::Unif) => self.out.push_str("popUnif()"),
            Value::PopDistr(PopDistr::Zipf { skew }) => {
                self.out.push_str("popZipf(");
                self.number(*skew);
                self.out.push(')');
            }
            Value::Distr(distr) => self.distr(distr),
            Value::Qualifier(qualifier) => self.out.push_str(qualifier.word()),
            Value::Array(array) => self.array(array),
            Value::Record(record) => self.record(record),
            Value::Stats(_) => self.out.push_str("StatSample { ... }"),
            Value::Unknown(_) => self.out.push_str("undefined"),
            Value::Code(number) => match self.exact {
                true => self.put(format_args!("{{ script {number} }}")),
                false => self.out.push_str("{ ... }"),
            },
        }
    }

    fn put(&mut self, text: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = self.out.write_fmt(text);
    }

    fn quoted(&mut self, text: &str) {
        self.out.push('"');
        for c in text.chars() {
            if matches!(c, '"' | '\\' | '[') {
                self.out.push('\\');
            }
            self.out.push(c);
        }
        self.out.push('"');
    }

    fn array(&mut self, array: &Array) {
        // `x ** n` is shown as written; the item keeps its own brackets if it has any.
        let cloned = array.repeat() != 1;
        let bare = cloned && array.items().len() == 1 && array.items()[0].prob.is_none();
        if !bare {
            self.out.push('[');
        }
        for (index, item) in array.items().iter().enumerate() {
            if index > 0 {
                self.out.push_str(", ");
            }
            self.value(&item.value);
            if let Some(prob) = item.prob {
                self.out.push_str(": ");
                self.number(prob * 100.0);
                self.out.push('%');
            }
        }
        if !bare {
            self.out.push(']');
        }
        if cloned {
            self.put(format_args!(" ** {}", array.repeat()));
        }
    }

    fn record(&mut self, record: &Record) {
        self.put(format_args!("{} {{ ", record.rec.def().name));
        for (slot, field) in record.slots.iter().zip(&record.rec.def().fields) {
            let skip = match &slot.value {
                Value::Undef => true,
                Value::Record(nested) => !self.exact && nested.is_untouched(),
                _ => false,
            };
            if !skip {
                self.put(format_args!("{} = ", field.name));
                self.value(&slot.value);
                self.out.push_str("; ");
            }
        }
        self.out.push('}');
    }

    fn distr(&mut self, distr: &Distr) {
        if let Some(qualifier) = distr.qualifier {
            self.put(format_args!("{} + ", qualifier.word()));
        }
        let (name, params): (&str, &[f64]) = match &distr.shape {
            Shape::None => return self.out.push('0'),
            Shape::Const(value) => ("const", &[*value]),
            Shape::Unif { lo, hi } => ("unif", &[*lo, *hi]),
            Shape::Exp { mean } => ("exp", &[*mean]),
            Shape::Norm { mean, sd } => ("norm", &[*mean, *sd]),
            Shape::Logn { mean, sd } => ("logn", &[*mean, *sd]),
            Shape::Zipf { n } => ("zipf", &[*n]),
            Shape::Seq { first } => ("seq", &[*first]),
            Shape::Table(bins) => {
                self.put(format_args!("table {}_distr {{ ", distr.domain.name()));
                for bin in bins.iter() {
                    match bin.max {
                        Some(max) => self.put(format_args!("{}:{} {} ", bin.min, max, bin.weight)),
                        None => self.put(format_args!("{} {} ", bin.min, bin.weight)),
                    }
                }
                return self.out.push('}');
            }
        };
        self.put(format_args!("{name}("));
        for (index, param) in params.iter().enumerate() {
            if index > 0 {
                self.out.push_str(", ");
            }
            match (distr.domain, self.exact) {
                (Domain::Time, false) => self.out.push_str(&show_time((param * 1e6).round() as i64)),
                (Domain::Size, false) => self.out.push_str(&show_size(*param)),
                (Domain::Time, true) => self.put(format_args!("{param}sec")),
                (Domain::Size, true) => self.put(format_args!("{param}Byte")),
                (Domain::Float, true) => self.put(format_args!("{:?}", param + 0.0)),
                (Domain::Float, false) if param.fract() == 0.0 && param.abs() < 1e6 => {
                    // The sum turns a negative zero into a plain one.
                    self.put(format_args!("{:.1}", param + 0.0));
                }
                _ => self.number(*param),
            }
        }
        self.out.push(')');
    }
}

/// A number with this many significant digits and without trailing zeros, like C's `%g`.
pub fn significant(value: f64, digits: usize) -> String {
    if value == 0.0 || !value.is_finite() {
        return if value == 0.0 { "0".to_owned() } else { format!("{value}") };
    }
    let scientific = format!("{:.*e}", digits - 1, value);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trim = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    if (-5..digits as i32).contains(&exponent) {
        return trim(&format!("{value:.*}", (digits as i32 - 1 - exponent).max(0) as usize));
    }
    format!("{}e{exponent:+03}", trim(mantissa))
}

/// A time in the largest unit in which it is at least one.
pub fn show_time(us: i64) -> String {
    const UNITS: &[(&str, i64)] =
        &[("year", 31_536_000), ("day", 86_400), ("hour", 3600), ("min", 60), ("sec", 1)];
    if us == 0 {
        return "0sec".to_owned();
    }
    let seconds = us as f64 / 1e6;
    // A unit that divides the value evenly is the most readable.
    if let Some((name, unit)) = UNITS.iter().find(|(_, unit)| us % (unit * 1_000_000) == 0) {
        return format!("{}{name}", us / (unit * 1_000_000));
    }
    // Points in time count from 1970, so rounding would be days off.
    if us.abs() >= 31_536_000_000_000 {
        let (sign, us) = (if us < 0 { "-" } else { "" }, us.unsigned_abs());
        return format!("{sign}{}.{:06}", us / 1_000_000, us % 1_000_000).trim_end_matches('0').to_owned()
            + "sec";
    }
    let larger = UNITS.iter().find(|(_, unit)| seconds.abs() >= *unit as f64);
    let (name, unit) = larger.map_or(("msec", 1e-3), |(name, unit)| (*name, *unit as f64));
    format!("{}{name}", significant(seconds / unit, 6))
}

/// A size in the largest unit in which it is at least one.
pub fn show_size(bytes: f64) -> String {
    const UNITS: &[(&str, f64)] = &[("GB", 1073741824.0), ("MB", 1048576.0), ("KB", 1024.0)];
    match UNITS.iter().find(|(_, unit)| bytes.abs() >= *unit) {
        Some((name, unit)) => format!("{}{name}", significant(bytes / unit, 6)),
        None => format!("{}Byte", significant(bytes, 6)),
    }
}

fn show_bits(bits: f64) -> String {
    const UNITS: &[(&str, f64)] = &[("Gb", 1073741824.0), ("Mb", 1048576.0), ("Kb", 1024.0)];
    match UNITS.iter().find(|(_, unit)| bits.abs() >= *unit) {
        Some((name, unit)) => format!("{}{name}", significant(bits / unit, 6)),
        None => format!("{}bit", significant(bits, 6)),
    }
}
