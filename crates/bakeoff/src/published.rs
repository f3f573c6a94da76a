//! Published results as CSV: a file of results, and optional files of products and prices.
//!
//! | file | columns |
//! |---|---|
//! | `NAME.csv` | product, request_rate, mean_response_time_s, hit_ratio_pct, status (`ok`, `failed`), note, source |
//! | `NAME-products.csv` | product, vendor, disclosed (`yes`, `no`), appendix, price_cache_usd, price_total_usd, claimed_peak_rps, achieved_peak_rps, rptm_min_s, rptm_max_s, hit_ratio_min_pct, hit_ratio_max_pct, cache_size_gb, cache_disks, software, client_server_pairs, netperf_mbps, no_proxy_rps_at_least, ip_net, failed_rates, product_url |
//! | `NAME-equipment.csv` | product, part, quantity, price_usd, network_gear (`yes`, `no`), note |
//!
//! Without the second and the third file, prices and claims are unknown.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use csv::StringRecord;
use polygraph_assets::{builtin, is_file};

use crate::entry::{AttemptStatus, Participant, PriceLine, PrintedNumber, RatePoint, StatedFigures};

/// Why published results cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The file cannot be read, or is not CSV.
    #[error("{path}: {source}")]
    Csv {
        /// The file.
        path: String,
        /// The cause.
        source: csv::Error,
    },
    /// A column is missing.
    #[error(
        "{path}: there is no column `{column}`; the first line must name the columns, see docs/bakeoff.md"
    )]
    Column {
        /// The file.
        path: String,
        /// Name of the column.
        column: &'static str,
    },
    /// A field is invalid.
    #[error("{path}, line {line}, {column}: {problem}")]
    Field {
        /// The file.
        path: String,
        /// Line number, from 1.
        line: u64,
        /// The column.
        column: &'static str,
        /// The problem, and what to write.
        problem: String,
    },
}

/// The existing files of an import, results first.
pub fn files(results: &Path) -> Vec<PathBuf> {
    let beside = ["products", "equipment"].map(|kind| sibling(results, kind));
    std::iter::once(results.to_owned()).chain(beside.into_iter().filter(|path| is_file(path))).collect()
}

fn sibling(results: &Path, kind: &str) -> PathBuf {
    let stem = results.file_stem().unwrap_or_default().to_string_lossy();
    results.with_file_name(format!("{stem}-{kind}.csv"))
}

/// Reads published results, with the files of products and equipment if they exist in the same directory.
///
/// # Errors
/// If a file cannot be read, a column is missing, or a field is invalid.
pub fn read(results: &Path) -> Result<Vec<Participant>, ImportError> {
    let mut entries: Vec<Participant> = Vec::new();
    let known = sibling(results, "products");
    let has_products = is_file(&known);
    if has_products {
        Sheet::open(&known)?.each(|row| {
            entries.push(product(row)?);
            Ok(())
        })?;
    }
    Sheet::open(results)?.each(|row| {
        let name = row.text("product")?;
        let source = row.text("source")?;
        let point = point(row)?;
        let entry = find(&mut entries, name, has_products);
        if entry.source.is_empty() {
            source.clone_into(&mut entry.source);
        }
        entry.points.push(point);
        Ok(())
    })?;
    let equipment = sibling(results, "equipment");
    if is_file(&equipment) {
        Sheet::open(&equipment)?.each(|row| {
            let line = price_line(row)?;
            let name = row.text("product")?;
            find(&mut entries, name, has_products).price.lines.push(line);
            Ok(())
        })?;
    }
    for entry in &mut entries {
        entry.points.sort_by(|a, b| a.rate.total_cmp(&b.rate));
        let noted = entry.points.iter().filter(|point| !point.note.is_empty() && !entry.guest);
        let noted: Vec<String> =
            noted.map(|point| format!("{} requests per second: {}.", point.rate, point.note)).collect();
        entry.remarks.extend(noted);
        entry.guest.then(|| entry.points.first().map(|point| entry.remarks.push(sentence(&point.note))));
    }
    Ok(entries)
}

fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| format!("{}{}.", first.to_uppercase(), letters.as_str()))
}

/// The entry with this name. A name that is not in the list of products is that of a guest.
fn find<'a>(entries: &'a mut Vec<Participant>, name: &str, has_products: bool) -> &'a mut Participant {
    let at = entries.iter().position(|entry| entry.name == name).unwrap_or_else(|| {
        entries.push(Participant { name: name.to_owned(), guest: has_products, ..Participant::default() });
        entries.len() - 1
    });
    &mut entries[at]
}

fn point(row: &Row<'_>) -> Result<RatePoint, ImportError> {
    let status = row.one_of("status", &[("ok", AttemptStatus::Passed), ("failed", AttemptStatus::Failed)])?;
    let rate = row.number("request_rate")?.filter(|rate| rate.value > 0.0);
    let rate =
        rate.ok_or_else(|| row.wrong("request_rate", "write requests per second, more than 0".into()))?;
    let point = RatePoint {
        mean_s: row.number("mean_response_time_s")?,
        hit_pct: row.number("hit_ratio_pct")?,
        note: row.text("note")?.to_owned(),
        ..RatePoint::new(rate.value, status)
    };
    if status == AttemptStatus::Passed && (point.mean_s.is_none() || point.hit_pct.is_none()) {
        return Err(row.wrong("status", "a run that is ok needs a response time and a hit ratio".into()));
    }
    Ok(point)
}

fn price_line(row: &Row<'_>) -> Result<PriceLine, ImportError> {
    let quantity = row.number("quantity")?.map_or(1.0, |n| n.value);
    if quantity.fract() != 0.0 || !(1.0..1e6).contains(&quantity) {
        return Err(row.wrong("quantity", "write a whole number from 1".into()));
    }
    Ok(PriceLine {
        part: row.text("part")?.to_owned(),
        quantity: quantity as u32,
        price: row.number("price_usd")?.map(|n| n.value),
        network: row.one_of("network_gear", &[("yes", true), ("no", false)])?,
        note: row.text("note")?.to_owned(),
    })
}

fn product(row: &Row<'_>) -> Result<Participant, ImportError> {
    let value = |column| Ok::<_, ImportError>(row.number(column)?.map(|n| n.value));
    let pair = |low, high| Ok::<_, ImportError>(value(low)?.zip(value(high)?));
    let mut entry = Participant {
        name: row.text("product")?.to_owned(),
        vendor: row.text("vendor")?.to_owned(),
        appendix: row.text("appendix")?.to_owned(),
        withheld: !row.one_of("disclosed", &[("yes", true), ("no", false)])?,
        claimed: value("claimed_peak_rps")?,
        stated: StatedFigures {
            achieved: value("achieved_peak_rps")?,
            mean_s: pair("rptm_min_s", "rptm_max_s")?,
            hit_pct: pair("hit_ratio_min_pct", "hit_ratio_max_pct")?,
        },
        ..Participant::default()
    };
    entry.price.stated_alone = value("price_cache_usd")?;
    entry.price.stated_total = value("price_total_usd")?;
    let mut fact = |name: &str, column, unit: &str| {
        let text = row.text(column)?;
        if !text.is_empty() {
            entry.facts.push((name.to_owned(), format!("{text}{unit}")));
        }
        Ok::<_, ImportError>(())
    };
    fact("cache size", "cache_size_gb", " GB")?;
    fact("cache disks", "cache_disks", "")?;
    fact("software", "software", "")?;
    fact("client-server pairs", "client_server_pairs", "")?;
    fact("network", "ip_net", "")?;
    fact("vendor's page", "product_url", "")?;
    let mut check = |name: &str, column, before: &str, unit: &str| {
        let text = row.text(column)?;
        if !text.is_empty() {
            entry.checks.push((name.to_owned(), format!("{before}{text}{unit}")));
        }
        Ok::<_, ImportError>(())
    };
    check("network throughput (netperf, mean of a pair)", "netperf_mbps", "", " Mbit/s")?;
    check("no-proxy run", "no_proxy_rps_at_least", "at least ", " requests per second")?;
    Ok(entry)
}

/// A CSV file with names of columns in its first line.
struct Sheet {
    path: String,
    reader: csv::Reader<Box<dyn Read>>,
    head: StringRecord,
}

impl Sheet {
    fn open(path: &Path) -> Result<Sheet, ImportError> {
        let name = path.display().to_string();
        let wrong = |source| ImportError::Csv { path: name.clone(), source };
        let bytes: Box<dyn Read> = match path.to_str().and_then(builtin) {
            Some(text) => Box::new(text.map_err(|error| wrong(error.into()))?.as_bytes()),
            None => Box::new(File::open(path).map_err(|error| wrong(error.into()))?),
        };
        let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(bytes);
        let head = reader.headers().map_err(wrong)?.clone();
        Ok(Sheet { path: name, reader, head })
    }

    fn each(mut self, mut read: impl FnMut(&Row<'_>) -> Result<(), ImportError>) -> Result<(), ImportError> {
        let mut record = StringRecord::new();
        loop {
            let more = self.reader.read_record(&mut record);
            if !more.map_err(|source| ImportError::Csv { path: self.path.clone(), source })? {
                return Ok(());
            }
            read(&Row { path: &self.path, head: &self.head, record: &record })?;
        }
    }
}

struct Row<'a> {
    path: &'a str,
    head: &'a StringRecord,
    record: &'a StringRecord,
}

impl Row<'_> {
    fn text(&self, column: &'static str) -> Result<&str, ImportError> {
        let at = self.head.iter().position(|name| name == column);
        let at = at.ok_or_else(|| ImportError::Column { path: self.path.to_owned(), column })?;
        Ok(self.record.get(at).unwrap_or_default())
    }

    /// A number that is not negative; `None` if the field is empty.
    fn number(&self, column: &'static str) -> Result<Option<PrintedNumber>, ImportError> {
        let text = self.text(column)?;
        if text.is_empty() {
            return Ok(None);
        }
        let good = text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        let value = text.parse::<f64>().ok().filter(|_| good);
        let value = value.ok_or_else(|| {
            self.wrong(
                column,
                format!(
                    "`{text}` is not a number: write digits with an optional decimal point, or leave it empty"
                ),
            )
        })?;
        Ok(Some(PrintedNumber::new(value, text.split_once('.').map_or(0, |(_, decimals)| decimals.len()))))
    }

    fn one_of<T: Copy>(&self, column: &'static str, choices: &[(&str, T)]) -> Result<T, ImportError> {
        let text = self.text(column)?;
        let found = choices.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
        found.ok_or_else(|| {
            let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
            self.wrong(column, format!("`{text}`: write {}", words.join(" or ")))
        })
    }

    fn wrong(&self, column: &'static str, problem: String) -> ImportError {
        let line = self.record.position().map_or(0, csv::Position::line);
        ImportError::Field { path: self.path.to_owned(), line, column, problem }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "product,request_rate,mean_response_time_s,hit_ratio_pct,status,note,source\n";

    fn import(results: &str, equipment: Option<&str>) -> Result<Vec<Participant>, String> {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("r.csv");
        std::fs::write(&path, results).unwrap();
        if let Some(text) = equipment {
            std::fs::write(place.path().join("r-equipment.csv"), text).unwrap();
        }
        read(&path).map_err(|e| e.to_string())
    }

    #[test]
    fn results_alone() {
        let text = format!(
            "{HEAD}X,20,2.50,40.0,ok,,S\nX,10,1.41,55.16,ok,\"slow, but well\",S\nX,30,,,failed,,S\n"
        );
        let entries = import(&text, None).unwrap();
        let [entry] = &entries[..] else { panic!("{entries:?}") };
        assert_eq!((entry.name.as_str(), entry.source.as_str(), entry.guest), ("X", "S", false));
        let rates: Vec<f64> = entry.points.iter().map(|p| p.rate).collect();
        assert_eq!(rates, [10.0, 20.0, 30.0]);
        assert_eq!(entry.points[0].hit_pct.unwrap().text(), "55.16");
        assert_eq!(entry.points[1].mean_s.unwrap().text(), "2.50");
        assert_eq!(entry.achieved(), Some(20.0));
        assert_eq!(entry.remarks, ["10 requests per second: slow, but well."]);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        let row = |text: &str| format!("{HEAD}X,10,1.4,55.1,ok,,S\n{text}\n");
        for (text, part) in [
            ("product,rate\nX,1\n".to_owned(), "no column `source`"),
            (row("X,fast,1.4,55.1,ok,,S"), "line 3, request_rate: `fast` is not a number"),
            (row("X,0,1.4,55.1,ok,,S"), "line 3, request_rate: write requests per second"),
            (row("X,-5,1.4,55.1,ok,,S"), "`-5` is not a number"),
            (row("X,nan,1.4,55.1,ok,,S"), "`nan` is not a number"),
            (row("X,20,1.4,55.1,good,,S"), "line 3, status: `good`: write ok or failed"),
            (row("X,20,,55.1,ok,,S"), "needs a response time"),
            (row("X,20,1.4"), "found record with 3 fields"),
        ] {
            let error = import(&text, None).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
        let good = row("X,20,1.4,55.1,ok,,S");
        let head = "product,part,quantity,price_usd,network_gear,note\n";
        for (line, part) in [("X,hub,1.5,10,yes,", "quantity"), ("X,hub,1,10,maybe,", "write yes or no")] {
            let error = import(&good, Some(&format!("{head}{line}\n"))).unwrap_err();
            assert!(error.contains("r-equipment.csv, line 2") && error.contains(part), "{error}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_file_makes_it_panic(text in "[a-z,.0-9\"\n-]{0,200}") {
            let _ = import(&format!("{HEAD}{text}"), Some(&text));
        }
    }
}
