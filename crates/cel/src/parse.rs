//! Reads expressions (`parser/parser.go` of cel-go).
//!
//! The depth of what it reads is bounded as in cel-go: each rule of the grammar, where the links of a
//! chain such as `a.b.c` count once, and the tree without brackets, where each link counts.

use super::{
    ast::{Ast, Call, Entry, Id, Item, Literal, Node},
    lex::{self, Kind, Token},
    limits::{MAX_CODE_POINTS, MAX_DEPTH, shortened},
};

mod macros;
mod operators;
mod primary;

pub(crate) use macros::added_arguments;

/// Words that are not names of variables.
pub const RESERVED: [&str; 21] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "false",
    "for",
    "function",
    "if",
    "import",
    "in",
    "let",
    "loop",
    "namespace",
    "null",
    "package",
    "return",
    "true",
    "var",
    "void",
    "while",
];
/// Words that the grammar keeps for itself.
const KEYWORDS: [&str; 4] = ["false", "in", "null", "true"];

/// Why a text is not an expression.
#[derive(Debug)]
pub(super) struct Mistake {
    /// Where, in bytes; `None` if it is the whole text.
    pub(super) offset: Option<usize>,
    pub(super) text: String,
}

/// Reads an expression.
///
/// # Errors
/// It is too long or too deep, or it is not an expression.
pub(super) fn parse(text: &str, is_of_templates: bool) -> Result<(Ast, Id), Mistake> {
    // Before anything else is done with it: what an API server refuses for its length must cost
    // nothing here.
    let code_points = text.chars().count();
    if code_points > MAX_CODE_POINTS {
        let text = format!("it has {code_points} code points; {MAX_CODE_POINTS} are allowed");
        return Err(Mistake { offset: None, text });
    }
    let at = |offset: usize, text: String| Mistake { offset: Some(offset), text };
    let tokens = lex::tokens(text).map_err(|(offset, problem)| at(offset, problem))?;
    let (ast, depth) = (Ast::default(), Depth::default());
    let mut parser = Parser { tokens, next: 0, ast, depth, is_of_templates, mistake: None };
    let parsed = parser.expression().and_then(|part| match parser.peek() {
        Kind::End => Ok(part),
        other => Err(format!("unexpected {}", other.text())),
    });
    match parsed {
        Ok(part) => Ok((parser.ast.complete(), part.id)),
        Err(problem) => Err(at(parser.mistake.unwrap_or_else(|| parser.offset()), problem)),
    }
}

struct Parser {
    tokens: Vec<Token>,
    /// Stays within the tokens: the end is not passed.
    next: usize,
    ast: Ast,
    depth: Depth,
    /// Whether the functions of sidecar templates are there.
    is_of_templates: bool,
    /// Where the mistake is, if it is not the next word.
    mistake: Option<usize>,
}

/// How deep the rules are that are being read.
#[derive(Default)]
struct Depth {
    expressions: u32,
    relations: u32,
    calculations: u32,
    members: u32,
}

/// What was read, and how deep the tree below it is without brackets.
#[derive(Debug, Clone, Copy)]
struct Part {
    id: Id,
    depth: u32,
}

type Parsed = Result<Part, String>;

impl Parser {
    fn peek(&self) -> &Kind {
        &self.tokens[self.next].kind
    }

    /// Where the next word begins.
    fn offset(&self) -> usize {
        self.tokens[self.next].offset
    }

    fn advance(&mut self) {
        self.next = (self.next + 1).min(self.tokens.len() - 1);
    }

    /// Passes an operator or bracket, if it is next.
    fn eat(&mut self, sign: &str) -> bool {
        let is_next = matches!(self.peek(), Kind::Sign(found) if *found == sign);
        if is_next {
            self.advance();
        }
        is_next
    }

    fn expect(&mut self, sign: &str) -> Result<(), String> {
        if self.eat(sign) {
            return Ok(());
        }
        Err(format!("unexpected {}, wanted {sign:?}", self.peek().text()))
    }

    /// A node over parts that are visited in this one.
    fn add(&mut self, node: Node, depth: u32) -> Parsed {
        Ok(Part { id: self.ast.add(node)?, depth })
    }

    /// A node that counts for the depth of the tree.
    fn add_level(&mut self, node: Node, below: u32) -> Parsed {
        if below >= MAX_DEPTH {
            return Err(too_deep());
        }
        self.add(node, below + 1)
    }

    fn literal(&mut self, literal: Literal) -> Result<Id, String> {
        self.ast.add(Node::Literal(literal))
    }

    /// A call of an operator or function without a target.
    fn call(&mut self, function: &str, arguments: Vec<Id>) -> Result<Id, String> {
        self.ast.add(Node::Call(Call::new(function, None, arguments)))
    }

    /// `A`, or `A ? B : C`.
    fn expression(&mut self) -> Parsed {
        enter(&mut self.depth.expressions)?;
        let condition = self.any_of()?;
        let at = self.offset();
        if !self.eat("?") {
            self.depth.expressions -= 1;
            return Ok(condition);
        }
        let yes = self.any_of()?;
        self.expect(":")?;
        let no = self.expression()?;
        self.depth.expressions -= 1;
        let below = condition.depth.max(yes.depth).max(no.depth);
        self.ast.begin_at(at);
        let call = Call::new("_?_:_", None, [condition.id, yes.id, no.id]);
        self.add_level(Node::Call(call), below)
    }

    /// Expressions between commas, up to a bracket.
    fn arguments(&mut self) -> Result<(Vec<Id>, u32), String> {
        let (mut found, mut depth) = (Vec::new(), 0);
        if self.eat(")") {
            return Ok((found, depth));
        }
        loop {
            let part = self.expression()?;
            found.push(part.id);
            depth = depth.max(part.depth);
            if !self.eat(",") {
                self.expect(")")?;
                return Ok((found, depth));
            }
        }
    }

    /// Parts between commas, up to a bracket; a comma before the bracket is allowed, also alone.
    fn until<T>(
        &mut self,
        end: &str,
        mut part: impl FnMut(&mut Self) -> Result<(T, u32), String>,
    ) -> Result<(Vec<T>, u32), String> {
        let (mut found, mut depth) = (Vec::new(), 0);
        loop {
            if self.eat(end) {
                return Ok((found, depth));
            }
            if !(found.is_empty() && matches!(self.peek(), Kind::Sign(","))) {
                let (value, below) = part(self)?;
                found.push(value);
                depth = depth.max(below);
            }
            if !self.eat(",") {
                self.expect(end)?;
                return Ok((found, depth));
            }
            if found.is_empty() {
                self.expect(end)?;
                return Ok((found, depth));
            }
        }
    }

    fn list(&mut self, at: usize) -> Parsed {
        let (items, depth) = self.until("]", |parser| {
            let is_optional = parser.eat("?");
            let part = parser.expression()?;
            Ok((Item { value: part.id, is_optional }, part.depth))
        })?;
        self.ast.begin_at(at);
        self.add(Node::List(items.into()), depth)
    }

    fn map(&mut self, at: usize) -> Parsed {
        let (entries, depth) = self.until("}", |parser| {
            let is_optional = parser.eat("?");
            let key = parser.expression()?;
            parser.expect(":")?;
            let value = parser.expression()?;
            let entry = Entry { key: key.id, value: value.id, is_optional };
            Ok((entry, key.depth.max(value.depth)))
        })?;
        self.ast.begin_at(at);
        self.add(Node::Map(entries.into()), depth)
    }
}

/// Counts a rule of the grammar that begins.
fn enter(depth: &mut u32) -> Result<(), String> {
    *depth += 1;
    if *depth > MAX_DEPTH { Err(too_deep()) } else { Ok(()) }
}

fn too_deep() -> String {
    format!("it is nested more than {MAX_DEPTH} levels deep")
}

impl Kind {
    /// How an error names it.
    fn text(&self) -> String {
        match self {
            Self::Word(word) => format!("{:?}", shortened(word)),
            Self::Int(digits) | Self::Uint(digits) | Self::Float(digits) => {
                shortened(digits).to_owned()
            }
            Self::Text(_) => "text".to_owned(),
            Self::Bytes(_) => "bytes".to_owned(),
            Self::Sign(sign) => format!("{sign:?}"),
            Self::End => "end".to_owned(),
        }
    }
}
