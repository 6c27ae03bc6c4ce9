package pgtest

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// account is the user that the servers run as. The zero account is the caller.
type account struct {
	name     string
	uid, gid uint32
	other    bool
}

// serverAccount is the caller, or, under root, postgres or nobody.
func serverAccount() (account, error) {
	if os.Geteuid() != 0 {
		return account{}, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(u.Uid, 10, 32)
		if err != nil {
			continue
		}
		gid, err := strconv.ParseUint(u.Gid, 10, 32)
		if err != nil {
			continue
		}
		return account{name: name, uid: uint32(uid), gid: uint32(gid), other: true}, nil
	}
	return account{}, fmt.Errorf("postgres refuses to run as root, and there is no user postgres or nobody: run as another user or add one")
}

// credential is nil for the caller itself.
func (a account) credential() *syscall.Credential {
	if !a.other {
		return nil
	}
	return &syscall.Credential{Uid: a.uid, Gid: a.gid}
}

// own gives everything below dir to the account.
func (a account) own(dir string) error {
	if !a.other {
		return nil
	}
	return filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, int(a.uid), int(a.gid))
	})
}

// reachable says whether the account can enter dir, which belongs to the
// caller: every folder on the way must let others pass.
func (a account) reachable(dir string) bool {
	if !a.other {
		return true
	}
	for d := dir; ; d = filepath.Dir(d) {
		fi, err := os.Stat(d)
		if err != nil {
			return false
		}
		st, ok := fi.Sys().(*syscall.Stat_t)
		if fi.Mode().Perm()&0o001 == 0 && (!ok || st.Uid != a.uid) {
			return false
		}
		if d == filepath.Dir(d) {
			return true
		}
	}
}

// temporaryFolder makes a folder that the account owns.
func (a account) temporaryFolder() (string, error) {
	base := os.TempDir()
	if !a.reachable(base) {
		base = "/tmp"
	}
	dir, err := os.MkdirTemp(base, "tidemark-pg-")
	if err != nil {
		return "", err
	}
	return dir, a.own(dir)
}
