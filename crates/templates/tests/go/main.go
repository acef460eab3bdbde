// Releases prints the fields of a Pod that came to Kubernetes after 1.28, or that a feature gate
// switches on by default only later: TYPE.FIELD, the minor release with the field in its types, the one
// from which on it works by default ("-": in none yet), and the feature gate if there is one.
//
// The fields are those of k8s.io/api of each release, as the module proxy has it. The gates are those
// of k8s.io/kubernetes of some releases, which together know all steps of all gates since 1.28.
package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"log"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const (
	oldest = 28
	newest = 37
)

// gateSources are releases whose sources know the gates that others have no more.
var gateSources = []string{"v1.34.4", "v1.37.2"}

// field is a field of a struct, with the comment before it.
type field struct {
	name, of, comment string
}

// release has the structs of a release, by name; those that are embedded are flat.
type release map[string][]field

func main() {
	log.SetFlags(0)
	gates := map[string]map[int]bool{}
	for _, version := range gateSources {
		readGates(filepath.Join(module("k8s.io/kubernetes@"+version), "pkg/features/kube_features.go"), gates)
	}
	releases := map[int]release{}
	for minor := oldest; minor <= newest; minor++ {
		dir := module(fmt.Sprintf("k8s.io/api@v0.%d.0", minor))
		releases[minor] = types(filepath.Join(dir, "core/v1/types.go"))
	}
	lines := table(releases, gates)
	slices.Sort(lines)
	for _, line := range lines {
		fmt.Println(line)
	}
}

func table(releases map[int]release, gates map[string]map[int]bool) []string {
	var lines []string
	for _, name := range below(releases[newest], "PodSpec") {
		for _, field := range releases[newest][name] {
			since := newest
			for since > oldest && has(releases[since-1], name, field.name) {
				since--
			}
			if _, known := releases[since-1][name]; since > oldest && !known {
				continue // The type is new as well: the field that holds it says so.
			}
			gate := gateOf(releases, name, field.name, gates)
			on := strconv.Itoa(since)
			if gate != "" {
				on = onSince(gates[gate], since)
			}
			if since == oldest && on == strconv.Itoa(oldest) {
				continue
			}
			line := fmt.Sprintf("%s.%s %d %s", name, field.name, since, on)
			if gate != "" {
				line += " " + gate
			}
			lines = append(lines, line)
		}
	}
	return lines
}

func has(of release, name, key string) bool {
	return slices.ContainsFunc(of[name], func(field field) bool { return field.name == key })
}

// onSince is the first release from the one of the field on in which the gate is on by default.
func onSince(steps map[int]bool, since int) string {
	for minor := since; minor <= newest; minor++ {
		if at(steps, minor) {
			return strconv.Itoa(minor)
		}
	}
	return "-"
}

// at is whether a gate is on by default in a release: the last step until then counts.
func at(steps map[int]bool, minor int) bool {
	on, last := false, -1
	for step, value := range steps {
		if step <= minor && step > last {
			on, last = value, step
		}
	}
	return on
}

var named = []*regexp.Regexp{
	regexp.MustCompile(`\+featureGate=(\w+)`),
	regexp.MustCompile(`(?:enable|enabling|requires|by) (?:the )?(\w+) feature`),
}

// unnamed are gates of fields whose comments name none, or that of a part of the field.
var unnamed = map[string]string{
	"Lifecycle.stopSignal":                    "ContainerStopSignals",
	"PersistentVolumeClaimSpec.dataSourceRef": "",
	"VolumeProjection.podCertificate":         "PodCertificateRequest",
}

// gateOf is the gate that the comment of a field names in any release.
func gateOf(releases map[int]release, name, key string, gates map[string]map[int]bool) string {
	if gate, ok := unnamed[name+"."+key]; ok {
		return gate
	}
	for minor := newest; minor >= oldest; minor-- {
		for _, field := range releases[minor][name] {
			if field.name != key {
				continue
			}
			for _, pattern := range named {
				for _, found := range pattern.FindAllStringSubmatch(field.comment, -1) {
					if _, known := gates[found[1]]; known {
						return found[1]
					}
				}
			}
		}
	}
	return ""
}

// below lists a struct, and those that its fields hold.
func below(of release, root string) []string {
	found := []string{root}
	for next := 0; next < len(found); next++ {
		for _, field := range of[found[next]] {
			if _, known := of[field.of]; known && !slices.Contains(found, field.of) {
				found = append(found, field.of)
			}
		}
	}
	return found
}

// types reads the structs of a file.
func types(path string) release {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
	if err != nil {
		log.Fatal(err)
	}
	structs := map[string]*ast.StructType{}
	for _, declared := range file.Decls {
		general, ok := declared.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range general.Specs {
			if of, ok := spec.(*ast.TypeSpec); ok {
				if inner, ok := of.Type.(*ast.StructType); ok {
					structs[of.Name.Name] = inner
				}
			}
		}
	}
	found := release{}
	for name := range structs {
		found[name] = fields(structs, name)
	}
	return found
}

func fields(structs map[string]*ast.StructType, name string) []field {
	var found []field
	for _, one := range structs[name].Fields.List {
		of := innermost(one.Type)
		tag := ""
		if one.Tag != nil {
			text, err := strconv.Unquote(one.Tag.Value)
			if err != nil {
				log.Fatal(err)
			}
			tag = reflect.StructTag(text).Get("json")
		}
		key, _, _ := strings.Cut(tag, ",")
		if key == "" && len(one.Names) == 0 {
			if _, known := structs[of]; known {
				found = append(found, fields(structs, of)...)
			}
			continue
		}
		if key != "" && key != "-" {
			found = append(found, field{key, of, one.Doc.Text() + directives(one.Doc)})
		}
	}
	return found
}

// directives are the lines of a comment that Go's own text of it leaves out.
func directives(of *ast.CommentGroup) string {
	var text strings.Builder
	if of != nil {
		for _, line := range of.List {
			text.WriteString(line.Text + "\n")
		}
	}
	return text.String()
}

func innermost(of ast.Expr) string {
	switch of := of.(type) {
	case *ast.StarExpr:
		return innermost(of.X)
	case *ast.ArrayType:
		return innermost(of.Elt)
	case *ast.MapType:
		return innermost(of.Value)
	case *ast.Ident:
		return of.Name
	}
	return ""
}

// readGates adds the steps of the gates of a file: the minor release of each, and whether it is on.
func readGates(path string, gates map[string]map[int]bool) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		log.Fatal(err)
	}
	ast.Inspect(file, func(node ast.Node) bool {
		entry, ok := node.(*ast.KeyValueExpr)
		if !ok {
			return true
		}
		name := lastName(entry.Key)
		steps, ok := entry.Value.(*ast.CompositeLit)
		if name == "" || !ok {
			return true
		}
		for _, step := range steps.Elts {
			if minor, on, ok := stepOf(step); ok {
				if gates[name] == nil {
					gates[name] = map[int]bool{}
				}
				gates[name][minor] = on
			}
		}
		return true
	})
}

// stepOf reads {Version: version.MustParse("1.31"), Default: false, …}.
func stepOf(of ast.Expr) (minor int, on, ok bool) {
	literal, isLiteral := of.(*ast.CompositeLit)
	if !isLiteral {
		return 0, false, false
	}
	for _, element := range literal.Elts {
		entry, isEntry := element.(*ast.KeyValueExpr)
		if !isEntry {
			continue
		}
		switch lastName(entry.Key) {
		case "Default":
			on = lastName(entry.Value) == "true"
		case "Version":
			call, isCall := entry.Value.(*ast.CallExpr)
			if !isCall || len(call.Args) != 1 {
				continue
			}
			if text, isText := call.Args[0].(*ast.BasicLit); isText {
				number := strings.TrimPrefix(strings.Trim(text.Value, `"`), "1.")
				var err error
				minor, err = strconv.Atoi(number)
				ok = err == nil
			}
		}
	}
	return minor, on, ok
}

func lastName(of ast.Expr) string {
	switch of := of.(type) {
	case *ast.Ident:
		return of.Name
	case *ast.SelectorExpr:
		return of.Sel.Name
	}
	return ""
}

// module is the folder of a module, which is downloaded if it is not there.
func module(name string) string {
	output, err := exec.Command("go", "mod", "download", "-json", name).Output()
	var found struct{ Dir, Error string }
	if json.Unmarshal(output, &found) != nil || found.Dir == "" {
		log.Fatal(name, ": ", found.Error, err)
	}
	return found.Dir
}
