//! Options that show HTTP messages on the console.

use clap::Args;
use polygraph_plan::values;
use polygraph_stats::{DumpPlan, MessageParts};

/// Messages on the console.
#[derive(Args, Clone, Copy, Debug, Default)]
#[command(rename_all = "snake_case")]
pub struct DumpOptions {
    /// Show messages when their transaction ends. LIST is separated by commas: req (requests), rep (replies), err (both
    /// messages of failed transactions), each optionally followed by -hdr or -body; sum (one line per successful
    /// transaction); hdr or body (of req, rep and err); all
    #[arg(long, value_name = "LIST", value_parser = items)]
    dump: Option<DumpPlan>,
    /// Maximum number of bytes that --dump shows of each message
    #[arg(long, value_name = "SIZE", default_value = "1KB", value_parser = bytes, requires = "dump")]
    dump_size: usize,
}

impl DumpOptions {
    /// The plan that loops follow.
    pub fn plan(self) -> DumpPlan {
        DumpPlan { size: self.dump_size, ..self.dump.unwrap_or_default() }
    }
}

fn bytes(text: &str) -> Result<usize, String> {
    match values::size(text)? {
        size @ 1..=0x4000_0000 => Ok(size as usize),
        _ => Err("write a size from 1B to 1GB".into()),
    }
}

fn items(text: &str) -> Result<DumpPlan, String> {
    let mut plan = DumpPlan::default();
    for item in text.split(',').map(|item| item.trim().to_ascii_lowercase()) {
        let (what, parts) = match item.split_once('-') {
            Some(("", _)) => return Err(format!("`{item}`: write req, rep or err before the -")),
            Some((what, "hdr")) => (what, MessageParts { head: true, body: false }),
            Some((what, "body")) => (what, MessageParts { head: false, body: true }),
            Some(_) => return Err(format!("`{item}`: only -hdr or -body may follow")),
            None if item.is_empty() => return Err("an item of the list is empty".into()),
            None if item == "hdr" => ("", MessageParts { head: true, body: false }),
            None if item == "body" => ("", MessageParts { head: false, body: true }),
            None => (item.as_str(), MessageParts::ALL),
        };
        let DumpPlan { requests, replies, errors, .. } = &mut plan;
        let targets: Vec<&mut MessageParts> = match what {
            "req" => vec![requests],
            "rep" => vec![replies],
            "err" => vec![errors],
            "" | "all" => vec![requests, replies, errors],
            "sum" if parts == MessageParts::ALL => Vec::new(),
            "embed_stats" => {
                return Err(
                    "`embed_stats`: markup is not counted; the report shows pages and their embedded objects"
                        .into(),
                );
            }
            _ => return Err(format!("`{item}` is not one of req, rep, err, sum, hdr, body, all")),
        };
        targets.into_iter().for_each(|target| *target = target.or(parts));
        plan.summary |= what == "sum" || what == "all" && parts == MessageParts::ALL;
    }
    Ok(plan)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_items() {
        let head = MessageParts { head: true, body: false };
        let body = MessageParts { head: false, body: true };
        let none = DumpPlan::default();
        for (text, plan) in [
            ("err", DumpPlan { errors: MessageParts::ALL, ..none }),
            ("req-hdr,Rep-Body", DumpPlan { requests: head, replies: body, ..none }),
            ("req-hdr, req-body", DumpPlan { requests: MessageParts::ALL, ..none }),
            ("sum", DumpPlan { summary: true, ..none }),
            ("hdr", DumpPlan { requests: head, replies: head, errors: head, ..none }),
            ("All-Body", DumpPlan { requests: body, replies: body, errors: body, ..none }),
            (
                "all",
                DumpPlan {
                    requests: MessageParts::ALL,
                    replies: MessageParts::ALL,
                    errors: MessageParts::ALL,
                    summary: true,
                    ..none
                },
            ),
        ] {
            assert_eq!(items(text), Ok(plan), "{text}");
        }
        for text in ["", "reqs", "req-head", "sum-hdr", "embed_stats", "-hdr-x"] {
            assert!(items(text).is_err(), "{text}");
        }
    }
}
