//! Whether a template may read what differs between the pods of one owner: their names, and the nodes
//! they run on.
//!
//! The words of a template are searched: what gives all data, or a whole object, to a function may read
//! its name. Not for the name of a workload, which is that of the owner.

/// What a template may read of `.ObjectMeta`: pods of one owner have the same.
const SAME_METADATA: [&str; 6] =
    ["Annotations", "DeletionTimestamp", "GenerateName", "Labels", "Namespace", "OwnerReferences"];
/// The function that reads one annotation of the object it is given.
const ANNOTATION: &str = "annotation";
/// What `.` alone may follow: it prints nothing, and in Istio's own templates it is the item of a list.
const COMPARISONS: [&str; 7] = ["if", "eq", "ne", "lt", "le", "gt", "ge"];
/// What texts are given to: in Istio's own templates, the items of a list.
const QUOTE: &str = "quote";
/// Actions that give all data to what is searched as well.
const BLOCKS: [&str; 3] = ["range", "template", "include"];

/// Whether a template may read the name of a pod, or of its node.
pub(super) fn are_read(template: &str) -> bool {
    let actions = template.split("{{").skip(1);
    actions.map(|rest| rest.split_once("}}").map_or(rest, |(action, _)| action)).any(|action| {
        let words = action.split(|c: char| c.is_whitespace() || "(){}|,".contains(c));
        let words: Vec<_> =
            words.map(|word| word.trim_matches('-')).filter(|word| !word.is_empty()).collect();
        let gives_all = |word: &str| word == "." || word == "$";
        let is_block = words.first().is_some_and(|first| BLOCKS.contains(first));
        // The item of a list that is printed is no object.
        let is_alone = words.len() == 1;
        words.iter().enumerate().any(|(at, word)| {
            let function = at.checked_sub(1).map_or("", |before| words[before]);
            if gives_all(word) {
                let is_quoted = words.get(at + 1) == Some(&QUOTE);
                return !is_alone && !is_block && !is_quoted && !COMPARISONS.contains(&function);
            }
            may_read(function, word)
        })
    })
}

/// Whether a word, which follows another, may read a name.
fn may_read(function: &str, word: &str) -> bool {
    if let Some((_, field)) = word.rsplit_once("ObjectMeta") {
        return match field.strip_prefix('.') {
            None => function != ANNOTATION,
            Some(field) => {
                !SAME_METADATA.contains(&field.split_once('.').map_or(field, |(first, _)| first))
            }
        };
    }
    word.ends_with(".Spec") || word.ends_with(".Spec.NodeName")
}

#[cfg(test)]
mod tests {
    use super::are_read;

    #[test]
    fn names_and_nodes_are_read_by_their_fields_and_with_whole_objects() {
        for template in [
            "{{ .ObjectMeta.Name }}",
            "{{- if eq $.ObjectMeta.Name \"a\" }}x{{ end }}",
            "{{ .ObjectMeta.UID }}",
            "{{ .ObjectMeta.GetName }}",
            "{{ toJson .ObjectMeta }}",
            "{{ (toJson .ObjectMeta) }}",
            "{{ .ObjectMeta | toJson }}",
            "{{ with .ObjectMeta }}{{ .Name }}{{ end }}",
            "{{ $pod := .ObjectMeta }}{{ $pod.Name }}",
            "{{ toJson . }}",
            "{{ printf \"%v\" . }}",
            "{{ dict \"a\" . | toJson }}",
            "{{ . | toJson }}",
            "{{- $x := . -}}{{ toJson $x }}",
            "{{ toYaml $ }}",
            "{{ .Spec.NodeName }}",
            "{{ toJson .Spec }}",
        ] {
            assert!(are_read(template), "{template}");
        }
    }

    #[test]
    fn what_pods_of_one_owner_have_alike_is_no_name() {
        for template in [
            "{{ annotation .ObjectMeta `a` .Values.x }}",
            "{{ (annotation .ObjectMeta `a` `b`) }}",
            "{{ index .ObjectMeta.Labels `app` }}{{ .ObjectMeta.Annotations.a }}",
            "{{ .ObjectMeta.Namespace }}{{ .DeploymentMeta.Name }}",
            "{{ range .Spec.Containers }}{{ .Name }}{{ if eq . 1 }}{{ . }}{{ end }}{{ end }}",
            "{{- template \"x\" . -}}",
            "{{ range .Values.hosts }}- {{ . | quote }}{{ end }}",
            "{{ range .Values.names }}{{ if . }}- name: {{ . }}{{ end }}.{{ end }}",
            "# .ObjectMeta.Name\n",
        ] {
            assert!(!are_read(template), "{template}");
        }
    }
}
