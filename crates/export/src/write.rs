//! Writing tables to files.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use jiff::Timestamp;
use polygraph_report::text::harmless_cell;
use serde_json::{Map, json};

use crate::parquet;
use crate::table::{CellValue, Table};

/// Formats of table files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Apache Parquet, compressed; columns are described in its metadata.
    #[default]
    Parquet,
    /// Comma-separated values (RFC 4180) with a line of names; undefined cells are empty.
    Csv,
    /// A JSON object on each line; undefined cells are null.
    JsonLines,
}

impl Format {
    /// The ending of file names.
    pub fn extension(self) -> &'static str {
        match self {
            Format::Parquet => "parquet",
            Format::Csv => "csv",
            Format::JsonLines => "jsonl",
        }
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Format, String> {
        [Format::Parquet, Format::Csv, Format::JsonLines]
            .into_iter()
            .find(|format| format.extension() == text)
            .ok_or_else(|| format!("`{text}` is not a format: write parquet, csv or jsonl"))
    }
}

/// Why tables cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// A file cannot be created or written.
    #[error("cannot write {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A table cannot be written as Parquet.
    #[error("cannot write {}: {source}", path.display())]
    Parquet {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: ::parquet::errors::ParquetError,
    },
}

/// Writes each table to a file of its name in `folder`, which is created if it does not exist, and the description of
/// their columns to `schema.json`. Files of earlier exports are overwritten. Returns the paths.
///
/// # Errors
/// If a file cannot be written.
pub fn write(tables: &[Table], folder: &Path, format: Format) -> Result<Vec<PathBuf>, ExportError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| ExportError::Io { path, source }
    };
    std::fs::create_dir_all(folder).map_err(failed(folder))?;
    let mut written = Vec::new();
    for table in tables {
        let path = folder.join(format!("{}.{}", table.name, format.extension()));
        let file = File::create(&path).map_err(failed(&path))?;
        match format {
            Format::Parquet => {
                let done = parquet::write(table, file);
                done.map_err(|source| ExportError::Parquet { path: path.clone(), source })?;
            }
            Format::Csv => csv(table, file).map_err(failed(&path))?,
            Format::JsonLines => json_lines(table, file).map_err(failed(&path))?,
        }
        written.push(path);
    }
    let path = folder.join("schema.json");
    let schema: Vec<_> = tables.iter().map(Table::schema).collect();
    let text = serde_json::to_string_pretty(&schema).map_err(io::Error::from);
    text.and_then(|text| std::fs::write(&path, text + "\n")).map_err(failed(&path))?;
    written.push(path);
    Ok(written)
}

/// ISO 8601 in UTC, with microseconds.
fn time(us: i64) -> String {
    let time = Timestamp::from_microsecond(us).unwrap_or(Timestamp::UNIX_EPOCH);
    format!("{time:.6}")
}

fn csv(table: &Table, file: File) -> io::Result<()> {
    let mut out = ::csv::Writer::from_writer(file);
    out.write_record(table.columns.iter().map(|column| harmless_cell(&column.name).into_owned()))?;
    for row in 0..table.rows() {
        out.write_record(table.columns.iter().map(|column| match column.cells.at(row) {
            CellValue::Int(value) => value.map_or_else(String::new, |value| value.to_string()),
            CellValue::Float(value) => value.map_or_else(String::new, |value| value.to_string()),
            CellValue::Bool(value) => value.map_or_else(String::new, |value| value.to_string()),
            CellValue::Text(value) => harmless_cell(&value.unwrap_or_default()).into_owned(),
            CellValue::Time(value) => value.map_or_else(String::new, time),
        }))?;
    }
    out.flush()
}

fn json_lines(table: &Table, file: File) -> io::Result<()> {
    let mut out = BufWriter::new(file);
    for row in 0..table.rows() {
        let cell = |value| match value {
            CellValue::Int(value) => json!(value),
            CellValue::Float(value) => json!(value),
            CellValue::Bool(value) => json!(value),
            CellValue::Text(value) => json!(value),
            CellValue::Time(value) => json!(value.map(time)),
        };
        let object: Map<_, _> =
            table.columns.iter().map(|column| (column.name.clone(), cell(column.cells.at(row)))).collect();
        serde_json::to_writer(&mut out, &object)?;
        out.write_all(b"\n")?;
    }
    out.flush()
}
