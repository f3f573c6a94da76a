//! The doctor from outside: every check provoked by facts, hosts made of files, its page, and this host.

mod docs;
mod host_files;
mod parsers;
mod provoked;
mod readers;
mod remedies;

use polygraph_doctor::parse;
use polygraph_engine::{control_group, kernel_counters};
