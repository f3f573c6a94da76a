//! `polygraph lab run`.

use std::path::{Path, PathBuf};

use clap::Args;
use polygraph_assets::EntryKind;
use polygraph_device::Device;
use polygraph_lab::{Lab, LabDirectory, LabError, LabRole, LabRun, LabRunEvent, LabWorkload};
use polygraph_plan::Test;
use polygraph_runner::device::DeviceUnderTest;
use polygraph_runner::environment::Machine;
use polygraph_runner::{Expectations, Failure, RunResult};

use super::status::remove;
use super::target::{LabWorkloadOptions, describe, is_file, name, needs, source};
use super::up::{program, up};
use super::{failure, require_root};
use crate::exit::{self, Done};
use crate::options::common::command_line;
use crate::options::device::params_of;
use crate::options::files::lab;
use crate::options::values::{key_value, whole};
use crate::options::{DevicePath, ExpectOptions, PathOptions, VariantOptions, make_test};
use crate::output::{self, notify};

/// Options of `lab run`.
#[derive(Args, Debug)]
#[command(
    rename_all = "snake_case",
    after_help = "The exit code is that of `run`. Examples:\n  \
        polygraph lab run builtin:polymix-3 --no_proxy --set TheBench.peak_req_rate=20/sec --scale 1/120\n  \
        polygraph lab run webaxe-4 --device varnish --device_opt mem=64MB\n  \
        polygraph lab run polymix-3 --proxy 10.16.0.1:3128    # one that runs there already, started with `lab exec`"
)]
pub struct RunArgs {
    /// Name of a lab that is up, a lab file, or `builtin:` and the name of a built-in lab. A lab that is not up is made for this
    /// run
    #[arg(value_name = "NAME|LAB.toml", value_parser = lab)]
    lab: String,
    /// Start this device on the device's host: a name from `polygraph devices`, or a directory with a device description.
    /// Default: as the lab file says
    #[arg(long, value_name = "NAME|DIR", conflicts_with_all = ["proxy", "surrogate", "balancer", "no_proxy"])]
    device: Option<String>,
    /// Parameters of the device, as for `run`; repeatable
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    device_opt: Vec<(String, String)>,
    #[command(flatten)]
    path: PathOptions,
    /// Test without a device: robots connect to the servers
    #[arg(long, conflicts_with_all = ["proxy", "surrogate", "balancer"])]
    no_proxy: bool,
    #[command(flatten)]
    workload: LabWorkloadOptions,
    #[command(flatten)]
    variant: VariantOptions,
    /// Random seed for everything that all processes must agree on
    #[arg(long, value_name = "N", default_value = "1", value_parser = whole(0..=u64::MAX))]
    global_rng_seed: u64,
    /// An option of `polygraph client` for the clients, without dashes; repeatable
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    client_opt: Vec<(String, String)>,
    /// An option of `polygraph server` for the servers, without dashes; repeatable
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    server_opt: Vec<(String, String)>,
    /// A name for the run
    #[arg(long, value_name = "TEXT")]
    label: Option<String>,
    /// Parent directory of result directories
    #[arg(long, value_name = "DIR", default_value = "runs")]
    runs: PathBuf,
    /// Result directory, which must be new or empty. Default: a new directory in --runs
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long, help_heading = "Expectations")]
    json: bool,
    #[command(flatten)]
    expectations: ExpectOptions,
}

/// Runs the test, and prints its result.
pub fn run(args: RunArgs) -> Done {
    require_root()?;
    let expectations = Expectations::from(args.expectations.clone());
    let result = args.measure(&expectations);
    match result {
        Ok(mut result) => {
            output::print_either(args.json, || result.json(), || result.summary.clone());
            match result.trouble.take() {
                Some(trouble) => Err(trouble),
                None => Ok(exit::of_run(&result)),
            }
        }
        Err(failure) => {
            expectations.publish_failure(&failure)?;
            Err(failure)
        }
    }
}

/// Why a lab cannot be read. A built-in lab of this name needs another command.
fn not_up(error: LabError, name: &str) -> Failure {
    if matches!(error, LabError::NotUp { .. }) && polygraph_assets::find(EntryKind::Lab, name).is_some() {
        return Failure::usage(format!(
            "the lab {name} is not up: make it with `polygraph lab up {name}`, or write `builtin:{name}` to make it for this run"
        ));
    }
    failure(error)
}

impl RunArgs {
    /// Runs the test, in a lab that is made for it unless it is up.
    fn measure(&self, expectations: &Expectations) -> Result<RunResult, Failure> {
        let name = name(&self.lab)?;
        let directory = LabDirectory::of_system();
        if !is_file(&self.lab) || directory.names().contains(&name) {
            let lab = directory.read(&name).map_err(|error| not_up(error, &name))?.lab;
            return self.measure_in(&lab, expectations);
        }
        let lab = describe(Path::new(&self.lab), None, &self.workload, false)?;
        up(&lab)?;
        let result = self.measure_in(&lab, expectations);
        remove(&lab.name)?;
        result
    }

    fn measure_in(&self, lab: &Lab, expectations: &Expectations) -> Result<RunResult, Failure> {
        let workload = self.workload.over(lab.workload.as_ref()).ok_or_else(|| {
            Failure::usage(format!("the lab {} has no workload: add --config FILE", lab.name))
        })?;
        self.check_addresses(lab, &workload)?;
        let mut client_words = words_of(&self.client_opt);
        client_words.extend(self.path.device().into_iter().flat_map(DevicePath::words));
        let run = LabRun {
            lab,
            program: program()?,
            test: self.test(&workload)?,
            words: self.words(&workload),
            client_words,
            server_words: words_of(&self.server_opt),
            device: self.device(lab)?,
            command: command_line(),
            label: self.label.as_deref().unwrap_or(&lab.name),
            runs: &self.runs,
            out: self.out.clone(),
            expectations: expectations.clone(),
            notify,
        };
        // The first client speaks for all; what the others say is in the result directory.
        let first = lab.with_role(LabRole::Client).next().map(|host| host.name.clone());
        let mut is_over = false;
        run.run(&mut |event| match event {
            LabRunEvent::Started { host, role } => output::note(&format!("{host}: {} started", role.word())),
            LabRunEvent::Line { host, text } if Some(&host) == first.as_ref() => {
                // What follows is its summary, and the run has one of its own.
                is_over |= text.is_empty();
                if !is_over {
                    output::note(&format!("{host}: {text}"));
                }
            }
            LabRunEvent::Line { .. } => {}
        })
    }

    /// Checks that the hosts have the addresses of the workload.
    fn check_addresses(&self, lab: &Lab, workload: &LabWorkload) -> Result<(), Failure> {
        if lab.bare || !self.workload.is_given() || lab.workload.is_none() {
            return Ok(());
        }
        let needs = needs(workload)?;
        let sides = [(LabRole::Client, &needs.clients), (LabRole::Server, &needs.servers)];
        for (role, hosts) in sides {
            let has = lab.with_role(role).map(|host| (host.addresses[0], host.agents.clone()));
            let same = hosts.len() == lab.with_role(role).count()
                && has.zip(hosts).all(|((own, agents), need)| {
                    let all = need.agents.iter().filter_map(|addr| addr.host.ip()).filter(|ip| *ip != own);
                    need.address.is_none_or(|address| address == own) && all.eq(agents)
                });
            if !same {
                return Err(Failure::usage(format!(
                    "with these settings, the {}s of the workload have other addresses than the lab {}: make the lab with the same \
                     settings (`polygraph lab down {}`, then `polygraph lab up ... --set ...`)",
                    role.word(),
                    lab.name,
                    lab.name
                )));
            }
        }
        Ok(())
    }

    fn test(&self, workload: &LabWorkload) -> Result<Test, Failure> {
        let file = workload.config.display().to_string();
        make_test::of_workload(
            &file,
            &source(workload),
            self.variant,
            (None, true),
            self.global_rng_seed,
            Machine::WITHOUT_SERVERS,
        )
    }

    /// The options of all processes.
    fn words(&self, workload: &LabWorkload) -> Vec<String> {
        let mut words = vec!["--config".to_owned(), workload.config.display().to_string()];
        for directory in &workload.cfg_dirs {
            words.extend(["--cfg_dirs".to_owned(), directory.clone()]);
        }
        for (name, value) in &workload.set {
            words.extend(["--set".to_owned(), format!("{name}={value}")]);
        }
        if workload.allow_exec {
            words.push("--allow_exec".to_owned());
        }
        let VariantOptions { scale, compat } = self.variant;
        let given = [
            ("--scale", scale.map(|scale| scale.to_string())),
            ("--compat", compat.map(|compat| compat.word().to_owned())),
            ("--label", self.label.clone()),
            ("--global_rng_seed", Some(self.global_rng_seed.to_string())),
        ];
        words.extend(given.into_iter().filter_map(|(name, value)| Some([name.to_owned(), value?])).flatten());
        words
    }

    /// The device to start; `None`: there is none, or it is there already.
    fn device(&self, lab: &Lab) -> Result<Option<DeviceUnderTest>, Failure> {
        if self.no_proxy || self.path.device().is_some() {
            return match self.device_opt.first() {
                None => Ok(None),
                Some((key, _)) => Err(Failure::usage(format!("--device_opt {key} needs --device"))),
            };
        }
        let (name, mut options) = match (&self.device, &lab.default_device) {
            (Some(name), _) => (name.clone(), Vec::new()),
            (None, Some((name, options))) => (name.clone(), options.clone().into_iter().collect()),
            (None, None) => {
                return Err(Failure::usage(
                    "say what is tested: --device NAME, --proxy, --surrogate or --balancer HOST:PORT, or --no_proxy",
                ));
            }
        };
        options.extend(self.device_opt.iter().cloned());
        let device = Device::find(&name).map_err(polygraph_runner::device::failure)?;
        let mut params =
            params_of(&options).map_err(|problem| Failure::usage(format!("--device_opt {problem}")))?;
        if options.iter().all(|(key, _)| key != "listen")
            && let Some(address) = lab.device
        {
            params.listen = address;
        }
        Ok(Some(DeviceUnderTest::new(device, params, options)))
    }
}

/// Options as words of a command line.
fn words_of(options: &[(String, String)]) -> Vec<String> {
    options.iter().flat_map(|(key, value)| [format!("--{key}"), value.clone()]).collect()
}
