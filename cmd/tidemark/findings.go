package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tidemark-cdc/tidemark/internal/config"
	"github.com/tidemark-cdc/tidemark/internal/lake"
	"github.com/tidemark-cdc/tidemark/streamer/replication"
)

// maxSkew is by how much the clocks may differ. Nothing is lost by more: ages
// and latencies are wrong by it, and S3 refuses requests at 15 minutes.
const maxSkew = 5 * time.Second

func passed(about, format string, args ...any) finding {
	return finding{Level: levelPass, About: about, What: fmt.Sprintf(format, args...)}
}

// settingsFindings says what is wrong with where the settings are.
func settingsFindings(c *config.Config) []finding {
	keys, file := c.Exposed()
	if len(keys) == 0 {
		return nil
	}
	return []finding{{Level: levelWarning, About: aboutSettings,
		What: fmt.Sprintf("the configuration file %s has a password (%s) and can be read by others than its owner", file, strings.Join(keys, ", ")),
		Fix:  fmt.Sprintf("chmod 600 %s, or take the password out of it (postgres.password_file)", file)}}
}

// factFindings says what is wrong with a server, or else what is right. What
// setup would make is left to the situation, which knows whether it may.
func factFindings(f replication.Facts) []finding {
	var list []finding
	for _, p := range replication.Check(f) {
		if !p.Setup {
			list = append(list, postgresFinding(levelError, p))
		}
	}
	harmed := false
	bad := len(list) > 0
	for _, p := range replication.Warnings(f) {
		harmed = harmed || p.Harm
		list = append(list, postgresFinding(levelWarning, p))
	}
	if bad {
		return list
	}
	list = append(list,
		passed(aboutPostgres, "PostgreSQL %d, a primary, with wal_level %s", f.ServerVersion/10000, f.WALLevel),
		passed(aboutPostgres, "the role %s may replicate", f.Role),
		passed(aboutPostgres, "%d of %d replication slots and %d of %d walsenders are in use", f.Slots, f.MaxSlots, f.WALSenders, f.MaxWALSenders))
	if s := f.Slot; s != nil {
		reader := "nobody reads it"
		if s.Active {
			reader = fmt.Sprintf("process %d reads it, and a second streamer stands by", s.ActivePID)
		}
		list = append(list, passed(aboutPostgres, "the replication slot %q is valid, and %s", s.Name, reader))
	}
	for _, p := range f.Publications {
		if p.Exists && (p.Tables > 0 || p.AllTables) {
			list = append(list, passed(aboutPostgres, "the publication %q has %d tables", p.Name, p.Tables))
			if !harmed {
				list = append(list, passed(aboutPostgres, "each of them has a usable replica identity"))
			}
		}
	}
	return list
}

// direct is what to do about a pooler.
const direct = "give postgres.url the address of the server itself"

// wayFindings says what lies between here and the server: a pooler, and time.
func wayFindings(c replication.Connection) []finding {
	var list []finding
	switch {
	case c.Swapped():
		list = append(list, finding{Level: levelError, About: aboutPostgres, Fix: direct,
			What: "a pooler that gives each transaction another backend is between here and the server: slots and settings are not kept by it"})
	case c.Pooled():
		list = append(list, finding{Level: levelWarning, About: aboutPostgres, Fix: direct,
			What: "a pooler or proxy answers in the server's place"})
	default:
		list = append(list, passed(aboutPostgres, "the connection is a direct one"))
	}
	if c.Ahead.Abs() > maxSkew+c.Within {
		list = append(list, finding{Level: levelWarning, About: aboutPostgres, Fix: "synchronize both: chronyc tracking, or timedatectl set-ntp true",
			What: fmt.Sprintf("the server's clock and this machine's differ by %s", c.Ahead.Abs().Round(time.Millisecond))})
	} else {
		list = append(list, passed(aboutPostgres, "the server's clock and this machine's agree within %s", maxSkew))
	}
	return list
}

// probeFindings says what the lake's probe has shown.
func probeFindings(url string, conditional bool, err error) []finding {
	switch {
	case err == nil && conditional:
		return []finding{passed(aboutLake, "%s is listed, read and written, and keeps If-None-Match and If-Match", url)}
	case err == nil:
		return []finding{passed(aboutLake, "%s is listed, read and written", url), {Level: levelWarning, About: aboutLake,
			What: "lake.conditional_writes is false: nothing but the slot keeps two streamers apart",
			Fix:  "set lake.conditional_writes: true if the store knows If-None-Match and If-Match"}}
	case errors.Is(err, lake.ErrProbeLeft):
		return []finding{{Level: levelWarning, About: aboutLake, What: err.Error(),
			Fix: "allow s3:DeleteObject on _tidemark/probe-* below the prefix, or remove such objects now and then; nothing else is ever removed"}}
	case errors.Is(err, lake.ErrIgnoresConditions):
		return []finding{{Level: levelError, About: aboutLake, What: fmt.Sprintf("the lake %s: %v", url, err),
			Fix: "use a store or version that knows conditional writes, or set lake.conditional_writes: false, and run one streamer only"}}
	}
	f := finding{Level: levelError, About: aboutLake, What: fmt.Sprintf("the lake %s: %v", url, err)}
	if kind := lake.Class(err).Kind; conditional && kind == lake.Misconfigured {
		f.Fix = "if the store does not know If-None-Match or If-Match, set lake.conditional_writes: false"
	}
	return []finding{f}
}
