package pgtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Superuser is the name of every cluster's first role.
const Superuser = "postgres"

// settingsFile is included at the end of postgresql.conf and written anew
// before each start. ALTER SYSTEM still wins over it.
const settingsFile = "pgtest.conf"

// defaults are the settings that every cluster starts from. fsync=off is safe
// against the death of any process, only not of the machine.
func defaults() map[string]string {
	return map[string]string{
		"wal_level":                  "logical",
		"max_wal_senders":            "20",
		"max_replication_slots":      "20",
		"fsync":                      "off",
		"max_connections":            "100",
		"log_line_prefix":            "%m [%p] %q%u@%d %a ",
		"log_min_messages":           "warning",
		"log_replication_commands":   "on",
		"autovacuum_naptime":         "5min",
		"unix_socket_directories":    "",
		"listen_addresses":           "127.0.0.1",
		"dynamic_shared_memory_type": "posix",
		"logging_collector":          "off",
	}
}

// makeCluster fills data by initdb, or by a copy of from.
func makeCluster(ctx context.Context, in Installation, a account, opt Options, data string) error {
	if opt.From != "" {
		if out, err := exec.CommandContext(ctx, "cp", "-a", opt.From, data).CombinedOutput(); err != nil {
			return fmt.Errorf("copy cluster %s: %w: %s", opt.From, err, out)
		}
		if err := os.Remove(filepath.Join(data, "postmaster.pid")); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("copy cluster %s: %w", opt.From, err)
		}
		return a.own(data)
	}
	args := []string{"-D", data, "-U", Superuser, "-E", "UTF8", "--locale=C", "--no-sync", "--auth=trust"}
	if opt.Password != "" {
		// Through a file: an argument would show in the process list.
		pw := filepath.Join(filepath.Dir(data), "password")
		if err := os.WriteFile(pw, []byte(opt.Password+"\n"), 0o600); err != nil {
			return fmt.Errorf("write password file: %w", err)
		}
		defer os.Remove(pw)
		if err := a.own(pw); err != nil {
			return fmt.Errorf("write password file: %w", err)
		}
		args[len(args)-1] = "--auth=scram-sha-256"
		args = append(args, "--pwfile="+pw)
	}
	cmd := exec.CommandContext(ctx, filepath.Join(in.Bin, "initdb"), args...)
	cmd.Dir = filepath.Dir(data)
	cmd.Env = environment(in, nil)
	cmd.SysProcAttr = processAttributes(a)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb %s: %w: %s", data, err, out)
	}
	conf, err := os.OpenFile(filepath.Join(data, "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("write settings: %w", err)
	}
	_, err = fmt.Fprintf(conf, "\ninclude '%s'\n", settingsFile)
	if err = errors.Join(err, conf.Close()); err != nil {
		return fmt.Errorf("write settings: %w", err)
	}
	for name, text := range opt.Files {
		path := filepath.Join(data, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
		if err := a.own(path); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	return nil
}

// writeSettings replaces the settings file.
func writeSettings(a account, data string, port int, settings map[string]string) error {
	all := defaults()
	maps.Copy(all, settings)
	all["port"] = fmt.Sprint(port)
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&b, "%s = '%s'\n", name, strings.ReplaceAll(all[name], "'", "''"))
	}
	path := filepath.Join(data, settingsFile)
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		return fmt.Errorf("write settings: %w", err)
	}
	return a.own(path)
}

// environment is the caller's without its PG* variables, which would leak into
// the server, and with the installation's libraries and extra at the end.
func environment(in Installation, extra []string) []string {
	var env []string
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "PG") && !strings.HasPrefix(kv, "LD_LIBRARY_PATH=") {
			env = append(env, kv)
		}
	}
	if in.Lib != "" {
		env = append(env, "LD_LIBRARY_PATH="+in.Lib)
	}
	return append(env, extra...)
}
