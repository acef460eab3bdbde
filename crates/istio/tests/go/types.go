package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// They print themselves.
var special = []reflect.Type{
	reflect.TypeFor[resource.Quantity](),
	reflect.TypeFor[intstr.IntOrString](),
	reflect.TypeFor[metav1.Time](),
	reflect.TypeFor[metav1.FieldsV1](),
}

// types prints TypeMeta and the structs below ObjectMeta and PodSpec: a line per struct, and an
// indented line per field: its name, its key in JSON or an equals sign and the embedded struct, and
// its number in protobuf. A field that is not in all older tables, whose files are named 28.txt to
// 35.txt, has the minor version of Kubernetes that brought it. This file prints the older tables, too,
// with older versions of the modules.
func types(out io.Writer, older []string) error {
	first, err := firstTables(older)
	if err != nil {
		return err
	}
	seen := map[reflect.Type]bool{}
	queue := []reflect.Type{
		reflect.TypeFor[metav1.TypeMeta](),
		reflect.TypeFor[metav1.ObjectMeta](),
		reflect.TypeFor[corev1.PodSpec](),
	}
	for len(queue) > 0 {
		t := queue[0]
		queue = queue[1:]
		if seen[t] {
			continue
		}
		seen[t] = true
		fmt.Fprintln(out, t.Name())
		for i := range t.NumField() {
			field := t.Field(i)
			key, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if field.Anonymous && key == "" {
				key = "=" + field.Type.Name()
			}
			number := strings.Split(field.Tag.Get("protobuf"), ",")[1]
			line := fmt.Sprintf(" %s %s %s", field.Name, key, number)
			if since, ok := first[t.Name()+line]; !ok && len(older) > 0 {
				line += " " + version()
			} else if since != "" {
				line += " " + since
			}
			fmt.Fprintln(out, line)
			inner := field.Type
			for slices.Contains([]reflect.Kind{reflect.Pointer, reflect.Slice, reflect.Map}, inner.Kind()) {
				inner = inner.Elem()
			}
			if inner.Kind() == reflect.Struct && !slices.Contains(special, inner) {
				queue = append(queue, inner)
			}
		}
	}
	return nil
}

// version is the minor version of Kubernetes whose types these are.
func version() string {
	info, _ := debug.ReadBuildInfo()
	for _, module := range info.Deps {
		if module.Path == "k8s.io/api" {
			return strings.Split(module.Version, ".")[1]
		}
	}
	return ""
}

// firstTables maps each line after the name of its struct to the first table that has it; the name of
// the oldest table is empty.
func firstTables(older []string) (map[string]string, error) {
	first := map[string]string{}
	for index, path := range older {
		file, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		name := ""
		lines := bufio.NewScanner(file)
		for lines.Scan() {
			if line := lines.Text(); !strings.HasPrefix(line, " ") {
				name = line
			} else if _, known := first[name+line]; !known && index > 0 {
				first[name+line] = strings.TrimSuffix(filepath.Base(path), ".txt")
			} else if !known {
				first[name+line] = ""
			}
		}
	}
	return first, nil
}
