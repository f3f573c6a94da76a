//! Orders of request rates.

/// A mixed low/high order of rates, as at the bake-off: the lowest, the highest, the second lowest and so on.
pub fn mixed(rates: &[f64]) -> Vec<f64> {
    let mut sorted = rates.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (mut low, mut high) = (0, sorted.len());
    let mut order = Vec::with_capacity(sorted.len());
    while low < high {
        order.push(sorted[low]);
        low += 1;
        if low < high {
            high -= 1;
            order.push(sorted[high]);
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixed_orders() {
        for (rates, want) in [
            (vec![], vec![]),
            (vec![3.0], vec![3.0]),
            (vec![1.0, 2.0, 3.0, 4.0, 5.0], vec![1.0, 5.0, 2.0, 4.0, 3.0]),
            (vec![4.0, 1.0], vec![1.0, 4.0]),
        ] {
            assert_eq!(mixed(&rates), want);
        }
    }
}
