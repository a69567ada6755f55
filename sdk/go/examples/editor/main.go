// Command editor is an editor of one letter that saves the work of its user when the seat is lost.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"seatkeeper.dev/seatkeeper"
)

const key = "TOUR-2030"

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: editor FILE")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, file string) error {
	client, err := seatkeeper.NewClient(os.Getenv("SEATS_URL"), seatkeeper.LicenseKey(key, ""))
	if err != nil {
		return err
	}
	// Every way out of run gives the seat back.
	defer client.Close(context.Background())
	machine, err := machineName()
	if err != nil {
		return err
	}
	seat, err := client.License(key).Acquire(ctx, seatkeeper.Machine(machine), seatkeeper.OnChange(show))
	if err != nil {
		return err
	}
	fmt.Println("Type your letter; end with an empty line.")
	return edit(ctx, seat, file)
}

// machineName names this machine. A container has no id of its own: SEATS_MACHINE names the machine there.
func machineName() (string, error) {
	if name := os.Getenv("SEATS_MACHINE"); name != "" {
		return name, nil
	}
	return seatkeeper.MachineID("com.example.editor")
}

// show tells the user of an outage, in which the work goes on.
func show(state seatkeeper.State) {
	switch state.Kind {
	case seatkeeper.Offline:
		fmt.Println("The license server does not answer. You can go on; save often.")
	case seatkeeper.Grace:
		fmt.Println("The license server does not answer. Save your work: the time to go on is limited.")
	}
}

// edit takes lines until an empty one, the loss of the seat, or the end of ctx.
func edit(ctx context.Context, seat *seatkeeper.Seat, file string) error {
	var letter strings.Builder
	lines := read(os.Stdin)
	for {
		select {
		case line, isOpen := <-lines:
			if !isOpen || line == "" {
				return os.WriteFile(file, []byte(letter.String()), 0o600)
			}
			seat.Activity()
			letter.WriteString(line + "\n")
		case <-seat.Lost():
			return rescue(file, letter.String(), lines, seat.Err())
		case <-ctx.Done():
			return rescue(file, letter.String(), lines, context.Cause(ctx))
		}
	}
}

// rescue saves the work beside the file of the user.
func rescue(file, letter string, lines <-chan string, cause error) error {
	// Lines that the user had typed when the seat was lost belong to the letter.
	for wait := time.After(100 * time.Millisecond); ; {
		select {
		case line, isOpen := <-lines:
			if isOpen {
				letter += line + "\n"
				continue
			}
		case <-wait:
		}
		break
	}
	rescued := file + ".rescued"
	if err := os.WriteFile(rescued, []byte(letter), 0o600); err != nil {
		return err
	}
	var loss *seatkeeper.Loss
	if errors.As(cause, &loss) {
		fmt.Printf("Your seat is lost (%s). Your letter is in %s.\n", loss.Reason, rescued)
	}
	return cause
}

// read returns the lines of the user.
func read(input io.Reader) <-chan string {
	lines := make(chan string)
	go func() {
		defer close(lines)
		for scanner := bufio.NewScanner(input); scanner.Scan(); {
			lines <- scanner.Text()
		}
	}()
	return lines
}
