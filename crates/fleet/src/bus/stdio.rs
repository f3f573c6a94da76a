//! The bus of an agent that a controller started with ssh: frames on standard input and output. It ends with the connection.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::fs::File;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::sync::mpsc::{Receiver, Sender, UnboundedReceiver, UnboundedSender, channel, unbounded_channel};

use super::BusMessage;
use super::frame::{FrameKind, PIECE, SshFrame};
use super::subscriptions::Subscriptions;
use crate::error::{FleetError, Result};

/// Frames that may wait for standard output.
const BACKLOG: usize = 64;

/// The bus of an agent that a controller started.
#[derive(Clone, Debug)]
pub struct StdioBus {
    out: Sender<SshFrame>,
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug, Default)]
struct Shared {
    is_closed: bool,
    subscriptions: Subscriptions,
    /// Files that are wanted, by their numbers.
    wanted: HashMap<u64, UnboundedSender<Part>>,
    files: u64,
}

/// What comes of a file.
#[derive(Debug)]
enum Part {
    Piece(Vec<u8>, bool),
    Missing(String),
}

impl StdioBus {
    /// Reads standard input and writes standard output from now on.
    pub fn start() -> StdioBus {
        let (out, frames) = channel(BACKLOG);
        let shared = Arc::<Mutex<Shared>>::default();
        drop(tokio::spawn(write(frames)));
        drop(tokio::spawn(read(Arc::clone(&shared))));
        StdioBus { out, shared }
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        lock(&self.shared)
    }

    /// Whether the controller is there.
    pub fn is_connected(&self) -> bool {
        !self.shared().is_closed
    }

    /// Publishes a message.
    pub async fn publish(&self, subject: String, reply: Option<String>, bytes: Vec<u8>) {
        // Without the controller, it is lost, as the agent soon learns.
        let _ = self.out.send(SshFrame { kind: FrameKind::Message { subject, reply }, bytes }).await;
    }

    /// Receives the messages of a subject.
    pub async fn subscribe(&self, subject: String) -> UnboundedReceiver<BusMessage> {
        let messages = self.shared().subscriptions.add(subject.clone());
        let _ = self.out.send(SshFrame::bare(FrameKind::Subscribe { subject })).await;
        messages
    }

    /// Stores a file, and returns its size in bytes.
    ///
    /// # Errors
    /// If the file cannot be read, or the controller is gone.
    pub async fn put_file(&self, bucket: &str, object: &str, path: &Path) -> Result<u64> {
        let mut source = File::open(path).await.map_err(FleetError::file(path))?;
        let file = self.new_file();
        let store = FrameKind::Store { file, bucket: bucket.to_owned(), object: object.to_owned() };
        self.send(SshFrame::bare(store)).await?;
        let mut sent = 0;
        loop {
            let mut bytes = vec![0; PIECE];
            let read = source.read(&mut bytes).await.map_err(FleetError::file(path))?;
            bytes.truncate(read);
            sent += read as u64;
            self.send(SshFrame { kind: FrameKind::Piece { file, is_last: read == 0 }, bytes }).await?;
            if read == 0 {
                return Ok(sent);
            }
        }
    }

    /// Fetches a file, and returns its size in bytes.
    ///
    /// # Errors
    /// If the file is not there, cannot be written, or the controller is gone.
    pub async fn get_file(&self, bucket: &str, object: &str, path: &Path) -> Result<u64> {
        let file = self.new_file();
        let (to_here, mut parts) = unbounded_channel();
        self.shared().wanted.insert(file, to_here);
        let want = FrameKind::Want { file, bucket: bucket.to_owned(), object: object.to_owned() };
        self.send(SshFrame::bare(want)).await?;
        let mut target = File::create(path).await.map_err(FleetError::file(path))?;
        let mut copied = 0;
        loop {
            match parts.recv().await {
                Some(Part::Piece(bytes, is_last)) => {
                    target.write_all(&bytes).await.map_err(FleetError::file(path))?;
                    copied += bytes.len() as u64;
                    if is_last {
                        break;
                    }
                }
                Some(Part::Missing(reason)) => return Err(FleetError::Ssh(reason)),
                None => return Err(gone()),
            }
        }
        target.flush().await.map_err(FleetError::file(path))?;
        Ok(copied)
    }

    fn new_file(&self) -> u64 {
        let mut shared = self.shared();
        shared.files += 1;
        shared.files
    }

    async fn send(&self, frame: SshFrame) -> Result<()> {
        self.out.send(frame).await.map_err(|_| gone())
    }
}

fn gone() -> FleetError {
    FleetError::Ssh("the controller is gone".to_owned())
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes frames until nobody sends them, or nobody reads them.
async fn write(mut frames: Receiver<SshFrame>) {
    let mut output = tokio::io::stdout();
    while let Some(frame) = frames.recv().await {
        if output.write_all(&frame.encode()).await.is_err() || output.flush().await.is_err() {
            return;
        }
    }
}

/// Reads frames to the end of standard input; what is no frame ends it, too.
async fn read(shared: Arc<Mutex<Shared>>) {
    let mut input = BufReader::new(tokio::io::stdin());
    while let Ok(Some(SshFrame { kind, bytes })) = SshFrame::read(&mut input).await {
        let mut shared = lock(&shared);
        match kind {
            FrameKind::Message { subject, reply } => {
                shared.subscriptions.deliver(&BusMessage { subject, reply, is_undelivered: false, bytes });
            }
            FrameKind::Piece { file, is_last } => shared.take(file, Part::Piece(bytes, is_last), is_last),
            FrameKind::Missing { file, reason } => shared.take(file, Part::Missing(reason), true),
            // Controllers have none of these.
            FrameKind::Subscribe { .. } | FrameKind::Want { .. } | FrameKind::Store { .. } => {}
        }
    }
    let mut shared = lock(&shared);
    shared.is_closed = true;
    shared.subscriptions.close();
    shared.wanted.clear();
}

impl Shared {
    /// Passes on a part of a file that is wanted.
    fn take(&mut self, file: u64, part: Part, is_last: bool) {
        if let Some(to_waiting) = self.wanted.get(&file) {
            // Nobody may wait for it any longer.
            let _ = to_waiting.send(part);
        }
        if is_last {
            self.wanted.remove(&file);
        }
    }
}
