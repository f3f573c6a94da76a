//! `polygraph lab exec`.

use std::os::unix::process::CommandExt;
use std::process::Command;

use clap::Args;
use polygraph_lab::LabDirectory;
use polygraph_runner::Failure;

use super::{failure, require_root, target};
use crate::exit::Done;
use crate::options::files::lab;
use crate::settings;

/// Options of `lab exec`.
#[derive(Args, Debug)]
#[command(
    rename_all = "snake_case",
    after_help = "Examples:\n  polygraph lab exec two-hosts clt1 -- ping -c 3 10.55.0.2\n  \
        polygraph lab exec two-hosts srv1 -- tcpdump -ni eth0 port 80\n  polygraph lab exec two-hosts clt1 -- sh"
)]
pub struct ExecArgs {
    /// Name of the lab, or its file
    #[arg(value_parser = lab)]
    lab: String,
    /// Name of the host
    host: String,
    /// The command with its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// Becomes the command. The exit code is that of the command.
pub fn run(args: &ExecArgs) -> Done {
    require_root()?;
    let lab = LabDirectory::of_system().read(&target::name(&args.lab)?).map_err(failure)?.lab;
    let host = lab.host(&args.host).map_err(failure)?;
    let mut command = Command::new("ip");
    command.args(["netns", "exec", &lab.namespace(&host.name)]).args(&args.command);
    settings::as_given(&mut command);
    let error = command.exec();
    Err(Failure::setup(anyhow::anyhow!("cannot run `ip` of the package iproute2: {error}")))
}
