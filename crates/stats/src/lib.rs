//! What is measured: counters, histograms, intervals, and the log they are written to.
