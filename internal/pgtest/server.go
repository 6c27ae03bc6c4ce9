package pgtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Options say which cluster to start. The zero Options are a fresh Postgres 15
// in a temporary folder on a free port, without a password.
type Options struct {
	// Version is the major version; zero is 15.
	Version int
	// Dir is the folder of the cluster: its data below data/, its log in
	// server.log. A cluster that is already there is started as it is. Empty is
	// a temporary folder that Close removes.
	Dir string
	// From is the data folder of a stopped cluster, to be copied instead of
	// making a new one: a copy has the same system identifier and slots.
	From string
	// Files are written into the data folder of a new cluster, by name:
	// certificates, pg_hba.conf.
	Files map[string]string
	// Port on 127.0.0.1; zero is a free one.
	Port int
	// Settings are added to the defaults, such as wal_sender_timeout.
	Settings map[string]string
	// Env is added to the server's environment, as NAME=value.
	Env []string
	// Password is the superuser's; empty lets everybody in from loopback. Only
	// for a new cluster.
	Password string
	// StandbyOf makes the cluster a standby: its primary_conninfo. Use with From.
	StandbyOf string
}

// Mode is how a server is to stop.
type Mode int

// The modes of pg_ctl stop.
const (
	// Fast ends all sessions but waits until walsenders have sent everything
	// and their receivers have confirmed it.
	Fast Mode = iota
	// Immediate is a crash: no checkpoint, recovery at the next start.
	Immediate
	// Smart waits until all sessions have ended by themselves.
	Smart
)

func (m Mode) signal() syscall.Signal {
	switch m {
	case Immediate:
		return syscall.SIGQUIT
	case Smart:
		return syscall.SIGTERM
	default:
		return syscall.SIGINT
	}
}

// processState is what has become of a process.
type processState int

const (
	running processState = iota
	stopped
	gone
)

const (
	startBound = 2 * time.Minute
	stopBound  = time.Minute
)

// Server is a cluster and, while it runs, its postmaster. Its methods may be
// called from any goroutine.
type Server struct {
	in        Installation
	account   account
	dir       string
	temporary bool
	port      int
	password  string

	mu       sync.Mutex
	settings map[string]string
	env      []string
	// cmd is nil before the first start. done is closed when the process that
	// cmd describes has been reaped.
	cmd  *exec.Cmd
	done chan struct{}
}

// Start makes the cluster if need be, starts it and waits until it accepts
// connections (a standby: read-only ones). ctx bounds the start only.
func Start(ctx context.Context, opt Options) (*Server, error) {
	if opt.Version == 0 {
		opt.Version = 15
	}
	in, err := Find(opt.Version)
	if err != nil {
		return nil, err
	}
	a, err := serverAccount()
	if err != nil {
		return nil, err
	}
	if !a.reachable(in.Bin) {
		return nil, fmt.Errorf("start postgres %d: user %s cannot enter %s: make every folder on the way passable for others, or set TIDEMARK_POSTGRES%d to a folder that is",
			opt.Version, a.name, in.Bin, opt.Version)
	}
	s := &Server{in: in, account: a, dir: opt.Dir, port: opt.Port, password: opt.Password,
		settings: maps.Clone(opt.Settings), env: opt.Env}
	if err := s.prepare(ctx, opt); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if err := s.start(ctx, opt.Port == 0); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// prepare makes the folder and the cluster, unless they are there.
func (s *Server) prepare(ctx context.Context, opt Options) error {
	if s.dir == "" {
		dir, err := s.account.temporaryFolder()
		if err != nil {
			return fmt.Errorf("make cluster folder: %w", err)
		}
		s.dir, s.temporary = dir, true
	} else {
		if err := os.MkdirAll(s.dir, 0o755); err != nil {
			return fmt.Errorf("make cluster folder: %w", err)
		}
		abs, err := filepath.Abs(s.dir)
		if err != nil {
			return fmt.Errorf("make cluster folder: %w", err)
		}
		s.dir = abs
		if !s.account.reachable(filepath.Dir(s.dir)) {
			return fmt.Errorf("make cluster folder: user %s cannot enter %s", s.account.name, filepath.Dir(s.dir))
		}
		if err := s.account.own(s.dir); err != nil {
			return fmt.Errorf("make cluster folder: %w", err)
		}
	}
	if !isFile(filepath.Join(s.Data(), "PG_VERSION")) {
		if err := makeCluster(ctx, s.in, s.account, opt, s.Data()); err != nil {
			return err
		}
	}
	if opt.StandbyOf != "" {
		if s.settings == nil {
			s.settings = map[string]string{}
		}
		s.settings["primary_conninfo"] = opt.StandbyOf
		signal := filepath.Join(s.Data(), "standby.signal")
		if err := os.WriteFile(signal, nil, 0o600); err != nil {
			return fmt.Errorf("make standby: %w", err)
		}
		return s.account.own(signal)
	}
	return nil
}

// start runs the postmaster. With freely chosen it takes another port when
// somebody else was quicker.
func (s *Server) start(ctx context.Context, freely bool) error {
	ctx, cancel := context.WithTimeout(ctx, startBound)
	defer cancel()
	for {
		if s.port == 0 {
			ports, err := FreePorts(1)
			if err != nil {
				return err
			}
			s.port = ports[0]
		}
		err := s.launch(ctx)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return err
		case strings.Contains(err.Error(), "is still in use"):
			// Backends of a killed postmaster are on their way out.
		case freely && strings.Contains(err.Error(), "Address already in use"):
			s.port = 0
		default:
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// launch starts one postmaster and waits until it is ready.
func (s *Server) launch(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running() {
		return fmt.Errorf("start postgres on port %d: it is running already", s.port)
	}
	if err := writeSettings(s.account, s.Data(), s.port, s.settings); err != nil {
		return err
	}
	log, err := os.OpenFile(s.LogFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("open server log: %w", err)
	}
	defer log.Close() // the child has its own descriptor
	begin, err := log.Seek(0, 2)
	if err != nil {
		return fmt.Errorf("open server log: %w", err)
	}
	cmd := exec.Command(filepath.Join(s.in.Bin, "postgres"), "-D", s.Data())
	cmd.Dir = s.dir
	cmd.Env = environment(s.in, s.env)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = processAttributes(s.account)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start postgres: %w", err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = cmd.Wait() // how it ended is in the log
	}()
	s.cmd, s.done = cmd, done

	for !s.ready(cmd.Process.Pid) {
		select {
		case <-done:
			return fmt.Errorf("start postgres on port %d: it ended: %s", s.port, s.logFrom(begin))
		case <-ctx.Done():
			_ = cmd.Process.Signal(syscall.SIGQUIT)
			<-done
			return fmt.Errorf("start postgres on port %d: %w: %s", s.port, ctx.Err(), s.logFrom(begin))
		case <-time.After(10 * time.Millisecond):
		}
	}
	return nil
}

// ready reads the status line of postmaster.pid, as pg_ctl does
// (LOCK_FILE_LINE_PM_STATUS in src/include/utils/pidfile.h).
func (s *Server) ready(pid int) bool {
	b, err := os.ReadFile(filepath.Join(s.Data(), "postmaster.pid"))
	if err != nil {
		return false
	}
	lines := strings.Split(string(b), "\n")
	if len(lines) < 8 || lines[0] != strconv.Itoa(pid) {
		return false
	}
	status := strings.TrimSpace(lines[7])
	return status == "ready" || status == "standby"
}

// running needs mu.
func (s *Server) running() bool {
	if s.cmd == nil {
		return false
	}
	select {
	case <-s.done:
		return false
	default:
		return true
	}
}

// PID is the postmaster's process ID; zero when it does not run.
func (s *Server) PID() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.running() {
		return 0
	}
	return s.cmd.Process.Pid
}

// Signal asks the server to stop and does not wait for it.
func (s *Server) Signal(mode Mode) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.running() {
		return nil
	}
	return s.cmd.Process.Signal(mode.signal())
}

// Wait waits until the postmaster has ended or ctx has.
func (s *Server) Wait(ctx context.Context) error {
	s.mu.Lock()
	done := s.done
	s.mu.Unlock()
	if done == nil {
		return nil
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for postgres on port %d to end: %w", s.port, ctx.Err())
	}
}

// Stop stops the server and waits for its end. One that has not ended after a
// minute is stopped immediately, and that is an error. A stopped server may be
// stopped again.
func (s *Server) Stop(mode Mode) error {
	if err := s.Signal(mode); err != nil {
		return fmt.Errorf("stop postgres: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopBound)
	defer cancel()
	if err := s.Wait(ctx); err != nil {
		return errors.Join(err, s.Kill())
	}
	return nil
}

// Kill ends the postmaster and its backends with SIGKILL, as a crash of the
// machine's memory would: nothing is written or said any more.
func (s *Server) Kill() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.running() {
		return nil
	}
	postmaster := s.cmd.Process.Pid
	// One that stands still forks nobody behind our back.
	_ = s.cmd.Process.Signal(syscall.SIGSTOP)
	await(func() bool { return state(postmaster) != running })
	backends := children(postmaster)
	if err := s.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill postgres: %w", err)
	}
	for _, pid := range backends {
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may be gone by now
	}
	<-s.done
	// One that was just forked has the port open until it is gone.
	for _, pid := range backends {
		await(func() bool { return state(pid) == gone })
	}
	return nil
}

// await waits for a condition, but not for ever.
func await(holds func() bool) {
	for end := time.Now().Add(stopBound); !holds() && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
}

// Resume starts a stopped server again, on the same port.
func (s *Server) Resume(ctx context.Context) error { return s.start(ctx, false) }

// Restart stops the server and starts it again, on the same port.
func (s *Server) Restart(ctx context.Context, mode Mode) error {
	if err := s.Stop(mode); err != nil {
		return err
	}
	return s.Resume(ctx)
}

// Set changes settings; they hold from the next start on, or, where Postgres
// allows it, after Reload.
func (s *Server) Set(settings map[string]string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.settings == nil {
		s.settings = map[string]string{}
	}
	maps.Copy(s.settings, settings)
	return writeSettings(s.account, s.Data(), s.port, s.settings)
}

// Reload makes the server read its settings again. It does not wait.
func (s *Server) Reload() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.running() {
		return nil
	}
	return s.cmd.Process.Signal(syscall.SIGHUP)
}

// Close stops the server immediately and removes its folder if it was
// temporary. It may be called more than once.
func (s *Server) Close() error {
	err := s.Stop(Immediate)
	if s.temporary && s.dir != "" {
		err = errors.Join(err, os.RemoveAll(s.dir))
	}
	return err
}

// Port is the server's, on 127.0.0.1.
func (s *Server) Port() int { return s.port }

// Version is the major version.
func (s *Server) Version() int { return s.in.Version }

// Data is the data folder (PGDATA).
func (s *Server) Data() string { return filepath.Join(s.dir, "data") }

// LogFile is where the server writes what it has to say.
func (s *Server) LogFile() string { return filepath.Join(s.dir, "server.log") }

func (s *Server) logFrom(offset int64) string {
	b, err := os.ReadFile(s.LogFile())
	if err != nil || int64(len(b)) < offset {
		return ""
	}
	return strings.TrimSpace(string(b[offset:]))
}

// URL connects the superuser to the database postgres. It holds the password,
// if there is one.
func (s *Server) URL() string { return s.URLFor(Superuser, s.password, "postgres") }

// URLFor connects a role to a database.
func (s *Server) URLFor(role, password, database string) string {
	u := url.URL{Scheme: "postgres", Host: "127.0.0.1:" + strconv.Itoa(s.port), Path: "/" + database,
		User: url.User(role), RawQuery: "sslmode=disable"}
	if password != "" {
		u.User = url.UserPassword(role, password)
	}
	return u.String()
}

// TB is what New needs of a testing.TB.
type TB interface {
	Helper()
	Cleanup(func())
	Context() context.Context
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
}

// New starts a server that lives as long as the test.
func New(tb TB, opt Options) *Server {
	tb.Helper()
	s, err := Start(tb.Context(), opt)
	if err != nil {
		tb.Fatalf("start postgres: %v", err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Errorf("close postgres: %v", err)
		}
	})
	return s
}
