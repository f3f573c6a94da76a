//! Tables of a page. The first cell of each row is its heading.

use std::borrow::Cow;

use serde::{Serialize, Serializer};

/// Mark of a cell, shown by a colour and a sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// The best of its row or column.
    Best,
    /// Better than what it is compared with.
    Better,
    /// Worse than what it is compared with.
    Worse,
    /// Not significant or not comparable.
    Faint,
}

impl Mark {
    /// The CSS class of the cell.
    fn class(self) -> &'static str {
        match self {
            Mark::Best => "best",
            Mark::Better => "better",
            Mark::Worse => "worse",
            Mark::Faint => "faint",
        }
    }
}

/// A table.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// Caption above the table.
    pub caption: String,
    /// Headings of the columns; the first one is above the row headings.
    pub head: Vec<Cow<'static, str>>,
    /// Rows of cells; the first cell is the row heading.
    pub rows: Vec<Vec<String>>,
    /// Marked cells: row, column (0 is the row heading), mark.
    pub marks: Vec<(usize, usize, Mark)>,
}

impl Table {
    /// A table without marks.
    pub fn new(caption: impl Into<String>, head: Vec<Cow<'static, str>>, rows: Vec<Vec<String>>) -> Table {
        Table { caption: caption.into(), head, rows, marks: Vec::new() }
    }

    /// The CSS class of a column: words are aligned left, figures right.
    fn column_class(&self, column: usize) -> &'static str {
        let is_word = |cell: &String| cell.chars().next().is_some_and(char::is_alphabetic);
        let cells = || self.rows.iter().filter_map(|row| row.get(column));
        // A word in a column of figures does not change its alignment.
        if 2 * cells().filter(|cell| is_word(cell)).count() > cells().count() { "words" } else { "" }
    }

    /// Removes columns by name. Only for tables without marks.
    pub(super) fn drop_columns(&mut self, names: &[&str]) {
        let keep: Vec<bool> = self.head.iter().map(|name| !names.contains(&name.as_ref())).collect();
        let mut flags = keep.iter();
        self.head.retain(|_| *flags.next().unwrap_or(&true));
        for row in &mut self.rows {
            let mut flags = keep.iter();
            row.retain(|_| *flags.next().unwrap_or(&true));
        }
    }
}

/// A table as templates see it.
#[derive(Serialize)]
struct Shown<'a> {
    caption: &'a str,
    head: Vec<Cell<'a>>,
    rows: Vec<Vec<Cell<'a>>>,
}

/// A cell and its CSS class; empty for ordinary ones.
#[derive(Serialize)]
struct Cell<'a> {
    text: &'a str,
    class: &'static str,
}

impl<'a> Shown<'a> {
    fn new(table: &'a Table) -> Shown<'a> {
        let width = table.rows.iter().map(Vec::len).max().unwrap_or(0).max(table.head.len());
        let classes: Vec<_> = (0..width).map(|column| table.column_class(column)).collect();
        let cells = |texts: &mut dyn Iterator<Item = &'a str>| -> Vec<Cell<'a>> {
            texts.zip(&classes).map(|(text, class)| Cell { text, class }).collect()
        };
        let head = cells(&mut table.head.iter().map(AsRef::as_ref));
        let mut rows: Vec<_> =
            table.rows.iter().map(|row| cells(&mut row.iter().map(String::as_str))).collect();
        for &(row, column, mark) in &table.marks {
            if let Some(cell) = rows.get_mut(row).and_then(|row| row.get_mut(column)) {
                cell.class = mark.class();
            }
        }
        Shown { caption: &table.caption, head, rows }
    }
}

impl Serialize for Table {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Shown::new(self).serialize(serializer)
    }
}

/// Headings of columns.
pub fn columns(names: &[&'static str]) -> Vec<Cow<'static, str>> {
    names.iter().map(|&name| name.into()).collect()
}

/// A row from its heading and the other cells.
pub fn row(name: &str, cells: impl IntoIterator<Item = String>) -> Vec<String> {
    std::iter::once(name.to_owned()).chain(cells).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stand_at_the_left_and_figures_at_the_right() {
        let rows = ["1", "–", "none"].map(|figure| row("a", [figure.to_owned(), "by hand".to_owned()]));
        let mut table = Table::new("", columns(&["name", "count", "how"]), rows.to_vec());
        assert_eq!(
            Shown::new(&table).head.iter().map(|cell| cell.class).collect::<Vec<_>>()[1..],
            ["", "words"]
        );
        table.marks.push((2, 2, Mark::Best));
        assert_eq!([1, 2].map(|row| Shown::new(&table).rows[row][2].class), ["words", "best"]);
    }
}
