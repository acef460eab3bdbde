//! Where YAML 1.1 and the parser, which reads YAML 1.2, see different things in a text: an error
//! here, so that no text gets another meaning than Kubernetes gives it.

use std::ops::Range;

use granit_parser::{Event, ScalarStyle, Span, StructureStyle};

use crate::{
    Problem,
    places::{Source, line_start},
    repair::has_foreign_escape,
};

const TAB: &str = "a tab where only spaces may indent";

const UNICODE_BREAK: &str =
    "a line break of Unicode; quote the text and write it as \\N, \\L or \\P";

/// Checks events against the text that they came from.
pub(crate) struct Dialect<'t> {
    source: Source<'t>,
    /// Places of line breaks that only YAML 1.1 knows, the last one first.
    breaks: Vec<usize>,
    open: Vec<Open>,
    /// The document has begun.
    begun: bool,
    /// Where the last event ended.
    end: usize,
    /// It was a plain scalar.
    plain: bool,
}

/// An open collection.
struct Open {
    flow: bool,
    column: usize,
    /// In a mapping: whether a key is next.
    key: Option<bool>,
}

impl<'t> Dialect<'t> {
    /// Checks the characters of the text.
    pub(crate) fn new(source: Source<'t>) -> Result<Self, Problem> {
        let bytes = source.text.as_bytes();
        let mut breaks = Vec::new();
        for (at, &byte) in bytes.iter().enumerate() {
            if (b' '..0x7F).contains(&byte) || matches!(byte, b'\n' | b'\r' | b'\t') {
                continue;
            }
            match bytes[at..] {
                [0..=0x1F | 0x7F, ..] | [0xC2, 0x80..0x85 | 0x86..0xA0, ..] => {
                    return Err(source.problem_at(at, "a control character"));
                }
                [0xEF, 0xBF, 0xBE | 0xBF, ..] => {
                    return Err(source.problem_at(at, "a character that YAML forbids"));
                }
                [0xC2, 0x85, ..] | [0xE2, 0x80, 0xA8 | 0xA9, ..] => breaks.push(at),
                _ => {}
            }
        }
        breaks.reverse();
        Ok(Self { source, breaks, open: Vec::new(), begun: false, end: 0, plain: false })
    }

    /// Where the last node that was checked ended.
    pub(crate) fn end(&self) -> usize {
        self.end
    }

    /// Checks an event.
    pub(crate) fn check(&mut self, event: &Event<'_>, span: &Span) -> Result<(), Problem> {
        let start = span.start.byte_offset().unwrap_or_default();
        let end = span.end.byte_offset().unwrap_or_default().max(start);
        self.check_breaks(event, start..end)?;
        match event {
            Event::Anchor(_, name) => return self.check_anchor(name, span, end),
            Event::Alias(..) => self.check_end_of_name(span, end)?,
            Event::DocumentStart(_, version) => {
                if version.is_some_and(|version| (version.major, version.minor) != (1, 1)) {
                    return Err(self.problem(span, "Kubernetes reads only %YAML 1.1"));
                }
                self.check_prologue(start)?;
            }
            Event::StreamEnd => self.check_prologue(start)?,
            _ => {}
        }
        if let Event::Scalar(_, ScalarStyle::Literal | ScalarStyle::Folded, ..) = event {
            self.check_block_scalar(start..end)?;
        } else if event.is_node()
            || matches!(
                event,
                Event::StreamEnd | Event::DocumentEnd | Event::SequenceEnd | Event::MappingEnd
            )
        {
            self.check_gap(start)?;
        }
        self.check_tag(span)?;
        if let Event::Scalar(text, style, ..) = event {
            self.check_scalar(text, *style, span, start..end)?;
        }
        self.follow(event, span);
        let marks = match event {
            Event::DocumentStart(..) => self.source.text[start..end] == *"---",
            Event::SequenceEnd | Event::MappingEnd => end > start,
            event => event.is_node(),
        };
        if marks && start >= self.end {
            self.end = end;
            self.plain =
                matches!(event, Event::Scalar(text, ScalarStyle::Plain, ..) if !text.is_empty());
        }
        Ok(())
    }

    /// Checks what is between the end of a document and the next one, if no event comes from it.
    pub(crate) fn check_end(&self) -> Result<(), Problem> {
        let rest = self.source.text.get(self.end..).unwrap_or_default();
        let ends = ["\n---", "\n..."].into_iter().filter_map(|end| rest.find(end)).min();
        let end = ends.map_or(self.source.text.len(), |end| self.end + end);
        match self.breaks.last() {
            Some(&at) if at < end => Err(self.source.problem_at(at, UNICODE_BREAK)),
            _ => Ok(()),
        }
    }

    fn problem(&self, span: &Span, message: &str) -> Problem {
        self.source.problem(span.start, message)
    }

    /// Keeps the stack of open collections.
    fn follow(&mut self, event: &Event<'_>, span: &Span) {
        if event.is_node()
            && let Some(Open { key: Some(key), .. }) = self.open.last_mut()
        {
            // After a key comes a value, after a value a key.
            *key = !*key;
        }
        let (style, key) = match event {
            Event::SequenceStart(style, ..) => (style, None),
            Event::MappingStart(style, ..) => (style, Some(true)),
            Event::SequenceEnd | Event::MappingEnd => {
                self.open.pop();
                return;
            }
            _ => return,
        };
        let flow = *style == StructureStyle::Flow;
        let is_block_list = key.is_none() && !flow;
        let around = if is_block_list { self.column_of_mapping(span) } else { None };
        let column = around.unwrap_or(span.start.col());
        self.open.push(Open { flow, column, key });
    }

    /// The column of the mapping around a list whose dashes are not indented. The parser places such
    /// a list behind its first dash.
    fn column_of_mapping(&self, span: &Span) -> Option<usize> {
        let mapping = self.open.last().filter(|open| !open.flow && open.key.is_some())?;
        let before = self.source.text.get(..span.start.byte_offset()?)?;
        let mut lines = before.lines().rev().map(|line| without_comment(line).trim_end());
        let line = lines.find(|line| !line.is_empty())?.strip_suffix('-')?;
        let is_dash = line.len() == mapping.column && line.bytes().all(|byte| byte == b' ');
        is_dash.then_some(mapping.column)
    }

    fn in_flow(&self) -> bool {
        self.open.last().is_some_and(|open| open.flow)
    }

    /// The least column of what belongs to the innermost collection in block style.
    fn least_column(&self) -> usize {
        let block = self.open.iter().rev().find(|open| !open.flow);
        block.map_or(0, |open| open.column + 1)
    }

    fn check_anchor(&self, name: &str, span: &Span, end: usize) -> Result<(), Problem> {
        if name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)) {
            return self.check_end_of_name(span, end);
        }
        let message = "the name of the anchor has other characters than letters, digits, - and _";
        Err(self.problem(span, message))
    }

    /// What may follow the name of an anchor.
    fn check_end_of_name(&self, span: &Span, end: usize) -> Result<(), Problem> {
        let next = self.source.text.as_bytes().get(end);
        if next.is_none_or(|byte| b" \t\r\n?:,]}%@`".contains(byte)) {
            return Ok(());
        }
        Err(self.problem(span, "a blank must follow the name of an anchor"))
    }

    fn check_breaks(&mut self, event: &Event<'_>, place: Range<usize>) -> Result<(), Problem> {
        let quoted = matches!(
            event,
            Event::Scalar(_, ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted, ..)
        );
        while let Some(&at) = self.breaks.last() {
            let inside = quoted && place.contains(&at);
            if at >= place.start && !inside {
                break;
            }
            let is_blank = |byte: Option<&u8>| byte.is_none_or(|byte| b" \t\r\n\\".contains(byte));
            let bytes = self.source.text.as_bytes();
            let between_text = || !is_blank(bytes.get(at - 1)) && !is_blank(bytes.get(at + 3));
            let key = self.open.last().is_some_and(|open| open.key == Some(true));
            if !(inside && !key && bytes[at] == 0xE2 && between_text()) {
                return Err(self.source.problem_at(at, UNICODE_BREAK));
            }
            self.breaks.pop();
        }
        Ok(())
    }

    /// Only `%YAML` and `%TAG` are allowed before the first document.
    fn check_prologue(&mut self, end: usize) -> Result<(), Problem> {
        if std::mem::replace(&mut self.begun, true) {
            return Ok(());
        }
        let before = self.source.text.get(..end).unwrap_or_default();
        let mark = '\u{feff}';
        let behind = self.source.text[before.len()..].starts_with(mark).then_some(before.len());
        if let Some(at) = before.rfind(mark).or(behind).filter(|&at| at > 0) {
            return Err(self
                .source
                .problem_at(at, "a BOM must not appear after the first character"));
        }
        let mut at = 0;
        for line in before.split_inclusive('\n') {
            let known = ["%YAML", "%TAG"].iter().any(|name| {
                line.strip_prefix(name).is_some_and(|rest| rest.starts_with([' ', '\t']))
            });
            if line.starts_with('%') && !known {
                return Err(self.source.problem_at(at, "an unknown directive"));
            }
            if line.starts_with("...") {
                return Err(self.source.problem_at(at, "a document ends here that has not begun"));
            }
            at += line.len();
        }
        Ok(())
    }

    /// In block style, YAML 1.1 allows no tab where a key or an item may begin.
    fn check_gap(&self, start: usize) -> Result<(), Problem> {
        let Some(gap) = self.source.text.get(self.end..start) else {
            return Ok(());
        };
        if self.in_flow() || memchr::memchr(b'\t', gap.as_bytes()).is_none() {
            return Ok(());
        }
        let mut at = self.end;
        // A plain scalar takes the blanks of the lines behind it.
        let mut in_scalar = self.plain;
        for (index, line) in gap.split_inclusive('\n').enumerate() {
            let content = without_comment(line);
            let before = self.source.text[..at].trim_end_matches(' ');
            let begins_line = index > 0 || before.is_empty() || before.ends_with('\n');
            // Behind the first tab of a line, another one is a blank like others.
            if let Some(tab) = content.find('\t') {
                let bad = match content[..tab].trim_matches(' ') {
                    "" if in_scalar => begins_line && tab < self.least_column(),
                    "" | ":" => begins_line,
                    before => before.ends_with(['-', '?']) && !before.contains(['&', '!']),
                };
                if bad {
                    return Err(self.source.problem_at(at + tab, TAB));
                }
            }
            in_scalar &= line.trim_start().is_empty();
            at += line.len();
        }
        Ok(())
    }

    /// A tag reaches to the next blank: in `[!a,b]` it is `!a,b`.
    fn check_tag(&self, span: &Span) -> Result<(), Problem> {
        let Some(tag) = span.tag_span() else {
            return Ok(());
        };
        let end = tag.end.byte_offset().unwrap_or_default();
        if !matches!(
            self.source.text.as_bytes().get(end),
            None | Some(b' ' | b'\t' | b'\r' | b'\n')
        ) {
            return Err(self.problem(&tag, "a blank must follow the tag"));
        }
        let start = tag.start.byte_offset().unwrap_or(end);
        if self.source.text[start..end].contains('#') {
            return Err(self.problem(&tag, "a tag must not contain #"));
        }
        Ok(())
    }

    fn check_scalar(
        &self,
        text: &str,
        style: ScalarStyle,
        span: &Span,
        place: Range<usize>,
    ) -> Result<(), Problem> {
        let after = &self.source.text[place.end..];
        match style {
            ScalarStyle::Plain if self.in_flow() => {
                if text.contains('?') || text.starts_with(':') {
                    let message = "in flow style, text with ? or a leading : needs quotes";
                    return Err(self.problem(span, message));
                }
                if !place.is_empty()
                    && after
                        .trim_start_matches([' ', '\t'])
                        .strip_prefix(':')
                        .is_some_and(|rest| rest.starts_with([',', '[', ']', '{', '}']))
                {
                    return Err(self.problem(span, "a blank must follow the colon of this key"));
                }
            }
            ScalarStyle::DoubleQuoted if has_foreign_escape(&self.source.text[place.clone()]) => {
                return Err(self.problem(span, "an escape that YAML 1.1 does not have"));
            }
            _ => {}
        }
        match self.open.last() {
            Some(Open { flow: true, key: Some(true), .. }) => self.check_flow_key(place, span),
            _ => Ok(()),
        }
    }

    /// Lines of a block scalar are indented with spaces, also outside of all collections.
    fn check_block_scalar(&self, place: Range<usize>) -> Result<(), Problem> {
        let Some((body, digit)) = self.block_header(place.start) else {
            return Ok(());
        };
        let parent = self.least_column();
        let mut indent = digit.map(|digit| parent.saturating_sub(1) + digit);
        let mut at = body;
        for line in self.source.text[body..place.end].split_inclusive('\n') {
            let spaces = line.len() - line.trim_start_matches(' ').len();
            let rest = &line[spaces..];
            if rest.starts_with('\t') && indent.is_none_or(|indent| spaces < indent) {
                return Err(self.source.problem_at(at + spaces, TAB));
            }
            if !rest.starts_with(['\n', '\r']) && !rest.is_empty() {
                if spaces < indent.unwrap_or(parent.max(1)) {
                    let message = "the lines of a block scalar must be indented";
                    return Err(self.source.problem_at(at, message));
                }
                indent = indent.or(Some(spaces));
            }
            at += line.len();
        }
        Ok(())
    }

    /// Where the lines of a block scalar begin, and its indentation indicator; `content` is behind
    /// its first blanks.
    fn block_header(&self, content: usize) -> Option<(usize, Option<usize>)> {
        let gap = self.source.text.get(self.end..content)?;
        let mut end = gap.len();
        loop {
            let start = line_start(gap, end);
            let line = without_comment(&gap[start..end]).trim_end();
            let header = line.rsplit([' ', '\t']).next().unwrap_or_default();
            if header.starts_with(['|', '>']) {
                let digit = header.bytes().find(u8::is_ascii_digit);
                let body = gap[end..].find('\n').map_or(gap.len(), |at| end + at + 1);
                return Some((self.end + body, digit.map(|digit| usize::from(digit - b'0'))));
            }
            end = start.checked_sub(1)?;
        }
    }

    /// In flow style too, a key without `?` and its colon are in one line.
    fn check_flow_key(&self, place: Range<usize>, span: &Span) -> Result<(), Problem> {
        let text = self.source.text;
        let mut lines = usize::from(text[place.clone()].contains(['\n', '\r']));
        let mut rest = text[place.end..].trim_start_matches([' ', '\t']);
        while rest.starts_with(['\n', '\r', '#', ' ', '\t']) {
            lines += 1;
            if rest.starts_with('#') {
                rest = rest.find('\n').map_or("", |at| &rest[at..]);
            }
            rest = rest.trim_start();
        }
        if lines > 0 && rest.starts_with(':') && !text[..place.start].trim_end().ends_with('?') {
            return Err(self.problem(span, "the key and its colon must be in one line"));
        }
        Ok(())
    }
}

/// A line between two nodes up to its comment.
fn without_comment(line: &str) -> &str {
    let starts = |at: usize| line[..at].is_empty() || line[..at].ends_with([' ', '\t']);
    let comment = line.match_indices('#').find(|(at, _)| starts(*at));
    comment.map_or(line, |(at, _)| &line[..at])
}
