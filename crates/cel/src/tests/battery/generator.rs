//! Random expressions from a seed, made from the declarations of the functions: most of them compile.

use injectd_testkit::generator::random::Random;

use super::oracle::Question;
use crate::check::{Type, declared};

mod words;

use words::{
    BYTES, CIDRS, DOUBLES, DURATIONS, FIELDS, INTS, IPS, NAMES, OPTIONALS, QUANTITIES, RESULTS,
    SCALARS, SPECIAL, TEXTS, TIMES, UINTS, URLS, VERSIONS,
};

/// A random expression, for random data.
pub(super) fn question(seed: u64, data: usize) -> Question {
    let mut random = Random::new(seed);
    let is_typed = random.percent(40);
    let data = random.below(data);
    let depth = random.between(1, 4);
    let mut generator = Generator { random, scope: Vec::new() };
    let of = Type::read(generator.random.pick(&RESULTS));
    Question::new(generator.expression(&of, depth), is_typed, data)
}

struct Generator {
    random: Random,
    /// Variables of macros.
    scope: Vec<(&'static str, Type)>,
}

impl Generator {
    fn any(&mut self) -> Type {
        match self.random.below(10) {
            0 => Type::list_of(Type::read(self.random.pick(&SCALARS))),
            1 => Type::read("map<string,string>"),
            2 => Type::Dyn,
            _ => Type::read(self.random.pick(&SCALARS)),
        }
    }

    /// An expression that probably has this type.
    fn expression(&mut self, of: &Type, depth: usize) -> String {
        if self.random.percent(2) {
            let other = self.any();
            return self.expression(&other, depth);
        }
        if of.is_open() {
            let of = self.any();
            let inner = self.expression(&of, depth);
            return if self.random.percent(40) { format!("dyn({inner})") } else { inner };
        }
        if let Some(name) = self.variable(of) {
            return name;
        }
        if depth == 0 || self.random.percent(12) {
            return self.leaf(of);
        }
        match self.random.below(12) {
            0 => {
                let parts = [&Type::read("bool"), of, of].map(|of| self.expression(of, depth - 1));
                format!("({} ? {} : {})", parts[0], parts[1], parts[2])
            }
            1..=3 => self.in_macro(of, depth).unwrap_or_else(|| self.call(of, depth)),
            _ => self.call(of, depth),
        }
    }

    fn variable(&mut self, of: &Type) -> Option<String> {
        let fitting: Vec<_> =
            self.scope.iter().filter(|(_, known)| known == of).map(|(name, _)| *name).collect();
        (!fitting.is_empty() && self.random.percent(60))
            .then(|| self.random.one_of(&fitting).to_string())
    }

    /// A literal or a field.
    fn leaf(&mut self, of: &Type) -> String {
        if self.random.percent(45)
            && let Some(field) = self.field(of, &FIELDS)
        {
            return field;
        }
        match of {
            Type::Named("bool") => self.random.pick(&["true", "false"]).to_owned(),
            Type::Named("int") => self.random.pick(&INTS).to_owned(),
            Type::Named("uint") => self.random.pick(&UINTS).to_owned(),
            Type::Named("double") => self.random.pick(&DOUBLES).to_owned(),
            Type::Named("string") => self.random.pick(&TEXTS).to_owned(),
            Type::Named("bytes") => self.random.pick(&BYTES).to_owned(),
            Type::Named("null") => "null".to_owned(),
            Type::Named("type") => self.random.pick(&["int", "string", "list", "type"]).to_owned(),
            Type::List(item) => {
                let count = self.random.below(4);
                let items: Vec<_> = (0..count).map(|_| self.leaf(item)).collect();
                format!("[{}]", items.join(", "))
            }
            Type::Map(pair) => {
                let count = self.random.below(3);
                let entry = |_| format!("{}: {}", self.leaf(&pair.0), self.leaf(&pair.1));
                format!("{{{}}}", (0..count).map(entry).collect::<Vec<_>>().join(", "))
            }
            Type::Optional(item) => {
                if let Some(field) = self.field(item, &OPTIONALS) {
                    return field;
                }
                let inner = self.leaf(item);
                self.random.pick(&["optional.none()", "optional.of(X)"]).replace('X', &inner)
            }
            Type::Named("timestamp") => format!("timestamp({})", self.random.pick(TIMES)),
            Type::Named("duration") => format!("duration({})", self.random.pick(DURATIONS)),
            Type::Named("quantity") => format!("quantity({})", self.random.pick(QUANTITIES)),
            Type::Named("ip") => format!("ip({})", self.random.pick(IPS)),
            Type::Named("cidr") => format!("cidr({})", self.random.pick(CIDRS)),
            Type::Named("url") => format!("url({})", self.random.pick(URLS)),
            Type::Named("semver") => format!("semver({})", self.random.pick(VERSIONS)),
            Type::Named("format") => "format.dns1123Label()".to_owned(),
            _ => self
                .random
                .pick(&["object", "object.spec", "dyn(1)", "dyn('a')", "dyn([1])"])
                .to_owned(),
        }
    }

    fn field(&mut self, of: &Type, fields: &[(&'static str, &str)]) -> Option<String> {
        let fits = |found: &str| Type::read(found) == *of;
        let fitting: Vec<_> =
            fields.iter().filter(|(_, found)| fits(found)).map(|(path, _)| *path).collect();
        (!fitting.is_empty()).then(|| self.random.one_of(&fitting).to_string())
    }

    /// A call of a function that has this type.
    fn call(&mut self, of: &Type, depth: usize) -> String {
        let fitting: Vec<_> = declared()
            .iter()
            .filter(|(name, _)| !name.contains('@') || **name == "@in")
            .flat_map(|(name, overloads)| overloads.iter().map(move |overload| (*name, overload)))
            .filter(|(_, overload)| {
                is_result(overload.result(), of) && !overload.result().is_open()
            })
            .collect();
        let Some(choice) = fitting.len().checked_sub(1) else { return self.leaf(of) };
        // The table has no order.
        let mut fitting = fitting;
        fitting.sort_by_key(|(name, overload)| (*name, format!("{overload:?}")));
        let (name, overload) = fitting[self.random.below(choice + 1)];
        let any = self.any();
        let other = self.any();
        let arguments: Vec<_> = overload
            .parameters
            .iter()
            .enumerate()
            .map(|(place, parameter)| {
                let special = SPECIAL.iter().find(|(of, at, _)| *of == name && *at == place);
                match special {
                    Some((.., texts)) if name == "lists.range" || self.random.percent(75) => {
                        self.random.pick(texts).to_owned()
                    }
                    _ => self.expression(&bound(parameter, &any, &other), depth - 1),
                }
            })
            .collect();
        written(name, &arguments)
    }

    fn in_macro(&mut self, of: &Type, depth: usize) -> Option<String> {
        let item = self.any();
        let (first, second) = (self.random.pick(&NAMES), self.random.pick(&NAMES));
        let is_map = self.random.percent(30);
        let range = if is_map {
            Type::Map(std::sync::Arc::new((Type::read("string"), item.clone())))
        } else {
            Type::list_of(item.clone())
        };
        let range = self.expression(&range, depth - 1);
        let key = Type::read(if is_map { "string" } else { "int" });
        let bool = Type::read("bool");
        let one = if is_map { key.clone() } else { item.clone() };
        let two = self.random.percent(30);
        let mut scope =
            if two { vec![(first, key), (second, item)] } else { vec![(first, one.clone())] };
        let variables = if two { format!("{first}, {second}") } else { first.to_owned() };
        let text = match of {
            Type::Named("bool") => {
                let name = self.random.pick(&["all", "exists", "exists_one"]);
                let body = self.within(&mut scope, &bool, depth);
                format!("{range}.{name}({variables}, {body})")
            }
            Type::List(result) if two => {
                let body = self.within(&mut scope, result, depth);
                format!("{range}.transformList({variables}, {body})")
            }
            Type::List(result) if self.random.percent(60) => {
                let body = self.within(&mut scope, result, depth);
                format!("{range}.map({variables}, {body})")
            }
            Type::List(result) => {
                let list = self.expression(&Type::list_of((**result).clone()), depth - 1);
                let mut scope = vec![(first, (**result).clone())];
                if self.random.percent(50) {
                    let body = self.within(&mut scope, &bool, depth);
                    format!("{list}.filter({first}, {body})")
                } else {
                    let key = Type::read(self.random.pick(&SCALARS));
                    let body = self.within(&mut scope, &key, depth);
                    format!("{list}.sortBy({first}, {body})")
                }
            }
            Type::Map(pair) if two => {
                let body = self.within(&mut scope, &pair.1, depth);
                format!("{range}.transformMap({variables}, {body})")
            }
            Type::Optional(result) => {
                let start = self.expression(&Type::optional_of(one.clone()), depth - 1);
                let mut scope = vec![(first, one)];
                let body = self.within(&mut scope, result, depth);
                format!("{start}.optMap({first}, {body})")
            }
            _ => return None,
        };
        Some(text)
    }

    fn within(&mut self, scope: &mut Vec<(&'static str, Type)>, of: &Type, depth: usize) -> String {
        let outside = self.scope.len();
        self.scope.append(scope);
        let body = self.expression(of, depth - 1);
        self.scope.truncate(outside);
        body
    }
}

/// Whether a call may have a type.
fn is_result(result: &Type, of: &Type) -> bool {
    match (result, of) {
        (Type::Any(_), _) => true,
        (Type::List(one), Type::List(other)) | (Type::Optional(one), Type::Optional(other)) => {
            is_result(one, other)
        }
        (Type::Map(one), Type::Map(other)) => {
            is_result(&one.0, &other.0) && is_result(&one.1, &other.1)
        }
        (one, other) => one == other,
    }
}

/// A parameter with what its letters stand for.
fn bound(parameter: &Type, any: &Type, other: &Type) -> Type {
    match parameter {
        Type::Any(letter) => if *letter == 'A' { any } else { other }.clone(),
        Type::List(item) => Type::list_of(bound(item, any, other)),
        Type::Optional(item) => Type::optional_of(bound(item, any, other)),
        Type::Map(pair) => {
            // Lists and maps are not keys.
            let key = match bound(&pair.0, any, other) {
                Type::List(_) | Type::Map(_) | Type::Dyn => Type::read("string"),
                key => key,
            };
            Type::Map(std::sync::Arc::new((key, bound(&pair.1, any, other))))
        }
        other => other.clone(),
    }
}

/// A call as it is written.
fn written(name: &str, arguments: &[String]) -> String {
    match (name, arguments) {
        ("_?_:_", [condition, yes, no]) => format!("({condition} ? {yes} : {no})"),
        ("_[_]", [of, index]) => format!("{of}[{index}]"),
        ("_[?_]", [of, index]) => format!("{of}[?{index}]"),
        ("@in", [item, list]) => format!("({item} in {list})"),
        ("!_" | "-_", [value]) => format!("{}({value})", &name[..1]),
        (operator, [one, other]) if operator.starts_with('_') => {
            format!("({one} {} {other})", operator.trim_matches('_'))
        }
        (name, arguments) => match name.strip_prefix('.') {
            Some(name) => {
                let target = if arguments[0].starts_with('-') {
                    format!("({})", arguments[0])
                } else {
                    arguments[0].clone()
                };
                format!("{target}.{name}({})", arguments[1..].join(", "))
            }
            None => format!("{name}({})", arguments.join(", ")),
        },
    }
}
