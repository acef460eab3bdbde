// Answers of Kubernetes' strategic merge for Pods. With the argument "schema", the types of a Pod.
package main

import (
	"log"
	"os"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "schema" {
		schema(os.Stdout)
		return
	}
	if err := answers(os.Stdin, os.Stdout); err != nil {
		log.Fatal(err)
	}
}
