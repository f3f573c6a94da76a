//! The notation of values: advice at the end of messages about wrong types and missing values.

use crate::check::hir::{Expr, ExprKind};
use crate::types::{Base, Rec, Ty, field_of};
use crate::value::{Domain, Value, show};

/// A literal or constructor of the type, ready to be copied.
pub fn example(ty: Ty) -> String {
    let one = match ty.base {
        Base::Bool => "yes",
        Base::Int => "5",
        Base::Float => "80%",
        Base::Str => "\"text\"",
        Base::Time => "3sec",
        // Most sizes that are no distributions are those of caches and working sets.
        Base::Size => "100MB",
        Base::Rate => "100/sec",
        Base::Bwidth => "55Kb/sec",
        Base::Addr | Base::AddrRange => "'10.0.0.1:80'",
        Base::DynName => "dynamicName('*.example.com', 10%)",
        Base::UniqId => "uniqId()",
        Base::Re => "url_host =~/example/",
        Base::PopDistr => "popUnif()",
        Base::Distr(Domain::Int) => "const(5)",
        Base::Distr(Domain::Float) => "const(2.0)",
        Base::Distr(Domain::Time) => "exp(3sec)",
        Base::Distr(Domain::Size) => "exp(13KB)",
        Base::StrRange => "\"user[1-9]\"",
        _ => "X",
    };
    if ty.array { format!("[ {one} ]") } else { one.to_owned() }
}

/// An example for a setting of the bench or of a scheme, by its name.
pub fn setting_example(field: &str) -> &'static str {
    match field.rsplit('.').next().unwrap_or(field) {
        "peak_req_rate" => "100/sec",
        "max_host_load" => "500/sec",
        "max_agent_load" => "0.4/sec",
        "addr_space" if field.starts_with("server") => "[ '10.101.128-251.1-250:80/22' ]",
        "addr_space" => "[ '10.101.0-123.1-250/22' ]",
        "addr_mask" if field.starts_with("server") => "'10.101.0.0:80'",
        "addr_mask" => "'10.101.0.0'",
        "hosts" if field.starts_with("server") => "[ '192.168.0.21-22:80' ]",
        "hosts" => "[ '192.168.0.11-12' ]",
        _ => "1",
    }
}

/// An example for a field, which may belong to a record inside `rec`; `None` where no example is meaningful.
pub fn field_example(rec: Rec, path: &str) -> Option<String> {
    let mut ty = Ty::one(Base::Record(rec));
    for word in path.split('.') {
        ty = field_of(ty, word)?.1;
    }
    match path {
        "interests" => Some("[ \"public\", \"foreign\": 10% ]".to_owned()),
        "req_types" => Some("[ \"Basic\", \"Ims304\": 5% ]".to_owned()),
        "req_methods" => Some("[ \"GET\", \"HEAD\": 5% ]".to_owned()),
        "foreign_trace" => Some("\"trace.urls\"".to_owned()),
        // Heads of replies with larger cookies are refused by many proxies.
        "cookie_value_size" => Some("const(30Byte)".to_owned()),
        _ => match ty.base {
            Base::Record(_) | Base::AnyRange | Base::Unknown => None,
            _ => Some(example(ty)),
        },
    }
}

/// How to write an element of an array.
pub fn how_element(base: Base) -> String {
    match base {
        Base::Record(rec) => format!("declare a variable, `{} x = {{ ... }};`, and list `x`", rec.name()),
        base => how(Ty::one(base)),
    }
}

/// How to write a value of a type, as advice.
pub fn how(ty: Ty) -> String {
    let an_example = example(ty);
    if ty.array {
        return format!("an array is written in brackets: `{an_example}`");
    }
    match ty.base {
        Base::Bool => "a bool is `yes` or `no`".to_owned(),
        Base::Int => "an int is a number without a decimal point or unit, such as `5`".to_owned(),
        Base::Float => "write a share such as `80%`, or a number such as `0.8`".to_owned(),
        Base::Str => format!("text is written in double quotes: `{an_example}`"),
        Base::Time => "a time is a number with a unit: `3sec`, `500ms`, `10min`".to_owned(),
        Base::Size => "a size is a number with a unit: `13KB`, `500Byte`, `1GB`".to_owned(),
        Base::Rate => format!("a rate is a division: `{an_example}`"),
        Base::Bwidth => format!("a bandwidth is a size divided by a time: `{an_example}`"),
        Base::Addr => format!("an address is written in single quotes: `{an_example}`"),
        Base::PopDistr => "write `popUnif()`, or `popZipf(1)` where 1 is the skew".to_owned(),
        Base::Distr(domain) => {
            let [a, b] = amounts(domain);
            format!(
                "a distribution of {}s is written `const({a})`, `exp({a})` or `unif({a}, {b})`",
                domain.name()
            )
        }
        Base::Record(rec) => {
            let name = rec.name();
            format!("give it a variable of type {name}, or fill it with a block, `= {{ ... }};`")
        }
        Base::AnyRange => "give it a variable of type SingleRange or MultiRange".to_owned(),
        Base::Code => "a script is a block: `script = { ... };`".to_owned(),
        base => format!("{} is written `{an_example}`", an(&base.to_string())),
    }
}

fn amounts(domain: Domain) -> [&'static str; 2] {
    match domain {
        Domain::Int => ["5", "9"],
        Domain::Float => ["2.0", "7.5"],
        Domain::Time => ["3sec", "10sec"],
        Domain::Size => ["13KB", "20KB"],
    }
}

/// What to write instead of an expression of type `from` where `to` is expected.
pub fn instead(from: Ty, to: Ty, expr: &Expr) -> String {
    if let Some(text) = rewritten(from, to, expr) {
        return text;
    }
    let how = how(to);
    match (from.base, to.base) {
        _ if from.array && !to.array => format!("this must be a single value, not an array; {how}"),
        (Base::Distr(_), Base::PopDistr) => {
            format!("{how}; zipf() and unif() make distributions of numbers")
        }
        (Base::Float, Base::Int) if !to.array => "use int(x) to cut off the fraction".to_owned(),
        (Base::Str, Base::Int | Base::Float) if !to.array => {
            "read a number from a string with int(x) or float(x)".to_owned()
        }
        (Base::AddrRange, Base::Addr) if !to.array => {
            "this is a range of addresses; write a single address: `'10.0.0.1:80'`".to_owned()
        }
        _ => how,
    }
}

/// The user's expression, corrected, where that is possible.
fn rewritten(from: Ty, to: Ty, expr: &Expr) -> Option<String> {
    if to.array {
        let item = literal(expr).filter(|_| from == Ty::one(to.base))?;
        return Some(format!("an array is written in brackets: `[ {item} ]`"));
    }
    if let (Base::Distr(domain), ExprKind::Call(call, args)) = (to.base, &expr.kind)
        && let Base::Distr(found) = from.base
    {
        let name = call.def().name;
        let (wanted, found) = (an(domain.name()), an(found.name()));
        return Some(match amounts_of(args, domain) {
            Some(good) => format!("give `{name}` {wanted}, not {found}: `{name}({})`", good.join(", ")),
            None => {
                let examples = amounts(domain)[..args.len().clamp(1, 2)].join(", ");
                format!("give `{name}` {wanted}, not {found}, for example `{name}({examples})`")
            }
        });
    }
    if let Base::Distr(domain) = to.base
        && from == Ty::one(drawn(domain))
    {
        let always = "use const(x) for a distribution that always yields x";
        return Some(literal(expr).map_or(always.to_owned(), |text| format!("{always}: `const({text})`")));
    }
    let text = literal(expr)?;
    let number = matches!(from.base, Base::Int | Base::Float);
    Some(match (from.base, to.base) {
        (Base::Int, Base::Distr(Domain::Float)) => format!("use const(x): `const({text}.0)`"),
        (_, Base::Distr(domain @ (Domain::Time | Domain::Size))) if number => {
            let amount = format!("{text}{}", unit(domain, number_of(&text)));
            format!("a distribution of {}s is written `const({amount})` or `exp({amount})`", domain.name())
        }
        (_, Base::Time) if number => format!("a time has a unit: `{text}sec`"),
        (_, Base::Size) if number => {
            format!("a size has a unit: `{text}{}`", unit(Domain::Size, number_of(&text)))
        }
        (Base::Float, Base::Rate) => {
            format!(
                "a rate is a division: `{text}/sec`, or a share of another rate: `{text} * TheBench.peak_req_rate`"
            )
        }
        (_, Base::Rate) if number => format!("a rate is a division: `{text}/sec`"),
        (_, Base::Bwidth) if number => format!("a bandwidth is a division: `{text}Kb/sec`"),
        (Base::Time, Base::Rate) => format!("one event in this time is the rate `1/{text}`"),
        (Base::Size, Base::Bwidth) => format!("a bandwidth is a size per time: `{text}/sec`"),
        (_, Base::Str) if number => format!("text is written in double quotes: `\"{text}\"`"),
        (Base::Addr, Base::Str) => {
            format!("text is written in double quotes: `\"{}\"`", text.trim_matches('\''))
        }
        (Base::Str, Base::Addr) => {
            format!("an address is written in single quotes: `'{}'`", text.trim_matches('"'))
        }
        (Base::Str, Base::Int | Base::Float) if text.trim_matches('"').parse::<f64>().is_ok() => {
            format!("a number is written without quotes: `{}`", text.trim_matches('"'))
        }
        _ => return None,
    })
}

/// The arguments of a distribution as amounts of another domain: plain numbers, or a single amount, of which only the number is
/// kept. Several amounts in different units might change their order with another unit.
fn amounts_of(args: &[Expr], domain: Domain) -> Option<Vec<String>> {
    let texts: Vec<String> = args.iter().map(literal).collect::<Option<_>>()?;
    let digits = |text: &String| text.trim_end_matches(|c: char| c.is_ascii_alphabetic()).to_owned();
    let numbers: Vec<String> = texts.iter().map(digits).collect();
    if numbers != texts && texts.len() > 1 {
        return None;
    }
    let largest = numbers.iter().map(|number| number_of(number)).fold(0.0, f64::max);
    let amount = |number: &String| match domain {
        Domain::Float if !number.contains('.') => format!("{number}.0"),
        _ => format!("{number}{}", unit(domain, largest)),
    };
    Some(numbers.iter().map(amount).collect())
}

fn number_of(text: &str) -> f64 {
    text.parse().unwrap_or(0.0)
}

/// The unit that a number without one probably has. Few objects have less than a kilobyte.
fn unit(domain: Domain, number: f64) -> &'static str {
    match domain {
        Domain::Int | Domain::Float => "",
        Domain::Time => "sec",
        Domain::Size if number < 1000.0 => "KB",
        Domain::Size => "Byte",
    }
}

/// The type that a distribution draws.
pub fn drawn(domain: Domain) -> Base {
    match domain {
        Domain::Int => Base::Int,
        Domain::Float => Base::Float,
        Domain::Time => Base::Time,
        Domain::Size => Base::Size,
    }
}

/// A short literal that can be repeated in advice.
fn literal(expr: &Expr) -> Option<String> {
    let text = match expr.literal()? {
        value @ (Value::Int(_) | Value::Float(_) | Value::Time(_) | Value::Size(_)) => show(value),
        Value::Str(text) => format!("\"{text}\""),
        Value::Addr(addr) => format!("'{addr}'"),
        _ => return None,
    };
    (text.len() <= 40).then_some(text)
}

/// A noun with its article.
pub(crate) fn an(noun: &str) -> String {
    let vowel = noun.starts_with(['a', 'e', 'i', 'o', 'A', 'E', 'I', 'O']);
    match noun {
        "re" => "a regular expression".to_owned(),
        "code" => "a script".to_owned(),
        "?" => "something unknown".to_owned(),
        "undef()" => "undefined".to_owned(),
        _ => format!("{} {noun}", if vowel { "an" } else { "a" }),
    }
}

/// A list of quoted words for a message.
pub(crate) fn quoted_list(words: &[&str]) -> String {
    words.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(", ")
}
