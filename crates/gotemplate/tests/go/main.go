// Reads lines of JSON ({"template": "…", "data": …}) and answers each with what Go's text/template
// and sprig made of it: {"output": "…"} (base64) or {"parse": "error"} or {"exec": "error"}.
//
// The functions are those of Istio's webhook, as far as they work on plain values.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log"
	"os"
	"text/template"
	"time"

	"github.com/Masterminds/sprig/v3"
)

type answer struct {
	Output []byte `json:"output,omitempty"`
	OK     bool   `json:"ok"`
	Parse  string `json:"parse,omitempty"`
	Exec   string `json:"exec,omitempty"`
}

func ask(text string, data any, istio bool) answer {
	functions := sprig.TxtFuncMap()
	if istio {
		for name, function := range istioFunctions() {
			functions[name] = function
		}
	}
	parsed, err := template.New("t").Funcs(functions).Parse(text)
	if err != nil {
		return answer{Parse: err.Error()}
	}
	var out bytes.Buffer
	if err := parsed.Execute(&out, data); err != nil {
		return answer{Exec: err.Error()}
	}
	return answer{OK: true, Output: out.Bytes()}
}

func main() {
	time.Local = time.UTC
	lines := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var question struct {
				Template string `json:"template"`
				Data     any    `json:"data"`
				Istio    bool   `json:"istio"`
			}
			if err := json.Unmarshal(line, &question); err != nil {
				log.Fatal(err)
			}
			if err := encoder.Encode(ask(question.Template, question.Data, question.Istio)); err != nil {
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
