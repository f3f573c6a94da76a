//! Follows `#include` and back-quoted commands and produces one stream of tokens for the parser.

use std::io;

use crate::Options;
use crate::codes::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::source::{FileId, Loader, SourceMap, Span};
use crate::syntax::lexer::lex_some;
use crate::syntax::token::{Lexeme, Token};

/// A token as the parser sees it, without trivia and directives, with the text that it came from.
#[derive(Debug, Clone, Copy)]
pub struct Tok {
    /// The kind of the token.
    pub token: Token,
    /// The position of the token.
    pub span: Span,
}

/// All tokens of a program, ending with [`Token::End`].
pub fn preprocess(
    main: FileId,
    sources: &mut SourceMap,
    loader: &dyn Loader,
    options: &Options,
    out: &mut Diagnostics,
) -> Vec<Tok> {
    let mut pre = Preprocessor {
        sources,
        loader,
        options,
        out,
        tokens: Vec::new(),
        bytes: 0,
        words: 0,
        full: false,
        inclusions: 0,
        open: 0,
    };
    pre.text(main);
    let len = pre.sources.file(main).text.len();
    // A part of a program would cause diagnostics that do not apply to the whole.
    let mut tokens = if pre.full { Vec::new() } else { pre.tokens };
    tokens.push(Tok { token: Token::End, span: Span::new(main, len, len) });
    tokens
}

struct Preprocessor<'a> {
    sources: &'a mut SourceMap,
    loader: &'a dyn Loader,
    options: &'a Options,
    out: &'a mut Diagnostics,
    tokens: Vec<Tok>,
    bytes: usize,
    /// The number of words, literals and signs so far, in all files.
    words: usize,
    /// The limit of tokens was exceeded.
    full: bool,
    inclusions: usize,
    open: usize,
}

impl Preprocessor<'_> {
    fn text(&mut self, file: FileId) {
        let text = std::mem::take(&mut self.sources.text_mut(file).text);
        self.bytes += text.len();
        let most = self.options.limits.tokens.saturating_sub(self.words);
        let lexemes = lex_some(&text, most, file, self.out);
        let words = lexemes.iter().filter(|lexeme| !lexeme.token.is_trivia()).count();
        self.words += words;
        self.full |= lexemes.last().is_some_and(|lexeme| (lexeme.end as usize) < text.len());
        self.open += 1;
        for lexeme in lexemes {
            if self.full {
                break;
            }
            let words = &text[lexeme.start as usize..lexeme.end as usize];
            let span = Span { file, start: lexeme.start, end: lexeme.end };
            match lexeme.token {
                token if token.is_trivia() => {}
                Token::Directive => self.directive(words, span),
                Token::Command => self.command(words, span),
                token => self.tokens.push(Tok { token, span }),
            }
        }
        self.open -= 1;
        self.sources.text_mut(file).text = text;
    }

    fn directive(&mut self, words: &str, span: Span) {
        let name = match directive(words) {
            Directive::Empty => return,
            Directive::Include(name) => name,
            Directive::Malformed(why) => {
                let span = Span { end: span.start + words.trim_end().len() as u32, ..span };
                self.out.push(
                    Diagnostic::new(Code::BadDirective, span, why)
                        .help("the only directive is `#include \"file\"`; comments start with `//`"),
                );
                return;
            }
        };
        if !self.may_open(span) {
            return;
        }
        let from = self.sources.file(span.file).name.clone();
        match find(&name, Some(&from), self.loader, self.options) {
            Ok((path, text)) => {
                if !self.includes_itself(&path, span) {
                    self.open(&path, text, span);
                }
            }
            Err(finding) => {
                let finding = Diagnostic { span: Some(span), ..*finding };
                self.out.push(finding.label("included here"));
            }
        }
    }

    fn command(&mut self, words: &str, span: Span) {
        let command = words[1..words.len() - 1].trim();
        if command.is_empty() || !self.may_open(span) {
            return;
        }
        if !self.options.allow_exec {
            self.out.push(
                Diagnostic::new(
                    Code::CommandNotAllowed,
                    span,
                    "this program would run a command when it is read",
                )
                .help("read the program first; if you trust it, allow commands with --allow_exec"),
            );
            // The parser must know that something was here.
            self.tokens.push(Tok { token: Token::Bad, span });
            return;
        }
        match self.loader.run(command) {
            Ok(output) => self.open(&format!("<output of {words}>"), output, span),
            Err(error) => {
                let text = format!("the command failed: {error}");
                self.out.push(Diagnostic::new(Code::CommandFailed, span, text));
            }
        }
    }

    fn may_open(&mut self, span: Span) -> bool {
        let limits = &self.options.limits;
        let why = if self.open >= limits.include_depth {
            format!("{} files are open already", self.open)
        } else if self.inclusions >= limits.inclusions {
            format!("{} files were included already", self.inclusions)
        } else {
            self.inclusions += 1;
            return true;
        };
        self.out.push(
            Diagnostic::new(Code::IncludeTooDeep, span, why).note("a file that includes itself never ends"),
        );
        false
    }

    /// True, with a diagnostic, for a file that is being read already: the inclusion would never end.
    fn includes_itself(&mut self, path: &str, span: Span) -> bool {
        let plain = |path: &str| path.split('/').filter(|part| *part != ".").collect::<Vec<_>>().join("/");
        let path = plain(path);
        let mut from = Some(span);
        while let Some(at) = from {
            let file = self.sources.file(at.file);
            if plain(&file.name) == path {
                let text = match at == span {
                    true => format!("`{path}` includes itself"),
                    false => format!("`{path}` includes itself through other files"),
                };
                let finding = Diagnostic::new(Code::IncludeTooDeep, span, text)
                    .help("remove this line; put declarations that several files need into a separate file");
                self.out.push(finding);
                return true;
            }
            from = file.included_from;
        }
        false
    }

    fn open(&mut self, name: &str, text: String, span: Span) {
        if self.bytes.saturating_add(text.len()) > self.options.limits.source_bytes {
            let limit = self.options.limits.source_bytes;
            let text = format!("with this file, the program would have more than {limit} bytes");
            self.out.push(Diagnostic::new(Code::SourceTooLarge, span, text));
            return;
        }
        let file = self.sources.add(name, text, Some(span));
        self.text(file);
    }
}

/// The content of a line that starts with `#`.
pub enum Directive {
    /// An empty directive.
    Empty,
    /// Include this file.
    Include(String),
    /// A malformed directive, with the reason.
    Malformed(&'static str),
}

/// Takes a directive apart.
pub fn directive(words: &str) -> Directive {
    let rest = words.trim_start_matches('#').trim();
    if rest.is_empty() {
        return Directive::Empty;
    }
    let Some(rest) = rest.strip_prefix("include") else {
        return Directive::Malformed("an unknown directive");
    };
    match rest.trim().strip_prefix('"').map(|name| name.strip_suffix('"')) {
        Some(Some("")) => Directive::Malformed("the file name is empty"),
        Some(Some(name)) if rest.len() > name.len() => Directive::Include(name.to_owned()),
        Some(_) => Directive::Malformed("the file name has no closing quote"),
        None => Directive::Malformed("`include` needs a file name in double quotes"),
    }
}

/// Searches a file: by its name as written, in each directory of the search path, beside the file `from` that
/// includes it, in the directory `include` there, where the standard workloads have their parts, and in the library
/// of the loader. Files of the library are not included by names in the working directory.
///
/// # Errors
/// A diagnostic that lists the paths that were tried; the caller adds the position of the directive.
pub fn find(
    name: &str,
    from: Option<&str>,
    loader: &dyn Loader,
    options: &Options,
) -> Result<(String, String), Box<Diagnostic>> {
    let absolute = name.starts_with('/') || name == "-" || loader.is_library(name);
    let beside = from.and_then(|from| Some(from.rsplit_once('/')?.0));
    let dirs = options
        .search_path
        .iter()
        .map(|dir| dir.trim_end_matches('/').to_owned())
        .chain(beside.map(str::to_owned))
        .chain(from.map(|_| beside.map_or_else(|| "include".to_owned(), |dir| format!("{dir}/include"))))
        .chain(from.and(loader.library()).map(str::to_owned))
        .filter(|_| !absolute);
    let of_library = from.is_some_and(|from| loader.is_library(from));
    let mut tried = if of_library && !absolute { Vec::new() } else { vec![name.to_owned()] };
    for dir in dirs {
        let path = format!("{dir}/{name}");
        if !tried.contains(&path) {
            tried.push(path);
        }
    }
    for path in &tried {
        match loader.read(path) {
            Ok(bytes) => {
                if bytes.len() > options.limits.source_bytes {
                    let text = format!("`{path}` has more than {} bytes", options.limits.source_bytes);
                    return Err(Box::new(Diagnostic::new(Code::SourceTooLarge, None, text)));
                }
                return Ok((path.clone(), into_text(bytes)));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                let text = format!("cannot read `{path}`: {error}");
                return Err(Box::new(Diagnostic::new(Code::Unreadable, None, text)));
            }
        }
    }
    let mut finding = Diagnostic::new(Code::FileNotFound, None, format!("cannot find `{name}`"));
    for path in &tried {
        finding = finding.note(format!("tried `{path}`"));
    }
    if options.search_path.is_empty() && !absolute && !of_library {
        finding = finding.help("name the directories to search with --cfg_dirs");
    }
    Err(Box::new(finding))
}

/// Decodes a text. Comments may contain any bytes; those that are not UTF-8 are replaced, so that positions can
/// be shown.
pub fn into_text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// The tokens of one text alone, without inclusions.
pub fn plain(lexemes: &[Lexeme], file: FileId, len: usize) -> Vec<Tok> {
    lexemes
        .iter()
        .filter(|lexeme| {
            !lexeme.token.is_trivia() && !matches!(lexeme.token, Token::Directive | Token::Command)
        })
        .map(|lexeme| Tok { token: lexeme.token, span: Span { file, start: lexeme.start, end: lexeme.end } })
        .chain(std::iter::once(Tok { token: Token::End, span: Span::new(file, len, len) }))
        .collect()
}
