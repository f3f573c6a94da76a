//! Programs of others that several tests start.

use std::net::TcpStream;
use std::time::Duration;

use crate::sandbox::{Running, Sandbox, free_port};

/// Waits until a program listens at this port of 127.0.0.1, for a minute at most.
pub fn wait_for_listener(port: u16) {
    for _ in 0..600 {
        if TcpStream::connect(("127.0.0.1", port)).is_ok() {
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("nothing listens at port {port}");
}

/// Squid that serves only users it knows; `authentication` are the lines of its configuration that say how it knows them. Returns
/// its port.
pub fn squid_that_asks(sandbox: &Sandbox, authentication: &[String]) -> (Running, u16) {
    let port = free_port();
    let rest = "acl known proxy_auth REQUIRED
http_access allow known
http_access deny all
cache_mem 16 MB
access_log none
cache_log /dev/null
pid_filename none
coredump_dir /
shutdown_lifetime 1 second
";
    sandbox
        .write("squid.conf", &format!("http_port 127.0.0.1:{port}\n{}\n{rest}", authentication.join("\n")));
    // Instances with other names share no memory.
    let squid = sandbox.start_program("squid", &format!("-N -n asks{port} -f squid.conf"));
    wait_for_listener(port);
    (squid, port)
}
