//! Logs as tables for other programs: Parquet, CSV, JSON lines.
//!
//! ```text
//! logs --tables--> Table (columns with units and definitions) --write--> one file for each table, and schema.json
//! ```
//!
//! There is one table for each kind of record. Numbers agree with `lx`, because figures come from the same table of
//! figures.
//!
//! * `table`: tables with typed columns.
//! * `tables`, `counted`: the contents of the tables.
//! * `write`, `parquet`: file formats.

mod counted;
mod parquet;
mod table;
mod tables;
mod write;

use polygraph_report::Log;
pub use table::{CellValue, Column, ColumnCells, Table};

pub use write::{ExportError, Format, write};

/// All tables of the logs of one run.
pub fn tables(logs: &[Log]) -> Vec<Table> {
    vec![
        tables::runs(logs),
        tables::settings(logs),
        tables::phases(logs),
        counted::intervals(logs),
        counted::figures(logs),
        counted::histograms(logs),
        tables::errors(logs),
        tables::error_samples(logs),
        tables::xacts(logs),
        tables::messages(logs),
    ]
}
