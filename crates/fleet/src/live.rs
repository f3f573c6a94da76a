//! What monitors receive of a fleet.

use std::sync::mpsc::sync_channel;

use crate::block_on;
use crate::bus::{Bus, BusOptions};
use crate::error::{FleetError, Result};
use crate::protocol::{ALL_LIVE, HISTORY};

/// Passes all live statistics of a fleet to `take`, on its own thread, until it returns false: the history of each process, and
/// then what it publishes. They are lines as processes publish them, which nobody has checked, and come more than once where the
/// history meets new messages.
///
/// # Errors
/// If NATS cannot be reached, or refuses the credentials.
pub fn watch(options: BusOptions, mut take: impl FnMut(&[u8]) -> bool + Send + 'static) -> Result<()> {
    let (to_caller, ready) = sync_channel(1);
    let work = move || {
        let of_thread = to_caller.clone();
        let done = block_on(async move {
            let bus = Bus::connect(&options, false).await?;
            let mut messages = bus.subscribe(ALL_LIVE.to_owned()).await?;
            let inbox = bus.new_inbox();
            let mut history = bus.subscribe(inbox.clone()).await?;
            bus.publish(HISTORY.to_owned(), Some(inbox), Vec::new()).await;
            // The caller waits for it.
            let _ = of_thread.send(Ok(()));
            loop {
                let message = tokio::select! {
                    message = messages.next() => message,
                    message = history.next() => message,
                };
                // Without agents, the server says that nobody listens.
                match message.filter(|message| message.is_undelivered || take(&message.bytes)) {
                    Some(_) => {}
                    None => return Ok(()),
                }
            }
        });
        let _ = to_caller.try_send(done.unwrap_or_else(|error| Err(FleetError::System(error))));
    };
    std::thread::Builder::new().name("fleet".into()).spawn(work)?;
    ready.recv().unwrap_or_else(|_| Err(FleetError::Nats("the connection ended".to_owned())))
}
