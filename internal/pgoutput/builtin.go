package pgoutput

// The type OIDs that to_json treats apart, from src/include/catalog/pg_type.dat;
// they never change. Note that oid is not among its numbers, and that a date
// reads the same in ISO style and in ISO 8601.
const (
	oidBool        = 16
	oidInt8        = 20
	oidInt2        = 21
	oidInt2Vector  = 22
	oidInt4        = 23
	oidOID         = 26
	oidOIDVector   = 30
	oidJSON        = 114
	oidBox         = 603
	oidFloat4      = 700
	oidFloat8      = 701
	oidTimestamp   = 1114
	oidTimestampTZ = 1184
	oidNumeric     = 1700
	oidJSONB       = 3802
)

// builtinClass gives the class of a built-in type that is no array.
func builtinClass(oid uint32) class {
	switch oid {
	case oidInt2, oidInt4, oidInt8, oidFloat4, oidFloat8, oidNumeric:
		return classNumber
	case oidBool:
		return classBool
	case oidJSON, oidJSONB:
		return classJSON
	case oidTimestamp:
		return classTimestamp
	case oidTimestampTZ:
		return classTimestampTZ
	case oidInt2Vector, oidOIDVector:
		return classVector
	}
	return classString
}

// builtinElement gives the element type of a built-in array type, zero for other
// types. It is the list of pg_type.dat, the same in 15 to 18, without the arrays
// of catalogs' row types, whose facts come from the catalog.
func builtinElement(array uint32) uint32 {
	switch array {
	case oidInt2Vector:
		return oidInt2
	case oidOIDVector:
		return oidOID
	case 143: // xml
		return 142
	case 199:
		return oidJSON
	case 271: // xid8
		return 5069
	case 629: // line
		return 628
	case 651: // cidr
		return 650
	case 719: // circle
		return 718
	case 775: // macaddr8
		return 774
	case 791: // money
		return 790
	case 1000, 1001, 1002, 1003: // bool, bytea, "char", name
		return array - 1000 + oidBool
	case 1005, 1006, 1007, 1008, 1009: // int2, int2vector, int4, regproc, text
		return array - 1005 + oidInt2
	case 1010, 1011, 1012, 1013: // tid, xid, cid, oidvector
		return array - 1010 + 27
	case 1014: // char(n)
		return 1042
	case 1015: // varchar
		return 1043
	case 1016:
		return oidInt8
	case 1017, 1018, 1019, 1020: // point, lseg, path, box
		return array - 1017 + 600
	case 1021, 1022:
		return array - 1021 + oidFloat4
	case 1027: // polygon
		return 604
	case 1028:
		return oidOID
	case 1034: // aclitem
		return 1033
	case 1040: // macaddr
		return 829
	case 1041: // inet
		return 869
	case 1115, 1185, 1187: // timestamp, timestamptz, interval
		return array - 1
	case 1182, 1183: // date, time
		return array - 100
	case 1231:
		return oidNumeric
	case 1263: // cstring
		return 2275
	case 1270: // timetz
		return 1266
	case 1561, 1563: // bit, bit varying
		return array - 1
	case 2201: // refcursor
		return 1790
	case 2207, 2208, 2209, 2210, 2211: // regprocedure, regoper, regoperator, regclass, regtype
		return array - 5
	case 2949: // txid_snapshot
		return 2970
	case 2951: // uuid
		return 2950
	case 3221: // pg_lsn
		return 3220
	case 3643: // tsvector
		return 3614
	case 3644: // gtsvector
		return 3642
	case 3645: // tsquery
		return 3615
	case 3735, 3770: // regconfig, regdictionary
		return array - 1
	case 3807:
		return oidJSONB
	case 3905, 3907, 3909, 3911, 3913, 3927: // ranges
		return array - 1
	case 4073, 4090, 4097, 4192, 5039: // jsonpath, regnamespace, regrole, regcollation, pg_snapshot
		return array - 1
	case 6150: // int4multirange
		return 4451
	case 6151, 6152, 6153: // nummultirange, tsmultirange, tstzmultirange
		return array - 6151 + 4532
	case 6155: // datemultirange
		return 4535
	case 6157: // int8multirange
		return 4536
	}
	return 0
}
