package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// Go's maps have a random order, which decides which of two errors comes first.
const repeats = 12

type answer struct {
	Value  json.RawMessage `json:"value,omitempty"`
	Error  string          `json:"error,omitempty"`
	Panics bool            `json:"panics,omitempty"`
	Varies bool            `json:"varies,omitempty"`
	// Errors are all errors that were seen, if nothing else was.
	Errors []string `json:"errors,omitempty"`
}

func ask(merge func() ([]byte, error)) (result answer) {
	seen := map[string]bool{}
	var first answer
	for round := range repeats {
		again := once(merge)
		if round == 0 {
			first = again
		}
		if again.Panics != first.Panics || (again.Error == "") != (first.Error == "") ||
			!bytes.Equal(first.Value, again.Value) {
			return answer{Varies: true}
		}
		if again.Error != "" && !seen[again.Error] {
			seen[again.Error] = true
			first.Errors = append(first.Errors, again.Error)
		}
	}
	if len(first.Errors) == 1 {
		first.Errors = nil
	} else if len(first.Errors) > 1 {
		first.Error = ""
	}
	return first
}

func once(merge func() ([]byte, error)) (result answer) {
	defer func() {
		if recover() != nil {
			result = answer{Panics: true}
		}
	}()
	value, err := merge()
	if err != nil {
		return answer{Error: err.Error()}
	}
	return answer{Value: value}
}

// literal merges what is given.
func literal(base, patch []byte) ([]byte, error) {
	return strategicpatch.StrategicMergePatch(base, patch, corev1.Pod{})
}

// typed merges as Istio's injector does: the base comes from a Pod, and the result becomes one.
func typed(base, patch []byte) ([]byte, error) {
	var pod corev1.Pod
	if err := json.Unmarshal(base, &pod); err != nil {
		return nil, fmt.Errorf("base: %w", err)
	}
	written, err := json.Marshal(&pod)
	if err != nil {
		return nil, err
	}
	merged, err := strategicpatch.StrategicMergePatch(written, patch, corev1.Pod{})
	if err != nil {
		return nil, err
	}
	var result corev1.Pod
	if err := json.Unmarshal(merged, &result); err != nil {
		return nil, fmt.Errorf("read: %w", err)
	}
	return json.Marshal(&result)
}

func answers(in io.Reader, out io.Writer) error {
	lines := bufio.NewReaderSize(in, 1<<20)
	buffered := bufio.NewWriter(out)
	defer buffered.Flush()
	encoder := json.NewEncoder(buffered)
	encoder.SetEscapeHTML(false)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var question struct{ Base, Patch json.RawMessage }
			if err := json.Unmarshal(line, &question); err != nil {
				return err
			}
			answers := map[string]answer{
				"literal": ask(func() ([]byte, error) { return literal(question.Base, question.Patch) }),
				"typed":   ask(func() ([]byte, error) { return typed(question.Base, question.Patch) }),
			}
			if err := encoder.Encode(answers); err != nil {
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
