//! The workload language PGL: text in, typed workload and diagnostics out.
