//! A template is read: names, types and places are checked, expressions are compiled.

mod agreed;
mod overlay;
mod parts;

use std::fmt::Write as _;

use injectd_cel::{FieldDef, TypeDef};
use injectd_k8s::selector::Selector;
use serde::Deserialize as _;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::{
    Problem,
    expression::Scope,
    object::{Content, Identity, Parameter, ParameterType, Spec},
    own_entry, parameters, permitted, schema,
    structure::Compiler,
    template::{Condition, Template},
};

/// Fields of `spec` that are no part of a revision.
// No pod gets anything of them: with another hash, all pods would count as outdated.
const NOT_IN_HASH: [&str; 2] = ["rollout", "revisionHistoryLimit"];
/// Hex digits of a hash: a trillion revisions differ.
const HASH_DIGITS: usize = 10;

impl Template {
    /// Reads a `SidecarTemplate` or `ClusterSidecarTemplate`, and checks all of it.
    ///
    /// # Errors
    /// Everything that is wrong, each with its field. A template with a problem is not used.
    pub fn read(object: &Value) -> Result<Self, Vec<Problem>> {
        template(object)
    }
}

fn template(object: &Value) -> Result<Template, Vec<Problem>> {
    let refused = schema::check(object);
    if !refused.is_empty() {
        return Err(refused);
    }
    let identity = identity(object);
    let written = schema::filled(&object["spec"]);
    let not_read = |error: serde_json::Error| vec![Problem::new("spec", error.to_string())];
    let spec = Spec::deserialize(&written).map_err(not_read)?;
    let content = Content::deserialize(&written).map_err(not_read)?;
    let revision = revision(written);
    let mut reader = Reader::new(&spec, &content, identity.namespace.is_some());
    let of_parameters = parameters::check(&spec.parameters, spec.parameter_keys.as_ref());
    reader.compiler.problems.extend(of_parameters);
    reader.selectors();
    let conditions = reader.conditions();
    let params = TypeDef::object("params", spec.parameters.iter().map(field).collect());
    reader.compiler.scope = Scope::of_match().with_parameters(params.clone());
    let variables = reader.variables("spec.variables", &content.variables);
    let validations = reader.validations();
    let steps = reader.steps();
    reader.agreed();
    let Compiler { mut problems, warnings, .. } = reader.compiler;
    if problems.is_empty() {
        let mut parts = Template {
            forms: parameters::forms(&spec.parameters)?.into(),
            identity,
            hash: hash(&revision),
            revision,
            params,
            conditions,
            variables,
            validations,
            steps,
            asks_for_ports: false,
            warnings,
            spec,
        };
        let mut asks = false;
        parts.each_expression(&mut |expression| asks |= expression.asks_for_ports());
        parts.asks_for_ports = asks;
        problems = permitted::problems(&parts);
        problems.extend(own_entry::problems(&parts));
        if problems.is_empty() {
            return Ok(parts);
        }
    }
    problems.sort();
    problems.dedup();
    Err(problems)
}

fn identity(object: &Value) -> Identity {
    let text = |pointer| object.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    let is_namespaced = object.get("kind").and_then(Value::as_str) == Some("SidecarTemplate");
    // Where kubectl creates an object of a manifest without a namespace.
    let namespace = text("/metadata/namespace").unwrap_or_else(|| "default".to_owned());
    Identity {
        namespace: is_namespaced.then_some(namespace),
        name: text("/metadata/name").unwrap_or_default(),
    }
}

/// The text of a revision: a `spec` with its defaults, without what says how it is rolled out.
fn revision(mut spec: Value) -> Box<str> {
    if let Some(fields) = spec.as_object_mut() {
        fields.retain(|name, _| !NOT_IN_HASH.contains(&&**name));
    }
    // Keys in another order are the same template, and must have the same hash.
    spec.sort_all_objects();
    spec.to_string().into()
}

/// The hash of a revision.
fn hash(revision: &str) -> String {
    let digest = Sha256::digest(revision);
    let mut hex = String::new();
    for byte in &digest[..HASH_DIGITS / 2] {
        // Writing to a text does not fail.
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

/// A parameter as a field of `params`.
fn field(parameter: &Parameter) -> FieldDef {
    let of = |of: ParameterType| match of {
        ParameterType::Integer => TypeDef::Int,
        ParameterType::Boolean => TypeDef::Bool,
        ParameterType::Quantity => TypeDef::Quantity,
        ParameterType::Duration => TypeDef::Duration,
        ParameterType::String | ParameterType::List | ParameterType::Map => TypeDef::String,
    };
    let items = |scalar: &Option<crate::object::Scalar>| {
        of(scalar.as_ref().map_or(ParameterType::String, |scalar| scalar.r#type))
    };
    let of = match parameter.r#type {
        ParameterType::List => items(&parameter.items).list(),
        ParameterType::Map => items(&parameter.values).map(),
        scalar => of(scalar),
    };
    if parameters::may_be_absent(parameter) {
        FieldDef::optional(&parameter.name, of)
    } else {
        FieldDef::required(&parameter.name, of)
    }
}

/// Reads what the schema has accepted: what it refuses is not looked at again.
struct Reader<'t> {
    spec: &'t Spec,
    content: &'t Content,
    is_namespaced: bool,
    compiler: Compiler<'t>,
}

impl<'t> Reader<'t> {
    fn new(spec: &'t Spec, content: &'t Content, is_namespaced: bool) -> Self {
        let compiler = Compiler::new(Scope::of_match(), spec.field_validation);
        Self { spec, content, is_namespaced, compiler }
    }

    fn problem(&mut self, field: &str, text: &str) {
        self.compiler.problem(field, text);
    }

    /// Selectors are those of labels that may exist.
    fn selectors(&mut self) {
        let of = &self.spec.r#match;
        for (name, selector) in
            [("namespaceSelector", &of.namespace_selector), ("podSelector", &of.pod_selector)]
        {
            if let Some(Err(problem)) = selector.clone().map(Selector::valid) {
                self.problem(&format!("spec.match.{name}"), &problem.to_string());
            }
        }
    }

    fn conditions(&mut self) -> Box<[Condition]> {
        let mut conditions = Vec::new();
        for (index, condition) in self.content.r#match.conditions.iter().enumerate() {
            let field = format!("spec.match.conditions[{index}].expression");
            let compiled = self.compiler.scope.condition(&field, &condition.expression);
            if let Some(expression) = self.compiler.keep(compiled) {
                conditions.push(Condition { name: condition.name.clone(), expression });
            }
        }
        conditions.into()
    }
}

#[cfg(test)]
mod tests;
