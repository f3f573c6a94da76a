//! Tables as Parquet files: a row group for each part, optional columns, no nesting.

use std::fs::File;
use std::sync::Arc;

use parquet::basic::{Compression, GzipLevel, LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::Result;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{ColumnPath, Type};

use crate::table::{Column, ColumnCells, Table};

/// The key of the metadata entry that contains [`Table::schema`].
const SCHEMA: &str = "polygraph.schema";

/// The level of compression: higher ones take more time than they are worth.
const LEVEL: u32 = 2;

/// A file that is being written.
pub struct ParquetFile(SerializedFileWriter<File>);

impl ParquetFile {
    /// Starts the file of a table.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn create(table: &Table, file: File) -> Result<ParquetFile> {
        let fields = table.columns.iter().map(|column| field(column).map(Arc::new)).collect::<Result<_>>()?;
        let schema = Type::group_type_builder(table.name).with_fields(fields).build()?;
        let about = KeyValue::new(SCHEMA.to_owned(), table.schema().to_string());
        // A row group is so small that it has one page of each column, and statistics of pages would repeat its own.
        let mut properties = WriterProperties::builder()
            .set_compression(Compression::GZIP(GzipLevel::try_new(LEVEL)?))
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_created_by(format!("polygraph {}", polygraph_stats::version()))
            .set_key_value_metadata(Some(vec![about]));
        for column in table.columns.iter().filter(|column| hardly_repeats(&column.cells)) {
            properties =
                properties.set_column_dictionary_enabled(ColumnPath::from(column.name.as_str()), false);
        }
        Ok(ParquetFile(SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties.build()))?))
    }

    /// Writes the rows of the table as a row group.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn append(&mut self, table: &Table) -> Result<()> {
        let mut group = self.0.next_row_group()?;
        for column in &table.columns {
            let mut out = group.next_column()?.expect("there are as many columns as fields");
            write_cells(&column.cells, &mut out)?;
            out.close()?;
        }
        group.close()?;
        Ok(())
    }

    /// Ends the file.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn finish(self) -> Result<()> {
        self.0.close()?;
        Ok(())
    }
}

/// Whether a dictionary of the values would be about as long as the column.
fn hardly_repeats(cells: &ColumnCells) -> bool {
    matches!(cells, ColumnCells::Float(_) | ColumnCells::Time(_))
}

fn field(column: &Column) -> Result<Type> {
    let (physical, logical) = match column.cells {
        ColumnCells::Int(_) => (Physical::INT64, None),
        ColumnCells::Float(_) => (Physical::DOUBLE, None),
        ColumnCells::Bool(_) => (Physical::BOOLEAN, None),
        ColumnCells::Text(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        ColumnCells::Time(_) => (Physical::INT64, Some(LogicalType::timestamp(true, TimeUnit::MICROS))),
    };
    Type::primitive_type_builder(&column.name, physical)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(logical)
        .build()
}

fn write_cells(cells: &ColumnCells, out: &mut SerializedColumnWriter<'_>) -> Result<usize> {
    match cells {
        ColumnCells::Int(cells) | ColumnCells::Time(cells) => {
            let (levels, values) = split(cells);
            out.typed::<Int64Type>().write_batch(&values, Some(&levels), None)
        }
        ColumnCells::Float(cells) => {
            let (levels, values) = split(cells);
            out.typed::<DoubleType>().write_batch(&values, Some(&levels), None)
        }
        ColumnCells::Bool(cells) => {
            let (levels, values) = split(cells);
            out.typed::<BoolType>().write_batch(&values, Some(&levels), None)
        }
        ColumnCells::Text(cells) => {
            let (levels, values) = split(cells);
            let values = shared(&values);
            out.typed::<ByteArrayType>().write_batch(&values, Some(&levels), None)
        }
    }
}

/// Whether each cell is defined (definition level 1), and the values of defined cells.
fn split<T: Clone>(cells: &[Option<T>]) -> (Vec<i16>, Vec<T>) {
    (cells.iter().map(|cell| i16::from(cell.is_some())).collect(), cells.iter().flatten().cloned().collect())
}

/// The texts, in which equal neighbours that share their memory still do.
fn shared(texts: &[Arc<str>]) -> Vec<ByteArray> {
    let mut last: Option<(&Arc<str>, ByteArray)> = None;
    let mut share = |text| match &last {
        Some((known, bytes)) if Arc::ptr_eq(known, text) => bytes.clone(),
        _ => {
            let bytes = ByteArray::from(&**text);
            last = Some((text, bytes.clone()));
            bytes
        }
    };
    texts.iter().map(&mut share).collect()
}
