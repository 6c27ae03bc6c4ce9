package internal_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var updateLicenses = flag.Bool("update", false, "write docs/licenses.md")

const licensesFile = "../docs/licenses.md"

const licensesHead = `# Licenses of dependencies

<!-- Written by make licenses. -->

What is linked into the tidemark binary, besides the Go standard library (BSD-3-Clause). Each license allows use, change and distribution, in source and binary, if its text and the copyright notices go along; none asks for the source of what is built with it. One module has no license among its files. A test fails when this list is out of date, or when a license is of another kind.

| module | version | license |
|---|---|---|
`

// withoutText are modules that have no license among their files, and what is
// said of them in its place.
var withoutText = map[string]string{
	"github.com/nexus-rpc/nexus-proto-annotations": "none among its files: generated code for one protobuf option, which go.temporal.io/api (MIT) needs",
}

// kinds tells licenses by what their texts have in common, most special first.
var kinds = []struct {
	name string
	has  []string
}{
	{"Apache-2.0", []string{"Apache License", "Version 2.0"}},
	{"BSD-3-Clause", []string{"Redistribution and use in source and binary forms", "endorse or promote"}},
	{"BSD-2-Clause", []string{"Redistribution and use in source and binary forms"}},
	{"MIT", []string{"Permission is hereby granted, free of charge", "without restriction"}},
	{"ISC", []string{"Permission to use, copy, modify, and/or distribute this software for any purpose"}},
}

// licenseOf is the kind of a license's text, empty for one that is not known to
// be permissive.
func licenseOf(text string) string {
	flat := strings.Join(strings.Fields(text), " ")
	for _, k := range kinds {
		if !slices.ContainsFunc(k.has, func(part string) bool { return !strings.Contains(flat, part) }) {
			return k.name
		}
	}
	return ""
}

// linkedModule is what go list says of one.
type linkedModule struct {
	Path, Version, Dir string
	Main               bool
}

// linkedModules are those that packages of the binary are from.
func linkedModules(t *testing.T) []linkedModule {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-json=Module", "../cmd/tidemark")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v: %s", err, &stderr)
	}
	var all []linkedModule
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct{ Module *linkedModule }
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if m := p.Module; m != nil && !m.Main && !slices.Contains(all, *m) {
			all = append(all, *m)
		}
	}
	slices.SortFunc(all, func(a, b linkedModule) int { return strings.Compare(a.Path, b.Path) })
	return all
}

// license reads the license of a module from its files.
func license(m linkedModule) (string, error) {
	files, err := os.ReadDir(m.Dir)
	if err != nil {
		return "", fmt.Errorf("%s: %w", m.Path, err)
	}
	for _, f := range files {
		name := strings.ToUpper(f.Name())
		if f.IsDir() || !strings.HasPrefix(name, "LICENSE") && !strings.HasPrefix(name, "LICENCE") && !strings.HasPrefix(name, "COPYING") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(m.Dir, f.Name()))
		if err != nil {
			return "", fmt.Errorf("%s: %w", m.Path, err)
		}
		if kind := licenseOf(string(text)); kind != "" {
			return kind, nil
		}
		return "", fmt.Errorf("%s %s has a license that is not known to be permissive: read %s", m.Path, m.Version, filepath.Join(m.Dir, f.Name()))
	}
	if instead := withoutText[m.Path]; instead != "" {
		return instead, nil
	}
	return "", fmt.Errorf("%s %s has no license among its files: look for one, and do without the module if there is none", m.Path, m.Version)
}

func TestLicensesOfDependenciesArePermissiveAndListed(t *testing.T) {
	var b strings.Builder
	b.WriteString(licensesHead)
	modules := linkedModules(t)
	if len(modules) < 20 {
		t.Fatalf("go list names %d modules", len(modules))
	}
	for _, m := range modules {
		kind, err := license(m)
		if err != nil {
			t.Error(err)
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", m.Path, m.Version, kind)
	}
	if *updateLicenses && !t.Failed() {
		if err := os.WriteFile(licensesFile, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(licensesFile)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != b.String() {
		t.Errorf("%s is out of date: run make licenses", licensesFile)
	}
}

func TestOnlyPermissiveLicensesAreTaken(t *testing.T) {
	for text, want := range map[string]string{
		"Apache License\n   Version 2.0, January 2004":                           "Apache-2.0",
		"Permission is hereby granted, free\nof charge, ... without restriction": "MIT",
		"GNU GENERAL PUBLIC LICENSE Version 3":                                   "",
		"GNU AFFERO GENERAL PUBLIC LICENSE Version 3":                            "",
		"Mozilla Public License Version 2.0":                                     "",
		"Business Source License 1.1":                                            "",
		"All rights reserved.":                                                   "",
	} {
		if got := licenseOf(text); got != want {
			t.Errorf("%q is taken for %q, want %q", text, got, want)
		}
	}
}
