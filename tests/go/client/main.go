// The client of Go's standard library asks for files many times at once over one connection, and compares what comes with
// the files themselves: client URL FOLDER COUNT NAME...
package main

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"
)

func main() {
	url, folder, names := os.Args[1], os.Args[2], os.Args[4:]
	count, err := strconv.Atoi(os.Args[3])
	if err != nil {
		fail(err)
	}
	// The tests' certificates are nobody's.
	transport := &http.Transport{
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true, ServerName: "localhost"},
		ForceAttemptHTTP2: true,
		MaxConnsPerHost:   1,
	}
	client := &http.Client{Transport: transport, Timeout: 100 * time.Second}
	var group sync.WaitGroup
	for number := 0; number < count; number++ {
		group.Add(1)
		go func(name string) {
			defer group.Done()
			if err := get(client, url, folder, name); err != nil {
				fail(fmt.Errorf("%s: %w", name, err))
			}
		}(names[number%len(names)])
	}
	group.Wait()
	transport.CloseIdleConnections()
	fmt.Println(count, "whole")
}

func get(client *http.Client, url, folder, name string) error {
	expected, err := os.ReadFile(filepath.Join(folder, name))
	if err != nil {
		return err
	}
	request, err := http.NewRequest(http.MethodGet, url+"/"+name, nil)
	if err != nil {
		return err
	}
	request.Host = "localhost"
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.Proto != "HTTP/2.0" || response.StatusCode != http.StatusOK || !bytes.Equal(body, expected) {
		return fmt.Errorf("%s %s, %d bytes", response.Proto, response.Status, len(body))
	}
	return nil
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
