//! An index of runs: what `polygraph runs` lists.
