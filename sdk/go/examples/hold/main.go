// Command hold holds a seat for a few seconds of work.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"time"

	"seatkeeper.dev/seatkeeper"
)

const key = "TOUR-2030"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	machine, err := machineName()
	if err != nil {
		return err
	}
	client, err := seatkeeper.NewClient(os.Getenv("SEATS_URL"), seatkeeper.LicenseKey(key, ""))
	if err != nil {
		return err
	}
	seat, err := client.License(key).Acquire(ctx, seatkeeper.Machine(machine), seatkeeper.Wait(5*time.Minute))
	var denied *seatkeeper.Denied
	if errors.As(err, &denied) {
		return fmt.Errorf("no seat: %w; held by: %v", denied, denied.Holders)
	}
	if err != nil {
		return err
	}
	defer seat.Release(context.Background())
	fmt.Println("seat", seat.SessionID(), "is held")
	return work(ctx, seat)
}

// machineName names this machine. A container has no id of its own: SEATS_MACHINE names the machine there.
func machineName() (string, error) {
	if name := os.Getenv("SEATS_MACHINE"); name != "" {
		return name, nil
	}
	return seatkeeper.MachineID("com.example.tour")
}

func work(ctx context.Context, seat *seatkeeper.Seat) error {
	for step := 1; step <= 3; step++ {
		if err := seat.Check(); err != nil {
			return fmt.Errorf("stopped before step %d: %w", step, err)
		}
		fmt.Println("step", step)
		select {
		case <-time.After(time.Second):
		case <-seat.Lost():
			return fmt.Errorf("stopped in step %d: %w", step, seat.Err())
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}
