//! Operators, from those that bind least to those that bind most.

use super::{Call, Id, Kind, Node, Parsed, Parser, Part, enter, primary::Operator};

/// Operators with two sides of one rule: their words, their functions, and how much they bind.
const RELATIONS: [Infix; 7] = [
    ("<", "_<_", 1),
    ("<=", "_<=_", 1),
    (">=", "_>=_", 1),
    (">", "_>_", 1),
    ("==", "_==_", 1),
    ("!=", "_!=_", 1),
    ("in", "@in", 1),
];
const CALCULATIONS: [Infix; 5] =
    [("*", "_*_", 2), ("/", "_/_", 2), ("%", "_%_", 2), ("+", "_+_", 1), ("-", "_-_", 1)];

type Infix = (&'static str, &'static str, u32);

impl Parser {
    /// `A || B || …`
    pub(super) fn any_of(&mut self) -> Parsed {
        self.terms("||", "_||_", Self::all_of)
    }

    fn all_of(&mut self) -> Parsed {
        self.terms("&&", "_&&_", Self::relation)
    }

    fn terms(&mut self, sign: &str, function: &str, term: fn(&mut Self) -> Parsed) -> Parsed {
        let first = term(self)?;
        let mut terms = vec![first.id];
        let mut depth = first.depth;
        let at = self.offset();
        while self.eat(sign) {
            let next = term(self)?;
            terms.push(next.id);
            depth = depth.max(next.depth);
        }
        if terms.len() == 1 {
            return Ok(first);
        }
        self.ast.begin_at(at);
        Ok(Part { id: self.call(function, terms)?, depth })
    }

    fn relation(&mut self) -> Parsed {
        enter(&mut self.depth.relations)?;
        let mut left = self.calculation(1)?;
        while let Some((_, function, _)) = self.infix(&RELATIONS) {
            let at = self.offset();
            self.advance();
            enter(&mut self.depth.relations)?;
            let right = self.calculation(1)?;
            self.depth.relations -= 1;
            self.ast.begin_at(at);
            left = self.joined(function, left, right)?;
        }
        self.depth.relations -= 1;
        Ok(left)
    }

    /// Operators that bind at least so much.
    fn calculation(&mut self, least: u32) -> Parsed {
        enter(&mut self.depth.calculations)?;
        let mut left = self.unary()?;
        while let Some((_, function, binds)) = self.infix(&CALCULATIONS)
            && binds >= least
        {
            let at = self.offset();
            self.advance();
            let right = self.calculation(binds + 1)?;
            self.ast.begin_at(at);
            left = self.joined(function, left, right)?;
        }
        self.depth.calculations -= 1;
        Ok(left)
    }

    fn infix(&self, operators: &[Infix]) -> Option<Infix> {
        let found = match self.peek() {
            Kind::Sign(sign) => sign,
            Kind::Word(word) => &**word,
            _ => return None,
        };
        operators.iter().find(|operator| operator.0 == found).copied()
    }

    fn joined(&mut self, function: &str, left: Part, right: Part) -> Parsed {
        let call = Call::new(function, None, [left.id, right.id]);
        self.add_level(Node::Call(call), left.depth.max(right.depth))
    }

    /// `!A`, `-A` or `A`.
    fn unary(&mut self) -> Parsed {
        for (sign, function) in [("!", "!_"), ("-", "-_")] {
            let mut count = 0_usize;
            let first = self.next;
            let at = self.offset();
            while self.eat(sign) {
                count += 1;
            }
            // The minus next to a number belongs to it.
            if sign == "-" && count == 1 && self.is_number() {
                self.next = first;
                return self.member();
            }
            if count > 0 {
                let part = self.member()?;
                self.ast.begin_at(at);
                return if count.is_multiple_of(2) {
                    Ok(part)
                } else {
                    Ok(Part { id: self.call(function, vec![part.id])?, ..part })
                };
            }
        }
        self.member()
    }

    fn is_number(&self) -> bool {
        matches!(self.peek(), Kind::Int(_) | Kind::Float(_))
    }

    /// A value with fields, elements and calls.
    fn member(&mut self) -> Parsed {
        enter(&mut self.depth.members)?;
        let mut part = self.primary()?;
        let mut at = self.offset();
        while let Some(operator) = self.operator() {
            part = self.apply(part, operator, at)?;
            at = self.offset();
        }
        self.depth.members -= 1;
        Ok(part)
    }

    fn apply(&mut self, operand: Part, operator: Operator, at: usize) -> Parsed {
        // A call begins at its bracket, as in cel-go.
        let at = match operator {
            Operator::Call(_) => self.tokens[self.next.saturating_sub(1)].offset,
            _ => at,
        };
        self.ast.begin_at(at);
        match operator {
            Operator::Field { name, is_optional: false } => {
                self.add_level(Node::Select { operand: operand.id, field: name }, operand.depth)
            }
            Operator::Field { name, is_optional: true } => {
                let name = self.literal(super::Literal::Text(name))?;
                let call = Call::new("_?._", None, [operand.id, name]);
                self.add_level(Node::Call(call), operand.depth)
            }
            Operator::Call(name) => {
                let (arguments, depth) = self.arguments()?;
                let below = operand.depth.max(depth);
                self.ast.begin_at(at);
                let id = self.method(&name, operand.id, arguments)?;
                level(id, below)
            }
            Operator::Index { is_optional } => {
                let index = self.expression()?;
                self.expect("]")?;
                self.ast.begin_at(at);
                let function = if is_optional { "_[?_]" } else { "_[_]" };
                self.joined(function, operand, index)
            }
        }
    }
}

/// A node that was added, and counts for the depth of the tree.
fn level(id: Id, below: u32) -> Parsed {
    if below >= super::MAX_DEPTH {
        return Err(super::too_deep());
    }
    Ok(Part { id, depth: below + 1 })
}
