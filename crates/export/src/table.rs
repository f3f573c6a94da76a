//! Tables with typed columns.

use std::sync::Arc;

use serde_json::{Map, json};

/// A cell.
#[derive(Clone, Debug, PartialEq)]
pub enum CellValue {
    /// A whole number.
    Int(Option<i64>),
    /// A number.
    Float(Option<f64>),
    /// Yes or no.
    Bool(Option<bool>),
    /// A text; many rows have the same.
    Text(Option<Arc<str>>),
    /// A time of day in microseconds since 1970, UTC.
    Time(Option<i64>),
}

macro_rules! from {
    ($($type:ty => $make:expr),+ $(,)?) => {
        $(impl From<$type> for CellValue {
            fn from(value: $type) -> CellValue {
                $make(value)
            }
        })+
    };
}

from! {
    usize => |value| CellValue::Int(i64::try_from(value).ok()),
    u64 => |value| CellValue::Int(i64::try_from(value).ok()),
    u32 => |value| CellValue::Int(Some(i64::from(value))),
    Option<u64> => |value: Option<u64>| CellValue::Int(value.and_then(|value| i64::try_from(value).ok())),
    f64 => |value| CellValue::Float(Some(value)),
    Option<f64> => CellValue::Float,
    bool => |value| CellValue::Bool(Some(value)),
    Option<bool> => CellValue::Bool,
    String => |value: String| CellValue::Text(Some(value.into())),
    &str => |value: &str| CellValue::Text(Some(value.into())),
    &Arc<str> => |value: &Arc<str>| CellValue::Text(Some(Arc::clone(value))),
    Option<String> => |value: Option<String>| CellValue::Text(value.map(Into::into)),
}

/// The cells of a column; `None` is undefined or unknown.
#[derive(Clone, Debug, PartialEq)]
pub enum ColumnCells {
    /// Whole numbers.
    Int(Vec<Option<i64>>),
    /// Cells with fractions.
    Float(Vec<Option<f64>>),
    /// Yes or no.
    Bool(Vec<Option<bool>>),
    /// Cells with text.
    Text(Vec<Option<Arc<str>>>),
    /// Times of day in microseconds since 1970, UTC.
    Time(Vec<Option<i64>>),
}

impl ColumnCells {
    /// The type in a word.
    pub fn kind(&self) -> &'static str {
        match self {
            ColumnCells::Int(_) => "integer",
            ColumnCells::Float(_) => "number",
            ColumnCells::Bool(_) => "boolean",
            ColumnCells::Text(_) => "text",
            ColumnCells::Time(_) => "timestamp",
        }
    }

    /// The cell of a row.
    pub(crate) fn at(&self, row: usize) -> CellValue {
        match self {
            ColumnCells::Int(cells) => CellValue::Int(cells[row]),
            ColumnCells::Float(cells) => CellValue::Float(cells[row]),
            ColumnCells::Bool(cells) => CellValue::Bool(cells[row]),
            ColumnCells::Text(cells) => CellValue::Text(cells[row].clone()),
            ColumnCells::Time(cells) => CellValue::Time(cells[row]),
        }
    }

    fn clear(&mut self) {
        match self {
            ColumnCells::Int(cells) | ColumnCells::Time(cells) => cells.clear(),
            ColumnCells::Float(cells) => cells.clear(),
            ColumnCells::Bool(cells) => cells.clear(),
            ColumnCells::Text(cells) => cells.clear(),
        }
    }

    fn push(&mut self, value: CellValue) {
        match (self, value) {
            (ColumnCells::Int(cells), CellValue::Int(value)) => cells.push(value),
            (ColumnCells::Float(cells), CellValue::Float(value)) => cells.push(value),
            (ColumnCells::Bool(cells), CellValue::Bool(value)) => cells.push(value),
            (ColumnCells::Text(cells), CellValue::Text(value)) => cells.push(value),
            (ColumnCells::Time(cells), CellValue::Time(value)) => cells.push(value),
            (cells, value) => panic!("{value:?} in a column of type {}", cells.kind()),
        }
    }
}

/// A column.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Name: letters, digits, underscores.
    pub name: String,
    /// Unit of the numbers; empty if they have none.
    pub unit: &'static str,
    /// Definition of the column.
    pub definition: String,
    /// Cells, one for each row.
    pub cells: ColumnCells,
}

/// A table.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Name of the table and its file.
    pub name: &'static str,
    /// The meaning of a row.
    pub definition: &'static str,
    /// Columns of the table.
    pub columns: Vec<Column>,
    rows: usize,
}

/// A declaration of a column: name, unit, definition and type of cells.
pub(crate) type ColumnSpec<'a> = (&'a str, &'static str, &'a str, ColumnCells);

pub(crate) const INT: ColumnCells = ColumnCells::Int(Vec::new());
pub(crate) const FLOAT: ColumnCells = ColumnCells::Float(Vec::new());
pub(crate) const BOOL: ColumnCells = ColumnCells::Bool(Vec::new());
pub(crate) const TEXT: ColumnCells = ColumnCells::Text(Vec::new());
pub(crate) const TIME: ColumnCells = ColumnCells::Time(Vec::new());

impl Table {
    /// A table without rows.
    pub(crate) fn new<'a>(
        name: &'static str,
        definition: &'static str,
        columns: impl IntoIterator<Item = ColumnSpec<'a>>,
    ) -> Table {
        let column = |(name, unit, definition, cells): ColumnSpec<'_>| Column {
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
    pub(crate) fn push(&mut self, row: impl IntoIterator<Item = CellValue>) {
        let mut row = row.into_iter();
        for column in &mut self.columns {
            let value =
                row.next().unwrap_or_else(|| panic!("a row of {} ends before {}", self.name, column.name));
            column.cells.push(value);
        }
        assert!(row.next().is_none(), "a row of {} has too many cells", self.name);
        self.rows += 1;
    }

    /// Removes all rows, but keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.columns.iter_mut().for_each(|column| column.cells.clear());
        self.rows = 0;
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The description of the table and its columns, as JSON.
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
