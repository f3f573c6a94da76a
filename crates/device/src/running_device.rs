//! A started device: the handle that runs use.

use std::fs;
use std::io::{self, BufReader, Write};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use rustix::process::{Resource, geteuid, getrlimit};
use tempfile::TempDir;

use crate::access_log::AccessCounts;
use crate::builtin::Builtin;
use crate::claim::{self, Claim};
use crate::device::{self, Device};
use crate::disk_usage;
use crate::error::{Error, Result};
use crate::params::Params;
use crate::ports::{is_listening, resolve_port};
use crate::process::{Process, ProcessEnd, ProcessEnvironment, run};
use crate::render::{RenderContext, Rendered, render};
use crate::spec::{Front, Spec};
use crate::unix_user::UnixUser;
use crate::usage::Usage;

/// How long a device may take until it listens.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// How long it may take to prepare or flush a store.
const STORE_TIMEOUT: Duration = Duration::from_secs(120);
/// Descriptors per process, more than any run needs. Some programs allocate memory for all that they may open.
const DESCRIPTORS: u64 = 65_536;
/// How many lines of a program's output an error contains.
const LAST_LINES: usize = 12;

/// A started device. Dropping it stops it and removes its work directory.
#[derive(Debug)]
pub struct RunningDevice {
    name: String,
    version: String,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Builtin(Box<Builtin>),
    Program(Box<Program>),
}

/// A device that is a program.
#[derive(Debug)]
struct Program {
    device: Device,
    spec: Spec,
    context: RenderContext,
    rendered: Rendered,
    environment: ProcessEnvironment,
    path: PathBuf,
    main: Option<Process>,
    logger: Option<Process>,
    front: Option<Process>,
    /// Processor seconds of processes that were stopped.
    before: f64,
    /// How many requests at the start of its log do not count.
    overlooked: u64,
    /// Removes the directories when dropped, which must be after the processes.
    _directories: (TempDir, Option<TempDir>, Claim),
}

impl Device {
    /// Starts the device and waits until it listens. The device runs until it is stopped or dropped, or until the *thread*
    /// that called this function ends, even by a `kill -9` of the process.
    ///
    /// # Errors
    /// If the device cannot be started with these parameters. The error contains the last messages of the program.
    pub fn start(&self, params: &Params) -> Result<RunningDevice> {
        match &self.kind {
            device::Kind::Builtin { .. } => RunningDevice::builtin(self, params),
            device::Kind::Program { spec, templates, .. } => {
                RunningDevice::program(self, spec, templates, params)
            }
        }
    }
}

impl RunningDevice {
    fn builtin(device: &Device, params: &Params) -> Result<RunningDevice> {
        let kind = Kind::Builtin(Box::new(Builtin::start(device.name(), params)?));
        Ok(RunningDevice { name: device.name().into(), version: device.version()?, kind })
    }

    fn program(
        device: &Device,
        spec: &Spec,
        templates: &[(String, String)],
        params: &Params,
    ) -> Result<RunningDevice> {
        let version = device.version()?;
        let mut program = Program::new(device, spec, templates, params)?;
        program.write_files(params)?;
        program.prepare()?;
        program.resume()?;
        Ok(RunningDevice { name: device.name().into(), version, kind: Kind::Program(Box::new(program)) })
    }

    /// The name of the device.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The version of the program.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The address on which it listens.
    pub fn address(&self) -> SocketAddr {
        match &self.kind {
            Kind::Builtin(builtin) => builtin.address(),
            Kind::Program(program) => program.context.address,
        }
    }

    /// The versions of HTTP that it speaks with robots, as written in `--http_version`; `None` if nobody says.
    pub fn http_versions(&self) -> Option<&[String]> {
        match &self.kind {
            Kind::Builtin(_) => None,
            Kind::Program(program) => program.rendered.http_versions.as_deref(),
        }
    }

    /// The setting, as in `--device_opt`, with which it would speak this version with robots; `None` if no setting alone suffices.
    pub fn setting_for_version(&self, version: &str) -> Option<&str> {
        let Kind::Program(program) = &self.kind else { return None };
        program.rendered.setting_for_version(version)
    }

    /// The process id of the program while it runs; `None` for the built-in proxy.
    pub fn pid(&self) -> Option<u32> {
        match &self.kind {
            Kind::Builtin(_) => None,
            Kind::Program(program) => program.main.as_ref().map(Process::id),
        }
    }

    /// The command line of the program; empty for the built-in proxy.
    pub fn command(&self) -> Vec<String> {
        match &self.kind {
            Kind::Builtin(_) => Vec::new(),
            Kind::Program(program) => {
                let path = program.path.display().to_string();
                std::iter::once(path).chain(program.rendered.args.clone()).collect()
            }
        }
    }

    /// Its configuration files, each with its path in the work directory and its text.
    pub fn configs(&self) -> &[(String, String)] {
        match &self.kind {
            Kind::Builtin(_) => &[],
            Kind::Program(program) => &program.rendered.files,
        }
    }

    /// Its private directory, which is removed with the device.
    pub fn work_directory(&self) -> Option<&Path> {
        match &self.kind {
            Kind::Builtin(_) => None,
            Kind::Program(program) => Some(&program.context.work),
        }
    }

    /// Whether it runs: it was not halted and has not ended for another reason.
    pub fn is_up(&self) -> bool {
        match &self.kind {
            Kind::Builtin(builtin) => builtin.is_up(),
            Kind::Program(program) => program.is_up(),
        }
    }

    /// Its resource usage: processor time since its first start, including a logger; memory and processes at present.
    pub fn usage(&self) -> Usage {
        match &self.kind {
            Kind::Builtin(builtin) => builtin.usage(),
            Kind::Program(program) => program.usage(),
        }
    }

    /// Bytes of its store on disk at present; 0 for the built-in proxy.
    pub fn stored_bytes(&self) -> u64 {
        match &self.kind {
            Kind::Builtin(_) => 0,
            Kind::Program(program) => disk_usage::occupied(&program.context.store),
        }
    }

    /// The counts of its access log so far. They are complete when the device is halted.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub fn counts(&self) -> Result<AccessCounts> {
        match &self.kind {
            Kind::Builtin(builtin) => Ok(builtin.counts()),
            Kind::Program(program) => program.counts(),
        }
    }

    /// Excludes its first `requests` requests, which it has already answered, from all counts.
    pub fn overlook(&mut self, requests: u64) {
        match &mut self.kind {
            Kind::Builtin(builtin) => builtin.overlook(requests),
            Kind::Program(program) => program.overlooked = requests,
        }
    }

    /// Halts the device in order: it accepts no more connections, and its log is complete. Its disk store is kept.
    /// Halting a halted device does nothing.
    pub fn halt(&mut self) -> ProcessEnd {
        match &mut self.kind {
            Kind::Builtin(builtin) => {
                builtin.halt();
                ProcessEnd { early: None, killed: false }
            }
            Kind::Program(program) => program.halt(),
        }
    }

    /// Kills the device like a power failure: all of its processes end at once and may lose log lines that they have
    /// not written. Its disk store remains as it is.
    pub fn kill(&mut self) {
        match &mut self.kind {
            Kind::Builtin(builtin) => builtin.halt(),
            Kind::Program(program) => program.kill(),
        }
    }

    /// Starts the device again at the same address after [`RunningDevice::halt`] or [`RunningDevice::kill`], and
    /// waits until it listens. The process is a child of the calling thread and ends with it.
    ///
    /// # Errors
    /// If the device does not start.
    pub fn resume(&mut self) -> Result<()> {
        match &mut self.kind {
            Kind::Builtin(builtin) => builtin.resume(),
            Kind::Program(program) => program.resume(),
        }
    }

    /// Halts and resumes the device.
    ///
    /// # Errors
    /// If the device does not start.
    pub fn restart(&mut self) -> Result<ProcessEnd> {
        let end = self.halt();
        self.resume().map(|()| end)
    }

    /// Empties its store: after that, no earlier request causes a hit.
    ///
    /// # Errors
    /// If the flush command fails or the device does not restart.
    pub fn flush(&mut self) -> Result<()> {
        match &mut self.kind {
            Kind::Builtin(builtin) => {
                builtin.halt();
                builtin.resume()
            }
            Kind::Program(program) => program.flush(),
        }
    }

    /// Copies configuration files, messages and the access log to `directory`, which it creates. Halt the device
    /// first, so that the log is complete.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn keep(&self, directory: &Path) -> Result<()> {
        match &self.kind {
            Kind::Builtin(_) => Ok(()),
            Kind::Program(program) => program.keep(directory),
        }
    }
}

impl Program {
    fn new(device: &Device, spec: &Spec, templates: &[(String, String)], params: &Params) -> Result<Program> {
        let path = device.program(&spec.program)?;
        let address = resolve_port(params.listen).map_err(|source| Error::Address {
            device: device.name().into(),
            address: params.listen,
            source,
        })?;
        let user = match &spec.user {
            Some(user) if geteuid().is_root() => Some(
                UnixUser::find(user, address)
                    .ok_or_else(|| Error::User { device: device.name().into(), user: user.clone() })?,
            ),
            _ => None,
        };
        let work = private_directory(&std::env::temp_dir(), device.name(), user)?;
        // Leftovers of killed runs.
        claim::tidy_up(&std::env::temp_dir());
        let store = match &params.disk_directory {
            Some(place) => Some(private_directory(place, device.name(), user)?),
            None => None,
        };
        let owned: Vec<&Path> =
            std::iter::once(work.path()).chain(store.as_ref().map(TempDir::path)).collect();
        let claim = Claim::new(&owned).map_err(Error::file("claim", work.path()))?;
        let descriptors = getrlimit(Resource::Nofile).maximum.unwrap_or(DESCRIPTORS).min(DESCRIPTORS);
        let context = RenderContext {
            address,
            work: work.path().into(),
            store: store.as_ref().map_or_else(|| work.path().join("store"), |store| store.path().into()),
            service: service_name(),
            descriptors,
        };
        let rendered = render(device.name(), spec, templates, params, &context)?;
        let environment = ProcessEnvironment { work: work.path().into(), user, descriptors };
        let (device, spec, _directories) = (device.clone(), spec.clone(), (work, store, claim));
        let (main, logger, front) = (None, None, None);
        Ok(Program {
            device,
            spec,
            context,
            rendered,
            environment,
            path,
            main,
            logger,
            front,
            before: 0.0,
            overlooked: 0,
            _directories,
        })
    }

    fn write_files(&self, params: &Params) -> Result<()> {
        let work = &self.context.work;
        for directory in &self.spec.directories {
            self.make_directory(&work.join(directory))?;
        }
        self.make_directory(&self.context.store)?;
        for (name, text) in &self.rendered.files {
            let path = work.join(name);
            path.parent().map_or(Ok(()), |parent| self.make_directory(parent))?;
            fs::write(&path, text).map_err(Error::file("write", path))?;
        }
        for (name, source) in &params.options {
            if !source.is_empty() && self.spec.options.get(name).is_some_and(|option| option.file) {
                self.copy_file(source, &work.join(name))?;
            }
        }
        if !params.hosts.is_empty() {
            let path = work.join("hosts");
            fs::write(&path, params.hosts_text()).map_err(Error::file("write", path))?;
        }
        Ok(())
    }

    /// Copies a file of the user, which may contain a private key, to a place where only the device can read it.
    fn copy_file(&self, source: &str, copy: &Path) -> Result<()> {
        let bytes = fs::read(source).map_err(Error::file("read", source))?;
        let mut options = fs::OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let written = options.open(copy).and_then(|mut file| file.write_all(&bytes));
        written.map_err(Error::file("write", copy))?;
        give(copy, self.environment.user)
    }

    /// Creates a directory inside the work directory, and its parents, for the user of the device.
    fn make_directory(&self, path: &Path) -> Result<()> {
        if !path.is_dir() {
            path.parent().map_or(Ok(()), |parent| self.make_directory(parent))?;
            fs::create_dir(path).map_err(Error::file("make", path))?;
            give(path, self.environment.user)?;
        }
        Ok(())
    }

    /// Prepares an empty store, if the device needs that.
    fn prepare(&self) -> Result<()> {
        let Some(args) = &self.rendered.prepare else { return Ok(()) };
        run(&self.path, args, &self.environment, "prepare", STORE_TIMEOUT)?
            .map_err(|problem| self.failed(problem, "prepare"))
    }

    fn resume(&mut self) -> Result<()> {
        if self.main.is_some() {
            return Ok(());
        }
        let mut main = Process::start(&self.path, &self.rendered.args, &self.environment, "program")?;
        let address = self.context.address;
        let ready = match self.active_front() {
            None => main.wait_until(START_TIMEOUT, |pid| is_listening(pid, address)),
            Some((front, _)) => {
                let socket = self.context.work.join(&front.socket);
                main.wait_until(START_TIMEOUT, |_| UnixStream::connect(&socket).is_ok())
            }
        };
        if let Err(problem) = ready {
            main.stop();
            self.remove_leftovers();
            return Err(self.failed(problem, "program"));
        }
        thread::sleep(Duration::from_secs_f64(self.spec.settle_s));
        self.main = Some(main);
        if let Err(error) = self.start_logger().and_then(|()| self.start_front()) {
            self.halt();
            return Err(error);
        }
        Ok(())
    }

    /// The program in front, if one runs with these parameters, and its arguments.
    fn active_front(&self) -> Option<(&Front, &[String])> {
        self.spec.front.as_ref().zip(self.rendered.front.as_deref())
    }

    fn start_front(&mut self) -> Result<()> {
        let Some((front, args)) = self.active_front() else { return Ok(()) };
        let path = self.device.program_of(&front.program, front.package.as_deref())?;
        let mut process = Process::start(&path, args, &self.environment, "front")?;
        let address = self.context.address;
        process
            .wait_until(START_TIMEOUT, |pid| is_listening(pid, address))
            .map_err(|problem| self.failed(problem, "front"))?;
        self.front = Some(process);
        Ok(())
    }

    fn is_up(&self) -> bool {
        let is_up = |process: &Option<Process>| process.as_ref().is_some_and(|process| !process.has_ended());
        is_up(&self.main) && (self.rendered.front.is_none() || is_up(&self.front))
    }

    fn start_logger(&mut self) -> Result<()> {
        let Some(logger) = &self.spec.logger else { return Ok(()) };
        let path = self.device.program(&logger.program)?;
        let mut process = Process::start(&path, &self.rendered.logger, &self.environment, "logger")?;
        let mapped = |pid: u32| {
            fs::read_to_string(format!("/proc/{pid}/maps")).is_ok_and(|maps| maps.contains(&logger.maps))
        };
        process.wait_until(START_TIMEOUT, mapped).map_err(|problem| self.failed(problem, "logger"))?;
        self.logger = Some(process);
        Ok(())
    }

    fn halt(&mut self) -> ProcessEnd {
        let mut end = ProcessEnd { early: None, killed: false };
        // Without it, no more requests come.
        let front = self.front.take().map(|mut front| {
            self.before += front.usage().cpu_seconds;
            front.stop()
        });
        if let Some(mut main) = self.main.take() {
            if !main.has_ended() {
                thread::sleep(Duration::from_secs_f64(self.spec.log.delay_s));
            }
            self.before += main.usage().cpu_seconds;
            end = main.stop();
        }
        // The logger ends last, so that it logs everything.
        if let Some(mut logger) = self.logger.take() {
            self.before += logger.usage().cpu_seconds;
            logger.stop();
        }
        self.remove_leftovers();
        ProcessEnd { early: end.early.or(front.and_then(|front| front.early)), ..end }
    }

    fn kill(&mut self) {
        for mut process in self.front.take().into_iter().chain(self.main.take()).chain(self.logger.take()) {
            self.before += process.usage().cpu_seconds;
            process.reap();
        }
        self.remove_leftovers();
    }

    fn flush(&mut self) -> Result<()> {
        if let Some(flush) = self.spec.flush.as_ref().filter(|_| self.main.is_some()) {
            let path = self.device.program(&flush.program)?;
            return run(&path, &self.rendered.flush, &self.environment, "flush", STORE_TIMEOUT)?
                .map_err(|problem| self.failed(problem, "flush"));
        }
        let was_up = self.main.is_some();
        self.halt();
        empty(&self.context.store)?;
        self.prepare()?;
        if was_up { self.resume() } else { Ok(()) }
    }

    fn usage(&self) -> Usage {
        let ended = Usage { cpu_seconds: self.before, ..Usage::default() };
        self.main
            .iter()
            .chain(&self.logger)
            .chain(&self.front)
            .fold(ended, |sum, process| sum.plus(&process.usage()))
    }

    fn counts(&self) -> Result<AccessCounts> {
        let path = self.context.work.join(&self.spec.log.file);
        match fs::File::open(&path) {
            Ok(file) => self.spec.log.count_after(self.overlooked, BufReader::with_capacity(1 << 20, file)),
            // Some programs create the log with its first line.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(AccessCounts::default()),
            Err(error) => Err(error),
        }
        .map_err(Error::file("read", path))
    }

    fn keep(&self, directory: &Path) -> Result<()> {
        let outputs = ["prepare", "program", "logger", "front", "flush"];
        let outputs = outputs.iter().flat_map(|name| [format!("{name}.out"), format!("{name}.err")]);
        let configs = self.rendered.files.iter().map(|(name, _)| name.clone());
        let logs = self.spec.messages.iter().chain([&self.spec.log.file]).cloned();
        for name in configs.chain(outputs).chain(logs) {
            let (from, to) = (self.context.work.join(&name), directory.join(&name));
            // Files that are missing or empty are not copied.
            if fs::metadata(&from).is_ok_and(|file| file.len() > 0) {
                to.parent().map_or(Ok(()), fs::create_dir_all).map_err(Error::file("make", &to))?;
                fs::copy(&from, &to).map_err(Error::file("write", to))?;
            }
        }
        Ok(())
    }

    /// An error with the last lines of the programs' output.
    fn failed(&self, problem: String, name: &str) -> Error {
        let files = [format!("{name}.out"), format!("{name}.err")];
        let texts = self.spec.messages.iter().chain(&files).map(|file| self.context.work.join(file));
        let texts: Vec<String> = texts
            .filter_map(|path| fs::read(path).ok())
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .collect();
        let last = |text: &String| {
            let lines: Vec<String> = text.lines().map(|line| format!("\n  {line}")).collect();
            lines[lines.len().saturating_sub(LAST_LINES)..].concat()
        };
        let messages = texts.iter().map(last).collect::<Vec<_>>().concat();
        Error::Failed { device: self.device.name().into(), problem, messages }
    }

    /// Removes files that the program leaves outside of its directories.
    fn remove_leftovers(&self) {
        for pattern in &self.rendered.leftovers {
            let path = Path::new(pattern);
            let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else { continue };
            let name = name.to_string_lossy();
            let is_meant = |found: &str| match name.strip_suffix('*') {
                Some(start) => found.starts_with(start),
                None => found == name,
            };
            for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
                if is_meant(&entry.file_name().to_string_lossy()) {
                    let _ = fs::remove_file(entry.path());
                }
            }
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // A dropped device no longer needs its log.
        self.spec.log.delay_s = 0.0;
        self.halt();
    }
}

/// A private directory of `user` in `place`.
fn private_directory(place: &Path, device: &str, user: Option<UnixUser>) -> Result<TempDir> {
    let prefix = format!("{}{device}-", claim::PREFIX);
    let made = tempfile::Builder::new().prefix(&prefix).tempdir_in(place);
    let directory = made.map_err(Error::file("make a directory in", place))?;
    give(directory.path(), user)?;
    Ok(directory)
}

fn give(path: &Path, user: Option<UnixUser>) -> Result<()> {
    let Some(user) = user else { return Ok(()) };
    std::os::unix::fs::chown(path, Some(user.uid), Some(user.gid)).map_err(Error::file("give away", path))
}

/// Removes everything in a directory.
fn empty(directory: &Path) -> Result<()> {
    let wrong = || Error::file("empty", directory);
    for entry in fs::read_dir(directory).map_err(wrong())? {
        let entry = entry.map_err(wrong())?;
        let is_directory = entry.file_type().map_err(wrong())?.is_dir();
        let path = entry.path();
        if is_directory { fs::remove_dir_all(path) } else { fs::remove_file(path) }.map_err(wrong())?;
    }
    Ok(())
}

/// A name that no other device of this machine uses.
fn service_name() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("polygraph{}n{}", std::process::id(), NEXT.fetch_add(1, Relaxed))
}
