//! The items ahead of the parser. The place of an error is that of the last one read.

use crate::lex::{Item, Kind, Lexer};

/// Items that were read and given back: at most three.
pub(super) struct Items {
    ahead: [Item; 3],
    count: usize,
}

impl Default for Items {
    fn default() -> Self {
        let none = || Item { kind: Kind::Error, text: String::new(), at: 0, line: 0 };
        Self { ahead: [none(), none(), none()], count: 0 }
    }
}

impl Items {
    /// The last item that was read.
    pub(super) fn first(&self) -> &Item {
        &self.ahead[0]
    }

    pub(super) fn next(&mut self, lexer: &mut Lexer<'_>) -> Item {
        match self.count {
            0 => self.ahead[0] = lexer.next(),
            _ => self.count -= 1,
        }
        self.ahead[self.count].clone()
    }

    pub(super) fn peek(&mut self, lexer: &mut Lexer<'_>) -> Item {
        if self.count == 0 {
            self.ahead[0] = lexer.next();
            self.count = 1;
        }
        self.ahead[self.count - 1].clone()
    }

    /// Gives the last item back.
    pub(super) fn back(&mut self) {
        self.count += 1;
    }

    /// Gives the last item back and this one, which was before it.
    pub(super) fn back_to(&mut self, item: Item) {
        self.ahead[1] = item;
        self.count = 2;
    }

    /// Gives the last item back and these two, which were before it.
    pub(super) fn back_to_both(&mut self, first: Item, second: Item) {
        self.ahead[1] = second;
        self.ahead[2] = first;
        self.count = 3;
    }
}
