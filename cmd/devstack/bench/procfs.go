package bench

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// ticksPerSecond is USER_HZ, in which the kernel counts CPU time towards
// programs: 100 on every architecture that Go runs on.
const ticksPerSecond = 100

// cpuSeconds is the CPU time, user and system, of a process so far; of a
// process that has ended it is an error.
func cpuSeconds(pid int) (float64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("read CPU time: %w", err)
	}
	// The second field is the program's name in brackets, spaces and all.
	_, rest, ok := strings.Cut(string(b), ") ")
	fields := strings.Fields(rest)
	if !ok || len(fields) < 13 {
		return 0, fmt.Errorf("read CPU time of process %d: its stat is %q", pid, b)
	}
	var ticks float64
	for _, f := range fields[11:13] { // utime and stime, fields 14 and 15 of proc(5)
		n, err := strconv.ParseFloat(f, 64)
		if err != nil {
			return 0, fmt.Errorf("read CPU time of process %d: %w", pid, err)
		}
		ticks += n
	}
	return ticks / ticksPerSecond, nil
}

func cpuOfAll(pids []int) ([]float64, error) {
	list := make([]float64, len(pids))
	for i, pid := range pids {
		var err error
		if list[i], err = cpuSeconds(pid); err != nil {
			return nil, err
		}
	}
	return list, nil
}
