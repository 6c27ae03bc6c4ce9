package change

import "strings"

// QualifiedName is the table's name as Postgres prints it: schema.table, each
// part quoted where quote_ident would quote it.
func (r *Relation) QualifiedName() string {
	b := make([]byte, 0, len(r.Namespace)+len(r.Name)+5)
	b = appendIdent(b, r.Namespace)
	b = append(b, '.')
	return string(appendIdent(b, r.Name))
}

// appendIdent appends name as quote_ident prints it (quote_identifier in
// src/backend/utils/adt/ruleutils.c): bare if it is made of lower-case ASCII
// letters, digits and underscores, does not begin with a digit and is no
// keyword other than an unreserved one; else in double quotes, with those
// inside doubled.
func appendIdent(b []byte, name string) []byte {
	if isBare(name) {
		return append(b, name...)
	}
	b = append(b, '"')
	b = append(b, strings.ReplaceAll(name, `"`, `""`)...)
	return append(b, '"')
}

func isBare(name string) bool {
	for i := range len(name) {
		c := name[i]
		switch {
		case 'a' <= c && c <= 'z' || c == '_':
		case '0' <= c && c <= '9' && i > 0:
		default:
			return false
		}
	}
	return name != "" && !isKeyword(name)
}

// isKeyword says whether quote_ident quotes word for being a keyword: every
// category but UNRESERVED_KEYWORD of src/include/parser/kwlist.h. The list is
// Postgres 18's (pg_get_keywords() where catcode <> 'U'), which contains those
// of 15 to 17: so a table keeps its name in the lake across an upgrade, and
// one called json stands as "json" on 15 too, where Postgres would print it
// bare.
func isKeyword(word string) bool {
	switch word {
	case "all", "analyse", "analyze", "and", "any", "array", "as", "asc", "asymmetric",
		"authorization", "between", "bigint", "binary", "bit", "boolean", "both", "case", "cast",
		"char", "character", "check", "coalesce", "collate", "collation", "column", "concurrently",
		"constraint", "create", "cross", "current_catalog", "current_date", "current_role",
		"current_schema", "current_time", "current_timestamp", "current_user", "dec", "decimal",
		"default", "deferrable", "desc", "distinct", "do", "else", "end", "except", "exists",
		"extract", "false", "fetch", "float", "for", "foreign", "freeze", "from", "full", "grant",
		"greatest", "group", "grouping", "having", "ilike", "in", "initially", "inner", "inout",
		"int", "integer", "intersect", "interval", "into", "is", "isnull", "join", "json",
		"json_array", "json_arrayagg", "json_exists", "json_object", "json_objectagg", "json_query",
		"json_scalar", "json_serialize", "json_table", "json_value", "lateral", "leading", "least",
		"left", "like", "limit", "localtime", "localtimestamp", "merge_action", "national",
		"natural", "nchar", "none", "normalize", "not", "notnull", "null", "nullif", "numeric",
		"offset", "on", "only", "or", "order", "out", "outer", "overlaps", "overlay", "placing",
		"position", "precision", "primary", "real", "references", "returning", "right", "row",
		"select", "session_user", "setof", "similar", "smallint", "some", "substring", "symmetric",
		"system_user", "table", "tablesample", "then", "time", "timestamp", "to", "trailing",
		"treat", "trim", "true", "union", "unique", "user", "using", "values", "varchar",
		"variadic", "verbose", "when", "where", "window", "with", "xmlattributes", "xmlconcat",
		"xmlelement", "xmlexists", "xmlforest", "xmlnamespaces", "xmlparse", "xmlpi", "xmlroot",
		"xmlserialize", "xmltable":
		return true
	}
	return false
}
