package flight

import (
	"net"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/tidemark-cdc/tidemark/internal/certtest"
	"github.com/tidemark-cdc/tidemark/internal/pgtest"
	"github.com/tidemark-cdc/tidemark/internal/segment"
	"github.com/tidemark-cdc/tidemark/internal/segment/segmenttest"
)

func TestServerBindsOnlyToWhatIsSafe(t *testing.T) {
	ca := certtest.New(t)
	cert, key := ca.Issue(t, "streamer", "127.0.0.1")
	token := file(t, "token", "s3cret")
	for name, c := range map[string]struct {
		cfg  ServerConfig
		want string // in the error; "" for none
	}{
		"the default":                        {ServerConfig{}, ""},
		"loopback by name":                   {ServerConfig{Listen: "localhost:0"}, ""},
		"all addresses":                      {ServerConfig{Listen: "0.0.0.0:0"}, "data.insecure"},
		"all addresses without saying so":    {ServerConfig{Listen: ":0"}, "data.token_file"},
		"all addresses of IPv6":              {ServerConfig{Listen: "[::]:0"}, "data.tls_cert"},
		"TLS without a token":                {ServerConfig{Listen: "0.0.0.0:0", CertFile: cert, KeyFile: key}, "data.token_file"},
		"a token without TLS":                {ServerConfig{Listen: "0.0.0.0:0", TokenFile: token}, "data.tls_cert"},
		"a client CA instead of a token":     {ServerConfig{Listen: "0.0.0.0:0", CertFile: cert, KeyFile: key, ClientCAFile: ca.File}, "data.token_file"},
		"TLS and a token":                    {ServerConfig{Listen: "0.0.0.0:0", CertFile: cert, KeyFile: key, TokenFile: token}, ""},
		"insecure, said so":                  {ServerConfig{Listen: "0.0.0.0:0", Insecure: true}, ""},
		"a certificate without its key":      {ServerConfig{CertFile: cert}, "both or neither"},
		"a key of another certificate":       {ServerConfig{CertFile: cert, KeyFile: second(ca.Issue(t, "other"))}, "private key"},
		"a client CA without TLS":            {ServerConfig{ClientCAFile: ca.File}, "needs TLS"},
		"a client CA that is none":           {ServerConfig{CertFile: cert, KeyFile: key, ClientCAFile: token}, "no PEM certificate"},
		"a token file that is not there":     {ServerConfig{TokenFile: token + "x"}, "no such file"},
		"a token file without a token":       {ServerConfig{TokenFile: file(t, "empty", " \n")}, "holds no token"},
		"a token that no header can carry":   {ServerConfig{TokenFile: file(t, "odd", "tökén")}, "printable ASCII"},
		"an address that is none":            {ServerConfig{Listen: "here"}, `"here"`},
		"advertising no host":                {ServerConfig{Advertise: ":7170"}, "names no host"},
		"advertising any host":               {ServerConfig{Advertise: "0.0.0.0"}, "names no host"},
		"advertising a port that is none":    {ServerConfig{Advertise: "db1:http"}, "no port"},
		"advertising what is no host either": {ServerConfig{Advertise: "db1:1:2"}, "neither"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := NewServer(c.cfg, segmenttest.NewMemory(), quiet)
			if err == nil {
				if cerr := s.Close(); cerr != nil {
					t.Error(cerr)
				}
			}
			switch {
			case c.want == "" && err != nil:
				t.Errorf("error %v", err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("error %v does not say %q", err, c.want)
			case err != nil && strings.Contains(err.Error(), "s3cret"):
				t.Errorf("error %v tells the token", err)
			}
		})
	}
}

func TestServerOnTheNetworkIsNeverBoundWhenRefused(t *testing.T) {
	ports, err := pgtest.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	port := strconv.Itoa(ports[0])
	if _, err := NewServer(ServerConfig{Listen: "0.0.0.0:" + port}, segmenttest.NewMemory(), quiet); err == nil {
		t.Fatal("no error")
	}
	if c, err := net.Dial("tcp", "127.0.0.1:"+port); err == nil {
		_ = c.Close()
		t.Error("something listens")
	}
}

func TestServerAdvertisesAnAddressThatWorkersCanUse(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	bound := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 7170}
	anywhere := &net.TCPAddr{IP: net.IPv6unspecified, Port: 7170}
	for _, c := range []struct {
		advertise string
		bound     *net.TCPAddr
		want      string
	}{
		{"", bound, "127.0.0.1:7170"},
		{"", anywhere, net.JoinHostPort(host, "7170")},
		{"db1.internal", bound, "db1.internal:7170"},
		{"db1.internal:0", anywhere, "db1.internal:7170"},
		{"db1.internal:443", bound, "db1.internal:443"},
		{"10.0.0.7", bound, "10.0.0.7:7170"},
		{"fd00::7", bound, "[fd00::7]:7170"},
		{"[fd00::7]", bound, "[fd00::7]:7170"},
		{"[fd00::7]:443", bound, "[fd00::7]:443"},
	} {
		got, err := ServerConfig{Advertise: c.advertise}.advertise(c.bound)
		if err != nil || got != c.want {
			t.Errorf("advertise %q: %q, %v; want %q", c.advertise, got, err, c.want)
		}
	}
}

func TestClientRefusesWhatCannotWork(t *testing.T) {
	for name, c := range map[string]struct {
		cfg  ClientConfig
		want string
	}{
		"a certificate without its key":  {ClientConfig{CertFile: "c"}, "both or neither"},
		"authorities that are not there": {ClientConfig{CAFile: "/nowhere/ca.pem"}, "no such file"},
		"a token file without a token":   {ClientConfig{TokenFile: file(t, "empty", "")}, "holds no token"},
	} {
		if _, err := NewClient(c.cfg, quiet); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v does not say %q", name, err, c.want)
		}
	}
	c, err := NewClient(ClientConfig{}, quiet)
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{"", "host", "host:", "a:b:c"} {
		if _, err := c.Source(segment.Location{Address: address}); err == nil {
			t.Errorf("address %q is taken", address)
		}
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	s, err := c.Source(segment.Location{Address: "127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Fetch(t.Context(), example(1).Ref.Ticket()); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("a fetch after Close: %v", err)
	}
}

func second(_, b string) string { return b }
