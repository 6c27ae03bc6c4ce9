package e2e

import (
	"context"
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.temporal.io/sdk/client"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/stack"
)

// Each server comes back at its address with its data, however it was stopped.
func TestServersKeepAddressAndDataThroughStopsAndKills(t *testing.T) {
	for _, version := range versions {
		t.Run(fmt.Sprint("Postgres ", version), func(t *testing.T) {
			t.Parallel()
			s, err := stack.Start(t.Context(), stack.Options{Postgres: stack.PostgresOptions{Version: version}})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
				if _, err := os.Stat(s.Dir()); !os.IsNotExist(err) {
					t.Errorf("the stack's temporary folder is still there: %v", err)
				}
				for _, address := range []string{s.Temporal.Address(), s.S3.Address()} {
					if l, err := net.Listen("tcp", address); err != nil {
						t.Errorf("somebody still listens on %s", address)
					} else {
						l.Close()
					}
				}
			})
			if _, err := connect(t, s).Exec(t.Context(), "create table kept (n int)"); err != nil {
				t.Fatal(err)
			}
			store := objects{t, s.S3.Client(""), s.S3.Bucket()}
			startWorkflow(t, s, "first")
			stops := []struct {
				name               string
				temporal, s3, pgsq func() error
			}{
				{"stopped", s.Temporal.Stop, s.S3.Stop, s.Postgres.Stop},
				{"crashed", s.Temporal.Kill, s.S3.Kill, s.Postgres.Crash},
				{"killed", s.Temporal.Kill, s.S3.Kill, s.Postgres.Kill},
			}
			for i, stop := range stops {
				if err := store.put(fmt.Sprint("object", i), "x"); err != nil {
					t.Fatal(err)
				}
				if _, err := connect(t, s).Exec(t.Context(), "insert into kept values (1)"); err != nil {
					t.Fatal(err)
				}
				for server, pair := range map[string]struct {
					stop  func() error
					start func(context.Context) error
				}{
					"Temporal": {stop.temporal, s.Temporal.Start},
					"S3":       {stop.s3, s.S3.Start},
					"Postgres": {stop.pgsq, s.Postgres.Start},
				} {
					if err := pair.stop(); err != nil {
						t.Fatalf("%s to be %s: %v", server, stop.name, err)
					}
					if err := pair.start(t.Context()); err != nil {
						t.Fatalf("start %s after it was %s: %v", server, stop.name, err)
					}
				}
				var rows int
				if err := connect(t, s).QueryRow(t.Context(), "select count(*) from kept").Scan(&rows); err != nil || rows != i+1 {
					t.Errorf("after Postgres was %s: %d rows, %v", stop.name, rows, err)
				}
				if _, ok := store.get(fmt.Sprint("object", i)); !ok {
					t.Errorf("after S3 was %s: object %d is gone", stop.name, i)
				}
				c := dial(t, s)
				if _, err := c.DescribeWorkflowExecution(t.Context(), "first", ""); err != nil {
					t.Errorf("after Temporal was %s: %v", stop.name, err)
				}
			}
		})
	}
}

func connect(t *testing.T, s *stack.Stack) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.Postgres.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

func dial(t *testing.T, s *stack.Stack) client.Client {
	t.Helper()
	c, err := client.Dial(client.Options{HostPort: s.Temporal.Address(), Namespace: s.Temporal.Namespace()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// startWorkflow starts a workflow that no worker ever takes.
func startWorkflow(t *testing.T, s *stack.Stack, id string) {
	t.Helper()
	c := dial(t, s)
	_, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: "nobody", WorkflowRunTimeout: time.Hour}, "nothing")
	if err != nil {
		t.Fatal(err)
	}
}
