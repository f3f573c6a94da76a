//! Devices that do not start, end by themselves, or come from a user's own directory.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::time::{Duration, Instant};

use polygraph_device::{Device, Params};
use rustix::process::{Pid, Signal, kill_process};

use crate::bench::{Bench, Origin};

/// The directory of a device of the set, copied to a place where it can be changed.
fn copy(name: &str, to: &Path) {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../devices").join(name);
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
    }
}

fn change(file: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(file).unwrap();
    assert!(text.contains(from), "{text}");
    fs::write(file, text.replace(from, to)).unwrap();
}

#[test]
fn a_directory_of_the_user() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("mine");
    copy("haproxy", &directory);
    let bench = Bench::start(directory.to_str().unwrap(), Params::default());
    assert_eq!((bench.device.name(), bench.get(&["/a"])), ("mine", 1));
}

#[test]
fn a_wrong_configuration_is_shown_in_the_programs_words() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("mine");
    copy("squid", &directory);
    change(&directory.join("squid.conf"), "via on", "no_such_directive on");
    let error = Device::find(directory.to_str().unwrap()).unwrap().start(&Params::default()).unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("mine: ") && text.contains("no_such_directive"), "{text}");
}

#[test]
fn a_logger_that_fails_takes_the_device_down() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("mine");
    copy("varnish", &directory);
    change(&directory.join("device.toml"), "%{Varnish:handling}x", "%{Varnish:nonsense}x");
    let origins = vec![Origin::start().address];
    let device = Device::find(directory.to_str().unwrap()).unwrap();
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error = device.start(&Params { origins, listen: free, ..Params::default() }).unwrap_err().to_string();
    assert!(error.contains("varnishncsa") && error.contains("nonsense"), "{error}");
    TcpListener::bind(free).unwrap();
}

#[test]
fn a_port_in_use_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = taken.local_addr().unwrap();
    for name in ["builtin", "squid"] {
        let error = Device::find(name).unwrap().start(&Params { listen, ..Params::default() }).unwrap_err();
        let text = error.to_string();
        assert!(text.contains(&listen.to_string()) && text.contains("in use"), "{text}");
    }
}

#[test]
fn what_has_no_effect_on_the_builtin_proxy_is_refused() {
    let params = Params { disk: Some(1), ..Params::default() };
    let error = Device::find("builtin").unwrap().start(&params).unwrap_err().to_string();
    assert!(error.contains("`disk` has no effect"), "{error}");
    let options = [("cert".to_owned(), "/no/such.pem".to_owned())].into();
    let error = Device::find("builtin").unwrap().start(&Params { options, ..Params::default() }).unwrap_err();
    assert!(error.to_string().contains("`cert`: /no/such.pem"), "{error}");
}

#[test]
fn an_early_end_is_told() {
    let mut bench = Bench::start("haproxy", Params::default());
    let pid = Pid::from_raw(bench.device.pid().unwrap() as i32).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
    let deadline = Instant::now() + Duration::from_secs(10);
    while bench.device.is_up() {
        assert!(Instant::now() < deadline, "it survives a kill");
        std::thread::sleep(Duration::from_millis(5));
    }
    let end = bench.device.halt();
    assert!(end.early.is_some_and(|status| !status.success()) && !end.killed, "{end:?}");
    // And it can be brought up again.
    bench.device.resume().unwrap();
    assert_eq!(bench.get(&["/a"]), 1);
}

#[test]
fn a_thread_that_ends_takes_its_device_along() {
    let (address, pid, work) = std::thread::spawn(|| {
        let bench = Bench::start("nginx", Params::default());
        let work = bench.device.work_directory().unwrap().to_owned();
        let facts = (bench.device.address(), bench.device.pid().unwrap(), work);
        // As after a kill: nobody stops it in order.
        std::mem::forget(bench);
        facts
    })
    .join()
    .unwrap();
    let deadline = Instant::now() + Duration::from_secs(30);
    while TcpListener::bind(address).is_err() {
        assert!(Instant::now() < deadline, "process {pid} still listens at {address}");
        std::thread::sleep(Duration::from_millis(10));
    }
    fs::remove_dir_all(work).unwrap();
}
