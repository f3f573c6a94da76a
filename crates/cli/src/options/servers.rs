//! Options of the server side.

use clap::{ArgAction, Args};
use polygraph_runner::jobs::ServerTolerance;
use polygraph_traffic::Distr;

use super::values::{sizes, yes_no};

/// What servers accept although it is not a request of a robot.
#[derive(Args, Clone, Copy, Debug)]
#[command(rename_all = "snake_case", next_help_heading = "Unexpected requests")]
pub struct ToleranceOptions {
    /// Answer requests for URLs that name no object of the test with a random object. Some devices send such requests
    #[arg(long, value_name = "yes|no", default_value = "no", value_parser = yes_no, action = ArgAction::Set)]
    pub ign_urls: bool,
    /// Like --ign_urls, and do not count messages without the marks of this program as errors
    #[arg(long, value_name = "yes|no", default_value = "no", value_parser = yes_no, action = ArgAction::Set)]
    pub accept_foreign_msgs: bool,
}

impl From<ToleranceOptions> for ServerTolerance {
    fn from(options: ToleranceOptions) -> ServerTolerance {
        ServerTolerance { any_url: options.ign_urls, foreign_messages: options.accept_foreign_msgs }
    }
}

/// The content of a test without a workload file: one type.
#[derive(Args, Clone, Debug)]
#[command(rename_all = "snake_case", next_help_heading = "Content")]
pub struct ReplyOptions {
    /// Reply sizes
    #[arg(long, value_name = "DISTR", default_value = "exp:13KB", value_parser = sizes, conflicts_with = "config")]
    pub rep_sz: Distr,
}
