package main

import (
	"reflect"
	"slices"
	"strings"
)

// way is a way to make an object: what is in it besides one field.
type way struct {
	// others gives pointers and lists of other fields a value.
	others bool
	// values gives texts, numbers and truths a value that is not zero.
	values bool
}

// ways finds defaults that depend on other fields: only in an object without them, only beside one
// that has its own default, or only beside one that is there.
var ways = []way{{}, {values: true}, {others: true}, {others: true, values: true}}

// step leads to a field of a struct, and into the first element if it is a list.
type step struct {
	name  string
	index []int
	// is the type of the field, and of the element or of what a pointer leads to.
	is, of reflect.Type
}

type path []step

// paths has all fields below a type. Types within themselves are left out, and so is what JSON does
// not show by fields. Specifications of pods are entered only if it is asked for.
func paths(of reflect.Type, isPod bool) []path {
	return below(of, nil, []reflect.Type{of}, isPod)
}

func below(of reflect.Type, to path, within []reflect.Type, isPod bool) []path {
	var all []path
	for index := range of.NumField() {
		field := of.Field(index)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "-" || field.Type == typeMeta || (len(to) == 0 && field.Type == objectMeta) {
			continue
		}
		if name == "" && (field.Anonymous || strings.Contains(options, "inline")) {
			for _, path := range below(field.Type, nil, within, isPod) {
				path[0].index = append([]int{index}, path[0].index...)
				all = append(all, append(slices.Clone(to), path...))
			}
			continue
		}
		here := append(slices.Clone(to), step{name, []int{index}, field.Type, inner(field.Type)})
		all = append(all, here)
		next := here[len(here)-1].of
		if !isOpen(next) || slices.Contains(within, next) || (next == podSpec && !isPod) {
			continue
		}
		all = append(all, below(next, here, append(slices.Clone(within), next), isPod)...)
	}
	return all
}

// inner is the type behind pointers and lists.
func inner(of reflect.Type) reflect.Type {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
		of = of.Elem()
	}
	return of
}

// isOpen tells whether the fields of a type are those of its JSON.
func isOpen(of reflect.Type) bool {
	isShown := of.Implements(marshaler) || reflect.PointerTo(of).Implements(marshaler)
	return of.Kind() == reflect.Struct && !isShown && of != objectMeta
}

func (path path) ends(of reflect.Type) bool {
	return len(path) > 0 && path[len(path)-1].of == of
}

// String is the path as it stands in the table.
func (path path) String() string {
	var text strings.Builder
	for index, step := range path {
		if index > 0 {
			text.WriteString(".")
		}
		text.WriteString(step.name)
		if index < len(path)-1 && step.isList() {
			text.WriteString("[]")
		}
	}
	return text.String()
}

func (step *step) isList() bool {
	of := step.is
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	return of.Kind() == reflect.Slice
}

// reach makes all that is before the last field, and empties that.
func (path path) reach(value reflect.Value) {
	for _, step := range path[:len(path)-1] {
		value = value.FieldByIndex(step.index)
		for value.Kind() == reflect.Pointer || value.Kind() == reflect.Slice {
			value = enter(value)
		}
	}
	value.FieldByIndex(path[len(path)-1].index).SetZero()
}

// enter is what a pointer leads to, or the first element of a list. It is made if there is none.
func enter(value reflect.Value) reflect.Value {
	if value.Kind() == reflect.Pointer {
		if value.IsNil() {
			value.Set(reflect.New(value.Type().Elem()))
		}
		return value.Elem()
	}
	if value.Len() == 0 {
		value.Set(reflect.MakeSlice(value.Type(), 1, 1))
	}
	return value.Index(0)
}

// look finds the state of the last field in an object.
func (path path) look(fields map[string]any) State {
	var value any = fields
	for _, step := range path {
		if list, is := value.([]any); is {
			// A default that leaves nothing in the list.
			if len(list) == 0 {
				return absent
			}
			value = list[0]
		}
		object, _ := value.(map[string]any)
		var is bool
		if value, is = object[step.name]; !is {
			return absent
		}
	}
	if value == nil {
		return nullable
	}
	return present
}

// fill makes an object in its way. Types within themselves end it.
func (way way) fill(value reflect.Value, within []reflect.Type) {
	switch value.Kind() {
	case reflect.Pointer, reflect.Slice:
		if way.others && !slices.Contains(within, inner(value.Type())) {
			way.fill(enter(value), within)
		}
	case reflect.Struct:
		of := value.Type()
		if of == typeMeta || !isOpen(of) {
			return
		}
		for index := range value.NumField() {
			way.fill(value.Field(index), append(slices.Clone(within), of))
		}
	default:
		if way.values {
			set(value)
		}
	}
}

func set(value reflect.Value) {
	switch {
	case value.Kind() == reflect.String:
		value.SetString("x")
	case value.Kind() == reflect.Bool:
		value.SetBool(true)
	case value.CanInt():
		value.SetInt(1)
	case value.CanUint():
		value.SetUint(1)
	}
}
