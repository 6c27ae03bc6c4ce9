package lake_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// fakeSTS is as much of AWS' Security Token Service as hands out credentials:
// "AssumeRole" to whom signs with the access key AKIATEST, and
// "AssumeRoleWithWebIdentity" to whom shows a token. It numbers them.
type fakeSTS struct {
	mu    sync.Mutex
	given int
	// tokens are the web identity tokens that were shown.
	tokens []string
}

func (f *fakeSTS) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	action := r.Form.Get("Action")
	signed := strings.Contains(r.Header.Get("Authorization"), "Credential=AKIATEST/")
	switch token := r.Form.Get("WebIdentityToken"); {
	case r.Form.Get("RoleArn") != "arn:aws:iam::123456789012:role/tidemark":
		http.Error(w, "another role", http.StatusForbidden)
		return
	case action == "AssumeRole" && signed:
	case action == "AssumeRoleWithWebIdentity" && token != "":
		f.tokens = append(f.tokens, token)
	default:
		http.Error(w, "who are you?", http.StatusForbidden)
		return
	}
	f.given++
	// They have expired from the beginning, so that each request needs new ones.
	fmt.Fprintf(w, `<%[1]sResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><%[1]sResult><Credentials>
		<AccessKeyId>ASIAROLE%[2]d</AccessKeyId><SecretAccessKey>role-secret</SecretAccessKey><SessionToken>role-session</SessionToken>
		<Expiration>%[3]s</Expiration></Credentials></%[1]sResult></%[1]sResponse>`, action, f.given, time.Now().UTC().Add(-time.Second).Format(time.RFC3339))
}

// A lake takes the AWS default chain as it is: a role that is assumed with other
// credentials, and one that is assumed with the token of a web identity, which
// Kubernetes and GitHub replace in its file. Credentials that expire are renewed
// while the process runs.
func TestRolesAreAssumedByTheDefaultChain(t *testing.T) {
	const role = "arn:aws:iam::123456789012:role/tidemark"
	token := filepath.Join(t.TempDir(), "token")
	profile := filepath.Join(t.TempDir(), "config")
	text := "[profile lake]\nrole_arn = " + role + "\nsource_profile = base\n[profile base]\naws_access_key_id = AKIATEST\naws_secret_access_key = " + secret + "\n"
	if err := os.WriteFile(profile, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		environ map[string]string
		// tokens are those that are shown.
		tokens string
	}{
		"assume-role":  {map[string]string{"AWS_PROFILE": "lake", "AWS_CONFIG_FILE": profile}, ""},
		"web identity": {map[string]string{"AWS_ROLE_ARN": role, "AWS_WEB_IDENTITY_TOKEN_FILE": token}, "first second"},
	} {
		t.Run(name, func(t *testing.T) {
			sts := &fakeSTS{}
			stsServer := httptest.NewServer(sts)
			defer stsServer.Close()
			s3 := startS3(t)
			awsEnvironment(t)
			// In the environment they would win.
			t.Setenv("AWS_ACCESS_KEY_ID", "")
			t.Setenv("AWS_SECRET_ACCESS_KEY", "")
			for k, v := range tc.environ {
				t.Setenv(k, v)
			}
			t.Setenv("AWS_ENDPOINT_URL_STS", stsServer.URL)
			t.Setenv("AWS_REGION", "eu-central-1")
			l := s3.openAsItIs(t, "p", nil)
			for i, shown := range []string{"first", "second"} {
				if err := os.WriteFile(token, []byte(shown), 0o600); err != nil {
					t.Fatal(err)
				}
				if err := l.Check(t.Context()); err != nil {
					t.Fatal(err)
				}
				last := s3.headers[len(s3.headers)-1]
				if want := fmt.Sprintf("Credential=ASIAROLE%d/", sts.given); sts.given <= i || !strings.Contains(last.Get("Authorization"), want) || last.Get("X-Amz-Security-Token") != "role-session" {
					t.Errorf("request %d is signed with %q", i+1, last.Get("Authorization"))
				}
			}
			// Each once, however often it was asked for.
			if got := strings.Join(slices.Compact(sts.tokens), " "); got != tc.tokens {
				t.Errorf("the tokens shown are %q, want %q", got, tc.tokens)
			}
		})
	}
}
