package replication

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// Config says which slot of which server to read, and how.
type Config struct {
	// ConnString is a URL (postgres://...) or keyword/value string. libpq's
	// environment variables and files fill in what it leaves out. It may hold a
	// password and is never printed.
	ConnString string
	// Password gives the password for each connection anew, so that it can be
	// replaced without a restart. nil: that of ConnString, of PGPASSWORD, or of a
	// password file of libpq's.
	Password func(context.Context) (string, error)
	// Pipeline names the connections (application_name tidemark/<pipeline>).
	// Empty: the slot's name is used.
	Pipeline string
	// Slot is the name of the logical replication slot.
	Slot string
	// Publications are the publications to read, at least one for Start.
	Publications []string
	// ShutdownGrace is how long the ack may stand still while the server keeps
	// asking before the session asks whether the server is shutting down.
	// Default 3 s.
	ShutdownGrace time.Duration
	// Probe makes an ordinary connection and closes it again; its error, or nil,
	// tells whether the server still lets new sessions in. Default: with
	// ConnString. Tests set it.
	Probe func(context.Context) error
}

const (
	defaultShutdownGrace = 3 * time.Second
	// connectBound limits a connection attempt when ConnString does not
	// (connect_timeout) and the caller's context does not either.
	connectBound = 15 * time.Second
	// readBuffer is what one read from the socket takes at most. Postgres
	// writes 8 KiB at a time; under load many of these wait in the kernel.
	readBuffer = 128 << 10
)

// slotName is what Postgres allows (ReplicationSlotValidateName in
// src/backend/replication/slot.c): so a checked name needs no quoting.
var slotName = regexp.MustCompile(`^[a-z0-9_]{1,63}$`)

// Validate says what is wrong with the configuration, all at once.
func (c Config) Validate() error {
	var errs []error
	if _, err := c.parse(); err != nil {
		errs = append(errs, err)
	}
	if !slotName.MatchString(c.Slot) {
		errs = append(errs, fmt.Errorf("slot name %q: use 1 to 63 lower-case letters, digits and underscores", c.Slot))
	}
	for _, p := range c.Publications {
		if p == "" {
			errs = append(errs, errors.New("a publication has no name: give every publication a name"))
		}
	}
	return errors.Join(errs...)
}

// parse reads the connection string.
func (c Config) parse() (*pgconn.Config, error) {
	if strings.TrimSpace(c.ConnString) == "" {
		return nil, errors.New("no connection string: give the source database's URL")
	}
	pc, err := pgconn.ParseConfig(c.ConnString)
	if err != nil {
		return nil, unreadable(err)
	}
	return pc, nil
}

// unreadable is what is wrong with a connection string, without its text.
// pgconn masks passwords as well as it can in a string that it cannot parse, and
// quotes words of it: those may be of a password with a space.
func unreadable(err error) error {
	var parse *pgconn.ParseConfigError
	if errors.As(err, &parse) {
		bare := *parse
		bare.ConnString = "..."
		err = &bare
		if strings.Contains(err.Error(), "keyword/value") {
			err = pgconn.NewParseConfigError("...", "it is neither a URL (postgres://...) nor a list of keyword=value, with values in single quotes if they have spaces", nil)
		}
	}
	return fmt.Errorf("read connection string: %w", err)
}

// Ordinary is the configuration of one connection for SQL, made anew for each
// since files are read and the password is fetched for it. It holds the
// password.
func (c Config) Ordinary(ctx context.Context) (*pgconn.Config, error) {
	pc, err := c.parse()
	if err != nil {
		return nil, err
	}
	if err := c.prepare(ctx, pc); err != nil {
		return nil, err
	}
	deleteFold(pc.RuntimeParams, "replication")
	return pc, nil
}

// streaming is the configuration of the replication connection.
func (c Config) streaming(ctx context.Context) (*pgconn.Config, error) {
	pc, err := c.parse()
	if err != nil {
		return nil, err
	}
	if err := c.prepare(ctx, pc); err != nil {
		return nil, err
	}
	for name, value := range sessionSettings() {
		deleteFold(pc.RuntimeParams, name)
		pc.RuntimeParams[name] = value
	}
	deleteFold(pc.RuntimeParams, "replication")
	pc.RuntimeParams["replication"] = "database"
	return pc, nil
}

// ofLibpq are parameters of libpq's own that pgconn does not know and would send
// to the server, which ends the connection. They are about the socket, which is
// set up here as a replication connection needs it, or say what is so anyway.
// Those that ask for more security than there is are not among them.
var ofLibpq = []string{"keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count", "tcp_user_timeout",
	"sslcompression", "gsslib", "fallback_application_name"}

// prepare makes pc what every connection of ours has in common.
func (c Config) prepare(ctx context.Context, pc *pgconn.Config) error {
	for _, name := range ofLibpq {
		deleteFold(pc.RuntimeParams, name)
	}
	if pc.RuntimeParams["gssencmode"] != "require" {
		delete(pc.RuntimeParams, "gssencmode")
	}
	if pc.RuntimeParams["load_balance_hosts"] == "disable" {
		delete(pc.RuntimeParams, "load_balance_hosts")
	}
	deleteFold(pc.RuntimeParams, "application_name")
	name := c.Pipeline
	if name == "" {
		name = c.Slot
	}
	pc.RuntimeParams["application_name"] = "tidemark/" + name
	if pc.ConnectTimeout == 0 {
		pc.ConnectTimeout = connectBound
	}
	pc.DialFunc = dialer().DialContext
	if c.Password == nil {
		return nil
	}
	password, err := c.Password(ctx)
	if err != nil {
		return fmt.Errorf("fetch the password: %w", err)
	}
	pc.Password = password
	return nil
}

// grace is ShutdownGrace or its default.
func (c Config) grace() time.Duration {
	if c.ShutdownGrace > 0 {
		return c.ShutdownGrace
	}
	return defaultShutdownGrace
}

// probe is Probe or its default.
func (c Config) probe(ctx context.Context) error {
	if c.Probe != nil {
		return c.Probe(ctx)
	}
	pc, err := c.Ordinary(ctx)
	if err != nil {
		return err
	}
	conn, err := pgconn.ConnectConfig(ctx, pc)
	if err != nil {
		return err
	}
	return conn.Close(ctx)
}

// deleteFold removes key in any spelling: Postgres' parameter names are not
// case-sensitive, and two spellings of one would be applied in random order.
func deleteFold(params map[string]string, key string) {
	maps.DeleteFunc(params, func(k, _ string) bool { return strings.EqualFold(k, key) })
}
