//! Reads models of devices from options, and describes them for reports.

use polygraph_link::Nanos;
use polygraph_link::nanos;
use polygraph_plan::values;
use polygraph_sim::device::{Cache, Model};

/// Reads a model of a device: `none`, or its cache, times and capacity, for example `lru:4GB,hit=2ms,miss=5ms,rate=300/s`.
///
/// # Errors
/// If the text is not a model.
pub fn parse(text: &str) -> Result<Option<Model>, String> {
    let wrong = |why: &str| {
        format!(
            "`{text}` is not a model of a device: {why}; write none, ideal, lru:4GB or fifo:4GB, \
             optionally followed by ,hit=2ms ,miss=5ms and ,rate=300/s"
        )
    };
    if values::is_none(text) {
        return Ok(None);
    }
    let (cache, rest) = text.split_once(',').unwrap_or((text, ""));
    let (policy, size) = cache.split_once(':').map_or((cache, None), |(policy, size)| (policy, Some(size)));
    let sized = |make: fn(u64) -> Cache| {
        let bytes = values::size(size.ok_or_else(|| wrong("it needs a cache size"))?)?;
        if bytes > 0 { Ok(make(bytes)) } else { Err(wrong("it needs a cache size")) }
    };
    let cache = match policy.to_ascii_lowercase().as_str() {
        "ideal" if size.is_none() => Cache::Ideal,
        "ideal" => return Err(wrong("an ideal cache has no size")),
        "lru" => sized(Cache::Lru)?,
        "fifo" => sized(Cache::Fifo)?,
        _ => return Err(wrong(&format!("there is no policy `{policy}`"))),
    };
    let mut model = Model::instant(cache);
    for part in rest.split(',').filter(|part| !part.is_empty()) {
        let (key, value) = part.split_once('=').ok_or_else(|| wrong(&format!("`{part}` has no value")))?;
        match key {
            "hit" => model.hit = nanos(values::time(value)?),
            "miss" => model.miss = nanos(values::time(value)?),
            "rate" => model.rate = Some(values::rate(value)?),
            _ => return Err(wrong(&format!("`{key}` is unknown"))),
        }
    }
    Ok(Some(model))
}

/// A model in words, for people.
pub fn describe(model: &Model) -> String {
    let size = |bytes: u64| format!("{:.0} MB", bytes as f64 / 1024.0 / 1024.0);
    let (policy, bytes) = match model.cache {
        Cache::Ideal => ("ideal cache", None),
        Cache::Lru(bytes) => ("LRU", Some(bytes)),
        Cache::Fifo(bytes) => ("FIFO", Some(bytes)),
    };
    let mut text = policy.to_owned();
    if let Some(bytes) = bytes {
        text += &format!(", {}", size(bytes));
    }
    for (what, time) in [("hits", model.hit), ("others", model.miss)] {
        if time > Nanos::ZERO {
            text += &format!(", {what} take {} ms", time.as_f64() / 1e6);
        }
    }
    model.rate.map_or(text.clone(), |rate| format!("{text}, {rate} requests/s at most"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_read_and_described() {
        let lru = Model::instant(Cache::Lru(4 << 30));
        let slow = Model {
            hit: Nanos::from_millis(2),
            miss: Nanos::from_millis(5),
            rate: Some(300.0),
            cache: Cache::Lru(1 << 30),
        };
        for (text, model, said) in [
            ("ideal", Model::instant(Cache::Ideal), "ideal cache"),
            ("lru:4GB", lru, "LRU, 4096 MB"),
            ("FIFO:1MB", Model::instant(Cache::Fifo(1 << 20)), "FIFO, 1 MB"),
            (
                "lru:1GB,hit=2ms,miss=5ms,rate=300/s",
                slow,
                "LRU, 1024 MB, hits take 2 ms, others take 5 ms, 300 requests/s at most",
            ),
        ] {
            assert_eq!(parse(text), Ok(Some(model)), "{text}");
            assert_eq!(describe(&model), said);
        }
        assert_eq!(parse("none"), Ok(None));
        for text in [
            "",
            "lru",
            "lru:",
            "lru:0",
            "lru:x",
            "ideal:1GB",
            "mru:1GB",
            "ideal,hit",
            "ideal,hit=1",
            "ideal,x=1",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
