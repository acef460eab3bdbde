// Answers of Kubernetes' CEL: how an API server compiles and evaluates expressions.
package main

import (
	"log"
	"os"
)

func main() {
	if err := answers(os.Stdin, os.Stdout); err != nil {
		log.Fatal(err)
	}
}
