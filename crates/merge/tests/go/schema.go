package main

import (
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

var special = map[reflect.Type]string{
	reflect.TypeFor[resource.Quantity]():  "quantity",
	reflect.TypeFor[intstr.IntOrString](): "intstr",
	reflect.TypeFor[metav1.Time]():        "time",
	reflect.TypeFor[metav1.FieldsV1]():    "any",
}

// schema prints the types of a Pod: a line per struct, and an indented line per field of it.
func schema(out io.Writer) {
	seen := map[reflect.Type]bool{}
	queue := []reflect.Type{reflect.TypeFor[corev1.Pod]()}
	names := map[string]reflect.Type{}
	for len(queue) > 0 {
		t := queue[0]
		queue = queue[1:]
		if seen[t] {
			continue
		}
		seen[t] = true
		if other, taken := names[t.Name()]; taken {
			panic(fmt.Sprint("one name, two types: ", t, other))
		}
		names[t.Name()] = t
		fmt.Fprintln(out, t.Name())
		always := written(t)
		lines := fields(t, nil, always)
		slices.Sort(lines)
		for _, line := range lines {
			fmt.Fprintln(out, line)
		}
		queue = append(queue, below(t)...)
	}
}

// written is the set of keys that the empty value has in JSON.
func written(t reflect.Type) map[string]any {
	text, err := json.Marshal(reflect.New(t).Interface())
	if err != nil {
		panic(err)
	}
	keys := map[string]any{}
	if err := json.Unmarshal(text, &keys); err != nil {
		panic(err)
	}
	return keys
}

func fields(t reflect.Type, path []string, always map[string]any) []string {
	var lines []string
	for i := range t.NumField() {
		field := t.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "-" || !field.IsExported() {
			continue
		}
		if field.Anonymous && name == "" { // `json:",inline"`
			lines = append(lines, fields(field.Type, append(slices.Clone(path), field.Name), always)...)
			continue
		}
		if name == "" {
			panic(fmt.Sprint("a field without a name: ", t, field.Name))
		}
		line := " " + name + " " + shape(field.Type)
		if _, ok := always[name]; ok {
			line += " written"
		}
		strategies := strings.Split(field.Tag.Get("patchStrategy"), ",")
		if slices.Contains(strategies, "merge") {
			line += " merge:" + field.Tag.Get("patchMergeKey")
		} else if strategies[0] != "" {
			panic(fmt.Sprint("another strategy: ", t, field.Name))
		}
		if len(path) > 0 {
			line += " in:" + strings.Join(path, ".")
		}
		lines = append(lines, line)
	}
	return lines
}

// shape is the type of a value in JSON. Before an equals sign stands Go's name of it.
func shape(t reflect.Type) string {
	if name, ok := special[t]; ok {
		return name
	}
	named := ""
	if t.PkgPath() != "" {
		named = t.String() + "="
	}
	switch t.Kind() {
	case reflect.Pointer:
		return "*" + shape(t.Elem())
	case reflect.Slice:
		if named != "" {
			panic(fmt.Sprint("a named list: ", t))
		}
		return "[]" + shape(t.Elem())
	case reflect.Map:
		return t.String() + "=map:" + shape(t.Elem())
	case reflect.Struct:
		if t.String() != "v1."+t.Name() {
			panic(fmt.Sprint("a struct of another package: ", t))
		}
		return t.Name()
	case reflect.String, reflect.Bool, reflect.Int32, reflect.Int64:
		return named + t.Kind().String()
	default:
		panic(fmt.Sprint("another kind: ", t))
	}
}

// below lists the structs that the fields hold.
func below(t reflect.Type) []reflect.Type {
	var found []reflect.Type
	for i := range t.NumField() {
		field := t.Field(i).Type
		for _, ok := special[field]; !ok; _, ok = special[field] {
			if field.Kind() == reflect.Pointer || field.Kind() == reflect.Slice || field.Kind() == reflect.Map {
				field = field.Elem()
				continue
			}
			if field.Kind() == reflect.Struct {
				if t.Field(i).Anonymous && strings.HasPrefix(t.Field(i).Tag.Get("json"), ",") {
					found = append(found, below(field)...)
				} else {
					found = append(found, field)
				}
			}
			break
		}
	}
	return found
}
