// What templates see of a Pod in Go: with the argument "types" the structs, else answers.
package main

import (
	"log"
	"os"
)

func main() {
	var err error
	if len(os.Args) > 1 && os.Args[1] == "types" {
		err = types(os.Stdout, os.Args[2:])
	} else {
		err = answers(os.Stdin, os.Stdout)
	}
	if err != nil {
		log.Fatal(err)
	}
}
