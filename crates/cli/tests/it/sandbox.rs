//! A temporary folder to run the program in, and children that never outlive their test.

use std::collections::HashMap;
use std::io::Read;
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::leftovers;

/// Whatever takes longer hangs. Generous, because the machine may be busy with other work.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Measurements that would disturb each other hold this lock. Tests of behaviour run beside them.
pub fn quiet() -> MutexGuard<'static, ()> {
    static QUIET: Mutex<()> = Mutex::new(());
    QUIET.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// The kernel keeps the neighbours (ARP) of all namespaces in one table, of 1024 entries by default (`gc_thresh3`). While a lab with
/// hundreds of addresses on its cables fills it, packets to new neighbours are dropped everywhere.
static NEIGHBOURS: RwLock<()> = RwLock::new(());

/// Held by tests that need a few neighbours.
pub fn few_neighbours() -> RwLockReadGuard<'static, ()> {
    NEIGHBOURS.read().unwrap_or_else(PoisonError::into_inner)
}

/// Held by tests that may fill the table of neighbours. After [`quiet`], if both are needed: whoever waits for this keeps all tests that
/// need a few neighbours waiting.
pub fn many_neighbours() -> RwLockWriteGuard<'static, ()> {
    NEIGHBOURS.write().unwrap_or_else(PoisonError::into_inner)
}

/// The engines that this host allows, as `--engine` calls them.
pub fn engines() -> Vec<&'static str> {
    polygraph_engine::Engine::available().into_iter().map(polygraph_engine::Engine::name).collect()
}

/// A port that nobody listens on. It lies between the local ports of the paper's scripts (up to 30000) and
/// those that Linux gives to outgoing connections (from 32768), so no connection can take it away. A socket with the name of the port,
/// which lives as long as this process, reserves it: other processes of tests get other ports.
pub fn free_port() -> u16 {
    static RESERVED: Mutex<Vec<UnixListener>> = Mutex::new(Vec::new());
    let mut reserved = RESERVED.lock().unwrap_or_else(PoisonError::into_inner);
    let reservation = |port: u16| {
        let name = SocketAddr::from_abstract_name(format!("polygraph-test-port-{port}")).ok()?;
        let name = UnixListener::bind_addr(&name).ok()?;
        TcpListener::bind(("0.0.0.0", port)).is_ok().then_some((port, name))
    };
    let (port, name) = (30_100..32_100).find_map(reservation).expect("one of 2000 ports is free");
    reserved.push(name);
    port
}

/// A temporary folder.
pub struct Sandbox(tempfile::TempDir);

impl Sandbox {
    pub fn new() -> Sandbox {
        leftovers::remove();
        Sandbox(tempfile::tempdir().unwrap())
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Links the program under another name, as `make install` does.
    pub fn link(&self, name: &str) {
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_polygraph"), self.path().join(name)).unwrap();
    }

    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path().join(name), text).unwrap();
    }

    pub fn read(&self, name: impl AsRef<Path>) -> String {
        let path = self.path().join(name);
        std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
    }

    /// Waits until this file has content.
    pub fn wait_for_file(&self, name: &str) {
        let deadline = Instant::now() + PATIENCE;
        while !self.path().join(name).metadata().is_ok_and(|file| file.len() > 0) {
            assert!(Instant::now() < deadline, "{name} is empty");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Runs `polygraph` with these words to its end.
    pub fn polygraph(&self, words: &str) -> Done {
        self.start(words).finish()
    }

    /// Starts `polygraph` with these words.
    pub fn start(&self, words: &str) -> Running {
        self.start_program(env!("CARGO_BIN_EXE_polygraph"), words)
    }

    /// Starts a program in the folder.
    pub fn start_program(&self, program: &str, words: &str) -> Running {
        let mut child = Command::new(program)
            .args(words.split_whitespace())
            .current_dir(self.path())
            // Settings of whoever runs the tests have no part in them.
            .env("XDG_CONFIG_HOME", self.path().join("none"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|e| panic!("cannot start {program}: {e}"));
        let output = Arc::new((Mutex::new([String::new(), String::new()]), Condvar::new()));
        let readers = [
            follow(child.stdout.take().unwrap(), 0, &output),
            follow(child.stderr.take().unwrap(), 1, &output),
        ];
        Running { child, output, readers: readers.into(), what: format!("{program} {words}") }
    }

    /// The only result directory there is in `runs`.
    pub fn result(&self) -> PathBuf {
        self.result_in("runs")
    }

    /// The only result directory there is in a directory of runs.
    pub fn result_in(&self, runs: &str) -> PathBuf {
        let entries = std::fs::read_dir(self.path().join(runs)).unwrap_or_else(|e| panic!("{runs}: {e}"));
        // The index of runs is a file beside them.
        let mut found: Vec<PathBuf> =
            entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect();
        assert_eq!(found.len(), 1, "{found:?}");
        found.remove(0)
    }

    /// What `lx` extracts from a log, and its remarks.
    pub fn lx(&self, options: &str, log: impl AsRef<Path>) -> (HashMap<String, f64>, String) {
        let done = self.polygraph(&format!("lx {options} {}", log.as_ref().display()));
        assert_eq!(done.code(), Some(0), "{done:?}");
        // Lists and texts are not numbers.
        let read = |line: &str| {
            let (name, value) = line.rsplit_once(": ")?;
            Some((name.to_owned(), value.parse().ok()?))
        };
        (done.out.lines().filter_map(read).collect(), done.err)
    }
}

type Output = Arc<(Mutex<[String; 2]>, Condvar)>;

fn follow(mut pipe: impl Read + Send + 'static, which: usize, output: &Output) -> JoinHandle<()> {
    let output = Arc::clone(output);
    std::thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok(n @ 1..) = pipe.read(&mut bytes) {
            output.0.lock().unwrap()[which].push_str(&String::from_utf8_lossy(&bytes[..n]));
            output.1.notify_all();
        }
        output.1.notify_all();
    })
}

/// A program that runs. It is killed when this is dropped, with all processes below it.
pub struct Running {
    child: Child,
    output: Output,
    readers: Vec<JoinHandle<()>>,
    what: String,
}

impl Running {
    /// Waits until a line of output contains `text`, and returns that line.
    pub fn wait_for(&mut self, text: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        let mut output = self.output.0.lock().unwrap();
        loop {
            let lines = output.iter().flat_map(|text| text.split_inclusive('\n'));
            if let Some(line) = lines.filter(|line| line.ends_with('\n')).find(|line| line.contains(text)) {
                return line.trim_end().to_owned();
            }
            let ended = self.readers.iter().all(JoinHandle::is_finished);
            assert!(!ended && Instant::now() < deadline, "no `{text}` from {}: {output:?}", self.what);
            output = self.output.1.wait_timeout(output, Duration::from_millis(100)).unwrap().0;
        }
    }

    /// The port of the address in the line that contains `text`.
    pub fn port(&mut self, text: &str) -> u16 {
        let line = self.wait_for(text);
        let digits = line.rsplit_once(':').unwrap().1;
        let digits = digits.split(|c: char| !c.is_ascii_digit()).next().unwrap();
        digits.parse().unwrap_or_else(|_| panic!("{line}"))
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap_or_else(|e| panic!("{}: {e}", self.what));
    }

    /// Its process id.
    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// True if it has ended.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Asks it to stop, and waits.
    pub fn stop(self) -> Done {
        self.signal(Signal::TERM);
        self.finish()
    }

    /// Waits for its end.
    pub fn finish(self) -> Done {
        self.finish_within(PATIENCE)
    }

    /// Waits for its end; what takes longer hangs.
    pub fn finish_within(mut self, patience: Duration) -> Done {
        let deadline = Instant::now() + patience;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(Instant::now() < deadline, "{} hangs: {:?}", self.what, self.output.0.lock().unwrap());
            std::thread::sleep(Duration::from_millis(10));
        };
        self.readers.drain(..).for_each(|reader| reader.join().unwrap());
        let [out, err] = self.output.0.lock().unwrap().clone();
        Done { status, out, err }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Once it has been waited for, its process id may be that of another process.
        if matches!(self.child.try_wait(), Ok(None)) {
            leftovers::kill_family(self.pid());
            let _ = self.child.wait();
        }
    }
}

/// A program that has ended.
#[derive(Debug)]
pub struct Done {
    status: ExitStatus,
    pub out: String,
    pub err: String,
}

impl Done {
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }

    pub fn killed_by(&self) -> Option<Signal> {
        self.status.signal().and_then(Signal::from_named_raw)
    }

    /// The word of the verdict.
    pub fn verdict(&self) -> &str {
        let words = ["VALID", "FAILED", "INVALID"];
        let verdict = self.out.lines().find_map(|line| {
            // Who was the limit stands behind it: `INVALID (client): ...`.
            let (word, _) = line.split_once(": ")?;
            let word = word.split(" (").next()?;
            words.contains(&word).then_some(word)
        });
        verdict.unwrap_or_else(|| panic!("no verdict: {self:?}"))
    }
}

/// Attempts to measure on a machine that also runs other tests. If other work makes the bench late in one of four
/// attempts, all four fail with a probability of 0.25^4 = 0.4 %.
pub const ATTEMPTS: usize = 4;

/// Repeats a measurement until it is VALID, [`ATTEMPTS`] times at most. The only accepted reasons for INVALID are a late
/// and a saturated bench: the machine was busy with other work, and the figures must not be used. Any other verdict and
/// reason fails the test, and so does a machine on which no attempt is VALID.
pub fn valid(mut measure: impl FnMut() -> (Sandbox, Done)) -> (Sandbox, Done) {
    let mut last = None;
    for _ in 0..ATTEMPTS {
        let (sandbox, done) = measure();
        let busy = ["requests started late", "was saturated"].iter().any(|why| done.out.contains(why));
        if done.verdict() == "VALID" || !busy {
            assert_eq!((done.verdict(), done.code()), ("VALID", Some(0)), "{done:?}");
            return (sandbox, done);
        }
        last = Some(done);
    }
    panic!("none of {ATTEMPTS} attempts was VALID, because the machine is busy; the last one: {last:?}");
}
