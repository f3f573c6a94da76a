//! Options of the original client and server, and of other load generators, that this program does not have, and what to use instead.

/// Names of options, and what to use instead.
const UNSUPPORTED: [(&[&str], &str); 14] = [
    (
        &["prn_reqs", "prn_reps", "prn_errs", "prn_dump_size", "prn_false_misses"],
        "use --dump and --dump_size to show messages; the report explains missed hits",
    ),
    (
        &["doorman_listen_at", "doorman_send_to"],
        "exchanging sessions with other programs is not supported yet",
    ),
    (&["console"], "messages go to standard output and standard error, which you can redirect"),
    (&["fd_limit"], "use `ulimit -n` for the limit of file descriptors, and --open_conn_lmt for connections"),
    (
        &["fake_hosts", "delete_old_addrs"],
        "creating addresses of agents is not supported yet; use `ip address add`, and `polygraph pgl2ips` for the list of addresses",
    ),
    (&["worker"], "the program starts worker processes when it needs them; --workers sets their number"),
    (&["loadable_modules"], "there are no loadable modules"),
    (&["icp_tout"], "ICP is not supported yet"),
    (
        &["sample_log_buf_size", "log_size", "log_buf_size", "hushed_error_tout"],
        "the log is written continuously, contains samples of errors, and needs no settings",
    ),
    (
        &["file_scan", "priority_sched", "accept_lmt", "conn_pool", "conn_pool_dyn", "do_ios"],
        "this program needs no settings for input and output",
    ),
    (
        &["nagle", "linger_tout"],
        "socket options are not supported yet: small writes are never delayed, and close does not linger",
    ),
    (
        &["obj_bday", "obj_life_cycle", "obj_life_cycle_var", "obj_with_lmt", "obj_expire", "prefilled_cnt"],
        "object life cycles need a workload file: see --config, and `Content` in docs/reference/generated/pgl.md",
    ),
    (&["maximize_req_rate", "track_rports", "rport_wait_min"], "this is not supported yet"),
    (
        &[
            "sync_phases",
            "new_oids_per_msg_max",
            "new_oids_prefetch",
            "new_oids_history",
            "rng_seed",
            "world_type",
            "world_id",
            "world_urls",
            "unique_urls",
            "order",
            "exp_oids",
            "abs_urls",
            "users",
            "req_ccl",
            "tmp_loc_depth",
            "tmp_loc_delta",
        ],
        "later versions of the original removed this option; seeds are --local_rng_seed and --global_rng_seed, and unique_urls is a field of robots",
    ),
];

/// Names of options of other load generators (wrk2, k6, oha and the like), and what to use instead.
const OF_OTHERS: [(&[&str], &str); 6] = [
    (&["rate", "rps", "qps", "r", "q"], "the load is --req_rate, for example --req_rate 100/sec"),
    (
        &["duration", "d", "z"],
        "the length of a test is --goal, for example --goal 1min, of which the first tenth is the warm-up",
    ),
    (&["requests", "n"], "the length of a test is --goal, for example --goal 5000 for 5000 transactions"),
    (
        &["connections", "concurrency", "vus", "threads", "c", "u"],
        "--robots N --req_rate none keeps N requests under way; with a --req_rate, connections are opened as they are needed",
    ),
    (
        &["threshold", "thresholds"],
        "conditions are --expect, for example --expect 'rptm.p95<200ms'; exit code 10 if one is not met",
    ),
    (
        &["insecure", "k"],
        "robots accept any certificate unless --trust_ca or `root_certificate` names an authority",
    ),
];

/// Explains the first option among `words` that others have and this program does not have.
pub fn explain(words: &[String]) -> Option<String> {
    words.iter().find_map(|word| {
        let name = word.strip_prefix('-')?.trim_start_matches('-').to_ascii_lowercase();
        let mut known = UNSUPPORTED.iter().chain(&OF_OTHERS);
        let (_, text) = known.find(|(names, _)| names.contains(&name.as_str()))?;
        let dashes = if name.len() == 1 { "-" } else { "--" };
        Some(format!("{dashes}{name}: {text}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsupported_options_do_not_exist() {
        let cli = crate::lazy::whole::<crate::Cli>();
        for command in ["client", "server", "run", "peak"] {
            let there: Vec<&str> = cli
                .find_subcommand(command)
                .unwrap()
                .get_arguments()
                .filter_map(|arg| arg.get_long())
                .collect();
            for name in UNSUPPORTED.iter().chain(&OF_OTHERS).flat_map(|(names, _)| *names) {
                assert!(!there.contains(name), "{command} has {name}");
            }
        }
    }

    #[test]
    fn any_spelling_is_explained() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let found = explain(&words("client --goal 5 -Prn_Errs")).unwrap();
        assert!(found.starts_with("--prn_errs: use --dump"), "{found}");
        assert_eq!(explain(&words("client prn_errs --nothing")), None);
        let found = explain(&words("run -c 50 --proxy x")).unwrap();
        assert!(found.starts_with("-c: --robots N"), "{found}");
    }
}
