//! One loop on real sockets: a thread with a runtime that runs robots or servers.

use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::mpsc::Receiver;
use std::thread::JoinHandle;
use std::time::Duration;

use polygraph_link::Link;
use polygraph_origin::Server;
use polygraph_stats::{DumpPlan, ErrorKind, Recorder};
use polygraph_text as text;
use rustix::io::Errno;

use crate::channels::{LoopChannels, Ready};
use crate::deadlines;
use crate::event_loop::EventLoop;
use crate::listen::{AcceptFault, accept_all, listen};
use crate::loop_driver::{LoopDriver, LoopRole};
use crate::loop_spec::LoopSpec;
use crate::net::Net;
use crate::ports::Ports;
use crate::setup::RunContext;
use crate::udp::{self, UdpSocket};

/// How often a thread that waits for the start of loops checks that they are still running.
const READY_CHECK: Duration = Duration::from_millis(100);

/// Starts a loop on its own thread.
///
/// # Errors
/// If the thread cannot be started.
pub fn start(
    spec: LoopSpec,
    context: RunContext,
    channels: LoopChannels,
) -> io::Result<JoinHandle<io::Result<()>>> {
    let name = format!("{}-{}", spec.side().name(), channels.index);
    std::thread::Builder::new().name(name).spawn(move || live(spec, context, channels))
}

/// Waits until all loops and worker processes behind `threads` are ready.
///
/// # Errors
/// The error of the first loop that cannot start, or that has ended without an error.
pub fn await_ready(ready: &Receiver<Ready>, threads: &[JoinHandle<io::Result<()>>]) -> io::Result<()> {
    let mut missing = threads.len();
    while missing > 0 {
        match ready.recv_timeout(READY_CHECK) {
            Ok(Ok(())) => missing -= 1,
            Ok(Err(e)) => return Err(e),
            Err(_) if threads.iter().any(JoinHandle::is_finished) => {
                // The loop may have sent its error just before it ended.
                let why = ready.try_iter().find_map(Result::err);
                return Err(why.unwrap_or_else(|| io::Error::other("an event loop ended before the run")));
            }
            Err(_) => {}
        }
    }
    Ok(())
}

/// Waits for the thread of a loop or relay to end.
///
/// # Errors
/// The error of the thread, or that it panicked.
pub fn join(thread: JoinHandle<io::Result<()>>) -> io::Result<()> {
    let name = thread.thread().name().unwrap_or("an event loop").to_owned();
    thread.join().unwrap_or_else(|_| Err(io::Error::other(format!("panic in {name}"))))
}

/// The thread of a loop: starts robots or servers, then drives the loop until the last phase has ended.
fn live(spec: LoopSpec, context: RunContext, channels: LoopChannels) -> io::Result<()> {
    let recorder = Recorder::new();
    let ports = match &spec {
        LoopSpec::Robots { ports, .. } => ports.map(|(low, high)| Ports::new(low, high)),
        LoopSpec::Origin { .. } => None,
    };
    let ready = channels.ready.clone();
    let live = EventLoop::new(context.engine, context.quantum, ports).and_then(|event_loop| {
        let net = event_loop.net().clone();
        event_loop.run(async move {
            let role = start_role(spec, &net, &recorder)?;
            net.spawn(sweep_deadlines(net.clone()));
            LoopDriver::new(net, context, channels, recorder, role).run().await;
            Ok(())
        })?
    });
    live.inspect_err(|e| {
        // Both the waiting coordinator and the thread that joins this one need the error.
        let _ = ready.send(Err(io::Error::new(e.kind(), e.to_string())));
    })
}

fn start_role(spec: LoopSpec, net: &Net, recorder: &Recorder) -> io::Result<LoopRole<Net>> {
    let (LoopSpec::Robots { dump, .. } | LoopSpec::Origin { dump, .. }) = &spec;
    show(*dump, recorder, net);
    let listen = |server: Rc<Server<Net>>, address| {
        if server.accepts_http3() {
            let socket = UdpSocket::new(net.state().clone(), net.ring(), udp::bind(address)?)?;
            server.serve_http3(socket);
        }
        serve_all(net, server, listen(address)?, recorder);
        Ok(())
    };
    LoopRole::start(spec, net, recorder, listen)
}

/// Captures messages if transactions are dumped.
fn show(plan: DumpPlan, recorder: &Recorder, net: &Net) {
    recorder.set_dump(plan);
    if plan.needs_messages() {
        net.state().capture_messages(plan.size);
    }
}

/// Serves every incoming connection.
fn serve_all(net: &Net, server: Rc<Server<Net>>, listener: OwnedFd, recorder: &Recorder) {
    let (clock, errors) = (net.clone(), recorder.clone());
    let serving = accept_all(
        net.clone(),
        listener,
        move |socket| Rc::clone(&server).serve(socket),
        move |fault| match fault {
            AcceptFault::Refused(error) => {
                let kind = match error {
                    Errno::MFILE | Errno::NFILE => ErrorKind::NoDescriptor,
                    _ => ErrorKind::System,
                };
                errors.error(kind, clock.now(), || format!("while accepting: {error}"));
            }
            AcceptFault::QueueFull(times) => {
                let now = clock.now();
                (0..times).for_each(|_| {
                    errors.error(ErrorKind::QueueFull, now, || {
                        format!("{} since the last look", text::times(times.into()))
                    })
                });
            }
        },
    );
    let (clock, errors) = (net.clone(), recorder.clone());
    net.spawn(async move {
        if let Err(e) = serving.await {
            errors.error(ErrorKind::System, clock.now(), || format!("the server stopped listening: {e}"));
        }
    });
}

/// Expires deadlines, for ever.
pub async fn sweep_deadlines(net: Net) {
    loop {
        net.sleep_until(net.now() + deadlines::SWEEP_INTERVAL).await;
        net.state().deadlines().sweep(net.now());
    }
}
