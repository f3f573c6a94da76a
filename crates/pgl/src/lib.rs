//! The workload language PGL: text in, typed workload and diagnostics out.
//!
//! A program passes through stages with types of their own: texts ([`source`]) become tokens and a tree ([`syntax`]),
//! names and types are checked ([`check`]), the program runs ([`eval`]), and what it used and scheduled becomes a
//! [`workload::Workload`], plain data for the engine. Each stage reports what it finds as [`Diagnostic`]s and goes on
//! as far as it makes sense; nothing is printed, and no input makes it panic.
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

/// How to compile.
#[derive(Debug, Clone)]
pub struct Options {
    /// Directories searched for files, in order, after the name as written.
    pub search_path: Vec<String>,
    /// Values from outside: name of a top-level variable or field of one, and the value as text.
    pub settings: Vec<(String, String)>,
    /// Whether back-quoted commands and system() may run.
    pub allow_exec: bool,
    /// The seed that all processes of a test share.
    pub global_seed: u64,
    /// The number of this worker process.
    pub worker: u32,
    /// Distinguishes the identifiers that uniqId() makes in different processes.
    pub unique_base: u64,
    /// What a program may use up.
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

/// What a program may use up.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Sources open at once.
    pub include_depth: usize,
    /// Inclusions in all.
    pub inclusions: usize,
    /// Bytes of all texts together.
    pub source_bytes: usize,
    /// Words, literals and signs of all texts together.
    pub tokens: usize,
    /// Items of arrays computed in all.
    pub work: u64,
    /// Items of arrays written out in the workload, agents included.
    pub items: u64,
    /// Findings reported.
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
    /// Findings in the order they were made.
    pub diagnostics: Vec<Diagnostic>,
    /// Lines of top-level print() calls.
    pub script_output: Vec<String>,
    /// All texts that were read.
    pub sources: SourceMap,
}

impl Compilation {
    /// True if there is an error among the findings.
    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(|finding| finding.severity == Severity::Error)
    }

    /// All findings as text.
    pub fn render(&self, style: render::Style) -> String {
        self.diagnostics.iter().map(|finding| render::render(finding, &self.sources, style)).collect()
    }
}

/// Compiles the program in the file `name`, which is looked up like an included one; `-` is standard input.
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
    // After a syntax error names may be missing that the reader sees well enough; findings about them would mislead.
    if out.has_errors() {
        return (None, Vec::new());
    }
    let (program, _) = check::check(&body, &settings, out);
    drop(body);
    let outcome = eval::run(&program, sources, loader, options, out);
    let workload = workload::build(program, &outcome, (sources, loader), options, out);
    (workload, outcome.output)
}

/// The trees of settings, each in a text of its own.
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
