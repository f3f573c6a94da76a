//! `polygraph run --fleet`: a run whose robots and servers are on the agents of a fleet.

use std::path::{Path, PathBuf};
use std::time::Duration;

use polygraph_engine::signals::StopSignals;
use polygraph_fleet::controller::{Candidate, Choice, ChoiceRules, Followed, Incident, members};
use polygraph_fleet::{Fleet, FleetEvent, FleetRun, LostPolicy, block_on};
use polygraph_plan::Test;
use polygraph_runner::environment::Machine;
use polygraph_runner::result::{check_empty, result_directory};
use polygraph_runner::{Expectations, Failure, RunResult, device_place, make_directory};
use polygraph_stats::Side;
use serde_json::{Value, json};

use super::result::{conclude, loss_text};
use super::{version, workload};
use crate::options::fleet::failure;
use crate::options::make_test;
use crate::options::{ConfigOptions, DevicePath, FleetOptions};
use crate::output;

/// How long agents may take to answer if the user names none.
const WAIT: Duration = Duration::from_secs(1);
/// How long agents may take that the user names.
const WAIT_FOR_NAMED: Duration = Duration::from_secs(10);

/// A run with a fleet, as the options of `run` describe it.
#[derive(Debug)]
pub struct FleetTest<'a> {
    /// The address of NATS.
    pub url: &'a str,
    /// How the fleet is used.
    pub options: &'a FleetOptions,
    /// The workload.
    pub workload: &'a ConfigOptions,
    /// The device, which is there already.
    pub path: Option<DevicePath<'a>>,
    /// The seed on which all processes agree.
    pub global_seed: u64,
    /// A name for the run, or an empty text.
    pub label: &'a str,
    /// The parent directory of new result directories.
    pub runs: &'a Path,
    /// The result directory, which must be new or empty; `None`: a new one.
    pub out: Option<PathBuf>,
    /// What the user expects of the run.
    pub expectations: Expectations,
}

/// The result of a run with a fleet.
#[derive(Debug)]
pub struct FleetResult {
    /// The result.
    pub result: RunResult,
    /// Whether the run has failed because an agent or a process was lost.
    pub has_failed: bool,
}

impl FleetTest<'_> {
    /// Runs the test. `None`: only the division was wanted.
    ///
    /// # Errors
    /// If the test cannot be run. A test that fails is no error.
    pub fn measure(&self) -> Result<Option<FleetResult>, Failure> {
        self.out.as_deref().map_or(Ok(()), check_empty)?;
        let config = self.workload.config.as_deref().unwrap_or_default();
        let sharing = (self.workload.share_worlds, true);
        let mut test = make_test::of_workload(
            config,
            &self.workload.source,
            self.workload.variant,
            sharing,
            self.global_seed,
            Machine::WITHOUT_SERVERS,
        )?;
        self.expectations.check_phases(&test.schedule)?;
        self.path.map_or(Ok(()), |path| path.apply(&mut test))?;
        device_place::check(&test, self.path.map(|path| path.role), &device_place::named_places(&test))?;
        let run = workload::run_of(config, &self.workload.source, self.label, self.global_seed)?;
        block_on(self.measure_with(&test, run)).map_err(Failure::setup)?
    }

    async fn measure_with(&self, test: &Test, mut run: FleetRun) -> Result<Option<FleetResult>, Failure> {
        let mut signals = StopSignals::new().map_err(Failure::setup)?;
        let bus = self.options.nats.bus(self.url, "polygraph run");
        let mut fleet = Fleet::connect(&bus).await.map_err(failure)?;
        let choice = self.choose(&mut fleet, test).await?;
        output::note(&format!("what each agent does:\n{}", choice.division.to_string().trim_end()));
        if self.options.dry_run {
            return Ok(None);
        }
        let mut told = |event| {
            if let FleetEvent::Step(text) = event {
                output::note(&text);
            }
        };
        let (blocking, distorting) = match fleet.examine(&choice.division, &mut told).await {
            Ok(found) => found,
            Err(error) => return Err(failure(fleet.with_lost_servers(error).await)),
        };
        distorting.iter().for_each(|line| output::warn(line));
        if !blocking.is_empty() {
            return Err(Failure::setup(anyhow::anyhow!("{}", blocking.join("\n"))));
        }
        run.members =
            members(&choice.division, &self.words(), |side| self.side_words(side)).map_err(failure)?;
        run.start_in = self.options.start_in;
        run.policy = self.options.lost;
        run.patience = self.options.lost_after;
        let first = run.members.iter().find(|(_, parts)| parts.iter().any(|part| part.side == Side::Client));
        let mut show = Shown { client: first.map(|(name, _)| name.to_string()), is_over: false };
        let started = match run.prepare(&mut fleet, &mut |event| show.event(event)).await {
            Ok(()) => run.start(&mut fleet, &mut |event| show.event(event)).await,
            Err(error) => Err(error),
        };
        let start_unix_ns = match started {
            Ok(start) => start,
            Err(error) => {
                fleet.clean_up(&run.run).await;
                return Err(failure(error));
            }
        };
        let stop = Box::pin(async move { signals.recv().await });
        let followed = run.follow(&mut fleet, stop, &mut |event| show.event(event)).await.map_err(failure)?;
        let description = self.description(&run, &choice, start_unix_ns);
        self.collect(&mut fleet, &run, &followed, description, &mut show).await.map(Some)
    }

    async fn choose(&self, fleet: &mut Fleet, test: &Test) -> Result<Choice, Failure> {
        let wanted = self.options.agents.clone();
        let rules = ChoiceRules {
            wait: if wanted.is_empty() { WAIT } else { WAIT_FOR_NAMED },
            wanted,
            version: version(),
            clock_limit: self.options.clock_limit.0.map(Duration::from_secs_f64),
        };
        let choice = fleet.choose(test, &rules).await.map_err(failure)?;
        for Candidate { inventory, clock } in &choice.candidates {
            let clock = clock.map_or_else(String::new, |clock| format!(", clock {clock}"));
            output::note(&format!(
                "{} on {}, {} processors{clock}",
                inventory.name, inventory.host, inventory.cores
            ));
        }
        for name in &choice.without_addresses {
            output::note(&format!("{name} takes no part: its host has no address of the workload"));
        }
        Ok(choice)
    }

    fn words(&self) -> Vec<String> {
        let mut words = workload::words(self.workload.variant, self.label, self.global_seed);
        if let Some(share) = self.workload.share_worlds {
            words.extend(["--share_worlds", if share { "yes" } else { "no" }].map(str::to_owned));
        }
        words
    }

    fn side_words(&self, side: Side) -> Vec<String> {
        match side {
            Side::Client => {
                let mut words = workload::words_of(&self.options.client_opt);
                words.extend(self.path.into_iter().flat_map(DevicePath::words));
                words
            }
            Side::Server => workload::words_of(&self.options.server_opt),
        }
    }

    /// What the manifest says about the fleet.
    fn description(&self, run: &FleetRun, choice: &Choice, start_unix_ns: u64) -> Value {
        let agents = choice.candidates.iter().map(|candidate| {
            json!({
                "inventory": candidate.inventory,
                "clock_offset_s": candidate.clock.map(|clock| clock.seconds),
                "clock_uncertainty_s": candidate.clock.map(|clock| clock.uncertainty),
            })
        });
        json!({
            "run": run.run,
            "agents": agents.collect::<Vec<_>>(),
            "division": choice.division,
            "start_unix_ns": start_unix_ns,
            "lost_policy": if run.policy == LostPolicy::Fail { "fail" } else { "degrade" },
        })
    }

    async fn collect(
        &self,
        fleet: &mut Fleet,
        run: &FleetRun,
        followed: &Followed,
        mut description: Value,
        show: &mut Shown,
    ) -> Result<FleetResult, Failure> {
        let directory = match &self.out {
            Some(directory) => {
                make_directory(directory)?;
                directory.clone()
            }
            None => result_directory(self.runs, if self.label.is_empty() { "run" } else { self.label })?,
        };
        let mut fetched = fleet
            .collect(&run.run, &followed.present, &directory, &mut |event| show.event(event))
            .await
            .map_err(failure)?;
        fleet.clean_up(&run.run).await;
        fetched
            .missing
            .extend(followed.lost.iter().map(|name| (name.clone(), "the agent is lost".to_owned())));
        description["incidents"] = followed.incidents.iter().map(incident).collect();
        description["lost"] = followed.losses.iter().map(ToString::to_string).collect();
        description["missing_logs"] = fetched.missing.iter().map(|(name, _)| name.to_string()).collect();
        if fetched.logs.is_empty() {
            let all = description["lost"].to_string();
            return Err(Failure::setup(anyhow::anyhow!("no agent sent a log; lost: {all}")));
        }
        let has_failed = !followed.losses.is_empty() && self.options.lost == LostPolicy::Fail;
        let mut result = conclude(&directory, &description, followed.interrupted, &self.expectations)?;
        result.summary.push_str(&loss_text(&description, &directory));
        if has_failed {
            let text = format!(
                "the run has lost {}",
                followed.losses.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
            );
            self.expectations.publish_failure(&Failure::verdict(text))?;
        }
        Ok(FleetResult { result, has_failed })
    }
}

/// An incident for the manifest.
fn incident(incident: &Incident) -> Value {
    let at = i64::try_from(incident.at_unix_ns / 1_000_000_000).unwrap_or_default();
    let at = jiff::Timestamp::from_second(at).unwrap_or_default().to_zoned(jiff::tz::TimeZone::system());
    json!({ "at": at.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(), "text": incident.text })
}

/// What is shown while a run goes on.
struct Shown {
    /// This client speaks for all; what the others say is in the result directory.
    client: Option<String>,
    is_over: bool,
}

impl Shown {
    fn event(&mut self, event: FleetEvent) {
        match event {
            FleetEvent::Step(text) => output::note(&text),
            FleetEvent::Warning(text) => output::warn(&text),
            FleetEvent::Line { agent, text } if self.client.as_deref() == Some(agent.as_str()) => {
                // What follows is its summary, and the run has one of its own.
                self.is_over |= text.is_empty();
                if !self.is_over {
                    output::note(&format!("{agent}: {text}"));
                }
            }
            FleetEvent::Line { .. } => {}
        }
    }
}
