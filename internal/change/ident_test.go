package change

import "testing"

// The wanted names are what quote_ident printed on Postgres 18.
func TestQualifiedNameIsAsPostgresPrintsIt(t *testing.T) {
	for _, c := range []struct{ namespace, name, want string }{
		{"public", "accounts", "public.accounts"},
		{"public", "_a1", "public._a1"},
		{"public", "1a", `public."1a"`},
		{"public", "a$b", `public."a$b"`},
		{"public", "Orders", `public."Orders"`},
		{"public", "straße", `public."straße"`},
		{"public", "two words", `public."two words"`},
		{"public", `say "hi"`, `public."say ""hi"""`},
		{"public", "a.b", `public."a.b"`},
		{"public", "user", `public."user"`}, // reserved
		{"public", "int", `public."int"`},   // column name keyword
		{"public", "left", `public."left"`}, // type or function name keyword
		{"public", "abort", "public.abort"}, // unreserved
		{"public", "json", `public."json"`}, // a keyword from 16 on
		{"Select", "select", `"Select"."select"`},
	} {
		r := Relation{Namespace: c.namespace, Name: c.name}
		if got := r.QualifiedName(); got != c.want {
			t.Errorf("QualifiedName of %q.%q = %s, want %s", c.namespace, c.name, got, c.want)
		}
	}
}
