//! Checks of the files that a workload names.

use std::collections::HashSet;
use std::sync::Arc;

use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use crate::eval::UsedRecord;
use crate::source::{FileKind, Loader, Span};
use crate::value::Record;
use crate::workload::{Checks, Workload};

/// Warns about each file that cannot be used, once.
pub fn check(
    workload: &Workload,
    contents: &[Arc<Record>],
    robots: &[&UsedRecord],
    loader: &dyn Loader,
    checks: &mut Checks<'_>,
) {
    let mut seen = HashSet::new();
    let mut look = |kind: FileKind, path: &Option<String>, at: Option<Span>| {
        let Some(path) = path.as_deref().filter(|path| seen.insert((kind, (*path).to_owned()))) else {
            return;
        };
        if let Err(why) = loader.look(kind, path) {
            let what = match kind {
                FileKind::ContentDb => "the content database",
                FileKind::DocumentRoot => "the document root",
                FileKind::TextDb => "the texts",
                FileKind::Trace => "the trace",
            };
            let text = format!("{what} `{path}` cannot be used: {why}");
            let help = "relative paths start in the directory in which the test is started";
            let finding = Diagnostic::new(Code::MissingFile, at, text);
            checks.push(if path.starts_with('/') { finding } else { finding.help(help) });
        }
    };
    for (content, record) in workload.contents.iter().zip(contents) {
        look(FileKind::ContentDb, &content.content_db, record.at("content_db"));
        look(FileKind::DocumentRoot, &content.document_root, record.at("document_root"));
        look(FileKind::TextDb, &content.inject_db, record.at("inject_db"));
    }
    for (robot, used) in workload.robots.iter().zip(robots) {
        if robot.interests.prob("foreign") > 0.0 {
            look(FileKind::Trace, &robot.foreign_trace, used.record.at("foreign_trace"));
        }
    }
}
