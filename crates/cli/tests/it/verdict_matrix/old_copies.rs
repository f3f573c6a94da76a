//! Devices that use old copies, and servers that give them a reason.

use std::time::Duration;

use rustix::process::Signal;

use super::setups::{MEASURE, workload};
use super::{Deed, Device, Got, Row, Want};
use crate::sandbox::{Sandbox, free_port};

/// A server that stands still for so long after five seconds, and a device that uses copies if servers do not answer soon.
fn measure(sandbox: &Sandbox, deed: Deed) -> Got {
    let life = "cachable = 80%; obj_life_cycle = { length = const(1hour); with_lmt = 100%; expires = [ now + const(1sec) ]; };";
    let robot = "recurrence = 60%; pop_model.pop_distr = popUnif();";
    let text = workload("", robot, &MEASURE.replace("3sec", "9sec")).replace("cachable = 0%;", life);
    sandbox.write("old.pg", &text.replace("PORT", &free_port().to_string()));
    let mut server = sandbox.start("server --config old.pg --log srv.log --loops 1");
    server.wait_for("listening at");
    let device = Device::start(deed);
    let mut client = sandbox.start(&format!(
        "client --config old.pg --proxy 127.0.0.1:{} --preflight no --verb_lvl 2 --log clt.log --loops 1",
        device.port()
    ));
    client.wait_for("i-meas");
    std::thread::sleep(Duration::from_secs(5));
    server.signal(Signal::STOP);
    std::thread::sleep(Duration::from_millis(1600));
    server.signal(Signal::CONT);
    let done = client.finish();
    server.stop();
    Got::of_logs(sandbox, "clt.log srv.log", &done)
}

pub fn copies() -> Vec<Row> {
    let group = "two commands: the server stops for 1.6 s, and the device uses old copies";
    vec![
        Row::new(
            group,
            "meanwhile",
            Want::invalid("server", "stalls").warning("correctness").code(0),
            |sandbox| measure(sandbox, Deed::UseOldCopies { always: false }),
        ),
        Row::new(
            group,
            "all the time",
            Want::failed("correctness", "the device broke the rules of caching").before("stalls").code(0),
            |sandbox| measure(sandbox, Deed::UseOldCopies { always: true }),
        ),
    ]
}
