package tracing

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/url"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// Settings is where traces go, and which. It may hold secrets: headers.
type Settings struct {
	// Disabled says that the environment turns OpenTelemetry off as a whole.
	Disabled bool

	grpc     bool
	address  string // host and port
	path     string // of the URL; not for gRPC
	insecure bool
	tls      *tls.Config // nil: the defaults
	headers  map[string]string
	gzip     bool
	timeout  time.Duration
	sampler  sdktrace.Sampler
	resource []attribute.KeyValue
}

// FromEnviron reads the variables that OpenTelemetry specifies
// (https://opentelemetry.io/docs/specs/otel/protocol/exporter/ and
// .../configuration/sdk-environment-variables/) out of NAME=value pairs, and
// gives what is wrong with them, a sentence each, in which no value of a header
// stands. Those with which spans are batched (OTEL_BSP_...) the library reads for
// itself.
func FromEnviron(environ []string) (Settings, []string) {
	r := reader{environ: environ}
	s := Settings{
		Disabled: strings.EqualFold(r.value("OTEL_SDK_DISABLED"), "true"),
		timeout:  10 * time.Second,
		sampler:  r.sampler(),
		resource: r.resource(),
	}
	protocol, name := r.exporter("PROTOCOL")
	switch protocol {
	case "", "http/protobuf":
	case "grpc":
		s.grpc = true
	default:
		r.problem(name, "want grpc or http/protobuf")
	}
	r.endpoint(&s)
	r.headers(&s)
	if text, name := r.exporter("TIMEOUT"); text != "" {
		s.timeout = r.milliseconds(name, text)
	}
	switch text, name := r.exporter("COMPRESSION"); text {
	case "", "none":
	case "gzip":
		s.gzip = true
	default:
		r.problem(name, "want gzip or none")
	}
	s.tls = r.tls()
	if s.insecure && s.tls != nil {
		r.problem("OTEL_EXPORTER_OTLP_CERTIFICATE", "certificates are set, and the endpoint is one without TLS: want https")
	}
	for _, name := range []string{"OTEL_BSP_SCHEDULE_DELAY", "OTEL_BSP_EXPORT_TIMEOUT", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE"} {
		if text := r.value(name); text != "" {
			r.milliseconds(name, text)
		}
	}
	return s, r.problems
}

// reader reads variables and collects what is wrong with them.
type reader struct {
	environ  []string
	problems []string
}

func (r *reader) problem(name, format string, args ...any) {
	r.problems = append(r.problems, fmt.Sprintf("the environment variable %s: %s", name, fmt.Sprintf(format, args...)))
}

// value is a variable's; one that is set to nothing counts as not set.
func (r *reader) value(name string) string {
	for _, pair := range slices.Backward(r.environ) {
		if n, v, ok := strings.Cut(pair, "="); ok && n == name {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// exporter is the value of a variable of the exporter's, and its name: the one
// for traces alone, or the one for everything.
func (r *reader) exporter(what string) (text, name string) {
	name = "OTEL_EXPORTER_OTLP_TRACES_" + what
	if text = r.value(name); text == "" {
		name = "OTEL_EXPORTER_OTLP_" + what
		text = r.value(name)
	}
	return text, name
}

// milliseconds reads a whole number above zero.
func (r *reader) milliseconds(name, text string) time.Duration {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 1 {
		r.problem(name, "want a whole number above zero")
	}
	return time.Duration(n) * time.Millisecond
}

func (r *reader) endpoint(s *Settings) {
	text, name := r.exporter("ENDPOINT")
	if text == "" {
		text = "http://localhost:4318"
		if s.grpc {
			text = "http://localhost:4317"
		}
	}
	if s.grpc && !strings.Contains(text, "://") {
		if _, _, err := net.SplitHostPort(text); err != nil {
			r.problem(name, "want host:port, or a URL such as http://collector:4317")
		}
		insecure, _ := r.exporter("INSECURE")
		s.address, s.insecure = text, strings.EqualFold(insecure, "true")
		return
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		r.problem(name, "want a URL such as http://collector:4318")
		return
	case u.User != nil:
		r.problem(name, "want a URL without user and password; what the collector asks for goes into OTEL_EXPORTER_OTLP_HEADERS")
		return
	case u.RawQuery != "" || u.Fragment != "":
		r.problem(name, "want a URL without query and fragment")
		return
	case s.grpc && strings.Trim(u.Path, "/") != "":
		r.problem(name, "want a URL without path, since OTEL_EXPORTER_OTLP_PROTOCOL is grpc")
		return
	}
	s.address, s.insecure, s.path = u.Host, u.Scheme == "http", u.Path
	switch {
	case u.Port() != "":
	case s.insecure:
		s.address = net.JoinHostPort(u.Hostname(), "80")
	default:
		s.address = net.JoinHostPort(u.Hostname(), "443")
	}
	if !strings.Contains(name, "TRACES") {
		s.path = path.Join("/", s.path, "v1/traces")
	} else if s.path == "" {
		s.path = "/"
	}
}

// headerName is a token of RFC 9110.
var headerName = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")

// headers reads both variables: the library reads both, and would log what is
// wrong with either of them as it stands there.
func (r *reader) headers(s *Settings) {
	for _, name := range []string{"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"} {
		text := r.value(name)
		if text == "" {
			continue
		}
		s.headers = map[string]string{}
		for i, part := range strings.Split(text, ",") {
			key, value, found := strings.Cut(part, "=")
			key = strings.TrimSpace(key)
			value, err := url.PathUnescape(value)
			value = strings.TrimSpace(value)
			if !found || !headerName.MatchString(key) || err != nil || strings.ContainsFunc(value, isControl) {
				r.problem(name, "its entry %d is no header: want name=value between commas, with %%2C for a comma and %%25 for %% within a value", i+1)
				continue
			}
			s.headers[key] = value
		}
	}
}

func isControl(c rune) bool { return c < ' ' || c == 0x7f }

// tls reads the files with certificates; nil without one.
func (r *reader) tls() *tls.Config {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if file, name := r.exporter("CERTIFICATE"); file != "" {
		c.RootCAs = x509.NewCertPool()
		pem, err := os.ReadFile(file)
		if err != nil {
			r.problem(name, "%v", err)
		} else if !c.RootCAs.AppendCertsFromPEM(pem) {
			r.problem(name, "%s has no certificate in PEM", file)
		}
	}
	cert, name := r.exporter("CLIENT_CERTIFICATE")
	key, _ := r.exporter("CLIENT_KEY")
	switch {
	case (cert == "") != (key == ""):
		r.problem(name, "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE and OTEL_EXPORTER_OTLP_CLIENT_KEY go together, and only one is set")
	case cert != "":
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			r.problem(name, "%v", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	if c.RootCAs == nil && c.Certificates == nil {
		return nil
	}
	return c
}

// sampler decides by the trace's ID alone, wherever a trace begins.
func (r *reader) sampler() sdktrace.Sampler {
	name, arg := r.value("OTEL_TRACES_SAMPLER"), r.value("OTEL_TRACES_SAMPLER_ARG")
	kind, based := strings.CutPrefix(name, "parentbased_")
	var root sdktrace.Sampler
	switch kind {
	case "":
		return sdktrace.ParentBased(sdktrace.AlwaysSample())
	case "always_on":
		root = sdktrace.AlwaysSample()
	case "always_off":
		root = sdktrace.NeverSample()
	case "traceidratio":
		ratio := 1.0
		if arg != "" {
			var err error
			if ratio, err = strconv.ParseFloat(arg, 64); err != nil || !(ratio >= 0 && ratio <= 1) {
				r.problem("OTEL_TRACES_SAMPLER_ARG", "want a number from 0 to 1")
				return nil
			}
		}
		root = sdktrace.TraceIDRatioBased(ratio)
	default:
		r.problem("OTEL_TRACES_SAMPLER", "want always_on, always_off or traceidratio, with parentbased_ before it or without")
		return nil
	}
	if based {
		return sdktrace.ParentBased(root)
	}
	return root
}

// resource is what the environment says of this process.
func (r *reader) resource() []attribute.KeyValue {
	const name = "OTEL_RESOURCE_ATTRIBUTES"
	var list []attribute.KeyValue
	if text := r.value(name); text != "" {
		for i, part := range strings.Split(text, ",") {
			key, value, found := strings.Cut(part, "=")
			key = strings.TrimSpace(key)
			value, err := url.PathUnescape(strings.TrimSpace(value))
			if !found || key == "" || err != nil {
				r.problem(name, "its entry %d is no attribute: want key=value between commas, with %%2C for a comma and %%25 for %% within a value", i+1)
				continue
			}
			list = append(list, attribute.String(key, value))
		}
	}
	if service := r.value("OTEL_SERVICE_NAME"); service != "" {
		list = append(list, attribute.String(serviceName, service))
	}
	return list
}
