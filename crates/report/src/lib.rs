//! From log records to what people read: `lx`, `lr`, HTML report.
