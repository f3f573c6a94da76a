//! Fleets without NATS: agents that are started over ssh, by a real server of ssh on a port of this host.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::sandbox::{PATIENCE, Running, Sandbox, free_port, valid};

/// A server of ssh for this user with its own keys, and a list with two hosts that are both this one.
struct SshFleet {
    sandbox: Sandbox,
    _server: Running,
}

impl SshFleet {
    fn start() -> SshFleet {
        let sandbox = Sandbox::new();
        let path = sandbox.path().display().to_string();
        for key in ["host_key", "user_key"] {
            let words = ["-q", "-t", "ed25519", "-N", "", "-f", &format!("{path}/{key}")];
            let status = Command::new("ssh-keygen").args(words).status();
            assert!(status.is_ok_and(|status| status.success()), "Debian package openssh-server");
        }
        std::fs::create_dir_all("/run/sshd").unwrap();
        let port = free_port();
        sandbox.write(
            "sshd_config",
            &format!(
                "Port {port}\nListenAddress 127.0.0.1\nHostKey {path}/host_key\nAuthorizedKeysFile {path}/user_key.pub\n\
                 StrictModes no\nPidFile none\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin yes\n"
            ),
        );
        sandbox.write(
            "ssh_config",
            &format!(
                "Host here\n  HostName 127.0.0.1\n  Port {port}\n  IdentityFile {path}/user_key\n  IdentitiesOnly yes\n\
                 \x20 UserKnownHostsFile {path}/known\n  StrictHostKeyChecking accept-new\n"
            ),
        );
        std::fs::set_permissions(sandbox.path().join("user_key"), std::fs::Permissions::from_mode(0o600))
            .unwrap();
        let program = env!("CARGO_BIN_EXE_polygraph");
        let host = |name: &str, role: &str| {
            format!("[[host]]\nname = \"{name}\"\nssh = \"here\"\nroles = [\"{role}\"]\n")
        };
        sandbox.write(
            "bench.toml",
            &format!(
                "program = \"{program}\"\nlogs = \"{path}/agents\"\nssh_options = [\"-F\", \"{path}/ssh_config\"]\n{}{}",
                host("clt1", "client"),
                host("srv1", "server")
            ),
        );
        let mut server = sandbox.start_program("/usr/sbin/sshd", &format!("-D -e -f {path}/sshd_config"));
        server.wait_for("Server listening");
        SshFleet { sandbox, _server: server }
    }
}

#[test]
fn a_run_over_ssh_needs_no_nats() {
    let (fleet, done) = valid_fleet(|| {
        let fleet = SshFleet::start();
        let port = free_port();
        fleet.sandbox.write(
            "test.pg",
            &format!(
                "#include \"content.pg\"\nServer S = {{ contents = [C]; direct_access = contents; addresses = ['127.105.0.1:{port}']; }};\n\
                 Robot R = {{ origins = S.addresses; recurrence = 50%; pop_model = {{ pop_distr = popUnif(); }};\n\
                   req_rate = 20/sec; addresses = ['127.105.1.1-2']; }};\n\
                 Phase P = {{ name = \"p\"; goal.duration = 6sec; }};\nschedule(P); use(S, R);\n"
            ),
        );
        fleet.sandbox.write("content.pg", "Content C = { size = const(1KB); cachable = 100%; };\n");
        let done = fleet
            .sandbox
            .polygraph("run test.pg --fleet ssh:bench.toml --no_proxy --start_in 15s --out result");
        (fleet, done)
    });
    assert!(done.err.contains("2 logs collected"), "{done:?}");
    assert!(!done.out.contains("incidents"), "{done:?}");
    let (figures, _) = fleet.sandbox.lx("--objects ok_xact.count", "result/clt1-client.log");
    assert!(figures["ok_xact.count"] > 100.0, "{figures:?}");
    // Every command has its own agents, and all know the runs on the disks.
    let listed = fleet.sandbox.polygraph("fleet logs --fleet ssh:bench.toml");
    assert!(listed.out.contains("clt1") && listed.out.contains("client ended (0)"), "{listed:?}");
    let all = fleet.sandbox.polygraph("fleet ls --fleet ssh:bench.toml");
    assert!(all.out.contains("srv1") && all.out.contains("server"), "{all:?}");
}

/// As [`valid`], which works with folders only.
fn valid_fleet(
    mut measure: impl FnMut() -> (SshFleet, crate::sandbox::Done),
) -> (SshFleet, crate::sandbox::Done) {
    let mut last = None;
    let (_, done) = valid(|| {
        let (fleet, done) = measure();
        last = Some(fleet);
        (Sandbox::new(), done)
    });
    (last.unwrap(), done)
}

/// The classic sequence for those who have only ssh: a check without the proxy, the fill, and a run at each rate.
#[test]
fn the_classic_sequence_runs_over_ssh() {
    let fleet = SshFleet::start();
    let mut proxy = fleet.sandbox.start("proxy --port 0 --cache 1MB");
    let port = proxy.port("proxy at");
    let done = fleet
        .sandbox
        .start(&format!(
            "bb --proxy 127.0.0.1:{port} --size 1MB --rates 20 --goal 15s --launch_win 1s --cool 2s --idle 1s --check 12s --hosts bench.toml \
             --robots 127.105.3.1-2 --servers 127.105.2.1:{}",
            free_port()
        ))
        .finish_within(5 * PATIENCE);
    // Short runs on a busy machine may be invalid, which the series reports.
    assert_eq!(done.code(), Some(0), "{done:?}");
    for part in ["no proxy at 20 requests per second", "filled with", "proxy at 20/s, run 1"] {
        assert!(done.err.contains(part), "{part}: {done:?}");
    }
    let directory = fleet.sandbox.path().join("runs/bakeoff/bb");
    let runs = std::fs::read_dir(directory.join("proxy")).unwrap().flatten();
    let run = runs.map(|entry| entry.path()).find(|path| path.join("clt1-client.log").exists()).unwrap();
    let (figures, _) =
        fleet.sandbox.lx("--objects ok_xact.count,offered.hit.ratio.obj", run.join("clt1-client.log"));
    assert!(figures["ok_xact.count"] > 50.0 && figures["offered.hit.ratio.obj"] > 0.0, "{figures:?}");
    assert!(run.join("srv1-server.log").exists() && directory.join("report.html").exists());
}

#[test]
fn hosts_that_cannot_be_reached_are_named() {
    let sandbox = Sandbox::new();
    // Nobody listens at port 1.
    sandbox.write(
        "bench.toml",
        "ssh_options = [\"-p\", \"1\"]\n[[host]]\nname = \"clt1\"\nssh = \"127.0.0.1\"\nroles = [\"client\"]\n",
    );
    let done = sandbox.polygraph("fleet ls --fleet ssh:bench.toml");
    assert_eq!(done.code(), Some(3), "{done:?}");
    assert!(done.err.contains("clt1: ssh ended") && done.err.contains("Connection refused"), "{done:?}");
    let none = sandbox.polygraph("fleet ls --fleet ssh:none.toml");
    assert_eq!(none.code(), Some(3), "{none:?}");
    assert!(none.err.contains("none.toml"), "{none:?}");
}
