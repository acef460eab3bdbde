//! Whether an API server compiles an expression: names, fields, functions and types, as cel-go checks
//! them with the declarations of match conditions.
//!
//! A type that is unknown here fits everything. Not for evaluation, which needs no types.

use cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue};

mod functions;
mod literals;
mod types;

use types::{Bindings, Type};

/// Names of types, as values.
const TYPE_NAMES: [&str; 11] = [
    "bool",
    "int",
    "uint",
    "double",
    "string",
    "bytes",
    "list",
    "map",
    "null_type",
    "type",
    "optional_type",
];
/// Maximum depth of an expression that is checked; deeper parts are taken for right.
const MAX_DEPTH: usize = 200;

/// Why an expression does not compile as a match condition.
pub(crate) fn problem(expression: &IdedExpr) -> Option<String> {
    let mut checker = Checker { scope: Vec::new(), depth: 0 };
    match checker.check(expression) {
        Ok(Type::Named("bool") | Type::Unknown) => None,
        Ok(other) => Some(format!("must evaluate to bool but got {other}")),
        Err(problem) => Some(problem),
    }
}

/// Variables of comprehensions, the innermost last.
struct Checker<'e> {
    scope: Vec<(&'e str, Type)>,
    depth: usize,
}

type Checked = Result<Type, String>;

impl<'e> Checker<'e> {
    fn check(&mut self, expression: &'e IdedExpr) -> Checked {
        if self.depth == MAX_DEPTH {
            return Ok(Type::Unknown);
        }
        self.depth += 1;
        let checked = self.check_kind(&expression.expr);
        self.depth -= 1;
        checked
    }

    fn check_kind(&mut self, expression: &'e Expr) -> Checked {
        match expression {
            Expr::Literal(literal) => Ok(literal_type(literal)),
            Expr::Ident(name) => self.variable(name),
            Expr::Select(select) => {
                if !select.test
                    && let Some(found) = self.qualified(&select.operand.expr, &select.field)
                {
                    return Ok(found);
                }
                let field = self.check(&select.operand)?.field(&select.field)?;
                Ok(if select.test { Type::named("bool") } else { field })
            }
            Expr::Call(call) => self.call(call),
            Expr::Comprehension(comprehension) => self.comprehension(comprehension),
            Expr::List(list) => {
                let item = self.same(&list.elements)?;
                Ok(Type::list_of(item))
            }
            Expr::Map(map) => {
                let entries = map.entries.iter().filter_map(|entry| match &entry.expr {
                    EntryExpr::MapEntry(entry) => Some(entry),
                    EntryExpr::StructField(_) => None,
                });
                let (keys, values): (Vec<_>, Vec<_>) =
                    entries.map(|entry| (&entry.key, &entry.value)).unzip();
                Ok(Type::Map(Box::new((self.same(keys)?, self.same(values)?))))
            }
            Expr::Struct(_) | Expr::Unspecified => Ok(Type::Unknown),
        }
    }

    /// The type of all elements.
    fn same(&mut self, elements: impl IntoIterator<Item = &'e IdedExpr>) -> Checked {
        let mut all = Type::Unknown;
        for element in elements {
            let found = self.check(element)?;
            if !all.is_same(&found) {
                return Err(format!("elements have the types {all} and {found}"));
            }
            if all == Type::Unknown {
                all = found;
            }
        }
        Ok(all)
    }

    fn local(&self, name: &str) -> Option<Type> {
        let found = self.scope.iter().rev().find(|(known, _)| *known == name);
        found.map(|(_, of)| of.clone())
    }

    fn variable(&self, name: &str) -> Checked {
        if let Some(local) = self.local(name) {
            return Ok(local);
        }
        match name {
            "object" | "oldObject" => Ok(Type::Dyn),
            "request" => Ok(Type::named("AdmissionRequest")),
            "namespaceObject" => Ok(Type::named("Namespace")),
            "authorizer" => Ok(Type::named("authorizer")),
            name if TYPE_NAMES.contains(&name) => Ok(Type::named("type")),
            _ => Err(format!("undeclared reference to {name:?}")),
        }
    }

    /// Names with dots that are no fields.
    fn qualified(&self, operand: &Expr, field: &str) -> Option<Type> {
        let mut root = operand;
        while let Expr::Select(select) = root {
            root = &select.operand.expr;
        }
        let Expr::Ident(name) = root else { return None };
        if self.local(name).is_some() {
            return None;
        }
        match (&**name, operand, field) {
            ("authorizer", Expr::Ident(_), "requestResource") => Some(Type::named("check")),
            // Types of protocol buffers.
            ("google", ..) => Some(Type::Unknown),
            _ => None,
        }
    }

    fn call(&mut self, call: &'e CallExpr) -> Checked {
        let CallExpr { func_name: name, target, args } = call;
        if name == "_?._"
            && let [operand, field] = &**args
        {
            let of = self.check(operand)?;
            let Expr::Literal(LiteralValue::String(field)) = &field.expr else {
                return Ok(Type::Unknown);
            };
            let found = of.field(field.inner())?;
            return Ok(match found {
                Type::Optional(_) => found,
                found => Type::optional_of(found),
            });
        }
        literals::check(name, args)?;
        let Some(target) = target else { return self.overload(name, name, args.iter()) };
        // Its list may have any elements.
        if name == "format"
            && let [IdedExpr { expr: Expr::List(list), .. }] = &**args
        {
            self.check(target)?;
            list.elements.iter().try_for_each(|element| self.check(element).map(drop))?;
            return Ok(Type::named("string"));
        }
        if functions::MACROS.contains(&(name, args.len())) {
            self.check(target)?;
            return Ok(Type::Unknown);
        }
        // A function with a namespace, such as sets.contains.
        if let Expr::Ident(namespace) = &target.expr
            && self.local(namespace).is_none()
        {
            let qualified = format!("{namespace}.{name}");
            if functions::overloads(&qualified).is_some() {
                return self.overload(&qualified, &qualified, args.iter());
            }
        }
        self.overload(&format!(".{name}"), name, [&**target].into_iter().chain(args))
    }

    fn overload(
        &mut self,
        key: &str,
        name: &str,
        arguments: impl Iterator<Item = &'e IdedExpr>,
    ) -> Checked {
        let arguments = arguments.map(|it| self.check(it)).collect::<Result<Vec<_>, _>>()?;
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
            return Err(format!("undeclared reference to {name:?}"));
        };
        let mut results = Vec::new();
        for (parameters, result) in overloads.iter().filter(|it| it.0.len() == arguments.len()) {
            let mut bindings = Bindings::default();
            if parameters.iter().zip(&arguments).all(|(it, argument)| bindings.fit(it, argument)) {
                results.push(bindings.resolve(result));
            }
        }
        match &*results {
            [] => {
                let types: Vec<_> = arguments.iter().map(ToString::to_string).collect();
                Err(format!("no overload of {name:?} for ({})", types.join(", ")))
            }
            [first, rest @ ..] if rest.iter().all(|it| it == first) => Ok(first.clone()),
            // Which one it is depends on what is known only when it is evaluated.
            _ => Ok(Type::Dyn),
        }
    }

    /// A macro, as the parser expands it.
    fn comprehension(&mut self, it: &'e ComprehensionExpr) -> Checked {
        let (key, item) = match self.check(&it.iter_range)? {
            Type::List(item) => (Type::named("int"), *item),
            Type::Map(pair) => (pair.0.clone(), pair.0),
            open if open.is_open() => (open.clone(), open),
            other => return Err(format!("a {other} cannot be iterated over")),
        };
        let accumulated = self.check(&it.accu_init)?;
        let outside = self.scope.len();
        self.scope.push((&it.accu_var, accumulated));
        match &it.iter_var2 {
            Some(second) => {
                self.scope.push((&it.iter_var, key));
                self.scope.push((second, Type::Unknown));
            }
            None => self.scope.push((&it.iter_var, item)),
        }
        let condition = self.check(&it.loop_cond);
        let step = self.check(&it.loop_step);
        self.scope.truncate(outside);
        condition?;
        self.scope.push((&it.accu_var, step?));
        let result = self.check(&it.result);
        self.scope.truncate(outside);
        result
    }
}

fn literal_type(literal: &LiteralValue) -> Type {
    Type::named(match literal {
        LiteralValue::Boolean(_) => "bool",
        LiteralValue::Bytes(_) => "bytes",
        LiteralValue::Double(_) => "double",
        LiteralValue::Int(_) => "int",
        LiteralValue::Null => "null",
        LiteralValue::String(_) => "string",
        LiteralValue::UInt(_) => "uint",
    })
}

#[cfg(test)]
mod tests {
    use cel::Env;

    use super::*;

    fn found(expression: &str) -> Option<String> {
        let mut env = Env::stdlib().with_optional_support(true);
        drop(env.add_extension(cel::extensions::strings));
        let program = env.compile(expression).expect(expression);
        problem(program.expression())
    }

    #[test]
    fn conditions_of_products_compile() {
        for expression in [
            "true",
            "!(request.resource.group == 'coordination.k8s.io' && request.resource.resource == 'leases')",
            "!('system:nodes' in request.userInfo.groups)",
            "request.resource.resource != 'pods' || !has(object.spec.hostNetwork) || !object.spec.hostNetwork",
            "object.metadata.?labels['a'].orValue('') == 'b'",
            "object.spec.containers.all(c, c.image.startsWith('x/')) && size(object.spec.containers) < 3",
            "request.userInfo.extra.exists(k, k == 'a' && request.userInfo.extra[k].size() > 1)",
            "authorizer.group('').resource('pods').namespace(request.namespace).check('create').allowed()",
            "authorizer.requestResource.check('breakglass').allowed()",
            "namespaceObject.metadata.labels['a'] == 'b'",
            "object.spec.containers.map(c, c.name).filter(n, n != 'a').size() == 0",
            "quantity(object.spec.x).isLessThan(quantity('1Gi')) || ip('1.2.3.4').family() == 4",
            "sets.contains(['a', 'b'], [request.name]) || [1, 2].sum() == 3",
            "(request.dryRun ? 'a' : 'b') == 'a' || type(object) == string",
            "request.options.x == 1 && dyn(1) == 'a'",
        ] {
            assert_eq!(found(expression), None, "{expression}");
        }
    }

    #[test]
    fn what_cel_does_not_compile_is_named() {
        for (expression, problem) in [
            ("objekt.metadata.name == 'a'", "undeclared reference to \"objekt\""),
            ("object.metadata.name", "must evaluate to bool but got dyn"),
            ("'a'", "must evaluate to bool but got string"),
            ("request.foo == 'a'", "AdmissionRequest has no field \"foo\""),
            ("request.name.first == 'a'", "a string has no fields"),
            ("request.name == 1", "no overload of \"_==_\" for (string, int)"),
            ("sum(1, 2) == 3", "undeclared reference to \"sum\""),
            ("request.name.beginsWith('a')", "undeclared reference to \"beginsWith\""),
            ("request.name.startsWith(1)", "no overload of \"startsWith\""),
            ("params.x == 1", "undeclared reference"),
            ("[1, 'a'].size() == 2", "elements have the types"),
            ("request.name.all(c, c == 'a')", "cannot be iterated over"),
            ("1 in 'abc'", "no overload of \"@in\""),
            ("[object.a, 'b'].size() == 2", "elements have the types"),
            ("request.name.matches('(')", "invalid matches argument"),
            ("duration('x') == duration('1h')", "invalid duration argument"),
            ("timestamp('x') == timestamp(object.a)", "invalid timestamp argument"),
        ] {
            let found = found(expression).expect(expression);
            assert!(found.contains(problem), "{expression}: {found}");
        }
    }
}
