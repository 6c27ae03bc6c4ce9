package config

import "strings"

// didYouMean gives the end of a sentence about an unknown name: the known name
// that is nearest to it, or nothing if none is near.
func didYouMean(name string, known []string) string {
	best, bestDistance := "", len(name)/2+1
	for _, k := range known {
		d := distance(strings.ToLower(name), strings.ToLower(k))
		// A key without its section is a near miss, however short it is.
		if strings.HasSuffix(k, "."+name) {
			d = 0
		}
		if d < bestDistance || d == bestDistance && best != "" && k < best {
			best, bestDistance = k, d
		}
	}
	if best == "" {
		return ""
	}
	return "; did you mean " + best + "?"
}

// distance is the Levenshtein distance of two texts in bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
