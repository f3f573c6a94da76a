//! The settings of a test as logs describe them, defaults included.

use std::fmt::Display;
use std::net::SocketAddr;

use polygraph_link::{Nanos, SECOND};
use polygraph_origin::ServerProfile;
use polygraph_plan::Test;
use polygraph_plan::offered::offered_dhr;
use polygraph_report::summary::CHECKS_CERTIFICATES;
use polygraph_report::text;
use polygraph_robot::{Load, Profile, Rules};
use polygraph_stats::HttpVersion;
use polygraph_traffic::{Content, Distr, PopModel, Popularity, Selector};

use crate::open_limit::OpenLimit;

/// Names and values of settings.
pub type DescribedSettings = Vec<(String, String)>;

/// Longer lists are shown by their length, first and last item.
const FEW: usize = 8;

/// The settings of the client side.
pub fn of_client(test: &Test, open_limit: OpenLimit, ports: Option<(u16, u16)>) -> DescribedSettings {
    let field = &test.field;
    let authorities: Vec<&str> = field.servers.iter().map(|server| server.authority.as_str()).collect();
    let mut settings = vec![
        setting("origins", few(&authorities)),
        setting("robots", test.robot_count()),
        setting(
            "request rate",
            test.full_rate().map_or("best effort".into(), |rate| format!("{}/sec", text::trimmed(rate, 3))),
        ),
        setting("rules of choice", rules(test)),
        setting("repeats after", format!("{} s", text::trimmed(field.settle, 3))),
        setting("launch window", format!("{} s", text::trimmed(test.launch_window, 3))),
        setting("limit of open connections", open_limit.text()),
        setting("shares knowledge of objects", if field.share_worlds { "yes" } else { "no" }),
    ];
    settings.extend(offered_dhr(test).map(|dhr| setting("offered document hit ratio", percent(dhr))));
    settings.extend(field.marks_cachable.map(|share| setting("cachable", percent(share))));
    settings.extend(ports.map(|(low, high)| setting("local ports", format!("{low}:{high}"))));
    for profile in &test.robots {
        let of_kind = of_profile(profile);
        // With one kind of robots, its settings need no prefix.
        let prefix = if test.robots.len() > 1 { format!("{}: ", profile.name) } else { String::new() };
        settings.extend(of_kind.into_iter().map(|(name, value)| (format!("{prefix}{name}"), value)));
    }
    settings.extend(of_contents(test));
    settings
}

/// The settings of the server side, whose servers listen at `addresses`.
pub fn of_servers(test: &Test, addresses: &[String]) -> DescribedSettings {
    let mut settings = vec![setting("addresses", few(addresses)), setting("rules of choice", rules(test))];
    for servers in &test.servers {
        let farm = &servers.farm;
        let prefix = if test.servers.len() > 1 { format!("{}: ", farm.name) } else { String::new() };
        let mut more = |name: &str, value: String| settings.push((format!("{prefix}{name}"), value));
        more("servers", servers.sites.len().to_string());
        more("think time", or_none(farm.think.as_ref(), "s"));
        more("requests per connection", farm.requests_per_connection.to_string());
        more("idle connections close after", time(farm.idle_timeout));
        more("HTTP versions", accepted_versions(farm));
        if farm.abort_prob > 0.0 {
            more("aborted replies", percent(farm.abort_prob));
        }
        if let Some(redirects) = &farm.redirects {
            more("redirections", percent(redirects.share));
        }
        if let Some(cookies) = &farm.cookies {
            more("replies with cookies", percent(cookies.prob));
        }
    }
    settings.extend(of_contents(test));
    settings
}

/// The rules by which robots choose objects (docs/compat.md).
fn rules(test: &Test) -> &'static str {
    match test.field.rules {
        Rules::Device => "own",
        Rules::V4_9 => "4.9 (--compat 4.9)",
    }
}

fn of_profile(profile: &Profile) -> DescribedSettings {
    let mut settings = vec![
        setting("SOCKS proxy", profile.socks.as_ref().map_or("none".into(), |socks| few(&socks.proxies))),
        setting("proxy", if profile.proxies.is_empty() { "none".into() } else { few(&profile.proxies) }),
        setting("number", profile.count),
        setting("launches", load(&profile.load)),
        setting("recurrence", percent(profile.behavior.recurrence)),
        setting("popularity", popularity(&profile.behavior.popularity)),
        setting("requests per connection", &profile.requests_per_connection),
        setting("idle connections close after", time(profile.idle_timeout)),
        setting(
            "open connections of a robot",
            profile.open_limit.map_or("any number".into(), |n| n.to_string()),
        ),
        setting("transaction lifetime", or_none(profile.lifetime.as_ref(), "s")),
        setting("HTTP version", versions(&profile.http_version)),
        setting("local addresses", addresses(&profile.addresses)),
    ];
    let mut more = |wanted: bool, name: &str, value: String| {
        if wanted {
            settings.push(setting(name, value));
        }
    };
    let choice = |words: Vec<(&str, f64)>| {
        words.iter().map(|(word, share)| format!("{word} {}", percent(*share))).collect::<Vec<_>>().join(", ")
    };
    let (kinds, methods) = (&profile.behavior.kinds, &profile.behavior.methods);
    more(!kinds.is_empty(), "request types", choice(shares(kinds, |kind| kind.word())));
    more(!methods.is_empty(), "methods", choice(shares(methods, |method| method.word())));
    more(profile.embed_recur > 0.0, "embedded objects requested", percent(profile.embed_recur));
    more(profile.abort_prob > 0.0, "aborted requests", percent(profile.abort_prob));
    more(profile.foreign > 0.0, "foreign URLs", percent(profile.foreign));
    more(profile.unique_urls, "unique URLs", "yes".into());
    more(profile.follow_alt_svc, "Alt-Svc followed", "yes".into());
    more(!profile.credentials.is_empty(), "users", profile.credentials.len().to_string());
    let checks = profile.tls.items().iter().all(|tls| tls.verify);
    more(!profile.tls.is_empty(), CHECKS_CERTIFICATES, if checks { "yes" } else { "no" }.into());
    if let Some(dns) = &profile.dns {
        more(true, "name servers", few(&dns.servers));
    }
    settings
}

/// The content types. A test of generation 1.x has one, which is known only to a side that knows reply sizes.
fn of_contents(test: &Test) -> DescribedSettings {
    let contents = &test.field.catalog.contents;
    let size = |content: &Content| or_none(content.size.as_ref(), "bytes");
    if test.classic {
        let knows_sizes = test.field.verify == polygraph_robot::Verify::Full;
        return contents
            .first()
            .filter(|_| knows_sizes)
            .map(|content| setting("reply size", size(content)))
            .into_iter()
            .collect();
    }
    let describe = |(index, content): (usize, &Content)| {
        let number = index + 3;
        let mut text = format!("size {}, {} cachable", size(content), percent(content.cachable));
        if let Some(embeds) = &content.embeds {
            text.push_str(&format!(", {} embedded objects", embeds.count));
        }
        (format!("content {number} {}", content.name), text)
    };
    contents.iter().enumerate().map(describe).collect()
}

/// Names of the content types by number; the first three numbers are reserved.
pub fn content_names(test: &Test) -> Vec<String> {
    if test.classic {
        return Vec::new();
    }
    let reserved = ["foreign", "bodiless", "unknown"].map(str::to_owned);
    reserved
        .into_iter()
        .chain(test.field.catalog.contents.iter().map(|content| content.name.clone()))
        .collect()
}

fn setting(name: &str, value: impl Display) -> (String, String) {
    (name.to_owned(), value.to_string())
}

fn percent(share: f64) -> String {
    text::percent(share, 2)
}

/// Values in seconds or bytes, as `unit` says.
fn or_none(distr: Option<&Distr>, unit: &str) -> String {
    match distr {
        None => "none".into(),
        Some(Distr::Const(value)) => format!("{value} {unit}"),
        Some(distr) => format!("{distr} {unit}"),
    }
}

fn time(nanos: Option<Nanos>) -> String {
    nanos.map_or("none".into(), |nanos| format!("{} s", nanos.as_f64() / SECOND.as_f64()))
}

/// A list, or its length and ends if it is long.
fn few(list: &[impl Display]) -> String {
    match list {
        [first, .., last] if list.len() > FEW => format!("{} from {first} to {last}", list.len()),
        _ => list.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
    }
}

fn addresses(addresses: &[std::net::IpAddr]) -> String {
    match addresses {
        [] => "chosen by the system".into(),
        [one] => one.to_string(),
        [first, .., last] => format!("{} from {first} to {last}", addresses.len()),
    }
}

fn load(load: &Load) -> String {
    match load {
        Load::Open { rate } => format!("{rate}/sec each, Poisson"),
        Load::InterArrival(gaps) => format!("gaps of {gaps} s"),
        Load::Closed { think: None } => "after each reply".into(),
        Load::Closed { think: Some(think) } => format!("{think} s after each reply"),
        Load::Passive => "none".into(),
    }
}

fn popularity(model: &PopModel) -> String {
    let mut text = match model.law {
        Popularity::Unif => "uniform".to_owned(),
        Popularity::Zipf { skew } => format!("Zipf with skew {skew}"),
    };
    if model.hot_prob > 0.0 {
        text.push_str(&format!(", {} to a hot set of {}", percent(model.hot_prob), percent(model.hot_frac)));
    }
    if model.bhr_discrimination > 0.0 {
        text.push_str(&format!(", {} prefer small objects", percent(model.bhr_discrimination)));
    }
    text
}

/// The versions of HTTP that servers accept.
fn accepted_versions(farm: &ServerProfile) -> String {
    let minors = shares(&farm.http_minors, |minor| if *minor == 0 { "1.0" } else { "1.1" });
    let http1 = if farm.accepts_http1 { with_shares(&minors) } else { String::new() };
    let multiplexed = [("3", &farm.http3), ("2", &farm.http2)];
    let multiplexed =
        multiplexed.into_iter().filter(|(_, settings)| settings.is_some()).map(|(word, _)| word);
    let all: Vec<&str> = multiplexed.chain([&*http1].into_iter().filter(|text| !text.is_empty())).collect();
    all.join(", ")
}

fn versions(versions: &Selector<HttpVersion>) -> String {
    with_shares(&shares(versions, |version| version.word()))
}

fn with_shares(each: &[(&'static str, f64)]) -> String {
    match each {
        [] => "1.1".into(),
        [(only, _)] => (*only).to_owned(),
        _ => each
            .iter()
            .map(|(word, share)| format!("{word} {}", percent(*share)))
            .collect::<Vec<_>>()
            .join(", "),
    }
}

fn shares<T>(selector: &Selector<T>, word: impl Fn(&T) -> &'static str) -> Vec<(&'static str, f64)> {
    let items = selector.items().iter().enumerate();
    items.map(|(index, item)| (word(item), selector.probability(index))).collect()
}

/// The message that says where servers listen.
pub fn listening(addresses: &[SocketAddr]) -> String {
    format!("listening at {}", few(addresses))
}
