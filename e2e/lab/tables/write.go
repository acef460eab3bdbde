package main

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// required has the fields without which the API server rejects an object, and those that its admission
// plugins set before they ask webhooks: what types and defaulting do not tell. The end-to-end
// scenarios of webhooks ask an API server about them.
//
//go:embed required.txt
var required string

// write joins the tables of releases: what any of them has, and the fields that are always there in all
// of them.
func write(folder string, files []string) error {
	var resources []Resource
	found := map[schema.GroupVersionKind]Kind{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		var release Release
		if err := json.Unmarshal(text, &release); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		resources = append(resources, release.Resources...)
		for _, kind := range release.Kinds {
			if other, is := found[kind.GroupVersionKind]; is {
				kind.restrict(other)
			}
			found[kind.GroupVersionKind] = kind
		}
	}
	if err := require(found); err != nil {
		return err
	}
	tables := map[string]string{"resources.txt": resourceLines(resources), "fields.txt": fieldLines(found)}
	for name, text := range tables {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// restrict keeps what is also in the kind of another release.
func (kind *Kind) restrict(other Kind) {
	for field, state := range kind.Fields {
		kind.Fields[field] = min(state, other.Fields[field])
	}
	for _, at := range other.PodSpecs {
		if !slices.Contains(kind.PodSpecs, at) {
			kind.PodSpecs = append(kind.PodSpecs, at)
		}
	}
}

// require adds the fields of required.txt: group, kind and fields in each line.
func require(found map[schema.GroupVersionKind]Kind) error {
	for line := range strings.Lines(required) {
		words := strings.Fields(line)
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		is := false
		for gvk, kind := range found {
			if named(gvk.Group) == words[0] && gvk.Kind == words[1] {
				is = true
				for _, field := range words[2:] {
					kind.Fields[field] = present
				}
			}
		}
		if !is {
			return fmt.Errorf("required.txt: no kind %s of the group %s", words[1], words[0])
		}
	}
	return nil
}

// named is the name of a group in the tables.
func named(group string) string {
	return cmp.Or(group, "core")
}

// coreFirst is how groups are ordered.
func coreFirst(one, other string) int {
	if one == "" || other == "" {
		return cmp.Compare(len(one), len(other))
	}
	return cmp.Compare(one, other)
}

// resourceLines has a line for each resource: group, name, kind, scope, operations, versions and short
// names.
func resourceLines(all []Resource) string {
	type key struct{ group, name string }
	joined := map[key]Resource{}
	versions := map[key][]string{}
	for _, it := range all {
		key := key{it.Group, it.Name}
		versions[key] = append(versions[key], it.Version)
		for _, operation := range joined[key].Operations {
			if !slices.Contains(it.Operations, operation) {
				it.Operations = append(it.Operations, operation)
			}
		}
		joined[key] = it
	}
	keys := slices.SortedFunc(maps.Keys(joined), func(one, other key) int {
		return cmp.Or(coreFirst(one.group, other.group), cmp.Compare(one.name, other.name))
	})
	var text strings.Builder
	for _, key := range keys {
		it := joined[key]
		kind := it.Object.Kind
		if it.Object.Group != it.Group {
			kind = named(it.Object.Group) + "/" + kind
		}
		scope := "Cluster"
		if it.Namespaced {
			scope = "Namespaced"
		}
		slices.Sort(it.Operations)
		slices.SortFunc(it.Operations, byOrder)
		slices.Sort(versions[key])
		fmt.Fprintln(&text, named(it.Group), it.Name, kind, scope, list(it.Operations),
			list(slices.Compact(versions[key])), list(it.ShortNames))
	}
	return text.String()
}

func byOrder(one, other string) int {
	place := func(of string) int {
		for index, it := range operations {
			if it.operation == of {
				return index
			}
		}
		return len(operations)
	}
	return cmp.Compare(place(one), place(other))
}

func list(items []string) string {
	return cmp.Or(strings.Join(items, ","), "-")
}

// fieldLines has a line for each kind whose fields differ: group, versions, kind and fields. A field
// that may be null ends in a question mark.
func fieldLines(found map[schema.GroupVersionKind]Kind) string {
	type key struct{ group, kind, fields string }
	versions := map[key][]string{}
	for gvk, kind := range found {
		key := key{gvk.Group, gvk.Kind, kind.words()}
		versions[key] = append(versions[key], gvk.Version)
	}
	for _, of := range versions {
		slices.Sort(of)
	}
	keys := slices.SortedFunc(maps.Keys(versions), func(one, other key) int {
		return cmp.Or(coreFirst(one.group, other.group), cmp.Compare(one.kind, other.kind),
			slices.Compare(versions[one], versions[other]))
	})
	var text strings.Builder
	for _, key := range keys {
		fmt.Fprintln(&text, strings.TrimSpace(strings.Join(
			[]string{named(key.group), list(versions[key]), key.kind, key.fields}, " ")))
	}
	return text.String()
}

func (kind *Kind) words() string {
	var words []string
	for field, state := range kind.Fields {
		switch state {
		case present:
			words = append(words, field)
		case nullable:
			words = append(words, field+"?")
		}
	}
	for _, at := range kind.PodSpecs {
		words = append(words, at+":PodSpec")
	}
	slices.Sort(words)
	return strings.Join(words, " ")
}
