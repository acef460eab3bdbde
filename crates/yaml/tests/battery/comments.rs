//! Whether comments stay with what they are about.

/// A comment of the generator, `# c` and a number, in its line.
struct Comment<'t> {
    name: &'t str,
    line: usize,
    /// What is before it in its line.
    before: &'t str,
}

/// A comment that is lost, or that is now part of something else, where the text only grew.
pub(crate) fn moved(before: &str, after: &str) -> Option<String> {
    let (old, new): (Vec<_>, Vec<_>) = (before.lines().collect(), after.lines().collect());
    let found = comments(&new);
    comments(&old).iter().find_map(|comment| {
        let name = comment.name;
        let Some(now) = found.iter().find(|now| now.name == name) else {
            return Some(format!("{name} is lost"));
        };
        let stays = if comment.before.trim().is_empty() {
            stands(&old, comment, &new, now)
        } else {
            closes(now.before) || head(comment.before) == head(now.before)
        };
        (!stays).then(|| format!("{name} belongs to something else"))
    })
}

fn comments<'t>(lines: &[&'t str]) -> Vec<Comment<'t>> {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let comment = |(line, text): (usize, &&'t str)| {
        let mut places = text.match_indices("# c").map(|(at, _)| at);
        let at = places.find(|at| digits(&text[at + 3..]) > 0)?;
        let end = at + 3 + digits(&text[at + 3..]);
        Some(Comment { name: &text[at..end], line, before: &text[..at] })
    };
    lines.iter().enumerate().filter_map(comment).collect()
}

/// A line up to its first bracket, or its comma at the end.
fn head(line: &str) -> &str {
    let line = line.split(" # c").next().unwrap_or_default();
    let line = line.split(['{', '[']).next().unwrap_or_default();
    let line = line.trim_end().trim_end_matches(',').trim_end_matches(" null");
    let line = line.trim_end_matches(" Null").trim_end_matches(" ~");
    line.trim_end_matches(" *labels").trim_end_matches(" &labels").trim_end()
}

/// Whether a line begins with the end of a collection in flow style.
fn closes(line: &str) -> bool {
    line.trim_start().starts_with(['}', ']'])
}

/// Whether a comment in a line of its own has the same next line of content, or, where it is deeper
/// than that, the same line before it but for lines as deep as the comment.
fn stands(old: &[&str], comment: &Comment<'_>, new: &[&str], now: &Comment<'_>) -> bool {
    let is_content = |line: &&&str| !line.trim().is_empty() && !line.trim().starts_with("# c");
    let next = |lines: &[&str], at: usize| {
        lines[at + 1..].iter().find(is_content).map_or("", |line| *line).trim_end().to_owned()
    };
    let (was_next, is_next) = (next(old, comment.line), next(new, now.line));
    let same_next = head(&was_next) == head(&is_next);
    let column = |line: &str| line.len() - line.trim_start().len();
    if comment.before.len() <= column(&was_next) {
        return same_next;
    }
    let previous = old[..comment.line].iter().rev().find(is_content).copied().unwrap_or_default();
    let opens = head(previous).ends_with([':', '-']) || previous.trim_end().ends_with(['[', '{']);
    let inserted = new[..now.line].iter().rev().filter(|line| is_content(line));
    let own = comment.before.len();
    let mut inserted = inserted
        .take_while(|line| !(head(line) == head(previous) || closes(line) && closes(previous)));
    inserted.all(|line| column(line) >= own) || opens
}
