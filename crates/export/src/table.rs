//! Tables with typed columns.

use serde_json::{Map, json};

/// A cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A whole number.
    Int(Option<i64>),
    /// A number.
    Float(Option<f64>),
    /// Yes or no.
    Bool(Option<bool>),
    /// A text.
    Text(Option<String>),
    /// A time of day in microseconds since 1970, UTC.
    Time(Option<i64>),
}

macro_rules! from {
    ($($type:ty => $make:expr),+ $(,)?) => {
        $(impl From<$type> for Value {
            fn from(value: $type) -> Value {
                $make(value)
            }
        })+
    };
}

from! {
    u64 => |value| Value::Int(i64::try_from(value).ok()),
    u32 => |value| Value::Int(Some(i64::from(value))),
    Option<u64> => |value: Option<u64>| Value::Int(value.and_then(|value| i64::try_from(value).ok())),
    f64 => |value| Value::Float(Some(value)),
    Option<f64> => Value::Float,
    bool => |value| Value::Bool(Some(value)),
    Option<bool> => Value::Bool,
    String => |value| Value::Text(Some(value)),
    &str => |value: &str| Value::Text(Some(value.to_owned())),
    Option<String> => Value::Text,
}

/// The cells of a column; `None` is undefined or unknown.
#[derive(Clone, Debug, PartialEq)]
pub enum Cells {
    /// Whole numbers.
    Int(Vec<Option<i64>>),
    /// Numbers.
    Float(Vec<Option<f64>>),
    /// Yes or no.
    Bool(Vec<Option<bool>>),
    /// Texts.
    Text(Vec<Option<String>>),
    /// Times of day in microseconds since 1970, UTC.
    Time(Vec<Option<i64>>),
}

impl Cells {
    /// The type in a word.
    pub fn kind(&self) -> &'static str {
        match self {
            Cells::Int(_) => "integer",
            Cells::Float(_) => "number",
            Cells::Bool(_) => "boolean",
            Cells::Text(_) => "text",
            Cells::Time(_) => "timestamp",
        }
    }

    /// The cell of a row.
    pub(crate) fn at(&self, row: usize) -> Value {
        match self {
            Cells::Int(cells) => Value::Int(cells[row]),
            Cells::Float(cells) => Value::Float(cells[row]),
            Cells::Bool(cells) => Value::Bool(cells[row]),
            Cells::Text(cells) => Value::Text(cells[row].clone()),
            Cells::Time(cells) => Value::Time(cells[row]),
        }
    }

    fn push(&mut self, value: Value) {
        match (self, value) {
            (Cells::Int(cells), Value::Int(value)) => cells.push(value),
            (Cells::Float(cells), Value::Float(value)) => cells.push(value),
            (Cells::Bool(cells), Value::Bool(value)) => cells.push(value),
            (Cells::Text(cells), Value::Text(value)) => cells.push(value),
            (Cells::Time(cells), Value::Time(value)) => cells.push(value),
            (cells, value) => panic!("{value:?} in a column of type {}", cells.kind()),
        }
    }
}

/// A column.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Its name: letters, digits, underscores.
    pub name: String,
    /// Unit of its numbers; empty if they have none.
    pub unit: &'static str,
    /// What it is.
    pub definition: String,
    /// Its cells.
    pub cells: Cells,
}

/// A table.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Its name, which files are called after.
    pub name: &'static str,
    /// What a row is.
    pub definition: &'static str,
    /// Its columns.
    pub columns: Vec<Column>,
    rows: usize,
}

/// A column as it is declared: name, unit, definition, no cells.
pub(crate) type Declared<'a> = (&'a str, &'static str, &'a str, Cells);

pub(crate) const INT: Cells = Cells::Int(Vec::new());
pub(crate) const FLOAT: Cells = Cells::Float(Vec::new());
pub(crate) const BOOL: Cells = Cells::Bool(Vec::new());
pub(crate) const TEXT: Cells = Cells::Text(Vec::new());
pub(crate) const TIME: Cells = Cells::Time(Vec::new());

impl Table {
    /// A table without rows.
    pub(crate) fn new<'a>(
        name: &'static str,
        definition: &'static str,
        columns: impl IntoIterator<Item = Declared<'a>>,
    ) -> Table {
        let column = |(name, unit, definition, cells): Declared<'_>| Column {
            name: name.to_owned(),
            unit,
            definition: definition.to_owned(),
            cells,
        };
        Table { name, definition, columns: columns.into_iter().map(column).collect(), rows: 0 }
    }

    /// Appends a row.
    ///
    /// # Panics
    /// If the row does not fit the columns.
    pub(crate) fn push(&mut self, row: impl IntoIterator<Item = Value>) {
        let mut row = row.into_iter();
        for column in &mut self.columns {
            let value =
                row.next().unwrap_or_else(|| panic!("a row of {} ends before {}", self.name, column.name));
            column.cells.push(value);
        }
        assert!(row.next().is_none(), "a row of {} has too many cells", self.name);
        self.rows += 1;
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// What the table and its columns are, as JSON.
    pub fn schema(&self) -> serde_json::Value {
        let column = |column: &Column| {
            let mut about = Map::new();
            about.insert("name".into(), json!(column.name));
            about.insert("type".into(), json!(column.cells.kind()));
            if !column.unit.is_empty() {
                about.insert("unit".into(), json!(column.unit));
            }
            about.insert("definition".into(), json!(column.definition));
            serde_json::Value::Object(about)
        };
        let columns: Vec<_> = self.columns.iter().map(column).collect();
        json!({ "table": self.name, "definition": self.definition, "columns": columns })
    }
}
