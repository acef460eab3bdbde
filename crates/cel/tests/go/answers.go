package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"

	"github.com/google/cel-go/cel"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

type question struct {
	Expression string `json:"e"`
	// Environment is empty for match conditions, or "pod".
	Environment string `json:"t,omitempty"`
	// Data is an index of the data.
	Data int `json:"d,omitempty"`
}

type answer struct {
	question
	// Problem is why it does not compile, with line and column.
	Problem string `json:"problem,omitempty"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Type    string `json:"type,omitempty"`
	// Error is why it has no value.
	Error string `json:"error,omitempty"`
	Value string `json:"value,omitempty"`
	Cost  uint64 `json:"cost,omitempty"`
	// Panics says that Kubernetes' code does not return.
	Panics bool `json:"panics,omitempty"`
	// Varies says that it depends on the order of a map, which Go changes.
	Varies bool `json:"varies,omitempty"`
}

// answers reads a file of data, and then a question per line.
func answers(in io.Reader, out io.Writer) error {
	environments, err := environments()
	if err != nil {
		return err
	}
	text, err := os.ReadFile(os.Args[1])
	if err != nil {
		return err
	}
	var data []map[string]any
	if err := utiljson.Unmarshal(text, &data); err != nil {
		return err
	}
	lines := bufio.NewReaderSize(in, 1<<20)
	buffered := bufio.NewWriter(out)
	defer buffered.Flush()
	encoder := json.NewEncoder(buffered)
	encoder.SetEscapeHTML(false)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			asked := question{}
			if err := json.Unmarshal(line, &asked); err != nil {
				return err
			}
			if err := encoder.Encode(ask(environments[asked.Environment], asked, data[asked.Data])); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func ask(env *cel.Env, asked question, data map[string]any) (found answer) {
	defer func() {
		if recover() != nil {
			found = answer{question: asked, Panics: true}
		}
	}()
	found.question = asked
	ast, issues := env.Compile(asked.Expression)
	// The first error that was found: `Err` would sort them.
	if issues != nil && len(issues.Errors()) > 0 {
		first := issues.Errors()[0]
		found.Problem = first.Message
		found.Line, found.Column = first.Location.Line(), first.Location.Column()+1
		return found
	}
	program, err := env.Program(ast, cel.InterruptCheckFrequency(celconfig.CheckFrequency))
	if err != nil {
		found.Problem = err.Error()
		return found
	}
	found.Type = ast.OutputType().String()
	first := evaluate(program, found, data)
	for range repeats {
		again := evaluate(program, found, data)
		if again.Cost != first.Cost || again.Value != first.Value || (again.Error == "") != (first.Error == "") {
			first.Varies = true
		}
	}
	return first
}

// repeats are enough to see that the order of a map matters.
const repeats = 40

func evaluate(program cel.Program, found answer, data map[string]any) answer {
	value, details, err := program.Eval(map[string]any{
		"object": data["object"], "oldObject": data["oldObject"],
		"request": data["request"], "namespaceObject": data["namespaceObject"],
	})
	if details != nil && details.ActualCost() != nil {
		found.Cost = *details.ActualCost()
	}
	if err != nil {
		found.Error = strings.ToValidUTF8(err.Error(), "?")
		return found
	}
	found.Value = show(value)
	return found
}
