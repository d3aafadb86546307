//! Which rows belong to one table or plot.

/// Rows that are the `same`, together, in the order of the first of each group.
pub fn groups<R>(rows: &[R], same: impl Fn(&R, &R) -> bool) -> Vec<Vec<&R>> {
    let mut groups: Vec<Vec<&R>> = Vec::new();
    for row in rows {
        match groups.iter_mut().find(|group| same(group[0], row)) {
            Some(group) => group.push(row),
            None => groups.push(vec![row]),
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_keep_the_order_of_their_first_rows_and_lose_none() {
        let tens = |one: &i32, other: &i32| one / 10 == other / 10;
        assert_eq!(groups(&[21, 11, 22, 31, 12], tens), [vec![&21, &22], vec![&11, &12], vec![&31]]);
        assert!(groups(&[], tens).is_empty());
    }
}
