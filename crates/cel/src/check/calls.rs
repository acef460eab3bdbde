//! Calls: which function, and which of its overloads fit the types.

use super::{Call, Checker, Found, Id, Resolved, Type, format, functions, types::Bindings};
use crate::{ast::Node, limits::shortened};

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
            let found = self.check(operand)?.field(field)?;
            return Ok(match found {
                Type::Optional(_) => found,
                found => Type::optional_of(found),
            });
        }
        // Chains of && and || have more than two arguments here.
        if matches!(name, "_&&_" | "_||_") {
            return self.logic(id, call);
        }
        let Some(target) = call.target else {
            let key = name.strip_prefix('.').unwrap_or(name);
            return self.overload(id, key, &call.arguments);
        };
        // Its list may have any elements.
        if name == "format"
            && let [list] = *call.arguments
            && let Node::List(items) = self.ast.node(list)
        {
            let text = self.check(target)?;
            self.mixed += 1;
            let types = items.iter().map(|item| self.check(item.value));
            let types = types.collect::<Result<Vec<_>, _>>();
            self.mixed -= 1;
            let types = types?;
            if !text.is_same(&Type::named("string")) && !text.is_open() {
                return Err(format!("no overload of \"format\" for ({text})"));
            }
            if let Some(format) = self.ast.node(target).as_text() {
                format::check(format, &types)?;
            }
            let overload = functions::overloads(".format").and_then(|overloads| overloads.first());
            self.resolve(id, ".format", overload);
            return Ok(Type::named("string"));
        }
        // A function with a namespace, such as sets.contains.
        if let Some(namespace) = self.ast.node(target).as_ident()
            && self.local(namespace).is_none()
        {
            let namespace = namespace.strip_prefix('.').unwrap_or(namespace);
            let qualified = format!("{namespace}.{name}");
            if functions::overloads(&qualified).is_some() {
                return self.overload(id, &qualified, &call.arguments);
            }
        }
        let arguments: Vec<_> =
            [target].into_iter().chain(call.arguments.iter().copied()).collect();
        self.overload(id, &format!(".{name}"), &arguments)
    }

    fn logic(&mut self, id: Id, call: &'e Call) -> Found {
        for argument in &call.arguments {
            let found = self.check(*argument)?;
            if !found.is_open() && found != Type::named("bool") {
                let name = &call.function;
                return Err(format!("no overload of {name:?} for ({found})"));
            }
        }
        self.resolve(id, &call.function, None);
        Ok(Type::named("bool"))
    }

    fn resolve(&mut self, id: Id, name: &str, overload: Option<&'static functions::Overload>) {
        self.calls.insert(id.index(), Resolved { name: name.to_owned(), overload });
    }

    fn overload(&mut self, id: Id, key: &str, arguments: &[Id]) -> Found {
        let types = arguments.iter().map(|argument| self.check(*argument));
        let arguments = types.collect::<Result<Vec<_>, _>>()?;
        let name = key.strip_prefix('.').unwrap_or(key);
        // cel-go prepares keys that are literals, and those of maps and lists are known types.
        if let (
            "_[_]",
            [of, found @ (Type::List(_) | Type::Map(_) | Type::Named("null" | "bytes"))],
        ) = (name, &*arguments)
            && of.is_open()
        {
            return Err(format!("a {found} is not a key"));
        }
        let Some(overloads) = functions::overloads(key) else {
            return Err(format!("undeclared reference to {:?}", shortened(name)));
        };
        let mut fitting = Vec::new();
        for overload in
            overloads.iter().filter(|overload| overload.parameters.len() == arguments.len())
        {
            let mut bindings = Bindings::default();
            let mut pairs = overload.parameters.iter().zip(&arguments);
            if pairs.all(|(parameter, argument)| bindings.fit(parameter, argument)) {
                fitting.push((overload, bindings.resolve(&overload.result)));
            }
        }
        // What is free takes the types of the first one, which no other overload fits then.
        if arguments.iter().any(Type::is_free) {
            fitting.truncate(1);
        }
        self.resolve(
            id,
            key,
            match &*fitting {
                [(overload, _)] => Some(overload),
                _ => None,
            },
        );
        match &*fitting {
            [] => {
                let types: Vec<_> =
                    arguments.iter().take(MAX_SHOWN).map(ToString::to_string).collect();
                Err(format!("no overload of {name:?} for ({})", shortened(&types.join(", "))))
            }
            [(_, only)] => Ok(only.clone()),
            [(_, first), rest @ ..]
                if !first.is_free() && rest.iter().all(|(_, it)| it == first) =>
            {
                Ok(first.clone())
            }
            // Which one it is depends on what is known only when it is evaluated.
            _ => Ok(Type::Dyn),
        }
    }
}
