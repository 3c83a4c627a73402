//! Did you mean.

/// The known name that is nearest to `name`, if one is near enough to be meant.
pub(crate) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |text: &str| text.to_lowercase().replace(['-', '_', '.', '/'], "");
    let wanted = plain(name);
    let near = known.map(|other| (distance(&wanted, &plain(other)), other)).min()?;
    (near.0 <= 2 && near.0 < wanted.chars().count()).then_some(near.1)
}

/// The edit distance of two texts, of which only the first 64 characters count.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().take(64).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().take(64).enumerate() {
        let mut corner = i;
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
        for (j, y) in b.iter().enumerate() {
            let (left, above) = (row.get(j).copied(), row.get(j + 1).copied());
            let (left, above) = (left.unwrap_or(0), above.unwrap_or(0));
            let best = (left + 1).min(above + 1).min(corner + usize::from(x != *y));
            corner = above;
            if let Some(cell) = row.get_mut(j + 1) {
                *cell = best;
            }
        }
    }
    row.last().copied().unwrap_or(0)
}
