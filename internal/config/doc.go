// Package config reads the settings of a Tidemark process from a YAML file,
// from TIDEMARK_* environment variables and from flags, each of which overrides
// the ones before, and remembers where every value came from.
//
// A setting has one name everywhere: the key segment.max_rows is max_rows under
// segment in the file, TIDEMARK_SEGMENT_MAX_ROWS in the environment and
// --segment-max-rows as a flag. The settings are listed once, in settings.go;
// what is not in that list is refused wherever it stands, with the nearest name
// that is. A variable that is set to nothing counts as not set, and so does a
// key without a value in the file.
//
// The package reads no environment and knows no other package of Tidemark:
// its caller hands it the environment, and copies from Config what each
// package wants. Everything that is wrong is reported at once, as an InvalidError.
//
// Only cmd/tidemark uses it.
package config
