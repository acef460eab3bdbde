//! Reads a template into a tree, as Go's `text/template/parse` does; so do the texts of the errors.

mod items;
mod operand;

use std::{collections::BTreeMap, mem};

use items::Items;

use crate::{
    function::{Functions, Refusal},
    lex::{Item, Kind, Lexer},
    quote::{quote, unquote},
    tree::{Branch, List, Name, Node, Pipe},
};

/// Control structures and parentheses inside of one another. Go: 10,000 parentheses.
// Go's parser runs on a stack that grows; the stack of a thread here does not.
pub const MAX_NESTING: usize = 100;

/// Why a text is not a template, and where.
///
/// It prints as in Go, `template: NAME:LINE: MESSAGE`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("template: {name}:{line}: {message}")]
pub struct ParseError {
    /// The name of the template.
    pub name: String,
    /// Counted from 1.
    pub line: usize,
    /// Bytes before the place in its line.
    pub column: usize,
    /// One line of English.
    pub message: String,
    /// Why a function of Go that the text calls is not available, if this is the problem.
    pub refusal: Option<Refusal>,
}

type Parsed<T> = Result<T, ParseError>;

/// How a list of nodes ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    End,
    Else,
}

impl Ending {
    fn shown(self) -> &'static str {
        match self {
            Self::End => "{{end}}",
            Self::Else => "{{else}}",
        }
    }
}

enum Part {
    Node(Node),
    Ending(Ending),
}

/// What belongs to one template: the text itself, a `define` or a `block`.
#[derive(Default)]
struct Scope {
    items: Items,
    variables: Vec<String>,
    ranges: usize,
    action_line: usize,
}

impl Scope {
    fn new() -> Self {
        Self { variables: vec!["$".to_owned()], ..Self::default() }
    }
}

pub(crate) struct Parser<'a> {
    name: &'a str,
    text: &'a str,
    functions: &'a Functions,
    lexer: Lexer<'a>,
    scope: Scope,
    depth: usize,
    templates: BTreeMap<Name, List>,
}

/// The templates of a text by their names: its own, and those it defines.
pub(crate) fn parse(name: &str, text: &str, functions: &Functions) -> Parsed<BTreeMap<Name, List>> {
    let mut parser = Parser {
        name,
        text,
        functions,
        lexer: Lexer::new(text),
        scope: Scope::new(),
        depth: 0,
        templates: BTreeMap::new(),
    };
    let list = parser.whole()?;
    parser.add(name, list)?;
    Ok(parser.templates)
}

/// Only white space. Go: `parse.IsEmptyTree`.
fn is_blank(list: &List) -> bool {
    list.iter().all(|node| match node {
        Node::Text(text) => crate::runes::trim_space(text).is_empty(),
        _ => false,
    })
}

impl Parser<'_> {
    fn error<T>(&self, message: impl Into<String>) -> Parsed<T> {
        let item = self.scope.items.first();
        let before = &self.text[..item.at.min(self.text.len())];
        Err(ParseError {
            name: self.name.to_owned(),
            line: item.line,
            column: before.len() - before.rfind('\n').map_or(0, |at| at + 1),
            message: message.into(),
            refusal: None,
        })
    }

    fn unexpected<T>(&self, item: &Item, context: &str) -> Parsed<T> {
        if item.kind != Kind::Error {
            return self.error(format!("unexpected {item} in {context}"));
        }
        let started = self.scope.action_line;
        if started == 0 || started == item.line {
            return self.error(item.to_string());
        }
        // Go names the action once, also where the lexer has named it.
        let of_action = if item.text.ends_with(" action") { "" } else { " in action" };
        self.error(format!("{item}{of_action} started at {}:{started}", self.name))
    }

    fn next(&mut self) -> Item {
        self.scope.items.next(&mut self.lexer)
    }

    fn next_solid(&mut self) -> Item {
        loop {
            let item = self.next();
            if item.kind != Kind::Space {
                return item;
            }
        }
    }

    fn peek(&mut self) -> Item {
        self.scope.items.peek(&mut self.lexer)
    }

    fn peek_solid(&mut self) -> Item {
        let item = self.next_solid();
        self.scope.items.back();
        item
    }

    fn expect_close(&mut self, context: &str) -> Parsed<()> {
        let item = self.next_solid();
        match item.kind {
            Kind::RightDelimiter => Ok(()),
            _ => self.unexpected(&item, context),
        }
    }

    fn enter(&mut self) -> Parsed<()> {
        if self.depth >= MAX_NESTING {
            return self.error("max expression depth exceeded");
        }
        self.depth += 1;
        Ok(())
    }

    fn add(&mut self, name: &str, list: List) -> Parsed<()> {
        let known = self.templates.get(name).is_some_and(|list| !is_blank(list));
        // A definition of blanks alone is none: another one may take its place, before it or behind
        // it.
        if known && !is_blank(&list) {
            let name = quote(name.as_bytes(), false);
            return self.error(format!("template: multiple definition of template {name}"));
        }
        if !known {
            self.templates.insert(name.into(), list);
        }
        Ok(())
    }

    /// The whole text, with its definitions.
    fn whole(&mut self) -> Parsed<List> {
        let mut list = List::new();
        loop {
            match self.peek().kind {
                Kind::EOF => return Ok(list),
                Kind::LeftDelimiter => {
                    let delimiter = self.next();
                    if self.next_solid().kind == Kind::Define {
                        self.definition()?;
                        continue;
                    }
                    // Only a definition is allowed here alone; any other action is parsed from its
                    // delimiter.
                    self.scope.items.back_to(delimiter);
                }
                _ => {}
            }
            match self.text_or_action()? {
                Part::Node(node) => list.push(node),
                Part::Ending(ending) => {
                    return self.error(format!("unexpected {}", ending.shown()));
                }
            }
        }
    }

    /// A `define`, whose keyword is past.
    fn definition(&mut self) -> Parsed<()> {
        const CONTEXT: &str = "define clause";
        let outer = mem::replace(&mut self.scope, Scope::new());
        let item = self.next_solid();
        let name = self.template_name(&item, CONTEXT)?;
        self.expect_close(CONTEXT)?;
        self.body_of(&name, CONTEXT)?;
        self.scope = outer;
        Ok(())
    }

    /// The body of a `define` or `block` up to its end.
    fn body_of(&mut self, name: &str, context: &str) -> Parsed<()> {
        let (list, ending) = self.list()?;
        if ending != Ending::End {
            return self.error(format!("unexpected {} in {context}", ending.shown()));
        }
        self.add(name, list)
    }

    fn template_name(&mut self, item: &Item, context: &str) -> Parsed<String> {
        if !matches!(item.kind, Kind::String | Kind::RawString) {
            return self.unexpected(item, context);
        }
        match unquote(item.text.as_bytes()) {
            Some(name) => Ok(String::from_utf8_lossy(&name).into_owned()),
            None => self.error("invalid syntax"),
        }
    }

    fn list(&mut self) -> Parsed<(List, Ending)> {
        self.enter()?;
        let mut list = List::new();
        while self.peek_solid().kind != Kind::EOF {
            match self.text_or_action()? {
                Part::Node(node) => list.push(node),
                Part::Ending(ending) => {
                    self.depth -= 1;
                    return Ok((list, ending));
                }
            }
        }
        self.error("unexpected EOF")
    }

    fn text_or_action(&mut self) -> Parsed<Part> {
        let item = self.next_solid();
        match item.kind {
            Kind::Text => Ok(Part::Node(Node::Text(item.text.into()))),
            Kind::LeftDelimiter => {
                self.scope.action_line = item.line;
                let part = self.action();
                self.scope.action_line = 0;
                part
            }
            _ => self.unexpected(&item, "input"),
        }
    }

    fn action(&mut self) -> Parsed<Part> {
        let item = self.next_solid();
        let node = match item.kind {
            Kind::Block => self.block()?,
            Kind::Break => self.leave_range(Node::Break)?,
            Kind::Continue => self.leave_range(Node::Continue)?,
            Kind::Else => return self.otherwise(),
            Kind::End => {
                self.expect_close("end")?;
                return Ok(Part::Ending(Ending::End));
            }
            Kind::If => Node::If(self.control("if")?),
            Kind::Range => Node::Range(self.control("range")?),
            Kind::Template => self.call_of_template()?,
            Kind::With => Node::With(self.control("with")?),
            _ => {
                self.scope.items.back();
                let at = self.peek().at;
                Node::Action { at, pipe: self.pipe("command", Kind::RightDelimiter)? }
            }
        };
        Ok(Part::Node(node))
    }

    fn leave_range(&mut self, node: Node) -> Parsed<Node> {
        let item = self.next_solid();
        if item.kind != Kind::RightDelimiter {
            return self.unexpected(&item, &node.to_string());
        }
        if self.scope.ranges == 0 {
            return self.error(format!("{node} outside {{{{range}}}}"));
        }
        Ok(node)
    }

    fn otherwise(&mut self) -> Parsed<Part> {
        // `else if` and `else with` are seen by the control structure.
        if !matches!(self.peek_solid().kind, Kind::If | Kind::With) {
            self.expect_close("else")?;
        }
        Ok(Part::Ending(Ending::Else))
    }

    fn control(&mut self, keyword: &'static str) -> Parsed<Branch> {
        let variables = self.scope.variables.len();
        let in_range = usize::from(keyword == "range");
        let pipe = self.pipe(keyword, Kind::RightDelimiter)?;
        self.scope.ranges += in_range;
        let (body, ending) = self.list()?;
        self.scope.ranges -= in_range;
        let otherwise = match ending {
            Ending::End => None,
            Ending::Else => Some(self.else_list(keyword)?),
        };
        self.scope.variables.truncate(variables);
        Ok(Branch { at: pipe.at, pipe, body, otherwise })
    }

    fn else_list(&mut self, keyword: &str) -> Parsed<List> {
        let chained = match (keyword, self.peek().kind) {
            ("if", Kind::If) => Node::If as fn(Branch) -> Node,
            ("with", Kind::With) => Node::With,
            _ => {
                let (list, ending) = self.list()?;
                if ending != Ending::End {
                    return self.error(format!("expected end; found {}", ending.shown()));
                }
                return Ok(list);
            }
        };
        self.next();
        self.enter()?;
        let branch = self.control(if keyword == "if" { "if" } else { "with" })?;
        self.depth -= 1;
        Ok(vec![chained(branch)])
    }

    fn block(&mut self) -> Parsed<Node> {
        const CONTEXT: &str = "block clause";
        let item = self.next_solid();
        let name = self.template_name(&item, CONTEXT)?;
        let pipe = self.pipe(CONTEXT, Kind::RightDelimiter)?;
        let outer = mem::replace(&mut self.scope, Scope::new());
        self.body_of(&name, CONTEXT)?;
        self.scope = outer;
        Ok(Node::Template { at: item.at, name: name.into(), pipe: Some(pipe) })
    }

    fn call_of_template(&mut self) -> Parsed<Node> {
        const CONTEXT: &str = "template clause";
        let item = self.next_solid();
        let name = self.template_name(&item, CONTEXT)?.into();
        let mut pipe: Option<Pipe> = None;
        if self.next_solid().kind != Kind::RightDelimiter {
            self.scope.items.back();
            pipe = Some(self.pipe(CONTEXT, Kind::RightDelimiter)?);
        }
        Ok(Node::Template { at: item.at, name, pipe })
    }
}
