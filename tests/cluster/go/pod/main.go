// Command pod is what runs inside the test pods: the pause process that holds a pod's namespaces, and a few containers whose
// behaviour a test can ask for. It is static, so an image of it needs nothing else.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"
)

const mebibyte = 1 << 20

func main() {
	verb := "pause"
	if len(os.Args) > 1 {
		verb = os.Args[1]
	}
	switch verb {
	case "pause":
		pause()
	case "report":
		report()
	case "allocate":
		allocate(os.Args[2])
	case "allocate-in-child":
		allocateInChild(os.Args[2])
	default:
		fmt.Fprintln(os.Stderr, "usage: pod [pause | report | allocate MEBIBYTES | allocate-in-child MEBIBYTES]")
		os.Exit(2)
	}
}

// pause waits to be told to stop. Go reaps no children it did not start, and a pod's pause process has none unless the pod
// shares its process namespace, which the tests do not.
func pause() {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGINT, syscall.SIGTERM)
	<-stop
}

// report says who the container is, in its log and in its termination message.
func report() {
	fmt.Printf("uid %d gid %d\n", os.Getuid(), os.Getgid())
	terminate("reported")
}

// allocate writes to so many mebibytes, so that they count against the container's memory limit, and keeps them.
func allocate(mebibytes string) {
	count, err := strconv.Atoi(mebibytes)
	if err != nil {
		panic(err)
	}
	held := make([][]byte, 0, count)
	for range count {
		block := make([]byte, mebibyte)
		for i := 0; i < len(block); i += os.Getpagesize() {
			block[i] = 1
		}
		held = append(held, block)
	}
	fmt.Printf("allocated %d MiB\n", len(held))
}

// allocateInChild lets a child allocate, as a supervisor lets a launch, and says how the child ended, if it is still there to.
func allocateInChild(mebibytes string) {
	terminate("child is about to allocate")
	child := exec.Command("/proc/self/exe", "allocate", mebibytes)
	child.Stdout, child.Stderr = os.Stdout, os.Stderr
	err := child.Run()
	fmt.Printf("child ended: %v\n", err)
	terminate(fmt.Sprintf("child ended: %v", err))
}

func terminate(message string) {
	if err := os.WriteFile("/dev/termination-log", []byte(message), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
