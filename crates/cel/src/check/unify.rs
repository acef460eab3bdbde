//! Which types fit, and what the types stand for that are not known yet (`checker/types.go` of cel-go).

use std::sync::Arc;

use super::Type;

/// What is known of the types that were not known at first.
#[derive(Debug, Default)]
pub(super) struct Bindings {
    bound: Vec<Option<Type>>,
    /// What was bound before, so that an attempt can be taken back.
    undo: Vec<(usize, Option<Type>)>,
}

impl Bindings {
    /// A type that is not known yet.
    pub(super) fn new_var(&mut self) -> Type {
        let place = u32::try_from(self.bound.len()).unwrap_or(u32::MAX);
        self.bound.push(None);
        Type::Var(place)
    }

    fn find(&self, of: &Type) -> Option<&Type> {
        match of {
            Type::Var(place) => self.bound.get(*place as usize)?.as_ref(),
            _ => None,
        }
    }

    fn bind(&mut self, of: &Type, to: Type) {
        if let Type::Var(place) = of
            && let Some(slot) = self.bound.get_mut(*place as usize)
        {
            self.undo.push((*place as usize, slot.replace(to)));
        }
    }

    /// Whether values of one type can be used as the other. What that takes is kept only if they can.
    pub(super) fn is_assignable(&mut self, one: &Type, other: &Type) -> bool {
        self.are_assignable(&[(one, other)])
    }

    pub(super) fn are_assignable(&mut self, pairs: &[(&Type, &Type)]) -> bool {
        self.undo.clear();
        if pairs.iter().all(|(one, other)| self.assign(one, other)) {
            return true;
        }
        while let Some((place, before)) = self.undo.pop() {
            self.bound[place] = before;
        }
        false
    }

    fn assign(&mut self, one: &Type, other: &Type) -> bool {
        if matches!(other, Type::Var(_)) {
            match self.substitute_for(one, other) {
                (true, _) => return true,
                (false, true) => return false,
                (false, false) => {}
            }
        }
        if matches!(one, Type::Var(_)) {
            return self.substitute_for(other, one).0;
        }
        match (one, other) {
            // Types of any two types fit.
            (Type::Dyn | Type::Any(_), _)
            | (_, Type::Dyn | Type::Any(_))
            | (Type::Of(_), Type::Of(_)) => true,
            (Type::Named("null"), other) => other == one || other.is_nullable(),
            (one, Type::Named("null")) => one.is_nullable(),
            (Type::List(one), Type::List(other)) | (Type::Optional(one), Type::Optional(other)) => {
                self.assign(one, other)
            }
            (Type::Map(one), Type::Map(other)) => {
                self.assign(&one.0, &other.0) && self.assign(&one.1, &other.1)
            }
            (one, other) => one == other,
        }
    }

    /// Whether a type may stand for one that is not known, and whether something did before.
    fn substitute_for(&mut self, one: &Type, var: &Type) -> (bool, bool) {
        if one == var {
            return (true, true);
        }
        if let Some(known) = self.find(var).cloned() {
            if *one == known {
                return (true, true);
            }
            if !self.assign(one, &known) {
                return (false, true);
            }
            let general = most_general(one, &known);
            if self.is_absent(var, &general) {
                self.bind(var, general);
            }
            return (true, true);
        }
        if self.is_absent(var, one) {
            self.bind(var, one.clone());
            return (true, false);
        }
        (false, false)
    }

    /// Whether a type is no part of another.
    fn is_absent(&self, of: &Type, within: &Type) -> bool {
        if of == within {
            return false;
        }
        match within {
            Type::Var(_) => self.find(within).is_none_or(|within| self.is_absent(of, within)),
            Type::List(item) | Type::Optional(item) | Type::Of(item) => self.is_absent(of, item),
            Type::Map(pair) => self.is_absent(of, &pair.0) && self.is_absent(of, &pair.1),
            _ => true,
        }
    }

    /// A type with what is known; what is not stays, or is [`Type::Dyn`] at the end.
    pub(super) fn resolved(&self, of: &Type, is_end: bool) -> Type {
        match of {
            Type::Var(_) => match self.find(of) {
                Some(known) => self.resolved(known, is_end),
                None if is_end => Type::Dyn,
                None => of.clone(),
            },
            Type::List(item) => Type::list_of(self.resolved(item, is_end)),
            Type::Of(of) => Type::Of(Arc::new(self.resolved(of, is_end))),
            Type::Optional(item) => Type::optional_of(self.resolved(item, is_end)),
            Type::Map(pair) => {
                // A list or map is not a key. Types of keys would double the type at each level.
                let key = scalar(self.resolved(&pair.0, is_end));
                Type::Map(Arc::new((key, self.resolved(&pair.1, is_end))))
            }
            other => other.clone(),
        }
    }
}

/// A type of keys.
pub(super) fn scalar(key: Type) -> Type {
    match key {
        Type::List(_) | Type::Map(_) | Type::Optional(_) => Type::Dyn,
        key => key,
    }
}

/// The more general one of two types that fit.
pub(super) fn most_general(one: &Type, other: &Type) -> Type {
    if is_general(one, other) { one.clone() } else { other.clone() }
}

/// Whether a type is equal or less specific.
fn is_general(one: &Type, other: &Type) -> bool {
    match (one, other) {
        (one, _) if one.is_open() => true,
        (_, other) if other.is_open() => false,
        (Type::Of(_), Type::Of(_)) => true,
        (Type::List(one), Type::List(other)) | (Type::Optional(one), Type::Optional(other)) => {
            is_general(one, other)
        }
        (Type::Map(one), Type::Map(other)) => {
            is_general(&one.0, &other.0) && is_general(&one.1, &other.1)
        }
        (one, other) => one == other,
    }
}
