//! Names, literals and what is in brackets.

use super::{Id, KEYWORDS, Kind, Literal, Node, Parsed, Parser, Part, RESERVED};

/// What follows a value.
pub(super) enum Operator {
    Field { name: Box<str>, is_optional: bool },
    Call(Box<str>),
    Index { is_optional: bool },
}

impl Parser {
    /// Passes the beginning of a field, call or index; `None` if there is none.
    pub(super) fn operator(&mut self) -> Option<Operator> {
        if self.eat("[") {
            return Some(Operator::Index { is_optional: self.eat("?") });
        }
        let start = self.next;
        if !self.eat(".") {
            return None;
        }
        let is_optional = self.eat("?");
        let name = match self.peek() {
            Kind::Word(word) if !KEYWORDS.contains(&&**word) => word.clone(),
            _ => {
                // The word after the dot is the error.
                self.mistake = Some(self.offset());
                self.next = start;
                return None;
            }
        };
        self.advance();
        if !is_optional && self.eat("(") {
            return Some(Operator::Call(name));
        }
        Some(Operator::Field { name, is_optional })
    }

    pub(super) fn primary(&mut self) -> Parsed {
        let token = self.peek().clone();
        let at = self.offset();
        self.ast.begin_at(at);
        match token {
            Kind::Sign("(") => {
                self.advance();
                let part = self.expression()?;
                self.expect(")")?;
                return Ok(part);
            }
            Kind::Sign("[") => {
                self.advance();
                return self.list(at);
            }
            Kind::Sign("{") => {
                self.advance();
                return self.map(at);
            }
            Kind::Sign(".") => return self.named(),
            Kind::Word(ref word) if !KEYWORDS.contains(&&**word) => return self.named(),
            Kind::Sign("-") => {
                self.advance();
                return self.number(true);
            }
            Kind::Int(_) | Kind::Uint(_) | Kind::Float(_) => return self.number(false),
            _ => {}
        }
        let literal = match token {
            Kind::Word(word) => match &*word {
                "true" => Literal::Bool(true),
                "false" => Literal::Bool(false),
                "null" => Literal::Null,
                _ => return Err(format!("unexpected {word:?}")),
            },
            Kind::Text(text) => Literal::Text(text),
            Kind::Bytes(bytes) => Literal::Bytes(bytes),
            other => return Err(format!("unexpected {}", other.text())),
        };
        self.advance();
        Ok(Part { id: self.literal(literal)?, depth: 0 })
    }

    fn number(&mut self, is_negative: bool) -> Parsed {
        let sign = if is_negative { "-" } else { "" };
        let literal = match self.peek() {
            Kind::Int(digits) => {
                let (digits, radix) = radix(digits);
                let number = i64::from_str_radix(&format!("{sign}{digits}"), radix);
                number.ok().map(Literal::Int).ok_or("invalid int literal")?
            }
            Kind::Uint(digits) if !is_negative => {
                let (digits, radix) = radix(digits);
                let number = u64::from_str_radix(digits, radix);
                number.ok().map(Literal::Uint).ok_or("invalid uint literal")?
            }
            Kind::Float(digits) => {
                let number = format!("{sign}{digits}").parse::<f64>().ok();
                let number = number.filter(|number| number.is_finite());
                number.map(Literal::Double).ok_or("invalid double literal")?
            }
            other => return Err(format!("unexpected {}", other.text())),
        };
        self.advance();
        Ok(Part { id: self.literal(literal)?, depth: 0 })
    }

    /// A variable, the call of a function, or a message.
    fn named(&mut self) -> Parsed {
        let has_dot = self.eat(".");
        let at = self.offset();
        let word = self.word()?;
        if let Some(after) = self.message() {
            self.next = after;
            let (fields, depth) = self.until("}", Self::field)?;
            return self.add(Node::Message(fields.into()), depth);
        }
        if RESERVED.contains(&&*word) {
            self.mistake = Some(at);
            return Err(format!("reserved identifier: {word}"));
        }
        let name = if has_dot { format!(".{word}").into() } else { word };
        let at = self.offset();
        if !self.eat("(") {
            return Ok(Part { id: self.ast.add(Node::Ident(name))?, depth: 0 });
        }
        let (arguments, depth) = self.arguments()?;
        self.ast.begin_at(at);
        Ok(Part { id: self.function(&name, arguments)?, depth })
    }

    fn word(&mut self) -> Result<Box<str>, String> {
        match self.peek() {
            Kind::Word(word) if !KEYWORDS.contains(&&**word) => {
                let word = word.clone();
                self.advance();
                Ok(word)
            }
            other => Err(format!("unexpected {}", other.text())),
        }
    }

    /// The place after the brace of a message, whose name may go on here.
    fn message(&self) -> Option<usize> {
        let mut at = self.next;
        loop {
            match (&self.tokens[at].kind, self.tokens.get(at + 1).map(|token| &token.kind)) {
                (Kind::Sign("{"), _) => return Some(at + 1),
                (Kind::Sign("."), Some(Kind::Word(word))) if !KEYWORDS.contains(&&**word) => {
                    at += 2;
                }
                _ => return None,
            }
        }
    }

    fn field(&mut self) -> Result<(Id, u32), String> {
        self.eat("?");
        match self.peek() {
            Kind::Word(word) if !KEYWORDS.contains(&&**word) => self.advance(),
            other => return Err(format!("unexpected {}", other.text())),
        }
        self.expect(":")?;
        let part = self.expression()?;
        Ok((part.id, part.depth))
    }
}

fn radix(digits: &str) -> (&str, u32) {
    digits.strip_prefix("0x").map_or((digits, 10), |digits| (digits, 16))
}
