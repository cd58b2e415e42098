//go:build tools

// Package pebble names the authority that tests are issued certificates by, so that go.mod pins it.
package pebble

import _ "github.com/letsencrypt/pebble/v2/cmd/pebble"
