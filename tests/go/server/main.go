// Says of each request how net/http understood it: method, target, host and length of the body.
package main

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
)

func main() {
	answer := func(response http.ResponseWriter, request *http.Request) {
		bytes, err := io.Copy(io.Discard, request.Body)
		if err != nil {
			http.Error(response, err.Error(), http.StatusBadRequest)
			return
		}
		fmt.Fprintf(response, "%s %s %s %d", request.Method, request.RequestURI, request.Host, bytes)
	}
	log.Fatal(http.ListenAndServe(os.Args[1], http.HandlerFunc(answer)))
}
