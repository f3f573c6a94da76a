//! The bus of a controller without NATS: it starts an agent on each host with ssh, and passes on what they send.
//!
//! The hosts are those of a list, [`HostList`]. A connection that ends is made again until the controller ends; the agent that is
//! started then finds the processes that the one before it left.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStderr, Command};
use tokio::sync::mpsc::{Receiver, Sender, UnboundedReceiver, channel};

use super::BusMessage;
use super::frame::{FrameKind, PIECE, SshFrame};
use super::host_list::{HostList, ListedHost};
use super::subscriptions::{Subscriptions, matches};
use crate::error::{FleetError, Result};
use crate::protocol::joined_subject;

/// How long a host may take until its agent is ready.
const PATIENCE: Duration = Duration::from_secs(30);
/// The pause before a connection is made again.
const PAUSE: Duration = Duration::from_secs(2);
/// Frames that may wait for a connection.
const BACKLOG: usize = 64;
/// Never ask for a password, and notice a connection that is gone within ten seconds.
const SSH: [&str; 6] = ["-o", "BatchMode=yes", "-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=2"];

/// The bus of a controller without NATS.
#[derive(Clone, Debug)]
pub struct SshBus(Arc<Hub>);

#[derive(Debug)]
struct Hub {
    list: HostList,
    /// Where files of agents are kept until they are fetched.
    directory: PathBuf,
    state: Mutex<HubState>,
}

#[derive(Debug, Default)]
struct HubState {
    subscriptions: Subscriptions,
    /// The connections, by the place of their hosts in the list.
    links: HashMap<usize, Link>,
    /// Files by bucket and name.
    files: HashMap<(String, String), PathBuf>,
    inboxes: u64,
    stored: u64,
}

/// A connection to an agent.
#[derive(Debug)]
struct Link {
    out: Sender<SshFrame>,
    subjects: Vec<String>,
}

impl SshBus {
    /// Starts the agents of a list of hosts.
    ///
    /// # Errors
    /// If the list cannot be read, or an agent does not start.
    pub async fn connect(list: &Path) -> Result<SshBus> {
        let text = std::fs::read_to_string(list).map_err(FleetError::file(list))?;
        let list =
            HostList::parse(&text).map_err(|why| FleetError::Usage(format!("{}: {why}", list.display())))?;
        // A directory that an earlier process with this number has left is not used.
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let name = format!("polygraph-{}-{:x}", std::process::id(), now.as_nanos());
        let directory = std::env::temp_dir().join(name);
        std::fs::create_dir(&directory).map_err(FleetError::file(&directory))?;
        let hub = Arc::new(Hub { list, directory, state: Mutex::default() });
        let mut problems = Vec::new();
        let (ready, mut answers) = channel(1);
        for at in 0..hub.list.hosts.len() {
            drop(tokio::spawn(keep_connected(Arc::downgrade(&hub), at, ready.clone())));
        }
        drop(ready);
        let mut waiting: Vec<usize> = (0..hub.list.hosts.len()).collect();
        while !waiting.is_empty() {
            match tokio::time::timeout(PATIENCE, answers.recv()).await {
                Ok(Some((at, problem))) => {
                    waiting.retain(|other| *other != at);
                    problems.extend(problem);
                }
                _ => {
                    let names = waiting.drain(..).map(|at| hub.list.hosts[at].name.to_string());
                    problems.extend(names.map(|name| format!("{name}: its agent does not answer over ssh")));
                }
            }
        }
        if problems.is_empty() { Ok(SshBus(hub)) } else { Err(FleetError::Unfit(problems)) }
    }

    fn state(&self) -> MutexGuard<'_, HubState> {
        self.0.state()
    }

    /// A new subject for answers.
    pub fn new_inbox(&self) -> String {
        let mut state = self.state();
        state.inboxes += 1;
        format!("_INBOX.{}", state.inboxes)
    }

    /// Publishes a message to the agents that receive its subject.
    pub async fn publish(&self, subject: String, reply: Option<String>, bytes: Vec<u8>) {
        let receivers: Vec<Sender<SshFrame>> = {
            let state = self.state();
            let wants = |link: &&Link| link.subjects.iter().any(|pattern| matches(pattern, &subject));
            state.links.values().filter(wants).map(|link| link.out.clone()).collect()
        };
        if receivers.is_empty()
            && let Some(reply) = &reply
        {
            let nobody =
                BusMessage { subject: reply.clone(), reply: None, is_undelivered: true, bytes: Vec::new() };
            self.state().subscriptions.deliver(&nobody);
        }
        let frame = SshFrame { kind: FrameKind::Message { subject, reply }, bytes };
        for out in receivers {
            // A connection that ended just now is like one that ends just after the message.
            let _ = out.send(frame.clone()).await;
        }
    }

    /// Receives the messages of a subject.
    pub fn subscribe(&self, subject: String) -> UnboundedReceiver<BusMessage> {
        self.state().subscriptions.add(subject)
    }

    /// Removes all files of a bucket.
    pub fn remove_bucket(&self, bucket: &str) {
        let objects: Vec<String> = {
            let state = self.state();
            state.files.keys().filter(|(of, _)| of == bucket).map(|(_, object)| object.clone()).collect()
        };
        objects.iter().for_each(|object| self.remove_file(bucket, object));
    }

    /// Makes a file of this host available to agents, and returns its size in bytes. It must stay there.
    ///
    /// # Errors
    /// If there is no such file.
    pub fn put_file(&self, bucket: &str, object: &str, path: &Path) -> Result<u64> {
        let bytes = std::fs::metadata(path).map_err(FleetError::file(path))?.len();
        self.state().files.insert((bucket.to_owned(), object.to_owned()), path.to_owned());
        Ok(bytes)
    }

    /// Fetches a file that an agent has stored, and returns its size in bytes.
    ///
    /// # Errors
    /// If the file is not there, or cannot be written.
    pub async fn get_file(&self, bucket: &str, object: &str, path: &Path) -> Result<u64> {
        let source = self.0.file(bucket, object)?;
        tokio::fs::copy(source, path).await.map_err(FleetError::file(path))
    }

    /// Removes a file from a bucket.
    pub fn remove_file(&self, bucket: &str, object: &str) {
        let path = self.state().files.remove(&(bucket.to_owned(), object.to_owned()));
        // Others are files of the user.
        if let Some(path) = path.filter(|path| path.starts_with(&self.0.directory)) {
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// Keeps up the connection to the agent of a host until nobody needs it. Says once how the first attempt went.
async fn keep_connected(hub: Weak<Hub>, at: usize, ready: Sender<(usize, Option<String>)>) {
    let mut ready = Some(ready);
    while let Some(hub) = hub.upgrade() {
        let host = hub.list.hosts[at].clone();
        let (arguments, weak) = (hub.list.ssh_arguments(&host), Arc::downgrade(&hub));
        drop(hub);
        let problem = serve(&weak, at, &host, &arguments, &mut ready).await;
        if let Some(hub) = weak.upgrade() {
            hub.state().links.remove(&at);
        }
        if let Some(ready) = ready.take() {
            // The fleet does not start without this host.
            let _ = ready.send((at, Some(format!("{}: {problem}", host.name)))).await;
            return;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Starts the agent of a host, and passes on what it sends, to the end of the connection. Returns why it ended.
async fn serve(
    hub: &Weak<Hub>,
    at: usize,
    host: &ListedHost,
    arguments: &[String],
    ready: &mut Option<Sender<(usize, Option<String>)>>,
) -> String {
    let mut command = Command::new("ssh");
    command.args(SSH).args(arguments).kill_on_drop(true);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return format!("ssh cannot be started: {error}"),
    };
    let (Some(input), Some(output), Some(errors)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return "ssh has no pipes".to_owned();
    };
    let (out, frames) = channel(BACKLOG);
    let Some(link) = hub.upgrade() else { return String::new() };
    link.state().links.insert(at, Link { out, subjects: Vec::new() });
    drop(link);
    drop(tokio::spawn(write(input, frames)));
    let messages = tokio::spawn(last_lines(errors));
    let mut input = BufReader::new(output);
    let mut incoming = HashMap::new();
    // An agent says that it is there when it receives requests.
    let joined = joined_subject(&host.name);
    let why = loop {
        let frame = match SshFrame::read(&mut input).await {
            Ok(Some(frame)) => frame,
            Ok(None) => break None,
            Err(error) => break Some(error.to_string()),
        };
        let Some(hub) = hub.upgrade() else { return String::new() };
        let is_ready = matches!(&frame.kind, FrameKind::Message { subject, .. } if *subject == joined);
        if let Err(error) = hub.take(at, frame, &mut incoming).await {
            break Some(error.to_string());
        }
        if let Some(ready) = ready.take_if(|_| is_ready) {
            let _ = ready.send((at, None)).await;
        }
    };
    why.unwrap_or(ended(&mut child, messages).await)
}

/// How ssh ended, with what it and the agent said.
async fn ended(child: &mut Child, messages: tokio::task::JoinHandle<Vec<String>>) -> String {
    let how = match child.wait().await {
        Ok(status) => status.to_string(),
        Err(error) => error.to_string(),
    };
    let said = messages.await.unwrap_or_default();
    format!("ssh ended ({how}){}", said.iter().map(|line| format!("\n  {line}")).collect::<String>())
}

/// The last lines of a text.
async fn last_lines(errors: ChildStderr) -> Vec<String> {
    let (mut lines, mut last) = (BufReader::new(errors).lines(), Vec::new());
    while let Ok(Some(line)) = lines.next_line().await {
        last.push(line);
        if last.len() > 8 {
            last.remove(0);
        }
    }
    last
}

/// Writes frames until nobody sends them, or nobody reads them.
async fn write(mut input: tokio::process::ChildStdin, mut frames: Receiver<SshFrame>) {
    while let Some(frame) = frames.recv().await {
        if input.write_all(&frame.encode()).await.is_err() || input.flush().await.is_err() {
            return;
        }
    }
}

/// A file that an agent sends.
struct Incoming {
    place: (String, String),
    path: PathBuf,
    file: tokio::fs::File,
}

impl Hub {
    fn state(&self) -> MutexGuard<'_, HubState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn file(&self, bucket: &str, object: &str) -> Result<PathBuf> {
        let found = self.state().files.get(&(bucket.to_owned(), object.to_owned())).cloned();
        found.ok_or_else(|| FleetError::Ssh(format!("there is no file {object} in {bucket}")))
    }

    /// Does what a frame of an agent asks for.
    async fn take(
        self: &Arc<Hub>,
        at: usize,
        frame: SshFrame,
        incoming: &mut HashMap<u64, Incoming>,
    ) -> Result<()> {
        let SshFrame { kind, bytes } = frame;
        match kind {
            FrameKind::Subscribe { subject } => {
                if let Some(link) = self.state().links.get_mut(&at) {
                    link.subjects.push(subject);
                }
            }
            FrameKind::Message { subject, reply } => {
                let message = BusMessage { subject, reply, is_undelivered: false, bytes };
                self.state().subscriptions.deliver(&message);
            }
            FrameKind::Want { file, bucket, object } => {
                let out = self.state().links.get(&at).map(|link| link.out.clone());
                if let Some(out) = out {
                    drop(tokio::spawn(send_file(self.file(&bucket, &object), file, out)));
                }
            }
            FrameKind::Store { file, bucket, object } => {
                let path = {
                    let mut state = self.state();
                    state.stored += 1;
                    self.directory.join(state.stored.to_string())
                };
                let target = tokio::fs::File::create(&path).await.map_err(FleetError::file(&path))?;
                incoming.insert(file, Incoming { place: (bucket, object), path, file: target });
            }
            FrameKind::Piece { file, is_last } => {
                let Some(target) = incoming.get_mut(&file) else { return Ok(()) };
                target.file.write_all(&bytes).await.map_err(FleetError::file(&target.path))?;
                if is_last && let Some(mut whole) = incoming.remove(&file) {
                    whole.file.flush().await.map_err(FleetError::file(&whole.path))?;
                    self.state().files.insert(whole.place, whole.path);
                }
            }
            // Agents have nothing that controllers want without asking.
            FrameKind::Missing { .. } => {}
        }
        Ok(())
    }
}

/// Sends a file to an agent.
async fn send_file(path: Result<PathBuf>, file: u64, out: Sender<SshFrame>) {
    let sent = match path {
        Ok(path) => send_pieces(&path, file, &out).await.map_err(FleetError::file(path)),
        Err(error) => Err(error),
    };
    if let Err(error) = sent {
        let _ = out.send(SshFrame::bare(FrameKind::Missing { file, reason: error.to_string() })).await;
    }
}

async fn send_pieces(path: &Path, file: u64, out: &Sender<SshFrame>) -> std::io::Result<()> {
    let mut source = tokio::fs::File::open(path).await?;
    loop {
        let mut bytes = vec![0; PIECE];
        let read = source.read(&mut bytes).await?;
        bytes.truncate(read);
        let piece = SshFrame { kind: FrameKind::Piece { file, is_last: read == 0 }, bytes };
        if out.send(piece).await.is_err() || read == 0 {
            return Ok(());
        }
    }
}
