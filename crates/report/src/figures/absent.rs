//! Names of the original's figures that do not exist here, and why.

/// First parts of names, and why there are no such figures.
pub const ABSENT: [(&str, &str); 11] = [
    ("icp", "robots do not send ICP queries"),
    ("ftp", "there is no FTP"),
    (
        "compound.connect_plus_one",
        "CONNECT belongs to the set-up of a connection: see ssl.rptm and ssl.ready_rptm",
    ),
    ("oid_gen.need.new_prv", "robots share all objects: there are no private ones"),
    ("oid_gen.need.rep_prv", "robots share all objects: there are no private ones"),
    ("offered.hit.rptm", "offered hits take no time"),
    ("offered.miss.rptm", "offered misses take no time"),
    ("authenticating.xact", "authentication steps are parts of transactions: see auth.ing and compound.auth"),
    ("resp_tm_vs_sz", "removed from the original in 2.6; export transactions and compare any two columns"),
    ("Traces", "ltrace shows values over time"),
    ("conn_ttl_vs_use", "removed from the original in 2.6; conn_close.* has both"),
];

/// Why there is no figure `name`, if the original has one.
pub fn why(name: &str) -> Option<&'static str> {
    let is =
        |part: &str| name.strip_prefix(part).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    ABSENT.iter().find(|(part, _)| is(part)).map(|&(_, why)| why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_absent_is_absent() {
        for (name, _) in ABSENT {
            let is = |known: &str| {
                known.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            };
            assert!(!crate::figures::all().iter().any(|figure| is(&figure.name)), "{name}");
        }
        assert_eq!(why("icp.req.rate"), Some("robots do not send ICP queries"));
        assert_eq!((why("icpx"), why("rep")), (None, None));
    }
}
