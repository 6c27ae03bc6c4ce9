//go:build tidemark_next_version

// This stands for the next release, in no build that anybody is given: the
// end-to-end tests build it to see what an ordinary worker, which is the older
// one then, does with inputs that it does not understand.

package ahead

// Versions is one: the inputs are those of the next release.
const Versions = 1
