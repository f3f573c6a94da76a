//! Control groups with a quota of processor time, for processes of a test. Making them needs root.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::sandbox::{Running, Sandbox};

use super::{Got, Row, Want, bench};

/// A control group, which is removed in the end.
struct ControlGroup(PathBuf);

impl ControlGroup {
    /// A group whose processes may use a processor for `quota` of every `period`.
    fn new(quota: Duration, period: Duration) -> ControlGroup {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("polygraph-test-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let version_1 = Path::new("/sys/fs/cgroup/cpu");
        let write = |path: PathBuf, text: String| {
            fs::write(&path, text).unwrap_or_else(|e| panic!("{}: {e} (needs root)", path.display()));
        };
        let make = |parent: &Path| {
            let group = parent.join(&name);
            fs::create_dir(&group).unwrap_or_else(|e| panic!("{}: {e} (needs root)", group.display()));
            group
        };
        let (quota, period) = (quota.as_micros(), period.as_micros());
        if version_1.join("cgroup.procs").exists() {
            let group = make(version_1);
            write(group.join("cpu.cfs_period_us"), period.to_string());
            write(group.join("cpu.cfs_quota_us"), quota.to_string());
            return ControlGroup(group);
        }
        let root = Path::new("/sys/fs/cgroup");
        write(root.join("cgroup.subtree_control"), "+cpu".into());
        let group = make(root);
        write(group.join("cpu.max"), format!("{quota} {period}"));
        ControlGroup(group)
    }

    /// Starts the program in the group.
    fn start(&self, sandbox: &Sandbox, words: &str) -> Running {
        let script = format!("{}.sh", words.split(' ').next().unwrap_or_default());
        let (program, procs) = (env!("CARGO_BIN_EXE_polygraph"), self.0.join("cgroup.procs"));
        sandbox.write(&script, &format!("set -e\necho $$ > {}\nexec {program} {words}\n", procs.display()));
        sandbox.start_program("/bin/sh", &script)
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        // Its processes may take a moment to leave.
        for _ in 0..50 {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Stops are shorter than what counts as a stall.
const PERIOD: Duration = Duration::from_millis(20);
/// The shortest that the kernel takes.
const QUOTA: Duration = Duration::from_millis(1);

const LOAD: &str = "--rep_sz exp:20KB --loops 1";
const ROBOTS: &str =
    "--robots 10 --req_rate 500/sec --preflight no --goal 4s --cool_phase none --log clt.log";

/// Robots and servers, of which one side has too little processor time.
fn measure(sandbox: &Sandbox, of_server: bool) -> Got {
    let group = ControlGroup::new(QUOTA, PERIOD);
    let words = format!("server --listen 127.0.0.1:0 --log srv.log {LOAD}");
    let mut server = if of_server { group.start(sandbox, &words) } else { sandbox.start(&words) };
    let words = format!("client --origin 127.0.0.1:{} {LOAD} {ROBOTS}", server.port("listening at"));
    let done = if of_server { sandbox.polygraph(&words) } else { group.start(sandbox, &words).finish() };
    server.stop();
    Got::of_logs(sandbox, "clt.log srv.log", &done)
}

/// Quotas that processes of the bench use up.
pub fn quotas() -> Vec<Row> {
    let name = "has a quota of processor time of 1 ms in 20 ms";
    vec![
        Row::new(
            "two commands",
            format!("the server {name}"),
            Want::invalid("server", "throttled").code(0),
            |sandbox| measure(sandbox, true),
        ),
        Row::new(
            "two commands",
            format!("the client {name}"),
            Want::invalid("client", "throttled").code(0),
            |sandbox| measure(sandbox, false),
        ),
        Row::new("a run", name, Want::invalid("host", "throttled"), |sandbox| {
            let group = ControlGroup::new(QUOTA, PERIOD);
            let rate = bench::SHORT.replace("150/sec", "500/sec");
            let done = group.start(sandbox, &format!("run --no_proxy {rate}")).finish();
            Got::of_run(sandbox, &done)
        }),
        // Nothing but the certificate keeps the transactions from success, however little time there is for them.
        Row::new(
            "a run",
            format!(
                "the servers' certificate is for another name, in a tunnel through a proxy, and it {name}"
            ),
            Want::invalid("server", "errors").before("throttled"),
            |sandbox| {
                let mut proxy = sandbox.start("proxy --port 0 --loops 1");
                let words = bench::refusing_words(sandbox, &mut proxy);
                let group = ControlGroup::new(QUOTA, PERIOD);
                Got::of_run(sandbox, &group.start(sandbox, &words).finish())
            },
        ),
    ]
}
