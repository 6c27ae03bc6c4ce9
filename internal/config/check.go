package config

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Need is what a process cannot do without; values are combined with |.
type Need uint

// What processes need.
const (
	NeedPipeline Need = 1 << iota
	NeedPostgres
	NeedLake
	// NeedData is the serving end of the data plane.
	NeedData
	// NeedPage is the serving end of the page of health, status and metrics.
	NeedPage
)

// OpsOff is the Ops.Listen that turns the page off.
const OpsOff = "off"

var (
	pipelineName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,40}$`)
	// slotName is what Postgres accepts (ReplicationSlotValidateName in
	// src/backend/replication/slot.c).
	slotName = regexp.MustCompile(`^[a-z0-9_]{1,63}$`)
)

// checker collects problems, each with the key that it is about and where its
// value came from.
type checker struct {
	c        *Config
	problems []string
}

func (k *checker) add(key, format string, args ...any) {
	k.problems = append(k.problems, fmt.Sprintf("%s (%s): %s", key, k.c.Origin(key), fmt.Sprintf(format, args...)))
}

func (k *checker) missing(key, example string) {
	s := k.c.settings[slices.IndexFunc(k.c.settings, func(s setting) bool { return s.key == key })]
	k.problems = append(k.problems, fmt.Sprintf("%s is not set: give it in the configuration file, as %s or as --%s, such as %s", key, s.envName(), s.flagName(), example))
}

func (k *checker) between(key string, n, low, high int64) {
	if n < low || n > high {
		k.add(key, "want a number from %d to %d", low, high)
	}
}

func (k *checker) duration(key string, d, low time.Duration) {
	if d < low {
		k.add(key, "want a duration of at least %s", durationValue{&low})
	}
}

// check gives everything that is wrong with the values in force.
func (c *Config) check(need Need, environ []string) []string {
	k := &checker{c: c}
	switch {
	case c.Pipeline != "" && !pipelineName.MatchString(c.Pipeline):
		k.add("pipeline", "want 1 to 41 of a-z, 0-9 and '-', not beginning with '-'")
	case c.Pipeline == "" && need&NeedPipeline != 0:
		k.missing("pipeline", "orders")
	}
	k.postgres(need, environ)
	k.lake(need)
	k.sizes()
	k.data(need)
	k.ops(need)
	for _, set := range c.settings {
		if text := set.value.String(); len(set.choices) > 0 && text != set.def && !slices.Contains(set.choices, text) {
			k.add(set.key, "want %s", strings.Join(set.choices, ", "))
		}
	}
	return k.problems
}

func (k *checker) postgres(need Need, environ []string) {
	p := k.c.Postgres
	if p.URL == "" && need&NeedPostgres != 0 && !slices.ContainsFunc(environ, namesDatabase) {
		k.missing("postgres.url", "postgres://tidemark@db.example.com/shop (PGHOST or PGSERVICE will do as well)")
	}
	if p.PasswordFile != "" && len(p.PasswordCommand) > 0 {
		k.add("postgres.password_command", "postgres.password_file is set too (%s): set one of them", k.c.Origin("postgres.password_file"))
	}
	if HasPassword(p.URL) && (p.PasswordFile != "" || len(p.PasswordCommand) > 0) {
		k.add("postgres.url", "it has a password, and so does postgres.password_file or postgres.password_command: take it out of the URL")
	}
	if p.Slot != "" && !slotName.MatchString(p.Slot) {
		k.add("postgres.slot", "want 1 to 63 of a-z, 0-9 and '_', since Postgres takes no other slot names")
	}
	if len(p.Publication) > 63 {
		k.add("postgres.publication", "want at most 63 bytes, since Postgres cuts longer names")
	}
	k.duration("postgres.wal_warn_left", p.WALWarnLeft, 0)
	k.duration("postgres.wal_alarm_left", p.WALAlarmLeft, 0)
	if p.WALWarnLeft > 0 && p.WALWarnLeft < p.WALAlarmLeft {
		k.add("postgres.wal_warn_left", "the warning would come after the alarm (postgres.wal_alarm_left, %s): want more time left", durationValue{&p.WALAlarmLeft})
	}
	if p.WALAlarmRetained > 0 && p.WALWarnRetained > p.WALAlarmRetained {
		k.add("postgres.wal_warn_retained", "the warning would come after the alarm (postgres.wal_alarm_retained, %s): want less", p.WALAlarmRetained)
	}
	for _, t := range p.Tables {
		if !qualified(t) {
			k.add("postgres.tables", "%q names no schema: want schema.table, such as public.orders", t)
		}
	}
}

// qualified says whether a table is written with a schema: with a dot that is in
// no double quotes, and something before and after it.
func qualified(table string) bool {
	quoted := false
	for i := range len(table) {
		switch {
		case table[i] == '"':
			quoted = !quoted
		case table[i] == '.' && !quoted:
			return i > 0 && i < len(table)-1
		}
	}
	return false
}

// namesDatabase says whether a NAME=value pair tells libpq where a database is.
func namesDatabase(pair string) bool {
	name, value, _ := strings.Cut(pair, "=")
	return value != "" && (name == "PGHOST" || name == "PGHOSTADDR" || name == "PGSERVICE")
}

func (k *checker) lake(need Need) {
	l := k.c.Lake
	if l.URL == "" {
		if need&NeedLake != 0 {
			k.missing("lake.url", "s3://my-bucket/tidemark")
		}
	} else if u, err := url.Parse(l.URL); err != nil || !validLake(u) {
		k.add("lake.url", "want s3://bucket/prefix or file:///absolute/folder, without user, password, query or fragment")
	}
	if l.Endpoint != "" {
		if u, err := url.Parse(l.Endpoint); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			k.add("lake.endpoint", "want a URL such as https://s3.example.com")
		} else if u.User != nil {
			k.add("lake.endpoint", "want a URL without user and password; give AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment")
		}
	}
	if l.KMSKeyID != "" && l.SSE != "aws:kms" {
		k.add("lake.kms_key_id", "is of no use unless lake.sse is aws:kms")
	}
	k.duration("lake.timeout", l.Timeout, time.Second)
}

func validLake(u *url.URL) bool {
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return false
	}
	switch u.Scheme {
	case "s3":
		return u.Host != ""
	case "file":
		return u.Host == "" && filepath.IsAbs(u.Path)
	}
	return false
}

func (k *checker) sizes() {
	c := k.c
	k.between("segment.max_rows", c.Segment.MaxRows, 1, 100_000_000)
	if c.Segment.MaxBytes < 1 {
		k.add("segment.max_bytes", "want at least 1B")
	}
	k.duration("segment.max_age", c.Segment.MaxAge, 10*time.Millisecond)
	if c.Ring.MaxBytes < c.Segment.MaxBytes {
		k.add("ring.max_bytes", "the ring (%s) is smaller than one segment (segment.max_bytes, %s)", c.Ring.MaxBytes, c.Segment.MaxBytes)
	}
	// Each segment in flight is a long poll, and Temporal caps those at 1,200
	// for a namespace.
	k.between("streamer.max_in_flight", c.Streamer.MaxInFlight, 1, 1000)
	k.duration("streamer.shutdown_timeout", c.Streamer.ShutdownTimeout, 0)
	k.between("worker.concurrency", c.Worker.Concurrency, 1, 1000)
	k.duration("worker.drain_timeout", c.Worker.DrainTimeout, 0)
}

func (k *checker) data(need Need) {
	d := k.c.Data
	if (d.TLSCert == "") != (d.TLSKey == "") {
		k.add("data.tls_cert", "data.tls_cert and data.tls_key go together, and only one is set")
	}
	if d.TLSClientCA != "" && d.TLSCert == "" {
		k.add("data.tls_client_ca", "workers can show a certificate only where the streamer has one: set data.tls_cert and data.tls_key")
	}
	if !isHostPort(d.Listen) {
		k.add("data.listen", "want host:port, such as 0.0.0.0:7170")
		return
	}
	if need&NeedData != 0 && !IsLoopback(d.Listen) && !d.Insecure && (d.TLSCert == "" || d.TokenFile == "") {
		k.add("data.listen", "rows are served on an address other than loopback only with TLS and a token: set data.tls_cert, data.tls_key and data.token_file, or data.insecure if everyone on that network may read every row")
	}
}

func (k *checker) ops(need Need) {
	o := k.c.Ops
	switch {
	case o.Listen == "" || o.Listen == OpsOff:
	case !isHostPort(o.Listen):
		k.add("ops.listen", "want host:port, such as 127.0.0.1:7171, or off")
	case need&NeedPage != 0 && !IsLoopback(o.Listen) && !o.Insecure && o.TokenFile == "":
		k.add("ops.listen", "status and metrics are served on an address other than loopback only to callers with a token: set ops.token_file, or ops.insecure if everyone on that network may read them")
	}
}

func isHostPort(s string) bool {
	_, port, err := net.SplitHostPort(s)
	return err == nil && port != ""
}

// IsLoopback says whether a host:port can be reached from this machine alone.
func IsLoopback(hostPort string) bool {
	host, _, err := net.SplitHostPort(hostPort)
	if err != nil {
		return false
	}
	if host == "localhost" {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsLoopback()
}
