//! Splits a text into tokens. Nothing is lost: the tokens of a text, blanks and comments included, add up to
//! the text, so the formatter can work on them.

use crate::codes::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::source::{FileId, Span};
use crate::syntax::token::{Lexeme, Token};

/// The largest length of a word, string or constant, in characters.
pub const MAX_TOKEN: usize = 4096;

/// U+FEFF in UTF-8.
const BYTE_ORDER_MARK: &[u8] = &[0xef, 0xbb, 0xbf];

/// Splits `text` into tokens, up to `most` besides blanks and comments; if there are more, a diagnostic is
/// reported.
pub fn lex_some(text: &str, most: usize, file: FileId, out: &mut Diagnostics) -> Vec<Lexeme> {
    let mut lexer = Lexer { text: text.as_bytes(), at: 0, file, out };
    // Each token may have a blank before it.
    let mut tokens = Vec::with_capacity((text.len() / 4).min(most.saturating_mul(2)));
    let mut solid = 0;
    while lexer.at < lexer.text.len() {
        let start = lexer.at;
        let token = lexer.next();
        assert!(lexer.at > start, "the lexer must make progress");
        let too_long = lexer.at - start > MAX_TOKEN && !token.is_trivia() && token != Token::Bad;
        if too_long {
            let text = format!("{} has more than {MAX_TOKEN} characters", token.describe());
            lexer.report(Code::TokenTooLong, start, start + 1, text);
        }
        let token = if too_long { Token::Bad } else { token };
        solid += usize::from(!token.is_trivia());
        if solid > most {
            let text = "the program has too many words and signs";
            let finding = Diagnostic::new(Code::SourceTooLarge, Span::new(file, start, lexer.at), text).help(
                "write long lists as ranges, such as `'10.1.0-3.1-250:80'`, or compute them with a call",
            );
            lexer.out.push(finding);
            break;
        }
        tokens.push(Lexeme { token, start: start as u32, end: lexer.at as u32 });
    }
    tokens
}

/// Splits all of `text` into tokens.
pub fn lex(text: &str, file: FileId, out: &mut Diagnostics) -> Vec<Lexeme> {
    lex_some(text, crate::Limits::default().tokens, file, out)
}

struct Lexer<'a> {
    text: &'a [u8],
    at: usize,
    file: FileId,
    out: &'a mut Diagnostics,
}

impl Lexer<'_> {
    fn peek(&self, ahead: usize) -> u8 {
        // NUL is not a legal character, so it can represent the end of the text.
        self.text.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn skip(&mut self, wanted: impl Fn(u8) -> bool) {
        while self.at < self.text.len() && wanted(self.text[self.at]) {
            self.at += 1;
        }
    }

    fn report(&mut self, code: Code, start: usize, end: usize, text: impl Into<String>) {
        self.out.push(Diagnostic::new(code, Span::new(self.file, start, end), text));
    }

    fn next(&mut self) -> Token {
        let first = self.peek(0);
        match first {
            // Some editors start files with a byte order mark.
            0xef if self.at == 0 && self.text.starts_with(BYTE_ORDER_MARK) => {
                self.at += BYTE_ORDER_MARK.len();
                Token::Blank
            }
            b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c => {
                self.skip(is_blank);
                Token::Blank
            }
            b'/' if self.peek(1) == b'/' => {
                self.skip(|c| c != b'\n');
                Token::LineComment
            }
            b'/' if self.peek(1) == b'*' => self.block_comment(),
            b'#' => self.hash(),
            b'"' => self.quoted(b'"', Token::Str),
            b'\'' => self.quoted(b'\'', Token::Quoted),
            b'`' => self.quoted(b'`', Token::Command),
            b'0'..=b'9' => self.number(),
            b'A'..=b'Z' | b'a'..=b'z' | b'_' => self.word(),
            _ => self.sign(first),
        }
    }

    fn block_comment(&mut self) -> Token {
        let start = self.at;
        let mut depth = 0usize;
        while self.at < self.text.len() {
            match (self.peek(0), self.peek(1)) {
                (b'/', b'*') => {
                    if depth == 1 {
                        self.report(
                            Code::NestedComment,
                            self.at,
                            self.at + 2,
                            "a comment starts inside a comment",
                        );
                    }
                    depth += 1;
                    self.at += 2;
                }
                (b'*', b'/') => {
                    depth -= 1;
                    self.at += 2;
                    if depth == 0 {
                        return Token::BlockComment;
                    }
                }
                _ => self.at += 1,
            }
        }
        let text = "this comment is not closed; block comments nest, each `/*` needs its own `*/`";
        self.report(Code::UnterminatedComment, start, start + 2, text);
        Token::BlockComment
    }

    /// A directive is one token, which the preprocessor or the formatter takes apart.
    fn hash(&mut self) -> Token {
        let start = self.at;
        let at_line_start =
            start == 0 || self.text[start - 1] == b'\n' || self.text[..start] == *BYTE_ORDER_MARK;
        self.at += 1;
        if !at_line_start {
            self.out.push(
                Diagnostic::new(
                    Code::BadDirective,
                    Span::new(self.file, start, start + 1),
                    "`#` is only allowed as the first character of a line",
                )
                .help("comments start with `//`"),
            );
            return Token::Bad;
        }
        self.skip(|c| c != b'\n' && c != b'"');
        if self.peek(0) == b'"' {
            self.at += 1;
            self.skip(|c| c != b'\n' && c != b'"');
            if self.peek(0) == b'"' {
                self.at += 1;
            }
        }
        Token::Directive
    }

    fn quoted(&mut self, quote: u8, token: Token) -> Token {
        let start = self.at;
        self.at += 1;
        loop {
            match self.peek(0) {
                b'\\' if quote != b'`' && !matches!(self.peek(1), b'\n' | 0) => self.at += 2,
                c if c == quote => {
                    self.at += 1;
                    self.check_characters(start);
                    return token;
                }
                b'\n' | 0 if self.at >= self.text.len() || self.peek(0) == b'\n' => {
                    let what = token.describe();
                    self.report(
                        Code::UnterminatedString,
                        start,
                        self.at,
                        format!("{what} is not closed on this line"),
                    );
                    return Token::Bad;
                }
                _ => self.at += 1,
            }
        }
    }

    fn check_characters(&mut self, start: usize) {
        let end = self.at;
        let is_bad = |c: &u8| !(*c == b'\t' || (32..127).contains(c));
        if let Some(from) = self.text[start..end].iter().position(is_bad) {
            let len = self.text[start + from..end].iter().take_while(|c| is_bad(c)).count();
            let (from, to) = (start + from, start + from + len);
            self.illegal(from, to);
        }
    }

    fn illegal(&mut self, start: usize, end: usize) {
        self.out.push(
            Diagnostic::new(
                Code::IllegalCharacter,
                Span::new(self.file, start, end),
                "this character is not allowed here",
            )
            .note("outside comments only tabs and ASCII 32 to 126 are allowed, also inside strings"),
        );
    }

    fn number(&mut self) -> Token {
        let mut token = Token::Int;
        self.skip(|c| c.is_ascii_digit());
        if self.peek(0) == b'.' && self.peek(1) != b'.' {
            self.at += 1;
            self.skip(|c| c.is_ascii_digit());
            token = Token::Float;
        }
        if self.peek(0) == b'e' {
            let sign = usize::from(matches!(self.peek(1), b'+' | b'-'));
            if self.peek(1 + sign).is_ascii_digit() {
                self.at += 1 + sign;
                self.skip(|c| c.is_ascii_digit());
                token = Token::Float;
            }
        }
        if self.peek(0) == b'%' {
            self.at += 1;
            return Token::Percent;
        }
        if is_word(self.peek(0)) {
            self.skip(is_word);
            return Token::Measure;
        }
        token
    }

    fn word(&mut self) -> Token {
        let start = self.at;
        self.skip(is_word);
        match &self.text[start..self.at] {
            b"if" => Token::If,
            b"then" => Token::Then,
            b"else" => Token::Else,
            b"every" => Token::Every,
            b"do" => Token::Do,
            b"lmt" => Token::Lmt,
            b"now" => Token::Now,
            b"nmt" => Token::Nmt,
            _ => Token::Ident,
        }
    }

    fn sign(&mut self, first: u8) -> Token {
        let second = self.peek(1);
        let (len, token) = match (first, second) {
            (b'=', b'~') => return self.regex(),
            // `==/` starts a regular expression unless a comment follows, which an expression may contain.
            (b'=', b'=') if self.peek(2) == b'@' => return self.regex(),
            (b'=', b'=') if self.peek(2) == b'/' && !matches!(self.peek(3), b'/' | b'*') => {
                return self.regex();
            }
            (b'=', b'=') => (2, Token::Eq),
            (b'!', b'=') => (2, Token::Ne),
            (b'<', b'=') => (2, Token::Le),
            (b'>', b'=') => (2, Token::Ge),
            (b'^', b'^') => (2, Token::Xor),
            (b'&', b'&') => (2, Token::And),
            (b'|', b'|') => (2, Token::Or),
            (b'.', b'.') => (2, Token::DotDot),
            (b'*', b'*') => (2, Token::StarStar),
            (b'=', _) => (1, Token::Assign),
            (b'<', _) => (1, Token::Lt),
            (b'>', _) => (1, Token::Gt),
            (b'+', _) => (1, Token::Plus),
            (b'-', _) => (1, Token::Minus),
            (b'*', _) => (1, Token::Star),
            (b'/', _) => (1, Token::Slash),
            (b'%', _) => (1, Token::Modulo),
            (b'^', _) => (1, Token::Caret),
            (b'!', _) => (1, Token::Not),
            (b'(', _) => (1, Token::LParen),
            (b')', _) => (1, Token::RParen),
            (b'[', _) => (1, Token::LBracket),
            (b']', _) => (1, Token::RBracket),
            (b'{', _) => (1, Token::LBrace),
            (b'}', _) => (1, Token::RBrace),
            (b';', _) => (1, Token::Semicolon),
            (b':', _) => (1, Token::Colon),
            (b',', _) => (1, Token::Comma),
            (b'.', _) => (1, Token::Dot),
            _ => return self.bad(),
        };
        self.at += len;
        token
    }

    /// A sequence of bytes that belong to no token, reported once.
    fn bad(&mut self) -> Token {
        let start = self.at;
        // Whole characters: a diagnostic must not end inside one.
        self.skip(|c| c >= 128 || (c < 32 && !is_blank(c)) || c == 127);
        if self.at > start {
            self.illegal(start, self.at);
            return Token::Bad;
        }
        self.at += 1;
        let sign = char::from(self.text[start]);
        let message = format!("`{sign}` has no meaning here");
        let mut finding = Diagnostic::new(Code::Unexpected, Span::new(self.file, start, start + 1), message);
        finding = match sign {
            '&' => finding.help("the logical operator is `&&`"),
            '|' => finding.help("the logical operator is `||`"),
            '$' | '~' | '\\' | '@' | '?' => finding.help("text must be in quotes"),
            _ => finding,
        };
        self.out.push(finding);
        Token::Bad
    }

    fn regex(&mut self) -> Token {
        let start = self.at;
        self.at += 2;
        let delimiter = self.peek(0);
        if !matches!(delimiter, b'/' | b'@') {
            let text = "`=~` must be followed by a regular expression in `/` or `@`, without a blank";
            self.report(Code::BadRegex, start, self.at, text);
            return Token::Bad;
        }
        self.at += 1;
        loop {
            match self.peek(0) {
                b'\\' if !matches!(self.peek(1), b'\n' | 0) => self.at += 2,
                c if c == delimiter => break,
                b'\n' | 0 if self.at >= self.text.len() || self.peek(0) == b'\n' => {
                    let text = "the regular expression is not closed on this line";
                    self.report(Code::UnterminatedString, start, self.at, text);
                    return Token::Bad;
                }
                _ => self.at += 1,
            }
        }
        self.at += 1;
        self.skip(|c| c.is_ascii_alphabetic());
        self.check_characters(start);
        Token::Regex
    }
}

fn is_blank(c: u8) -> bool {
    matches!(c, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

fn is_word(c: u8) -> bool {
    c.is_ascii_alphanumeric() || c == b'_'
}
