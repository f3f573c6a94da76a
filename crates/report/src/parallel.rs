//! Independent pieces of work on all processors of the host.

use std::num::NonZero;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Stack of a thread in bytes: as much as that of a program, because statistics of whole runs are moved about.
const STACK: usize = 8 << 20;

/// The results of `work` for all items, in the order of the items. There is a thread for each processor, and each takes
/// the next item when it has finished one.
pub(crate) fn map<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get).min(items.len());
    if threads < 2 {
        return items.iter().map(work).collect();
    }
    let next = AtomicUsize::new(0);
    let take = || {
        let mut done = Vec::new();
        while let index = next.fetch_add(1, Ordering::Relaxed)
            && let Some(item) = items.get(index)
        {
            done.push((index, work(item)));
        }
        done
    };
    let mut done: Vec<(usize, R)> = std::thread::scope(|scope| {
        let start = |_| std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, take);
        let threads: Vec<_> =
            (0..threads).map(start).collect::<Result<_, _>>().expect("the system has threads");
        threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
            .collect()
    });
    done.sort_unstable_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_keep_the_order_of_items() {
        let items: Vec<u64> = (0..1000).collect();
        assert_eq!(map(&items, |item| item * item), items.iter().map(|item| item * item).collect::<Vec<_>>());
        assert!(map(&[] as &[u64], |item| *item).is_empty());
        assert_eq!(map(&[7], |item| *item), [7]);
    }
}
