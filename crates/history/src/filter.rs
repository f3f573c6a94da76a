//! Selects the runs to list.

use crate::entry::{IndexedRun, RunStatus};

/// Selects the runs to list; by default all.
#[derive(Clone, Debug, Default)]
pub struct RunFilter {
    /// The workload must contain this text, in upper or lower case.
    pub workload: Option<String>,
    /// The device must contain this text, in upper or lower case.
    pub device: Option<String>,
    /// The label or the directory's name must contain this text, in upper or lower case.
    pub name: Option<String>,
    /// The required state.
    pub standing: Option<RunStatus>,
    /// The earliest start, in seconds since 1970.
    pub since_s: Option<i64>,
}

impl RunFilter {
    /// Whether the filter selects a run.
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
