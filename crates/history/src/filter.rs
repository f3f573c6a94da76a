//! Which runs are to be listed.

use crate::entry::{IndexedRun, RunStatus};

/// Which runs are to be listed; by default all.
#[derive(Clone, Debug, Default)]
pub struct RunFilter {
    /// The workload contains this, in any case.
    pub workload: Option<String>,
    /// The device contains this, in any case.
    pub device: Option<String>,
    /// The label or the directory's name contains this, in any case.
    pub name: Option<String>,
    /// What has become of it.
    pub standing: Option<RunStatus>,
    /// It began at that time or later, in seconds since 1970.
    pub since_s: Option<i64>,
}

impl RunFilter {
    /// Whether a run is wanted.
    pub fn wants(&self, entry: &IndexedRun) -> bool {
        let contains = |wanted: &Option<String>, texts: &[&String]| {
            wanted.as_ref().is_none_or(|wanted| {
                let wanted = wanted.to_lowercase();
                texts.iter().any(|text| text.to_lowercase().contains(&wanted))
            })
        };
        contains(&self.workload, &[&entry.workload])
            && contains(&self.device, &[&entry.device])
            && contains(&self.name, &[&entry.label, &entry.name])
            && self.standing.is_none_or(|standing| standing == entry.standing)
            && self.since_s.is_none_or(|since| entry.begin_s >= since)
    }
}
