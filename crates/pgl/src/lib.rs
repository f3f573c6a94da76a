//! The workload language PGL: text in, typed workload and diagnostics out.
//!
//! A program passes through stages with their own types: texts ([`source`]) become tokens and a tree
//! ([`syntax`]), names and types are checked ([`check`]), the program runs ([`eval`]), and the records that it
//! used and scheduled become a [`workload::Workload`], plain data for the engine. Each stage reports
//! [`Diagnostic`]s and continues as far as possible. No stage prints, and no input makes one panic.
//!
//! ```
//! use polygraph_pgl::{MemoryLoader, Options, compile};
//!
//! let loader = MemoryLoader::default().with("test.pg", "int n = 2 * 3^2; print(n);");
//! let compilation = compile("test.pg", &loader, &Options::default());
//! assert_eq!(compilation.script_output, ["36"]);
//! ```
//!
//! # Decisions
//!
//! * **The table of types** (`types/records.rs`) is the one place where a field of the language is described: structs, defaults, checks, hover texts and
//!   `docs/reference/generated/pgl.md` come from it.

pub mod calls;
pub mod check;
pub mod codes;
mod compat;
pub mod diagnostic;
pub mod docs;
pub mod eval;
pub mod format;
mod hints;
pub mod lsp;
pub mod ops;
pub mod render;
pub mod script;
pub mod source;
pub mod syntax;
pub mod types;
pub mod value;
pub mod workload;

pub use codes::Severity;
pub use codes::{Code, explain};
pub use compat::Compat;
pub use diagnostic::Diagnostic;
pub use source::{DiskLoader, FileKind, Loader, MemoryLoader, SourceMap};
pub use workload::Workload;

use check::Setting;
use diagnostic::Diagnostics;
use source::FileId;

/// Options of a compilation.
#[derive(Debug, Clone)]
pub struct Options {
    /// Directories in which files are searched, in order, after the name as written.
    pub search_path: Vec<String>,
    /// Settings from outside the program: the name of a top-level variable or a field of one, and the value as
    /// text.
    pub settings: Vec<(String, String)>,
    /// Whether back-quoted commands and system() may run.
    pub allow_exec: bool,
    /// The seed that all processes of a test share.
    pub global_seed: u64,
    /// The number of this worker process.
    pub worker: u32,
    /// Distinguishes the identifiers that uniqId() makes in different processes.
    pub unique_base: u64,
    /// Limits on the resources of a program.
    pub limits: Limits,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            search_path: Vec::new(),
            settings: Vec::new(),
            allow_exec: false,
            global_seed: 1,
            worker: 0,
            unique_base: 0,
            limits: Limits::default(),
        }
    }
}

/// Limits on the resources of a program.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The number of nested inclusions.
    pub include_depth: usize,
    /// The number of inclusions.
    pub inclusions: usize,
    /// The total size of all texts in bytes.
    pub source_bytes: usize,
    /// The total number of words, literals and signs of all texts.
    pub tokens: usize,
    /// The total number of array items computed.
    pub work: u64,
    /// The total number of array items written out in the workload, agents included.
    pub items: u64,
    /// The number of diagnostics reported.
    pub findings: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            include_depth: 256,
            inclusions: 10_000,
            source_bytes: 64 << 20,
            tokens: 4 << 20,
            work: 8 << 20,
            items: 4 << 20,
            findings: 100,
        }
    }
}

/// The result of compiling a program.
#[derive(Debug)]
pub struct Compilation {
    /// The workload; `None` if there were errors.
    pub workload: Option<Workload>,
    /// Diagnostics in the order in which they were reported.
    pub diagnostics: Vec<Diagnostic>,
    /// Lines of top-level print() calls.
    pub script_output: Vec<String>,
    /// All texts that were read.
    pub sources: SourceMap,
}

impl Compilation {
    /// True if the diagnostics include an error.
    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(|finding| finding.severity == Severity::Error)
    }

    /// All diagnostics as text.
    pub fn render(&self, style: render::Style) -> String {
        self.diagnostics.iter().map(|finding| render::render(finding, &self.sources, style)).collect()
    }
}

/// Compiles the program in the file `name`, which is searched like an included one; `-` is standard input.
pub fn compile(name: &str, loader: &dyn Loader, options: &Options) -> Compilation {
    let mut sources = SourceMap::default();
    let mut out = Diagnostics::new(options.limits.findings);
    let (workload, script_output) = match syntax::preprocess::find(name, None, loader, options) {
        Ok((path, text)) => {
            let main = sources.add(&path, text, None);
            compile_text(main, &mut sources, loader, options, &mut out)
        }
        Err(finding) => {
            out.push(*finding);
            (None, Vec::new())
        }
    };
    Compilation { workload, diagnostics: out.finish(), script_output, sources }
}

fn compile_text(
    main: FileId,
    sources: &mut SourceMap,
    loader: &dyn Loader,
    options: &Options,
    out: &mut Diagnostics,
) -> (Option<Workload>, Vec<String>) {
    let tokens = syntax::preprocess::preprocess(main, sources, loader, options, out);
    let body = syntax::parse(&tokens, sources, out);
    drop(tokens);
    let settings = settings(sources, options, out);
    // After a syntax error, names may seem to be missing that the reader can see; diagnostics about them would
    // mislead.
    if out.has_errors() {
        return (None, Vec::new());
    }
    let (program, _) = check::check(&body, &settings, out);
    drop(body);
    let outcome = eval::run(&program, sources, loader, options, out);
    let workload = workload::build(program, &outcome, (sources, loader), options, out);
    (workload, outcome.output)
}

/// The trees of settings, each in its own text.
fn settings(sources: &mut SourceMap, options: &Options, out: &mut Diagnostics) -> Vec<Setting> {
    let mut settings = Vec::new();
    for (name, value) in &options.settings {
        let file = sources.add(&format!("--set {name}"), value.clone(), None);
        let lexemes = syntax::lexer::lex(value, file, out);
        let tokens = syntax::preprocess::plain(&lexemes, file, value.len());
        let value = syntax::parse_expr(&tokens, sources, out);
        settings.push(Setting { name: name.clone(), value });
    }
    settings
}
