//! Built-in functions and procedures.

use std::sync::Arc;

use polygraph_addr::{Addr, AddrRange, BenchRole, Host, NameTemplate, compact};

use crate::calls::Builtin;
use crate::check::hir::{Expr, ExprKind};
use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use crate::eval::schemes::range_value;
use crate::eval::{Evaluator, UsedRecord, data};
use crate::hints::an;
use crate::ops::{binary, re_value, truth};
use crate::source::Span;
use crate::syntax::tree::BinaryOp;
use crate::value::{
    Array, ArrayElement, CloneOrder, Distr, Domain, Matcher, PopDistr, Shape, Value, flat, flatten, show,
};

impl Evaluator<'_> {
    /// The arguments of a call; `None` if one of them is unknown.
    fn args(&mut self, args: &[Expr]) -> Option<Vec<Value>> {
        // The expected type does not apply to the arguments of a call.
        let outer = self.wanted.take();
        let values: Vec<Value> = args.iter().map(|arg| self.defined(arg)).collect();
        self.wanted = outer;
        (!values.contains(&Value::Poison)).then_some(values)
    }

    pub(super) fn function(&mut self, call: Builtin, args: &[Expr], span: Span) -> Value {
        if call == Builtin::Undef {
            return Value::Undef;
        }
        let Some(values) = self.args(args) else { return Value::Poison };
        // Arguments whose type was unknown to the checker are checked now.
        for (index, (value, arg)) in values.iter().zip(args).enumerate() {
            if let Some(param) = call.def().param(index)
                && !param.accepts(value.ty())
            {
                let text = format!(
                    "argument {} of `{}` must be {}, not {}",
                    index + 1,
                    call.def().name,
                    param.wanted(),
                    an(&value.ty().to_string())
                );
                return self.report(Diagnostic::new(Code::WrongArgument, arg.span, text));
            }
        }
        if values.iter().any(|value| matches!(value, Value::Unknown(_))) {
            let types: Vec<_> = values.iter().map(Value::ty).collect();
            return Value::Unknown(call.def().result(&types).base);
        }
        let number = |index: usize| values.get(index).and_then(Value::number).unwrap_or(0.0);
        let int = |index: usize| match values.get(index) {
            Some(Value::Int(value)) => *value,
            _ => 0,
        };
        match call {
            Builtin::Int | Builtin::Float => self.number_of(call, &values[0], args[0].span),
            Builtin::Count => match i32::try_from(values[0].len()) {
                Ok(count) => Value::Int(count),
                Err(_) => {
                    self.report(Diagnostic::new(Code::Overflow, span, "there are too many items to count"))
                }
            },
            Builtin::Min | Builtin::Max => self.extreme(call, &values, args),
            Builtin::Const
            | Builtin::Unif
            | Builtin::Exp
            | Builtin::Norm
            | Builtin::Logn
            | Builtin::Zipf
            | Builtin::Seq => self.distribution(call, &values, args, span),
            Builtin::Table => self.table(&values, args, span),
            Builtin::PopUnif => Value::PopDistr(PopDistr::Unif),
            Builtin::PopZipf => {
                let skew = number(0);
                if skew <= 0.0 {
                    let text = "the skew of popZipf() must be positive";
                    return self.report(Diagnostic::new(Code::BadDistribution, args[0].span, text));
                }
                Value::PopDistr(PopDistr::Zipf { skew })
            }
            Builtin::RobotAddrs => self.scheme_addrs(BenchRole::Robots, args, &values, span),
            Builtin::ServerAddrs => self.scheme_addrs(BenchRole::Servers, args, &values, span),
            Builtin::ProxyAddrs => self.scheme_addrs(BenchRole::Proxies, args, &values, span),
            Builtin::ClientHostCount => self.client_host_count(args, &values, span),
            Builtin::IpsToNames => self.ips_to_names(&values, args),
            Builtin::ZoneDomains => self.zone_domains(&values, args),
            Builtin::TracedHosts => self.traced_hosts(&values[0], args[0].span),
            Builtin::DynamicName => match self.share(number(1), args[1].span) {
                Some(prob) => self.dynamic_name(&values[0], prob, args[0].span),
                None => Value::Poison,
            },
            Builtin::Dynamize => self.dynamize(&values[0], number(1), args),
            Builtin::SetAddrPort => self.set_addr_port(&values[0], int(1), args),
            Builtin::Select => self.select(&values[0], int(1), args),
            Builtin::Credentials => self.credentials(int(0), &values[1], args),
            Builtin::AnyOf => self.any_of(&values[0], args[0].span),
            Builtin::UniqId => {
                self.unique += 1;
                Value::UniqId(self.options.unique_base.wrapping_add(self.unique))
            }
            Builtin::System => self.system(&values[0], span),
            Builtin::Worker => Value::Int(self.options.worker as i32),
            // Everything else exists only in scripts.
            call => self.live_function(call),
        }
    }

    pub(super) fn procedure(&mut self, call: Builtin, args: &[Expr], span: Span) {
        match call {
            Builtin::Use | Builtin::Schedule => {
                for arg in args {
                    self.use_one(call, arg);
                }
                return;
            }
            Builtin::Print => return self.print(args, span),
            _ => {}
        }
        let Some(values) = self.args(args) else { return };
        match (call, values.first()) {
            (Builtin::WorkingSetLength, Some(Value::Time(us))) => {
                self.outcome.working_set_length = Some((*us, span))
            }
            (Builtin::WorkingSetLength, Some(Value::Int(0))) => {
                self.outcome.working_set_length = Some((0, span))
            }
            (Builtin::WorkingSetLength, _) => {
                let text = "working_set_length() takes a time";
                self.report(Diagnostic::new(Code::WrongArgument, args[0].span, text));
            }
            (Builtin::WorkingSetCap, Some(Value::Int(count))) => {
                if *count < 1 {
                    let text = format!("a working set of {count} objects is impossible");
                    self.report(Diagnostic::new(Code::BadCount, args[0].span, text));
                }
                self.outcome.working_set_cap = Some((*count, span));
            }
            (Builtin::Compat, Some(Value::Str(version))) => match version.parse() {
                Ok(compat) => self.outcome.compat = Some(compat),
                Err(text) => {
                    self.report(Diagnostic::new(Code::WrongArgument, args[0].span, text));
                }
            },
            (Builtin::NoteSubstitutes, _) => {
                for (value, arg) in values.into_iter().zip(args) {
                    let to = crate::types::Ty::array_of(crate::types::Base::Addr);
                    let value = self.converted(value, to, "note_substitutes", arg);
                    if value != Value::Poison {
                        self.outcome.substitutes.push(value);
                    }
                }
            }
            _ => self.live_procedure(call, &values, args),
        }
    }

    fn use_one(&mut self, call: Builtin, arg: &Expr) {
        let value = self.defined(arg);
        match value {
            Value::Poison => self.outcome.unknown_use = true,
            Value::Record(record) => {
                let name = match &arg.kind {
                    ExprKind::Read(place) => Some(self.name(place)),
                    _ => None,
                };
                let used = UsedRecord { record, name, span: arg.span };
                let list =
                    if call == Builtin::Use { &mut self.outcome.used } else { &mut self.outcome.scheduled };
                list.push(used);
            }
            other => {
                let text =
                    format!("{} cannot be given to {}()", an(&other.ty().to_string()), call.def().name);
                self.report(Diagnostic::new(Code::NotUsable, arg.span, text));
            }
        }
    }

    fn print(&mut self, args: &[Expr], span: Span) {
        let Some(values) = self.args(args) else { return };
        let weight: u64 = values.iter().map(Value::weight).sum();
        if !self.charge(weight, span) {
            return;
        }
        let line: String = values.iter().map(show).collect();
        self.put_line(line);
    }

    fn number_of(&mut self, call: Builtin, value: &Value, span: Span) -> Value {
        let whole = call == Builtin::Int;
        let text = match value {
            Value::Int(value) if whole => return Value::Int(*value),
            Value::Int(value) => return Value::Float(f64::from(*value)),
            Value::Float(value) if !whole => return Value::Float(*value),
            Value::Float(value) if value.abs() < 2_147_483_648.0 => return Value::Int(*value as i32),
            Value::Float(value) => {
                let text = format!("{} is too large for an int", show(&Value::Float(*value)));
                return self.report(Diagnostic::new(Code::Overflow, span, text));
            }
            Value::Str(text) => text,
            _ => return Value::Poison,
        };
        let number =
            if whole { text.trim().parse().ok().map(Value::Int) } else { number_in(text).map(Value::Float) };
        match number {
            Some(value) => value,
            None => {
                let wanted = if whole { "an integer" } else { "a number" };
                let text = format!("the string {} is not {wanted}", show_quoted(text));
                self.report(Diagnostic::new(Code::BadNumberString, span, text))
            }
        }
    }

    fn extreme(&mut self, call: Builtin, values: &[Value], args: &[Expr]) -> Value {
        let op = if call == Builtin::Min { BinaryOp::Lt } else { BinaryOp::Gt };
        let mut best = 0;
        for index in 1..values.len() {
            match binary(op, &values[index], &values[best]).ok().as_ref().and_then(truth) {
                Some(true) => best = index,
                Some(false) => {}
                None => {
                    let (a, b) = (values[best].ty().to_string(), values[index].ty().to_string());
                    let text = format!("{} and {} cannot be compared", an(&a), an(&b));
                    return self.report(Diagnostic::new(Code::NoOperator, args[index].span, text));
                }
            }
        }
        values[best].clone()
    }

    fn distribution(&mut self, call: Builtin, values: &[Value], args: &[Expr], span: Span) -> Value {
        let amount = |value: &Value| {
            Some(match value {
                Value::Int(value) => (Domain::Int, f64::from(*value)),
                Value::Float(value) => (Domain::Float, *value),
                Value::Time(us) => (Domain::Time, *us as f64 / 1e6),
                Value::Size(bytes) => (Domain::Size, *bytes as f64),
                _ => return None,
            })
        };
        let Some((domain, first)) = amount(&values[0]) else { return Value::Poison };
        let second = values.get(1).and_then(amount);
        // A deviation may be a plain number, in seconds or bytes; but a time does not combine with a size.
        if let Some((other, _)) = second
            && other != domain
            && !matches!(other, Domain::Int | Domain::Float)
        {
            let text = format!("{} cannot be combined with {}", an(other.name()), an(domain.name()));
            return self.report(Diagnostic::new(Code::BadDistribution, args[1].span, text));
        }
        let second = second.map_or(0.0, |(_, amount)| amount);
        let wrong = match call {
            Builtin::Unif if second < first => Some((1, "the upper bound is below the lower one")),
            Builtin::Exp if first < 0.0 => Some((0, "the mean of exp() must not be negative")),
            Builtin::Norm if second < 0.0 => Some((1, "the deviation must not be negative")),
            Builtin::Logn if first <= 0.0 => Some((0, "the mean of logn() must be positive")),
            Builtin::Logn if second < 0.0 => Some((1, "the deviation must not be negative")),
            Builtin::Zipf if first < 1.0 => Some((0, "the parameter of zipf() must be at least 1")),
            _ => None,
        };
        if let Some((index, text)) = wrong {
            let at = args.get(index).map_or(span, |arg| arg.span);
            return self.report(Diagnostic::new(Code::BadDistribution, at, text));
        }
        let shape = match call {
            Builtin::Const => Shape::Const(first),
            Builtin::Unif => Shape::Unif { lo: first, hi: second },
            Builtin::Exp => Shape::Exp { mean: first },
            Builtin::Norm => Shape::Norm { mean: first, sd: second },
            Builtin::Logn => Shape::Logn { mean: first, sd: second },
            Builtin::Zipf => Shape::Zipf { n: first.trunc() },
            _ => Shape::Seq { first },
        };
        Value::Distr(Arc::new(Distr { domain, shape, qualifier: None }))
    }

    /// The text of a data file.
    fn data_file(&mut self, name: &Value, span: Span) -> Option<String> {
        let Value::Str(name) = name else { return None };
        match crate::syntax::preprocess::find(name, None, self.loader, self.options) {
            Ok((_, text)) => Some(text),
            Err(finding) => {
                self.report(Diagnostic { span: Some(span), ..*finding });
                None
            }
        }
    }

    fn bad_data(&mut self, text: String, span: Span) -> Value {
        self.report(Diagnostic::new(Code::BadDataFile, span, text))
    }

    fn table(&mut self, values: &[Value], args: &[Expr], span: Span) -> Value {
        let Some(text) = self.data_file(&values[0], args[0].span) else { return Value::Poison };
        let distr = match data::table(&text) {
            Ok(distr) => distr,
            Err(why) => return self.bad_data(format!("the table is unusable: {why}"), span),
        };
        if let Some(Value::Str(wanted)) = values.get(1) {
            let name = distr.domain.name();
            if &**wanted != name && **wanted != *format!("{name}_distr") {
                let text = format!("the table draws {name} values, not {wanted}");
                return self.report(Diagnostic::new(Code::BadDataFile, args[1].span, text));
            }
        }
        Value::Distr(Arc::new(distr))
    }

    /// The addresses in an array; a diagnostic if it has other elements.
    fn addrs(&mut self, value: &Value, call: &str, span: Span) -> Option<Vec<(Addr, f64)>> {
        if !self.charge(value.len(), span) {
            return None;
        }
        let mut addrs = Vec::new();
        let mut wrong = None;
        flatten(value, CloneOrder::Position, &mut |value, prob| match value {
            Value::Addr(addr) | Value::DynName(addr, _) => addrs.push((Arc::unwrap_or_clone(addr), prob)),
            other => wrong = Some(other),
        });
        if let Some(wrong) = wrong {
            let text = format!("{call}() takes addresses, but one item is {}", an(&wrong.ty().to_string()));
            self.report(Diagnostic::new(Code::WrongArgument, span, text));
            return None;
        }
        Some(addrs)
    }

    fn ranges(&mut self, ranges: Vec<AddrRange>, span: Span) -> Value {
        let items = ranges.into_iter().map(range_value);
        match Array::of(items) {
            Ok(array) => Value::Array(Arc::new(array)),
            Err(limit) => self.limit(limit, span),
        }
    }

    fn ips_to_names(&mut self, values: &[Value], args: &[Expr]) -> Value {
        let Value::Str(template) = &values[1] else { return Value::Poison };
        let template = match NameTemplate::parse(template) {
            Ok(template) => template,
            Err(error) => {
                return self.report(Diagnostic::new(Code::WrongArgument, args[1].span, error.to_string()));
            }
        };
        let Some(addrs) = self.addrs(&values[0], "ipsToNames", args[0].span) else { return Value::Poison };
        match template.names(addrs.into_iter().map(|(addr, _)| addr), self.options.worker) {
            Ok(ranges) => self.ranges(ranges, args[0].span),
            Err(error) => self.report(Diagnostic::new(Code::WrongArgument, args[0].span, error.to_string())),
        }
    }

    fn zone_domains(&mut self, values: &[Value], args: &[Expr]) -> Value {
        let Some(text) = self.data_file(&values[0], args[0].span) else { return Value::Poison };
        let names = data::zone_names(&text);
        let Some(addrs) = self.addrs(&values[1], "zoneDomains", args[1].span) else { return Value::Poison };
        let mut found = Vec::new();
        for (addr, _) in addrs {
            let name = addr.host.ip().and_then(|ip| names.get(&ip));
            match name {
                Some(name) => {
                    found.push(Addr { port: addr.port, ..Addr::new(Host::Name(name.as_str().into())) })
                }
                None => {
                    return self.bad_data(format!("the zone has no name for {}", addr.host), args[0].span);
                }
            }
        }
        self.ranges(compact(found), args[1].span)
    }

    fn traced_hosts(&mut self, name: &Value, span: Span) -> Value {
        let Some(text) = self.data_file(name, span) else { return Value::Poison };
        let hosts = data::traced_hosts(&text);
        if hosts.is_empty() {
            return self.bad_data("the trace has no URLs".to_owned(), span);
        }
        if !self.charge(hosts.len() as u64, span) {
            return Value::Poison;
        }
        self.ranges(hosts.into_iter().map(|host| AddrRange::from(Addr::new(host))).collect(), span)
    }

    /// A probability given as an argument.
    fn share(&mut self, prob: f64, span: Span) -> Option<f64> {
        if (0.0..=1.0).contains(&prob) {
            return Some(prob);
        }
        let text = format!("a probability cannot be {}%", show(&Value::Float(prob * 100.0)));
        self.report(Diagnostic::new(Code::BadCount, span, text));
        None
    }

    fn dynamic_name(&mut self, value: &Value, prob: f64, span: Span) -> Value {
        let (Value::Addr(addr) | Value::DynName(addr, _)) = value else {
            let text =
                format!("a dynamic name is made from a name, not from {}", an(&value.ty().to_string()));
            return self.report(Diagnostic::new(Code::WrongArgument, span, text));
        };
        let Host::Name(name) = &addr.host else {
            let text = format!("{} is an IP address, but only names can be dynamic", addr.host);
            return self.report(Diagnostic::new(Code::WrongArgument, span, text));
        };
        let mask = format!(".{}", name.trim_start_matches('*').trim_start_matches('.'));
        Value::DynName(Arc::new(Addr { host: Host::Name(mask.into()), ..(**addr).clone() }), prob)
    }

    fn dynamize(&mut self, value: &Value, prob: f64, args: &[Expr]) -> Value {
        let Some(prob) = self.share(prob, args[1].span) else { return Value::Poison };
        if !self.charge(value.len(), args[0].span) {
            return Value::Poison;
        }
        let any_prob = has_prob(value);
        let mut items = Vec::new();
        for (value, item_prob) in flat(value, CloneOrder::Position) {
            let value = self.dynamic_name(&value, prob, args[0].span);
            if value == Value::Poison {
                return value;
            }
            items.push(ArrayElement { value, prob: any_prob.then_some(item_prob) });
        }
        Array::new(items).map_or(Value::Poison, |array| Value::Array(Arc::new(array)))
    }

    fn set_addr_port(&mut self, value: &Value, port: i32, args: &[Expr]) -> Value {
        let port = match port {
            ..0 => None,
            0 => {
                let text = "port 0 does not exist; a negative port removes the port";
                return self.report(Diagnostic::new(Code::BadPort, args[1].span, text));
            }
            port => match u16::try_from(port) {
                Ok(port) => Some(port),
                Err(_) => {
                    let text = format!("port {port} does not exist; the last one is 65535");
                    return self.report(Diagnostic::new(Code::BadPort, args[1].span, text));
                }
            },
        };
        let Some(addrs) = self.addrs(value, "setAddrPort", args[0].span) else { return Value::Poison };
        if !has_prob(value) {
            return self
                .ranges(compact(addrs.into_iter().map(|(addr, _)| addr.with_port(port))), args[0].span);
        }
        let item = |(addr, prob): (Addr, f64)| ArrayElement {
            value: Value::Addr(Arc::new(addr.with_port(port))),
            prob: Some(prob),
        };
        let items = addrs.into_iter().map(item).collect();
        Array::new(items).map_or(Value::Poison, |array| Value::Array(Arc::new(array)))
    }

    fn select(&mut self, value: &Value, count: i32, args: &[Expr]) -> Value {
        let Some(count) = self.positive(count, args[1].span) else { return Value::Poison };
        if !self.charge(value.len().saturating_add(count as u64), args[0].span) {
            return Value::Poison;
        }
        let items: Vec<Value> =
            flat(value, CloneOrder::Position).into_iter().map(|(value, _)| value).collect();
        if items.is_empty() {
            let text = "there is nothing to select from: the array is empty";
            return self.report(Diagnostic::new(Code::BadCount, args[0].span, text));
        }
        if count > items.len() {
            let text = format!("{count} items are selected from {}: some are repeated", items.len());
            self.report(Diagnostic::new(Code::SelectCycles, args[1].span, text));
        }
        let mut chosen = Vec::with_capacity(count);
        while chosen.len() < count {
            let mut cycle = items.clone();
            self.random.select.shuffle(&mut cycle);
            cycle.truncate(count - chosen.len());
            chosen.extend(cycle);
        }
        match Array::of(chosen) {
            Ok(array) => Value::Array(Arc::new(array)),
            Err(limit) => self.limit(limit, args[1].span),
        }
    }

    fn positive(&mut self, count: i32, span: Span) -> Option<usize> {
        match usize::try_from(count) {
            Ok(count) if count > 0 => Some(count),
            _ => {
                let text = format!("the count must be at least 1, but it is {count}");
                self.report(Diagnostic::new(Code::BadCount, span, text));
                None
            }
        }
    }

    fn credentials(&mut self, count: i32, space: &Value, args: &[Expr]) -> Value {
        let Some(count) = self.positive(count, args[0].span) else { return Value::Poison };
        let Value::Str(space) = space else { return Value::Poison };
        if !self.charge(count as u64, args[0].span) {
            return Value::Poison;
        }
        let pair = |machine: &mut Self, index: usize| {
            let word = machine.random.credentials.next();
            let (user, password) = (word >> 32, word & 0xffff_ffff);
            Value::Str(format!("user{index}_{user:08x}@{space}:pw{password:08x}x").into())
        };
        let pairs: Vec<Value> = (0..count).map(|index| pair(self, index)).collect();
        if !std::mem::replace(&mut self.told_accounts, true) {
            let text = "these accounts differ from those that Polygraph 4 creates";
            let help = "create them on the device: `polygraph accounts FILE --format htpasswd` (or `ldif`)";
            self.report(Diagnostic::new(Code::Accounts, args[0].span, text).help(help));
        }
        match Array::of(pairs) {
            Ok(array) => Value::Array(Arc::new(array)),
            Err(limit) => self.limit(limit, args[0].span),
        }
    }

    fn any_of(&mut self, value: &Value, span: Span) -> Value {
        if !self.charge(value.len(), span) {
            return Value::Poison;
        }
        let mut list = Vec::new();
        for (value, _) in flat(value, CloneOrder::Position) {
            match value {
                Value::Re(re) => list.push(re),
                other => {
                    let text =
                        format!("anyOf() takes regular expressions, not {}", an(&other.ty().to_string()));
                    return self.report(Diagnostic::new(Code::WrongArgument, span, text));
                }
            }
        }
        if list.is_empty() {
            return self.report(Diagnostic::new(
                Code::BadCount,
                span,
                "anyOf() needs at least one expression",
            ));
        }
        re_value(Matcher::Any(list)).unwrap_or(Value::Poison)
    }

    fn system(&mut self, command: &Value, span: Span) -> Value {
        let Value::Str(command) = command else { return Value::Poison };
        if !self.options.allow_exec {
            let finding = Diagnostic::new(
                Code::CommandNotAllowed,
                span,
                "this program would run a command when it is read",
            )
            .help("read the program first; if you trust it, allow commands with --allow_exec");
            return self.report(finding);
        }
        match self.loader.run(command) {
            Ok(output) if output.len() <= self.options.limits.source_bytes => Value::Str(output.into()),
            Ok(_) => self.report(Diagnostic::new(
                Code::CommandFailed,
                span,
                "the output of the command is too long",
            )),
            Err(error) => {
                let text = format!("the command failed: {error}");
                self.report(Diagnostic::new(Code::CommandFailed, span, text))
            }
        }
    }
}

/// True if an item of the array has a probability.
fn has_prob(value: &Value) -> bool {
    matches!(value, Value::Array(array) if array.any_prob())
}

/// The number in a string, ignoring blanks around it.
pub(super) fn number_in(text: &str) -> Option<f64> {
    let text = text.trim();
    let digits = text.bytes().all(|c| matches!(c, b'0'..=b'9' | b'.' | b'+' | b'-' | b'e' | b'E'));
    digits.then(|| text.parse().ok()).flatten().filter(|value: &f64| value.is_finite())
}

fn show_quoted(text: &str) -> String {
    format!("\"{}\"", super::shorten(text))
}
