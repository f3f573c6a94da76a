//! Man pages.

use std::io::{self, Write};

use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};

use super::ExtraFile;

/// The pages of a program and of all its commands.
///
/// # Errors
/// If a page cannot be written, which does not happen in memory.
pub fn pages(program: &Command, found: &mut Vec<ExtraFile>) -> io::Result<()> {
    let mut program = program.clone().disable_help_subcommand(true);
    program.build();
    command_pages(&program, "polygraph", found)
}

fn command_pages(command: &Command, name: &str, found: &mut Vec<ExtraFile>) -> io::Result<()> {
    let inner: Vec<&Command> = command.get_subcommands().filter(|inner| !inner.is_hide_set()).collect();
    let outer = name.rsplit_once('-').map(|_| "polygraph".to_owned());
    let below = inner.iter().map(|inner| format!("{name}-{}", inner.get_name()));
    let see_also: Vec<String> = outer.into_iter().chain(below).collect();
    let named = command.clone().display_name(name.to_owned());
    found.push(page(&named, name, &see_also)?);
    for inner in inner {
        command_pages(inner, &format!("{name}-{}", inner.get_name()), found)?;
    }
    Ok(())
}

/// The page of one command.
///
/// # Errors
/// As [`pages`].
pub fn page(command: &Command, name: &str, see_also: &[String]) -> io::Result<ExtraFile> {
    let text = |text: Option<&clap::builder::StyledStr>| text.map(ToString::to_string).unwrap_or_default();
    let long = text(command.get_after_long_help());
    let after = if long.is_empty() { text(command.get_after_help()) } else { long };
    let version = command.get_version().unwrap_or(crate::VERSION).to_owned();
    // The list of commands in front of the options is for the terminal.
    let bare = command.clone().before_help("").after_help("").after_long_help("");
    let man =
        Man::new(bare).title(name).section("1").source(format!("polygraph {version}")).manual("polygraph");
    let mut out = Vec::new();
    man.render_title(&mut out)?;
    man.render_name_section(&mut out)?;
    man.render_synopsis_section(&mut out)?;
    man.render_description_section(&mut out)?;
    man.render_options_section(&mut out)?;
    if command.get_subcommands().any(|inner| !inner.is_hide_set()) {
        man.render_subcommands_section(&mut out)?;
    }
    for (title, lines) in sections(&after) {
        Roff::new().control("SH", [title.as_str()]).control("nf", []).to_writer(&mut out)?;
        Roff::new().text([roman(lines.join("\n"))]).control("fi", []).to_writer(&mut out)?;
    }
    if !see_also.is_empty() {
        Roff::new().control("SH", ["SEE ALSO"]).to_writer(&mut out)?;
        for (index, other) in see_also.iter().enumerate() {
            let end = if index + 1 < see_also.len() { "(1)," } else { "(1)" };
            writeln!(out, ".BR {} {end}", other.replace('-', "\\-"))?;
        }
    }
    let text = String::from_utf8_lossy(&out).into_owned();
    Ok(ExtraFile { path: format!("share/man/man1/{name}.1"), text })
}

/// The parts of the text behind the options: paragraphs, and lists under a line that ends with a colon. Lines keep their
/// breaks.
fn sections(text: &str) -> Vec<(String, Vec<String>)> {
    let mut found: Vec<(String, Vec<String>)> = Vec::new();
    for line in text.lines() {
        let is_title = line.ends_with(':') && !line.starts_with(' ') && line.len() < 40;
        if is_title {
            let title = line.trim_end_matches(':').to_uppercase();
            found.push((if title == "EXAMPLE" { "EXAMPLES".to_owned() } else { title }, Vec::new()));
        } else if let Some((_, lines)) = found.last_mut() {
            lines.push(line.strip_prefix("  ").unwrap_or(line).to_owned());
        } else if !line.is_empty() {
            found.push(("NOTES".to_owned(), vec![line.to_owned()]));
        }
    }
    for (_, lines) in &mut found {
        while lines.last().is_some_and(String::is_empty) {
            lines.pop();
        }
    }
    found.retain(|(_, lines)| !lines.is_empty());
    found
}
