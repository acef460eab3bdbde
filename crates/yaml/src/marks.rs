//! Where the nodes of a document are in its text, for edits in place.
//!
//! Only for texts that were read before: what is not valid, or too unusual to be edited, has no
//! marks.

use granit_parser::{Event, Parser, ScalarStyle, Span, StructureStyle};

use crate::{Format, MAX_NESTING, keys::Key, scalar};

mod json;

/// A node. Its text is from `start` to `end`; an empty node has none.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) start: usize,
    /// Behind the last byte of content, before a line break or a comment.
    pub(crate) end: usize,
    /// Whether it has an anchor or a tag: then a change may reach beyond it.
    pub(crate) has_properties: bool,
    pub(crate) kind: Kind,
}

#[derive(Debug)]
pub(crate) enum Kind {
    Scalar,
    Map(Style, Vec<Entry>),
    List(Style, Vec<Item>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    Block,
    Flow,
}

#[derive(Debug)]
pub(crate) struct Entry {
    /// As the reader reads it; `None` for a merge key.
    pub(crate) key: Option<String>,
    pub(crate) start: usize,
    pub(crate) after_colon: usize,
    pub(crate) value: Node,
}

#[derive(Debug)]
pub(crate) struct Item {
    /// The dash; in flow style, the value.
    pub(crate) start: usize,
    pub(crate) value: Node,
}

/// The marks of the one document of a text; `None` if they cannot be known.
pub(crate) fn marks(text: &str, format: Format) -> Option<Node> {
    match format {
        Format::Json => json::marks(text),
        Format::Yaml => yaml(text),
    }
}

fn yaml(text: &str) -> Option<Node> {
    let options = granit_parser::options! {
        emit_comments: false,
        flow_nesting_limit: MAX_NESTING,
        block_nesting_limit: MAX_NESTING,
    };
    let mut events = Parser::new_from_str_with_options(text, options);
    loop {
        if let (Event::DocumentStart(..), span) = events.next()?.ok()? {
            let after = span.end.byte_offset()?;
            let (event, span) = events.next()?.ok()?;
            return Marker { text, events }.node(&event, &span, after);
        }
    }
}

struct Marker<'t, I> {
    text: &'t str,
    events: I,
}

impl<'t, I, E> Marker<'t, I>
where
    I: Iterator<Item = Result<(Event<'t>, Span), E>>,
{
    fn next(&mut self) -> Option<(Event<'t>, Span)> {
        self.events.next()?.ok()
    }

    /// The node that begins with an event; `after` is behind the colon, dash or bracket before it.
    fn node(&mut self, event: &Event<'_>, span: &Span, after: usize) -> Option<Node> {
        let (start, end) = (span.start.byte_offset()?, span.end.byte_offset()?);
        let node = |start, end, has_properties, kind| Node { start, end, has_properties, kind };
        Some(match event {
            Event::Alias(_) => node(start, end, false, Kind::Scalar),
            Event::Scalar(value, style, anchor, tag) => {
                let (start, end) = match style {
                    ScalarStyle::Literal | ScalarStyle::Folded => {
                        (after, self.end_of_lines(value, start..end, after))
                    }
                    _ if start >= end => (after, after),
                    _ => (start, end),
                };
                node(start, end, *anchor != 0 || tag.is_some(), Kind::Scalar)
            }
            Event::MappingStart(style, anchor, tag) => {
                let style = Style::of(*style);
                let (entries, end) = self.entries(style, end)?;
                node(start, end, *anchor != 0 || tag.is_some(), Kind::Map(style, entries))
            }
            Event::SequenceStart(style, anchor, tag) => {
                let has_properties = *anchor != 0 || tag.is_some();
                let style = Style::of(*style);
                let after = match style {
                    Style::Flow => end,
                    Style::Block if has_properties => self.behind_properties(after)?,
                    Style::Block => after,
                };
                let (items, end) = self.items(style, after)?;
                let start = items.first().map_or(start, |item| item.start.min(start));
                node(start, end, has_properties, Kind::List(style, items))
            }
            _ => return None,
        })
    }

    fn entries(&mut self, style: Style, mut end: usize) -> Option<(Vec<Entry>, usize)> {
        let mut entries = Vec::new();
        loop {
            let (event, span) = self.next()?;
            let (key, start, key_end) = match &event {
                Event::MappingEnd if style == Style::Flow => {
                    return Some((entries, span.end.byte_offset()?));
                }
                Event::MappingEnd => return Some((entries, end)),
                Event::Scalar(text, style, _, tag) => {
                    let plain = *style == ScalarStyle::Plain && tag.is_none();
                    let key = if plain && text == "<<" {
                        None
                    } else if plain {
                        key_name(scalar::plain(text))?
                    } else {
                        Some(text.to_string())
                    };
                    (key, span.start.byte_offset()?, span.end.byte_offset()?)
                }
                _ => return None,
            };
            let gap = self.text.get(key_end..)?;
            let colon = gap.len() - gap.trim_start_matches([' ', '\t']).len();
            let after_colon = key_end + colon + 1;
            if !gap[colon..].starts_with(':') {
                return None;
            }
            let (event, span) = self.next()?;
            let value = self.node(&event, &span, after_colon)?;
            end = value.end;
            entries.push(Entry { key, start, after_colon, value });
        }
    }

    fn items(&mut self, style: Style, after: usize) -> Option<(Vec<Item>, usize)> {
        let mut items = Vec::new();
        let mut end = after;
        loop {
            let (event, span) = self.next()?;
            match (&event, style) {
                (Event::SequenceEnd, Style::Flow) => {
                    return Some((items, span.end.byte_offset()?));
                }
                (Event::SequenceEnd, Style::Block) => return Some((items, end)),
                (_, Style::Flow) => {
                    let value = self.node(&event, &span, span.start.byte_offset()?)?;
                    items.push(Item { start: value.start, value });
                }
                (_, Style::Block) => {
                    let start = self.dash(end)?;
                    let value = self.node(&event, &span, start + 1)?;
                    end = value.end;
                    items.push(Item { start, value });
                }
            }
        }
    }

    /// The next dash behind blanks and comments.
    fn dash(&self, after: usize) -> Option<usize> {
        let at = self.content(after)?;
        (self.text.as_bytes()[at] == b'-').then_some(at)
    }

    /// Behind an anchor and a tag, in any order.
    fn behind_properties(&self, after: usize) -> Option<usize> {
        let mut at = after;
        loop {
            let start = self.content(at)?;
            let rest = &self.text[start..];
            if !rest.starts_with(['&', '!']) {
                return Some(at);
            }
            at = start + rest.find([' ', '\t', '\r', '\n'])?;
        }
    }

    /// The next byte that is not a blank and not in a comment.
    fn content(&self, after: usize) -> Option<usize> {
        let mut at = after;
        loop {
            let rest = &self.text[at..];
            at += rest.len() - rest.trim_start().len();
            match self.text.as_bytes().get(at)? {
                b'#' => at += self.text[at..].find('\n')?,
                _ => return Some(at),
            }
        }
    }

    /// The end of the lines of a block scalar: with the empty lines that belong to its value,
    /// without those that do not.
    fn end_of_lines(&self, value: &str, place: std::ops::Range<usize>, after: usize) -> usize {
        const BLANKS: [char; 4] = [' ', '\t', '\r', '\n'];
        let lines = self.text[place.clone()].trim_end_matches(BLANKS);
        let blank_end = &value[value.trim_end_matches(BLANKS).len()..];
        let mut more = blank_end.split_inclusive('\n').count();
        let mut end = place.start + lines.len();
        if lines.is_empty() {
            let header = &self.text[after..];
            end = after + header.find('\n').unwrap_or(header.len());
        } else {
            // The first line break ends the last line that is not blank.
            more = more.saturating_sub(usize::from(blank_end.starts_with('\n')));
        }
        for _ in 0..more {
            let rest = &self.text[end..];
            match rest.find('\n').and_then(|at| rest[at + 1..].find('\n').map(|to| at + 1 + to)) {
                Some(line) => end += line,
                None => break,
            }
        }
        end
    }
}

#[expect(clippy::option_option, reason = "outside: the key is an error; inside: a merge key")]
fn key_name(scalar: scalar::Scalar<'_>) -> Option<Option<String>> {
    match Key::of(scalar).ok()? {
        Key::Name(name, _) => Some(Some(name)),
        Key::Merge => Some(None),
    }
}

impl Style {
    fn of(style: StructureStyle) -> Self {
        if style == StructureStyle::Flow { Self::Flow } else { Self::Block }
    }
}
