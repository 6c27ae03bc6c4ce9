package e2e

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/tidemark-cdc/tidemark/cmd/devstack/e2e/harness"
	"github.com/tidemark-cdc/tidemark/cmd/devstack/stack"
)

// objects puts and gets, without retries, through one endpoint.
type objects struct {
	t      *testing.T
	client *s3.Client
	bucket string
}

func (o objects) put(key, body string) error {
	o.t.Helper()
	ctx, cancel := context.WithTimeout(o.t.Context(), harness.Bound)
	defer cancel()
	_, err := o.client.PutObject(ctx, &s3.PutObjectInput{Bucket: &o.bucket, Key: &key, Body: bytes.NewReader([]byte(body))})
	return err
}

// get is the object's body, or "" and false when there is none.
func (o objects) get(key string) (string, bool) {
	o.t.Helper()
	out, err := o.client.GetObject(o.t.Context(), &s3.GetObjectInput{Bucket: &o.bucket, Key: &key})
	if err != nil {
		return "", false
	}
	defer out.Body.Close()
	body, err := io.ReadAll(out.Body)
	if err != nil {
		o.t.Fatal(err)
	}
	return string(body), true
}

func proxied(t *testing.T) (proxy *stack.FaultProxy, through, direct objects) {
	t.Helper()
	gateway, proxy := startGateway(t)
	return proxy,
		objects{t, gateway.Client(proxy.Endpoint()), gateway.Bucket()},
		objects{t, gateway.Client(""), gateway.Bucket()}
}

func TestFaultProxyPassesSignedRequestsOfAnySize(t *testing.T) {
	_, through, direct := proxied(t)
	body := string(bytes.Repeat([]byte("0123456789abcdef"), 1<<20)) // 16 MiB
	if err := through.put("a/b c+d/ü.parquet", body); err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]objects{"direct": direct, "through the proxy": through} {
		if got, ok := o.get("a/b c+d/ü.parquet"); !ok || got != body {
			t.Errorf("read %s: got %d bytes, want %d", name, len(got), len(body))
		}
	}
}

func TestHeldUploadReachesTheStoreOnlyWhenReleased(t *testing.T) {
	proxy, through, direct := proxied(t)
	hold := proxy.Hold(stack.Puts("held"), 1)
	done := make(chan error, 1)
	go func() { done <- through.put("held", "x") }()
	ctx, cancel := context.WithTimeout(t.Context(), harness.Bound)
	defer cancel()
	if err := hold.WaitHits(ctx, 1); err != nil {
		t.Fatal(err)
	}
	// Others pass meanwhile, also a second one that matches, since the fault is for one.
	for _, key := range []string{"other", "held too"} {
		if err := through.put(key, "y"); err != nil {
			t.Fatal(err)
		}
	}
	if _, ok := direct.get("held"); ok {
		t.Fatal("the store has an object whose upload is held")
	}
	hold.Remove()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if _, ok := direct.get("held"); !ok {
		t.Fatal("the store does not have the object after its upload was released")
	}
}

func TestUploadOfAClientThatGaveUpArrivesLate(t *testing.T) {
	proxy, through, direct := proxied(t)
	hold := proxy.Hold(stack.Any, 1)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		key := "late"
		_, err := through.client.PutObject(ctx, &s3.PutObjectInput{Bucket: &through.bucket, Key: &key, Body: bytes.NewReader([]byte("x"))})
		done <- err
	}()
	if err := hold.WaitHits(ctx, 1); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-done; err == nil {
		t.Fatal("the client did not give up")
	}
	hold.Remove()
	eventually(t, harness.Bound, "the late upload has not arrived", func() bool {
		_, ok := direct.get("late")
		return ok
	})
}

func TestLostAnswerLeavesTheObjectInTheStore(t *testing.T) {
	proxy, through, direct := proxied(t)
	proxy.LoseAnswer(stack.Puts("lost"), 1)
	if err := through.put("lost", "x"); err == nil {
		t.Fatal("the client got an answer that was to be lost")
	}
	if _, ok := direct.get("lost"); !ok {
		t.Fatal("the store does not have the object")
	}
	if err := through.put("lost", "x"); err != nil {
		t.Fatalf("the second upload met a fault for one: %v", err)
	}
}

func TestRefusedAndResetUploadsDoNotReachTheStore(t *testing.T) {
	for name, c := range map[string]struct {
		fault  func(*stack.FaultProxy) *stack.Fault
		status int
	}{
		"refused": {func(p *stack.FaultProxy) *stack.Fault { return p.Refuse(stack.Any, http.StatusServiceUnavailable, 0) }, 503},
		"reset":   {func(p *stack.FaultProxy) *stack.Fault { return p.Reset(stack.Any, 0) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			proxy, through, direct := proxied(t)
			fault := c.fault(proxy)
			err := through.put("k", "x")
			var answer *awshttp.ResponseError
			status := 0
			if errors.As(err, &answer) {
				status = answer.HTTPStatusCode()
			}
			if err == nil || status != c.status {
				t.Fatalf("got status %d and %v, want status %d", status, err, c.status)
			}
			if _, ok := direct.get("k"); ok {
				t.Fatal("the store has the object")
			}
			fault.Remove()
			if err := through.put("k", "x"); err != nil {
				t.Fatalf("after the fault: %v", err)
			}
			if n := len(proxy.Requests(stack.Puts("k"))); n != 2 {
				t.Errorf("the proxy has seen %d uploads, want 2", n)
			}
		})
	}
}

func TestDelayedUploadTakesAsLongAsTold(t *testing.T) {
	proxy, through, _ := proxied(t)
	proxy.Delay(stack.Puts("slow"), 700*time.Millisecond)
	begin := time.Now()
	if err := through.put("slow", "x"); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begin); took < 700*time.Millisecond {
		t.Errorf("the upload took %s", took)
	}
}

func TestStoppedGatewayLooksLikeABrokenConnection(t *testing.T) {
	gateway, proxy := startGateway(t)
	through := objects{t, gateway.Client(proxy.Endpoint()), gateway.Bucket()}
	if err := through.put("k", "before"); err != nil {
		t.Fatal(err)
	}
	if err := gateway.Kill(); err != nil {
		t.Fatal(err)
	}
	err := through.put("k", "while it is down")
	var answer *awshttp.ResponseError
	if err == nil || errors.As(err, &answer) && answer.HTTPStatusCode() != 0 {
		t.Fatalf("got %v, want a broken connection", err)
	}
	if err := gateway.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, ok := through.get("k"); !ok || got != "before" {
		t.Fatalf("after the restart the object is %q", got)
	}
	if _, err := through.client.HeadBucket(t.Context(), &s3.HeadBucketInput{Bucket: aws.String(gateway.Bucket())}); err != nil {
		t.Fatal(err)
	}
}

func eventually(t *testing.T, bound time.Duration, missing string, check func() bool) {
	t.Helper()
	end := time.NewTimer(bound)
	defer end.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !check() {
		select {
		case <-tick.C:
		case <-end.C:
			t.Fatalf("after %s: %s", bound, missing)
		}
	}
}
