package ops

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidemark-cdc/tidemark/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// start serves p on loopback until the test ends.
func start(t *testing.T, p Page) (url string) {
	t.Helper()
	p.Logger = slog.New(slog.DiscardHandler)
	if p.Metrics == nil {
		p.Metrics = prometheus.NewRegistry()
	}
	ln, err := Listen(t.Context(), "127.0.0.1:0", false)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.Serve(ctx, ln) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
		http.DefaultClient.CloseIdleConnections()
	})
	return "http://" + ln.Addr().String()
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

func TestReadyzSaysWhyNot(t *testing.T) {
	for name, tc := range map[string]struct {
		reasons []string
		status  int
	}{
		"ready":     {nil, 200},
		"not ready": {[]string{"Temporal is unreachable since 12:00:00"}, 503},
	} {
		t.Run(name, func(t *testing.T) {
			url := start(t, Page{Ready: func() []string { return tc.reasons }})
			status, body := get(t, url+"/readyz")
			var r Readiness
			if err := json.Unmarshal([]byte(body), &r); err != nil {
				t.Fatal(err)
			}
			if status != tc.status || r.Ready != (tc.status == 200) || len(r.Reasons) != len(tc.reasons) {
				t.Errorf("got %d %s", status, body)
			}
			if status, _ := get(t, url+"/healthz"); status != 200 {
				t.Errorf("health is %d", status)
			}
		})
	}
}

func TestStatusIsJSON(t *testing.T) {
	url := start(t, Page{Status: func() any { return map[string]int{"rows": 3} }})
	if status, body := get(t, url+"/status"); status != 200 || !strings.Contains(body, `"rows": 3`) {
		t.Errorf("got %d %s", status, body)
	}
}

func TestStatusThatCannotBeEncodedIsAnError(t *testing.T) {
	url := start(t, Page{Status: func() any { return func() {} }})
	if status, _ := get(t, url+"/status"); status != 500 {
		t.Errorf("got %d", status)
	}
}

func TestMetricsFollowTheReadings(t *testing.T) {
	url := start(t, Page{Metrics: everything()})
	_, body := get(t, url+"/metrics")
	for _, want := range []string{
		`tidemark_build_info{version="v1.2.3"} 1`,
		`tidemark_connected{pipeline="orders"} 1`,
		`tidemark_ring_bytes{pipeline="orders",range="waiting"} 7`,
		`tidemark_segments{pipeline="orders",state="running"} 4`,
		`tidemark_ack_lsn{pipeline="orders"} 16`,
		`tidemark_received_lsn{pipeline="orders"} 32`,
		`tidemark_feedback_age_seconds{pipeline="orders"} 1.5`,
		`tidemark_session_state{pipeline="orders",state="streaming"} 1`,
		`tidemark_session_state{pipeline="orders",state="standby"} 0`,
		`tidemark_changes_received_total{operation="insert",pipeline="orders"} 9`,
		`tidemark_oldest_waiting_age_seconds{pipeline="orders"} 2`,
		`tidemark_ack_record_pending_seconds{pipeline="orders"} 4`,
		`tidemark_slot_safe_wal_bytes{pipeline="orders"} 12`,
		`tidemark_slot_retained_wal_bytes{pipeline="orders"} 11`,
		`tidemark_reconnects_total{cause="connection_lost",pipeline="orders"} 1`,
		`tidemark_reconnects_total{cause="slot_in_use",pipeline="orders"} 0`,
		`tidemark_upload_failures_total{action="quarantine",class="StoreDenied",pipeline="orders"} 0`,
		`tidemark_commit_to_lake_seconds_sum{pipeline="orders"} 3`,
		`tidemark_upload_attempts_total{action="upload",pipeline="orders"} 2`,
		`tidemark_upload_failures_total{action="upload",class="StoreThrottled",pipeline="orders"} 1`,
		`tidemark_upload_step_seconds_count{pipeline="orders",step="encode"} 1`,
		`tidemark_changes_decoded_total{operation="update",pipeline="orders"} 6`,
		`tidemark_object_bytes_sum{pipeline="orders"} 2048`,
		`tidemark_segments_quarantined_total{pipeline="orders"} 1`,
		`temporal_request_total{activity_type="",cause="",failure_reason="",namespace="",operation="Poll",poller_type="",task_queue="",worker_type="",workflow_type=""} 1`,
		`tidemark_segments_adopted_total{pipeline="orders"} 3`,
		`tidemark_drifted_tables{kind="dropped",pipeline="orders"} 1`,
	} {
		if !strings.Contains(body, want+"\n") {
			t.Errorf("no %s", want)
		}
	}
}

func TestATakenAddressIsAnErrorUnlessAnyPortWillDo(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	addr := taken.Addr().String()
	if _, err := Listen(t.Context(), addr, false); err == nil || !strings.Contains(err.Error(), "set ops.listen") {
		t.Errorf("got %v", err)
	}
	ln, err := Listen(t.Context(), addr, true)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if ln.Addr().String() == addr {
		t.Error("bound an address that is taken")
	}
}
