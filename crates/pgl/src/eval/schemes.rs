//! Address schemes: from bench settings to addresses of agents.

use std::sync::Arc;

use polygraph_addr::{AddrRange, Bench, Role, Scheme, SchemeError, Side};

use crate::check::hir::Expr;
use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use crate::eval::Machine;
use crate::source::Span;
use crate::types::{Rec, ranges};
use crate::value::{Array, Item, Record, Slot, Value};

impl Machine<'_> {
    pub(super) fn scheme_addrs(&mut self, role: Role, args: &[Expr], values: &[Value], span: Span) -> Value {
        let [Value::Record(scheme), Value::Record(bench_record)] = values else { return Value::Poison };
        let agents_per_addr = match scheme.slot("agents_per_addr").map(|slot| &slot.value) {
            Some(Value::Int(n)) => Some(i64::from(*n)),
            _ => None,
        };
        let kind = match scheme.rec {
            Rec::PolyMix3As => Scheme::PolyMix3,
            Rec::PolyMix4As => Scheme::PolyMix4 { agents_per_addr },
            Rec::WebAxe4As => Scheme::WebAxe4 { agents_per_addr },
            Rec::SrvLb4As => Scheme::SrvLb4 { agents_per_addr },
            _ => Scheme::Spread { agents_per_addr },
        };
        let bench = bench(bench_record);
        let pools = [&bench.client_side, &bench.server_side, &bench.proxy_side];
        let pool: u64 = pools.iter().map(|side| side.addr_space.len() as u64 + side.hosts.len() as u64).sum();
        if !self.charge(pool, span) {
            return Value::Poison;
        }
        let allocation = match kind.allocate(role, &bench) {
            Ok(allocation) => allocation,
            Err(error) => return self.scheme_error(&error, args, bench_record, span),
        };
        for warning in &allocation.warnings {
            self.report(Diagnostic::new(Code::SchemeIgnores, span, warning.to_string()));
        }
        let ranges = allocation.addresses();
        if !self.charge(ranges.len() as u64, span) {
            return Value::Poison;
        }
        let items = ranges.into_iter().map(|range| Item { value: range_value(range), prob: None }).collect();
        match Array::cloned(items, u32::try_from(allocation.agents_per_addr).unwrap_or(u32::MAX)) {
            Ok(array) => Value::Array(Arc::new(array)),
            Err(limit) => self.limit(limit, span),
        }
    }

    pub(super) fn client_host_count(&mut self, args: &[Expr], values: &[Value], span: Span) -> Value {
        let [Value::Record(record)] = values else { return Value::Poison };
        match bench(record).client_host_count() {
            Ok(count) => match i32::try_from(count) {
                Ok(count) => Value::Int(count),
                Err(_) => {
                    self.report(Diagnostic::new(Code::Overflow, span, "there would be too many client hosts"))
                }
            },
            Err(error) => self.scheme_error(&error, args, record, span),
        }
    }

    fn scheme_error(&mut self, error: &SchemeError, args: &[Expr], bench: &Record, span: Span) -> Value {
        let text = error.to_string();
        let SchemeError::Missing { scheme, missing, .. } = error else {
            return self.report(Diagnostic::new(Code::SchemeImpossible, span, text));
        };
        // A setting whose computation failed is not missing, and one complaint about each missing setting is enough.
        let known = |setting: &String| {
            let slot = slot_at(bench, setting);
            slot.is_some_and(|slot| {
                slot.value == Value::Poison || slot.at.is_some_and(|at| self.told_undefined.contains(&at))
            })
        };
        if missing.iter().all(known) {
            return Value::Poison;
        }
        let left_at = missing.iter().filter_map(|setting| slot_at(bench, setting)?.at);
        self.told_undefined.extend(left_at);
        let mut finding = Diagnostic::new(Code::SchemeIncomplete, span, text);
        let bench_name =
            args.last().map_or("bench".to_owned(), |arg| self.sources.slice(arg.span).to_owned());
        let scheme_name =
            args.first().map_or((*scheme).to_owned(), |arg| self.sources.slice(arg.span).to_owned());
        for setting in missing {
            let name = match setting.as_str() {
                "agents_per_addr" => format!("{scheme_name}.{setting}"),
                _ => format!("{bench_name}.{setting}"),
            };
            finding = finding
                .also_at(
                    slot_at(bench, setting).and_then(|slot| slot.at),
                    format!("`{setting}` was left undefined here"),
                )
                .help(format!("give `{name}` a value in the file, or with `--set {name}=VALUE`"));
        }
        self.report(finding)
    }
}

/// A field below a record.
fn slot_at<'a>(record: &'a Record, path: &str) -> Option<&'a Slot> {
    let (first, rest) = path.split_once('.').unwrap_or((path, ""));
    let slot = record.slot(first)?;
    match (&slot.value, rest) {
        (Value::Record(nested), rest) if !rest.is_empty() => slot_at(nested, rest),
        _ => Some(slot),
    }
}

/// The settings of a bench record that schemes look at.
pub(crate) fn bench(record: &Record) -> Bench {
    let rate = |record: &Record, field: &str| match record.slot(field).map(|slot| &slot.value) {
        Some(Value::Rate(rate)) => Some(*rate),
        _ => None,
    };
    let side = |field: &str| {
        let Some(Value::Record(side)) = record.slot(field).map(|slot| &slot.value) else {
            return Side::default();
        };
        let list = |field: &str| side.slot(field).map_or(Vec::new(), |slot| ranges(&slot.value));
        Side {
            hosts: list("hosts"),
            max_host_load: rate(side, "max_host_load"),
            max_agent_load: rate(side, "max_agent_load"),
            addr_space: list("addr_space"),
            addr_mask: match side.slot("addr_mask").map(|slot| &slot.value) {
                Some(Value::Addr(addr)) => Some((**addr).clone()),
                _ => None,
            },
        }
    };
    Bench {
        peak_req_rate: rate(record, "peak_req_rate"),
        client_side: side("client_side"),
        server_side: side("server_side"),
        proxy_side: side("proxy_side"),
    }
}

/// A range, or the one address it stands for.
pub(super) fn range_value(range: AddrRange) -> Value {
    match range.as_single() {
        Some(addr) => Value::Addr(Arc::new(addr)),
        None => Value::AddrRange(Arc::new(range)),
    }
}
