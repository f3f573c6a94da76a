//! Tokens: the words and signs of a text, blanks and comments included.

/// The kinds of tokens. Literals keep only their class; the parser computes their value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Token {
    /// Blanks and line ends.
    Blank,
    /// The token `// ...`.
    LineComment,
    /// `/* ... */`, nested.
    BlockComment,
    /// A line that starts with `#`, up to the closing quote of the file name.
    Directive,
    /// A name, a unit or a boolean constant.
    Ident,
    /// The keyword `if`.
    If,
    /// The keyword `then`.
    Then,
    /// The keyword `else`.
    Else,
    /// The keyword `every`.
    Every,
    /// The keyword `do`.
    Do,
    /// The keyword `lmt`.
    Lmt,
    /// The keyword `now`.
    Now,
    /// The keyword `nmt`.
    Nmt,
    /// A number of digits only.
    Int,
    /// A number with a point or an exponent.
    Float,
    /// A number directly followed by `%`.
    Percent,
    /// A number directly followed by a word.
    Measure,
    /// A string in double quotes: `"..."`.
    Str,
    /// A string in single quotes: `'...'`.
    Quoted,
    /// `` `...` ``
    Command,
    /// `=~/.../flags` or `==/.../flags`, also with `@`.
    Regex,
    /// The token `=`.
    Assign,
    /// The token `==`.
    Eq,
    /// The token `!=`.
    Ne,
    /// The token `<`.
    Lt,
    /// The token `<=`.
    Le,
    /// The token `>`.
    Gt,
    /// The token `>=`.
    Ge,
    /// The token `+`.
    Plus,
    /// The token `-`.
    Minus,
    /// The token `*`.
    Star,
    /// The token `/`.
    Slash,
    /// The token `%`.
    Modulo,
    /// The token `^`.
    Caret,
    /// The token `^^`.
    Xor,
    /// The token `&&`.
    And,
    /// The token `||`.
    Or,
    /// The token `!`.
    Not,
    /// The token `..`.
    DotDot,
    /// The token `**`.
    StarStar,
    /// The token `(`.
    LParen,
    /// The token `)`.
    RParen,
    /// The token `[`.
    LBracket,
    /// The token `]`.
    RBracket,
    /// The token `{`.
    LBrace,
    /// The token `}`.
    RBrace,
    /// The token `;`.
    Semicolon,
    /// The token `:`.
    Colon,
    /// The token `,`.
    Comma,
    /// The token `.`.
    Dot,
    /// An invalid token; a diagnostic was reported.
    Bad,
    /// The end of the program.
    End,
}

impl Token {
    /// True for tokens the parser never sees.
    pub fn is_trivia(self) -> bool {
        matches!(self, Token::Blank | Token::LineComment | Token::BlockComment)
    }

    /// The token in words, for messages.
    pub fn describe(self) -> &'static str {
        match self {
            Token::Blank => "a blank",
            Token::LineComment | Token::BlockComment => "a comment",
            Token::Directive => "a directive",
            Token::Ident => "a name",
            Token::If => "`if`",
            Token::Then => "`then`",
            Token::Else => "`else`",
            Token::Every => "`every`",
            Token::Do => "`do`",
            Token::Lmt => "`lmt`",
            Token::Now => "`now`",
            Token::Nmt => "`nmt`",
            Token::Int | Token::Float | Token::Percent => "a number",
            Token::Measure => "a number with a unit",
            Token::Str => "a string",
            Token::Quoted => "a quoted constant",
            Token::Command => "a back-quoted command",
            Token::Regex => "a regular expression",
            Token::Assign => "`=`",
            Token::Eq => "`==`",
            Token::Ne => "`!=`",
            Token::Lt => "`<`",
            Token::Le => "`<=`",
            Token::Gt => "`>`",
            Token::Ge => "`>=`",
            Token::Plus => "`+`",
            Token::Minus => "`-`",
            Token::Star => "`*`",
            Token::Slash => "`/`",
            Token::Modulo => "`%`",
            Token::Caret => "`^`",
            Token::Xor => "`^^`",
            Token::And => "`&&`",
            Token::Or => "`||`",
            Token::Not => "`!`",
            Token::DotDot => "`..`",
            Token::StarStar => "`**`",
            Token::LParen => "`(`",
            Token::RParen => "`)`",
            Token::LBracket => "`[`",
            Token::RBracket => "`]`",
            Token::LBrace => "`{`",
            Token::RBrace => "`}`",
            Token::Semicolon => "`;`",
            Token::Colon => "`:`",
            Token::Comma => "`,`",
            Token::Dot => "`.`",
            Token::Bad => "an unknown sign",
            Token::End => "the end of the program",
        }
    }
}

/// A token and its position in its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lexeme {
    /// The kind of the token.
    pub token: Token,
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}
