//! The service model of the built-in proxy, from options or from parameters of the device `builtin`.

use std::time::Duration;

use clap::Args;
use polygraph_cache::ServiceModel;
use polygraph_plan::values::{self, Unit};
use polygraph_traffic::Distr;

use super::values::{Optional, optional_rate, think};

/// Options that slow the proxy down.
#[derive(Args, Clone, Debug)]
#[command(rename_all = "snake_case", next_help_heading = "Slower device")]
pub struct ServiceOptions {
    /// Maximum rate of transactions; others wait in one queue. This simulates a device of known capacity
    #[arg(long, value_name = "RATE", default_value = "none", value_parser = optional_rate)]
    service_rate: Optional<f64>,
    /// Time that each transaction occupies the device; the others wait in one queue. The response time rises with the load
    /// and with the variance of this time. The capacity is 1 divided by its mean (docs/rptmstat.md)
    #[arg(long, value_name = "DISTR", default_value = "none", value_parser = think, conflicts_with = "service_rate")]
    service_work: Optional<Distr>,
    /// Additional time for each transaction that needs a request to an origin server
    #[arg(long, value_name = "DISTR", default_value = "none", value_parser = think)]
    miss_work: Optional<Distr>,
    /// Delay of each transaction, in parallel, without a queue
    #[arg(long, value_name = "DISTR", default_value = "none", value_parser = think)]
    service_time: Optional<Distr>,
    /// After TIME, multiply all these times by FACTOR, for example 10min:1.25; repeatable. All factors multiply the values at the
    /// start
    #[arg(long, value_name = "TIME:FACTOR", value_parser = change)]
    slow_down: Vec<(Duration, f64)>,
}

impl From<ServiceOptions> for ServiceModel {
    fn from(options: ServiceOptions) -> ServiceModel {
        ServiceModel {
            work: options.service_work.0.or(options.service_rate.0.map(ServiceModel::rate)),
            miss_work: options.miss_work.0,
            latency: options.service_time.0,
            changes: options.slow_down,
            ..ServiceModel::default()
        }
    }
}

/// Sets the parameter that has the name of one of the [`ServiceOptions`]. Returns false if there is no such option.
///
/// # Errors
/// If the value is wrong.
pub fn set(model: &mut ServiceModel, key: &str, value: &str) -> Result<bool, String> {
    let time = || values::optional_distr(value, Unit::Time);
    match key {
        "service_rate" => model.work = Some(ServiceModel::rate(values::rate(value)?)),
        "service_work" => model.work = time()?,
        "miss_work" => model.miss_work = time()?,
        "service_time" => model.latency = time()?,
        "slow_down" => model.changes.push(change(value)?),
        _ => return Ok(false),
    }
    Ok(true)
}

fn change(text: &str) -> Result<(Duration, f64), String> {
    let (after, factor) = text.split_once(':').ok_or("write TIME:FACTOR, for example 10min:1.25")?;
    let after = Duration::try_from_secs_f64(values::time(after)?).map_err(|e| e.to_string())?;
    let factor = factor.strip_suffix('x').unwrap_or(factor).parse().ok();
    let factor = factor.filter(|factor: &f64| factor.is_finite() && *factor > 0.0);
    Ok((after, factor.ok_or_else(|| format!("`{text}` has no positive factor"))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_devices_are_those_of_options() {
        let mut model = ServiceModel::default();
        for (key, value) in [
            ("service_work", "exp:10ms"),
            ("miss_work", "2ms"),
            ("service_time", "none"),
            ("slow_down", "10min:1.25"),
            ("slow_down", "15min:0.5x"),
        ] {
            assert_eq!(set(&mut model, key, value), Ok(true), "{key}");
        }
        let expected = ServiceModel {
            work: Some(Distr::Exp { mean: 0.01 }),
            miss_work: Some(Distr::Const(0.002)),
            changes: vec![(Duration::from_secs(600), 1.25), (Duration::from_secs(900), 0.5)],
            ..ServiceModel::default()
        };
        assert_eq!(model, expected);
        assert_eq!(set(&mut model, "service_rate", "200/sec"), Ok(true));
        assert_eq!(model.work, Some(Distr::Const(0.005)));
        assert_eq!(set(&mut model, "mem", "1GB"), Ok(false));
        for (key, value) in [
            ("service_rate", "0/sec"),
            ("service_work", "long"),
            ("slow_down", "10min"),
            ("slow_down", "10min:-1"),
            ("slow_down", "soon:2"),
        ] {
            assert!(set(&mut model, key, value).is_err(), "{key}={value}");
        }
    }
}
