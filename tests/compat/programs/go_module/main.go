// Goroutines, a server on the own loopback, a child process, a file: what Go programs do.
package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"example.com/compat/sum"
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	var group sync.WaitGroup
	parts := make(chan int, 100)
	for i := 0; i < 100; i++ {
		group.Add(1)
		go func(i int) { defer group.Done(); parts <- i }(i)
	}
	group.Wait()
	close(parts)
	total := 0
	for part := range parts {
		total = sum.Of(total, part)
	}
	listener, err := net.Listen("tcp", "localhost:0")
	check(err)
	go func() {
		server, err := listener.Accept()
		check(err)
		fmt.Fprint(server, "served")
		check(server.Close())
	}()
	client, err := net.Dial("tcp", listener.Addr().String())
	check(err)
	body, err := io.ReadAll(client)
	check(err)
	out, err := exec.Command("sh", "-c", "echo child").Output()
	check(err)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR1)
	check(syscall.Kill(os.Getpid(), syscall.SIGUSR1))
	<-signals
	check(os.WriteFile("/tmp/file", out, 0o600))
	zone, err := time.LoadLocation("Asia/Tokyo")
	check(err)
	fmt.Println("go", total, string(body), string(out[:5]), time.Unix(0, 0).In(zone).Hour())
}
