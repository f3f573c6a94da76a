//! Live statistics: what processes of runs publish on their host goes on to monitors of the fleet.

use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::net::UnixStream;

use super::Agent;
use super::process::Publisher;
use crate::protocol::live_subject;

/// How often a process is tried that does not publish yet.
const RETRY: Duration = Duration::from_millis(500);
/// Messages are shorter than this.
const LONGEST_LINE: u64 = (64 << 10) + 2;

/// Passes the messages of a process on until it has ended.
pub(super) async fn forward(agent: Rc<Agent>, process: Publisher) {
    while process.is_alive() {
        follow(&agent, &process.socket(&agent.options.live)).await;
        tokio::time::sleep(RETRY).await;
    }
}

/// Passes messages on to the end of a connection; what is no line ends it, too.
async fn follow(agent: &Agent, socket: &Path) {
    let Ok(stream) = UnixStream::connect(socket).await else { return };
    let mut reader = BufReader::new(stream);
    loop {
        let mut line = Vec::new();
        let read = (&mut reader).take(LONGEST_LINE).read_until(b'\n', &mut line).await;
        if read.is_err() || line.pop() != Some(b'\n') {
            return;
        }
        agent.bus.publish(live_subject(&agent.options.name), None, line).await;
    }
}
