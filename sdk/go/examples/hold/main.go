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

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	client, err := seatkeeper.NewClient(os.Getenv("SEATS_URL"), seatkeeper.Token(os.Getenv("SEATS_TOKEN")))
	if err != nil {
		return err
	}
	seat, err := client.License("TOUR").Acquire(ctx, seatkeeper.Machine("workstation-7"), seatkeeper.Wait(5*time.Minute))
	var denied *seatkeeper.Denied
	if errors.As(err, &denied) {
		return fmt.Errorf("no seat (%s); held by: %v", denied.Code(), denied.Holders)
	}
	if err != nil {
		return err
	}
	defer seat.Release(context.Background())
	fmt.Println("seat", seat.SessionID(), "is held")
	return work(ctx, seat)
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
