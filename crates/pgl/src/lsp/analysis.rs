//! The analysis of a document: diagnostics, names and their meanings.

use crate::Options;
use crate::check::hir::{Program, Reference};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::source::{FileId, Loader, SourceFile, SourceMap};
use crate::{check, eval, syntax, workload};

/// A document with everything it includes.
pub struct Analysis {
    /// All texts; the document is the first one.
    pub sources: SourceMap,
    /// Diagnostics, also in included files.
    pub findings: Vec<Diagnostic>,
    /// The checked program, as far as it could be checked.
    pub program: Program,
    /// Uses of names in all texts.
    pub references: Vec<Reference>,
    /// Directories in which included files are searched.
    pub search_path: Vec<String>,
    /// The texts that come from the library of the loader, which an editor can neither show nor change.
    library: Vec<FileId>,
}

impl Analysis {
    /// Compiles a document. After syntax errors names are still resolved, but no diagnostics about them are
    /// reported.
    pub fn new(path: &str, text: String, loader: &dyn Loader, search_path: Vec<String>) -> Self {
        let options = Options { search_path: search_path.clone(), ..Options::default() };
        let mut sources = SourceMap::default();
        let mut out = Diagnostics::new(options.limits.findings);
        let main = sources.add(path, text, None);
        let tokens = syntax::preprocess::preprocess(main, &mut sources, loader, &options, &mut out);
        let of_library = |(index, file): (usize, &SourceFile)| {
            loader.is_library(&file.name).then_some(FileId(index as u32))
        };
        let library = sources.files().iter().enumerate().filter_map(of_library).collect();
        let body = syntax::parse(&tokens, &sources, &mut out);
        if out.has_errors() {
            let mut quiet = Diagnostics::new(0);
            let (program, references) = check::check(&body, &[], &mut quiet);
            return Self { sources, findings: out.finish(), program, references, search_path, library };
        }
        let (program, references) = check::check(&body, &[], &mut out);
        let outcome = eval::run(&program, &sources, loader, &options, &mut out);
        let kept = program.clone();
        let _ = workload::build(program, &outcome, (&sources, loader), &options, &mut out);
        Self { sources, findings: out.finish(), program: kept, references, search_path, library }
    }

    /// Whether a text comes from the library.
    pub fn is_library(&self, file: FileId) -> bool {
        self.library.contains(&file)
    }

    /// The document itself.
    pub fn main(&self) -> &SourceFile {
        self.sources.file(FileId(0))
    }

    /// The use of a name at a byte of the document.
    pub fn reference_at(&self, offset: u32) -> Option<&Reference> {
        let here = |reference: &&Reference| {
            let span = reference.span;
            span.file == FileId(0) && span.start <= offset && offset <= span.end
        };
        self.references.iter().filter(here).min_by_key(|reference| reference.span.end - reference.span.start)
    }
}
