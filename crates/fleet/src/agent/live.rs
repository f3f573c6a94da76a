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
/// A pause between messages after which a history is complete.
const PAUSE: Duration = Duration::from_millis(400);
/// Messages are shorter than this.
const LONGEST_LINE: u64 = (64 << 10) + 2;

/// Passes the messages of a process on until it has ended.
pub(super) async fn forward(agent: Rc<Agent>, process: Publisher) {
    while process.is_alive() {
        follow(&agent, &process.socket(&agent.options.live)).await;
        tokio::time::sleep(RETRY).await;
    }
}

/// Sends what a process has published since its start to a monitor. A process sends its history at once, and then a message per
/// second or less, so a pause is the end of the history.
pub(super) async fn send_history(agent: Rc<Agent>, process: Publisher, reply: String) {
    let Ok(stream) = UnixStream::connect(process.socket(&agent.options.live)).await else { return };
    let mut reader = BufReader::new(stream);
    while let Ok(Some(line)) = tokio::time::timeout(PAUSE, next_line(&mut reader)).await {
        agent.bus.publish(reply.clone(), None, line).await;
    }
}

/// Passes messages on to the end of a connection; what is no line ends it, too.
async fn follow(agent: &Agent, socket: &Path) {
    let Ok(stream) = UnixStream::connect(socket).await else { return };
    let mut reader = BufReader::new(stream);
    while let Some(line) = next_line(&mut reader).await {
        agent.bus.publish(live_subject(&agent.options.name), None, line).await;
    }
}

/// The next line; `None` at the end, or if what comes is no line.
async fn next_line(reader: &mut BufReader<UnixStream>) -> Option<Vec<u8>> {
    let mut line = Vec::new();
    reader.take(LONGEST_LINE).read_until(b'\n', &mut line).await.ok()?;
    (line.pop() == Some(b'\n')).then_some(line)
}
