//! The limit of open connections of the robots of a process.

use polygraph_engine::{Layout, limits};

use crate::Failure;

/// The limit of open connections of the robots of a process.
#[derive(Clone, Copy, Debug)]
pub struct OpenLimit {
    /// Maximum number of open connections.
    pub connections: usize,
    /// The file descriptors that each process may open, if these set the limit and not the user.
    pub descriptors: Option<u64>,
}

impl OpenLimit {
    /// No limit.
    pub const NONE: OpenLimit = OpenLimit { connections: usize::MAX, descriptors: None };

    /// The limit of robots in `layout`, given the user's limit. Robots that share their process with servers
    /// (`with_servers`) share its descriptors, too: each connection to them has two ends there.
    ///
    /// # Errors
    /// If the user wants more connections than there are file descriptors.
    pub fn of(wanted: Option<u32>, layout: Layout, with_servers: bool) -> Result<OpenLimit, Failure> {
        let descriptors = limits::raise_descriptor_limit();
        let most = limits::open_connections(descriptors, layout.processes);
        match wanted.map(|limit| limit as usize) {
            Some(limit) if limit > most => Err(Failure::setup(anyhow::anyhow!(
                "--open_conn_lmt {limit} needs more file descriptors than the {descriptors} that this process may open, \
                 which are enough for {most} connections; raise the hard limit (ulimit -Hn) or lower the option"
            ))),
            Some(limit) => Ok(OpenLimit { connections: limit, descriptors: None }),
            None => {
                let ends = if with_servers && layout.processes == 0 { 2 } else { 1 };
                Ok(OpenLimit { connections: (most / ends).max(1), descriptors: Some(descriptors) })
            }
        }
    }

    /// The limit as logs describe it.
    pub fn text(self) -> String {
        match self {
            OpenLimit { connections: usize::MAX, .. } => "any number".to_owned(),
            OpenLimit { connections, descriptors: Some(descriptors) } => {
                format!("{connections}, all that {descriptors} file descriptors allow")
            }
            OpenLimit { connections, descriptors: None } => connections.to_string(),
        }
    }
}
