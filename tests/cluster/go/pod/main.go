// Command pod is the pause process that holds the namespaces of a test pod. It is static, so its image needs nothing
// else. Go reaps only children that it started, and a pause process gets none unless its pod shares a process namespace.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGINT, syscall.SIGTERM)
	<-stop
}
