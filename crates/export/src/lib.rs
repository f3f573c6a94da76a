//! Logs as tables for other programs: Parquet, CSV, JSON lines.
//!
//! ```text
//! logs --tables--> Table (columns with units and definitions) --write--> one file for each table, and schema.json
//! ```
//!
//! There is one table for each kind of record. Numbers are those of `lx`: figures come from the same table of figures.
//!
//! * `table`: tables with typed columns.
//! * `tables`, `counted`: what is in them.
//! * `write`, `parquet`: how they are written.

mod counted;
mod parquet;
mod table;
mod tables;
mod write;

pub use table::{CellValue, Column, ColumnCells, Table};
pub use tables::tables;
pub use write::{ExportError, Format, write};
