//! Recursive descent with error recovery: the parser always returns a tree, together with diagnostics.

use std::sync::Arc;

use crate::codes::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::source::{SourceMap, Span};
use crate::syntax::preprocess::Tok;
use crate::syntax::token::Token;
use crate::syntax::tree::{
    AssignValue, BadUnit, BinaryOp, Block, CallExpr, Expr, ExprKind, Ident, Path, Stmt, StmtKind, UnaryOp,
};
use crate::syntax::{layout, literal, quoted, remedy};
use crate::value::{Matcher, Qualifier, Re, Value};

/// The deepest nesting of blocks, brackets and prefix operators.
pub const MAX_NESTING: usize = 100;

/// The statements of a program.
pub fn parse(tokens: &[Tok], sources: &SourceMap, out: &mut Diagnostics) -> Vec<Stmt> {
    let mut parser = Parser { tokens, sources, out, at: 0, nesting: 0, silent_at: usize::MAX, crooked: None };
    let mut body = Vec::new();
    while parser.peek() != Token::End {
        parser.statements(&mut body);
        if parser.peek() == Token::RBrace {
            let finding = Diagnostic::new(Code::Unexpected, parser.span(), "this `}` closes nothing")
                .help("remove it, or look for a block above that is closed too early");
            parser.report(finding);
            parser.at += 1;
        }
    }
    body
}

/// A single expression that makes up the whole text, such as the value of a setting.
pub fn parse_expr(tokens: &[Tok], sources: &SourceMap, out: &mut Diagnostics) -> Expr {
    let mut parser = Parser { tokens, sources, out, at: 0, nesting: 0, silent_at: usize::MAX, crooked: None };
    let expr = parser.expr();
    if parser.peek() != Token::End {
        parser.unexpected("the end of the value");
    }
    expr
}

struct Parser<'a> {
    tokens: &'a [Tok],
    sources: &'a SourceMap,
    out: &'a mut Diagnostics,
    at: usize,
    nesting: usize,
    /// The token of the last diagnostic: one per token is enough.
    silent_at: usize,
    /// A block whose closing brace is probably missing, and the position after its end according to the layout.
    crooked: Option<(Span, Span)>,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Token {
        self.peek_at(0)
    }

    fn peek_at(&self, ahead: usize) -> Token {
        self.tokens.get(self.at + ahead).map_or(Token::End, |tok| tok.token)
    }

    fn span(&self) -> Span {
        let last = self.tokens.len() - 1;
        self.tokens[self.at.min(last)].span
    }

    /// The place of the token before this one.
    fn last_span(&self) -> Span {
        if self.at == 0 { self.span() } else { self.tokens[self.at - 1].span }
    }

    fn text(&self, span: Span) -> &'a str {
        self.sources.slice(span)
    }

    fn eat(&mut self, token: Token) -> bool {
        let found = self.peek() == token;
        self.at += usize::from(found);
        found
    }

    fn report(&mut self, finding: Diagnostic) {
        // The lexer reported `Bad` tokens; errors that follow from them are not reported.
        let silent = self.silent_at == self.at || self.peek() == Token::Bad;
        self.silent_at = self.at;
        if !silent || finding.severity != crate::codes::Severity::Error {
            self.out.push(finding);
        }
    }

    fn unexpected(&mut self, wanted: &str) {
        let span = self.span();
        let found = match self.peek() {
            Token::Ident => format!("`{}`", self.text(span)),
            token => token.describe().to_owned(),
        };
        let mut finding =
            Diagnostic::new(Code::Unexpected, span, format!("expected {wanted}, found {found}"))
                .label("here");
        let (before, rest) = self.tokens.split_at(self.at.min(self.tokens.len() - 1));
        if let Some(help) = remedy::of(before, rest, self.sources) {
            finding = finding.help(help);
        }
        self.report(finding);
    }

    fn expect(&mut self, token: Token, wanted: &str) -> bool {
        let found = self.eat(token);
        if !found {
            self.unexpected(wanted);
        }
        found
    }

    fn deeper(&mut self) -> bool {
        self.nesting += 1;
        if self.nesting <= MAX_NESTING {
            return true;
        }
        let text = format!("brackets and operators are nested more than {MAX_NESTING} levels deep here");
        let finding = Diagnostic::new(Code::NestingTooDeep, self.span(), text);
        self.report(finding);
        false
    }

    /// Skips to the end of a statement with an error: after its `;`, or before a `}` that closes an outer
    /// block.
    fn recover(&mut self) {
        let mut braces = 0usize;
        loop {
            match self.peek() {
                Token::End => return,
                Token::Semicolon if braces == 0 => {
                    self.at += 1;
                    return;
                }
                Token::LBrace => braces += 1,
                Token::RBrace if braces == 0 => return,
                Token::RBrace => {
                    braces -= 1;
                    if braces == 0 {
                        self.at += 1;
                        self.eat(Token::Semicolon);
                        return;
                    }
                }
                _ => {}
            }
            self.at += 1;
        }
    }

    /// Statements up to a closing brace or the end.
    fn statements(&mut self, body: &mut Vec<Stmt>) {
        while !matches!(self.peek(), Token::End | Token::RBrace) {
            let before = self.at;
            self.statement(body);
            assert!(self.at > before, "a statement must make progress");
        }
    }

    fn statement(&mut self, body: &mut Vec<Stmt>) {
        let start = self.span();
        let (kind, simple) = match self.peek() {
            Token::Semicolon => {
                self.at += 1;
                return;
            }
            Token::LBrace => (self.block().map(StmtKind::Block), false),
            Token::If => (self.if_statement(), false),
            Token::Every => (self.every(), false),
            Token::LBracket => (self.group(), true),
            Token::Ident => (self.word_statement(), true),
            Token::Else => {
                let text = "this `else` belongs to no `if`";
                let finding = Diagnostic::new(Code::Unexpected, start, text)
                    .help("there is no `;` between the block of `if` and `else`");
                self.report(finding);
                self.at += 1;
                (None, false)
            }
            token => {
                self.unexpected("a statement");
                if token != Token::RBrace {
                    self.at += 1;
                }
                (None, false)
            }
        };
        let Some(kind) = kind else {
            self.recover();
            body.push(Stmt { kind: StmtKind::Error, span: start.to(self.last_span()) });
            return;
        };
        body.push(Stmt { kind, span: start.to(self.last_span()) });
        if simple && !self.eat(Token::Semicolon) {
            self.missing_semicolon();
        }
    }

    fn missing_semicolon(&mut self) {
        // After an invalid token it is unknown whether the statement was meant to end.
        if self.tokens[self.at - 1].token == Token::Bad {
            self.silent_at = self.at;
        }
        let end = self.last_span();
        let starts_statement = matches!(
            self.peek(),
            Token::Ident | Token::RBrace | Token::If | Token::Every | Token::LBrace | Token::End
        );
        // A word on a new line is the next statement; on the same line it is an error in this one.
        let here = self.sources.file(end.file);
        let next = self.span();
        let same_line = next.file == end.file && here.line(next.start) == here.line(end.end);
        if starts_statement && !(same_line && self.peek() == Token::Ident) {
            let mut finding = Diagnostic::new(Code::MissingSemicolon, end.after(), "a `;` is missing here");
            if self.tokens[self.at - 1].token == Token::RBrace {
                finding = finding.note("a block that is assigned ends with `};`");
            }
            self.report(finding);
            return;
        }
        self.unexpected("`;` or an operator");
        self.recover();
    }

    fn block(&mut self) -> Option<Block> {
        let open = self.span();
        if !self.expect(Token::LBrace, "`{`") {
            return None;
        }
        let mut body = Vec::new();
        if self.deeper() {
            self.statements(&mut body);
        } else {
            self.skip_block();
        }
        self.nesting -= 1;
        let block = Block { body, span: open.to(self.last_span()) };
        if self.eat(Token::RBrace) {
            let span = open.to(self.last_span());
            // The first brace that is indented less than its block shows where one is missing.
            if self.crooked.is_none() && layout::is_crooked(self.sources, open, self.last_span()) {
                self.crooked = layout::missing_brace(self.sources, &block, open);
            }
            return Some(Block { span, ..block });
        }
        let missing = self.crooked.or_else(|| layout::missing_brace(self.sources, &block, open));
        let (open, before) = missing.map_or((open, None), |(open, before)| (open, Some(before)));
        let finding = Diagnostic::new(Code::Unexpected, self.span(), "a block is not closed")
            .label("the program ends here")
            .also(open, "this block is not closed")
            .also_at(before, "a `}` is probably missing before this")
            .help("close the block with `};` where its last field is set");
        self.report(finding);
        Some(block)
    }

    fn skip_block(&mut self) {
        let mut braces = 0usize;
        loop {
            match self.peek() {
                Token::End => return,
                Token::LBrace => braces += 1,
                Token::RBrace if braces == 0 => return,
                Token::RBrace => braces -= 1,
                _ => {}
            }
            self.at += 1;
        }
    }

    fn if_statement(&mut self) -> Option<StmtKind> {
        self.at += 1;
        let condition = self.expr();
        if !self.eat(Token::Then) {
            self.unexpected("`then`");
            if self.peek() != Token::LBrace {
                return None;
            }
        }
        let then = self.block()?;
        if !self.eat(Token::Else) {
            return Some(StmtKind::If(condition, then, None));
        }
        if self.peek() == Token::If {
            let finding = Diagnostic::new(Code::ElseIf, self.span(), "there is no `else if`")
                .help("nest it: `else { if ... then { ... } }`");
            self.report(finding);
            let start = self.span();
            let deep = self.deeper();
            let inner = if deep { self.if_statement() } else { None };
            self.nesting -= 1;
            let span = start.to(self.last_span());
            let body = vec![Stmt { kind: inner?, span }];
            return Some(StmtKind::If(condition, then, Some(Block { body, span })));
        }
        let otherwise = self.block()?;
        Some(StmtKind::If(condition, then, Some(otherwise)))
    }

    fn every(&mut self) -> Option<StmtKind> {
        self.at += 1;
        let goal = self.expr();
        if !self.eat(Token::Do) {
            self.unexpected("`do`");
            if self.peek() != Token::LBrace {
                return None;
            }
        }
        Some(StmtKind::Every(goal, self.block()?))
    }

    fn group(&mut self) -> Option<StmtKind> {
        self.at += 1;
        let mut targets = Vec::new();
        loop {
            let path = self.path()?;
            let prob = if self.eat(Token::Colon) { Some(self.expr()) } else { None };
            targets.push((path, prob));
            if !self.eat(Token::Comma) {
                break;
            }
        }
        if !self.expect(Token::RBracket, "`,` or `]`") || !self.expect(Token::Assign, "`=`") {
            return None;
        }
        Some(StmtKind::Group(targets, self.expr()))
    }

    /// A declaration, assignment or call.
    fn word_statement(&mut self) -> Option<StmtKind> {
        let array = self.peek_at(1) == Token::LBracket && self.peek_at(2) == Token::RBracket;
        if !array && let Some(finding) = remedy::bare_call(&self.tokens[self.at..], self.sources) {
            self.report(finding);
            return None;
        }
        if array || self.peek_at(1) == Token::Ident {
            return self.declaration(array);
        }
        if self.peek_at(1) == Token::LParen {
            return self.call().map(StmtKind::Call);
        }
        let path = self.path()?;
        if self.peek() == Token::LBrace {
            self.missing_assign(&path.text());
            return Some(StmtKind::Assign(path, self.right()?));
        }
        if self.peek() == Token::Eq {
            let finding = Diagnostic::new(Code::Unexpected, self.span(), "`==` compares")
                .help("an assignment is written with `=`");
            self.report(finding);
            return None;
        }
        if !self.eat(Token::Assign) {
            let wanted = if path.words.len() == 1 { "`=`, `(` or a name to declare" } else { "`=`" };
            self.unexpected(wanted);
            return None;
        }
        Some(StmtKind::Assign(path, self.right()?))
    }

    fn declaration(&mut self, array: bool) -> Option<StmtKind> {
        let ty = self.word();
        self.at += if array { 2 } else { 0 };
        if self.peek() != Token::Ident {
            self.unexpected("a name to declare");
            return None;
        }
        let name = self.path()?;
        let init = match self.peek() {
            Token::Assign => {
                self.at += 1;
                Some(self.right()?)
            }
            Token::LBrace => {
                self.missing_assign(&format!("{} {}", ty.text, name.text()));
                Some(self.right()?)
            }
            _ => None,
        };
        Some(StmtKind::Declare { ty, array, name, init })
    }

    /// Handles `Robot R { ... }`: the block is parsed in spite of the missing `=`.
    fn missing_assign(&mut self, target: &str) {
        let finding = Diagnostic::new(Code::Unexpected, self.span(), "a `=` is missing before this block")
            .help(format!("write `{target} = {{ ... }};`"));
        self.report(finding);
    }

    fn right(&mut self) -> Option<AssignValue> {
        if self.peek() == Token::LBrace {
            return self.block().map(AssignValue::Block);
        }
        Some(AssignValue::Expr(self.expr()))
    }

    fn word(&mut self) -> Ident {
        let span = self.span();
        self.at += 1;
        Ident { text: self.text(span).into(), span }
    }

    fn path(&mut self) -> Option<Path> {
        if self.peek() != Token::Ident {
            self.unexpected("a name");
            return None;
        }
        let mut words = vec![self.word()];
        while self.peek() == Token::Dot {
            self.at += 1;
            // Keywords cannot be names, but a path may end in any other word, units included.
            if self.peek() != Token::Ident {
                self.unexpected("a field name");
                return None;
            }
            words.push(self.word());
        }
        Some(Path { words })
    }

    fn call(&mut self) -> Option<CallExpr> {
        let name = self.word();
        self.at += 1;
        let mut args = Vec::new();
        if self.peek() != Token::RParen {
            loop {
                let before = self.at;
                args.push(self.expr());
                if !self.eat(Token::Comma) {
                    break;
                }
                assert!(self.at > before, "an argument must make progress");
            }
        }
        if !self.expect(Token::RParen, "`,` or `)`") {
            return None;
        }
        let span = name.span.to(self.last_span());
        args.shrink_to_fit();
        Some(CallExpr { name, args, span })
    }

    fn expr(&mut self) -> Expr {
        self.level(1)
    }

    /// An expression whose operators bind at least as strongly as `lowest`.
    fn level(&mut self, lowest: u8) -> Expr {
        let mut left = self.operand();
        loop {
            let Some((op, level)) = binary(self.peek()) else { return left };
            if level < lowest {
                return left;
            }
            let start = left.span;
            let mut rest = Vec::new();
            // Operators of the same level form one flat chain of any length.
            while let Some((op, same)) = binary(self.peek())
                && same == level
            {
                let sign = self.span();
                if !rest.is_empty() && is_non_associative(level) {
                    self.not_associative(op, sign);
                }
                self.at += 1;
                rest.push((op, sign, self.level(level + 1)));
            }
            debug_assert!(!rest.is_empty(), "{op:?} starts a chain");
            let span = start.to(self.last_span());
            left = Expr { kind: ExprKind::Chain(Box::new(left), rest), span };
        }
    }

    fn not_associative(&mut self, op: BinaryOp, span: Span) {
        let text = format!("`{}` cannot follow another operator of its kind", op.sign());
        let mut finding =
            Diagnostic::new(Code::Unexpected, span, text).help("use parentheses to make the order clear");
        if matches!(op, BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge) {
            finding = finding.help("`a < b < c` is written `a < b && b < c`");
        }
        self.report(finding);
    }

    fn operand(&mut self) -> Expr {
        let start = self.span();
        let prefix = match self.peek() {
            Token::Plus => Some((UnaryOp::Plus, ADDITIVE + 1)),
            Token::Minus => Some((UnaryOp::Minus, ADDITIVE + 1)),
            Token::Not => Some((UnaryOp::Not, EQUALITY)),
            _ => None,
        };
        if let Some((op, level)) = prefix {
            let deep = self.deeper();
            self.at += 1;
            let inner = if deep { self.level(level) } else { self.give_up() };
            self.nesting -= 1;
            let span = start.to(self.last_span());
            return Expr { kind: ExprKind::Unary(op, Box::new(inner)), span };
        }
        let kind = self.primary();
        Expr { kind, span: start.to(self.last_span()) }
    }

    /// Skips the rest of an expression that is nested too deeply.
    fn give_up(&mut self) -> Expr {
        let span = self.span();
        let mut open = 0usize;
        loop {
            match self.peek() {
                Token::LParen | Token::LBracket => open += 1,
                Token::RParen | Token::RBracket if open == 0 => break,
                Token::RParen | Token::RBracket => open -= 1,
                Token::End | Token::Semicolon | Token::LBrace | Token::RBrace => break,
                _ => {}
            }
            self.at += 1;
        }
        Expr { kind: ExprKind::Error, span }
    }

    fn primary(&mut self) -> ExprKind {
        let span = self.span();
        let literal = |parser: &mut Self, value: fn(&str, Span) -> Result<Value, Box<Diagnostic>>| {
            parser.at += 1;
            parser.literal(value(parser.text(span), span))
        };
        match self.peek() {
            Token::Int => literal(self, literal::int),
            Token::Float => literal(self, literal::float),
            Token::Percent => literal(self, literal::percent),
            Token::Measure => match literal::bad_unit(self.text(span)) {
                Some((number, unit)) => {
                    self.at += 1;
                    ExprKind::BadUnit(Box::new(BadUnit { number: number.into(), unit: unit.into() }))
                }
                None => literal(self, literal::measure),
            },
            Token::Str => literal(self, quoted::string),
            Token::Quoted => literal(self, quoted::constant),
            Token::Lmt | Token::Now | Token::Nmt => {
                let qualifier = match self.peek() {
                    Token::Lmt => Qualifier::Lmt,
                    Token::Now => Qualifier::Now,
                    _ => Qualifier::Nmt,
                };
                self.at += 1;
                ExprKind::Value(Value::Qualifier(qualifier))
            }
            Token::Ident => self.word_expr(),
            Token::LParen => self.parenthesis(),
            Token::LBracket => self.array(),
            Token::Bad => {
                self.at += 1;
                ExprKind::Error
            }
            Token::Dot
                if matches!(self.peek_at(1), Token::Int | Token::Float | Token::Percent | Token::Measure) =>
            {
                let number = self.tokens[self.at + 1].span;
                let help = format!("write `0.{}`", self.text(number));
                let text = "a number must have a digit before its decimal point";
                self.report(Diagnostic::new(Code::BadNumber, span.to(number), text).help(help));
                self.at += 2;
                ExprKind::Error
            }
            _ => {
                self.unexpected("a value");
                ExprKind::Error
            }
        }
    }

    fn literal(&mut self, value: Result<Value, Box<Diagnostic>>) -> ExprKind {
        match value {
            Ok(value) => ExprKind::Value(value),
            Err(finding) => {
                self.out.push(*finding);
                ExprKind::Error
            }
        }
    }

    fn word_expr(&mut self) -> ExprKind {
        let span = self.span();
        match self.peek_at(1) {
            Token::LParen => {
                if !self.deeper() {
                    let skipped = self.give_up();
                    self.nesting -= 1;
                    return skipped.kind;
                }
                let call = self.call();
                self.nesting -= 1;
                return call.map_or(ExprKind::Error, |call| ExprKind::Call(Box::new(call)));
            }
            Token::Regex => {
                let word = self.word();
                let at = self.span();
                self.at += 1;
                return self.regex(&word, at);
            }
            Token::Dot => {}
            _ => {
                if let Some(value) = literal::constant(self.text(span), span) {
                    self.at += 1;
                    return self.literal(value);
                }
            }
        }
        self.path().map_or(ExprKind::Error, ExprKind::Path)
    }

    fn regex(&mut self, scope: &Ident, at: Span) -> ExprKind {
        match quoted::regex(&scope.text, self.text(at), scope.span.to(at)) {
            Ok((pattern, warning)) => {
                if let Some(warning) = warning {
                    self.out.push(warning);
                }
                match Re::new(Matcher::Pattern(pattern)) {
                    Ok(re) => ExprKind::Value(Value::Re(Arc::new(re))),
                    Err(_) => ExprKind::Error,
                }
            }
            Err(finding) => {
                self.out.push(*finding);
                ExprKind::Error
            }
        }
    }

    fn parenthesis(&mut self) -> ExprKind {
        if !self.deeper() {
            let skipped = self.give_up();
            self.nesting -= 1;
            return skipped.kind;
        }
        self.at += 1;
        let inner = self.expr();
        self.nesting -= 1;
        if !self.expect(Token::RParen, "`)` or an operator") {
            return ExprKind::Error;
        }
        inner.kind
    }

    fn array(&mut self) -> ExprKind {
        if !self.deeper() {
            let skipped = self.give_up();
            self.nesting -= 1;
            return skipped.kind;
        }
        self.at += 1;
        let mut items = Vec::new();
        if self.peek() != Token::RBracket {
            loop {
                let before = self.at;
                let value = self.expr();
                let prob = if self.eat(Token::Colon) { Some(Box::new(self.expr())) } else { None };
                items.push((value, prob));
                if !self.eat(Token::Comma) {
                    break;
                }
                assert!(self.at > before, "an array item must make progress");
                if self.peek() == Token::RBracket {
                    let finding = Diagnostic::new(Code::Unexpected, self.last_span(), "a comma before `]`")
                        .help("remove the comma");
                    self.report(finding);
                    break;
                }
            }
        }
        self.nesting -= 1;
        if !self.expect(Token::RBracket, "`,` or `]`") {
            return ExprKind::Error;
        }
        items.shrink_to_fit();
        ExprKind::Array(items)
    }
}

const EQUALITY: u8 = 6;
const ADDITIVE: u8 = 8;

/// True for levels 1, 6 and 7, which do not chain: the language does not define `a < b < c`.
fn is_non_associative(level: u8) -> bool {
    matches!(level, 1 | EQUALITY | 7)
}

/// Binary operators with their level, the lowest binding weakest. Level 5 is `!`, a prefix.
fn binary(token: Token) -> Option<(BinaryOp, u8)> {
    Some(match token {
        Token::DotDot => (BinaryOp::Range, 1),
        Token::StarStar => (BinaryOp::Clone, 1),
        Token::Or => (BinaryOp::Or, 2),
        Token::And => (BinaryOp::And, 3),
        Token::Xor => (BinaryOp::Xor, 4),
        Token::Eq => (BinaryOp::Eq, EQUALITY),
        Token::Ne => (BinaryOp::Ne, EQUALITY),
        Token::Lt => (BinaryOp::Lt, 7),
        Token::Le => (BinaryOp::Le, 7),
        Token::Gt => (BinaryOp::Gt, 7),
        Token::Ge => (BinaryOp::Ge, 7),
        Token::Plus => (BinaryOp::Add, ADDITIVE),
        Token::Minus => (BinaryOp::Sub, ADDITIVE),
        Token::Star => (BinaryOp::Mul, 9),
        Token::Slash => (BinaryOp::Div, 9),
        Token::Modulo => (BinaryOp::Mod, 9),
        Token::Caret => (BinaryOp::Pow, 9),
        _ => return None,
    })
}
