//go:build !linux || !(amd64 || arm64)

package waldio

import (
	"fmt"
	"os"
	"runtime"
)

func library() (*os.File, error) {
	return nil, fmt.Errorf("waldio: there is no library for %s/%s: it is for Linux with glibc", runtime.GOOS, runtime.GOARCH)
}
