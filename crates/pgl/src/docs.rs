//! The reference page of types, fields and calls, made from the tables.

use std::fmt::Write;

use crate::calls::{CALLS, CallContext};
use crate::types::{ADDR_FIELDS, BASIC, Default, FieldDef, Rec};
use crate::value::{Value, show};

/// The default of a field in PGL notation; `None` if it starts undefined or as an empty record.
pub fn default_of(field: &FieldDef) -> Option<String> {
    match field.default.value(field.ty) {
        Value::Undef | Value::Record(_) => None,
        // Strings are quoted here, unlike in the output of programs.
        Value::Str(text) => Some(format!("\"{text}\"")),
        value => Some(show(&value)),
    }
}

/// The page as Markdown.
pub fn reference() -> String {
    let mut page = String::from(
        "# Types, fields and calls\n\n\
         `cargo test -p polygraph-pgl` generates this page from the tables of the `pgl` crate; do not edit it.\n\
         [Workload language](../language.md) explains how programs are evaluated.\n\
         Probabilities, shares and factors are from 0 to 1; `55%` is 0.55.\n\
         A field without a default is undefined until it is assigned; a record field is an empty record.\n\n\
         ## Basic types\n\n| Type | Meaning |\n|---|---|\n",
    );
    for (name, _, doc) in BASIC {
        line(&mut page, &[&format!("`{name}`"), doc]);
    }
    line(
        &mut page,
        &["`int_distr` `float_distr` `time_distr` `size_distr`", "Distributions of such values."],
    );
    line(&mut page, &["`T[]`", "An array of T, possibly with probabilities: `[ a: 30%, b ]`."]);
    page.push_str("\n### Fields of `addr`\n\n| Field | Type | Meaning |\n|---|---|---|\n");
    for (name, base, doc) in ADDR_FIELDS {
        line(&mut page, &[&format!("`{name}`"), &base.to_string(), doc]);
    }
    page.push_str("\n## Record types\n");
    let common = &Rec::Agent.def().fields;
    for rec in std::iter::once(Rec::Agent).chain(Rec::declarable()) {
        let def = rec.def();
        let _ = write!(page, "\n### {}\n\n{}\n", def.name, def.doc.trim());
        let inherits = rec != Rec::Agent
            && def.fields.len() >= common.len()
            && def.fields[0].name == common[0].name
            && def.fields[common.len() - 1].name == common[common.len() - 1].name;
        if inherits {
            page.push_str("\nAlso has the fields of Agent.\n");
        }
        let fields = if inherits { &def.fields[common.len()..] } else { &def.fields[..] };
        if fields.is_empty() {
            continue;
        }
        page.push_str("\n| Field | Type | Default | Meaning |\n|---|---|---|---|\n");
        for field in fields {
            let default = match (default_of(field), field.default) {
                (Some(default), _) => format!("`{default}`"),
                (None, Default::Undef) => "undefined".to_owned(),
                (None, _) => String::new(),
            };
            line(
                &mut page,
                &[&format!("`{}`", field.name), &field.ty.to_string(), &default, field.doc.trim()],
            );
        }
    }
    page.push_str("\n## Calls\n\n| Call | Where | Meaning |\n|---|---|---|\n");
    for def in CALLS {
        let place = match def.place {
            CallContext::Both => "everywhere",
            CallContext::Static => "outside scripts",
            CallContext::Script => "scripts",
            CallContext::Every => "`every` blocks",
        };
        line(&mut page, &[&format!("`{}`", def.form), place, def.doc]);
    }
    page.push_str(
        "\n## Findings\n\n`polygraph explain ID` says more about each.\n\n| ID | Meaning |\n|---|---|\n",
    );
    for code in crate::Code::ALL {
        line(&mut page, &[code.id(), code.title()]);
    }
    page
}

fn line(page: &mut String, cells: &[&str]) {
    for cell in cells {
        page.push_str("| ");
        page.push_str(&cell.replace('|', "\\|"));
        page.push(' ');
    }
    page.push_str("|\n");
}
