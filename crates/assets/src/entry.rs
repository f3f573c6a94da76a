//! What users name: a workload, a device, a bake-off plan, a lab or published results.

use std::collections::BTreeSet;

use crate::files::{Asset, all, below};
use crate::read::normal;

/// The kinds of built-in things.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EntryKind {
    /// A workload file.
    Workload,
    /// A device that can be started.
    Device,
    /// The plan of a bake-off.
    Bakeoff,
    /// A lab file.
    Lab,
    /// Published results.
    Results,
}

impl EntryKind {
    /// All kinds, in the order in which commands list them.
    pub const ALL: [EntryKind; 5] =
        [EntryKind::Workload, EntryKind::Device, EntryKind::Bakeoff, EntryKind::Lab, EntryKind::Results];

    /// The directory of the source tree with the things of this kind.
    pub fn directory(self) -> &'static str {
        match self {
            EntryKind::Workload => "workloads",
            EntryKind::Device => "devices",
            EntryKind::Bakeoff => "bakeoffs",
            EntryKind::Lab => "labs",
            EntryKind::Results => "data",
        }
    }

    /// What messages call a thing of this kind.
    pub fn word(self) -> &'static str {
        match self {
            EntryKind::Workload => "workload",
            EntryKind::Device => "device",
            EntryKind::Bakeoff => "bake-off plan",
            EntryKind::Lab => "lab",
            EntryKind::Results => "set of published results",
        }
    }

    /// The end of the names of files of this kind; empty for devices, which are directories.
    pub(crate) fn extension(self) -> &'static str {
        match self {
            EntryKind::Workload => ".pg",
            EntryKind::Device => "",
            EntryKind::Bakeoff | EntryKind::Lab => ".toml",
            EntryKind::Results => ".csv",
        }
    }
}

/// Something that users can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its kind.
    pub kind: EntryKind,
    /// Its name, which is unique among those of its kind.
    pub name: &'static str,
    /// The file that stands for it: that of the name, or the description of a device.
    pub file: &'static Asset,
}

impl Entry {
    /// What it is, in a few words from its file; empty if the file does not say so.
    pub fn summary(&self) -> String {
        let text = self.file.text;
        match self.kind {
            EntryKind::Workload => first_sentence(text),
            EntryKind::Results => "published results of the first IRCache bake-off (1999)".to_owned(),
            EntryKind::Device | EntryKind::Bakeoff | EntryKind::Lab => {
                let value = |line: &'static str| {
                    let (key, value) = line.split_once('=')?;
                    let value = value.trim().strip_prefix('"')?.strip_suffix('"')?;
                    ["summary", "title"].contains(&key.trim()).then(|| value.to_owned())
                };
                text.lines().find_map(value).unwrap_or_default()
            }
        }
    }

    /// All files that belong to it, its own first: those that it refers to, directly or through others.
    pub fn files(&self) -> Vec<&'static Asset> {
        let mut found = vec![self.file];
        let mut next = 0;
        while let Some(asset) = found.get(next) {
            for other in references(asset) {
                if !found.contains(&other) {
                    found.push(other);
                }
            }
            next += 1;
        }
        if self.kind == EntryKind::Results {
            let start = format!("data/{}-", self.name);
            found.extend(all().iter().filter(|asset| asset.path.starts_with(&start)));
        }
        found
    }
}

/// The first sentence, or the part before a colon, of the comment at the start of a workload, without its name.
fn first_sentence(text: &str) -> String {
    let lines = text.lines().skip(1).map(|line| line.trim().trim_start_matches('*').trim());
    let words: Vec<&str> = lines.take_while(|line| !line.is_empty()).collect();
    let words = words.join(" ");
    let words = words.split_once(": ").map_or(&*words, |(_, rest)| rest);
    let end = [". ", ": ", "; "].iter().filter_map(|end| words.find(end)).min();
    words[..end.unwrap_or(words.len())].trim_end_matches('.').to_owned()
}

/// The files that a file names between quotation marks: by their paths from its directory, or from `include/` there.
fn references(asset: &Asset) -> Vec<&'static Asset> {
    let directory = asset.path.rsplit_once('/').map_or("", |(directory, _)| directory);
    let mut found = Vec::new();
    for line in asset.text.lines() {
        for word in line.split('"').skip(1).step_by(2) {
            for path in [format!("{directory}/{word}"), format!("{directory}/include/{word}")] {
                found.extend(normal(&path).and_then(|path| all().iter().find(|asset| asset.path == path)));
            }
        }
    }
    found
}

/// Everything that users can name, kind by kind.
pub fn entries() -> Vec<Entry> {
    EntryKind::ALL.into_iter().flat_map(of_kind).collect()
}

/// The thing of a kind with this name: `polymix-4`, or a path in the source tree without or with its extension.
pub fn find(kind: EntryKind, name: &str) -> Option<Entry> {
    let plain = name.strip_prefix(kind.directory()).and_then(|rest| rest.strip_prefix('/')).unwrap_or(name);
    let plain = plain.strip_suffix(kind.extension()).unwrap_or(plain);
    of_kind(kind).into_iter().find(|entry| entry.name == plain)
}

fn of_kind(kind: EntryKind) -> Vec<Entry> {
    let directory = kind.directory();
    let files: Vec<(&'static Asset, &'static str)> =
        below(directory).map(|asset| (asset, &asset.path[directory.len() + 1..])).collect();
    if kind == EntryKind::Device {
        let description = |(file, path): (&'static Asset, &'static str)| {
            let name = path.strip_suffix("/device.toml")?;
            Some(Entry { kind, name, file })
        };
        return files.into_iter().filter_map(description).collect();
    }
    let stems: BTreeSet<&str> =
        files.iter().filter_map(|(_, path)| path.strip_suffix(kind.extension())).collect();
    // `bakeoff-1-products.csv` belongs to `bakeoff-1.csv`.
    let is_part = |stem: &str| {
        kind == EntryKind::Results && stem.rsplit_once('-').is_some_and(|(start, _)| stems.contains(start))
    };
    let own = |(file, path): (&'static Asset, &'static str)| {
        let name =
            path.strip_suffix(kind.extension()).filter(|name| !name.contains('/') && !is_part(name))?;
        Some(Entry { kind, name, file })
    };
    files.into_iter().filter_map(own).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(kind: EntryKind) -> Vec<&'static str> {
        of_kind(kind).iter().map(|entry| entry.name).collect()
    }

    #[test]
    fn entries_by_kind() {
        assert_eq!(names(EntryKind::Workload).len(), 21);
        assert_eq!(names(EntryKind::Device)[..2], ["squid", "squid-bump"]);
        assert_eq!(names(EntryKind::Bakeoff), ["five-caches"]);
        assert_eq!(names(EntryKind::Lab), ["two-hosts", "polymix-3", "fleet", "webaxe-4"]);
        assert_eq!(names(EntryKind::Results), ["bakeoff-1"]);
    }

    #[test]
    fn names_have_several_spellings() {
        for name in ["polymix-4", "polymix-4.pg", "workloads/polymix-4", "workloads/polymix-4.pg"] {
            assert_eq!(
                find(EntryKind::Workload, name).unwrap().file.path,
                "workloads/polymix-4.pg",
                "{name}"
            );
        }
        assert!(
            find(EntryKind::Workload, "benches").is_none() && find(EntryKind::Lab, "polymix-4").is_none()
        );
    }

    #[test]
    fn files_come_with_what_they_refer_to() {
        let paths = |kind, name| -> Vec<&str> {
            find(kind, name).unwrap().files().iter().map(|asset| asset.path).collect()
        };
        assert_eq!(
            paths(EntryKind::Lab, "polymix-3")[..2],
            ["labs/polymix-3.toml", "workloads/polymix-3.pg"]
        );
        let workload = paths(EntryKind::Workload, "polymix-4");
        for part in ["benches", "polymix-4-guts", "polymix-4-agents", "phases-4", "contents"] {
            assert!(workload.contains(&format!("workloads/include/{part}.pg").as_str()), "{workload:?}");
        }
        assert_eq!(paths(EntryKind::Device, "trafficserver").len(), 6);
        assert_eq!(paths(EntryKind::Bakeoff, "five-caches").len(), 7);
        assert_eq!(paths(EntryKind::Results, "bakeoff-1").len(), 3);
        assert_eq!(paths(EntryKind::Workload, "simple").len(), 1);
    }

    #[test]
    fn everything_says_what_it_is() {
        for entry in entries() {
            let summary = entry.summary();
            assert!((10..150).contains(&summary.len()), "{}: `{summary}`", entry.name);
        }
        let workload = find(EntryKind::Workload, "pxylb-4").unwrap();
        assert_eq!(workload.summary(), "a load balancer in front of several forward proxies (2001)");
    }

    #[test]
    fn every_file_belongs_to_something() {
        let used: BTreeSet<&str> = entries().iter().flat_map(Entry::files).map(|asset| asset.path).collect();
        let all: BTreeSet<&str> = all().iter().map(|asset| asset.path).collect();
        assert_eq!(used, all);
    }
}
