//go:build tools

// Package pebble names the authority that issues certificates to tests, and its name server, so that go.mod pins them.
package pebble

import (
	_ "github.com/letsencrypt/pebble/v2/cmd/pebble"
	_ "github.com/letsencrypt/pebble/v2/cmd/pebble-challtestsrv"
)
