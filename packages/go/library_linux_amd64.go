package waldio

import _ "embed"

//go:embed libwaldio_linux_amd64.so
var extension []byte

// The system call's number: package syscall is older than it.
const memfdCreate = 319
