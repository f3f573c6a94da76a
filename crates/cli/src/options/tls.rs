//! Options about TLS between robots and the device.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use polygraph_plan::Test;
use polygraph_robot::Profile;
use polygraph_runner::Failure;
use polygraph_tls::pem::PemFile;

use super::values::yes_no;
use crate::output;

/// TLS between robots and the device.
#[derive(Args, Clone, Debug)]
#[command(rename_all = "snake_case", next_help_heading = "Protocols")]
pub struct DeviceTlsOptions {
    /// Robots use TLS to the device, whether or not the servers have TLS. Default: to a surrogate if the servers have TLS, and not to
    /// a proxy
    #[arg(long, value_name = "yes|no", value_parser = yes_no)]
    pub device_tls: Option<bool>,
    /// Robots also trust the authorities in this file (PEM), and check certificates: for a device that issues the certificates of
    /// the servers itself (repeatable)
    #[arg(long, value_name = "FILE")]
    pub trust_ca: Vec<PathBuf>,
}

impl DeviceTlsOptions {
    /// Applies the options to a test, before a device is put into its path.
    ///
    /// # Errors
    /// If robots have no TLS, or a file cannot be used.
    pub fn apply(&self, test: &mut Test) -> Result<(), Failure> {
        let mut authorities = Vec::new();
        for path in &self.trust_ca {
            let problem = |text: String| Failure::usage(format!("--trust_ca {}: {text}", path.display()));
            let text = std::fs::read_to_string(path).map_err(|e| problem(e.to_string()))?;
            let mut found = PemFile::parse(&text).map_err(problem)?.certificates;
            if found.is_empty() {
                return Err(problem("no certificate in it (BEGIN CERTIFICATE)".to_owned()));
            }
            authorities.append(&mut found);
        }
        if !authorities.is_empty() {
            test.trust(&authorities).map_err(|text| Failure::usage(format!("--trust_ca: {text}")))?;
        }
        test.device_tls = self.device_tls;
        if self.device_tls.is_none() && has_idle_tls(test) {
            output::warn(
                "the robots have `ssl_wraps`, but no server that they visit has, so they use no TLS: if only the device has TLS, add \
                 --device_tls yes",
            );
        }
        if self.device_tls == Some(true) {
            if test.robots.iter().any(|profile| profile.tls.is_empty()) {
                return Err(Failure::usage("--device_tls: the robots of the workload need `ssl_wraps`"));
            }
            for profile in &mut test.robots {
                let profile = Arc::make_mut(profile);
                profile.secure_proxies.clone_from(&profile.proxies);
            }
        }
        Ok(())
    }
}

/// Whether robots have settings of TLS that none of the servers they visit asks for. Without a workload file, the servers may not be
/// known yet.
fn has_idle_tls(test: &Test) -> bool {
    let may_use = |profile: &Profile| profile.foreign > 0.0 || !profile.secure_proxies.is_empty();
    test.robots.iter().filter(|profile| profile.count > 0).any(|profile| {
        let origins = profile.origins.items().iter();
        let mut visited = origins.filter_map(|&place| test.field.servers.get(place)).peekable();
        !profile.tls.is_empty()
            && !may_use(profile)
            && visited.peek().is_some()
            && !visited.any(|server| server.tls)
    })
}
