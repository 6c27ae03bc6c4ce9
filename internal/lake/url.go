package lake

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
)

// location is a parsed lake URL.
type location struct {
	// bucket and prefix of an s3 lake. The prefix has no slash at either end
	// and may be empty.
	bucket, prefix string
	// dir is the absolute, clean folder of a file lake, else empty.
	dir string
}

// bucketName follows the naming rules of general purpose buckets, and also
// takes the underscores and capitals of old buckets and of other stores.
var bucketName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{1,253}[A-Za-z0-9]$`)

// parseURL reads a lake's URL. The text of s is in no error when it could hold
// a credential.
func parseURL(s string) (location, error) {
	scheme, rest, ok := strings.Cut(s, "://")
	if !ok || s == "" {
		return location{}, fmt.Errorf("lake URL %q: want s3://bucket/prefix or file:///folder", s)
	}
	if host, _, _ := strings.Cut(rest, "/"); strings.Contains(host, "@") {
		return location{}, fmt.Errorf("lake URL: it has a user name or password before the %q; leave them out: credentials come from the AWS configuration", "@")
	}
	if i := strings.IndexFunc(rest, func(r rune) bool { return r < ' ' || r == 0x7f || strings.ContainsRune("?#%\\", r) }); i >= 0 {
		return location{}, fmt.Errorf("lake URL: it has the character %q, which a lake's URL must not have", rest[i])
	}
	switch scheme {
	case "s3":
		bucket, prefix, _ := strings.Cut(rest, "/")
		if !bucketName.MatchString(bucket) {
			return location{}, fmt.Errorf("lake URL %q: %q is not the name of a bucket", s, bucket)
		}
		prefix = strings.Trim(prefix, "/")
		if prefix != "" {
			if err := checkKey(prefix); err != nil {
				return location{}, fmt.Errorf("lake URL %q: prefix: %w", s, err)
			}
		}
		return location{bucket: bucket, prefix: prefix}, nil
	case "file":
		if !strings.HasPrefix(rest, "/") {
			return location{}, fmt.Errorf("lake URL %q: want an absolute folder, such as file:///var/lib/tidemark/lake", s)
		}
		dir := filepath.Clean(rest)
		if dir == "/" {
			return location{}, fmt.Errorf("lake URL %q: the root folder cannot be a lake: name a folder below it", s)
		}
		return location{dir: dir}, nil
	}
	return location{}, fmt.Errorf("lake URL %q: %q is not a kind of lake: want s3://bucket/prefix or file:///folder", s, scheme)
}

// String is the canonical form: no slash at the end, so that the same lake has
// one text.
func (l location) String() string {
	switch {
	case l.dir != "":
		return "file://" + l.dir
	case l.prefix != "":
		return "s3://" + l.bucket + "/" + l.prefix
	}
	return "s3://" + l.bucket
}

// Canonical gives the canonical form of a lake's URL, which is what a
// segment's reference carries, without opening the lake.
func Canonical(url string) (string, error) {
	l, err := parseURL(url)
	if err != nil {
		return "", err
	}
	return l.String(), nil
}

// checkKey refuses a key that not every store can hold; see Store.
func checkKey(key string) error {
	for name := range strings.SplitSeq(key, "/") {
		if name == "" || name[0] == '.' || strings.ContainsRune(name, 0) {
			return fmt.Errorf("key %q: a name in it is empty or begins with a dot", key)
		}
	}
	return nil
}
