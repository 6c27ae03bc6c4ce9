// Package login gives the password of a database, fresh for each connection:
// from a file that another program replaces, or from a command that makes one
// that holds for a few minutes, such as an IAM token of RDS. So a password is
// rotated without a restart, and never stands in a configuration.
//
// Only cmd/tidemark uses it.
package login

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Password gives the password for one connection. An error never has any of
// it, nor what a command has written.
type Password func(context.Context) (string, error)

const (
	// maxPassword is what a password may have, in bytes: the tokens of RDS have
	// some 1,500 to 2,000.
	maxPassword = 16 << 10
	// commandBound is how long a command may take.
	commandBound = 30 * time.Second
	// pipeBound is how long a command's own children may hold its output open
	// when it has ended.
	pipeBound = time.Second
)

// FromFile reads the password from a file, without the line break at its end.
func FromFile(path string) Password {
	return func(context.Context) (string, error) {
		f, err := os.Open(path)
		if err != nil {
			return "", fmt.Errorf("read the password file (postgres.password_file): %w", err)
		}
		defer f.Close()
		text, err := io.ReadAll(io.LimitReader(f, maxPassword+1))
		if err != nil {
			return "", fmt.Errorf("read the password file (postgres.password_file): %w", err)
		}
		password, err := check(text)
		if err != nil {
			return "", fmt.Errorf("the password file %s (postgres.password_file): %w", path, err)
		}
		return password, nil
	}
}

// FromCommand runs argv, without a shell, with the environment environ, and
// takes what it writes to its standard output, without the line break at its
// end. What it writes to standard error is dropped, since it may be the
// password too.
func FromCommand(argv, environ []string) Password {
	// The arguments are left out: people put secrets there.
	name := filepath.Base(argv[0])
	return func(ctx context.Context) (string, error) {
		ctx, cancel := context.WithTimeout(ctx, commandBound)
		defer cancel()
		out := &bounded{}
		cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
		cmd.Env = environ
		if environ == nil {
			cmd.Env = []string{}
		}
		cmd.Stdout = out
		cmd.WaitDelay = pipeBound
		err := cmd.Run()
		var exit *exec.ExitError
		switch {
		case out.full:
			return "", fmt.Errorf("the password command %s (postgres.password_command) writes more than %d bytes: it has to write the password and nothing else", name, maxPassword)
		case errors.Is(ctx.Err(), context.DeadlineExceeded):
			return "", fmt.Errorf("the password command %s (postgres.password_command) has not ended within %s; run it by hand to see what it waits for", name, commandBound)
		case ctx.Err() != nil:
			return "", ctx.Err()
		case errors.As(err, &exit):
			return "", fmt.Errorf("the password command %s (postgres.password_command) ended with %s; run it by hand to see what it says", name, exit.ProcessState)
		case err != nil:
			return "", fmt.Errorf("the password command %s (postgres.password_command) cannot be run: %w", name, err)
		}
		password, err := check(out.text)
		if err != nil {
			return "", fmt.Errorf("the password command %s (postgres.password_command): %w", name, err)
		}
		return password, nil
	}
}

// check takes the line break from the end of text, and refuses what cannot be a
// password.
func check(text []byte) (string, error) {
	password := strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r")
	switch {
	case password == "":
		return "", errors.New("it gives an empty password")
	case len(text) > maxPassword:
		return "", fmt.Errorf("it has more than %d bytes: it has to be the password and nothing else", maxPassword)
	case strings.ContainsAny(password, "\n\x00"):
		return "", errors.New("it has more than one line: it has to be the password and nothing else")
	}
	return password, nil
}

// bounded keeps what is written to it, up to maxPassword bytes; more is an
// error to whoever writes.
type bounded struct {
	text []byte
	full bool
}

func (b *bounded) Write(p []byte) (int, error) {
	if len(b.text)+len(p) > maxPassword {
		b.full = true
		return 0, errors.New("too much")
	}
	b.text = append(b.text, p...)
	return len(p), nil
}
