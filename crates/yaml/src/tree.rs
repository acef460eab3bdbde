//! Builds the tree of one document from the parser's events.

mod failure;
mod node;

use std::{borrow::Cow, collections::HashMap};

use granit_parser::{Event, Marker, Parser, ScalarStyle, Span, Tag};
use serde_json::Value;

use crate::{
    MoreDocuments, Options, Problem, block,
    dialect::Dialect,
    keys::{Entries, Key, Refused},
    limits::{Copied, Counts, MAX_NESTING, Size},
    places::{Source, line_start, too_deep},
    scalar::{self, Scalar},
};
use failure::{Failure, scan_failure};
use node::{Node, value};

/// Reads one document. An empty text is null.
///
/// # Errors
/// The first problem and its place.
pub fn parse(text: &str, options: Options) -> Result<Value, Problem> {
    block::read(text, options.limits).unwrap_or_else(|| parsed(text, options))
}

/// Reads one document with the parser.
pub(crate) fn parsed(text: &str, options: Options) -> Result<Value, Problem> {
    read(Source { text, lines_before: 0, ends_line: false }, options)
}

/// Reads the first document of a part of a text.
pub(crate) fn read(source: Source<'_>, options: Options) -> Result<Value, Problem> {
    let blank_end = ends_in_blanks(source.text);
    let mut repaired = blank_end.then(|| format!("{}\n", source.text));
    let mut read_again = 0;
    let mut mended = [None; 2];
    loop {
        let text = repaired.as_deref().unwrap_or(source.text);
        match read_once(Source { text, ..source }, blank_end, options) {
            Ok(value) => return Ok(value),
            Err(Failure::Problem(problem)) => return Err(problem),
            Err(Failure::Quoted { flaw, problem }) => {
                let left = options.limits.bytes_read_again.saturating_sub(read_again);
                let Ok(found) = flaw.mended(text, left) else {
                    let message = "too many quoted texts with an escaped ' or lines that are not \
                                   indented for a document of this size";
                    let message = message.to_owned();
                    return Err(Problem { message, is_over_limit: true, ..problem });
                };
                // Flaws come in the order of the text. One that is still there cannot be mended.
                let last = &mut mended[flaw.kind()];
                match found.filter(|(place, _)| Some(*place) > *last) {
                    Some((place, text)) => {
                        read_again += text.len();
                        *last = Some(place);
                        repaired = Some(text);
                    }
                    None => return Err(problem),
                }
            }
        }
    }
}

/// Whether the last line is only spaces, and nothing ends it. The parser sees it with a line break;
/// in a block scalar it may be text.
fn ends_in_blanks(text: &str) -> bool {
    text.ends_with(' ') && text.trim_end_matches(' ').ends_with(['\n', '\r'])
}

/// `blank_end`: a line break was put behind the blanks of the last line.
fn read_once(source: Source<'_>, blank_end: bool, options: Options) -> Result<Value, Failure> {
    let limits = granit_parser::options! {
        emit_anchor_events: true,
        emit_comments: false,
        flow_nesting_limit: MAX_NESTING,
        block_nesting_limit: MAX_NESTING,
    };
    let mut reader = Reader {
        source,
        blank_end,
        options,
        dialect: Dialect::new(source)?,
        counts: Counts::document(),
        copied: Copied::default(),
        anchors: HashMap::new(),
        open: Vec::new(),
        root: None,
    };
    let mut ended = false;
    for event in Parser::new_from_str_with_options(source.text, limits) {
        let (event, span) =
            event.map_err(|error| scan_failure(source, &error, reader.dialect.end()))?;
        if ended && matches!(event, Event::DocumentStart(..)) {
            return Err(source
                .problem(span.start, "a second document begins here; separate documents with ---")
                .into());
        }
        reader.dialect.check(&event, &span)?;
        ended |= matches!(event, Event::DocumentEnd);
        if ended && options.more_documents == MoreDocuments::Ignore {
            reader.dialect.check_end()?;
            break;
        }
        reader.accept(event, &span)?;
    }
    Ok(reader.root.unwrap_or_default())
}

struct Reader<'t> {
    source: Source<'t>,
    blank_end: bool,
    options: Options,
    dialect: Dialect<'t>,
    counts: Counts,
    copied: Copied,
    anchors: HashMap<usize, Anchored>,
    open: Vec<Open>,
    root: Option<Value>,
}

/// A list or mapping whose end is not read yet.
struct Open {
    collection: Collection,
    /// 0 if it has none.
    anchor: usize,
    /// Before its first entry.
    counts: Counts,
    /// Of the highest of its entries.
    height: usize,
}

enum Collection {
    List(Vec<Value>),
    Map(Box<Entries>),
}

/// A node that aliases may repeat.
struct Anchored {
    node: Node<'static>,
    size: Size,
    height: usize,
}

/// What stands before a node.
#[derive(Clone, Copy)]
struct Properties<'t> {
    /// 0 if it has none.
    anchor: usize,
    tag: Option<&'t Tag>,
}

/// How a node came.
struct Arrival {
    mark: Marker,
    aliased: bool,
    height: usize,
}

impl<'t> Reader<'t> {
    fn accept(&mut self, event: Event<'t>, span: &Span) -> Result<(), Problem> {
        match event {
            Event::Alias(id) => self.alias(id, span.start),
            Event::Scalar(mut text, style, anchor, tag) => {
                if matches!(style, ScalarStyle::Literal | ScalarStyle::Folded)
                    && self.ends_without_break(&text, span)
                {
                    text = Cow::Owned(text.strip_suffix('\n').unwrap_or(&text).to_owned());
                }
                let properties = Properties { anchor, tag: tag.as_deref() };
                self.scalar(text, style, properties, span.start)
            }
            Event::SequenceStart(_, anchor, _) => {
                self.begin(Collection::List(Vec::new()), anchor, span.start)
            }
            Event::MappingStart(_, anchor, _) => {
                self.begin(Collection::Map(Box::default()), anchor, span.start)
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(span.start),
            _ => Ok(()),
        }
    }

    /// Whether a block scalar ends in the middle of the last line: then Go adds no line break.
    fn ends_without_break(&self, value: &str, span: &Span) -> bool {
        let text = self.source.text;
        let (start, end) = (span.start.byte_offset(), span.end.byte_offset());
        let (Some(start), Some(end), false) = (start, end, self.source.ends_line) else {
            return false;
        };
        if !self.blank_end {
            return end == text.len() && !text.ends_with(['\n', '\r']);
        }
        if !text[end..].trim_start().is_empty() {
            return false;
        }
        // The last line is text if it is deeper than the others; else it counts only if all empty
        // lines do.
        let lead = |line: &str| line.len() - line.trim_start_matches(' ').len();
        let last = |text: &str| text.lines().rev().find(|line| !line.trim().is_empty()).map(lead);
        let start = line_start(text, start);
        let blanks = text.lines().next_back().map_or(0, lead);
        let deeper = match (last(&text[start..end]), last(value)) {
            (Some(column), Some(inside)) => blanks > column.saturating_sub(inside),
            _ => true,
        };
        deeper && value.ends_with(" \n") || value.ends_with("\n\n") || value == "\n"
    }

    fn problem(&self, mark: Marker, message: impl Into<String>) -> Problem {
        self.source.problem(mark, message)
    }

    /// Whether the next node is a key.
    fn at_key(&self) -> bool {
        match self.open.last() {
            Some(Open { collection: Collection::Map(entries), .. }) => entries.key.is_none(),
            _ => false,
        }
    }

    /// Whether the next node is the value of a merge key.
    fn at_merge(&self) -> bool {
        match self.open.last() {
            Some(Open { collection: Collection::Map(entries), .. }) => {
                matches!(entries.key, Some(Key::Merge))
            }
            _ => false,
        }
    }

    fn scalar(
        &mut self,
        text: Cow<'t, str>,
        style: ScalarStyle,
        properties: Properties<'_>,
        mark: Marker,
    ) -> Result<(), Problem> {
        let tag = properties.tag.map(|tag| format!("{}{}", tag.handle(), tag.suffix()));
        let plain = style == ScalarStyle::Plain;
        let merge = text == "<<"
            && match tag.as_deref() {
                None => plain,
                Some(tag) => tag == "!" || tag == "tag:yaml.org,2002:merge",
            };
        let is_key = self.at_key();
        let before = self.counts;
        self.count(usize::from(!(merge && is_key)), mark)?;
        self.counts.text_bytes += text.len();
        let scalar = match tag {
            Some(tag) => scalar::tagged(&tag, text).map_err(|text| self.problem(mark, text))?,
            None if plain => match scalar::plain(&text) {
                Scalar::Text(_) => Scalar::Text(text),
                typed => typed.into_owned(),
            },
            None => Scalar::Text(text),
        };
        let arrival = Arrival { mark, aliased: false, height: 0 };
        self.anchor(properties.anchor, before, &arrival, || {
            Node::Scalar(scalar.clone().into_owned())
        })?;
        if merge && is_key {
            if let Some(Open { collection: Collection::Map(entries), .. }) = self.open.last_mut() {
                entries.key = Some(Key::Merge);
            }
            return Ok(());
        }
        self.place(Node::Scalar(scalar), &arrival)
    }

    fn alias(&mut self, id: usize, mark: Marker) -> Result<(), Problem> {
        let Some(anchored) = self.anchors.get(&id) else {
            return Err(self.problem(mark, "the alias is inside of the node that it repeats"));
        };
        let (size, height) = (anchored.size, anchored.height);
        self.counts.add_alias(size);
        if self.counts.excessive() {
            return Err(self.problem(mark, "aliases repeat too much: more than 99 % of a small document, or 10 % of a large one"));
        }
        if self.open.len() + height > MAX_NESTING {
            return Err(self.problem(mark, too_deep()));
        }
        self.copy(size, mark)?;
        let node = self.anchors[&id].node.clone();
        self.place(node, &Arrival { mark, aliased: true, height })
    }

    /// Counts nodes.
    fn count(&mut self, nodes: usize, mark: Marker) -> Result<(), Problem> {
        self.counts.nodes += nodes;
        if self.counts.nodes > self.options.limits.nodes {
            let place = self.problem(mark, "");
            return Err(self.options.limits.too_many_nodes(place.line, place.column));
        }
        Ok(())
    }

    /// Takes the copy of a node from the limits, before it is made.
    fn copy(&mut self, size: Size, mark: Marker) -> Result<(), Problem> {
        let limits = self.options.limits;
        if self.copied.add(size, limits) {
            return Ok(());
        }
        let message = format!(
            "anchors and aliases copy more than {} values or {} bytes of text",
            limits.copied_nodes, limits.copied_text_bytes
        );
        Err(Problem { is_over_limit: true, ..self.problem(mark, message) })
    }

    fn begin(
        &mut self,
        collection: Collection,
        anchor: usize,
        mark: Marker,
    ) -> Result<(), Problem> {
        if self.open.len() >= MAX_NESTING {
            return Err(self.problem(mark, too_deep()));
        }
        if self.at_key() {
            return Err(self.problem(mark, "a key must not be a list or a mapping"));
        }
        let counts = self.counts;
        let merged_list = self.at_merge() && matches!(collection, Collection::List(_));
        self.count(usize::from(!merged_list), mark)?;
        self.open.push(Open { collection, anchor, counts, height: 0 });
        Ok(())
    }

    fn end(&mut self, mark: Marker) -> Result<(), Problem> {
        let Some(open) = self.open.pop() else {
            return Ok(());
        };
        let value = match open.collection {
            Collection::List(items) => Value::Array(items),
            Collection::Map(entries) => Value::Object(entries.map),
        };
        let arrival = Arrival { mark, aliased: false, height: open.height + 1 };
        self.anchor(open.anchor, open.counts, &arrival, || Node::Tree(value.clone()))?;
        self.place(Node::Tree(value), &arrival)
    }

    /// Keeps a copy of a node for its aliases, if it has an anchor.
    fn anchor(
        &mut self,
        anchor: usize,
        before: Counts,
        arrival: &Arrival,
        copy: impl FnOnce() -> Node<'static>,
    ) -> Result<(), Problem> {
        if anchor != 0 {
            let size = self.counts.since(before);
            self.copy(size, arrival.mark)?;
            let anchored = Anchored { node: copy(), size, height: arrival.height };
            self.anchors.insert(anchor, anchored);
        }
        Ok(())
    }

    /// Puts a node where it belongs: the document, a list, a key or a value.
    fn place(&mut self, node: Node<'_>, arrival: &Arrival) -> Result<(), Problem> {
        let (source, options) = (self.source, self.options);
        let fail = |text: String| source.problem(arrival.mark, text);
        let value = |node| value(node, options.whole_floats).map_err(fail);
        if let Some(open) = self.open.last_mut() {
            open.height = open.height.max(arrival.height);
        }
        match self.open.last_mut().map(|open| &mut open.collection) {
            None => self.root = Some(value(node)?),
            Some(Collection::List(items)) => items.push(value(node)?),
            Some(Collection::Map(entries)) => match (entries.key.take(), node) {
                (None, Node::Scalar(scalar)) => {
                    entries.key = Some(Key::of(scalar).map_err(|text| fail(text.to_owned()))?);
                    entries.key_mark = Some(arrival.mark);
                }
                (None, Node::Tree(_)) => {
                    return Err(fail("a key must not be a list or a mapping".to_owned()));
                }
                (Some(Key::Merge), node) => {
                    let merged = entries.merge(value(node)?, arrival.aliased);
                    merged.map_err(|text| fail(text.to_owned()))?;
                }
                (Some(Key::Name(name, kind)), node) => {
                    let value = value(node)?;
                    let mark = entries.key_mark.unwrap_or(arrival.mark);
                    let added = entries.add(name, kind, value, options.duplicate_keys);
                    added.map_err(|refused| Problem {
                        is_duplicate_key: matches!(refused, Refused::Duplicate(_)),
                        ..source.problem(mark, refused.message())
                    })?;
                }
            },
        }
        Ok(())
    }
}
