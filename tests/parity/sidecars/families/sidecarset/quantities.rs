//! Expressions of `resourcesPolicy` as CEL: `max(cpu*10%, 10m)`.

/// What an expression is about.
pub(super) struct Places<'a> {
    /// CEL for the list of containers.
    pub(super) targets: String,
    /// `limits` or `requests`.
    pub(super) list: &'a str,
    /// `sum` or `max`.
    pub(super) mode: &'a str,
}

/// A part of an expression.
enum Part {
    /// A number without a unit.
    Number(f64),
    /// CEL that gives a quantity.
    Quantity(String),
}

impl Part {
    fn quantity(self) -> String {
        match self {
            Self::Number(number) => format!("quantity('{number}')"),
            Self::Quantity(cel) => cel,
        }
    }
}

/// The expression as CEL that gives a quantity; `None` if it cannot be read.
pub(super) fn cel(text: &str, places: &Places<'_>) -> Option<String> {
    let mut reader = Reader { rest: text, places };
    let part = reader.sum()?;
    reader.rest.trim().is_empty().then(|| part.quantity())
}

struct Reader<'a> {
    rest: &'a str,
    places: &'a Places<'a>,
}

impl Reader<'_> {
    fn take(&mut self, token: &str) -> bool {
        let rest = self.rest.trim_start().strip_prefix(token);
        rest.is_some_and(|rest| {
            self.rest = rest;
            true
        })
    }

    fn sum(&mut self) -> Option<Part> {
        let mut left = self.product()?;
        loop {
            let is_minus = self.take("-");
            if !is_minus && !self.take("+") {
                return Some(left);
            }
            let right = self.product()?;
            left = match (left, right) {
                (Part::Number(left), Part::Number(right)) => {
                    Part::Number(if is_minus { left - right } else { left + right })
                }
                (left, right) if is_minus => {
                    Part::Quantity(format!("{}.sub({})", left.quantity(), right.quantity()))
                }
                (left, right) => {
                    Part::Quantity(format!("sum([{}, {}])", left.quantity(), right.quantity()))
                }
            };
        }
    }

    fn product(&mut self) -> Option<Part> {
        let mut left = self.factor()?;
        loop {
            let is_divided = self.take("/");
            if !is_divided && !self.take("*") {
                return Some(left);
            }
            left = match (left, self.factor()?) {
                (Part::Number(left), Part::Number(right)) => {
                    Part::Number(if is_divided { left / right } else { left * right })
                }
                (Part::Quantity(quantity), Part::Number(number)) => {
                    scaled(&quantity, if is_divided { 1.0 / number } else { number })
                }
                (Part::Number(number), Part::Quantity(quantity)) if !is_divided => {
                    scaled(&quantity, number)
                }
                _ => return None,
            };
        }
    }

    fn factor(&mut self) -> Option<Part> {
        if self.take("(") {
            let inner = self.sum()?;
            return self.take(")").then_some(inner);
        }
        for function in ["max", "min"] {
            if self.take(function) {
                self.take("(").then_some(())?;
                let left = self.sum()?.quantity();
                self.take(",").then_some(())?;
                let right = self.sum()?.quantity();
                return self
                    .take(")")
                    .then(|| Part::Quantity(format!("{function}([{left}, {right}])")));
            }
        }
        for name in ["cpu", "memory"] {
            if self.take(name) {
                return Some(Part::Quantity(self.aggregate(name)));
            }
        }
        self.literal()
    }

    fn literal(&mut self) -> Option<Part> {
        let text = self.rest.trim_start();
        let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '.' && c != '%');
        let (literal, rest) = text.split_at(end.unwrap_or(text.len()));
        self.rest = rest;
        if let Some(percent) = literal.strip_suffix('%') {
            return Some(Part::Number(percent.parse::<f64>().ok()? / 100.0));
        }
        if let Ok(number) = literal.parse() {
            return Some(Part::Number(number));
        }
        injectd_gocompat::quantity::parse(literal)?;
        Some(Part::Quantity(format!("quantity('{literal}')")))
    }

    /// All targets' quantities in one; one that is not set is 0.
    fn aggregate(&self, name: &str) -> String {
        let Places { targets, list, mode } = self.places;
        format!("{mode}({targets}.map(c, c.?resources.?{list}[?'{name}'].orValue(dyn('0'))))")
    }
}

fn scaled(quantity: &str, by: f64) -> Part {
    Part::Quantity(format!("scale({quantity}, double({by}))"))
}
