//go:build linux && (amd64 || arm64)

package waldio

import (
	"errors"
	"os"
	"runtime"
	"syscall"
	"unsafe"
)

const closeOnExec = 1 // MFD_CLOEXEC

// library gives the extension as a file in memory, which dlopen takes by its name below /proc: nothing is left in a directory, and
// nobody else can change it.
func library() (*os.File, error) {
	if len(extension) == 0 {
		return nil, errors.New("waldio: this module was made without a library for linux/" + runtime.GOARCH)
	}
	name := []byte("libwaldio.so\x00")
	descriptor, _, errno := syscall.Syscall(memfdCreate, uintptr(unsafe.Pointer(&name[0])), closeOnExec, 0)
	if errno != 0 {
		return nil, os.NewSyscallError("memfd_create", errno)
	}
	file := os.NewFile(descriptor, "libwaldio.so")
	if _, err := file.Write(extension); err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}
