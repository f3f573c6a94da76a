//! Data files that calls read: distribution tables, zones, traces.

use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::Arc;

use polygraph_addr::Host;

use crate::value::{Distr, Domain, Shape, TableBin};

/// Reads a user-defined distribution (`docs/reference/language.md`, "Distribution tables").
pub fn table(text: &str) -> Result<Distr, String> {
    let mut lines = text.lines().map(|line| line.split('#').next().unwrap_or("").trim());
    let mut lines = lines.by_ref().enumerate().filter(|(_, line)| !line.is_empty());
    let (_, header) = lines.next().ok_or("it is empty")?;
    let words: Vec<&str> = header.split_whitespace().collect();
    let [ty, _, "=", "{"] = words[..] else {
        return Err(format!("it starts with `{header}` instead of `TYPE_distr NAME = {{`"));
    };
    let domain = match ty {
        "int_distr" => Domain::Int,
        "float_distr" => Domain::Float,
        "time_distr" => Domain::Time,
        "size_distr" => Domain::Size,
        _ => return Err(format!("`{ty}` is not a type of a distribution")),
    };
    let mut bins: Vec<TableBin> = Vec::new();
    let mut rest = None;
    let mut closed = false;
    for (number, line) in lines {
        let fail = |why: &str| Err(format!("line {}: {why}", number + 1));
        if closed {
            return fail("text after the closing brace");
        }
        if line == "}" {
            closed = true;
            continue;
        }
        let Some((value, weight)) = line.split_once(char::is_whitespace) else { return fail("no weight") };
        let Some((min, max)) = bounds(value, bins.last()) else { return fail("no number") };
        if max.is_some_and(|max| max <= min) {
            return fail("the end of the bin is not above its start");
        }
        let weight = match weight.trim().strip_prefix("*/") {
            Some(total) if rest.is_none() => {
                rest = Some((bins.len(), positive(total)));
                Some(0.0)
            }
            Some(_) => return fail("a second bin takes the rest"),
            None => positive(weight.trim()),
        };
        let Some(weight) = weight else { return fail("the weight is not a number of at least 0") };
        bins.push(TableBin { min, max, weight });
    }
    if !closed {
        return Err("the closing brace is missing".to_owned());
    }
    if let Some((index, total)) = rest {
        let used: f64 = bins.iter().map(|bin| bin.weight).sum();
        bins[index].weight =
            total.map(|total| total - used).filter(|w| *w >= 0.0).ok_or("nothing is left for `*`")?;
    }
    if bins.iter().map(|bin| bin.weight).sum::<f64>() <= 0.0 {
        return Err("all weights are zero".to_owned());
    }
    let mut sorted = bins.clone();
    sorted.sort_by(|a, b| a.min.total_cmp(&b.min));
    for pair in sorted.windows(2) {
        if pair[0].max.unwrap_or(pair[0].min) > pair[1].min || pair[0].min == pair[1].min {
            return Err(format!("bins overlap at {}", pair[1].min));
        }
    }
    Ok(Distr { domain, shape: Shape::Table(Arc::from(bins)), qualifier: None })
}

/// `value`, `min:max` or `:max`.
fn bounds(text: &str, previous: Option<&TableBin>) -> Option<(f64, Option<f64>)> {
    let number = |text: &str| text.parse::<f64>().ok().filter(|value| value.is_finite());
    match text.split_once(':') {
        None => Some((number(text)?, None)),
        Some(("", max)) => {
            let min = previous.map_or(0.0, |bin| bin.max.unwrap_or(bin.min + 1.0));
            Some((min, Some(number(max)?)))
        }
        Some((min, max)) => Some((number(min)?, Some(number(max)?))),
    }
}

fn positive(text: &str) -> Option<f64> {
    text.parse::<f64>().ok().filter(|value| value.is_finite() && *value >= 0.0)
}

/// Names by IP address, from the A and AAAA records of a zone file. Wildcards are left out; the final dot is
/// removed.
pub fn zone_names(text: &str) -> HashMap<IpAddr, String> {
    let mut names = HashMap::new();
    let (mut origin, mut owner) = (String::new(), String::new());
    for line in text.lines() {
        let line = line.split(';').next().unwrap_or("");
        let mut words = line.split_whitespace().peekable();
        if let Some(&"$ORIGIN") = words.peek() {
            origin = words.nth(1).unwrap_or("").trim_end_matches('.').to_owned();
            continue;
        }
        // A line that starts with a blank belongs to the name before.
        if !line.starts_with([' ', '\t'])
            && let Some(word) = words.next()
        {
            owner = match (word, word.strip_suffix('.')) {
                ("@", _) => origin.clone(),
                (_, Some(full)) => full.to_owned(),
                _ if origin.is_empty() => word.to_owned(),
                _ => format!("{word}.{origin}"),
            };
        }
        let words: Vec<&str> = words.collect();
        let [.., kind, ip] = words[..] else { continue };
        if (kind.eq_ignore_ascii_case("A") || kind.eq_ignore_ascii_case("AAAA"))
            && !owner.contains('*')
            && let Ok(ip) = ip.parse::<IpAddr>()
        {
            names.entry(ip).or_insert_with(|| owner.clone());
        }
    }
    names
}

/// The distinct hosts of the first URL on each line: IP addresses in numeric order, then names in alphabetic
/// order.
pub fn traced_hosts(text: &str) -> Vec<Host> {
    let (mut ips, mut names) = (BTreeSet::new(), BTreeSet::new());
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or("");
        let Some(start) =
            ["http://", "https://", "ftp://"].iter().filter_map(|s| Some(line.find(s)? + s.len())).min()
        else {
            continue;
        };
        let authority =
            line[start..].split(|c: char| c == '/' || c == '?' || c.is_whitespace()).next().unwrap_or("");
        let authority = authority.rsplit('@').next().unwrap_or("");
        let host = match authority.strip_prefix('[') {
            Some(rest) => rest.split(']').next().unwrap_or(""),
            None => authority.split(':').next().unwrap_or(""),
        };
        match host.parse::<IpAddr>() {
            Ok(ip) => {
                ips.insert(ip);
            }
            Err(_)
                if host.bytes().all(|c| c.is_ascii_alphanumeric() || b".-_".contains(&c))
                    && !host.is_empty() =>
            {
                names.insert(host.to_ascii_lowercase());
            }
            Err(_) => {}
        }
    }
    let names = names.into_iter().map(|name| Host::Name(name.into()));
    ips.into_iter().map(Host::from).chain(names).collect()
}
