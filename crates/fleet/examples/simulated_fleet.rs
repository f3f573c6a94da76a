//! A fleet of many simulated agents that speak the real protocol, and a controller that runs a test with them. It measures what a
//! fleet costs the server of NATS and the controller (docs/scale.md):
//!
//! ```text
//! nats-server -js -sd /tmp/nats &
//! simulated_fleet agents nats://127.0.0.1 1000 &
//! polygraph mon --web --fleet nats://127.0.0.1 &
//! simulated_fleet control nats://127.0.0.1 1000 60 $(pidof nats-server) $(pidof polygraph)
//! ```
//!
//! Agents are tasks of one process, each with its own connection. Their processes are only states and live statistics, one of each
//! per second, and end by themselves when they are asked to. Monitors are real.

#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "the example is a program that measures")]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use polygraph_fleet::bus::{Bus, BusMessage};
use polygraph_fleet::controller::RunFile;
use polygraph_fleet::protocol::{
    ALL_AGENTS, AgentRequest, Answer, Assignment, Inventory, ProcessStage, RunState, SideAssignment,
    SideState, StoredFile, agent_subject, bucket, decode, encode, live_subject, state_subject,
};
use polygraph_fleet::{AgentName, BusOptions, Fleet, FleetRun, LostPolicy, RelativePath, RunId, block_on};
use polygraph_stats::Side;
use serde_json::json;

type Measured = Result<(), Box<dyn std::error::Error>>;

fn main() -> Measured {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["agents", url, count] => {
            block_on(tokio::task::LocalSet::new().run_until(agents(url, count.parse()?)))?
        }
        ["control", url, count, seconds, nats, ref monitors @ ..] => {
            let mut watched = vec![("NATS", nats.parse()?), ("controller", std::process::id())];
            for pid in monitors {
                watched.push(("monitor", pid.parse()?));
            }
            block_on(control(url, count.parse()?, seconds.parse()?, watched))?
        }
        _ => Err("agents URL COUNT, or control URL COUNT SECONDS PID_OF_NATS [PID_OF_MONITOR...]".into()),
    }
}

fn options(url: &str, client: &str) -> BusOptions {
    BusOptions { url: url.to_owned(), client: client.to_owned(), anonymous: true, ..BusOptions::default() }
}

/// What an agent with one process keeps.
struct Simulated {
    bus: Bus,
    name: AgentName,
    directory: PathBuf,
    run: RefCell<Option<(Assignment, ProcessStage)>>,
    lines: RefCell<u64>,
    start_unix_us: u64,
}

async fn agents(url: &str, count: usize) -> Measured {
    let directory = std::env::temp_dir().join(format!("simulated-fleet-{}", std::process::id()));
    std::fs::create_dir_all(&directory)?;
    let begin = Instant::now();
    let mut tasks = Vec::new();
    for number in 0..count {
        let name: AgentName = format!("a{number:04}").parse()?;
        let bus = Bus::connect(&options(url, name.as_str()), false).await?;
        let agent = Simulated {
            bus,
            name,
            directory: directory.clone(),
            run: RefCell::default(),
            lines: RefCell::default(),
            start_unix_us: u64::try_from(unix_time().as_micros())?,
        };
        tasks.push(tokio::task::spawn_local(Rc::new(agent).serve()));
    }
    println!("{count} agents connected after {:.2} s", begin.elapsed().as_secs_f64());
    for task in tasks {
        task.await?;
    }
    Ok(())
}

impl Simulated {
    async fn serve(self: Rc<Self>) {
        let (Ok(mut own), Ok(mut all)) = (
            self.bus.subscribe(agent_subject(&self.name)).await,
            self.bus.subscribe(ALL_AGENTS.to_owned()).await,
        ) else {
            return;
        };
        // Agents do not publish at the same moment, as hosts do not.
        let phase = u64::from(self.name.as_str().bytes().map(u32::from).sum::<u32>() * 37 % 1000);
        let first = tokio::time::Instant::now() + Duration::from_millis(phase);
        let mut heartbeat = tokio::time::interval_at(first, Duration::from_secs(1));
        loop {
            let message = tokio::select! {
                message = own.next() => message,
                message = all.next() => message,
                _ = heartbeat.tick() => {
                    self.publish().await;
                    continue;
                }
            };
            let Some(message) = message else { return };
            drop(tokio::task::spawn_local(Rc::clone(&self).answer(message)));
        }
    }

    async fn publish(&self) {
        let is_active = self.run.borrow().as_ref().is_some_and(|(_, stage)| stage.runs());
        if is_active {
            *self.lines.borrow_mut() += 1;
            if let Some(state) = self.state() {
                self.bus.publish(state_subject(&self.name), None, encode(&state)).await;
            }
            self.bus.publish(live_subject(&self.name), None, self.statistics()).await;
        }
    }

    /// A message as processes publish it (docs/monitor.md): a client at 100 requests per second with hits and errors, or a server.
    fn statistics(&self) -> Vec<u8> {
        let second = *self.lines.borrow();
        let is_client = self
            .run
            .borrow()
            .as_ref()
            .is_some_and(|(assignment, _)| assignment.sides[0].side == Side::Client);
        let counts = |seconds: u64| {
            let requests = 100 * seconds;
            json!({
                "seconds": seconds, "started": requests, "ok": requests - seconds, "failed": seconds, "rptm_us": requests * 1_350_000,
                "basic": if is_client { requests } else { 0 }, "hits": if is_client { requests / 2 } else { 0 },
                "offered_hits": requests * 55 / 100, "reply_bytes": requests * 13_312, "cpu_s": 0.01, "busiest_s": 0.01,
            })
        };
        let verdict = json!({
            "word": "VALID", "meaning": "the device sustained the load and the bench kept up",
            "findings": ["only 820 transactions ended in phase meas: means are imprecise"],
        });
        let message = json!({
            "format": 1, "host": self.name, "pid": 1000, "side": if is_client { "client" } else { "server" }, "label": "simulated",
            "workload": "PolyMix-4", "version": "0.2.0", "start_unix_us": self.start_unix_us, "elapsed_s": second, "state": "running",
            "end": null, "planned_rate": 100.0, "interval": counts(1), "total": counts(second), "rptm_p95_us": 4_000_000,
            "phase": { "name": "top1", "index": 1, "planned": 10, "elapsed_s": second, "duration_s": 14_400.0, "primary": true },
            "open_connections": 135, "transactions": 135, "agents": 250, "rss_bytes": 50_000_000,
            "errors": [{ "number": "c12", "text": "the connection was refused", "count": second, "fails": true }],
            "verdict": if is_client { verdict } else { json!(null) },
        });
        message.to_string().into_bytes()
    }

    fn state(&self) -> Option<RunState> {
        let run = self.run.borrow();
        let (assignment, stage) = run.as_ref()?;
        let lines = *self.lines.borrow();
        let line = " 1 s left  p        16.0 replies/s  response 0.227 ms  hits   0.0 %  errors 0  open 0";
        let side = SideState {
            side: assignment.sides[0].side,
            stage: *stage,
            lines,
            last_lines: (0..lines.min(24)).map(|number| format!("{number} {line}")).collect(),
            log_bytes: lines * 1000,
        };
        Some(RunState {
            agent: self.name.clone(),
            instance: 1,
            run: assignment.run.clone(),
            sides: vec![side],
        })
    }

    async fn answer(self: Rc<Self>, message: BusMessage) {
        let answer = match decode::<AgentRequest>(&message.bytes) {
            Ok(request) => self.answer_to(request).await,
            Err(error) => Answer::Refused(error.to_string()),
        };
        if let Some(reply) = message.reply {
            self.bus.publish(reply, None, encode(&answer)).await;
        }
    }

    async fn answer_to(&self, request: AgentRequest) -> Answer {
        match request {
            AgentRequest::Inventory => Answer::Inventory(Box::new(Inventory {
                name: self.name.clone(),
                instance: 1,
                host: self.name.to_string(),
                version: "simulated".to_owned(),
                client: true,
                server: true,
                weight: 1.0,
                cores: 8,
                memory: 16 << 30,
                disk_free: 1 << 40,
                busy: None,
            })),
            AgentRequest::Clock => Answer::Clock(u64::try_from(unix_time().as_nanos()).unwrap_or(u64::MAX)),
            AgentRequest::Prepare(assignment) => {
                let path = self.directory.join(format!("{}.pg", self.name));
                for file in &assignment.files {
                    if let Err(error) =
                        self.bus.get_file(&bucket(&assignment.run), &file.to_string(), &path).await
                    {
                        return Answer::Refused(error.to_string());
                    }
                }
                *self.run.borrow_mut() = Some((*assignment, ProcessStage::Prepared));
                Answer::Done
            }
            AgentRequest::Start { .. } => {
                self.set(ProcessStage::Listening);
                Answer::Done
            }
            AgentRequest::Stop { .. } => {
                self.set(ProcessStage::Ended(Some(130)));
                if let Some(state) = self.state() {
                    self.bus.publish(state_subject(&self.name), None, encode(&state)).await;
                }
                Answer::Done
            }
            AgentRequest::State { .. } => {
                self.state().map_or_else(|| Answer::Refused("no run".to_owned()), Answer::State)
            }
            AgentRequest::Files { .. } => Answer::Files(vec![self.log()]),
            AgentRequest::Send { run, .. } => {
                let path = self.directory.join(format!("{}.log", self.name));
                let sent = match std::fs::write(&path, vec![7; 100_000]) {
                    Ok(()) => self.bus.put_file(&bucket(&run), &self.log().object, &path).await,
                    Err(error) => Err(error.into()),
                };
                sent.map_or_else(|error| Answer::Refused(error.to_string()), |_| Answer::Done)
            }
            other => Answer::Refused(format!("not simulated: {other:?}")),
        }
    }

    fn set(&self, stage: ProcessStage) {
        if let Some((_, known)) = self.run.borrow_mut().as_mut() {
            *known = stage;
        }
    }

    fn log(&self) -> StoredFile {
        StoredFile {
            name: RelativePath::try_from("client.log".to_owned()).unwrap_or_default(),
            object: format!("{}/client.log", self.name),
            bytes: 100_000,
        }
    }
}

fn unix_time() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Processor time in seconds and resident memory in bytes of a process.
fn usage(pid: u32) -> (f64, f64) {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields: Vec<f64> = text
        .rsplit_once(')')
        .map_or("", |(_, rest)| rest)
        .split_whitespace()
        .map(|field| field.parse().unwrap_or(0.0))
        .collect();
    let at = |number: usize| fields.get(number).copied().unwrap_or(0.0);
    // Ticks of 10 ms, pages of 4 KB: the values of Linux on x86.
    ((at(11) + at(12)) / 100.0, at(21) * 4096.0)
}

/// Prints the cost of each step.
struct Steps {
    /// The processes whose cost is of interest.
    watched: Vec<(&'static str, u32)>,
    begin: Instant,
    used: Vec<f64>,
}

impl Steps {
    fn new(watched: Vec<(&'static str, u32)>) -> Steps {
        let used = watched.iter().map(|(_, pid)| usage(*pid).0).collect();
        Steps { watched, begin: Instant::now(), used }
    }

    fn step(&mut self, what: &str) {
        let seconds = self.begin.elapsed().as_secs_f64();
        print!("{what:28} {seconds:8.2} s");
        for ((name, pid), before) in self.watched.iter().zip(&self.used) {
            let (cpu, memory) = usage(*pid);
            let cpu = cpu - before;
            print!("  {name}: {cpu:6.2} s CPU ({:5.1} %) {:6.1} MB", cpu / seconds * 100.0, memory / 1e6);
        }
        println!();
        *self = Steps::new(std::mem::take(&mut self.watched));
    }
}

async fn control(url: &str, count: usize, seconds: u64, watched: Vec<(&'static str, u32)>) -> Measured {
    let mut fleet = Fleet::connect(&options(url, "control")).await?;
    let mut steps = Steps::new(watched);
    let names: Vec<AgentName> =
        (0..count).map(|number| format!("a{number:04}").parse()).collect::<Result<_, _>>()?;
    let found = fleet.inventory(&names, Duration::from_secs(30)).await?;
    steps.step(&format!("inventory of {}", found.len()));
    let mut worst = 0.0_f64;
    for name in &names {
        worst = worst.max(fleet.clock_offset(name).await?.uncertainty);
    }
    steps.step("clocks");
    println!("  clocks are known within {:.3} ms", worst * 1e3);
    let directory = std::env::temp_dir().join(format!("simulated-control-{}", std::process::id()));
    std::fs::create_dir_all(&directory)?;
    let source = directory.join("workload.pg");
    std::fs::write(&source, "// a workload\n".repeat(700))?;
    let path = RelativePath::try_from("workload.pg".to_owned())?;
    let part = |number: usize| SideAssignment {
        side: if number.is_multiple_of(2) { Side::Client } else { Side::Server },
        addresses: "10.1.0.1".to_owned(),
        words: Vec::new(),
    };
    let run: RunId = format!("simulated-{}", std::process::id()).parse()?;
    let run = FleetRun {
        run,
        members: names.iter().enumerate().map(|(number, name)| (name.clone(), vec![part(number)])).collect(),
        files: vec![RunFile { source, path: path.clone() }],
        directory: RelativePath::default(),
        config: path,
        cfg_dirs: Vec::new(),
        settings: Vec::new(),
        allow_exec: false,
        start_in: Duration::from_secs(20),
        policy: LostPolicy::Fail,
        patience: Duration::from_secs(10),
    };
    run.prepare(&mut fleet, &mut |_| {}).await?;
    steps.step("shipping 10 KB to each");
    run.start(&mut fleet, &mut |_| {}).await?;
    steps.step("start");
    let begin = Instant::now();
    let stop = Box::pin(tokio::time::sleep(Duration::from_secs(seconds)));
    let followed = run.follow(&mut fleet, stop, &mut |_| {}).await?;
    steps.step("following at 1 Hz");
    println!(
        "  {} lost; all had ended {:.2} s after they were asked to",
        followed.losses.len(),
        begin.elapsed().as_secs_f64() - seconds as f64
    );
    let collected = fleet.collect(&run.run, &names, Path::new(&directory), &mut |_| {}).await?;
    fleet.clean_up(&run.run).await;
    steps.step(&format!("collecting {} logs", collected.logs.len()));
    let by_reason: BTreeMap<String, usize> =
        collected.missing.iter().fold(BTreeMap::new(), |mut all, (_, why)| {
            *all.entry(why.clone()).or_default() += 1;
            all
        });
    println!("  {:.1} MB; missing: {by_reason:?}", collected.bytes as f64 / 1e6);
    std::fs::remove_dir_all(directory)?;
    Ok(())
}
