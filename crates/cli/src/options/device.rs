//! Options of the device that a command starts.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use clap::Args;
use polygraph_device::{Device, Params};
use polygraph_plan::values;
use polygraph_runner::Failure;
use polygraph_runner::device::{DeviceUnderTest, failure};

use super::service;
use super::values::key_value;

/// A device to start.
#[derive(Args, Clone, Debug)]
#[command(rename_all = "snake_case", next_help_heading = "Device")]
pub struct DeviceOptions {
    /// Start this device, test it, and stop it: a name from `polygraph devices`, or a directory with a device description
    #[arg(long, value_name = "NAME|DIR")]
    device: Option<String>,
    /// Parameters of the device, repeatable: listen=IP:PORT, mem=SIZE, disk=SIZE, disk_dir=DIR, max_object=SIZE, workers=N,
    /// dns=IP:PORT, hosts=FILE, and those that `polygraph devices` lists. The device `builtin` also takes the options of
    /// `polygraph proxy` that slow it down, for example service_rate=200/sec
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    device_opt: Vec<(String, String)>,
}

impl DeviceOptions {
    /// Whether there is a device to start.
    pub fn is_given(&self) -> bool {
        self.device.is_some()
    }

    /// The device, if there is one.
    ///
    /// # Errors
    /// If there is no device of this name, or a parameter is wrong.
    pub fn device(&self) -> Result<Option<DeviceUnderTest>, Failure> {
        let Some(name) = &self.device else {
            return match self.device_opt.first() {
                None => Ok(None),
                Some((key, _)) => Err(Failure::usage(format!("--device_opt {key} needs --device"))),
            };
        };
        let device = Device::find(name).map_err(failure)?;
        let params = params_of(&self.device_opt)
            .map_err(|problem| Failure::usage(format!("--device_opt {problem}")))?;
        Ok(Some(DeviceUnderTest::new(device, params, self.device_opt.clone())))
    }
}

/// The parameters of a device from names and values.
///
/// # Errors
/// The first wrong name and value, and what is wrong with it.
pub fn params_of(options: &[(String, String)]) -> Result<Params, String> {
    let mut params = Params::default();
    for (key, value) in options {
        set(&mut params, key, value).map_err(|problem| format!("{key}={value}: {problem}"))?;
    }
    Ok(params)
}

/// Sets one parameter. A parameter that is unknown here is one of the device's description.
fn set(params: &mut Params, key: &str, value: &str) -> Result<(), String> {
    match key {
        "listen" => params.listen = address(value)?,
        "mem" => params.memory = Some(values::size(value)?),
        "disk" => params.disk = Some(values::size(value)?),
        "disk_dir" => params.disk_directory = Some(PathBuf::from(value)),
        "max_object" => params.max_object = Some(values::size(value)?),
        "workers" => {
            let workers = value.parse().ok().filter(|workers| (1..=1024).contains(workers));
            params.workers = Some(workers.ok_or("write a whole number from 1 to 1024")?);
        }
        "dns" => params.nameservers.push(address(value)?),
        "hosts" => params.hosts = hosts(value)?,
        _ if service::set(&mut params.service, key, value)? => {}
        _ => drop(params.options.insert(key.to_owned(), value.to_owned())),
    }
    Ok(())
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "write IP:PORT, for example 127.0.0.1:3128".into())
}

/// The names and addresses of a file in the format of hosts(5).
fn hosts(path: &str) -> Result<Vec<(String, IpAddr)>, String> {
    let text = std::fs::read_to_string(path).map_err(|e| e.to_string())?;
    let mut hosts = Vec::new();
    for line in text.lines() {
        let mut words = line.split('#').next().unwrap_or_default().split_whitespace();
        let Some(first) = words.next() else { continue };
        let ip = first.parse().map_err(|_| format!("`{first}` in {path} is not an IP address"))?;
        hosts.extend(words.map(|name| (name.to_owned(), ip)));
    }
    Ok(hosts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_by_example() {
        let mut params = Params::default();
        for (key, value) in [
            ("listen", "127.0.0.1:3128"),
            ("mem", "1GB"),
            ("disk", "0"),
            ("disk_dir", "/x"),
            ("max_object", "4MB"),
            ("workers", "2"),
            ("dns", "127.0.0.1:5300"),
            ("dns", "127.0.0.2:53"),
            ("store_type", "rock"),
        ] {
            set(&mut params, key, value).unwrap_or_else(|e| panic!("{key}={value}: {e}"));
        }
        let address = |text: &str| text.parse().unwrap();
        let expected = Params {
            listen: address("127.0.0.1:3128"),
            memory: Some(1 << 30),
            disk: Some(0),
            disk_directory: Some("/x".into()),
            max_object: Some(4 << 20),
            workers: Some(2),
            nameservers: vec![address("127.0.0.1:5300"), address("127.0.0.2:53")],
            options: [("store_type".to_owned(), "rock".to_owned())].into(),
            ..Params::default()
        };
        assert_eq!(params, expected);
        for (key, value) in [
            ("listen", "3128"),
            ("mem", "much"),
            ("workers", "0"),
            ("dns", "localhost:53"),
            ("hosts", "/no/file"),
        ] {
            assert!(set(&mut params, key, value).is_err(), "{key}={value}");
        }
    }
}
