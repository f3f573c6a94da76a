//! The commands in the pages of the manual: code blocks, their marks, and the command lines in them.
//!
//! | block | what tests do with it |
//! |---|---|
//! | ```` ```sh run ```` | run it; `goal=4s` shortens its `--goal`, `needs=squid` names a device that it needs, `exit=0,14` are the exit codes that it may have |
//! | ```` ```sh parse ````, ```` ```sh ````, indented lines | read the command lines of this program in it, without carrying them out |

use std::path::{Path, PathBuf};

use crate::tree;

/// A code block of a page.
#[derive(Debug, Clone)]
pub struct CodeBlock {
    /// The file, relative to the root of the tree.
    pub page: PathBuf,
    /// The line of the page on which its text begins, from 1.
    pub line: usize,
    /// What stands behind the backquotes: the language, and marks. Empty if the block is indented.
    pub marks: Vec<String>,
    /// Its lines.
    pub text: String,
}

impl CodeBlock {
    /// Whether it may contain command lines: shell code, or lines that are indented and thus of no known language.
    pub fn is_shell(&self) -> bool {
        self.marks.first().is_none_or(|language| language == "sh")
    }

    /// Whether it has this mark.
    pub fn has_mark(&self, mark: &str) -> bool {
        self.marks.iter().skip(1).any(|found| found == mark)
    }

    /// The value of a mark `name=value`.
    pub fn mark(&self, name: &str) -> Option<&str> {
        self.marks.iter().find_map(|mark| mark.strip_prefix(name)?.strip_prefix('='))
    }

    /// Where it stands, for messages.
    pub fn place(&self) -> String {
        format!("{}:{}", self.page.display(), self.line)
    }
}

/// The pages that users read: README and everything below `docs/`, and the README of folders with files for users.
pub fn pages() -> Vec<PathBuf> {
    let folders = ["docs", "workloads", "devices", "bakeoffs", "editors", "data"];
    let is_page = |path: &PathBuf| {
        let folder = path.components().next().and_then(|part| part.as_os_str().to_str());
        path.extension().is_some_and(|end| end == "md")
            && (path == Path::new("README.md") || folder.is_some_and(|folder| folders.contains(&folder)))
    };
    tree::files().into_iter().filter(is_page).collect()
}

/// The code blocks of all [`pages`].
///
/// # Panics
///
/// Panics if a page cannot be read.
pub fn all_blocks() -> Vec<CodeBlock> {
    let of_page = |page: PathBuf| {
        let text = std::fs::read_to_string(tree::root().join(&page)).expect("pages are readable");
        blocks(&page, &text)
    };
    pages().into_iter().flat_map(of_page).collect()
}

/// The code blocks of a page.
pub fn blocks(page: &Path, text: &str) -> Vec<CodeBlock> {
    let mut found: Vec<CodeBlock> = Vec::new();
    // The open block, and whether it is fenced.
    let mut open: Option<(CodeBlock, bool)> = None;
    let new = |line, marks: &str| CodeBlock {
        page: page.to_owned(),
        line,
        marks: marks.split_whitespace().map(str::to_owned).collect(),
        text: String::new(),
    };
    for (at, line) in text.lines().enumerate() {
        let fence = line.trim_start().strip_prefix("```");
        let indented = line.strip_prefix("    ");
        match (&mut open, fence, indented) {
            (Some((_, true)), Some(_), _) => found.extend(open.take().map(|(block, _)| block)),
            (Some((block, true)), None, _) => {
                block.text.push_str(line);
                block.text.push('\n');
            }
            (Some((block, false)), None, Some(line)) => {
                block.text.push_str(line);
                block.text.push('\n');
            }
            (_, Some(marks), _) => {
                found.extend(open.replace((new(at + 2, marks), true)).map(|(block, _)| block));
            }
            (None, None, Some(line)) => {
                let mut block = new(at + 1, "");
                block.text = format!("{line}\n");
                open = Some((block, false));
            }
            (_, None, None) => found.extend(open.take().map(|(block, _)| block)),
        }
    }
    found.extend(open.map(|(block, _)| block));
    found
}

/// The commands of shell code, each as its words: comments, operators, redirections and assignments are left out, quotes
/// are removed, and variables stay as they are.
pub fn commands(code: &str) -> Vec<Vec<String>> {
    let mut found = vec![Vec::new()];
    let mut word: Option<String> = None;
    // The next word is the target of a redirection.
    let mut is_target = false;
    let mut chars = code.chars().peekable();
    let end_word = |word: &mut Option<String>, is_target: &mut bool, found: &mut Vec<Vec<String>>| {
        if let Some(word) = word.take()
            && !std::mem::take(is_target)
        {
            found.last_mut().expect("there is always a command").push(word);
        }
    };
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('\n') | None => {}
                Some(escaped) => word.get_or_insert_default().push(escaped),
            },
            '\'' => {
                let word = word.get_or_insert_default();
                word.extend(chars.by_ref().take_while(|c| *c != '\''));
            }
            '"' => {
                let word = word.get_or_insert_default();
                while let Some(c) = chars.next() {
                    match c {
                        '"' => break,
                        '\\' => word.extend(chars.next()),
                        c => word.push(c),
                    }
                }
            }
            '#' if word.is_none() => while chars.next_if(|c| *c != '\n').is_some() {},
            '>' | '<' => {
                // The number before it is a file descriptor.
                if word.as_ref().is_some_and(|word| word.chars().all(|c| c.is_ascii_digit())) {
                    word = None;
                }
                end_word(&mut word, &mut is_target, &mut found);
                while chars.next_if(|c| ['>', '<', '&'].contains(c)).is_some() {}
                is_target = true;
            }
            '\n' | ';' | '|' | '&' | '(' | ')' => {
                end_word(&mut word, &mut is_target, &mut found);
                found.push(Vec::new());
            }
            c if c.is_whitespace() => end_word(&mut word, &mut is_target, &mut found),
            c => word.get_or_insert_default().push(c),
        }
    }
    end_word(&mut word, &mut is_target, &mut found);
    found.into_iter().map(without_prefix).filter(|words| !words.is_empty()).collect()
}

/// A command without what runs it: assignments, words of the shell, `sudo`, and what Cargo reads before two dashes.
fn without_prefix(mut words: Vec<String>) -> Vec<String> {
    if words.first().is_some_and(|word| word == "cargo") {
        let dashes = words.iter().position(|word| word == "--");
        if let Some(dashes) = dashes.filter(|_| words.get(1).is_some_and(|word| word == "run")) {
            words.splice(..=dashes, ["polygraph".to_owned()]);
        }
        return words;
    }
    let is_assignment = |word: &String| {
        word.split_once('=').is_some_and(|(name, _)| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        })
    };
    let is_prefix = |word: &String| {
        ["sudo", "nohup", "time", "if", "then", "else", "do", "while", "until", "!"].contains(&word.as_str())
            || is_assignment(word)
    };
    let prefixes = words.iter().take_while(|word| is_prefix(word)).count();
    words.drain(..prefixes);
    words
}
