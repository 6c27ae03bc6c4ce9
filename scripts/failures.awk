# Reads what `go test -v` has written and prints the failed tests with their own
# lines, then their names: the end of a long log that says what is wrong.
#
#   awk -v room=20000 -f scripts/failures.awk <log>...
#
# room is how many characters all of it may have, about: each failure has an equal
# part, of which its beginning and its end are shown. Lines of a failure that is no
# test's (a build, a data race, a panic, a package that ends with a bad status) are
# shown under what they are of.
BEGIN {
	if (!room) room = 20000
}

FNR == 1 { forget() }

# The compiler and vet: "# package", then their lines.
/^# [^ ]+\/[^ ]+( \[.*\])?$/ {
	building = "build of " $2
	if (!(building in built)) builds[++nbuilds] = building
	built[building] = built[building]
	next
}
/^(=== |ok  |FAIL|PASS|\?|panic: )/ || /^ *--- / { building = "" }
building != "" {
	built[building] = built[building] $0 "\n"
	next
}

# The race detector's report stands in whatever was said at that time.
/^WARNING: DATA RACE/ { racing = 1; fail("data race") }
racing {
	said["data race"] = said["data race"] $0 "\n"
	if (/^=====/) racing = 0
	next
}

/^=== (RUN|NAME|CONT) / { current = $3; next }
/^=== / { next }
/^ *--- FAIL: / { current = $3; fail(current); next }
/^ *--- (PASS|SKIP): / { next }
/^FAIL\t/ { package($2, $0); next }
/^ok  / { forget(); next }
/^(FAIL|PASS|\?.*no test files\])$/ { next }
/^(panic|fatal error|goleak): / { current = "the test process"; fail(current) }
{
	said[current] = said[current] $0 "\n"
	last[++nlast] = $0
}

function fail(name) {
	if (name in failed) return
	failed[name] = 1
	order[++nfailed] = name
}

# package ends a package that has failed.
function package(path, line,    i, own) {
	for (i = 1; i <= nfailed; i++)
		if (said[order[i]] != "") {
			own = 1
			keep(order[i] "  (" path ")", said[order[i]])
		}
	# Nothing is known to have failed: the end of what the package has said.
	if (!own && line !~ /\[(build|setup) failed\]$/) {
		own = ""
		for (i = nlast > 80 ? nlast - 79 : 1; i <= nlast; i++) own = own last[i] "\n"
		keep((nfailed ? order[nfailed] "  " : "") "(" path ")", own)
	}
	forget()
}

function keep(title, text) {
	titles[++kept] = title
	texts[kept] = text
}

function forget(    name) {
	for (name in said) delete said[name]
	for (name in failed) delete failed[name]
	nfailed = nlast = racing = 0
	current = building = ""
}

# clipped is a text's beginning and end, in whole lines.
function clipped(text, size,    head, tail) {
	if (length(text) <= size) return text
	head = substr(text, 1, int(size * 0.6))
	tail = substr(text, length(text) - int(size * 0.4))
	sub(/[^\n]*$/, "", head)
	sub(/^[^\n]*\n/, "", tail)
	return head "    [...]\n" tail
}

END {
	# The log broke off within a package.
	if (nfailed || racing) package("no end", "")
	for (i = 1; i <= nbuilds; i++) keep(builds[i], built[builds[i]])
	if (!kept) exit
	size = int(room / kept)
	if (size < 800) size = 800
	for (i = 1; i <= kept; i++) printf "--- FAIL: %s\n%s", titles[i], clipped(texts[i], size)
	print "failed:"
	for (i = 1; i <= kept; i++) print "  " titles[i]
}
