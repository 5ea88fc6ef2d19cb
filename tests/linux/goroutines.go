// A program of Go that is linked statically: goroutines, channels, a collector of garbage, faults, files, processes, signals and a server of the web. It prints one line for each thing,
// the same on Linux and on Tern.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

func main() {
	if len(os.Args) < 2 {
		fail(errors.New("a directory is missing"))
	}
	if os.Args[1] == "child" {
		child()
		return
	}
	fmt.Println("locks:", locks())
	fmt.Println("channels:", channels())
	fmt.Println("waits:", waits())
	fmt.Println("a loop is interrupted:", interrupted())
	fmt.Println("garbage:", garbage())
	fmt.Println("faults:", faults())
	fmt.Println("files:", files(os.Args[1]))
	fmt.Println("processes:", processes())
	fmt.Println("signals:", signals())
	fmt.Println("streams:", streams())
	fmt.Println("web:", web())
	fmt.Println("all is well")
}

func fail(err error) {
	fmt.Println("error:", err)
	os.Exit(1)
}

func must[T any](value T, err error) T {
	if err != nil {
		fail(err)
	}
	return value
}

// Answers each line of the input, and ends with a status of its own.
func child() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		fmt.Println(os.Getenv("SAID"), strings.ToUpper(lines.Text()))
	}
	os.Exit(23)
}

func locks() string {
	var lock sync.RWMutex
	var all sync.WaitGroup
	var count atomic.Int64
	table := map[int]int{}
	for number := 0; number < 50; number++ {
		all.Add(1)
		go func(number int) {
			defer all.Done()
			// Threads of the kernel are made for those that keep one.
			if number%10 == 0 {
				runtime.LockOSThread()
			}
			for step := 0; step < 200; step++ {
				lock.Lock()
				table[step] += number
				lock.Unlock()
				count.Add(1)
				if step%50 == 0 {
					runtime.Gosched()
				}
			}
		}(number)
	}
	all.Wait()
	return fmt.Sprint(count.Load(), table[7], len(table))
}

func channels() int {
	numbers, sums := make(chan int), make(chan int, 3)
	for worker := 0; worker < 8; worker++ {
		go func() {
			sum := 0
			for number := range numbers {
				sum += number
			}
			sums <- sum
		}()
	}
	for number := 0; number < 5000; number++ {
		numbers <- number
	}
	close(numbers)
	sum := 0
	for worker := 0; worker < 8; worker++ {
		sum += <-sums
	}
	return sum
}

func waits() string {
	begin := time.Now()
	never := make(chan int)
	said := "nothing"
	select {
	case <-never:
	case <-time.After(5 * time.Millisecond):
		said = "late"
	}
	ticker := time.NewTicker(time.Millisecond)
	for step := 0; step < 5; step++ {
		<-ticker.C
	}
	ticker.Stop()
	return fmt.Sprint(said, " ", time.Since(begin) >= 9*time.Millisecond)
}

// A goroutine that never calls anything is interrupted by a signal.
func interrupted() bool {
	old := runtime.GOMAXPROCS(1)
	defer runtime.GOMAXPROCS(old)
	var ends atomic.Bool
	done := make(chan uint64)
	go func() {
		turns := uint64(0)
		for !ends.Load() {
			turns++
		}
		done <- turns
	}()
	time.Sleep(5 * time.Millisecond)
	ends.Store(true)
	return <-done > 0
}

type node struct {
	next *node
	load [100]byte
}

func garbage() string {
	defer debug.SetGCPercent(debug.SetGCPercent(20))
	var kept *node
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for step := 0; step < 100_000; step++ {
		fresh := &node{next: kept}
		if step%100 == 0 {
			kept = fresh
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	length := 0
	for ; kept != nil; kept = kept.next {
		length++
	}
	debug.FreeOSMemory()
	return fmt.Sprint(length, " ", after.NumGC > before.NumGC, " ", after.Frees > before.Frees)
}

func caught(what func()) (told string) {
	defer func() {
		if err, is := recover().(runtime.Error); is {
			told = err.Error()
		}
	}()
	what()
	return "nothing"
}

func faults() string {
	var none *node
	zero, list := len(os.Args)*0, []int{1, 2}
	return strings.Join([]string{
		caught(func() { none.load[50] = 1 }),
		caught(func() { fmt.Print(1 / zero) }),
		caught(func() { list[zero+2] = 1 }),
	}, "; ")
}

func files(place string) string {
	folder := filepath.Join(place, "goroutines")
	os.RemoveAll(folder)
	must(0, os.MkdirAll(filepath.Join(folder, "a/b"), 0o755))
	path := filepath.Join(folder, "a/text")
	file := must(os.Create(path))
	for line := 0; line < 1000; line++ {
		fmt.Fprintln(file, "line", line)
	}
	must(0, file.Sync())
	word := make([]byte, 6)
	must(file.ReadAt(word, 5))
	must(0, file.Close())
	must(0, os.Link(path, filepath.Join(folder, "a/other")))
	must(0, os.Symlink("text", filepath.Join(folder, "a/link")))
	must(0, os.Rename(filepath.Join(folder, "a/other"), filepath.Join(folder, "a/b/moved")))
	var names []string
	must(0, filepath.Walk(folder, func(path string, info os.FileInfo, err error) error {
		names = append(names, info.Name())
		return err
	}))
	sort.Strings(names)
	text := must(os.ReadFile(filepath.Join(folder, "a/link")))
	_, err := os.Open(filepath.Join(folder, "nosuch"))
	must(0, os.RemoveAll(folder))
	return fmt.Sprintf("%q %d %v %v", word, len(text), names, errors.Is(err, os.ErrNotExist))
}

func processes() string {
	command := exec.Command(must(os.Executable()), "child")
	command.Env = []string{"SAID=heard:"}
	command.Stdin = strings.NewReader("one\ntwo\n")
	said, err := command.Output()
	var ended *exec.ExitError
	errors.As(err, &ended)
	missing := exec.Command("/nosuch/program").Run()
	sleeper := exec.Command(must(os.Executable()), "child")
	input := must(sleeper.StdinPipe())
	must(0, sleeper.Start())
	must(0, sleeper.Process.Kill())
	killed := sleeper.Wait()
	input.Close()
	return fmt.Sprintf("%q %d %v; %v", said, ended.ExitCode(), missing, killed)
}

func signals() string {
	heard := make(chan os.Signal, 4)
	signal.Notify(heard, syscall.SIGUSR1, syscall.SIGHUP)
	said := ""
	for _, number := range []syscall.Signal{syscall.SIGUSR1, syscall.SIGHUP} {
		must(0, syscall.Kill(os.Getpid(), number))
		said += fmt.Sprint(<-heard, " ")
	}
	signal.Stop(heard)
	return said
}

// Clients send, and each gets back what it has sent, in capitals.
func streams() string {
	listener := must(net.Listen("tcp", "127.0.0.1:0"))
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer connection.Close()
				text, _ := io.ReadAll(connection)
				io.WriteString(connection, strings.ToUpper(string(text)))
			}()
		}
	}()
	address, said := listener.Addr().String(), ""
	for _, text := range []string{"a", "bc", strings.Repeat("xyz", 20_000)} {
		connection := must(net.Dial("tcp", address)).(*net.TCPConn)
		must(io.WriteString(connection, text))
		must(0, connection.CloseWrite())
		answer := must(io.ReadAll(connection))
		connection.Close()
		said += fmt.Sprint(len(answer), ":", string(answer) == strings.ToUpper(text), " ")
	}
	connection := must(net.Dial("tcp", address))
	connection.SetReadDeadline(time.Now().Add(2 * time.Millisecond))
	_, err := connection.Read(make([]byte, 1))
	connection.Close()
	listener.Close()
	_, refused := net.Dial("tcp", address)
	return fmt.Sprint(said, errors.Is(err, os.ErrDeadlineExceeded), " ", errors.Is(refused, syscall.ECONNREFUSED))
}

func web() string {
	listener := must(net.Listen("tcp", "127.0.0.1:0"))
	server := &http.Server{Handler: http.HandlerFunc(func(to http.ResponseWriter, request *http.Request) {
		fmt.Fprint(to, strings.Repeat(request.URL.Path, 100))
	})}
	go server.Serve(listener)
	sum := 0
	for _, path := range []string{"/a", "/longer/path", "/"} {
		response := must(http.Get("http://" + listener.Addr().String() + path))
		sum += len(must(io.ReadAll(response.Body)))
		response.Body.Close()
	}
	server.Close()
	return fmt.Sprint(sum)
}
