//! The device under test, if it is running already.

use polygraph_device::DeviceRole;
use polygraph_plan::Test;
use polygraph_runner::Failure;

use super::values::{host_port, resolve};

/// Options that name the device under test, each for one role.
#[derive(clap::Args, Clone, Debug)]
#[command(rename_all = "snake_case")]
pub struct PathOptions {
    /// Address of the proxy under test
    #[arg(long, value_name = "HOST:PORT", value_parser = host_port)]
    proxy: Option<String>,
    /// Address of the surrogate under test, a reverse proxy with a cache: robots connect to it and name the servers in the `Host`
    /// field
    #[arg(long, value_name = "HOST:PORT", value_parser = host_port, conflicts_with = "proxy")]
    surrogate: Option<String>,
    /// Address of the load balancer under test, or of another reverse proxy without a cache: like --surrogate, but no hits are
    /// expected
    #[arg(long, value_name = "HOST:PORT", value_parser = host_port, conflicts_with_all = ["proxy", "surrogate"])]
    balancer: Option<String>,
}

impl PathOptions {
    /// The device, if one is named.
    pub fn device(&self) -> Option<DevicePath<'_>> {
        let all = [
            (DeviceRole::Forward, &self.proxy),
            (DeviceRole::Surrogate, &self.surrogate),
            (DeviceRole::Balancer, &self.balancer),
        ];
        all.into_iter().find_map(|(role, address)| Some(DevicePath { role, address: address.as_deref()? }))
    }
}

/// A device that robots use instead of connecting to the servers of a workload.
#[derive(Clone, Copy, Debug)]
pub struct DevicePath<'a> {
    /// Its role.
    pub role: DeviceRole,
    /// Its address, `host:port`.
    pub address: &'a str,
}

impl DevicePath<'_> {
    /// Makes the robots of a test use the device.
    ///
    /// # Errors
    /// If the workload names a proxy, or the device's name cannot be resolved.
    pub fn apply(self, test: &mut Test) -> Result<(), Failure> {
        let device = resolve(self.address)?;
        if test.robots.iter().any(|profile| !profile.proxies.is_empty()) {
            return Err(Failure::usage(format!(
                "the workload names a proxy: leave out {}",
                self.role.option()
            )));
        }
        match self.role {
            DeviceRole::Forward => {
                test.through_proxies(&[device]);
                test.name_proxy(host_of(self.address));
            }
            DeviceRole::Surrogate => test.through_surrogate(device),
            DeviceRole::Balancer => test.through_balancer(device),
        }
        Ok(())
    }

    /// The option with its value, for the command line of a client.
    pub fn words(self) -> [String; 2] {
        [self.role.option().to_owned(), self.address.to_owned()]
    }
}

/// The host of `host:port`, without the brackets of an address.
fn host_of(text: &str) -> &str {
    let host = text.rsplit_once(':').map_or(text, |(host, _)| host);
    host.trim_matches(['[', ']'])
}
