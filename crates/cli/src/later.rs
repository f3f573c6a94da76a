//! Options of the original client and server that this program does not have: what became of them.

/// Which options, and what to say of them.
const ABSENT: [(&[&str], &str); 14] = [
    (
        &["prn_reqs", "prn_reps", "prn_errs", "prn_dump_size", "prn_false_misses"],
        "messages are dumped with --dump and --dump_size; the report says why hits were missed",
    ),
    (&["notify", "doorman_listen_at", "doorman_send_to"], "other programs cannot be told of the run yet"),
    (&["console"], "messages go to standard output and standard error; send these where you want them"),
    (&["fd_limit"], "set the limit of file descriptors with ulimit -n; --open_conn_lmt bounds connections"),
    (
        &["fake_hosts", "delete_old_addrs"],
        "addresses of agents cannot be made or pretended yet; `polygraph aka` and `polygraph pgl2ips` help to make them",
    ),
    (&["worker"], "the program divides itself into processes; --workers says into how many"),
    (&["loadable_modules"], "there are no loadable modules"),
    (&["icp_tout"], "robots cannot ask by ICP yet"),
    (
        &["sample_log_buf_size", "log_size", "log_buf_size", "hushed_error_tout"],
        "the log is written as it comes and needs no settings; examples of errors are in it",
    ),
    (
        &["file_scan", "priority_sched", "accept_lmt", "conn_pool", "conn_pool_dyn", "do_ios"],
        "the program does its input and output without settings",
    ),
    (
        &["nagle", "linger_tout"],
        "sockets cannot be told so yet: small writes never wait, and close does not linger",
    ),
    (
        &["obj_bday", "obj_life_cycle", "obj_life_cycle_var", "obj_with_lmt", "obj_expire", "prefilled_cnt"],
        "objects change and expire only in a workload file: see `Content` there and --config",
    ),
    (&["maximize_req_rate", "track_rports", "rport_wait_min"], "the program cannot do that yet"),
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
        "the original has dropped it; seeds are --local_rng_seed and --global_rng_seed, unique_urls is a field of robots",
    ),
];

/// What became of the first option among `words` that the original has and this program has not.
pub fn explain(words: &[String]) -> Option<String> {
    words.iter().find_map(|word| {
        let name = word.strip_prefix('-')?.trim_start_matches('-').to_ascii_lowercase();
        let (_, text) = ABSENT.iter().find(|(names, _)| names.contains(&name.as_str()))?;
        Some(format!("--{name}: {text}"))
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn what_is_absent_is_absent() {
        let cli = crate::Cli::command();
        for command in ["client", "server"] {
            let there: Vec<&str> = cli
                .find_subcommand(command)
                .unwrap()
                .get_arguments()
                .filter_map(|arg| arg.get_long())
                .collect();
            for name in ABSENT.iter().flat_map(|(names, _)| *names) {
                assert!(!there.contains(name), "{command} has {name}");
            }
        }
    }

    #[test]
    fn any_spelling_is_explained() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let found = explain(&words("client --goal 5 -Prn_Errs")).unwrap();
        assert!(found.starts_with("--prn_errs: messages are dumped"), "{found}");
        assert_eq!(explain(&words("client prn_errs --nothing")), None);
    }
}
