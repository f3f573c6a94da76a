//! Options of tests with both sides on this machine.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use clap::Args;
use polygraph_plan::test::repeat_delay;
use polygraph_plan::{Schedule, Test};
use polygraph_runner::environment::Machine;
use polygraph_runner::{Bench, Failure, RunSettings};
use polygraph_traffic::Distr;

use super::make_test::{self, TestParts};
use super::values::{Optional, think, whole};
use super::{
    AddressOptions, CommonOptions, ConfigOptions, PreflightOptions, ReplyOptions, RobotOptions,
    RobotToleranceOptions, ToleranceOptions,
};
use crate::output::notify;

/// Options of tests with both sides on this machine. Without a workload file, the defaults follow PolyMix-1.
#[derive(Args, Clone, Debug)]
#[command(
    rename_all = "snake_case",
    next_help_heading = "Bench",
    mut_arg("dhr", |arg| arg.default_value("55p")),
    mut_arg("pop_model", |arg| arg.default_value("unif")),
    mut_arg("req_rate", |arg| arg.default_value("50/sec")),
)]
pub struct BenchOptions {
    /// Address of the origin servers, which the device must be able to reach
    #[arg(long, value_name = "IP", default_value = "127.0.0.1", conflicts_with = "config")]
    pub origin_address: IpAddr,
    /// Port of the origin servers; 0: any free port
    #[arg(long, value_name = "PORT", default_value = "0", value_parser = whole(0..=u16::MAX), conflicts_with = "config")]
    pub origin_port: u16,
    /// Think time of the servers: the delay before the first byte of a reply
    #[arg(long, value_name = "DISTR", default_value = "none", value_parser = think, conflicts_with = "config")]
    pub xact_think: Optional<Distr>,
    /// Parent directory of result directories
    #[arg(long, value_name = "DIR", default_value = "runs")]
    pub runs: PathBuf,
    #[command(flatten)]
    pub workload: ConfigOptions,
    #[command(flatten)]
    pub replies: ReplyOptions,
    #[command(flatten)]
    pub robots: RobotOptions,
    #[command(flatten)]
    pub tolerance: ToleranceOptions,
    #[command(flatten)]
    pub robot_tolerance: RobotToleranceOptions,
    #[command(flatten)]
    pub preflight: PreflightOptions,
    #[command(flatten)]
    pub addresses: AddressOptions,
    #[command(flatten)]
    pub common: CommonOptions,
}

impl BenchOptions {
    /// The test of the workload file, or else one called `name` with this schedule.
    ///
    /// # Errors
    /// If the workload file cannot be used, or options contradict each other.
    pub fn test(
        &self,
        name: &str,
        settings: &RunSettings,
        schedule: impl FnOnce() -> Schedule,
    ) -> Result<Test, Failure> {
        if let Some(mut test) = self.workload.test(settings.global_seed, false, Machine::WITH_SERVERS)? {
            self.robots.device_tls.apply(&mut test)?;
            return Ok(test);
        }
        let parts = TestParts {
            name,
            path: None,
            origin: None,
            listen: vec![SocketAddr::new(self.origin_address, self.origin_port)],
            robot_think: None,
            server_think: self.xact_think.0.clone(),
            sizes: Some(self.replies.rep_sz.clone()),
            settle: repeat_delay(self.xact_think.0.as_ref(), false),
            schedule: schedule(),
        };
        make_test::of_options(&self.robots, &self.common, settings.global_seed, parts)
    }

    /// A bench for `test`. Result directories are named after `command` if the user gives no label.
    ///
    /// # Errors
    /// If addresses cannot be added, or a server cannot listen at its address.
    pub fn bench<'a>(
        &'a self,
        test: Test,
        settings: &'a RunSettings,
        command: &'a str,
    ) -> Result<Bench<'a>, Failure> {
        let tolerance = self.robot_tolerance.tolerance(self.tolerance.accept_foreign_msgs);
        Ok(Bench {
            label: if self.common.label.is_empty() { command } else { &self.common.label },
            client: self.robots.client_settings(tolerance),
            preflight: self.preflight.preflight.0,
            tolerance: self.tolerance.into(),
            fail_timeout_s: self.robots.fail_tout.0,
            ..Bench::new(test, settings, &self.runs, self.addresses.addresses, notify)?
        })
    }
}
