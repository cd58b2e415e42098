// Go's TLS with each byte of it in a segment of its own, to a server that sends back what it gets: bytewise ADDRESS COUNT.
package main

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"time"
)

// A connection whose writes are of one byte each. Go sets TCP_NODELAY itself.
type bytewise struct{ net.Conn }

func (to bytewise) Write(all []byte) (int, error) {
	for index := range all {
		if _, err := to.Conn.Write(all[index : index+1]); err != nil {
			return index, err
		}
	}
	return len(all), nil
}

func main() {
	count, err := strconv.Atoi(os.Args[2])
	if err != nil {
		fail(err)
	}
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		if err := echoed(os.Args[1], version, count); err != nil {
			fail(fmt.Errorf("%s: %w", tls.VersionName(version), err))
		}
		fmt.Printf("%s: %d bytes came back\n", tls.VersionName(version), count)
	}
}

func echoed(address string, version uint16, count int) error {
	socket, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer socket.Close()
	if err := socket.SetDeadline(time.Now().Add(100 * time.Second)); err != nil {
		return err
	}
	// The tests' certificates are nobody's.
	config := &tls.Config{InsecureSkipVerify: true, ServerName: "localhost", MinVersion: version, MaxVersion: version}
	client := tls.Client(bytewise{socket}, config)
	said, heard := make([]byte, count), make([]byte, count)
	for index := range said {
		said[index] = byte(index * 7)
		// A record each.
		if _, err := client.Write(said[index : index+1]); err != nil {
			return err
		}
	}
	if _, err := io.ReadFull(client, heard); err != nil {
		return err
	}
	if !bytes.Equal(said, heard) {
		return fmt.Errorf("other bytes came back")
	}
	if err := client.CloseWrite(); err != nil {
		return err
	}
	if rest, err := io.ReadAll(client); err != nil || len(rest) > 0 {
		return fmt.Errorf("%d bytes behind the end, %w", len(rest), err)
	}
	return nil
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
