package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidemark-cdc/tidemark/internal/bearer"
	"github.com/tidemark-cdc/tidemark/internal/config"
	"github.com/tidemark-cdc/tidemark/internal/ops"
)

func newHealth(sys system) *cobra.Command {
	var ready, ofWorker, asJSON bool
	cmd := verb("health", "Ask the process at ops.listen whether it is alive, or does its work",
		`Ask the process at ops.listen whether it is alive, or, with --ready, whether it
does its work; if not, say why. It is meant for the health checks of containers,
which have no shell, and takes the settings of the process that it asks:
ops.listen, and ops.token_file if that is set.

The exit status is 0 for yes and 1 for no, also where nobody answers.`,
		func(cmd *cobra.Command) error {
			c, err := loadSettings(cmd, sys, 0)
			if err != nil {
				return err
			}
			if c.Ops.Listen == "" && ofWorker {
				c.Ops.Listen = defaultWorkerPage
			}
			p := sys.progress()
			defer p.end()
			p.doing("asking the process at %s", askedPage(c))
			if ready {
				return checkReady(cmd.Context(), c, cmd.OutOrStdout(), asJSON)
			}
			return checkAlive(cmd.Context(), c, cmd.OutOrStdout(), asJSON)
		})
	cmd.Flags().BoolVar(&ready, "ready", false, "ask whether it does its work, not only whether it is alive")
	cmd.Flags().BoolVar(&ofWorker, "worker", false, "where ops.listen is not set, ask at the usual address of a worker")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return withSettings(cmd, "ops-listen", "ops-token")
}

// checkAlive asks a process whether it answers.
func checkAlive(ctx context.Context, c *config.Config, out io.Writer, asJSON bool) error {
	return askPage(ctx, c, "/healthz", func(r *http.Response) error {
		if r.StatusCode != http.StatusOK {
			return fmt.Errorf("it answers with %s", r.Status)
		}
		if asJSON {
			return printJSON(out, struct {
				Alive bool `json:"alive"`
			}{true})
		}
		_, err := fmt.Fprintln(out, "alive")
		return err
	})
}

// checkReady asks a process whether it does its work.
func checkReady(ctx context.Context, c *config.Config, out io.Writer, asJSON bool) error {
	var r ops.Readiness
	if err := getPage(ctx, c, "/readyz", &r); err != nil {
		return err
	}
	if asJSON {
		if err := printJSON(out, r); err != nil || r.Ready {
			return err
		}
		return &statusError{status: statusFailed}
	}
	if r.Ready {
		_, err := fmt.Fprintln(out, "ready")
		return err
	}
	if len(r.Reasons) == 0 {
		fmt.Fprintln(out, "not ready; it says why to who shows a token of its ops.token_file")
	}
	for _, reason := range r.Reasons {
		fmt.Fprintln(out, reason)
	}
	return &statusError{status: statusFailed}
}

// askedPage is the address of the page, as it can be asked from here.
func askedPage(c *config.Config) string {
	addr, _ := pageAddress(c, roles{streamer: true})
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		return net.JoinHostPort("localhost", port)
	}
	return addr
}

// getPage reads a path of a process' page into v.
func getPage(ctx context.Context, c *config.Config, path string, v any) error {
	return askPage(ctx, c, path, func(r *http.Response) error {
		if err := json.NewDecoder(io.LimitReader(r.Body, 64<<20)).Decode(v); err != nil {
			return fmt.Errorf("it is none of Tidemark, or of another version: %w", err)
		}
		return nil
	})
}

// askPage asks for a path of a process' page, with the token if there is one.
func askPage(ctx context.Context, c *config.Config, path string, read func(*http.Response) error) error {
	if c.Ops.Listen == config.OpsOff {
		return errors.New("ops.listen is off, so there is no page to ask")
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	addr := askedPage(c)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+path, nil)
	if err != nil {
		return fmt.Errorf("ask the process at %s: %w", addr, err)
	}
	if file := c.Ops.TokenFile; file != "" {
		tokens, err := bearer.Follow("ops.token_file", file, slog.New(slog.DiscardHandler))
		if err != nil {
			return err
		}
		token, err := tokens.First()
		if err != nil {
			return err
		}
		req.Header.Set("Authorization", "Bearer "+token)
	}
	// No proxy stands between here and one's own machine, and a token goes to no
	// other place.
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("no process answers at %s (ops.listen): %w", addr, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusUnauthorized {
		return fmt.Errorf("the process at %s wants another token: set ops.token_file to the file that it has", addr)
	}
	if err := read(resp); err != nil {
		return fmt.Errorf("the process at %s: %w", addr, err)
	}
	return nil
}
