//! The program as its users meet it: the real binary in temporary folders, real sockets on loopback, real
//! devices. Every port is free when it is chosen, and every wait is for an event.

#![allow(clippy::disallowed_methods, reason = "tests start the program and its peers")]

mod addr_cmds;
mod addresses;
mod aka;
mod authentication;
mod bakeoff;
mod builtin_files;
mod classic;
mod compare;
mod detection;
mod determinism;
mod devices;
mod dns;
mod doctor;
mod downtime;
mod failure;
mod first_steps;
mod fleet;
mod fleet_lab;
mod fleet_ssh;
mod interop;
mod lab;
mod limits;
mod logs;
mod manual;
mod monitoring;
mod names;
mod net_checks;
mod network;
mod odd_robots;
mod peak;
mod pgl_cmds;
mod preflight;
mod protocols;
mod released_logs;
mod rptmstat;
mod sandbox;
mod scripts;
mod settings;
mod shares;
mod simulate;
mod socks;
mod sync;
mod tcp_peer;
mod time_wait;
mod tls;
mod try_run;
mod usage;
mod verdict_matrix;
mod wan;
mod workers;
mod working_set;
mod workloads;
mod workloads_run;
