//! Writing tables to files.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use jiff::Timestamp;
use polygraph_report::text::harmless_cell;
use serde_json::{Map, Value, json};

#[cfg(feature = "parquet")]
use crate::parquet::ParquetFile;
use crate::table::{CellValue, ColumnCells, Table};

/// Formats of table files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Apache Parquet, compressed; columns are described in its metadata.
    #[cfg(feature = "parquet")]
    Parquet,
    /// Comma-separated values (RFC 4180) with a line of names; undefined cells are empty.
    Csv,
    /// A JSON object on each line; undefined cells are null.
    JsonLines,
}

impl Format {
    /// The most compact format of this build.
    pub fn best() -> Format {
        #[cfg(feature = "parquet")]
        return Format::Parquet;
        #[cfg(not(feature = "parquet"))]
        Format::Csv
    }

    /// The ending of file names.
    pub fn extension(self) -> &'static str {
        match self {
            #[cfg(feature = "parquet")]
            Format::Parquet => "parquet",
            Format::Csv => "csv",
            Format::JsonLines => "jsonl",
        }
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Format, String> {
        match text {
            #[cfg(feature = "parquet")]
            "parquet" => Ok(Format::Parquet),
            #[cfg(not(feature = "parquet"))]
            "parquet" => {
                Err("this program was built without Parquet: build it with `--features parquet`, or write csv or jsonl".into())
            }
            "csv" => Ok(Format::Csv),
            "jsonl" => Ok(Format::JsonLines),
            _ => Err(format!("`{text}` is not a format: write parquet, csv or jsonl")),
        }
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
    #[cfg(feature = "parquet")]
    #[error("cannot write {}: {source}", path.display())]
    Parquet {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: ::parquet::errors::ParquetError,
    },
}

/// Maximum number of rows of a table in memory, and of a row group of a Parquet file.
pub(crate) const MAX_ROWS: usize = 8192;

/// Bytes that are written to a CSV file at once.
const CSV_BUFFER: usize = 64 << 10;

/// A table that is written part by part: rows are in memory until there are [`MAX_ROWS`] of them.
pub(crate) struct TableFile {
    table: Table,
    path: PathBuf,
    out: Out,
    rows: usize,
}

enum Out {
    #[cfg(feature = "parquet")]
    Parquet(ParquetFile),
    Csv(Box<::csv::Writer<File>>),
    JsonLines(BufWriter<File>),
}

impl TableFile {
    /// Creates the file of a table in `folder`, or empties it.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn create(table: Table, folder: &Path, format: Format) -> Result<TableFile, ExportError> {
        let path = folder.join(format!("{}.{}", table.name, format.extension()));
        let file = File::create(&path).map_err(io_error(&path))?;
        let out = match format {
            #[cfg(feature = "parquet")]
            Format::Parquet => {
                let created = ParquetFile::create(&table, file);
                Out::Parquet(created.map_err(|source| ExportError::Parquet { path: path.clone(), source })?)
            }
            Format::Csv => {
                let mut out = ::csv::WriterBuilder::new().buffer_capacity(CSV_BUFFER).from_writer(file);
                let names = table.columns.iter().map(|column| harmless_cell(&column.name).into_owned());
                out.write_record(names).map_err(|e| io_error(&path)(e.into()))?;
                Out::Csv(Box::new(out))
            }
            Format::JsonLines => Out::JsonLines(BufWriter::new(file)),
        };
        Ok(TableFile { table, path, out, rows: 0 })
    }

    /// Appends a row.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn push(&mut self, row: impl IntoIterator<Item = CellValue>) -> Result<(), ExportError> {
        self.table.push(row);
        if self.table.rows() < MAX_ROWS { Ok(()) } else { self.write() }
    }

    fn write(&mut self) -> Result<(), ExportError> {
        let TableFile { table, path, out, rows } = self;
        match out {
            #[cfg(feature = "parquet")]
            Out::Parquet(out) => {
                out.append(table).map_err(|source| ExportError::Parquet { path: path.clone(), source })?;
            }
            Out::Csv(out) => csv(table, out).map_err(io_error(path))?,
            Out::JsonLines(out) => json_lines(table, out).map_err(io_error(path))?,
        }
        *rows += table.rows();
        table.clear();
        Ok(())
    }

    /// Writes the remaining rows. Returns the number of all rows and the description of the table.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn finish(mut self) -> Result<(usize, Value), ExportError> {
        // A table without rows gets a row group without rows.
        if self.table.rows() > 0 || self.rows == 0 {
            self.write()?;
        }
        let TableFile { table, path, out, rows } = self;
        match out {
            #[cfg(feature = "parquet")]
            Out::Parquet(out) => {
                out.finish().map_err(|source| ExportError::Parquet { path: path.clone(), source })?;
            }
            Out::Csv(mut out) => out.flush().map_err(io_error(&path))?,
            Out::JsonLines(mut out) => out.flush().map_err(io_error(&path))?,
        }
        Ok((rows, table.schema()))
    }
}

/// The error of a file.
pub(crate) fn io_error(path: &Path) -> impl FnOnce(io::Error) -> ExportError {
    let path = path.to_owned();
    move |source| ExportError::Io { path, source }
}

/// ISO 8601 in UTC, with microseconds.
fn time(us: i64) -> String {
    let time = Timestamp::from_microsecond(us).unwrap_or(Timestamp::UNIX_EPOCH);
    format!("{time:.6}")
}

fn csv(table: &Table, out: &mut ::csv::Writer<File>) -> io::Result<()> {
    let mut text = String::new();
    for row in 0..table.rows() {
        for column in &table.columns {
            text.clear();
            let written = match &column.cells {
                ColumnCells::Int(cells) => cells[row].map(|value| write!(text, "{value}")),
                ColumnCells::Float(cells) => cells[row].map(|value| write!(text, "{value}")),
                ColumnCells::Bool(cells) => cells[row].map(|value| write!(text, "{value}")),
                ColumnCells::Text(cells) => {
                    cells[row].as_deref().map(|value| text.write_str(&harmless_cell(value)))
                }
                ColumnCells::Time(cells) => cells[row].map(|value| text.write_str(&time(value))),
            };
            written.transpose().map_err(io::Error::other)?;
            out.write_field(&text)?;
        }
        out.write_record(None::<&[u8]>)?;
    }
    Ok(())
}

fn json_lines(table: &Table, out: &mut impl Write) -> io::Result<()> {
    for row in 0..table.rows() {
        let cell = |value| match value {
            CellValue::Int(value) => json!(value),
            CellValue::Float(value) => json!(value),
            CellValue::Bool(value) => json!(value),
            CellValue::Text(value) => json!(value.as_deref()),
            CellValue::Time(value) => json!(value.map(time)),
        };
        let object: Map<_, _> =
            table.columns.iter().map(|column| (column.name.clone(), cell(column.cells.at(row)))).collect();
        serde_json::to_writer(&mut *out, &object)?;
        out.write_all(b"\n")?;
    }
    Ok(())
}
