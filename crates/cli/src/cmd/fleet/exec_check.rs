//! `polygraph fleet exec-check`.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use polygraph_fleet::controller::{ChoiceRules, members};
use polygraph_runner::Failure;
use polygraph_runner::environment::Machine;

use super::{FleetTarget, version, workload};
use crate::exit::{Done, FAILED};
use crate::options::fleet::failure;
use crate::options::{SourceOptions, VariantOptions, files, make_test};
use crate::output;

/// Options of `fleet exec-check`.
#[derive(Args, Debug)]
#[command(rename_all = "snake_case")]
pub struct ExecCheckArgs {
    #[command(flatten)]
    target: FleetTarget,
    /// Workload file in PGL, or the name of a built-in workload
    #[arg(long, value_name = "FILE|NAME", value_parser = files::workload)]
    config: String,
    #[command(flatten)]
    source: SourceOptions,
    #[command(flatten)]
    variant: VariantOptions,
    /// Random seed for everything that all processes must agree on
    #[arg(long, value_name = "N", default_value = "1")]
    global_rng_seed: u64,
}

/// Ships the workload, and shows what the agents say of it.
pub async fn run(args: &ExecCheckArgs) -> Done {
    let seed = args.global_rng_seed;
    let test = make_test::of_workload(
        &args.config,
        &args.source,
        args.variant,
        (None, true),
        seed,
        Machine::WITHOUT_SERVERS,
    )?;
    let mut run = workload::run_of(&args.config, &args.source, "exec-check", seed)?;
    let mut fleet = args.target.connect().await?;
    let rules = ChoiceRules {
        wanted: args.target.agents.clone(),
        wait: args.target.wait,
        version: version(),
        clock_limit: Some(Duration::from_millis(5)),
    };
    let choice = fleet.choose(&test, &rules).await.map_err(failure)?;
    output::print(&choice.division.to_string());
    run.members = members(&choice.division, &workload::words(args.variant, "", seed), |_| Vec::new())
        .map_err(failure)?;
    let prepared = match run.prepare(&mut fleet, &mut |_| {}).await {
        Ok(()) => run.check(&mut fleet).await,
        Err(error) => Err(error),
    };
    fleet.clean_up(&run.run).await;
    let mut all_can = true;
    for (agent, code, text) in prepared.map_err(failure)? {
        let can = code == Some(0);
        all_can &= can;
        match can {
            true => output::note(&format!("{agent}: the workload compiles")),
            false => output::note(&format!("{agent}: the workload does not compile\n{text}")),
        }
    }
    let (blocking, distorting) = fleet.examine(&choice.division, &mut |_| {}).await.map_err(failure)?;
    distorting.iter().for_each(|line| output::warn(line));
    if !blocking.is_empty() {
        return Err(Failure::setup(anyhow::anyhow!("{}", blocking.join("\n"))));
    }
    Ok(if all_can { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}
