//! Calls: which function, and which of its overloads fit the types.

use super::{Call, Checker, Found, Id, Mismatch, Resolved, Type, functions::Overload};
use crate::{limits::shortened, parse::added_arguments};

/// Arguments whose types an error shows. No function has more.
const MAX_SHOWN: usize = 4;

impl<'e> Checker<'e> {
    pub(super) fn call(&mut self, id: Id, call: &'e Call) -> Found {
        let name = &*call.function;
        if name == "_?._"
            && let [operand, field] = *call.arguments
            && let Some(field) = self.ast.node(field).as_text()
        {
            self.resolve(id, name, None);
            return self.field(operand, field, true);
        }
        for argument in &call.arguments {
            self.check(*argument).map_err(|mismatch| self.first_of_call(id, call, mismatch))?;
        }
        // Chains of && and || have more than two arguments here.
        if matches!(name, "_&&_" | "_||_") {
            return self.logic(id, call);
        }
        let Some(target) = call.target else {
            let key = name.strip_prefix('.').unwrap_or(name);
            return self.overload(id, key, &call.arguments);
        };
        if let Some(qualified) = self.qualified_function(target, name) {
            return self.overload(id, &qualified, &call.arguments);
        }
        self.check(target)?;
        let arguments: Vec<_> =
            [target].into_iter().chain(call.arguments.iter().copied()).collect();
        self.overload(id, &format!(".{name}"), &arguments)
    }

    /// A function with a namespace, such as `sets.contains`.
    fn qualified_function(&self, target: Id, name: &str) -> Option<String> {
        let namespace = self.ast.node(target).as_ident()?;
        if self.local(namespace).is_some() {
            return None;
        }
        let qualified = format!("{}.{name}", namespace.strip_prefix('.').unwrap_or(namespace));
        self.environment.overloads(&qualified).is_some().then_some(qualified)
    }

    /// The mistake that comes first in the text: that of an argument, that of the target, or that there is
    /// no such function.
    fn first_of_call(&mut self, id: Id, call: &'e Call, mismatch: Mismatch) -> Mismatch {
        let name = &*call.function;
        let undeclared = format!("undeclared reference to {:?}", shortened(name));
        let other = match call.target {
            None if self
                .environment
                .overloads(name.strip_prefix('.').unwrap_or(name))
                .is_none() =>
            {
                Mismatch { at: Some(id), text: undeclared }
            }
            None => return mismatch,
            Some(target) if self.qualified_function(target, name).is_some() => return mismatch,
            Some(target) => match self.check(target) {
                Err(of_target) => of_target,
                Ok(_) if self.environment.overloads(&format!(".{name}")).is_none() => {
                    Mismatch { at: Some(id), text: undeclared }
                }
                Ok(_) => return mismatch,
            },
        };
        let offset = |of: &Mismatch| of.at.map(|id| self.ast.offset(id));
        if offset(&other) < offset(&mismatch) { other } else { mismatch }
    }

    fn logic(&mut self, id: Id, call: &'e Call) -> Found {
        for argument in &call.arguments {
            let found = self.check(*argument)?;
            if !self.bindings.is_assignable(&found, &Type::named("bool")) {
                let text = format!("no overload of {:?} for ({found})", call.function);
                return Err(Mismatch { at: Some(*argument), text });
            }
        }
        self.resolve(id, &call.function, None);
        Ok(Type::named("bool"))
    }

    fn resolve(&mut self, id: Id, name: &str, overload: Option<&'static Overload>) {
        self.calls.insert(id.index(), Resolved { name: name.to_owned(), overload });
    }

    fn overload(&mut self, id: Id, key: &str, ids: &[Id]) -> Found {
        let types = ids.iter().map(|argument| self.check(*argument));
        let arguments = types.collect::<Result<Vec<_>, _>>()?;
        let name = key.strip_prefix('.').unwrap_or(key);
        let Some(overloads) = self.environment.overloads(key) else {
            return Err(format!("undeclared reference to {:?}", shortened(name)).into());
        };
        let mut result: Option<Type> = None;
        let (mut only, mut count) = (None, 0_usize);
        for overload in overloads.iter().filter(|one| one.parameters.len() == arguments.len()) {
            let Some(found) = self.fit(overload, &arguments) else { continue };
            count += 1;
            only = Some(overload);
            result = Some(match result {
                None => found,
                Some(Type::Dyn) => Type::Dyn,
                Some(first) if first == found => first,
                Some(_) => Type::Dyn,
            });
        }
        self.resolve(id, key, only.filter(|_| count == 1));
        result.ok_or_else(|| {
            let types: Vec<_> = arguments
                .iter()
                .skip(added_arguments(name))
                .take(MAX_SHOWN)
                .map(|of| self.bindings.resolved(of, true).to_string())
                .collect();
            format!("no overload of {name:?} for ({})", shortened(&types.join(", "))).into()
        })
    }

    /// The result of an overload, if it fits.
    fn fit(&mut self, overload: &'static Overload, arguments: &[Type]) -> Option<Type> {
        let mut letters = Vec::new();
        let parameters: Vec<_> =
            overload.parameters.iter().map(|of| self.instance(of, &mut letters)).collect();
        let result = self.instance(overload.result(), &mut letters);
        let pairs: Vec<_> = arguments.iter().zip(&parameters).collect();
        self.bindings.are_assignable(&pairs).then(|| self.bindings.resolved(&result, false))
    }

    /// A type of an overload, with types of this call for its letters.
    fn instance(&mut self, of: &Type, letters: &mut Vec<(char, Type)>) -> Type {
        match of {
            Type::Any(letter) => {
                if let Some((_, known)) = letters.iter().find(|(known, _)| known == letter) {
                    return known.clone();
                }
                let new = self.bindings.new_var();
                letters.push((*letter, new.clone()));
                new
            }
            Type::List(item) => Type::list_of(self.instance(item, letters)),
            Type::Of(of) => Type::Of(std::sync::Arc::new(self.instance(of, letters))),
            Type::Optional(item) => Type::optional_of(self.instance(item, letters)),
            Type::Map(pair) => {
                let key = self.instance(&pair.0, letters);
                Type::Map(std::sync::Arc::new((key, self.instance(&pair.1, letters))))
            }
            other => other.clone(),
        }
    }
}
