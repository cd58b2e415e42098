//go:build tools

// Package tests names what is built beside the client, so that go.mod pins it.
package tests

import _ "github.com/summerwind/h2spec/cmd/h2spec"
