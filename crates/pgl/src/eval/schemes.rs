//! Address schemes: from bench settings to addresses of agents.

use std::sync::Arc;

use polygraph_addr::{AddrRange, AddrScheme, BenchRole, BenchSpec, SchemeError, SideSpec};

use crate::check::hir::{Expr, ExprKind};
use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use crate::eval::Evaluator;
use crate::hints::{self, an};
use crate::source::Span;
use crate::types::{Base, Rec, Ty, ranges};
use crate::value::{Array, ArrayElement, Record, Slot, Value};

impl Evaluator<'_> {
    pub(super) fn scheme_addrs(
        &mut self,
        role: BenchRole,
        args: &[Expr],
        values: &[Value],
        span: Span,
    ) -> Value {
        let [Value::Record(scheme), Value::Record(bench_record)] = values else { return Value::Poison };
        let agents_per_addr = match scheme.slot("agents_per_addr").map(|slot| &slot.value) {
            Some(Value::Int(n)) => Some(i64::from(*n)),
            _ => None,
        };
        let kind = match scheme.rec {
            Rec::PolyMix3As => AddrScheme::PolyMix3,
            Rec::PolyMix4As => AddrScheme::PolyMix4 { agents_per_addr },
            Rec::WebAxe4As => AddrScheme::WebAxe4 { agents_per_addr },
            Rec::SrvLb4As => AddrScheme::SrvLb4 { agents_per_addr },
            _ => AddrScheme::Spread { agents_per_addr },
        };
        let bench = bench(bench_record);
        if role == BenchRole::Robots {
            self.outcome.planned_rate = bench.peak_req_rate;
        }
        let pools = [&bench.client_side, &bench.server_side, &bench.proxy_side];
        let pool: u64 = pools.iter().map(|side| side.addr_space.len() as u64 + side.hosts.len() as u64).sum();
        if !self.charge(pool, span) {
            return Value::Poison;
        }
        let allocation = match kind.allocate(role, &bench) {
            Ok(allocation) => allocation,
            Err(error) => return self.scheme_error(&error, args, Some(scheme), bench_record, span),
        };
        for warning in &allocation.warnings {
            self.report(Diagnostic::new(Code::SchemeIgnores, span, warning.to_string()));
        }
        let ranges = allocation.addresses();
        if !self.charge(ranges.len() as u64, span) {
            return Value::Poison;
        }
        let items =
            ranges.into_iter().map(|range| ArrayElement { value: range_value(range), prob: None }).collect();
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
            Err(error) => self.scheme_error(&error, args, None, record, span),
        }
    }

    fn scheme_error(
        &mut self,
        error: &SchemeError,
        args: &[Expr],
        scheme_record: Option<&Record>,
        bench: &Record,
        span: Span,
    ) -> Value {
        let SchemeError::Missing { scheme, missing, purpose } = error else {
            return self.report(Diagnostic::new(Code::SchemeImpossible, span, error.to_string()));
        };
        // A setting whose computation failed is not missing, and one diagnostic per missing setting is enough.
        let missing: Vec<&String> = missing
            .iter()
            .filter(|setting| {
                !bench.is_bad(setting) && !scheme_record.is_some_and(|record| record.is_bad(setting))
            })
            .collect();
        let told = |setting: &&String| {
            let at = slot_at(bench, setting).and_then(|slot| slot.at);
            at.is_some_and(|at| self.told_undefined.contains(&at))
        };
        if missing.iter().all(told) {
            return Value::Poison;
        }
        let left_at = missing.iter().filter_map(|setting| slot_at(bench, setting)?.at);
        self.told_undefined.extend(left_at);
        let name_of = |arg: Option<&Expr>, otherwise: &str| {
            arg.map_or(otherwise.to_owned(), |arg| self.sources.slice(arg.span).to_owned())
        };
        let bench_name = name_of(args.last(), "bench");
        let scheme_name = name_of(args.first(), scheme);
        let names: Vec<String> = missing
            .iter()
            .map(|setting| match setting.as_str() {
                "agents_per_addr" => format!("{scheme_name}.{setting}"),
                _ => format!("{bench_name}.{setting}"),
            })
            .collect();
        let list: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        let text = format!("{scheme} needs {} to {purpose}", list.join(", "));
        let mut finding = Diagnostic::new(Code::SchemeIncomplete, span, text);
        for (setting, name) in missing.iter().zip(&names) {
            let is_scheme = *setting == "agents_per_addr";
            let arg = if is_scheme { args.first() } else { args.last() };
            let left_at = slot_at(bench, setting).and_then(|slot| slot.at).filter(|_| !is_scheme);
            let declared = arg.and_then(|arg| match &arg.kind {
                ExprKind::Read(place) => Some(self.program.vars[place.var.0 as usize].span),
                _ => None,
            });
            finding = match (left_at, declared) {
                (Some(at), _) => finding.also(at, format!("`{setting}` was left undefined here")),
                (None, Some(at)) if is_scheme => finding.also(at, format!("declared without `{setting}`")),
                _ => finding,
            };
            let rec = if is_scheme { Rec::PolyMix4As } else { Rec::Bench };
            let ty = setting.split('.').try_fold(Ty::one(Base::Record(rec)), |ty, word| {
                crate::types::field_of(ty, word).map(|(_, ty)| ty)
            });
            let kind = ty.map_or(String::new(), |ty| format!(", {}", an(&ty.to_string())));
            let example = hints::setting_example(setting);
            let set = match example.contains(char::is_whitespace) {
                true => format!("`--set \"{name}={example}\"`"),
                false => format!("`--set {name}={example}`"),
            };
            finding = finding.help(format!("set `{name}`{kind}: `{name} = {example};`, or {set}"));
        }
        self.report(finding.note("settings in the file take effect only if they precede this call"))
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

/// The settings of a bench record that schemes use.
pub(crate) fn bench(record: &Record) -> BenchSpec {
    let rate = |record: &Record, field: &str| match record.slot(field).map(|slot| &slot.value) {
        Some(Value::Rate(rate)) => Some(*rate),
        _ => None,
    };
    let side = |field: &str| {
        let Some(Value::Record(side)) = record.slot(field).map(|slot| &slot.value) else {
            return SideSpec::default();
        };
        let list = |field: &str| side.slot(field).map_or(Vec::new(), |slot| ranges(&slot.value));
        SideSpec {
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
    BenchSpec {
        peak_req_rate: rate(record, "peak_req_rate"),
        client_side: side("client_side"),
        server_side: side("server_side"),
        proxy_side: side("proxy_side"),
    }
}

/// A range, or a single address if the range has only one.
pub(super) fn range_value(range: AddrRange) -> Value {
    match range.as_single() {
        Some(addr) => Value::Addr(Arc::new(addr)),
        None => Value::AddrRange(Arc::new(range)),
    }
}
