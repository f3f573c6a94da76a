//! A common way to add up and clear counters of any kind, and to leave out details that nobody needs.

/// A counter, or a group of counters, that can be added up, cleared and reduced to sums.
pub(crate) trait Fold {
    /// Adds the counts of `other`.
    fn fold(&mut self, other: &Self);
    /// Sets everything to zero, but keeps allocated memory for the next interval.
    fn clear(&mut self);
    /// Forgets the bins of all histograms; see [`Histogram::drop_bins`](crate::Histogram::drop_bins).
    fn drop_bins(&mut self);
}

impl Fold for u64 {
    fn fold(&mut self, other: &u64) {
        *self += other;
    }

    fn clear(&mut self) {
        *self = 0;
    }

    fn drop_bins(&mut self) {}
}

/// A fact that holds for good once it is known.
impl Fold for bool {
    fn fold(&mut self, other: &bool) {
        *self |= *other;
    }

    fn clear(&mut self) {}

    fn drop_bins(&mut self) {}
}

impl<T: Fold, const N: usize> Fold for [T; N] {
    fn fold(&mut self, other: &[T; N]) {
        self.iter_mut().zip(other).for_each(|(mine, theirs)| mine.fold(theirs));
    }

    fn clear(&mut self) {
        self.iter_mut().for_each(T::clear);
    }

    fn drop_bins(&mut self) {
        self.iter_mut().for_each(T::drop_bins);
    }
}

/// Lists are added element by element; the result has the length of the longer list.
impl<T: Fold + Default> Fold for Vec<T> {
    fn fold(&mut self, other: &Vec<T>) {
        self.resize_with(self.len().max(other.len()), T::default);
        self.iter_mut().zip(other).for_each(|(mine, theirs)| mine.fold(theirs));
    }

    fn clear(&mut self) {
        self.iter_mut().for_each(T::clear);
    }

    fn drop_bins(&mut self) {
        self.iter_mut().for_each(T::drop_bins);
    }
}

/// Folds structures field by field; fields after the semicolon are not changed. All fields must be named, otherwise the
/// code does not compile, so no field can be forgotten.
macro_rules! fold_fields {
    ($($name:ident { $($field:ident),+ $(,)? $(; $($other:ident),+)? })+) => {$(
        impl $crate::fold::Fold for $name {
            fn fold(&mut self, other: &$name) {
                let $name { $($field,)+ $($($other: _,)+)? } = other;
                $($crate::fold::Fold::fold(&mut self.$field, $field);)+
            }

            fn clear(&mut self) {
                let $name { $($field,)+ $($($other: _,)+)? } = self;
                $($crate::fold::Fold::clear($field);)+
            }

            fn drop_bins(&mut self) {
                let $name { $($field,)+ $($($other: _,)+)? } = self;
                $($crate::fold::Fold::drop_bins($field);)+
            }
        }
    )+};
}
pub(crate) use fold_fields;
