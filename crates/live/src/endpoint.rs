//! Where monitors attach to a process: a socket in a directory of this host, or a TCP port.
//!
//! A monitor sends nothing. It reads the history of the process, then every message that comes.

use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::hub::{Hub, HubReader};

/// The end of the name of a socket.
pub const SOCKET_SUFFIX: &str = ".live";
/// How long the last lines may take to reach readers at the end of the process.
const PATIENCE: Duration = Duration::from_secs(1);

/// A place where monitors attach.
#[derive(Debug)]
pub struct Endpoint {
    listener: Listener,
    /// The socket to remove at the end.
    path: Option<PathBuf>,
    /// Readers that are being served.
    served: Arc<Mutex<usize>>,
}

#[derive(Debug)]
enum Listener {
    Local(UnixListener),
    Tcp(TcpListener),
}

impl Endpoint {
    /// A socket of this process in a directory, which is created for this user alone.
    ///
    /// # Errors
    /// If the directory or the socket cannot be created.
    pub fn local(directory: &Path) -> io::Result<Endpoint> {
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        check_owner(directory)?;
        remove_dead(directory);
        let id = std::process::id();
        let names = (0..100).map(|n: u32| match n {
            0 => format!("{id}{SOCKET_SUFFIX}"),
            n => format!("{id}-{n}{SOCKET_SUFFIX}"),
        });
        for name in names {
            let path = directory.join(name);
            match UnixListener::bind(&path) {
                Ok(listener) => return Ok(Endpoint::new(Listener::Local(listener), Some(path))),
                Err(e) if e.kind() == ErrorKind::AddrInUse => {}
                Err(e) => return Err(e),
            }
            // The socket of a process that died, or that has the same id in another namespace.
            if UnixStream::connect(&path).is_err() {
                fs::remove_file(&path)?;
                let listener = UnixListener::bind(&path)?;
                return Ok(Endpoint::new(Listener::Local(listener), Some(path)));
            }
        }
        Err(io::Error::from(ErrorKind::AddrInUse))
    }

    /// A TCP port.
    ///
    /// # Errors
    /// If the address cannot be used.
    pub fn tcp(address: SocketAddr) -> io::Result<Endpoint> {
        Ok(Endpoint::new(Listener::Tcp(TcpListener::bind(address)?), None))
    }

    fn new(listener: Listener, path: Option<PathBuf>) -> Endpoint {
        Endpoint { listener, path, served: Arc::default() }
    }

    /// The address, if it is a TCP port.
    pub fn address(&self) -> Option<SocketAddr> {
        match &self.listener {
            Listener::Local(_) => None,
            Listener::Tcp(listener) => listener.local_addr().ok(),
        }
    }

    /// Serves everybody who attaches, on threads that end with the process.
    ///
    /// # Errors
    /// If the system cannot start a thread.
    pub fn serve(&self, hub: Arc<Hub>) -> io::Result<()> {
        let served = Arc::clone(&self.served);
        let builder = thread::Builder::new().name("live-accept".into());
        match &self.listener {
            Listener::Local(listener) => {
                let listener = listener.try_clone()?;
                builder
                    .spawn(move || accept(|| listener.accept().map(|(stream, _)| stream), &hub, &served))?;
            }
            Listener::Tcp(listener) => {
                let listener = listener.try_clone()?;
                builder
                    .spawn(move || accept(|| listener.accept().map(|(stream, _)| stream), &hub, &served))?;
            }
        }
        Ok(())
    }

    /// Waits a moment until readers have everything, and removes the socket. The hub must be closed.
    pub fn close(self) {
        let deadline = Instant::now() + PATIENCE;
        while *lock(&self.served) > 0 && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(2));
        }
        if let Some(path) = &self.path {
            let _ = fs::remove_file(path);
        }
    }
}

/// Removes the sockets of processes that were killed: no process has their id, and nobody listens.
fn remove_dead(directory: &Path) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let id =
            name.to_str().and_then(|name| name.strip_suffix(SOCKET_SUFFIX)?.split('-').next()?.parse().ok());
        let is_dead = |id: u32| !Path::new("/proc").join(id.to_string()).exists();
        if id.is_some_and(is_dead) && UnixStream::connect(entry.path()).is_err() {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// In a directory that belongs to somebody else, that user could put other sockets in place of ours.
fn check_owner(directory: &Path) -> io::Result<()> {
    let found = fs::symlink_metadata(directory)?;
    let own = fs::metadata("/proc/self")?.uid();
    if found.is_dir() && found.uid() == own && found.mode() & 0o022 == 0 {
        return Ok(());
    }
    let text = format!("{} is not a directory that only this user can write to", directory.display());
    Err(io::Error::new(ErrorKind::PermissionDenied, text))
}

fn lock(served: &Mutex<usize>) -> std::sync::MutexGuard<'_, usize> {
    served.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A connection to a monitor.
trait ToMonitor: Read + Write + Send + Sized + 'static {
    /// Another handle for the same connection.
    fn other(&self) -> io::Result<Self>;
    /// Ends it in both directions.
    fn end(&self);
}

impl ToMonitor for UnixStream {
    fn other(&self) -> io::Result<UnixStream> {
        self.try_clone()
    }

    fn end(&self) {
        let _ = self.shutdown(Shutdown::Both);
    }
}

impl ToMonitor for TcpStream {
    fn other(&self) -> io::Result<TcpStream> {
        self.try_clone()
    }

    fn end(&self) {
        let _ = self.shutdown(Shutdown::Both);
    }
}

fn accept<S: ToMonitor>(next: impl Fn() -> io::Result<S>, hub: &Arc<Hub>, served: &Arc<Mutex<usize>>) {
    loop {
        let Ok(stream) = next() else {
            // Descriptors may have run out; connections that end make room.
            thread::sleep(Duration::from_millis(100));
            continue;
        };
        let Some(reader) = hub.subscribe() else { continue };
        let served = Arc::clone(served);
        *lock(&served) += 1;
        let counted = Arc::clone(&served);
        let work = move || {
            write(stream, &reader);
            *lock(&served) -= 1;
        };
        if thread::Builder::new().name("live-reader".into()).spawn(work).is_err() {
            *lock(&counted) -= 1;
        }
    }
}

/// Writes lines until the reader goes or the channel ends.
fn write<S: ToMonitor>(mut stream: S, reader: &HubReader) {
    let Ok(mut other) = stream.other() else { return };
    // A monitor sends nothing: anything to read is the end of the connection, and then writing must fail.
    let watch = move || {
        let _ = other.read(&mut [0]);
        other.end();
    };
    if thread::Builder::new().name("live-end".into()).spawn(watch).is_err() {
        return;
    }
    let history = reader.history.iter().map(Arc::clone);
    for line in history.chain(reader.lines.iter()) {
        if stream.write_all(line.as_bytes()).is_err() {
            break;
        }
    }
    stream.end();
}
