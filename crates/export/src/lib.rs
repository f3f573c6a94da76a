//! Logs as tables for other programs: Parquet, CSV, JSON lines.
//!
//! ```text
//! logs --export--> rows of Tables (columns with units and definitions) --write--> one file for each table, and schema.json
//! ```
//!
//! There is one table for each kind of record. Numbers agree with `lx`, because figures come from the same table of
//! figures. Logs are read once, one after the other, and tables are written part by part, so long runs need no more
//! memory than short ones.
//!
//! * `export`: the walk over the logs.
//! * `table`: tables with typed columns.
//! * `tables`, `counted`: the contents of the tables.
//! * `write`, `parquet`: file formats.

mod counted;
mod export;
#[cfg(feature = "parquet")]
mod parquet;
mod table;
mod tables;
mod write;

pub use export::{Exported, export};
pub use table::{CellValue, Column, ColumnCells, Table};
pub use write::{ExportError, Format};

/// All tables, without rows.
pub fn tables() -> Vec<Table> {
    vec![
        tables::runs(),
        tables::settings(),
        tables::phases(),
        counted::intervals(),
        counted::figures(),
        counted::histograms(),
        tables::errors(),
        tables::error_samples(),
        tables::xacts(),
        tables::messages(),
    ]
}
