package lake

import "testing"

func TestAnotherTagIsAnotherOne(t *testing.T) {
	for _, etag := range []string{
		`"d41d8cd98f00b204e9800998ecf8427e"`, `"d41d8cd98f00b204e9800998ecf8427e-12"`, // S3's, of one and of twelve parts
		`"abcdef"`, `"-CKicnXfknvsCEAE="`, `"M"`, `"n"`, `"5"`,
	} {
		if other := otherTag(etag); other == etag || otherTag(other) != etag {
			t.Errorf("%s becomes %s", etag, other)
		}
	}
	if got := otherTag(`"09af"`); got != `"90fa"` {
		t.Errorf("hexadecimal becomes %s", got)
	}
}
