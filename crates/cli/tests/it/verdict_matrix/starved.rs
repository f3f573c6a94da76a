//! Devices that the program starts: on a processor that others use, or killed while they are measured.

use rustix::process::{Pid, Signal, kill_process};

use super::bench::SHORT;
use super::{Got, Row, Want};
use crate::sandbox::Sandbox;

/// The built-in proxy as its own program.
const DEVICE: &str = "summary='s'\nrole='forward'\nprogram='/bin/sh'\nversion=['-c', 'echo 1.0']\n\
    args=['-c', 'exec PROGRAM proxy --port {{ port }} --loops 1']\n\
    [log]\nfile='access.log'\nresult_column=1\nbytes_column=2\n";

/// Runs a program on the first processor, and only if nobody else wants it.
const LAST: &str = "taskset -c 0 chrt --idle 0";

/// Keeps a processor busy for minutes, or until it is ended.
const BUSY: &str = "n=0; while [ $n -lt 300000000 ]; do n=$((n+1)); done\n";

/// A run through this device, which has all processors, or the first one while others want it.
fn measure(sandbox: &Sandbox, busy: bool) -> Got {
    std::fs::create_dir(sandbox.path().join("mine")).unwrap();
    let program = env!("CARGO_BIN_EXE_polygraph");
    let program = if busy { format!("{LAST} {program}") } else { program.to_owned() };
    sandbox.write("mine/device.toml", &DEVICE.replace("PROGRAM", &program));
    sandbox.write("busy.sh", BUSY);
    let mut run = sandbox.start(
        "run --device mine --req_rate 150/sec --rep_sz exp:2KB --xact_think none --robots 10 --goal 14s --cool_phase 1s \
         --predict no --loops 1 --verb_lvl 2",
    );
    run.wait_for("i-meas");
    let other = busy.then(|| sandbox.start_program("taskset", "-c 0 /bin/sh busy.sh"));
    run.wait_for("p-meas");
    drop(other);
    Got::of_run(sandbox, &run.finish())
}

/// A run through this device, which is killed while it is measured.
fn kill(sandbox: &Sandbox) -> Got {
    let noting = format!("echo $$ > {}; exec", sandbox.path().join("device.pid").display());
    std::fs::create_dir(sandbox.path().join("mine")).unwrap();
    let program = format!("{noting} {}", env!("CARGO_BIN_EXE_polygraph"));
    sandbox.write("mine/device.toml", &DEVICE.replace("exec PROGRAM", &program));
    let mut run = sandbox.start(&format!("run --device mine --verb_lvl 2 {SHORT}"));
    run.wait_for("i-meas");
    let pid = sandbox.read("device.pid").trim().parse().ok().and_then(Pid::from_raw);
    kill_process(pid.unwrap(), Signal::KILL).unwrap();
    Got::of_run(sandbox, &run.finish())
}

pub fn devices() -> Vec<Row> {
    let group = "a device that the program starts";
    vec![
        Row::new(group, "has a processor whenever it wants one", Want::VALID, |sandbox| {
            measure(sandbox, false)
        }),
        Row::new(
            group,
            "has no processor, because others use it",
            Want::invalid("host", "starved"),
            |sandbox| measure(sandbox, true),
        ),
        Row::new(group, "is killed", Want::failed("ended", "the device ended during the run"), kill),
    ]
}
