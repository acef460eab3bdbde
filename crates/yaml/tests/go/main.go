// Reads lines of JSON ({"text": "…"}) and answers each with what Kubernetes' libraries read:
// {"one": …, "strict": …, "many": …}. An answer is a JSON value, or {"error": true}, or
// {"varies": true} where it differs from run to run.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log"
	"os"

	k8s "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// Go's maps have a random order, which decides where two keys become the same string.
const repeats = 16

type answer struct {
	Value  json.RawMessage `json:"value,omitempty"`
	Error  bool            `json:"error,omitempty"`
	Varies bool            `json:"varies,omitempty"`
}

func ask(read func() (json.RawMessage, error)) answer {
	first, err := read()
	for range repeats - 1 {
		again, errAgain := read()
		if (err == nil) != (errAgain == nil) || !bytes.Equal(first, again) {
			return answer{Varies: true}
		}
	}
	if err != nil {
		return answer{Error: true}
	}
	return answer{Value: first}
}

func many(text []byte) (json.RawMessage, error) {
	decoder := k8s.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	documents := []json.RawMessage{}
	for {
		var document json.RawMessage
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return json.Marshal(documents)
		}
		if err != nil {
			return nil, err
		}
		if document == nil {
			document = json.RawMessage("null")
		}
		// Values of JSON are not decoded yet; a number may be too large.
		var value any
		if err := json.Unmarshal(document, &value); err != nil {
			return nil, err
		}
		numbers := json.NewDecoder(bytes.NewReader(document))
		numbers.UseNumber()
		if err := numbers.Decode(&value); err != nil {
			return nil, err
		}
		if document, err = json.Marshal(value); err != nil {
			return nil, err
		}
		documents = append(documents, document)
	}
}

func main() {
	lines := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var question struct {
				Text string `json:"text"`
			}
			if err := json.Unmarshal(line, &question); err != nil {
				log.Fatal(err)
			}
			text := []byte(question.Text)
			answers := map[string]answer{
				"one":    ask(func() (json.RawMessage, error) { return yaml.YAMLToJSON(text) }),
				"strict": ask(func() (json.RawMessage, error) { return yaml.YAMLToJSONStrict(text) }),
				"many":   ask(func() (json.RawMessage, error) { return many(text) }),
			}
			if err := encoder.Encode(answers); err != nil {
				log.Fatal(err)
			}
		}
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			log.Fatal(err)
		}
	}
}
