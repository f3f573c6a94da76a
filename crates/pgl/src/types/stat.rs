//! The members of `StatSample`: statistics that a phase script can read.

use std::sync::LazyLock;

use rustc_hash::FxHashMap;

use crate::types::Base;

/// A member of `StatSample`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatMember {
    /// The path from the sample, such as `rep.rptm.mean`.
    pub path: &'static str,
    /// Type of the member.
    pub base: Base,
}

impl StatMember {
    /// True for shares, which are written with `%`.
    pub fn is_share(&self) -> bool {
        self.path.contains(".ratio") || self.path.ends_with(".rel_dev")
    }
}

enum Kind {
    TmSz,
    Hits(&'static str, &'static str),
    Level,
    Aggr(Base),
    Proto,
    One(Base),
}

/// Groups of members (`docs/reference/statistics.md`, "Script samples").
const GROUPS: &[(&str, Kind)] = &[
    ("rep", Kind::TmSz),
    ("custom.rep", Kind::TmSz),
    ("basic", Kind::TmSz),
    ("fill", Kind::TmSz),
    ("redired_req", Kind::TmSz),
    ("rep_to_redir", Kind::TmSz),
    ("ims", Kind::TmSz),
    ("reload", Kind::TmSz),
    ("range", Kind::TmSz),
    ("head", Kind::TmSz),
    ("post", Kind::TmSz),
    ("put", Kind::TmSz),
    ("abort", Kind::TmSz),
    ("page", Kind::TmSz),
    ("auth.none", Kind::TmSz),
    ("auth.ing", Kind::TmSz),
    ("auth.ed", Kind::TmSz),
    ("tunneled", Kind::TmSz),
    ("live.rep", Kind::TmSz),
    ("projected.rep", Kind::TmSz),
    ("custom.live.rep", Kind::TmSz),
    ("custom.projected.rep", Kind::TmSz),
    ("offered", Kind::Hits("hit", "miss")),
    ("real", Kind::Hits("hit", "miss")),
    ("cachable", Kind::Hits("yes", "no")),
    ("xact", Kind::Level),
    ("populus", Kind::Level),
    ("wait", Kind::Level),
    ("conn.open", Kind::Level),
    ("conn.estb", Kind::Level),
    ("conn.idle", Kind::Level),
    ("conn.ttl", Kind::Aggr(Base::Time)),
    ("conn.use", Kind::Aggr(Base::Int)),
    ("baseline.rptm", Kind::Aggr(Base::Time)),
    ("socks", Kind::Proto),
    ("ssl", Kind::Proto),
    ("ftp", Kind::Proto),
    ("connect", Kind::Proto),
    ("authenticating", Kind::Proto),
    ("baseline.req.rate", Kind::One(Base::Float)),
    ("baseline.rep.rate", Kind::One(Base::Float)),
    ("ok_xact.count", Kind::One(Base::Float)),
    ("err_xact.count", Kind::One(Base::Float)),
    ("retr_xact.count", Kind::One(Base::Float)),
    ("err_xact.ratio", Kind::One(Base::Float)),
    ("duration", Kind::One(Base::Time)),
];

static MEMBERS: LazyLock<FxHashMap<&'static str, StatMember>> = LazyLock::new(|| {
    let mut all = FxHashMap::default();
    // The table lives as long as the program, and so do its few hundred names.
    let mut add = |path: String, base: Base| {
        let path: &'static str = path.leak();
        all.insert(path, StatMember { path, base });
    };
    for (prefix, kind) in GROUPS {
        group(prefix, kind, &mut add);
    }
    all
});

fn group(prefix: &str, kind: &Kind, add: &mut dyn FnMut(String, Base)) {
    match kind {
        Kind::One(base) => add(prefix.to_owned(), *base),
        Kind::Aggr(base) => {
            add(format!("{prefix}.count"), Base::Int);
            for member in ["min", "max", "sum"] {
                add(format!("{prefix}.{member}"), *base);
            }
            // The mean of ints is a float.
            let of_mean = if *base == Base::Int { Base::Float } else { *base };
            add(format!("{prefix}.mean"), of_mean);
            add(format!("{prefix}.std_dev"), of_mean);
            add(format!("{prefix}.rel_dev"), Base::Float);
        }
        Kind::TmSz => {
            group(&format!("{prefix}.rptm"), &Kind::Aggr(Base::Time), add);
            group(&format!("{prefix}.size"), &Kind::Aggr(Base::Size), add);
        }
        Kind::Hits(yes, no) => {
            add(format!("{prefix}.ratio.obj"), Base::Float);
            add(format!("{prefix}.ratio.byte"), Base::Float);
            group(&format!("{prefix}.{yes}"), &Kind::TmSz, add);
            group(&format!("{prefix}.{no}"), &Kind::TmSz, add);
        }
        Kind::Level => {
            for member in ["started", "finished", "level.last"] {
                add(format!("{prefix}.{member}"), Base::Int);
            }
            add(format!("{prefix}.level.mean"), Base::Float);
        }
        Kind::Proto => {
            group(&format!("{prefix}.xact"), &Kind::Hits("hit", "miss"), add);
            group(&format!("{prefix}.xact"), &Kind::Level, add);
            group(&format!("{prefix}.conn"), &Kind::Level, add);
            add(format!("{prefix}.err_xact.count"), Base::Float);
        }
    }
}

/// The member with this path.
pub fn stat_member(path: &str) -> Option<StatMember> {
    MEMBERS.get(path).copied()
}

/// All paths, for completion and suggestions.
pub fn stat_completions() -> Vec<&'static str> {
    let mut paths: Vec<_> = MEMBERS.keys().copied().collect();
    paths.sort_unstable();
    paths
}
