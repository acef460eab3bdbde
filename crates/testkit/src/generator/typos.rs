//! Mistakes of people who type a key.

/// A key with one mistake: a letter is dropped, doubled, or swapped with the next one.
pub fn of_key(key: &str) -> impl Iterator<Item = String> {
    let letters: Vec<char> = key.chars().collect();
    let count = letters.len();
    (0..count).flat_map(move |index| {
        let change = |edit: fn(&mut Vec<char>, usize)| {
            let mut changed = letters.clone();
            edit(&mut changed, index);
            changed.into_iter().collect::<String>()
        };
        let dropped = change(|letters, index| _ = letters.remove(index));
        let doubled = change(|letters, index| letters.insert(index, letters[index]));
        let swapped = change(|letters, index| {
            let next = (index + 1).min(letters.len() - 1);
            letters.swap(index, next);
        });
        [dropped, doubled, swapped]
    })
}
