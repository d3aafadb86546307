/* The kernel's half of `joj trace`: programs on tracepoints, and where there is none on a function's return, relocated to
 * the running kernel (CO-RE).
 *
 *   requests.h  bios and requests        memory.h  whose bytes a bio carries     content.h  what the bytes are
 *   calls.h     sync calls, O_DSYNC      files.h   which file, its name          journal.h  deleted files, locks
 *   commits.h   jbd2, who waits for it
 *   record.h    what goes to user space  kernel.h  the kernel's structs          helpers.h  eBPF itself
 *   settings.h  what user space decides
 *
 * A tracepoint that the kernel has not (an older one, a filesystem that is not there) costs its program only. */
#include "journal.h"

/* The helpers that read kernel memory are for GPL programs only; this one may also be used under MIT. */
SECTION("license") char licence[] = "Dual MIT/GPL";
