// Runs a program that may start no process and open no socket, in one gigabyte of memory: a call that would ends it with SIGSYS.
#include <errno.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define IS(call, jump) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##call, jump, 0)
#define RETURN(what) BPF_STMT(BPF_RET | BPF_K, what)
#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))

int main(int count, char **words)
{
    struct sock_filter calls[] = {
        LOAD(nr),
#ifdef SYS_fork
        IS(fork, 7),
        IS(vfork, 6),
#else
        IS(socket, 7),
        IS(socket, 6),
#endif
        IS(socket, 5),
        // The C library goes back to `clone`, whose flags can be read here.
        IS(clone3, 5),
        IS(clone, 1),
        RETURN(SECCOMP_RET_ALLOW),
        LOAD(args[0]),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 2, 0),
        RETURN(SECCOMP_RET_KILL_PROCESS),
        RETURN(SECCOMP_RET_ERRNO | ENOSYS),
        RETURN(SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof calls / sizeof *calls, calls};
    struct rlimit memory = {1 << 30, 1 << 30};
    if (count < 2 || setrlimit(RLIMIT_AS, &memory) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter)) {
        perror("alone");
        return 70;
    }
    execv(words[1], words + 1);
    perror(words[1]);
    return 71;
}
