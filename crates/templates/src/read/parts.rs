//! Variables, validations and steps of a template.

use injectd_cel::TypeDef;
use serde_json::Value;

use super::Reader;
use crate::{
    expression::Written,
    object::{self, ContainerKind, Position},
    structure::{Constant, Origin, Structure},
    template::{ForEach, Message, Place, Rule, Select, Step, Validation, Variable},
};

/// Names that expressions of rules and of `forEach` have.
const CONTAINER: &str = "container";
const INDEX: &str = "index";
const ITEM: &str = "item";
const KEY: &str = "key";

impl<'t> Reader<'t> {
    /// Variables, each in the scope of those before it. What is compiled next may name them.
    pub(super) fn variables(
        &mut self,
        field: &str,
        written: &'t [object::Variable],
    ) -> Box<[Variable]> {
        let mut variables = Vec::with_capacity(written.len());
        for (index, variable) in written.iter().enumerate() {
            let field = format!("{field}[{index}]");
            let name = &*variable.name;
            if self.compiler.variables.iter().any(|known| known.name == name) {
                let text =
                    format!("the template has a variable {name:?} already: use another name");
                self.problem(&format!("{field}.name"), &text);
            }
            let value = self.variable(&field, variable);
            let scope = self.compiler.scope.clone();
            self.compiler.scope = scope.with_variable(name, &value.type_of());
            let (field, of) = match &variable.value {
                Some(value) => (format!("{field}.value"), value),
                None => (format!("{field}.expression"), &Value::Null),
            };
            self.compiler.variables.push(Origin { name, field, value: of });
            variables.push(Variable { name: name.to_owned(), value });
        }
        variables.into()
    }

    fn variable(&mut self, field: &str, variable: &object::Variable) -> Structure {
        let Some(text) = &variable.expression else {
            let value = variable.value.as_ref().unwrap_or(&Value::Null);
            return self.compiler.compile(&format!("{field}.value"), value, None);
        };
        let field = format!("{field}.expression");
        let compiled = self.compiler.scope.compile(Written::whole(&field, text));
        match self.compiler.keep(compiled) {
            Some(expression) => Structure::slot(expression),
            None => Structure::Constant(Constant::Null),
        }
    }

    pub(super) fn validations(&mut self) -> Box<[Validation]> {
        let mut validations = Vec::new();
        for (index, written) in self.content.validations.iter().enumerate() {
            let field = format!("spec.validations[{index}]");
            let of_expression = format!("{field}.expression");
            let compiled = self.compiler.scope.condition(&of_expression, &written.expression);
            let expression = self.compiler.keep(compiled);
            let message = self.message(&field, written);
            if let (Some(expression), Some(message)) = (expression, message) {
                validations.push(Validation { expression, action: written.action, message });
            }
        }
        validations.into()
    }

    fn message(&mut self, field: &str, written: &object::Validation) -> Option<Message> {
        let Some(text) = &written.message_expression else {
            return Some(Message::of(written));
        };
        let field = format!("{field}.messageExpression");
        let is_text = |of: &TypeDef| matches!(of, TypeDef::String | TypeDef::Dyn);
        let written = Written::whole(&field, text);
        let compiled = self.compiler.scope.compile_as(written, "a text", is_text);
        self.compiler.keep(compiled).map(Box::new).map(Message::Expression)
    }

    pub(super) fn steps(&mut self) -> Box<[Step]> {
        let steps = self.content.steps.iter().enumerate();
        steps.map(|(index, step)| self.step(&format!("spec.steps[{index}]"), step)).collect()
    }

    fn step(&mut self, field: &str, written: &'t object::Step) -> Step {
        let scope = self.compiler.scope.clone();
        let known = self.compiler.variables.len();
        let for_each = written.for_each.as_ref();
        // First, for all below may read its item and its variables.
        let for_each = for_each.and_then(|each| self.for_each(&format!("{field}.forEach"), each));
        let when = written.when.as_ref().and_then(|text| {
            let compiled = self.compiler.scope.condition(&format!("{field}.when"), text);
            self.compiler.keep(compiled).map(Box::new)
        });
        let overlay = self.overlay(&format!("{field}.overlay"), written);
        let placed = &written.placement;
        let mut place = |list: &str, place: &Option<object::Place>| {
            self.place(&format!("{field}.placement.{list}"), place.as_ref())
        };
        let init_containers = place("initContainers", &placed.init_containers);
        let containers = place("containers", &placed.containers);
        let rules = written.containers.iter().enumerate();
        let rules = rules
            .filter_map(|(index, rule)| self.rule(&format!("{field}.containers[{index}]"), rule));
        let rules = rules.collect();
        self.compiler.scope = scope;
        // The next step must not see what `forEach` declared.
        self.compiler.variables.truncate(known);
        Step {
            field: field.to_owned(),
            name: written.name.clone(),
            when,
            for_each: for_each.map(Box::new),
            overlay,
            existing: written.existing,
            on_conflict: written.on_conflict,
            init_containers,
            containers,
            rules,
        }
    }

    fn for_each(&mut self, field: &str, written: &'t object::ForEach) -> Option<ForEach> {
        let of_items = format!("{field}.items");
        let is_collection =
            |of: &TypeDef| matches!(of, TypeDef::List(_) | TypeDef::Map(_) | TypeDef::Dyn);
        let items = Written::whole(&of_items, &written.items);
        let compiled = self.compiler.scope.compile_as(items, "a list or a map", is_collection);
        let items = self.compiler.keep(compiled)?;
        let (item, key) = match &items.of {
            TypeDef::List(item) => ((**item).clone(), TypeDef::Int),
            TypeDef::Map(value) => ((**value).clone(), TypeDef::String),
            _ => (TypeDef::Dyn, TypeDef::Dyn),
        };
        let scope = self.compiler.scope.clone().with(ITEM, item).with(KEY, key);
        self.compiler.scope = scope.with(INDEX, TypeDef::Int);
        let variables = self.variables(&format!("{field}.variables"), &written.variables);
        Some(ForEach { items, variables })
    }

    fn place(&mut self, field: &str, written: Option<&object::Place>) -> Place {
        let Some(written) = written else { return Place::default() };
        let name = written.name.as_ref().map(|name| {
            let value = Value::String(name.clone());
            self.compiler.compile(&format!("{field}.name"), &value, Some(super::overlay::name()))
        });
        Place { position: written.position, name, otherwise: written.otherwise }
    }

    fn rule(&mut self, field: &str, written: &object::Rule) -> Option<Rule> {
        let scope = self.compiler.scope.clone();
        self.compiler.scope =
            scope.clone().with(CONTAINER, TypeDef::container()).with(INDEX, TypeDef::Int);
        let select = written.select.as_ref();
        let select = select.map(|select| self.select(&format!("{field}.select"), select));
        if written.kinds.contains(&ContainerKind::Added)
            && !matches!(written.select, Some(object::Select::Names(_)))
        {
            let text = "containers that other templates add are selected by name only: \
                write select: {names: […]}";
            self.problem(&format!("{field}.kinds"), text);
        }
        let overlay = self.container_overlay(&format!("{field}.overlay"), written);
        self.compiler.scope = scope;
        let select = match select {
            // A rule without a selection is for all containers: one that does not compile must not
            // become that.
            Some(select) => Some(select?),
            None => None,
        };
        Some(Rule {
            field: field.to_owned(),
            kinds: written.kinds.clone(),
            select,
            overlay,
            existing: written.existing,
            existing_env: written.existing_env.clone(),
            env_first: written.placement.env == Some(Position::First),
        })
    }

    fn select(&mut self, field: &str, written: &object::Select) -> Option<Select> {
        match written {
            object::Select::Expression(text) => {
                let field = format!("{field}.expression");
                let compiled = self.compiler.scope.condition(&field, text);
                self.compiler.keep(compiled).map(Box::new).map(Select::Expression)
            }
            object::Select::Names(names) => {
                let field = format!("{field}.names");
                let of = Some(super::overlay::names());
                Some(Select::Names(self.compiler.compile(&field, names, of)))
            }
        }
    }
}
