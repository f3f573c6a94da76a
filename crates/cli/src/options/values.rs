//! Readers of option values. Times, sizes, shares and distributions follow the grammar of `polygraph_plan::values`.

use std::fmt::Display;
use std::net::{SocketAddr, ToSocketAddrs};
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use polygraph_addr::{Addr, AddrRange, expand};
use polygraph_engine::{Engine, EngineChoice};
use polygraph_multiplex::Http2Settings;
use polygraph_plan::values::{self, Unit};
use polygraph_runner::device_model;
use polygraph_runner::prediction::PredictionModel;
use polygraph_runner::preflight::DEFAULT_TIMEOUT;
use polygraph_runner::{AddressMode, Failure};
use polygraph_sim::device::Model;
use polygraph_stats::HttpVersion;
use polygraph_traffic::Distr;

/// A range with more local addresses than this is probably a typing error.
const MAX_ADDRESSES: u64 = 1 << 20;

/// A distribution of times or `none`.
pub fn think(text: &str) -> Result<Optional<Distr>, String> {
    values::optional_distr(text, Unit::Time).map(Optional)
}

/// A distribution of sizes.
pub fn sizes(text: &str) -> Result<Distr, String> {
    values::distr(text, Unit::Size)
}

/// A distribution of counts.
pub fn counts(text: &str) -> Result<Distr, String> {
    values::distr(text, Unit::Count)
}

/// A whole number in a range.
pub fn whole<T: FromStr + PartialOrd + Display>(
    range: RangeInclusive<T>,
) -> impl Fn(&str) -> Result<T, String> + Clone
where
    RangeInclusive<T>: Clone,
{
    move |text| {
        let number = text.parse().ok().filter(|number| range.contains(number));
        number.ok_or_else(|| format!("write a whole number from {} to {}", range.start(), range.end()))
    }
}

/// An engine that this host allows.
pub fn engine(text: &str) -> Result<Engine, String> {
    let choice: EngineChoice = text.parse()?;
    choice.resolve().map_err(|refusal| format!("this host does not allow it: {refusal}"))
}

/// A time that is not 0, up to a year.
pub fn duration(text: &str) -> Result<Duration, String> {
    const YEAR: f64 = 365.0 * 86_400.0;
    match values::time(text)? {
        seconds if seconds > 0.0 && seconds <= YEAR => Ok(Duration::from_secs_f64(seconds)),
        _ => Err(format!("`{text}` is not a time to wait: write for example 250ms, 30s or 5min")),
    }
}

/// A time or `none`.
pub fn optional_time(text: &str) -> Result<Optional<f64>, String> {
    values::optional_time(text).map(Optional)
}

/// A time, or `none` or `inf` for never.
pub fn patience(text: &str) -> Result<Optional<f64>, String> {
    if text.eq_ignore_ascii_case("inf") { Ok(Optional(None)) } else { optional_time(text) }
}

/// A rate or `none`.
pub fn optional_rate(text: &str) -> Result<Optional<f64>, String> {
    if values::is_none(text) {
        Ok(Optional(None))
    } else {
        values::rate(text).map(|rate| Optional(Some(rate)))
    }
}

/// A port range or `none`.
pub fn ports(text: &str) -> Result<Optional<(u16, u16)>, String> {
    if values::is_none(text) { Ok(Optional(None)) } else { values::ports(text).map(|p| Optional(Some(p))) }
}

/// A statistics interval: long enough to be worth a record.
pub fn cycle(text: &str) -> Result<f64, String> {
    match values::time(text)? {
        seconds if seconds >= 0.01 => Ok(seconds),
        _ => Err(format!("`{text}` is too short for a statistics interval: at least 10ms")),
    }
}

/// `none`, the only temporal locality model.
pub fn tmp_loc(text: &str) -> Result<(), String> {
    match values::is_none(text) {
        true => Ok(()),
        false => {
            Err(format!("there is no temporal locality model `{text}`: write none or leave out the option"))
        }
    }
}

/// `yes` or `no`.
pub fn yes_no(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "y" | "yes" | "on" => Ok(true),
        "0" | "n" | "no" | "off" => Ok(false),
        _ => Err(format!("`{text}` is neither yes nor no: write yes or no")),
    }
}

/// How addresses that a host does not have are added.
pub fn address_mode(text: &str) -> Result<AddressMode, String> {
    match text {
        "auto" => Ok(AddressMode::Auto),
        "alias" => Ok(AddressMode::Alias),
        "anyip" => Ok(AddressMode::Anyip),
        "none" => Ok(AddressMode::None),
        _ => Err(format!("`{text}` is none of auto, alias, anyip and none")),
    }
}

/// A positive factor: a number, or two with a slash between them.
pub fn scale(text: &str) -> Result<f64, String> {
    let number = |text: &str| text.trim().parse::<f64>().ok();
    let factor = match text.split_once('/') {
        Some((above, below)) => number(above).zip(number(below)).map(|(above, below)| above / below),
        None => number(text),
    };
    let good = factor.filter(|factor| factor.is_finite() && *factor > 0.0);
    good.ok_or_else(|| format!("`{text}` is not a factor: write 0.02 or 1/60"))
}

/// A version of HTTP.
pub fn http_version(text: &str) -> Result<HttpVersion, String> {
    HttpVersion::from_word(text).ok_or_else(|| format!("`{text}` is not a version: write 1.0, 1.1, 2 or 3"))
}

/// A flow-control window of HTTP/2 (RFC 9113, section 6.9).
pub fn h2_window(text: &str) -> Result<u32, String> {
    let (least, most) = (Http2Settings::MIN_WINDOW, Http2Settings::MAX_WINDOW);
    let size = values::size(text).ok().and_then(|size| u32::try_from(size).ok());
    let size = size.filter(|size| (least..=most).contains(size));
    size.ok_or_else(|| {
        format!("`{text}` is not a window: write a size from {least} to {most} bytes, for example 1MB")
    })
}

/// `host:port`, or `http://host:port/` as browsers and environment variables write proxies.
pub fn host_port(text: &str) -> Result<String, String> {
    let plain = match text.split_once("://") {
        None => text,
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => rest.strip_suffix('/').unwrap_or(rest),
        Some((scheme, _)) => {
            return Err(format!(
                "`{text}` has the scheme {scheme}, but connections are plain HTTP: write host:port, for example 127.0.0.1:3128"
            ));
        }
    };
    if plain.parse::<u16>().is_ok() {
        return Err(format!("`{text}` has no host: write host:port, for example 127.0.0.1:{plain}"));
    }
    let Some((host, port)) = plain.rsplit_once(':') else {
        return Err(format!("`{text}` has no port: write host:port, for example {plain}:3128"));
    };
    if host.is_empty() || !port.parse::<u16>().is_ok_and(|port| port > 0) {
        return Err(format!("`{text}` is not an address: write host:port, for example 127.0.0.1:3128"));
    }
    Ok(plain.to_owned())
}

/// A list of IP addresses in the range syntax, for example `127.1.0-39.1-250`.
pub fn addresses(text: &str) -> Result<AddressList, String> {
    let all = local_addresses(text)?.0;
    Ok(AddressList(all.iter().filter_map(|address| address.host.ip()).collect()))
}

/// The same with interfaces and prefix lengths, for example `lo::10.60.0-3.1-250/22`.
pub fn local_addresses(text: &str) -> Result<LocalAddressList, String> {
    let ranges = AddrRange::parse_list(text).map_err(|e| e.to_string())?;
    let all = expand(&ranges, MAX_ADDRESSES).map_err(|e| e.to_string())?;
    match all.iter().find(|address| address.host.ip().is_none()) {
        Some(address) => Err(format!("`{address}` is a name: write IP addresses")),
        None => Ok(LocalAddressList(all)),
    }
}

/// A time of day: RFC 3339, or `@` and seconds since 1970.
pub fn time_of_day(text: &str) -> Result<TimeOfDay, String> {
    let wrong =
        || format!("`{text}` is not a time of day: write for example 2026-11-23T12:00:00Z or @1795435200.5");
    let unix_ns = match text.strip_prefix('@') {
        Some(seconds) => {
            let number: f64 = seconds.parse().map_err(|_| wrong())?;
            let digits = seconds.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
            // A number has 53 bits: that is a quarter of a microsecond for times of day of this century.
            Some((number * 1e9) as u64).filter(|_| digits && number < 1e10)
        }
        None => {
            text.parse::<jiff::Timestamp>().ok().and_then(|time| u64::try_from(time.as_nanosecond()).ok())
        }
    };
    unix_ns.map(|unix_ns| TimeOfDay { unix_ns }).ok_or_else(wrong)
}

/// `NAME=VALUE`, both not empty.
pub fn setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() && !value.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err("write NAME=VALUE, for example TheBench.peak_req_rate=100/sec".to_owned()),
    }
}

/// A key and a value: `KEY=VALUE`.
pub fn key_value(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("write KEY=VALUE, for example mem=256MB")?;
    Ok((key.to_owned(), value.to_owned()))
}

/// How long the check before a test waits for an answer, or `no` for no check.
pub fn preflight_timeout(text: &str) -> Result<Optional<Duration>, String> {
    match text.to_ascii_lowercase().as_str() {
        "no" | "none" | "off" | "0" => Ok(Optional(None)),
        "yes" | "on" => Ok(Optional(Some(DEFAULT_TIMEOUT))),
        _ => match values::time(text)? {
            seconds if (0.01..=600.0).contains(&seconds) => {
                Ok(Optional(Some(Duration::from_secs_f64(seconds))))
            }
            _ => Err(format!("`{text}` is not a time to wait for an answer: write 10ms to 10min, or no")),
        },
    }
}

/// `auto`, `no`, or the model of a device.
pub fn prediction_model(text: &str) -> Result<PredictionModel, String> {
    match text {
        "auto" => Ok(PredictionModel::Auto),
        "no" => Ok(PredictionModel::Off),
        _ => device_model::parse(text).map(PredictionModel::Of),
    }
}

/// The model of a device, or `none`.
pub fn device_model(text: &str) -> Result<Optional<Model>, String> {
    device_model::parse(text).map(Optional)
}

/// A value that may be `none`. It is not a plain `Option` because clap reads that as "not given".
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Optional<T>(pub Option<T>);

/// Local addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressList(pub Vec<std::net::IpAddr>);

/// Local addresses, with the interfaces and networks that they name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalAddressList(pub Vec<Addr>);

/// A time of day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeOfDay {
    /// Nanoseconds since 1970.
    pub unix_ns: u64,
}

/// The socket address behind `host:port`.
pub fn resolve(text: &str) -> Result<SocketAddr, Failure> {
    let mut found =
        text.to_socket_addrs().map_err(|e| Failure::setup(anyhow::anyhow!("cannot resolve {text}: {e}")))?;
    found.next().ok_or_else(|| Failure::setup(anyhow::anyhow!("{text} has no address")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn preflight_timeouts() {
        let seconds =
            |text: &str| preflight_timeout(text).map(|found| found.0.map(|time| time.as_secs_f64()));
        assert_eq!(seconds("5s"), Ok(Some(5.0)));
        assert_eq!(seconds("250ms"), Ok(Some(0.25)));
        assert_eq!((seconds("no"), seconds("None"), seconds("yes")), (Ok(None), Ok(None), Ok(Some(5.0))));
        for wrong in ["", "maybe", "0s", "1hr", "5"] {
            assert!(preflight_timeout(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn addresses_with_and_without_a_scheme() {
        for text in ["h:3128", "http://h:3128", "HTTP://h:3128/"] {
            assert_eq!(host_port(text).as_deref(), Ok("h:3128"), "{text}");
        }
        assert_eq!(host_port("[::1]:80").as_deref(), Ok("[::1]:80"));
        for (text, why) in [
            ("https://h:443", "plain HTTP"),
            ("socks5://h:1080", "socks5"),
            ("h", "has no port"),
            ("http://h/", "has no port"),
            ("h:0", "not an address"),
            (":80", "not an address"),
            ("h:99999", "not an address"),
        ] {
            let error = host_port(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn factors() {
        assert_eq!(scale("0.02"), Ok(0.02));
        assert_eq!(scale("1/60"), Ok(1.0 / 60.0));
        assert_eq!(scale(" 2 / 4 "), Ok(0.5));
        for text in ["", "0", "-1", "1/0", "1/", "/2", "1/2/3", "fast", "inf", "nan"] {
            assert!(scale(text).is_err(), "{text}");
        }
    }
}
