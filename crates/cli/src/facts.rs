//! What logs say about a test: the settings in force, defaults included.

use std::fmt::Display;
use std::net::SocketAddr;

use polygraph_link::{Nanos, SECOND};
use polygraph_plan::Test;
use polygraph_plan::offered::offered_dhr;
use polygraph_robot::{Load, Profile, Rules};
use polygraph_traffic::{Content, Distr, PopModel, Popularity, Selector};

use crate::jobs::OpenLimit;

/// Names and values.
pub type Facts = Vec<(String, String)>;

/// Lists longer than this are cut.
const FEW: usize = 8;

/// What the client side is told.
pub fn of_client(test: &Test, open_limit: OpenLimit, ports: Option<(u16, u16)>) -> Facts {
    let field = &test.field;
    let authorities: Vec<&str> = field.servers.iter().map(|server| server.authority.as_str()).collect();
    let mut facts = vec![
        fact("origins", few(&authorities)),
        fact("robots", test.robot_count()),
        fact("request rate", test.full_rate().map_or("best effort".into(), |rate| format!("{rate}/sec"))),
        fact("rules of choice", rules(test)),
        fact("repeats after", format!("{} s", field.settle)),
        fact("launch window", format!("{} s", test.launch_window)),
        fact("open connections at most", open_limit.text()),
        fact("shares knowledge of objects", if field.share_worlds { "yes" } else { "no" }),
    ];
    facts.extend(offered_dhr(test).map(|dhr| fact("offered document hit ratio", percent(dhr))));
    facts.extend(field.marks_cachable.map(|share| fact("cachable", percent(share))));
    facts.extend(ports.map(|(low, high)| fact("local ports", format!("{low}:{high}"))));
    for profile in &test.robots {
        let facts_of_kind = of_profile(profile);
        // The facts of the only kind need no name.
        let prefix = if test.robots.len() > 1 { format!("{}: ", profile.name) } else { String::new() };
        facts.extend(facts_of_kind.into_iter().map(|(name, value)| (format!("{prefix}{name}"), value)));
    }
    facts.extend(of_contents(test));
    facts
}

/// What the server side is told; `addresses` are those where servers listen.
pub fn of_servers(test: &Test, addresses: &[String]) -> Facts {
    let mut facts = vec![fact("addresses", few(addresses)), fact("rules of choice", rules(test))];
    for servers in &test.servers {
        let farm = &servers.farm;
        let prefix = if test.servers.len() > 1 { format!("{}: ", farm.name) } else { String::new() };
        let mut more = |name: &str, value: String| facts.push((format!("{prefix}{name}"), value));
        more("servers", servers.sites.len().to_string());
        more("think time", or_none(farm.think.as_ref()));
        more("requests per connection", farm.requests_per_connection.to_string());
        more("idle connections close after", time(farm.idle_timeout));
        more("HTTP version", versions(&farm.http_minors));
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
    facts.extend(of_contents(test));
    facts
}

/// By which rules robots choose what to ask for.
fn rules(test: &Test) -> &'static str {
    match test.field.rules {
        Rules::Device => "own",
        Rules::V4_9 => "4.9 (--compat 4.9)",
    }
}

fn of_profile(profile: &Profile) -> Facts {
    let mut facts = vec![
        fact("proxy", if profile.proxies.is_empty() { "none".into() } else { few(&profile.proxies) }),
        fact("number", profile.count),
        fact("launches", load(&profile.load)),
        fact("recurrence", percent(profile.behavior.recurrence)),
        fact("popularity", popularity(&profile.behavior.popularity)),
        fact("requests per connection", &profile.requests_per_connection),
        fact("idle connections close after", time(profile.idle_timeout)),
        fact(
            "open connections of a robot",
            profile.open_limit.map_or("any number".into(), |n| n.to_string()),
        ),
        fact("transaction lifetime", or_none(profile.lifetime.as_ref())),
        fact("HTTP version", versions(&profile.http_minor)),
        fact("local addresses", addresses(&profile.addresses)),
    ];
    let mut more = |wanted: bool, name: &str, value: String| {
        if wanted {
            facts.push(fact(name, value));
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
    more(!profile.credentials.is_empty(), "users", profile.credentials.len().to_string());
    if let Some(dns) = &profile.dns {
        more(true, "name servers", few(&dns.servers));
    }
    facts
}

/// The content types; those of 1.x are one, and known only where sizes are.
fn of_contents(test: &Test) -> Facts {
    let contents = &test.field.catalog.contents;
    let size = |content: &Content| or_none(content.size.as_ref());
    if test.classic {
        let told = test.field.verify == polygraph_robot::Verify::Full;
        return contents
            .first()
            .filter(|_| told)
            .map(|content| fact("reply size", size(content)))
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

/// Names of the kinds of content by number.
pub fn kinds(test: &Test) -> Vec<String> {
    if test.classic {
        return Vec::new();
    }
    let reserved = ["foreign", "bodiless", "unknown"].map(str::to_owned);
    reserved
        .into_iter()
        .chain(test.field.catalog.contents.iter().map(|content| content.name.clone()))
        .collect()
}

fn fact(name: &str, value: impl Display) -> (String, String) {
    (name.to_owned(), value.to_string())
}

fn percent(share: f64) -> String {
    format!("{:.2} %", share * 100.0)
}

fn or_none(distr: Option<&Distr>) -> String {
    distr.map_or("none".into(), Distr::to_string)
}

fn time(nanos: Option<Nanos>) -> String {
    nanos.map_or("none".into(), |nanos| format!("{} s", nanos as f64 / SECOND as f64))
}

/// A list, or its ends if it is long.
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
        Load::Passive => "nothing by itself".into(),
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

fn versions(minors: &Selector<u8>) -> String {
    let each = shares(minors, |minor| if *minor == 0 { "1.0" } else { "1.1" });
    match each[..] {
        [] => "1.1".into(),
        [(only, _)] => only.to_owned(),
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

/// Says where servers listen, all of it if they are few.
pub fn listening(addresses: &[SocketAddr]) -> String {
    format!("listening at {}", few(addresses))
}
